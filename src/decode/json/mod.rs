//! JSON read in place: the answers that hold transactions, of every family.

mod reader;
mod scan;

pub(super) use reader::{Reader, Unread};
