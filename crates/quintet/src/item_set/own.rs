//! Items that are taken out for good: their owner gets them back when nobody can refer to them any
//! more.
//!
//! **V1.** An item is taken out as `remove` takes it, and by one caller. From then on it belongs to
//! the [`TakenOut`]: no path from the root leads to it.
//! **V2.** Until its parting is over, sections that began before may look at it, and so may the
//! owner. What ends it is told by `reclaim::parting`.
//! **V3.** Dropping a [`TakenOut`] retires the item, as `remove` does. Forgetting one leaks the
//! item.

use super::core::Want;
use super::inside::{Inside, KeyOf, expect};
use super::item::Pointer;
use super::{Equivalent, ItemSet};
use crate::reclaim::{Hold, Parting};
use std::hash::{BuildHasher, Hash};
use std::marker::PhantomData;
use std::ops::Deref;

/// An item that was taken out (V1).
pub(crate) struct TakenOut<P: Pointer> {
    parting: Parting,
    owns: PhantomData<P>,
}

// SAFETY: an owner of the item, which any thread may look at and drop: pointers of a set are `Send`
// and `Sync`. The parting is a number, a weak reference and the item's address.
unsafe impl<P: Pointer> Send for TakenOut<P> {}
// SAFETY: as above; shared, it shows the item and nothing else.
unsafe impl<P: Pointer> Sync for TakenOut<P> {}

impl<P: Pointer, S: BuildHasher, A: Hold, H: Deref<Target = ItemSet<P, S>>> Inside<A, H> {
    /// Takes out the item of `key`, for good (V1).
    pub(crate) fn take_out<Q>(&self, key: &Q) -> Option<TakenOut<P>>
    where
        Q: ?Sized + Hash + Equivalent<KeyOf<P>>,
    {
        let same = ItemSet::<P, S>::matcher(key);
        let written = self.write(self.set().hash_of(key), same, Want::Remove, None);
        let outcome = expect(written).0;
        let piece = Self::piece(outcome.before, outcome.taken?);
        // SAFETY: out of both tables, by this writer, which retires it nowhere else.
        let parting = unsafe { self.set().domain().part(piece) };
        Some(TakenOut { parting, owns: PhantomData })
    }
}

impl<P: Pointer> TakenOut<P> {
    /// The item, if nobody can refer to it any more.
    pub(crate) fn finish(self) -> Result<P, Self> {
        match self.parting.finish() {
            // SAFETY: the address that the set got from `into_raw`; handed over once, and nobody
            // refers to it (V2).
            Ok(raw) => Ok(unsafe { P::from_raw(raw) }),
            Err(parting) => Err(Self { parting, owns: PhantomData }),
        }
    }

    /// Whether the calling thread is inside, and would wait for itself.
    pub(crate) fn waits_for_itself(&self) -> bool {
        self.parting.waits_for_itself()
    }
}

impl<P: Pointer> Deref for TakenOut<P> {
    type Target = P::Item;

    fn deref(&self) -> &P::Item {
        // SAFETY: the item's address, which is there until the parting is finished, and that takes
        // it by value; only looked at (V2).
        unsafe { &*self.parting.place().cast::<P::Item>() }
    }
}
