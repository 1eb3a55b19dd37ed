//! Locks without poison.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A panic of one who holds it does not take it from the others.
pub fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
