//! The share of one of several processes in a limit.

/// A process's rank among the live processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    rank: u32,
    processes: u32,
}

impl Default for Share {
    fn default() -> Self {
        Self { rank: 0, processes: 1 }
    }
}

impl Share {
    /// The process after `rank` others, of `processes`.
    pub fn new(rank: u32, processes: u32) -> Self {
        Self { rank, processes: processes.max(1) }
    }

    /// The number of live processes, including this one.
    pub fn processes(self) -> u32 {
        self.processes
    }

    /// This process's part of some places, at least one if there are any. All parts add up to
    /// `places` where there are no more processes than that.
    pub fn of_places(self, places: u32) -> u32 {
        let (whole, over) = (places / self.processes, places % self.processes);
        (whole + u32::from(self.rank < over)).max(places.min(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_all_processes_add_up() {
        for processes in 1..=5 {
            for places in processes..20 {
                let parts =
                    (0..processes).map(|rank| Share::new(rank, processes).of_places(places));
                assert_eq!(parts.sum::<u32>(), places, "{places} over {processes}");
            }
        }
        assert_eq!(Share::new(2, 3).of_places(1), 1, "a process that is asked serves one");
        assert_eq!(Share::new(0, 3).of_places(0), 0);
        assert_eq!(Share::new(0, 0), Share::default());
    }
}
