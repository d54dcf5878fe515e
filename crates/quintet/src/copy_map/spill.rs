//! Entries that find no lane within reach of their home: a list for each shard of a table.
//!
//! Needed where hashes collide: many keys with one hash, or a shard that has much more than its
//! share while the table is far from full.
//!
//! **X1.** The list is written and read under its shard's lock; the mutex around it is never waited
//! for.
//! **X2.** An entry stays in its slot while it is there; a slot that is free is used again. So who
//! reads slot by slot, letting go of the lock in between, meets every entry that is there all the
//! time.
//! **X3.** `count` is 0 only if the list is empty. Who finds 0 finds what was done before the last
//! entry left (Release, Acquire).
//! **X4.** `version` grows with every entry that comes: while it is the same, an absent key is
//! absent.

use super::plain::{Entry, Plain, Shape};
use crate::region::AllocError;
use crate::sync::{AtomicUsize, Mutex, MutexGuard, Ordering};
use std::marker::PhantomData;

/// The list of a shard.
#[derive(Debug)]
pub(super) struct Spill<K, V> {
    count: AtomicUsize,
    list: Mutex<List>,
    types: PhantomData<fn(K, V)>,
}

/// Slots of a hash and an entry each. The hash of a free slot is 0, which none is.
#[derive(Debug, Default)]
struct List {
    words: Vec<u64>,
    version: u64,
}

impl<K: Plain, V: Plain> Spill<K, V> {
    /// Words of a slot.
    const SLOT: usize = 1 + Shape::<K, V>::WORDS;

    pub(super) fn new() -> Self {
        let list = Mutex::new(List::default());
        Self { count: AtomicUsize::new(0), list, types: PhantomData }
    }

    /// Entries in the list.
    pub(super) fn count(&self) -> usize {
        // ORDERING: Acquire: X3; partner: `set_count`.
        self.count.load(Ordering::Acquire)
    }

    fn set_count(&self, count: usize) {
        // ORDERING: Release: X3; partner: `count`.
        self.count.store(count, Ordering::Release);
    }

    fn list(&self) -> MutexGuard<'_, List> {
        self.list.lock()
    }

    pub(super) fn version(&self) -> u64 {
        self.list().version
    }

    pub(super) fn bytes(&self) -> usize {
        self.list().words.capacity() * size_of::<u64>()
    }

    /// Adds an entry.
    pub(super) fn push(&self, hash: u64, entry: &Entry) -> Result<(), AllocError> {
        let mut list = self.list();
        let count = self.count();
        let all = list.words.len() / Self::SLOT;
        let free = (count < all).then(|| (0..all).find(|slot| list.words[slot * Self::SLOT] == 0));
        let at = match free.flatten() {
            Some(slot) => slot * Self::SLOT,
            None => {
                let bytes = Self::SLOT * size_of::<u64>();
                list.words
                    .try_reserve(Self::SLOT)
                    .map_err(|_| AllocError::OutOfMemory { bytes })?;
                let at = list.words.len();
                list.words.resize(at + Self::SLOT, 0);
                at
            }
        };
        list.words[at] = hash;
        list.words[at + 1..at + Self::SLOT].copy_from_slice(&entry[..Shape::<K, V>::WORDS]);
        list.version += 1;
        self.set_count(count + 1);
        Ok(())
    }

    /// Entries from a slot on whose hash `wanted` agrees to, as many as there is place for, with
    /// slot and hash. Returns how many.
    pub(super) fn some(
        &self,
        from: usize,
        wanted: impl Fn(u64) -> bool,
        places: &mut [(usize, u64, Entry)],
    ) -> usize {
        let list = self.list();
        let slots = list.words.chunks_exact(Self::SLOT).enumerate().skip(from);
        let found = slots.filter(|(_, slot)| slot[0] != 0 && wanted(slot[0]));
        let copied = places.iter_mut().zip(found);
        copied.map(|(place, (number, slot))| *place = (number, slot[0], Self::entry(slot))).count()
    }

    fn entry(slot: &[u64]) -> Entry {
        let mut entry = Entry::default();
        entry[..Shape::<K, V>::WORDS].copy_from_slice(&slot[1..]);
        entry
    }

    /// What is in a slot, if it has this hash and the key of this entry.
    pub(super) fn holds(&self, slot: usize, hash: u64, entry: &Entry) -> Option<Entry> {
        let list = self.list();
        let slot = list.words.get(slot * Self::SLOT..(slot + 1) * Self::SLOT)?;
        let found = Self::entry(slot);
        (slot[0] == hash && Shape::<K, V>::same_key(&found, entry)).then_some(found)
    }

    /// Replaces what is in a slot by an entry with the same key.
    pub(super) fn overwrite(&self, slot: usize, entry: &Entry) {
        let at = slot * Self::SLOT;
        self.list().words[at + 1..at + Self::SLOT].copy_from_slice(&entry[..Self::SLOT - 1]);
    }

    /// Takes out what is in a slot. A list that is empty gives its memory back.
    pub(super) fn clear(&self, slot: usize) {
        let mut list = self.list();
        let count = self.count() - 1;
        list.words[slot * Self::SLOT] = 0;
        if count == 0 {
            list.words = Vec::new();
        }
        self.set_count(count);
    }
}

#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
mod tests {
    use super::*;

    type Pairs = Shape<u64, u64>;

    #[test]
    fn entries_stay_in_their_slots() {
        let spill = Spill::<u64, u64>::new();
        (0..10).for_each(|key| spill.push(key + 1, &Pairs::pack(key, key)).unwrap());
        let version = spill.version();
        spill.clear(3);
        assert!(spill.holds(3, 4, &Pairs::pack(3, 0)).is_none());
        assert!(spill.holds(4, 5, &Pairs::pack(4, 0)).is_some());
        assert!(spill.holds(4, 6, &Pairs::pack(4, 0)).is_none() && spill.count() == 9);
        assert_eq!((spill.version(), spill.holds(99, 1, &[0; 6])), (version, None));
        spill.push(77, &Pairs::pack(7, 1)).unwrap();
        let next = |from, wanted: &dyn Fn(u64) -> bool| {
            let mut one = [(0, 0, Entry::default())];
            (spill.some(from, wanted, &mut one) == 1).then_some((one[0].0, one[0].2))
        };
        assert_eq!(next(0, &|hash| hash == 77).map(|found| found.0), Some(3));
        assert!(spill.version() > version);
        spill.overwrite(3, &Pairs::pack(7, 2));
        assert_eq!(next(2, &|_| true).map(|found| found.1), Some(Pairs::pack(2, 2)));
        assert_eq!(next(3, &|_| true).map(|found| found.1), Some(Pairs::pack(7, 2)));
        (0..10).for_each(|slot| spill.clear(slot));
        assert_eq!((spill.count(), spill.bytes(), next(0, &|_| true)), (0, 0, None));
    }
}
