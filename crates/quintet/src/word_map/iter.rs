//! Walking over a map that changes.
//!
//! **I1.** The walk fixes a table T that was, at one moment, the root without a successor: then every key that was present was
//! in T, or in its overflow list.
//! **I2.** A place in T keeps its key for ever, and no key has two. So a key that was present at that moment is met once.
//! **I3.** What a place says about its key is looked up the way every reader does, along the chain from T.

use super::core::Core;
use super::table::Table;
use super::{Handle, Word, WordMap};
use crate::reclaim::{self, Access, Section};
use std::fmt;
use std::iter::FusedIterator;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// The iterator of [`Handle::iter`].
pub struct Iter<'h, K: Word, V: Word> {
    section: Section<'h>,
    /// The table that is walked; protected by the section, which holds everything (I1).
    table: Option<NonNull<Table>>,
    slot: usize,
    listed: std::vec::IntoIter<u64>,
    types: PhantomData<(K, V)>,
}

impl<'h, K: Word, V: Word> Iter<'h, K, V> {
    pub(super) fn new<A: Access>(handle: &'h Handle<'_, K, V, A>) -> Self {
        let core = &handle.map().core;
        let section = handle.access().section();
        section.hold_all();
        let mut table = core.settle(&section);
        while table.is_err() {
            table = core.settle(&section);
        }
        let table = table.ok().flatten().map(NonNull::from);
        let listed = Vec::new().into_iter();
        Self { section, table, slot: 0, listed, types: PhantomData }
    }

    fn next_words(&mut self) -> Option<(u64, u64)> {
        // SAFETY: the section was told to hold everything before the table was loaded, and it still lasts.
        let table = unsafe { self.table?.as_ref() };
        while self.slot < table.shape().slots() {
            let index = self.slot;
            self.slot += 1;
            if self.slot == table.shape().slots() {
                self.listed = table.listed_keys().into_iter();
            }
            if let Some((key, value)) = table.entry_at(index) {
                if let Some(value) = value.or_else(|| self.look_up(table, key)) {
                    return Some((key, value));
                }
            }
        }
        loop {
            let key = self.listed.next()?;
            if let Some(value) = self.look_up(table, key) {
                return Some((key, value));
            }
        }
    }

    /// The present value of a key that has a place in the table (I3).
    fn look_up(&self, table: &Table, key: u64) -> Option<u64> {
        loop {
            if let Ok(value) = Core::walk(&self.section, table, key) {
                return value;
            }
        }
    }
}

impl<K: Word, V: Word> Iterator for Iter<'_, K, V> {
    type Item = (K, V);

    fn next(&mut self) -> Option<(K, V)> {
        let (key, value) = self.next_words()?;
        Some((WordMap::<K, V>::key(key), WordMap::<K, V>::value(value)))
    }
}

impl<K: Word, V: Word> FusedIterator for Iter<'_, K, V> {}

impl<K: Word, V: Word> fmt::Debug for Iter<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Iter").field("slot", &self.slot).finish_non_exhaustive()
    }
}

/// The iterator of [`Handle::drain`].
#[derive(Debug)]
pub struct Drain<'h, K: Word, V: Word, A: Access = reclaim::Handle> {
    handle: &'h Handle<'h, K, V, A>,
    entries: Iter<'h, K, V>,
}

impl<'h, K: Word, V: Word, A: Access> Drain<'h, K, V, A> {
    pub(super) fn new(handle: &'h Handle<'h, K, V, A>) -> Self {
        Self { handle, entries: Iter::new(handle) }
    }
}

impl<K: Word, V: Word, A: Access> Iterator for Drain<'_, K, V, A> {
    type Item = (K, V);

    fn next(&mut self) -> Option<(K, V)> {
        loop {
            let (key, _) = self.entries.next()?;
            // The value is the one that was removed; a key that somebody else removed is theirs.
            if let Some(value) = self.handle.remove(key) {
                return Some((key, value));
            }
        }
    }
}

impl<K: Word, V: Word, A: Access> FusedIterator for Drain<'_, K, V, A> {}
