//! A thread's registered access, and everything one can do with it.

use super::core::{Act, Expect};
use super::iter::{Drain, Iter};
use super::{Integer, Word, WordMap};
use crate::migrate::{capacity_for, load_of};
use crate::reclaim::{self, Access, ThreadSeat};
use crate::region::AllocError;

/// A thread's access to a [`WordMap`]: one per thread, kept as long as the thread works on the map.
///
/// A handle is `Send` but not `Sync`. It holds memory back only while an operation or an iterator runs on it: an idle or
/// forgotten handle costs a cache line.
///
/// ```
/// use quintet::WordMap;
///
/// let hits: WordMap<u64, u64> = WordMap::new();
/// std::thread::scope(|scope| {
///     for _ in 0..4 {
///         scope.spawn(|| {
///             let handle = hits.handle();
///             (0..1000).for_each(|request| {
///                 handle.fetch_add(request % 10, 1);
///             });
///         });
///     }
/// });
/// assert_eq!(hits.pin().get(3), Some(400));
/// ```
///
/// ```compile_fail
/// fn shared<T: Sync>() {}
/// shared::<quintet::word_map::Handle<'_, u64, u64>>();
/// ```
#[derive(Debug)]
pub struct Handle<'m, K: Word, V: Word, A: Access = reclaim::Handle> {
    map: &'m WordMap<K, V>,
    access: A,
}

/// Access through the calling thread's own seat; see [`WordMap::pin`].
///
/// ```compile_fail
/// fn sent<T: Send>() {}
/// sent::<quintet::word_map::Pin<'_, u64, u64>>();
/// ```
pub type Pin<'m, K, V> = Handle<'m, K, V, ThreadSeat<'m>>;

/// Keys fetched ahead: enough to keep the memory busy, few enough to stay in the nearest cache.
const GROUP: usize = 32;

/// The panic of an operation whose table could not be had.
#[cold]
fn refused(error: AllocError) -> ! {
    panic!("WordMap: {error}; the try_ form returns this as a value")
}

impl<'m, K: Word, V: Word> Handle<'m, K, V> {
    pub(super) fn new(map: &'m WordMap<K, V>) -> Self {
        Self { map, access: map.core.domain.join() }
    }
}

impl<'m, K: Word, V: Word> Pin<'m, K, V> {
    #[inline(always)]
    pub(super) fn pin(map: &'m WordMap<K, V>) -> Self {
        Self { map, access: ThreadSeat::new(&map.core.domain) }
    }
}

impl<'m, K: Word, V: Word, A: Access> Handle<'m, K, V, A> {
    /// The map this handle belongs to.
    pub fn map(&self) -> &'m WordMap<K, V> {
        self.map
    }

    pub(super) fn access(&self) -> &A {
        &self.access
    }

    /// Changes what `key` has. `USER` says whether `decide` runs user code.
    #[inline(always)]
    fn apply<const USER: bool>(
        &self,
        key: K,
        expect: Expect,
        mut decide: impl FnMut(Option<V>) -> Choice<V>,
    ) -> Result<(Option<V>, Option<V>), AllocError> {
        let outcome = self.map.core.apply::<USER, A>(
            &self.access,
            key.to_word(),
            expect,
            |found| match decide(found.map(WordMap::<K, V>::value)) {
                Choice::Keep => Act::Keep,
                Choice::Put(value) => Act::Put(value.to_word()),
                Choice::Remove => Act::Remove,
            },
        );
        outcome.map(|(before, after)| {
            (before.map(WordMap::<K, V>::value), after.map(WordMap::<K, V>::value))
        })
    }

    /// The value of `key`. Linearizable.
    #[inline]
    pub fn get(&self, key: K) -> Option<V> {
        self.map.core.get(&self.access, key.to_word()).map(WordMap::<K, V>::value)
    }

    /// True if `key` is present. Linearizable.
    #[inline]
    pub fn contains_key(&self, key: K) -> bool {
        self.map.core.get(&self.access, key.to_word()).is_some()
    }

    /// Gives `key` a value and returns the one it had. Linearizable.
    ///
    /// # Panics
    /// If a larger table is needed and cannot be had; [`try_insert`](Self::try_insert) returns an error instead.
    #[inline]
    pub fn insert(&self, key: K, value: V) -> Option<V> {
        self.try_insert(key, value).unwrap_or_else(|error| refused(error))
    }

    /// [`insert`](Self::insert) that returns an error if memory is needed and cannot be had; the map is then as before.
    #[inline]
    pub fn try_insert(&self, key: K, value: V) -> Result<Option<V>, AllocError> {
        self.apply::<false>(key, Expect::Either, |_| Choice::Put(value)).map(|(before, _)| before)
    }

    /// Gives `key` a value only if it has none; otherwise returns the one it has, which stays. Linearizable.
    ///
    /// # Panics
    /// As [`insert`](Self::insert).
    #[inline]
    pub fn insert_new(&self, key: K, value: V) -> Option<V> {
        let outcome = self.apply::<false>(key, Expect::Either, |found| match found {
            Some(_) => Choice::Keep,
            None => Choice::Put(value),
        });
        outcome.unwrap_or_else(|error| refused(error)).0
    }

    /// Takes `key` out and returns its value. Linearizable.
    #[inline]
    pub fn remove(&self, key: K) -> Option<V> {
        // Removing allocates nothing, so there is no error to report.
        self.apply::<false>(key, Expect::Present, |_| Choice::Remove)
            .ok()
            .and_then(|(before, _)| before)
    }

    /// Replaces the value of `key` if it is `current`. `Ok` holds the value replaced, `Err` what was there instead.
    /// Values are compared as words. Linearizable.
    #[inline]
    pub fn compare_exchange(&self, key: K, current: V, new: V) -> Result<V, Option<V>> {
        let current = current.to_word();
        let mut same = false;
        let outcome = self.apply::<false>(key, Expect::Present, |found| {
            same = found.is_some_and(|value| value.to_word() == current);
            if same { Choice::Put(new) } else { Choice::Keep }
        });
        // Replacing allocates nothing.
        match outcome {
            Ok((Some(before), _)) if same => Ok(before),
            Ok((before, _)) => Err(before),
            Err(error) => refused(error),
        }
    }

    /// Replaces the value of `key` by what `next` makes of it and returns the value it had; an absent key stays absent.
    ///
    /// Linearizable. `next` may run more than once, each time with the value found then; the last result wins. It may use
    /// the map.
    #[inline]
    pub fn update(&self, key: K, mut next: impl FnMut(V) -> V) -> Option<V> {
        let outcome = self.apply::<true>(key, Expect::Present, |found| match found {
            Some(value) => Choice::Put(next(value)),
            None => Choice::Keep,
        });
        outcome.unwrap_or_else(|error| refused(error)).0
    }

    /// Lets `decide` choose the value of `key`: given the present one, it returns the next, `None` for absent. Returns
    /// the value before.
    ///
    /// Linearizable. `decide` may run more than once; the last result wins. It may use the map.
    ///
    /// # Panics
    /// As [`insert`](Self::insert).
    #[inline]
    pub fn alter(&self, key: K, mut decide: impl FnMut(Option<V>) -> Option<V>) -> Option<V> {
        let outcome = self.apply::<true>(key, Expect::Present, |found| match decide(found) {
            Some(value) => Choice::Put(value),
            None => Choice::Remove,
        });
        outcome.unwrap_or_else(|error| refused(error)).0
    }

    /// The value of `key`, which is inserted first if it is absent. Linearizable.
    ///
    /// `make` may run more than once, and its result be dropped if another thread is faster: all get the one value that won.
    ///
    /// # Panics
    /// As [`insert`](Self::insert).
    #[inline]
    pub fn get_or_insert_with(&self, key: K, mut make: impl FnMut() -> V) -> V {
        if let Some(value) = self.get(key) {
            return value;
        }
        let outcome = self.apply::<true>(key, Expect::Either, |found| match found {
            Some(_) => Choice::Keep,
            None => Choice::Put(make()),
        });
        match outcome {
            Ok((_, Some(after))) => after,
            Ok((_, None)) => unreachable!("the key was kept or put"),
            Err(error) => refused(error),
        }
    }

    /// [`get_or_insert_with`](Self::get_or_insert_with) of a value at hand.
    #[inline]
    pub fn get_or_insert(&self, key: K, value: V) -> V {
        self.get_or_insert_with(key, || value)
    }

    /// Entries. Exact when nobody writes; otherwise an estimate.
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// True if there are no entries, with the exactness of [`len`](Self::len).
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Walks over the entries, in no order.
    ///
    /// Weakly consistent: a key that is present all the time is seen exactly once, a key that comes or goes meanwhile is seen at
    /// most once; each value is one that the key had during the walk. While the iterator lives, tables that the map
    /// leaves are not freed. Ends a migration that is under way before it begins.
    pub fn iter(&self) -> Iter<'_, K, V> {
        Iter::new(self)
    }

    /// Removes every entry that `keep` refuses. Each removal is linearizable, the walk is that of [`iter`](Self::iter).
    ///
    /// `keep` may run more than once for an entry that changes meanwhile; it decides about the value that is then removed.
    pub fn retain(&self, mut keep: impl FnMut(K, V) -> bool) {
        for (key, _) in self.iter() {
            // Removing allocates nothing.
            let _ = self.apply::<true>(key, Expect::Present, |found| match found {
                Some(value) if !keep(key, value) => Choice::Remove,
                _ => Choice::Keep,
            });
        }
    }

    /// Removes every entry found by a walk like that of [`iter`](Self::iter), and gives back memory that is no longer needed.
    pub fn clear(&self) {
        self.retain(|_, _| false);
        self.shrink_to_fit();
    }

    /// Removes entries while walking over them as [`iter`](Self::iter) does; each is returned by one `drain` only. Entries
    /// not reached when the iterator is dropped stay.
    pub fn drain(&self) -> Drain<'_, K, V, A> {
        Drain::new(self)
    }

    /// Makes room for `additional` entries more, so that inserting them does not grow the map.
    ///
    /// # Panics
    /// If the memory cannot be had; [`try_reserve`](Self::try_reserve) returns an error instead.
    pub fn reserve(&self, additional: usize) {
        self.try_reserve(additional).unwrap_or_else(|error| refused(error));
    }

    /// [`reserve`](Self::reserve) that returns an error if the memory cannot be had.
    pub fn try_reserve(&self, additional: usize) -> Result<(), AllocError> {
        let core = &self.map.core;
        let entries = core.len().checked_add(additional).ok_or(AllocError::CapacityOverflow)?;
        let load = |bits| load_of(bits, core.settings.max_load);
        core.grow_to(&self.access, capacity_for(entries, load))
    }

    /// Moves to the smallest table that holds the entries, and frees what this thread has left behind. Does nothing if the
    /// memory for it cannot be had.
    pub fn shrink_to_fit(&self) {
        let core = &self.map.core;
        let bits = capacity_for(core.len(), |bits| load_of(bits, core.settings.max_load));
        let _ = core.shrink_to(&self.access, bits);
        self.access.release();
    }

    /// Frees what this thread has left behind and nobody can reach any more. The map does so by itself, in small steps; this
    /// is for those who want the memory back now.
    pub fn release(&self) {
        self.access.release();
    }

    /// Looks up many keys at once: `values[i]` becomes the value of `keys[i]`. Each lookup is linearizable by itself.
    ///
    /// For large maps this is faster than one `get` after the other: the memory of later keys is fetched while earlier ones
    /// are compared.
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn get_many(&self, keys: &[K], values: &mut [Option<V>]) {
        assert_eq!(keys.len(), values.len(), "get_many needs one place per key");
        let mut words = [0; GROUP];
        let mut found = [None; GROUP];
        for (keys, values) in keys.chunks(GROUP).zip(values.chunks_mut(GROUP)) {
            keys.iter().zip(&mut words).for_each(|(key, word)| *word = key.to_word());
            let count = keys.len();
            self.map.core.get_many(&self.access, &words[..count], &mut found[..count]);
            for (value, found) in values.iter_mut().zip(&found) {
                *value = found.map(WordMap::<K, V>::value);
            }
        }
    }

    /// Inserts many entries, each as [`insert`](Self::insert) does, and returns how many keys were new.
    ///
    /// # Panics
    /// As [`insert`](Self::insert); entries before the one that failed are in the map.
    pub fn insert_many(&self, entries: &[(K, V)]) -> usize {
        let mut new = 0;
        for group in entries.chunks(GROUP) {
            self.map.core.prefetch(&self.access, group.iter().map(|(key, _)| key.to_word()));
            for &(key, value) in group {
                new += usize::from(self.insert(key, value).is_none());
            }
        }
        new
    }
}

/// Counting and the like: an absent key counts as zero.
impl<K: Word, V: Integer, A: Access> Handle<'_, K, V, A> {
    /// Adds to the value of `key`, wrapping around, and returns the value before. An absent key counts as zero.
    /// Linearizable.
    ///
    /// # Panics
    /// As [`insert`](Self::insert), like all of these.
    #[inline]
    pub fn fetch_add(&self, key: K, by: V) -> Option<V> {
        self.alter(key, |found| Some(found.map_or(by, |value| value.wrapping_add(by))))
    }

    /// Subtracts from the value of `key`, wrapping around, and returns the value before. An absent key counts as zero.
    #[inline]
    pub fn fetch_sub(&self, key: K, by: V) -> Option<V> {
        let negative = by.wrapping_sub(by).wrapping_sub(by);
        self.alter(key, |found| Some(found.map_or(negative, |value| value.wrapping_sub(by))))
    }

    /// Raises the value of `key` to `to` if it is smaller or absent, and returns the value before.
    #[inline]
    pub fn fetch_max(&self, key: K, to: V) -> Option<V> {
        self.alter(key, |found| Some(found.map_or(to, |value| value.larger(to))))
    }

    /// Lowers the value of `key` to `to` if it is larger or absent, and returns the value before.
    #[inline]
    pub fn fetch_min(&self, key: K, to: V) -> Option<V> {
        self.alter(key, |found| Some(found.map_or(to, |value| value.smaller(to))))
    }

    /// Keeps of the value of `key` the bits in `bits`, and returns the value before. An absent key stays absent.
    #[inline]
    pub fn fetch_and(&self, key: K, bits: V) -> Option<V> {
        self.alter(key, |found| found.map(|value| value.and(bits)))
    }

    /// Adds `bits` to the value of `key`, and returns the value before. An absent key counts as zero.
    #[inline]
    pub fn fetch_or(&self, key: K, bits: V) -> Option<V> {
        self.alter(key, |found| Some(found.map_or(bits, |value| value.or(bits))))
    }

    /// Flips `bits` in the value of `key`, and returns the value before. An absent key counts as zero.
    #[inline]
    pub fn fetch_xor(&self, key: K, bits: V) -> Option<V> {
        self.alter(key, |found| Some(found.map_or(bits, |value| value.xor(bits))))
    }
}

/// What happens to a key.
enum Choice<V> {
    Keep,
    Put(V),
    Remove,
}
