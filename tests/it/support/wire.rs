//! A connection to the database that can be silent, slow or cut, or lose one answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use blotter::history::Tasks;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    /// Each answer comes later by this.
    Slow(Duration),
    Silent,
    Cut,
}

pub(crate) struct Wire {
    /// The address of the database through it.
    pub(crate) url: String,
    inner: Arc<Inner>,
}

struct Inner {
    state: watch::Sender<State>,
    /// Answers until one is lost with its connection; below zero none is.
    until_loss: AtomicI64,
    /// Answers until nothing passes any more; below zero all do.
    until_silence: AtomicI64,
    /// Connections of an earlier one pass nothing any more.
    generation: AtomicU32,
    /// Bytes that the server has sent.
    received: AtomicUsize,
    server: String,
    tasks: Tasks,
}

impl Wire {
    pub(crate) async fn to(url: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (user, rest) = url.rsplit_once('@').unwrap();
        let (server, database) = rest.split_once('/').unwrap();
        let url = format!("{user}@{}/{database}", listener.local_addr().unwrap());
        let inner = Arc::new(Inner {
            state: watch::Sender::new(State::Open),
            until_loss: AtomicI64::new(-1),
            until_silence: AtomicI64::new(-1),
            generation: AtomicU32::new(0),
            received: AtomicUsize::new(0),
            server: server.to_owned(),
            tasks: Tasks::new(),
        });
        let accepting = Arc::clone(&inner);
        inner.tasks.spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let inner = Arc::clone(&accepting);
                accepting.tasks.spawn(async move { inner.join(near).await });
            }
        });
        Self { url, inner }
    }

    pub(crate) fn open(&self) {
        self.inner.until_silence.store(-1, Ordering::SeqCst);
        self.inner.state.send_replace(State::Open);
    }

    pub(crate) fn slow(&self, by: Duration) {
        self.inner.state.send_replace(State::Slow(by));
    }

    /// Connections stay, and nothing passes.
    pub(crate) fn silence(&self) {
        self.inner.state.send_replace(State::Silent);
    }

    /// As [`Self::silence`], from the answer on before which so many come.
    pub(crate) fn silence_after(&self, answers: i64) {
        self.inner.until_silence.store(answers, Ordering::SeqCst);
    }

    /// Waits until nothing passes any more.
    pub(crate) async fn is_silent(&self) {
        self.inner.state.subscribe().wait_for(|state| *state == State::Silent).await.unwrap();
    }

    /// The connections of now stay and pass nothing; new ones work, as after a failover.
    pub(crate) fn strand(&self) {
        self.inner.generation.fetch_add(1, Ordering::SeqCst);
    }

    /// Connections end, and new ones end at once.
    pub(crate) fn cut(&self) {
        self.inner.state.send_replace(State::Cut);
    }

    /// The server makes an answer which does not arrive: so many come before it.
    pub(crate) fn lose_answer(&self, after: i64) {
        self.inner.until_loss.store(after, Ordering::SeqCst);
    }

    pub(crate) fn received(&self) -> usize {
        self.inner.received.load(Ordering::SeqCst)
    }

    /// Whether the answer that was to be lost was lost.
    pub(crate) fn has_lost(&self) -> bool {
        self.inner.until_loss.swap(-1, Ordering::SeqCst) < 0
    }
}

impl Inner {
    async fn join(self: Arc<Self>, near: TcpStream) {
        let Ok(far) = TcpStream::connect(&self.server).await else { return };
        near.set_nodelay(true).unwrap();
        far.set_nodelay(true).unwrap();
        let (mut near_read, mut near_write) = near.into_split();
        let (mut far_read, mut far_write) = far.into_split();
        let generation = self.generation.load(Ordering::SeqCst);
        let up = async {
            let mut bytes = vec![0; 65_536];
            while let Ok(count @ 1..) = near_read.read(&mut bytes).await {
                if !self.passes(generation).await
                    || far_write.write_all(&bytes[..count]).await.is_err()
                {
                    return;
                }
            }
        };
        let down = async {
            let mut bytes = vec![0; 65_536];
            while let Ok(count @ 1..) = far_read.read(&mut bytes).await {
                self.received.fetch_add(count, Ordering::SeqCst);
                self.may_fall_silent();
                if !self.passes(generation).await || self.loses() {
                    return;
                }
                if near_write.write_all(&bytes[..count]).await.is_err() {
                    return;
                }
            }
        };
        let mut state = self.state.subscribe();
        tokio::select! {
            () = up => {}
            () = down => {}
            _ = state.wait_for(|state| *state == State::Cut) => {}
        }
    }

    /// Waits until bytes may pass; false where the connection ends instead.
    async fn passes(&self, generation: u32) -> bool {
        if self.generation.load(Ordering::SeqCst) != generation {
            return std::future::pending().await;
        }
        let mut state = self.state.subscribe();
        let now = *state.wait_for(|state| *state != State::Silent).await.unwrap();
        if let State::Slow(by) = now {
            tokio::time::sleep(by).await;
        }
        now != State::Cut
    }

    fn may_fall_silent(&self) {
        let left = self.until_silence.load(Ordering::SeqCst);
        if left >= 0 {
            self.until_silence.store(left - 1, Ordering::SeqCst);
        }
        if left == 0 {
            self.state.send_replace(State::Silent);
        }
    }

    fn loses(&self) -> bool {
        let left = self.until_loss.load(Ordering::SeqCst);
        if left >= 0 {
            self.until_loss.store(left - 1, Ordering::SeqCst);
        }
        left == 0
    }
}
