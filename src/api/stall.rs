//! A connection whose client has to go on reading: a write that makes no progress for too long
//! fails, which drops the answer and its walk.

use std::future::Future as _;
use std::io::{self, ErrorKind, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

use super::framing::Counter;

#[derive(Debug)]
pub(super) struct StallGuard<T> {
    inner: T,
    counter: Counter,
    wait_max: Duration,
    /// Made at the first wait, since most connections never have one.
    timer: Option<Pin<Box<Sleep>>>,
    is_waiting: bool,
}

impl<T> StallGuard<T> {
    pub(super) fn new(inner: T, counter: Counter, wait_max: Duration) -> Self {
        Self { inner, counter, wait_max, timer: None, is_waiting: false }
    }

    /// Passes on what a write came to; a wait that lasts too long becomes an error.
    fn watch<R>(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<R>>,
    ) -> Poll<io::Result<R>> {
        if written.is_ready() {
            self.is_waiting = false;
            return written;
        }
        let deadline = Instant::now() + self.wait_max;
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
        if !self.is_waiting {
            self.is_waiting = true;
            timer.as_mut().reset(deadline);
        }
        ready!(timer.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(ErrorKind::TimedOut, "the client accepts nothing")))
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for StallGuard<T> {
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

impl<T: AsyncWrite + Unpin> AsyncWrite for StallGuard<T> {
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
        let flushed = Pin::new(&mut self.inner).poll_flush(cx);
        self.watch(cx, flushed)
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
        let mut guarded = StallGuard::new(ours, Counter::default(), WAIT);
        let started = Instant::now();
        let error = guarded.write_all(&[0; 100]).await.unwrap_err();
        assert_eq!((error.kind(), started.elapsed()), (ErrorKind::TimedOut, WAIT));
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_reader_that_goes_on_is_served() {
        let (ours, mut theirs) = duplex(16);
        let mut guarded = StallGuard::new(ours, Counter::default(), WAIT);
        let read = async {
            for _ in 0..10 {
                tokio::time::sleep(LESS).await;
                theirs.read_exact(&mut [0; 10]).await.unwrap();
            }
        };
        let (written, ()) = tokio::join!(guarded.write_all(&[0; 100]), read);
        written.unwrap();
    }
}
