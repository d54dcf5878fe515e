//! What each operation does, for every way in: the one body of each.
//!
//! **O1.** An operation by the table itself enters and leaves on the calling thread's seat, one by
//! a handle on its own, one by a guard is inside already. Its body is the same.
//! **O2.** Whatever takes something away, or replaces what is there, needs no memory: it cannot
//! fail, and has no fallible form.
//! **O3.** User code runs while no lock is held (`core` C2). What it does to the map is seen as
//! another thread's doing would be: the operation looks again.

use super::CopyMap;
use super::core::Core;
use super::plain::Plain;
use crate::reclaim::Access;
use crate::region::AllocError;
use crate::vocabulary::{Compute, Computed, Rejected};
use equivalent::Equivalent;
use std::hash::{BuildHasher, Hash};

/// A map, and how one is inside of it.
pub(super) struct Way<'m, 's, K, V, S, A> {
    pub(super) map: &'m CopyMap<K, V, S>,
    pub(super) access: &'s A,
}

impl<K, V, S, A> Clone for Way<'_, '_, K, V, S, A> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, V, S, A> Copy for Way<'_, '_, K, V, S, A> {}

/// Keys fetched ahead: enough to keep the memory busy, few enough to stay in the nearest cache.
const GROUP: usize = 32;

/// What an operation returns that panics where its memory cannot be had.
#[inline(always)]
pub(super) fn granted<R>(outcome: Result<R, AllocError>) -> R {
    outcome.unwrap_or_else(|error| refused(error))
}

#[cold]
fn refused(error: AllocError) -> ! {
    panic!("CopyMap: {error}; the operations of `fallible()` return this as a value")
}

/// Makes a value when it is first asked for, and has it from then on.
#[inline(always)]
fn once<V: Copy>(make: impl FnOnce() -> V) -> impl FnMut() -> V {
    let (mut make, mut made) = (Some(make), None);
    move || match make.take() {
        Some(make) => *made.insert(make()),
        None => made.unwrap_or_else(|| unreachable!("nobody asks again after a panic")),
    }
}

/// Hands out items by groups, so that the memory of a group can be fetched ahead.
fn by_groups<T: Copy>(
    items: impl IntoIterator<Item = T>,
    mut work: impl FnMut(&[T]) -> Result<(), AllocError>,
) -> Result<(), AllocError> {
    let mut items = items.into_iter().fuse();
    while let Some(first) = items.next() {
        let (mut group, mut count) = ([first; GROUP], 1);
        // In this order: no item is taken without a place.
        for (place, item) in group[1..].iter_mut().zip(&mut items) {
            *place = item;
            count += 1;
        }
        work(&group[..count])?;
    }
    Ok(())
}

impl<K, V, S, A> Way<'_, '_, K, V, S, A>
where
    K: Plain + Hash + Eq,
    V: Plain,
    S: BuildHasher,
    A: Access,
{
    #[inline(always)]
    fn core(&self) -> &Core<K, V, S> {
        &self.map.core
    }

    /// Changes what a key has; one that may be added.
    #[inline(always)]
    fn change<const BLIND: bool>(
        self,
        key: K,
        decide: impl FnMut(Option<V>) -> Compute<V>,
    ) -> Result<Computed<V>, AllocError> {
        self.change_hashed::<BLIND>(key, self.core().hash(&key), decide)
    }

    #[inline(always)]
    fn change_hashed<const BLIND: bool>(
        self,
        key: K,
        hash: u64,
        decide: impl FnMut(Option<V>) -> Compute<V>,
    ) -> Result<Computed<V>, AllocError> {
        let same = |other: &K| key == *other;
        self.core().change::<BLIND, A>(self.access, hash, Some(key), same, decide)
    }

    /// Changes what a key has that is not added (O2).
    #[inline(always)]
    fn change_there<const BLIND: bool, Q: Hash + Equivalent<K> + ?Sized>(
        self,
        key: &Q,
        hash: u64,
        decide: impl FnMut(Option<V>) -> Compute<V>,
    ) -> Computed<V> {
        let same = |other: &K| key.equivalent(other);
        granted(self.core().change::<BLIND, A>(self.access, hash, None, same, decide))
    }

    #[inline(always)]
    pub(super) fn get<Q: Hash + Equivalent<K> + ?Sized>(self, key: &Q) -> Option<V> {
        self.core().get(self.access, key)
    }

    #[inline(always)]
    pub(super) fn insert(self, key: K, value: V) -> Result<Option<V>, AllocError> {
        let done = self.change::<true>(key, |_| Compute::Insert(value));
        done.map(|done| done.before)
    }

    #[inline(always)]
    pub(super) fn insert_new(
        self,
        key: K,
        value: V,
    ) -> Result<Result<(), Rejected<V, V>>, AllocError> {
        let done = self.change::<true>(key, |found| match found {
            Some(_) => Compute::Keep,
            None => Compute::Insert(value),
        })?;
        Ok(done.before.map_or(Ok(()), |current| Err(Rejected { current, value })))
    }

    #[inline(always)]
    pub(super) fn get_or_insert_with(
        self,
        key: K,
        make: impl FnOnce() -> V,
    ) -> Result<V, AllocError> {
        let mut make = once(make);
        let done = self.change::<true>(key, |found| match found {
            Some(_) => Compute::Keep,
            None => Compute::Insert(make()),
        })?;
        Ok(there(done))
    }

    #[inline(always)]
    pub(super) fn update<Q: Hash + Equivalent<K> + ?Sized>(
        self,
        key: &Q,
        mut next: impl FnMut(V) -> V,
    ) -> Option<V> {
        let done = self.change_there::<false, Q>(key, self.core().hash(key), |found| match found {
            Some(value) => Compute::Insert(next(value)),
            None => Compute::Keep,
        });
        done.after
    }

    #[inline(always)]
    pub(super) fn update_or_insert_with(
        self,
        key: K,
        mut next: impl FnMut(V) -> V,
        make: impl FnOnce() -> V,
    ) -> Result<V, AllocError> {
        let mut make = once(make);
        let done = self.change::<false>(key, |found| {
            Compute::Insert(match found {
                Some(value) => next(value),
                None => make(),
            })
        })?;
        Ok(there(done))
    }

    #[inline(always)]
    pub(super) fn compute(
        self,
        key: K,
        decide: impl FnMut(Option<V>) -> Compute<V>,
    ) -> Result<Computed<V>, AllocError> {
        self.change::<false>(key, decide)
    }

    #[inline(always)]
    pub(super) fn compare_exchange<Q: Hash + Equivalent<K> + ?Sized>(
        self,
        key: &Q,
        current: V,
        value: V,
    ) -> Result<V, Rejected<Option<V>, V>>
    where
        V: PartialEq,
    {
        let mut same = false;
        let done = self.change_there::<false, Q>(key, self.core().hash(key), |found| {
            same = found.is_some_and(|found| found == current);
            if same { Compute::Insert(value) } else { Compute::Keep }
        });
        match done.before {
            Some(before) if same => Ok(before),
            current => Err(Rejected { current, value }),
        }
    }

    #[inline(always)]
    pub(super) fn remove<Q: Hash + Equivalent<K> + ?Sized>(self, key: &Q) -> Option<V> {
        self.remove_hashed(key, self.core().hash(key))
    }

    #[inline(always)]
    fn remove_hashed<Q: Hash + Equivalent<K> + ?Sized>(self, key: &Q, hash: u64) -> Option<V> {
        self.change_there::<true, Q>(key, hash, |_| Compute::Remove).before
    }

    #[inline(always)]
    pub(super) fn remove_if<Q: Hash + Equivalent<K> + ?Sized>(
        self,
        key: &Q,
        mut agree: impl FnMut(V) -> bool,
    ) -> Result<Option<V>, V> {
        let done = self.change_there::<false, Q>(key, self.core().hash(key), |found| match found {
            Some(value) if agree(value) => Compute::Remove,
            _ => Compute::Keep,
        });
        done.after.map_or(Ok(done.before), Err)
    }

    pub(super) fn retain(self, mut keep: impl FnMut(K, V) -> bool) {
        for (key, _) in self.map.iter() {
            let _ = self.remove_if(&key, |value| !keep(key, value));
        }
    }

    pub(super) fn clear(self) {
        self.map.keys().for_each(|key| {
            self.remove(&key);
        });
        self.shrink_to_fit();
    }

    /// Asks the cache for what a group of keys needs. Returns their hashes.
    #[inline(always)]
    fn ahead<T>(self, group: &[T], write: bool, hash: impl Fn(&T) -> u64) -> [u64; GROUP] {
        let mut hashes = [0; GROUP];
        hashes.iter_mut().zip(group).for_each(|(place, item)| *place = hash(item));
        let section = self.access.section();
        self.core().prefetch(&section, &hashes[..group.len().min(GROUP)], write);
        hashes
    }

    /// Looks up a group of keys after the other, each answer given to `tell`.
    #[inline(always)]
    fn each<Q: Hash + Equivalent<K>>(self, keys: &[Q], mut tell: impl FnMut(usize, Option<V>)) {
        for (number, keys) in keys.chunks(GROUP).enumerate() {
            let hashes = self.ahead(keys, false, |key| self.core().hash(key));
            for (index, (key, hash)) in keys.iter().zip(hashes).enumerate() {
                let same = |other: &K| key.equivalent(other);
                tell(number * GROUP + index, self.core().get_hashed(self.access, hash, same));
            }
        }
    }

    pub(super) fn get_many<Q: Hash + Equivalent<K>>(self, keys: &[Q], values: &mut [Option<V>]) {
        assert_eq!(keys.len(), values.len(), "get_many needs one place per key");
        self.each(keys, |index, found| values[index] = found);
    }

    pub(super) fn contains_many<Q: Hash + Equivalent<K>>(self, keys: &[Q], there: &mut [bool]) {
        assert_eq!(keys.len(), there.len(), "contains_many needs one place per key");
        self.each(keys, |index, found| there[index] = found.is_some());
    }

    pub(super) fn insert_many(
        self,
        entries: impl IntoIterator<Item = (K, V)>,
    ) -> Result<usize, AllocError> {
        let mut new = 0;
        by_groups(entries, |group| {
            let hashes = self.ahead(group, true, |(key, _)| self.core().hash(key));
            for (&(key, value), hash) in group.iter().zip(hashes) {
                let put = self.change_hashed::<true>(key, hash, |_| Compute::Insert(value))?;
                new += usize::from(put.before.is_none());
            }
            Ok(())
        })?;
        Ok(new)
    }

    pub(super) fn remove_many(self, keys: impl IntoIterator<Item = K>) -> usize {
        let mut there = 0;
        let removed = by_groups(keys, |group| {
            let hashes = self.ahead(group, true, |key| self.core().hash(key));
            let removed = |(key, hash): &(&K, u64)| self.remove_hashed(*key, *hash).is_some();
            there += group.iter().zip(hashes).filter(removed).count();
            Ok(())
        });
        granted(removed); // (O2)
        there
    }

    pub(super) fn try_reserve(self, additional: usize) -> Result<(), AllocError> {
        let core = self.core();
        let entries = core.len().checked_add(additional).ok_or(AllocError::CapacityOverflow)?;
        core.grow_for(&self.access.section(), entries)
    }

    pub(super) fn shrink_to_fit(self) {
        // Without the memory for a smaller table it stays where it is.
        let _ = self.core().shrink(&self.access.section());
        self.access.release();
    }
}

/// What a key has for whom something was kept or stored.
#[inline(always)]
fn there<V>(done: Computed<V>) -> V {
    done.after.unwrap_or_else(|| unreachable!("kept or stored"))
}
