//! Many keys at once: the memory of the later ones is on its way while the first are compared.
//!
//! ```text
//!   a group     hash, hash, hash, ...        and ask for their home lines
//!               look, look, look, ...        at the lines, and ask for the items
//!               compare, compare, ...        and look elsewhere for what was not there
//! ```
//!
//! **B1.** Each lookup is one by itself: what it answers held at its look, which lies between the call and its return.
//! **B2.** One check of the section after all looks of a group stands for one after each: eras only go up, so if the announced one is the era then, it was at
//! every look. No user code runs between the looks and the check.
//! **B3.** What the look at the home line does not settle is looked up like a single key, later: that answer holds later, which no caller can tell.

use super::ItemSet;
use super::at_once::Home;
use super::handle::{Handle, KeyOf};
use super::item::Pointer;
use super::table::{Raw, Table};
use crate::reclaim::Hold;
use crate::sync::MODEL;
use crate::sync::prefetch::prefetch_read;
use std::borrow::Borrow;
use std::hash::BuildHasher;
use std::ptr;

/// Keys whose memory is asked for at once.
const GROUP: usize = if MODEL { 2 } else { 32 };

impl<P: Pointer, S: BuildHasher, A: Hold> Handle<'_, P, S, A> {
    /// Looks up many keys at once: `items[i]` becomes the item of `keys[i]`. Each lookup is linearizable by itself.
    ///
    /// For large sets this is faster than one [`get`](Self::get) after the other: the memory of later keys is fetched while earlier ones are
    /// compared. The references are as those of `get`: they last until the next quiet point, or the end of the guard.
    ///
    /// ```
    /// # use quintet::{ItemSet, item_set::Keyed};
    /// # struct Word(String);
    /// # impl Keyed for Word { type Key = str; fn key(&self) -> &str { &self.0 } }
    /// let set = ItemSet::<Box<Word>>::new();
    /// let mut handle = set.handle();
    /// for word in ["apple", "pear"] {
    ///     handle.put(Word(word.into()));
    /// }
    /// let mut found = [None; 3];
    /// handle.get_many(&["pear", "plum", "apple"], &mut found);
    /// assert_eq!(found.map(|word| word.map(|word| word.0.as_str())), [Some("pear"), None, Some("apple")]);
    /// handle.quiescent();
    /// ```
    ///
    /// Behind the quiet point nothing that was found can be used:
    ///
    /// ```compile_fail
    /// # use quintet::{ItemSet, item_set::Keyed};
    /// # struct Word(String);
    /// # impl Keyed for Word { type Key = str; fn key(&self) -> &str { &self.0 } }
    /// # let set = ItemSet::<Box<Word>>::new();
    /// let mut handle = set.handle();
    /// let mut found = [None];
    /// handle.get_many(&["pear"], &mut found);
    /// handle.quiescent();
    /// assert!(found[0].is_none());
    /// ```
    ///
    /// # Panics
    /// If the slices differ in length. If [`matches`](super::Item::matches) panics, earlier places of `items` may be filled.
    pub fn get_many<'h, Q: Borrow<KeyOf<P>>>(
        &'h self,
        keys: &[Q],
        items: &mut [Option<&'h P::Item>],
    ) {
        assert_eq!(keys.len(), items.len(), "get_many needs one place per key");
        for (keys, items) in keys.chunks(GROUP).zip(items.chunks_mut(GROUP)) {
            self.get_group(keys, items);
        }
    }

    #[inline(always)]
    fn get_group<'h, Q: Borrow<KeyOf<P>>>(&'h self, keys: &[Q], items: &mut [Option<&'h P::Item>]) {
        let mut hashes = [0; GROUP];
        for (hash, key) in hashes.iter_mut().zip(keys) {
            *hash = self.set().hash_of(key.borrow());
        }
        let hashes = &hashes[..keys.len()];
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
        for (((key, &hash), seen), item) in keys.iter().zip(hashes).zip(seen).zip(items) {
            let key = key.borrow();
            let found = match seen {
                Some(raw) if raw.is_null() || ItemSet::<P, S>::matcher(key)(raw) => raw,
                _ => self.find(hash, key),
            };
            *item = self.show(found);
        }
    }
}

impl Table {
    /// The item in the home line that may be the one sought, which the cache is asked for, or null if there is none. `None` says nothing.
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
    fn ask<A: Hold>(
        handle: &Handle<'_, Box<Record>, impl BuildHasher, A>,
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
            let mut handle = set.handle();
            let mut oracle = HashMap::new();
            ask(&handle, &oracle);
            for key in 0..400 {
                assert!(handle.put(record(key, key + 1)).is_none());
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
        (0..KEYS).for_each(|key| assert!(set.pin().put(record(key, key)).is_none()));
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut handle = set.handle();
                for round in 1..200 {
                    (0..KEYS).for_each(|key| {
                        handle.put(record(key, key + KEYS * round));
                        handle.put(record(key + KEYS + KEYS * (round % 8), 0));
                    });
                    for key in KEYS..9 * KEYS {
                        handle.remove(&key);
                    }
                    handle.flush();
                }
                done.store(true, Ordering::Relaxed);
            });
            let keys: Vec<u64> = (0..2 * KEYS).collect();
            let mut handle = set.handle();
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
        let handle = set.handle();
        (0..20).for_each(|key| assert!(handle.put(record(key, key)).is_none()));
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
        fn matches(&self, key: &u64) -> bool {
            assert!(self.0 != 13, "of the user");
            self.0 == *key
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
        let mut handle = set.handle();
        (0..20).for_each(|key| assert!(handle.put(Odd(key)).is_none()));
        let keys: Vec<u64> = (0..20).collect();
        let mut found = vec![None; 20];
        assert!(catch_unwind(AssertUnwindSafe(|| handle.get_many(&keys, &mut found))).is_err());
        assert!(found[..13].iter().zip(0..).all(|(item, key)| item.is_some_and(|i| i.0 == key)));
        handle.get_many(&keys[..13], &mut found[..13]);
        handle.put(Odd(20));
        handle.quiescent();
        assert_eq!(set.len(), 21);
    }

    #[test]
    #[should_panic(expected = "one place per key")]
    fn a_place_for_every_key() {
        let set = ItemSet::<Box<Record>>::new();
        set.pin().get_many(&[1, 2], &mut [None]);
    }

    #[test]
    fn keys_may_be_owned_or_borrowed() {
        let set = ItemSet::<Box<Record>>::new();
        let pin = set.pin();
        pin.put(record(7, 1));
        let mut found = [None; 2];
        pin.get_many(&[&7, &8], &mut found);
        assert_eq!(found.map(|item| item.map(|item| item.value)), [Some(1), None]);
        pin.get_many(&[Box::new(8), Box::new(7)], &mut found);
        assert_eq!(found.map(|item| item.map(|item| item.value)), [None, Some(1)]);
    }
}
