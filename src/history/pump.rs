//! Keeps one reader of a source working while earlier chunks are decoded and written.

use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::tasks::Tasks;
use crate::domain::Height;
use crate::rpc::UpstreamError;
use crate::sources::{GapReader, RawChunk};

/// Chunks that wait between reader and writer.
const WAITING_CHUNKS_MAX: usize = 1;

type Fetched = Result<Option<RawChunk>, UpstreamError>;

/// A reader of one gap, in a task of its own. Dropping it stops the fetching.
#[derive(Debug)]
pub(super) struct Pump {
    /// Lower end of the gap.
    pub(super) low: Height,
    /// Top of the next chunk; `None` before the first chunk of a read from the head.
    pub(super) next_high: Option<Height>,
    chunks: mpsc::Receiver<Fetched>,
    /// Asks for one more chunk; an eager pump does not wait for it.
    asks: mpsc::Sender<()>,
    asked: bool,
    /// What [`Pump::next_if`] received and left.
    ahead: Option<Fetched>,
    eager: watch::Sender<bool>,
    began: Instant,
    _task: AbortOnDropHandle<()>,
}

impl Pump {
    pub(super) fn start(
        tasks: &Tasks,
        reader: GapReader,
        low: Height,
        high: Option<Height>,
    ) -> Self {
        let (chunk_sender, chunks) = mpsc::channel(WAITING_CHUNKS_MAX);
        let (asks, ask_receiver) = mpsc::channel(1);
        let (eager, eager_receiver) = watch::channel(false);
        let task = tasks.spawn_owned(run(reader, chunk_sender, ask_receiver, eager_receiver));
        let began = Instant::now();
        let (asked, ahead) = (false, None);
        Self { low, next_high: high, chunks, asks, asked, ahead, eager, began, _task: task }
    }

    pub(super) fn set_eager(&self, eager: bool) {
        self.eager.send_if_modified(|now| std::mem::replace(now, eager) != eager);
    }

    /// The next chunk. Cancel safe.
    pub(super) async fn next(&mut self) -> Fetched {
        match self.ahead.take() {
            Some(ahead) => ahead,
            None => self.receive().await,
        }
    }

    /// The next chunk if it fits; what does not stays the next. Cancel safe.
    pub(super) async fn next_if(
        &mut self,
        fits: impl FnOnce(&RawChunk) -> bool,
    ) -> Option<RawChunk> {
        if self.ahead.is_none() {
            self.ahead = Some(self.receive().await);
        }
        match self.ahead.take() {
            Some(Ok(Some(chunk))) if fits(&chunk) => Some(chunk),
            other => {
                self.ahead = other;
                None
            }
        }
    }

    async fn receive(&mut self) -> Fetched {
        if !std::mem::replace(&mut self.asked, true) {
            // Full means that an ask is waiting already.
            let _ = self.asks.try_send(());
        }
        let fetched = self.chunks.recv().await.unwrap_or(Ok(None));
        self.asked = false;
        fetched
    }
}

/// The lower end of a look for newer heights that began not long ago. It is finished also where no
/// reader waits for it: readers that have little time would begin it anew for ever.
pub(super) fn unfinished(pumps: &[Pump], linger: Duration) -> Option<Height> {
    let is_unfinished =
        |pump: &&Pump| pump.low > 0 && pump.next_high.is_none() && pump.began.elapsed() < linger;
    pumps.iter().find(is_unfinished).map(|pump| pump.low)
}

async fn run(
    mut reader: GapReader,
    chunks: mpsc::Sender<Fetched>,
    mut asks: mpsc::Receiver<()>,
    mut eager: watch::Receiver<bool>,
) {
    loop {
        while !*eager.borrow_and_update() {
            tokio::select! {
                biased;
                asked = asks.recv() => match asked {
                    Some(()) => break,
                    None => return,
                },
                changed = eager.changed() => if changed.is_err() { return },
                never = reader.drive() => match never {},
            }
        }
        reader.set_eager(*eager.borrow());
        let fetched = reader.next().await;
        let last = !matches!(fetched, Ok(Some(_)));
        tokio::select! {
            biased;
            sent = chunks.send(fetched) => if sent.is_err() || last { return },
            never = reader.drive() => match never {},
        }
    }
}
