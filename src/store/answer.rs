//! What a read of the store returns: a future that is ready at once for the embedded arm, and boxed
//! for the shared one, so that the arguments of a read take no room in the futures of its callers.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::StoreError;

/// The outcome of a read.
pub type Reading<'a, T> = Answer<'a, Result<T, StoreError>>;

pub struct Answer<'a, T>(State<'a, T>);

enum State<'a, T> {
    /// `None` once it was taken.
    Ready(Option<T>),
    #[cfg_attr(not(feature = "postgres"), expect(dead_code, reason = "of the shared arm"))]
    Later(Pin<Box<dyn Future<Output = T> + Send + 'a>>),
}

impl<T> Answer<'_, T> {
    pub(super) fn ready(value: T) -> Self {
        Self(State::Ready(Some(value)))
    }
}

#[cfg(feature = "postgres")]
impl<'a, T> Answer<'a, T> {
    pub(super) fn later(future: impl Future<Output = T> + Send + 'a) -> Self {
        Self(State::Later(Box::pin(future)))
    }
}

/// A value that is ready is moved out, never pinned.
impl<T> Unpin for Answer<'_, T> {}

impl<T> Future for Answer<'_, T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        match &mut self.0 {
            State::Ready(value) => value.take().map_or(Poll::Pending, Poll::Ready),
            State::Later(future) => future.as_mut().poll(cx),
        }
    }
}

impl<T> fmt::Debug for Answer<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer").finish_non_exhaustive()
    }
}
