//! The slow-reader guard: if a client accepts less than a minimum of bytes within a time limit, the
//! write fails, which drops the response and its walk.

use std::future::Future as _;
use std::io::{self, ErrorKind, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

use super::framing::ByteCounter;

/// Bytes that a client has to accept within the time limit while so many are waiting: about 140 per
/// second. A client that accepts less keeps the connection open without reading it.
const ACCEPTED_MIN: usize = 4096;

#[derive(Debug)]
pub(super) struct SlowReaderGuard<T> {
    inner: T,
    counter: ByteCounter,
    wait_max: Duration,
    /// Created at the first wait, since most connections never wait.
    timer: Option<Pin<Box<Sleep>>>,
    is_waiting: bool,
    accepted: usize,
}

impl<T> SlowReaderGuard<T> {
    pub(super) fn new(inner: T, counter: ByteCounter, wait_max: Duration) -> Self {
        Self { inner, counter, wait_max, timer: None, is_waiting: false, accepted: 0 }
    }

    /// Counts the bytes of a write; a pending write becomes an error after the time limit.
    fn watch(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        let Poll::Ready(Ok(bytes)) = &written else { return self.wait(cx, written) };
        self.accepted = self.accepted.saturating_add(*bytes);
        self.is_waiting &= self.accepted < ACCEPTED_MIN;
        written
    }

    fn wait<R>(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<R>>,
    ) -> Poll<io::Result<R>> {
        if written.is_ready() {
            return written;
        }
        let deadline = Instant::now() + self.wait_max;
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
        if !self.is_waiting {
            (self.is_waiting, self.accepted) = (true, 0);
            timer.as_mut().reset(deadline);
        }
        ready!(timer.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(ErrorKind::TimedOut, "the client accepts nothing")))
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for SlowReaderGuard<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.inner).poll_read(cx, buffer);
        self.counter.count(buffer.filled().get(before..).unwrap_or_default());
        polled
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for SlowReaderGuard<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(cx, data);
        self.watch(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write_vectored(cx, data);
        self.watch(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // After a complete flush the next wait has a time limit of its own.
        let flushed = Pin::new(&mut self.inner).poll_flush(cx);
        self.is_waiting &= flushed.is_pending();
        self.wait(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;

    const WAIT: Duration = Duration::from_secs(30);
    const LESS: Duration = Duration::from_secs(29);

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_stops_ends_the_write() {
        let (ours, _theirs) = duplex(16);
        let mut guarded = SlowReaderGuard::new(ours, ByteCounter::default(), WAIT);
        let started = Instant::now();
        let error = guarded.write_all(&[0; 100]).await.unwrap_err();
        assert_eq!((error.kind(), started.elapsed()), (ErrorKind::TimedOut, WAIT));
    }

    /// Writes ten times as much as a reader takes every 29 seconds.
    async fn slow(bytes: usize) -> io::Result<()> {
        let (ours, mut theirs) = duplex(bytes);
        let mut guarded = SlowReaderGuard::new(ours, ByteCounter::default(), WAIT);
        let read = async {
            for _ in 0..10 {
                tokio::time::sleep(LESS).await;
                if theirs.read_exact(&mut vec![0; bytes]).await.is_err() {
                    return;
                }
            }
        };
        let write = async { guarded.write_all(&vec![0; 10 * bytes]).await };
        tokio::pin!(read);
        tokio::select! {
            written = write => written,
            () = &mut read => Ok(()),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_reader_that_goes_on_is_served_and_one_that_drips_is_not() {
        slow(ACCEPTED_MIN).await.unwrap();
        let error = slow(ACCEPTED_MIN - 1).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
    }

    #[tokio::test(start_paused = true)]
    async fn small_answers_with_pauses_between_them_are_no_stall() {
        let (ours, mut theirs) = duplex(16);
        let mut guarded = SlowReaderGuard::new(ours, ByteCounter::default(), WAIT);
        let read = async {
            for _ in 0..4 {
                tokio::time::sleep(LESS).await;
                theirs.read_exact(&mut [0; 20]).await.unwrap();
            }
        };
        let write = async {
            for _ in 0..4 {
                guarded.write_all(&[0; 20]).await.unwrap();
                guarded.flush().await.unwrap();
            }
        };
        tokio::join!(write, read);
    }
}
