//! Walking over a map that changes.
//!
//! **I1.** The walk fixes a table T that was, at one moment, the root without a successor: then
//! every key that was present was in T, in a line of it or behind.
//! **I2.** A place in T keeps its key for ever, and no key has two. So a key that was present at
//! that moment is met once.
//! **I3.** What a place says about its key is looked up the way every reader does, along the chain
//! from T.
//! **I4.** A walk has a seat of its own, which is inside from before T was loaded until the walk is
//! dropped, and holds everything: it has no quiet point. So T stays, on whatever thread the walk
//! is; a walk that was forgotten holds back what the map leaves.

use super::core::{Core, Stop};
use super::table::Table;
use super::{Word, WordMap};
use crate::reclaim::{Access, QuietHandle};
use std::fmt;
use std::iter::FusedIterator;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// The iterator of [`WordMap::iter`].
///
/// ```
/// fn sent<T: Send>() {}
/// sent::<quintet::word_map::Iter<'_, u64, u64>>();
/// ```
pub struct Iter<'m, K: Word, V: Word> {
    walk: Walk,
    core: &'m Core,
    types: PhantomData<(K, V)>,
}

/// A walk over the words of a map that is there for as long as it lasts.
struct Walk {
    seat: QuietHandle,
    /// The table that is walked; protected by the seat (I4).
    table: Option<NonNull<Table>>,
    slot: usize,
    listed: std::vec::IntoIter<u64>,
}

// SAFETY: the seat and the keys are `Send`. The table is shared with all threads that use the map,
// and is protected by the seat, which goes along (I4).
unsafe impl Send for Walk {}

impl Walk {
    /// # Safety
    /// The core is not dropped before the walk.
    unsafe fn new(core: &Core) -> Self {
        let seat = core.domain.join_quiet();
        let section = seat.section();
        section.hold_all();
        let table = loop {
            match core.settle(&section) {
                Ok(table) => break table.map(NonNull::from),
                Err(Stop::Restart) => {}
                Err(Stop::Alloc(error)) => panic!("WordMap: {error}"),
            }
        };
        drop(section);
        Self { seat, table, slot: 0, listed: Vec::new().into_iter() }
    }

    /// `core` is the one that the walk was made for.
    fn next(&mut self, core: &Core) -> Option<(u64, u64)> {
        // SAFETY: the seat held everything before the table was loaded, and still does (I4); a
        // table that is not retired goes with the core, which is not dropped before the walk.
        let table = unsafe { self.table?.as_ref() };
        while self.slot < table.walked() {
            let index = self.slot;
            self.slot += 1;
            if self.slot == table.walked() {
                self.listed = table.listed_keys().into_iter();
            }
            if let Some((key, value)) = table.entry_at(index) {
                if let Some(value) = value.or_else(|| self.look_up(core, table, key)) {
                    return Some((key, value));
                }
            }
        }
        loop {
            let key = self.listed.next()?;
            if let Some(value) = self.look_up(core, table, key) {
                return Some((key, value));
            }
        }
    }

    /// The present value of a key that has a place in the table (I3).
    fn look_up(&self, core: &Core, table: &Table, key: u64) -> Option<u64> {
        let section = self.seat.section();
        loop {
            if let Ok(value) = core.walk(&section, table, key) {
                return value;
            }
        }
    }
}

impl<'m, K: Word, V: Word> Iter<'m, K, V> {
    pub(super) fn new(map: &'m WordMap<K, V>) -> Self {
        // SAFETY: the map is borrowed for as long as the iterator lives.
        Self { walk: unsafe { Walk::new(&map.core) }, core: &map.core, types: PhantomData }
    }
}

impl<K: Word, V: Word> Iterator for Iter<'_, K, V> {
    type Item = (K, V);

    fn next(&mut self) -> Option<(K, V)> {
        let (key, value) = self.walk.next(self.core)?;
        Some((WordMap::<K, V>::key(key), WordMap::<K, V>::value(value)))
    }
}

/// The iterator of [`WordMap::keys`].
pub struct Keys<'m, K: Word, V: Word>(pub(super) Iter<'m, K, V>);

impl<K: Word, V: Word> Iterator for Keys<'_, K, V> {
    type Item = K;

    fn next(&mut self) -> Option<K> {
        self.0.next().map(|(key, _)| key)
    }
}

/// The iterator of [`WordMap::values`].
pub struct Values<'m, K: Word, V: Word>(pub(super) Iter<'m, K, V>);

impl<K: Word, V: Word> Iterator for Values<'_, K, V> {
    type Item = V;

    fn next(&mut self) -> Option<V> {
        self.0.next().map(|(_, value)| value)
    }
}

/// The iterator of [`WordMap::drain`].
pub struct Drain<'m, K: Word, V: Word> {
    map: &'m WordMap<K, V>,
    keys: Keys<'m, K, V>,
}

impl<'m, K: Word, V: Word> Drain<'m, K, V> {
    pub(super) fn new(map: &'m WordMap<K, V>) -> Self {
        Self { map, keys: map.keys() }
    }
}

impl<K: Word, V: Word> Iterator for Drain<'_, K, V> {
    type Item = (K, V);

    fn next(&mut self) -> Option<(K, V)> {
        loop {
            let key = self.keys.next()?;
            // The value is the one that was removed; a key that somebody else removed is theirs.
            if let Some(value) = self.map.remove(key) {
                return Some((key, value));
            }
        }
    }
}

/// The iterator of a map that is taken apart.
pub struct IntoIter<K: Word, V: Word> {
    /// Before the map: it goes first.
    walk: Walk,
    map: WordMap<K, V>,
}

impl<K: Word, V: Word> IntoIter<K, V> {
    pub(super) fn new(map: WordMap<K, V>) -> Self {
        // SAFETY: the map goes after the walk. Its tables do not move with it.
        Self { walk: unsafe { Walk::new(&map.core) }, map }
    }
}

impl<K: Word, V: Word> Iterator for IntoIter<K, V> {
    type Item = (K, V);

    fn next(&mut self) -> Option<(K, V)> {
        let (key, value) = self.walk.next(&self.map.core)?;
        Some((WordMap::<K, V>::key(key), WordMap::<K, V>::value(value)))
    }
}

/// Each ends for good, and prints a count.
macro_rules! iterators {
    ($($name:ident [$($lifetime:lifetime)?] $this:ident => $label:literal $count:expr;)+) => { $(
        impl<K: Word, V: Word> FusedIterator for $name<$($lifetime,)? K, V> {}

        impl<K: Word, V: Word> fmt::Debug for $name<$($lifetime,)? K, V> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let $this = self;
                f.debug_struct(stringify!($name)).field($label, $count).finish_non_exhaustive()
            }
        }
    )+ };
}
iterators! {
    Iter ['_] iter => "slot" &iter.walk.slot;
    Keys ['_] keys => "slot" &keys.0.walk.slot;
    Values ['_] values => "slot" &values.0.walk.slot;
    Drain ['_] drain => "left" &drain.map.len();
    IntoIter [] all => "len" &all.map.len();
}
