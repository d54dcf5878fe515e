//! Walking over a set that changes.
//!
//! **I1.** The walk fixes a table S that was, at one moment, the root without a prev: every item that was there is in a place of S.
//! **I2.** An item that stays keeps its place, and a replacement takes over the place of its key; a place has one slot. So what is there
//! throughout is met once.
//! **I3.** The section holds everything from before the root was loaded (R2): no load needs a check.

use super::core::Core;
use super::item::Pointer;
use super::table::Table;
use crate::reclaim::Visit;
use std::fmt;
use std::iter::FusedIterator;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// The iterator of [`Handle::iter`](super::Handle::iter) and [`Handle::iter_exact`](super::Handle::iter_exact).
pub struct Iter<'h, P: Pointer> {
    /// Protected by the section of the handle that is borrowed (I3).
    table: Option<NonNull<Table>>,
    /// Steps made: slots of an ordered table, else places.
    step: usize,
    /// The last step, if it is fixed.
    end: Option<usize>,
    items: PhantomData<&'h P::Item>,
}

impl<P: Pointer> Iter<'_, P> {
    pub(super) fn new(core: &Core, visit: &Visit<'_>, exact: bool) -> Self {
        visit.hold_all();
        // Ending a migration needs memory only if its new table turned out too small (G7).
        let table = core.settle(visit).unwrap_or_else(|error| panic!("ItemSet: {error}"));
        let end = exact.then(|| table.map_or(0, Table::end_of_walk));
        Self { table: table.map(NonNull::from), step: 0, end, items: PhantomData }
    }
}

impl<'h, P: Pointer> Iterator for Iter<'h, P> {
    type Item = &'h P::Item;

    fn next(&mut self) -> Option<&'h P::Item> {
        // SAFETY: I3.
        let table = unsafe { self.table?.as_ref() };
        while self.step < self.end.unwrap_or_else(|| table.end_of_walk()) {
            self.step += 1;
            let item = table.walk_at(self.step).cast::<P::Item>();
            // SAFETY: I3; a place holds an item of `P` or null.
            if let Some(item) = unsafe { item.as_ref() } {
                return Some(item);
            }
        }
        None
    }
}

impl<P: Pointer> FusedIterator for Iter<'_, P> {}

impl<P: Pointer> fmt::Debug for Iter<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Iter").field("step", &self.step).finish_non_exhaustive()
    }
}
