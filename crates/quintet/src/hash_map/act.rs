//! Read, think, write, for entries: what the operations of a map are made of, inside a section of
//! its set.
//!
//! ```text
//!   find the entry ──▶ closures, no lock ──▶ box a new entry ──▶ lock, the same pointer?  yes: swap, add or take out
//!        ▲                                                              no: key and value come back ──┐
//!        └────────────────────────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! **X1.** No user code but `Hash` and `Eq` of keys runs under a lock: closures, `Clone`, `ToKey`
//! run between the look and the write, on an entry that the section protects.
//! **X2.** An answer takes effect at the moment of the write, on the entry that the closure was
//! shown, or not at all: the set compares the pointer under the lock (`modify` U2 of the set).
//! **X3.** What was boxed and not stored comes back whole: the key for the next attempt, the value
//! to who made it. So a given key or value is moved, never cloned, however often others come
//! between.
//! **X4.** An entry's key is one that `Eq` calls equal to the key of the entry it replaces: the
//! very key that was asked for, or a clone. One that lies about that loses its entry, and nothing
//! worse.

use super::pair::{Key, Name, Pair, Value};
use crate::item_set::{Inside, ItemSet};
use crate::reclaim::Hold;
use crate::region::AllocError;
use crate::vocabulary::{Compute, Computed, Rejected};
use std::hash::BuildHasher;
use std::ops::Deref;

impl<K, V, S, A, H> Inside<A, H>
where
    K: Key,
    V: Value,
    S: BuildHasher,
    A: Hold,
    H: Deref<Target = ItemSet<Box<Pair<K, V>>, S>>,
{
    /// Shows `decide` what is there, and does what it says. Its second argument is the value of its
    /// last answer, which came too late.
    pub(super) fn decide(
        &self,
        mut name: impl Name<K>,
        mut decide: impl FnMut(Option<&V>, Option<V>) -> Compute<V>,
    ) -> Result<Computed<&Pair<K, V>>, AllocError> {
        let hash = self.set().hash_of(name.asked());
        let mut late = None;
        loop {
            let before = self.look_for(hash, name.asked());
            let after = match (decide(before.map(|pair| &pair.value), late.take()), before) {
                (Compute::Keep, _) => before,
                (Compute::Remove, None) => None,
                (Compute::Remove, Some(seen)) => {
                    if !self.take(hash, seen) {
                        continue;
                    }
                    None
                }
                (Compute::Insert(value), _) => match self.store(hash, &mut name, before, value)? {
                    Ok(placed) => Some(placed),
                    Err(value) => {
                        late = Some(value);
                        continue;
                    }
                },
            };
            return Ok(Computed { before, after });
        }
    }

    /// Replaces what is there, if something is, by what `change` makes of it, if anything.
    pub(super) fn revise(
        &self,
        name: impl Name<K>,
        mut change: impl FnMut(&V) -> Option<V>,
    ) -> Result<Option<&Pair<K, V>>, AllocError> {
        let done = self.decide(name, |found, _| {
            found.and_then(&mut change).map_or(Compute::Keep, Compute::Insert)
        })?;
        Ok(done.after)
    }

    /// What is there after `change`, which may leave it as it is; what `make` returns, if nothing
    /// is there.
    pub(super) fn upsert(
        &self,
        mut name: impl Name<K>,
        mut change: impl FnMut(&V) -> Option<V>,
        make: impl FnOnce(&K) -> V,
    ) -> Result<&Pair<K, V>, AllocError> {
        let hash = self.set().hash_of(name.asked());
        let (mut make, mut made) = (Some(make), None);
        loop {
            if let Some(seen) = self.look_for(hash, name.asked()) {
                let Some(value) = change(&seen.value) else { return Ok(seen) };
                if let Ok(placed) = self.store(hash, &mut name, Some(seen), value)? {
                    return Ok(placed);
                }
                continue;
            }
            let value = match (made.take(), make.take()) {
                (Some(value), _) => value,
                (None, Some(make)) => {
                    let key = name.take(None);
                    let value = make(&key);
                    name.give_back(key);
                    value
                }
                (None, None) => unreachable!("made once, and handed back since"),
            };
            match self.store(hash, &mut name, None, value)? {
                Ok(placed) => return Ok(placed),
                Err(value) => made = Some(value),
            }
        }
    }

    /// Stores a value in the place of what was seen, or where nothing was; hands it back if that
    /// has changed (X2, X3).
    fn store(
        &self,
        hash: u32,
        name: &mut impl Name<K>,
        seen: Option<&Pair<K, V>>,
        value: V,
    ) -> Result<Result<&Pair<K, V>, V>, AllocError> {
        let key = name.take(seen.map(|seen| &seen.key));
        let pair = self.boxed(Pair { key, value });
        let stored = match seen {
            Some(seen) => self.swap(hash, seen, pair)?.map(|swapped| swapped.after),
            None => self.add_item(hash, pair)?,
        };
        Ok(stored.map_err(|back| {
            let Pair { key, value } = *back;
            name.give_back(key);
            value
        }))
    }

    /// What is there, or what is made. Nothing is boxed where something is there.
    #[inline]
    pub(super) fn get_or_make(
        &self,
        name: impl Name<K>,
        make: impl FnOnce(&K) -> V,
    ) -> Result<&Pair<K, V>, AllocError> {
        let hash = self.set().hash_of(name.asked());
        match self.show(self.find(hash, name.asked())) {
            Some(found) => Ok(found),
            None => self.make(hash, name, make),
        }
    }

    fn make(
        &self,
        hash: u32,
        mut name: impl Name<K>,
        make: impl FnOnce(&K) -> V,
    ) -> Result<&Pair<K, V>, AllocError> {
        let key = name.take(None);
        let value = make(&key);
        match self.add_item(hash, self.boxed(Pair { key, value }))? {
            Ok(placed) => Ok(placed),
            Err(back) => {
                let Pair { key, value } = *back;
                name.give_back(key);
                self.upsert(name, |_| None, |_| value)
            }
        }
    }

    /// Stores a value, whatever is there, and shows it.
    pub(super) fn put(&self, name: impl Name<K>, value: V) -> Result<&Pair<K, V>, AllocError> {
        let mut value = Some(value);
        let done = self
            .decide(name, |_, late| late.or(value.take()).map_or(Compute::Keep, Compute::Insert))?;
        Ok(done.after.unwrap_or_else(|| unreachable!("stored")))
    }

    /// Stores a key where none is; true if none was. Nothing is boxed where one is.
    #[inline]
    pub(super) fn add_key(&self, key: K) -> Result<bool, AllocError>
    where
        V: Default,
    {
        let hash = self.set().hash_of(&key);
        if !self.find(hash, &key).is_null() {
            return Ok(false);
        }
        Ok(self.add_item(hash, self.boxed(Pair { key, value: V::default() }))?.is_ok())
    }

    /// Stores where nothing is.
    #[allow(clippy::type_complexity)] // one shape for all tables, and an error of memory around it
    pub(super) fn add_new(
        &self,
        key: K,
        value: V,
    ) -> Result<Result<(), Rejected<&Pair<K, V>, Box<Pair<K, V>>>>, AllocError> {
        self.fallible().insert_new(self.boxed(Pair { key, value }))
    }

    /// Stores `new` where `fits` says yes to what is there. Otherwise hands it back.
    #[allow(clippy::type_complexity)] // as above
    pub(super) fn exchange(
        &self,
        name: impl Name<K>,
        fits: impl Fn(&V) -> bool,
        new: V,
    ) -> Result<(Computed<&Pair<K, V>>, Option<V>), AllocError> {
        let mut new = Some(new);
        let done = self.decide(name, |found, late| {
            new = late.or(new.take());
            match found {
                Some(found) if fits(found) => new.take().map_or(Compute::Keep, Compute::Insert),
                _ => Compute::Keep,
            }
        })?;
        Ok((done, new))
    }
}
