//! What each operation does, for every way in: the one body of each.
//!
//! **B1.** An operation by the table itself enters and leaves on the calling thread's seat, one by
//! a handle on its own, one by a guard is inside already. Its body is the same: it takes an
//! [`Access`] and begins as `access` H1 says.
//! **B2.** Whatever takes something away, or replaces what is there, needs no memory: it cannot
//! fail, and has no fallible form.
//! **B3.** Closures and iterators of the user run between an operation's look and its exchange, or
//! between operations. What they do to the map is seen as another thread's doing would be: the
//! exchange fails, and the operation looks again.

use super::table::load;
use super::{Integer, Word, WordMap};
use crate::migrate::capacity_for;
use crate::reclaim::Access;
use crate::region::AllocError;
use crate::vocabulary::{Compute, Computed, Rejected};

/// A map, and how one is inside of it.
pub(super) struct Way<'m, 's, K: Word, V: Word, A> {
    pub(super) map: &'m WordMap<K, V>,
    pub(super) access: &'s A,
}

impl<K: Word, V: Word, A> Clone for Way<'_, '_, K, V, A> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<K: Word, V: Word, A> Copy for Way<'_, '_, K, V, A> {}

/// Keys fetched ahead: enough to keep the memory busy, few enough to stay in the nearest cache.
const GROUP: usize = 32;

/// How an operation says that its table cannot be had.
///
/// It is known inside of the operation, not put around it: the cold halves of an operation end in
/// what it returns (see `Core::apply`).
pub(super) trait Face {
    type Of<T>;
    fn show<T>(outcome: Result<T, AllocError>) -> Self::Of<T>;
}

/// By a panic.
pub(super) struct Granted;

/// By an error.
pub(super) struct Tried;

impl Face for Granted {
    type Of<T> = T;
    #[inline(always)]
    fn show<T>(outcome: Result<T, AllocError>) -> T {
        granted(outcome)
    }
}

impl Face for Tried {
    type Of<T> = Result<T, AllocError>;
    #[inline(always)]
    fn show<T>(outcome: Result<T, AllocError>) -> Result<T, AllocError> {
        outcome
    }
}

/// What an operation returns that panics where its table cannot be had.
#[inline(always)]
pub(super) fn granted<R>(outcome: Result<R, AllocError>) -> R {
    outcome.unwrap_or_else(|error| refused(error))
}

#[cold]
fn refused(error: AllocError) -> ! {
    panic!("WordMap: {error}; the operations of `fallible()` return this as a value")
}

/// Makes a value when it is first asked for, and has it from then on.
#[inline(always)]
fn once<V: Copy>(make: impl FnOnce() -> V) -> impl FnMut() -> V {
    let (mut make, mut made) = (Some(make), None);
    move || match make.take() {
        Some(make) => *made.insert(make()),
        None => made.expect("nobody asks again after a panic"),
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

impl<K: Word, V: Word, A: Access> Way<'_, '_, K, V, A> {
    /// Changes what `key` has. `USER` says whether `decide` runs user code; `finish` makes the
    /// answer.
    #[inline(always)]
    fn change<const USER: bool, F: Face, R>(
        self,
        key: K,
        mut decide: impl FnMut(Option<V>) -> Compute<V>,
        finish: impl FnOnce(Computed<V>) -> R,
    ) -> F::Of<R> {
        let decide = move |found: Option<u64>| match decide(found.map(WordMap::<K, V>::value)) {
            Compute::Keep => Compute::Keep,
            Compute::Insert(value) => Compute::Insert(value.to_word()),
            Compute::Remove => Compute::Remove,
        };
        let finish = move |done: Result<Computed<u64>, AllocError>| {
            F::show(done.map(|done| {
                finish(Computed {
                    before: done.before.map(WordMap::<K, V>::value),
                    after: done.after.map(WordMap::<K, V>::value),
                })
            }))
        };
        self.map.core.apply::<USER, A, _>(self.access, key.to_word(), decide, finish)
    }

    #[inline(always)]
    pub(super) fn get(self, key: K) -> Option<V> {
        self.map.core.get(self.access, key.to_word()).map(WordMap::<K, V>::value)
    }

    #[inline(always)]
    pub(super) fn insert<F: Face>(self, key: K, value: V) -> F::Of<Option<V>> {
        self.change::<false, F, _>(key, move |_| Compute::Insert(value), |done| done.before)
    }

    #[inline(always)]
    pub(super) fn insert_new<F: Face>(self, key: K, value: V) -> F::Of<Result<(), Rejected<V, V>>> {
        let decide = move |found| match found {
            Some(_) => Compute::Keep,
            None => Compute::Insert(value),
        };
        self.change::<false, F, _>(key, decide, move |done| {
            done.before.map_or(Ok(()), |current| Err(Rejected { current, value }))
        })
    }

    #[inline(always)]
    pub(super) fn get_or_insert_with<F: Face>(self, key: K, make: impl FnOnce() -> V) -> F::Of<V> {
        if let Some(value) = self.get(key) {
            return F::show(Ok(value));
        }
        let mut make = once(make);
        let decide = move |found| match found {
            Some(_) => Compute::Keep,
            None => Compute::Insert(make()),
        };
        self.change::<true, F, _>(key, decide, there)
    }

    #[inline(always)]
    pub(super) fn update(self, key: K, mut next: impl FnMut(V) -> V) -> Option<V> {
        let decide = move |found| match found {
            Some(value) => Compute::Insert(next(value)),
            None => Compute::Keep,
        };
        self.change::<true, Granted, _>(key, decide, |done| done.after) // (B2)
    }

    #[inline(always)]
    pub(super) fn update_or_insert_with<F: Face>(
        self,
        key: K,
        mut next: impl FnMut(V) -> V,
        make: impl FnOnce() -> V,
    ) -> F::Of<V> {
        let mut make = once(make);
        let decide = move |found| {
            Compute::Insert(match found {
                Some(value) => next(value),
                None => make(),
            })
        };
        self.change::<true, F, _>(key, decide, there)
    }

    #[inline(always)]
    pub(super) fn compute<F: Face>(
        self,
        key: K,
        decide: impl FnMut(Option<V>) -> Compute<V>,
    ) -> F::Of<Computed<V>> {
        self.change::<true, F, _>(key, decide, |done| done)
    }

    #[inline(always)]
    pub(super) fn compare_exchange(
        self,
        key: K,
        current: V,
        value: V,
    ) -> Result<V, Rejected<Option<V>, V>> {
        let current = current.to_word();
        let same = move |found: Option<V>| found.filter(|value| value.to_word() == current);
        let decide = move |found| same(found).map_or(Compute::Keep, |_| Compute::Insert(value));
        self.change::<false, Granted, _>(key, decide, move |done| {
            // (B2)
            same(done.before).ok_or(Rejected { current: done.before, value })
        })
    }

    #[inline(always)]
    pub(super) fn remove(self, key: K) -> Option<V> {
        // (B2)
        self.change::<false, Granted, _>(key, |_| Compute::Remove, |done| done.before)
    }

    #[inline(always)]
    pub(super) fn remove_if(
        self,
        key: K,
        mut agree: impl FnMut(V) -> bool,
    ) -> Result<Option<V>, V> {
        let decide = move |found| match found {
            Some(value) if agree(value) => Compute::Remove,
            _ => Compute::Keep,
        };
        let finish = |done: Computed<V>| done.after.map_or(Ok(done.before), Err);
        self.change::<true, Granted, _>(key, decide, finish) // (B2)
    }

    pub(super) fn retain(self, mut keep: impl FnMut(K, V) -> bool) {
        for (key, _) in self.map.iter() {
            let _ = self.remove_if(key, |value| !keep(key, value));
        }
    }

    pub(super) fn clear(self) {
        self.map.keys().for_each(|key| {
            self.remove(key);
        });
        self.shrink_to_fit();
    }

    pub(super) fn get_many(self, keys: &[K], values: &mut [Option<V>]) {
        assert_eq!(keys.len(), values.len(), "get_many needs one place per key");
        let mut words = [0; GROUP];
        let mut found = [None; GROUP];
        for (keys, values) in keys.chunks(GROUP).zip(values.chunks_mut(GROUP)) {
            keys.iter().zip(&mut words).for_each(|(key, word)| *word = key.to_word());
            let count = keys.len();
            self.map.core.get_many(self.access, &words[..count], &mut found[..count]);
            for (value, found) in values.iter_mut().zip(&found) {
                *value = found.map(WordMap::<K, V>::value);
            }
        }
    }

    pub(super) fn contains_many(self, keys: &[K], there: &mut [bool]) {
        assert_eq!(keys.len(), there.len(), "contains_many needs one place per key");
        let mut found = [None; GROUP];
        for (keys, there) in keys.chunks(GROUP).zip(there.chunks_mut(GROUP)) {
            let found = &mut found[..keys.len()];
            self.get_many(keys, found);
            there.iter_mut().zip(found).for_each(|(there, found)| *there = found.is_some());
        }
    }

    pub(super) fn insert_many(
        self,
        entries: impl IntoIterator<Item = (K, V)>,
    ) -> Result<usize, AllocError> {
        self.each_new(entries, |key, value| self.insert::<Tried>(key, value))
    }

    /// Does `put` with each of many entries, their waits for memory overlapped; counts those that
    /// found nothing.
    #[inline(always)]
    fn each_new(
        self,
        entries: impl IntoIterator<Item = (K, V)>,
        put: impl Fn(K, V) -> Result<Option<V>, AllocError>,
    ) -> Result<usize, AllocError> {
        let mut new = 0;
        by_groups(entries, |group| {
            self.map.core.prefetch(self.access, group.iter().map(|(key, _)| key.to_word()));
            for &(key, value) in group {
                new += usize::from(put(key, value)?.is_none());
            }
            Ok(())
        })?;
        Ok(new)
    }

    pub(super) fn remove_many(self, keys: impl IntoIterator<Item = K>) -> usize {
        let mut there = 0;
        let removed = by_groups(keys, |group| {
            self.map.core.prefetch(self.access, group.iter().map(|key| key.to_word()));
            there += group.iter().filter(|key| self.remove(**key).is_some()).count();
            Ok(())
        });
        granted(removed); // (B2)
        there
    }

    pub(super) fn try_reserve(self, additional: usize) -> Result<(), AllocError> {
        let core = &self.map.core;
        let entries = core.len().checked_add(additional).ok_or(AllocError::CapacityOverflow)?;
        let share = |bits| load(bits, core.settings.max_load);
        core.grow_to(self.access, capacity_for(entries, share))
    }

    pub(super) fn shrink_to_fit(self) {
        let core = &self.map.core;
        let bits = capacity_for(core.len(), |bits| load(bits, core.settings.max_load));
        // Without the memory for a smaller table it stays where it is.
        let _ = core.shrink_to(self.access, bits);
        self.access.release();
    }
}

/// Changes of numbers. All return the value before.
impl<K: Word, V: Integer, A: Access> Way<'_, '_, K, V, A> {
    /// Replaces the value by what `next` makes of it, or, if there is none, stores `first`.
    #[inline(always)]
    fn fetch<F: Face>(self, key: K, first: V, next: impl Fn(V) -> V) -> F::Of<Option<V>> {
        let decide = move |found: Option<V>| Compute::Insert(found.map_or(first, &next));
        self.change::<false, F, _>(key, decide, |done| done.before)
    }

    #[inline(always)]
    pub(super) fn fetch_add<F: Face>(self, key: K, by: V) -> F::Of<Option<V>> {
        self.fetch::<F>(key, by, move |value| value.wrapping_add(by))
    }

    pub(super) fn fetch_add_many(
        self,
        entries: impl IntoIterator<Item = (K, V)>,
    ) -> Result<usize, AllocError> {
        self.each_new(entries, |key, by| self.fetch_add::<Tried>(key, by))
    }

    #[inline(always)]
    pub(super) fn fetch_sub<F: Face>(self, key: K, by: V) -> F::Of<Option<V>> {
        let zero = by.wrapping_sub(by);
        self.fetch::<F>(key, zero.wrapping_sub(by), move |value| value.wrapping_sub(by))
    }

    #[inline(always)]
    pub(super) fn fetch_max<F: Face>(self, key: K, to: V) -> F::Of<Option<V>> {
        self.fetch::<F>(key, to, move |value| value.larger(to))
    }

    #[inline(always)]
    pub(super) fn fetch_min<F: Face>(self, key: K, to: V) -> F::Of<Option<V>> {
        self.fetch::<F>(key, to, move |value| value.smaller(to))
    }

    #[inline(always)]
    pub(super) fn fetch_or<F: Face>(self, key: K, bits: V) -> F::Of<Option<V>> {
        self.fetch::<F>(key, bits, move |value| value.or(bits))
    }

    #[inline(always)]
    pub(super) fn fetch_xor<F: Face>(self, key: K, bits: V) -> F::Of<Option<V>> {
        self.fetch::<F>(key, bits, move |value| value.xor(bits))
    }

    /// Of nothing no bits can be kept.
    #[inline(always)]
    pub(super) fn fetch_and(self, key: K, bits: V) -> Option<V> {
        let decide = move |found: Option<V>| {
            found.map_or(Compute::Keep, |value| Compute::Insert(value.and(bits)))
        };
        self.change::<false, Granted, _>(key, decide, |done| done.before) // (B2)
    }
}

/// What a key has for whom something was kept or stored.
#[inline(always)]
fn there<V>(done: Computed<V>) -> V {
    done.after.expect("kept or stored")
}
