//! Pure: the reorder buffer of a prefetcher. Entries are requested and arrive in any order, and
//! leave in the order of their keys.

use std::collections::BTreeMap;
use std::collections::btree_map::{Entry, Iter, IterMut, Values};

#[derive(Debug)]
pub(in crate::sources) enum Fetch<T> {
    /// Not yet decided whether to request it.
    Undecided,
    Waiting {
        retries: u32,
    },
    InFlight {
        retries: u32,
    },
    Ready(T),
    /// Nothing is delivered for this entry.
    Passed,
}

#[derive(Debug)]
pub(in crate::sources) struct Slot<Q, T> {
    /// What the list contained about this entry.
    pub(in crate::sources) known: Q,
    pub(in crate::sources) fetch: Fetch<T>,
}

impl<Q, T> Slot<Q, T> {
    pub(in crate::sources) fn is_waiting(&self) -> bool {
        matches!(self.fetch, Fetch::Waiting { .. })
    }

    fn is_under_way(&self) -> bool {
        matches!(self.fetch, Fetch::InFlight { .. } | Fetch::Ready(_))
    }
}

/// Entries that are not delivered yet, in the order of their keys.
#[derive(Debug)]
pub(in crate::sources) struct ReorderBuffer<K, Q, T> {
    slots: BTreeMap<K, Slot<Q, T>>,
    /// Entries in flight or ready: those that occupy a request or memory.
    under_way: usize,
}

impl<K, Q, T> Default for ReorderBuffer<K, Q, T> {
    fn default() -> Self {
        Self { slots: BTreeMap::new(), under_way: 0 }
    }
}

impl<K: Ord + Copy, Q, T> ReorderBuffer<K, Q, T> {
    pub(in crate::sources) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(in crate::sources) fn under_way(&self) -> usize {
        self.under_way
    }

    pub(in crate::sources) fn has_in_flight(&self) -> bool {
        self.slots.values().any(|slot| matches!(slot.fetch, Fetch::InFlight { .. }))
    }

    pub(in crate::sources) fn iter(&self) -> Iter<'_, K, Slot<Q, T>> {
        self.slots.iter()
    }

    pub(in crate::sources) fn iter_mut(&mut self) -> IterMut<'_, K, Slot<Q, T>> {
        self.slots.iter_mut()
    }

    pub(in crate::sources) fn values(&self) -> Values<'_, K, Slot<Q, T>> {
        self.slots.values()
    }

    pub(in crate::sources) fn get_mut(&mut self, key: &K) -> Option<&mut Slot<Q, T>> {
        self.slots.get_mut(key)
    }

    /// The slot of a key; a new one gets the state that `new` returns.
    pub(in crate::sources) fn insert_with(
        &mut self,
        key: K,
        new: impl FnOnce() -> (Q, Fetch<T>),
    ) -> &mut Slot<Q, T> {
        match self.slots.entry(key) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                let (known, fetch) = new();
                let slot = Slot { known, fetch };
                self.under_way += usize::from(slot.is_under_way());
                entry.insert(slot)
            }
        }
    }

    /// Marks up to `count` waiting entries with equally many retries as in flight, in order, and
    /// returns their keys and that number of retries.
    pub(in crate::sources) fn take_waiting(&mut self, count: usize) -> (Vec<K>, u32) {
        let (mut taken, mut of_retries) = (Vec::new(), None);
        for (key, slot) in &mut self.slots {
            if taken.len() >= count {
                break;
            }
            let Fetch::Waiting { retries } = slot.fetch else { continue };
            if *of_retries.get_or_insert(retries) != retries {
                continue;
            }
            slot.fetch = Fetch::InFlight { retries };
            taken.push(*key);
        }
        self.under_way += taken.len();
        (taken, of_retries.unwrap_or(0))
    }

    pub(in crate::sources) fn put(&mut self, key: &K, result: T) {
        if let Some(slot) = self.slots.get_mut(key)
            && matches!(slot.fetch, Fetch::InFlight { .. })
        {
            slot.fetch = Fetch::Ready(result);
        }
    }

    /// Marks an entry that no endpoint returned as waiting again. Returns its number of retries.
    pub(in crate::sources) fn mark_for_retry(&mut self, key: &K) -> u32 {
        let Some(slot) = self.slots.get_mut(key) else { return 0 };
        let Fetch::InFlight { retries } = slot.fetch else { return 0 };
        slot.fetch = Fetch::Waiting { retries: retries + 1 };
        self.under_way -= 1;
        retries + 1
    }

    /// Marks an entry as waiting again because what is known of it has changed since it was
    /// requested.
    pub(in crate::sources) fn restart_request(&mut self, key: &K) {
        let Some(slot) = self.slots.get_mut(key) else { return };
        self.under_way -= usize::from(slot.is_under_way());
        slot.fetch = Fetch::Waiting { retries: 0 };
    }

    /// Marks an entry in flight for which nothing is delivered.
    pub(in crate::sources) fn pass(&mut self, key: &K) {
        if let Some(slot) = self.slots.get_mut(key)
            && matches!(slot.fetch, Fetch::InFlight { .. })
        {
            slot.fetch = Fetch::Passed;
            self.under_way -= 1;
        }
    }

    pub(in crate::sources) fn pop_ready(&mut self) -> Option<(Q, T)> {
        let first = self.slots.first_entry()?;
        matches!(first.get().fetch, Fetch::Ready(_)).then_some(())?;
        let Slot { known, fetch } = first.remove();
        let Fetch::Ready(result) = fetch else { return None };
        self.under_way -= 1;
        Some((known, result))
    }

    /// Removes and returns all entries before this key, or all entries.
    pub(in crate::sources) fn take_before(&mut self, key: Option<&K>) -> BTreeMap<K, Slot<Q, T>> {
        let rest = key.map(|key| self.slots.split_off(key)).unwrap_or_default();
        let taken = std::mem::replace(&mut self.slots, rest);
        self.under_way -= taken.values().filter(|slot| slot.is_under_way()).count();
        taken
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn buffer(count: u8) -> ReorderBuffer<u8, (), u8> {
        let mut buffer = ReorderBuffer::default();
        for key in 0..count {
            buffer.insert_with(key, || ((), Fetch::Waiting { retries: 0 }));
        }
        buffer
    }

    #[test]
    fn entries_leave_in_order_however_they_arrive() {
        let mut buffer = buffer(3);
        assert_eq!(buffer.take_waiting(2), (vec![0, 1], 0));
        buffer.put(&1, 11);
        assert_eq!(buffer.pop_ready(), None);
        buffer.put(&0, 10);
        assert_eq!((buffer.pop_ready(), buffer.pop_ready()), (Some(((), 10)), Some(((), 11))));
        assert_eq!((buffer.pop_ready(), buffer.under_way(), buffer.len()), (None, 0, 1));
    }

    #[test]
    fn retries_are_requested_apart_from_first_requests() {
        let mut buffer = buffer(3);
        buffer.take_waiting(1);
        assert_eq!(buffer.mark_for_retry(&0), 1);
        assert_eq!(buffer.take_waiting(3), (vec![0], 1));
        assert_eq!(buffer.take_waiting(3), (vec![1, 2], 0));
    }

    proptest! {
        /// What is under way is always the number of entries in flight or ready.
        #[test]
        fn the_depth_is_counted_exactly(
            steps in proptest::collection::vec((0_u8..7, 0_u8..20), 0..60),
        ) {
            let mut buffer = buffer(20);
            for (what, key) in steps {
                match what {
                    0 => drop(buffer.take_waiting(usize::from(key % 4))),
                    1 => buffer.put(&key, key),
                    2 => drop(buffer.mark_for_retry(&key)),
                    3 => buffer.pass(&key),
                    4 => drop(buffer.pop_ready()),
                    5 => buffer.restart_request(&key),
                    _ => drop(buffer.take_before(Some(&(key / 8)))),
                }
                let counts = |slot: &&Slot<(), u8>| {
                    matches!(slot.fetch, Fetch::InFlight { .. } | Fetch::Ready(_))
                };
                prop_assert_eq!(buffer.under_way(), buffer.values().filter(counts).count());
            }
        }
    }
}
