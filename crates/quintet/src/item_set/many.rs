//! Many keys at once: the memory of the later ones is on its way while the first are compared.
//!
//! ```text
//!   a group     hash, hash, hash, ...        and ask for their home lines
//!               look, look, look, ...        at the lines, and ask for the items
//!               compare, compare, ...        and look elsewhere for what was not there
//! ```
//!
//! **B1.** Each lookup is one by itself: what it answers held at its look, which lies between the
//! call and its return.
//! **B2.** One check of the section after all looks of a group stands for one after each: eras only
//! go up, so if the announced one is the era then, it was at every look. No user code runs between
//! the looks and the check.
//! **B3.** What the look at the home line does not settle is looked up like a single key, later:
//! that answer holds later, which no caller can tell.

use super::at_once::Home;
use super::core::Want;
use super::inside::{Inside, KeyOf};
use super::item::Pointer;
use super::table::{Raw, Table};
use super::{Equivalent, ItemSet};
use crate::reclaim::Hold;
use crate::region::AllocError;
use crate::sync::MODEL;
use crate::sync::prefetch::prefetch_read;
use crate::vocabulary::Fallible;
use std::hash::{BuildHasher, Hash};
use std::ops::Deref;
use std::ptr;

/// Keys whose memory is asked for at once.
const GROUP: usize = if MODEL { 2 } else { 32 };

/// What many operations do with each other in mind.
impl<P: Pointer, S: BuildHasher, A: Hold, H: Deref<Target = ItemSet<P, S>>> Inside<A, H> {
    /// [`ItemSet::get_many`]. The references are as those of [`get`](Self::get): they last until
    /// the next quiet point, or the end of the guard.
    ///
    /// ```
    /// # use quintet::ItemSet;
    /// let set = ItemSet::<Box<String>>::from(["apple", "pear"].map(String::from));
    /// let mut handle = set.quiet_handle();
    /// let mut found = [None; 3];
    /// handle.get_many(["pear", "plum", "apple"], &mut found);
    /// assert_eq!(found.map(|word| word.map(String::as_str)), [Some("pear"), None, Some("apple")]);
    /// handle.quiescent();
    /// ```
    ///
    /// Behind the quiet point nothing that was found can be used:
    ///
    /// ```compile_fail
    /// # use quintet::ItemSet;
    /// # let set = ItemSet::<Box<String>>::new();
    /// let mut handle = set.quiet_handle();
    /// let mut found = [None];
    /// handle.get_many(["pear"], &mut found);
    /// handle.quiescent();
    /// assert!(found[0].is_none());
    /// ```
    pub fn get_many<'h, 'k, Q, K>(&'h self, keys: K, items: &mut [Option<&'h P::Item>])
    where
        Q: ?Sized + Hash + Equivalent<KeyOf<P>> + 'k,
        K: IntoIterator<Item = &'k Q, IntoIter: ExactSizeIterator + Clone>,
    {
        self.find_each(keys.into_iter(), items, |item| item);
    }

    /// Looks up many keys, and shows what was found of each, or nothing, in the order of the keys.
    pub(crate) fn find_each<'h, 'k, Q, R>(
        &'h self,
        keys: impl ExactSizeIterator<Item = &'k Q> + Clone,
        places: &mut [R],
        show: impl Fn(Option<&'h P::Item>) -> R,
    ) where
        P::Item: 'h,
        Q: ?Sized + Hash + Equivalent<KeyOf<P>> + 'k,
    {
        self.find_many(keys, places, |raw| show(self.show(raw)));
    }

    /// [`ItemSet::contains_many`].
    pub fn contains_many<'k, Q, K>(&self, keys: K, found: &mut [bool])
    where
        Q: ?Sized + Hash + Equivalent<KeyOf<P>> + 'k,
        K: IntoIterator<Item = &'k Q, IntoIter: ExactSizeIterator + Clone>,
    {
        self.find_many(keys.into_iter(), found, |raw| !raw.is_null());
    }

    /// [`ItemSet::remove_many`].
    pub fn remove_many<'k, Q>(&self, keys: impl IntoIterator<Item = &'k Q>) -> usize
    where
        Q: ?Sized + Hash + Equivalent<KeyOf<P>> + 'k,
    {
        let mut keys = keys.into_iter().fuse();
        let mut removed = 0;
        loop {
            let group: [Option<(u32, &Q)>; GROUP] =
                self.come(&mut keys, |key| self.set().hash_of(*key));
            if group[0].is_none() {
                return removed;
            }
            for (hash, key) in group.into_iter().flatten() {
                removed += usize::from(self.remove_known(hash, key).is_some());
            }
        }
    }

    /// The next group of an iterator, each with its hash, whose memory is asked for.
    #[inline(always)]
    fn come<T>(
        &self,
        rest: &mut impl Iterator<Item = T>,
        hash: impl Fn(&T) -> u32,
    ) -> [Option<(u32, T)>; GROUP] {
        let group = std::array::from_fn(|_| rest.next().map(|one| (hash(&one), one)));
        self.expect_to_write(group.iter().flatten().map(|(hash, _)| *hash));
        group
    }

    /// Asks the cache for the lines of some hashes and their marks, and then for the items that
    /// they have.
    #[inline(always)]
    fn expect_to_write(&self, hashes: impl Iterator<Item = u32> + Clone) {
        let asked = self.at_hand(|table| {
            hashes.clone().for_each(|hash| table.row(table.home(hash)).prefetch_to_write());
            hashes.clone().for_each(|hash| {
                let _ = table.glimpse(hash);
            });
            Some(())
        });
        if asked.is_none() {
            hashes.for_each(|hash| self.prefetch(hash));
        }
    }

    /// Looks up many keys, and shows what was found of each, or null, in the order of the keys.
    #[inline(always)]
    pub(super) fn find_many<'k, Q, R>(
        &self,
        mut keys: impl ExactSizeIterator<Item = &'k Q> + Clone,
        places: &mut [R],
        show: impl Fn(*mut ()) -> R,
    ) where
        Q: ?Sized + Hash + Equivalent<KeyOf<P>> + 'k,
    {
        assert_eq!(keys.len(), places.len(), "ItemSet: many keys need one place each");
        for places in places.chunks_mut(GROUP) {
            self.find_group(&mut keys, places, &show);
        }
    }

    #[inline(always)]
    fn find_group<'k, Q, R>(
        &self,
        keys: &mut (impl Iterator<Item = &'k Q> + Clone),
        places: &mut [R],
        show: impl Fn(*mut ()) -> R,
    ) where
        Q: ?Sized + Hash + Equivalent<KeyOf<P>> + 'k,
    {
        let mut hashes = [0; GROUP];
        let hashes = &mut hashes[..places.len()];
        let again = keys.clone();
        for (hash, key) in hashes.iter_mut().zip(keys) {
            *hash = self.set().hash_of(key);
        }
        let hashes = &*hashes;
        let mut seen = [None; GROUP];
        let looked = self.at_hand(|table| {
            hashes.iter().for_each(|&hash| table.prefetch(hash));
            for (seen, &hash) in seen.iter_mut().zip(hashes) {
                *seen = table.glimpse(hash);
            }
            self.peek().check().then_some(())
        });
        if looked.is_none() {
            seen = [None; GROUP];
            hashes.iter().for_each(|&hash| self.prefetch(hash));
        }
        for (((place, &hash), seen), key) in places.iter_mut().zip(hashes).zip(seen).zip(again) {
            let found = match seen {
                Some(raw) if raw.is_null() || ItemSet::<P, S>::matcher(key)(raw) => raw,
                _ => self.find(hash, key),
            };
            *place = show(found);
        }
    }
}

impl<P: Pointer, S: BuildHasher, A: Hold, H: Deref<Target = ItemSet<P, S>>>
    Fallible<'_, Inside<A, H>>
{
    /// [`ItemSet::insert_many`]. What came before the error is stored; the rest of its group is
    /// dropped.
    pub fn insert_many<I: Into<P>>(
        self,
        items: impl IntoIterator<Item = I>,
    ) -> Result<usize, AllocError> {
        let mut items = items.into_iter().map(I::into).fuse();
        let mut new = 0;
        loop {
            let hash = |item: &P| self.0.set().hash_of_item(item.as_item());
            let group: [Option<(u32, P)>; GROUP] = self.0.come(&mut items, hash);
            if group[0].is_none() {
                return Ok(new);
            }
            for (hash, item) in group.into_iter().flatten() {
                let (outcome, _) = self.0.write_hashed(hash, Want::Put, item)?;
                new += usize::from(self.0.retire_taken(outcome).is_none());
            }
        }
    }
}

impl Table {
    /// The item in the home line that may be the one sought, which the cache is asked for, or null
    /// if there is none. `None` says nothing.
    #[inline(always)]
    fn glimpse(&self, hash: u32) -> Option<Raw> {
        match self.look_home(hash) {
            Home::Item(found) => {
                prefetch_read(found.item);
                Some(found.item)
            }
            Home::Absent => Some(ptr::null_mut()),
            Home::Unknown => None,
        }
    }
}

#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
mod tests {
    use super::super::tests::{Record, record};
    use super::*;
    use crate::item_set::Item;
    use crate::sync::{AtomicBool, Ordering};
    use std::collections::HashMap;
    use std::hash::Hasher;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    /// Asks for all keys, missing ones and doubles among them, in groups of every length.
    fn ask<S: BuildHasher, A: Hold, H: Deref<Target = ItemSet<Box<Record>, S>>>(
        handle: &Inside<A, H>,
        oracle: &HashMap<u64, u64>,
    ) {
        let keys: Vec<u64> = (0..600).map(|step| step * 7 % 500).collect();
        for part in [&keys[..], &keys[..1], &keys[..GROUP], &keys[..GROUP + 1], &[]] {
            let mut found = vec![None; part.len()];
            handle.get_many(part, &mut found);
            let expected = part.iter().map(|key| oracle.get(key).map(|value| (*key, *value)));
            let found = found.into_iter().map(|item| item.map(|item| (item.key, item.value)));
            assert!(found.eq(expected));
        }
    }

    /// In an empty set, in a table that fills up, between two tables, and among emptied places.
    #[test]
    fn many_lookups_are_many_single_ones() {
        for shards in [1, 8] {
            let set = ItemSet::<Box<Record>>::builder().shards(shards).seed(3).build();
            let mut handle = set.quiet_handle();
            let mut oracle = HashMap::new();
            ask(&handle, &oracle);
            for key in 0..400 {
                assert!(handle.insert(record(key, key + 1)).is_none());
                oracle.insert(key, key + 1);
                if key % 20 == 0 {
                    handle.quiescent();
                    ask(&handle, &oracle);
                    ask(&set.pin(), &oracle);
                }
            }
            handle.visit(|visit| {
                set.core.settle(visit).unwrap();
                set.core.start_for_test(visit, 12);
            });
            for key in 0..400 {
                ask(&handle, &oracle);
                handle.remove(&key);
                oracle.remove(&key);
            }
            ask(&handle, &oracle);
            assert!(set.is_empty());
        }
    }

    /// What is there throughout is found, whatever others do meanwhile, and belongs to its key.
    #[test]
    fn many_lookups_miss_nothing_while_the_set_moves_on() {
        const KEYS: u64 = 300;
        let set = ItemSet::<Box<Record>>::builder().shards(4).build();
        (0..KEYS).for_each(|key| assert!(set.pin().insert(record(key, key)).is_none()));
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut handle = set.quiet_handle();
                for round in 1..200 {
                    (0..KEYS).for_each(|key| {
                        handle.insert(record(key, key + KEYS * round));
                        handle.insert(record(key + KEYS + KEYS * (round % 8), 0));
                    });
                    for key in KEYS..9 * KEYS {
                        handle.remove(&key);
                    }
                    handle.flush();
                }
                done.store(true, Ordering::Relaxed);
            });
            let keys: Vec<u64> = (0..2 * KEYS).collect();
            let mut handle = set.quiet_handle();
            while !done.load(Ordering::Relaxed) {
                let mut found = vec![None; keys.len()];
                handle.get_many(&keys, &mut found);
                for (key, item) in keys[..KEYS as usize].iter().zip(&found) {
                    let item = item.expect("there throughout");
                    assert_eq!((item.key, item.value % KEYS), (*key, *key));
                }
                handle.quiescent();
            }
        });
    }

    /// All keys have one hash.
    #[derive(Default)]
    struct Same;

    impl Hasher for Same {
        fn finish(&self) -> u64 {
            7
        }
        fn write(&mut self, _: &[u8]) {}
    }

    /// The first item with the tag is another's, and most are displaced from their home line.
    #[test]
    fn many_lookups_go_on_where_the_home_line_does_not_tell() {
        let hasher = std::hash::BuildHasherDefault::<Same>::default();
        let set = ItemSet::<Box<Record>>::builder().hasher(hasher).build();
        let handle = set.quiet_handle();
        (0..20).for_each(|key| assert!(handle.insert(record(key, key)).is_none()));
        let keys: [u64; 21] = std::array::from_fn(|key| key as u64);
        for first in [0, 1] {
            let mut found = [None; 21];
            handle.get_many(&keys, &mut found);
            let found = found.map(|item| item.map(|item| item.key));
            assert_eq!(found, keys.map(|key| (first..20).contains(&key).then_some(key)));
            handle.remove(&0);
        }
    }

    /// Panics when one of its items is compared.
    struct Odd(u64);

    impl Item for Odd {
        type Key = u64;
        fn matches<Q: ?Sized + Equivalent<u64>>(&self, key: &Q) -> bool {
            assert!(self.0 != 13, "of the user");
            key.equivalent(&self.0)
        }
        fn same_key(&self, other: &Self) -> bool {
            self.0 == other.0
        }
        fn hash_key<H: Hasher>(&self, state: &mut H) {
            std::hash::Hash::hash(&self.0, state);
        }
    }

    #[test]
    fn a_panic_of_user_code_ends_many_lookups_and_nothing_else() {
        let set = ItemSet::<Box<Odd>>::new();
        let mut handle = set.quiet_handle();
        (0..20).for_each(|key| assert!(handle.insert(Odd(key)).is_none()));
        let keys: Vec<u64> = (0..20).collect();
        let mut found = vec![None; 20];
        assert!(catch_unwind(AssertUnwindSafe(|| handle.get_many(&keys, &mut found))).is_err());
        assert!(found[..13].iter().zip(0..).all(|(item, key)| item.is_some_and(|i| i.0 == key)));
        handle.get_many(&keys[..13], &mut found[..13]);
        handle.insert(Odd(20));
        handle.quiescent();
        assert_eq!(set.len(), 21);
    }

    #[test]
    #[should_panic(expected = "one place each")]
    fn a_place_for_every_key() {
        let set = ItemSet::<Box<Record>>::new();
        set.pin().get_many(&[1, 2], &mut [None]);
    }

    #[test]
    fn keys_may_come_from_anywhere() {
        let set = ItemSet::<Box<Record>>::new();
        let pin = set.pin();
        pin.insert(record(7, 1));
        let mut found = [None; 2];
        pin.get_many([&7, &8], &mut found);
        assert_eq!(found.map(|item| item.map(|item| item.value)), [Some(1), None]);
        pin.get_many(&vec![8, 7], &mut found);
        assert_eq!(found.map(|item| item.map(|item| item.value)), [None, Some(1)]);
        let mut there = [false; 2];
        pin.contains_many([Box::new(8), Box::new(7)].each_ref().map(|key| &**key), &mut there);
        assert_eq!(there, [false, true]);
    }
}
