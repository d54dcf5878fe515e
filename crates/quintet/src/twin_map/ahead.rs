//! Asking for an entry's line while the tags are still on their way.
//!
//! A `hashbrown` table is two arrays in one piece of memory: the entries, laid out backwards, and
//! behind them a tag of one byte for each. A get loads the tags around the key's home, then the
//! entry: in a large table two cache misses, the second after the first. But the entry lies at its
//! home or just beyond it, mostly on the home's line, so that line can be asked for together with
//! the tags. Nothing but speed depends on the guess, nor on how the table lays out its memory.

use super::pages::PageAlloc;
use crate::sync::prefetch::{prefetch_read, prefetch_write};
use hashbrown::HashTable;

/// Where the entries of a table lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ahead {
    /// The address behind the entry of index 0; of an empty table, some address that is always
    /// there.
    end: *const (),
}

// SAFETY: an address, which nobody follows.
unsafe impl Send for Ahead {}
// SAFETY: as above.
unsafe impl Sync for Ahead {}

impl Ahead {
    /// Of an empty table.
    pub(super) const fn nothing() -> Self {
        static SOMETHING: [u8; 64] = [0; 64];
        Self { end: SOMETHING.as_ptr_range().end.cast() }
    }

    /// Of a table that may have moved.
    pub(super) fn of<E>(table: &HashTable<E, PageAlloc>) -> Self {
        let Some(index) = table.iter_buckets().next() else { return Self::nothing() };
        table.get_bucket(index).map_or(Self::nothing(), |entry| Self::at(entry, index))
    }

    /// The same where an entry and its index are known.
    #[inline]
    pub(super) fn at<E>(entry: *const E, index: usize) -> Self {
        Self { end: entry.wrapping_add(index + 1).cast() }
    }

    /// Asks for the line on which an entry of this hash most likely lies.
    #[inline(always)]
    pub(super) fn ask<E>(self, hash: u64, table: &HashTable<E, PageAlloc>) {
        prefetch_read(self.home(hash, table));
    }

    /// Asks for the line of an entry that is to be written, and for that of its tag.
    #[inline(always)]
    pub(super) fn ask_to_write<E>(self, hash: u64, table: &HashTable<E, PageAlloc>) {
        let home = home_index(hash, table);
        prefetch_write(self.entry::<E>(home));
        prefetch_read(self.end.wrapping_byte_add(home));
    }

    #[inline(always)]
    fn home<E>(self, hash: u64, table: &HashTable<E, PageAlloc>) -> *const E {
        self.entry(home_index(hash, table))
    }

    #[inline(always)]
    fn entry<E>(self, index: usize) -> *const E {
        self.end.cast::<E>().wrapping_sub(index + 1)
    }
}

#[inline(always)]
fn home_index<E>(hash: u64, table: &HashTable<E, PageAlloc>) -> usize {
    hash as usize & table.num_buckets().wrapping_sub(1)
}

#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
mod tests {
    use super::*;

    /// Should a later `hashbrown` lay out its tables otherwise, this tells that the guess has
    /// become worthless.
    #[test]
    fn an_entry_alone_lies_at_its_home() {
        for hash in [0, 1, 77, 0xfeed_beef_dead_1234, u64::MAX] {
            let mut table = HashTable::with_capacity_in(1000, PageAlloc::default());
            table.insert_unique(hash, [hash; 3], |entry: &[u64; 3]| entry[0]);
            let entry = table.find(hash, |entry| entry[0] == hash).unwrap();
            assert!(std::ptr::addr_eq(Ahead::of(&table).home(hash, &table), entry));
        }
    }
}
