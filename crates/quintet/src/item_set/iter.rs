//! Walking over a set that changes.
//!
//! **I1.** The walk fixes a table S that was, at one moment, the root without a prev: every item that was there is in a slot of S.
//! **I2.** An item that stays keeps its slot, and a replacement takes over the slot of its key. So what is there throughout is met once.
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
    slot: usize,
    /// The last slot, if it is fixed.
    end: Option<usize>,
    items: PhantomData<&'h P::Item>,
}

impl<P: Pointer> Iter<'_, P> {
    pub(super) fn new(core: &Core, visit: &Visit<'_>, exact: bool) -> Self {
        visit.hold_all();
        // Ending a migration needs memory only if its new table turned out too small (G7).
        let table = core.settle(visit).unwrap_or_else(|error| panic!("ItemSet: {error}"));
        let end = exact.then(|| table.map_or(0, Table::used));
        Self { table: table.map(NonNull::from), slot: 0, end, items: PhantomData }
    }
}

impl<'h, P: Pointer> Iterator for Iter<'h, P> {
    type Item = &'h P::Item;

    fn next(&mut self) -> Option<&'h P::Item> {
        // SAFETY: I3.
        let table = unsafe { self.table?.as_ref() };
        while self.slot < self.end.unwrap_or_else(|| table.used()) {
            self.slot += 1;
            let item = table.item_at(self.slot).cast::<P::Item>();
            // SAFETY: I3; a slot holds an item of `P` or null.
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
        f.debug_struct("Iter").field("slot", &self.slot).finish_non_exhaustive()
    }
}
