//! What the table itself and its handles lend: a read guard and a pointer.
//!
//! **V1.** A [`Ref`] holds a guard of its own on the place that its pointer leads to: the copy
//! there is not written while it lives (`gate` D3).
//! **V2.** The pointer is no reference: what it leads to may be written as soon as the guard has
//! ended, while the drop of the `Ref` still runs.

use super::gate::{Gate, SeatState};
use super::reader::ReadGuard;
use super::version::Version;
use super::word::Door;
use hashbrown::hash_table;
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::NonNull;

/// A guard that does not know what it guards.
pub(super) struct Hold<'a> {
    gate: &'a Gate,
    seat: &'a SeatState,
    door: Door,
    /// A guard ends on the thread it began on.
    not_send: PhantomData<*const ()>,
}

impl<'a> Hold<'a> {
    /// Takes over a guard that was entered.
    #[inline(always)]
    pub(super) fn new(gate: &'a Gate, seat: &'a SeatState, door: Door) -> Self {
        Self { gate, seat, door, not_send: PhantomData }
    }

    /// One more on the same place.
    fn another(&self) -> Self {
        Self::new(self.gate, self.seat, self.seat.enter_again(self.door))
    }
}

impl Drop for Hold<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.gate.leave(self.seat, self.door);
    }
}

/// A part of one version, lent for as long as this lives: a read guard and a pointer.
///
/// It is no lock: readers and other references come and go. It holds back the copy that it shows,
/// as every read guard does: a write after next waits for it.
#[must_use = "a reference that is dropped at once shows nothing"]
pub struct Ref<'a, U: ?Sized> {
    part: NonNull<U>,
    hold: Hold<'a>,
    lent: PhantomData<&'a U>,
}

impl<'a, U: ?Sized> Ref<'a, U> {
    /// Refers to a part of what this refers to.
    #[inline]
    pub fn map<W: ?Sized>(this: Self, part: impl FnOnce(&U) -> &W) -> Ref<'a, W> {
        let part = NonNull::from(part(&this));
        Ref { part, hold: this.hold, lent: PhantomData }
    }

    /// Refers to a part of what this refers to, if there is one.
    #[inline]
    pub fn filter_map<W: ?Sized>(
        this: Self,
        part: impl FnOnce(&U) -> Option<&W>,
    ) -> Result<Ref<'a, W>, Self> {
        match part(&this).map(NonNull::from) {
            Some(part) => Ok(Ref { part, hold: this.hold, lent: PhantomData }),
            None => Err(this),
        }
    }
}

impl<'a, T> ReadGuard<'a, T> {
    /// Refers to a part of the version.
    ///
    /// ```
    /// use quintet::TwinMap;
    /// use quintet::twin_map::ReadGuard;
    ///
    /// let map = TwinMap::from([("a", vec![1, 2])]);
    /// let last = ReadGuard::map(map.pin(), |version| &version["a"][1]);
    /// assert_eq!(*last, 2);
    /// ```
    #[inline]
    pub fn map<U: ?Sized>(this: Self, part: impl FnOnce(&T) -> &U) -> Ref<'a, U> {
        let part = NonNull::from(part(&this));
        Ref { part, hold: this.into_hold(), lent: PhantomData }
    }

    /// Refers to a part of the version, if there is one.
    #[inline]
    pub fn filter_map<U: ?Sized>(
        this: Self,
        part: impl FnOnce(&T) -> Option<&U>,
    ) -> Result<Ref<'a, U>, Self> {
        match part(&this).map(NonNull::from) {
            Some(part) => Ok(Ref { part, hold: this.into_hold(), lent: PhantomData }),
            None => Err(this),
        }
    }
}

impl<U: ?Sized> Deref for Ref<'_, U> {
    type Target = U;

    #[inline(always)]
    fn deref(&self) -> &U {
        // SAFETY: a part of a copy that is not written while the guard lives (V1); borrowed from
        // the `Ref`, which owns the guard.
        unsafe { self.part.as_ref() }
    }
}

impl<U: ?Sized + std::fmt::Debug> std::fmt::Debug for Ref<'_, U> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        (**self).fmt(out)
    }
}

impl<U: ?Sized + std::fmt::Display> std::fmt::Display for Ref<'_, U> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        (**self).fmt(out)
    }
}

impl<U: ?Sized + PartialEq> PartialEq<U> for Ref<'_, U> {
    fn eq(&self, other: &U) -> bool {
        **self == *other
    }
}

/// All entries of one version, or a part of each: every one is lent as a [`Ref`].
pub struct Refs<'a, E, U> {
    /// Of the version that the guard shows. None for a table that was never written.
    entries: Option<(hash_table::Iter<'a, E>, Hold<'a>)>,
    part: fn(&E) -> &U,
}

impl<'a, E, U> Refs<'a, E, U> {
    /// # Safety
    /// The entries are those of the copy that the guard shows. They are given out with guards of
    /// their own (V1).
    pub(super) unsafe fn new(
        entries: Option<(hash_table::Iter<'a, E>, Hold<'a>)>,
        part: fn(&E) -> &U,
    ) -> Self {
        Self { entries, part }
    }
}

/// The entries of the version that a guard shows, or a part of each.
pub(super) fn refs<'a, T, K, V, S: 'a, U>(
    guard: Option<ReadGuard<'a, T>>,
    version: fn(&T) -> &Version<K, V, S>,
    part: fn(&(K, V)) -> &U,
) -> Refs<'a, (K, V), U> {
    let entries = guard.map(|guard| {
        // SAFETY: the guard stays on its place, as the hold beside the entries.
        let shown = unsafe { guard.unbound() };
        (version(shown).entries(), guard.into_hold())
    });
    // SAFETY: entries and guard are of one version.
    unsafe { Refs::new(entries, part) }
}

impl<'a, E, U: 'a> Iterator for Refs<'a, E, U> {
    type Item = Ref<'a, U>;

    fn next(&mut self) -> Option<Ref<'a, U>> {
        let (entries, hold) = self.entries.as_mut()?;
        let entry = entries.next()?;
        Some(Ref {
            part: NonNull::from((self.part)(entry)),
            hold: hold.another(),
            lent: PhantomData,
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.entries.as_ref().map_or((0, Some(0)), |(entries, _)| entries.size_hint())
    }
}

impl<'a, E, U: 'a> ExactSizeIterator for Refs<'a, E, U> {}
impl<'a, E, U: 'a> std::iter::FusedIterator for Refs<'a, E, U> {}

impl<'a, E, U: 'a> std::fmt::Debug for Refs<'a, E, U> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Refs").field("left", &self.len()).finish()
    }
}
