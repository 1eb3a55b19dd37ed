//! Cost basis methods.

use crate::domain::named;

named! {
    /// Which units a sell takes first.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Method {
        /// First in, first out.
        Fifo = "fifo",
        /// Last in, first out.
        Lifo = "lifo",
        /// Highest cost per unit first; of equal ones the oldest; lots of unknown cost last.
        Hifo = "hifo",
        /// No lots: each unit costs the average of what is held.
        Average = "average",
    }
}

impl Method {
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.name() == name)
    }
}
