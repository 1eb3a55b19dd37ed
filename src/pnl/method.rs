//! Cost basis methods.

/// Which units a sell takes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    /// First in, first out.
    Fifo,
    /// Last in, first out.
    Lifo,
    /// Highest cost per unit first; of equal ones the oldest; lots of unknown cost last.
    Hifo,
    /// No lots: each unit costs the average of what is held.
    Average,
}

impl Method {
    pub const ALL: [Self; 4] = [Self::Fifo, Self::Lifo, Self::Hifo, Self::Average];

    /// As requests and reports name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fifo => "fifo",
            Self::Lifo => "lifo",
            Self::Hifo => "hifo",
            Self::Average => "average",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.name() == name)
    }
}
