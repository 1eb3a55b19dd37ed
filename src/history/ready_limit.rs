//! Limits how many loading tasks are ready at once. The runtime polls tasks in the order in which
//! they become ready, so a page would wait behind each of fifty wallets that decode. Here one
//! loading task per processor is ready, and the others wait in turn. While one is polled, which
//! takes milliseconds where it decodes, another thread polls what else its worker has.

use std::num::NonZero;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::thread::available_parallelism;

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::Semaphore;
use tokio::task::block_in_place;
use tokio_util::sync::PollSemaphore;

/// The poll permits of one process. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct ReadyLimit(Arc<Semaphore>);

impl Default for ReadyLimit {
    fn default() -> Self {
        Self::new(available_parallelism().map_or(1, NonZero::get))
    }
}

impl ReadyLimit {
    /// Allows `count` tasks to be polled at the same time.
    fn new(count: usize) -> Self {
        Self(Arc::new(Semaphore::new(count)))
    }

    /// Wraps `work` so that each poll waits for a permit and holds it only during that poll.
    pub(super) fn take<F: Future>(&self, work: F) -> Limited<F> {
        Limited { turn: PollSemaphore::new(Arc::clone(&self.0)), work: Box::pin(work) }
    }
}

pub(super) struct Limited<F> {
    turn: PollSemaphore,
    work: Pin<Box<F>>,
}

impl<F: Future> Future for Limited<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        // `None` would mean a closed semaphore; this one is never closed.
        let turn = ready!(self.turn.poll_acquire(context));
        let polled = off_worker(|| self.work.as_mut().poll(context));
        drop(turn);
        polled
    }
}

/// Runs `work` while another thread takes over this worker's other tasks. A runtime of one thread
/// has no other.
fn off_worker<T>(work: impl FnOnce() -> T) -> T {
    let flavor = Handle::try_current().map(|runtime| runtime.runtime_flavor());
    if matches!(flavor, Ok(RuntimeFlavor::MultiThread)) { block_in_place(work) } else { work() }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Barrier, mpsc};
    use std::thread;

    use super::*;

    /// A task that polls itself again `left` times, and records in `most` how many such tasks are
    /// in their poll at the same time.
    async fn busy(polled: Arc<AtomicUsize>, most: Arc<AtomicUsize>, left: usize) {
        for _ in 0..left {
            let now = polled.fetch_add(1, Ordering::SeqCst) + 1;
            most.fetch_max(now, Ordering::SeqCst);
            thread::yield_now();
            polled.fetch_sub(1, Ordering::SeqCst);
            tokio::task::yield_now().await;
        }
    }

    #[test]
    fn no_more_tasks_are_polled_at_the_same_time_than_there_are_turns() {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(6).build().unwrap();
        let (limit, polled, most) = (ReadyLimit::new(2), Arc::default(), Arc::default());
        let work = || limit.take(busy(Arc::clone(&polled), Arc::clone(&most), 200));
        let tasks: Vec<_> = (0..20).map(|_| runtime.spawn(work())).collect();
        runtime.block_on(async {
            for task in tasks {
                task.await.unwrap();
            }
        });
        assert!(most.load(Ordering::SeqCst) <= 2);
        assert_eq!(limit.0.available_permits(), 2, "all permits are given back");
    }

    /// A task that is blocked in its poll holds the only turn but not the only worker; the others
    /// go on after it.
    #[test]
    fn what_takes_no_turns_goes_on_next_to_what_waits_for_one() {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let (limit, barrier) = (ReadyLimit::new(1), Arc::new(Barrier::new(2)));
        let (begun, holds) = mpsc::channel();
        let held = Arc::clone(&barrier);
        let first = runtime.spawn(limit.take(async move {
            begun.send(()).unwrap();
            held.wait();
        }));
        holds.recv().unwrap();
        let second = runtime.spawn(limit.take(async { 2 }));
        assert_eq!(runtime.block_on(runtime.spawn(async { 1 })).unwrap(), 1);
        assert!(!second.is_finished());
        barrier.wait();
        assert_eq!(runtime.block_on(second).unwrap(), 2);
        runtime.block_on(first).unwrap();
    }

    /// A task that is dropped while it waits leaves its place in the queue.
    #[test]
    fn a_task_that_ends_while_it_waits_keeps_no_turn() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let limit = ReadyLimit::new(1);
        runtime.block_on(async {
            let permit = limit.0.clone().acquire_owned().await.unwrap();
            let mut waits = limit.take(async {});
            assert!(futures_util::poll!(&mut waits).is_pending());
            drop(waits);
            drop(permit);
            limit.take(async {}).await;
        });
        assert_eq!(limit.0.available_permits(), 1);
    }
}
