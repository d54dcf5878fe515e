//! What the table itself writes, by `&self`.
//!
//! **U1.** Closures of `update`, `compute` and their kin run with no lock held and no guard: they
//! are shown a clone. What they have said is carried out with the desk locked, if no key they were
//! shown has changed since (`watch` W1, W2); else they run again.

use super::forms::batches;
use super::map::TwinMap;
use super::retain::retain;
use super::wait::{GuardError, Patience};
use super::writer::WriteGuard;
use crate::region::AllocError;
use crate::vocabulary::{Compute, Computed, Rejected};
use equivalent::Equivalent;
use std::hash::{BuildHasher, Hash};
use std::time::{Duration, Instant};

/// Writes. Each waits for its turn and for readers of the version before the current one, and
/// publishes before it returns; see the cost under [Memory](TwinMap#memory), and
/// [`batch`](Self::batch) for many.
impl<K: Hash + Eq + Clone, V: Clone, S: BuildHasher + Clone> TwinMap<K, V, S> {
    batches!(
        WriteGuard<K, V, S>,
        "let map = quintet::TwinMap::new();",
        "map.batch_async(|write| write.insert(\"a\", 1)).await?;"
    );

    /// Stores a value; returns what was there.
    ///
    /// ```
    /// let map = quintet::TwinMap::new();
    /// assert_eq!(map.insert("threads", 8), None);
    /// assert_eq!(map.insert("threads", 9), Some(8));
    /// assert_eq!(map.get("threads").as_deref(), Some(&9));
    /// ```
    pub fn insert(&self, key: K, value: V) -> Option<V> {
        self.batch(|write| write.insert(key, value))
    }

    /// Stores a value where nothing is; else says what is there, and gives the value back.
    ///
    /// ```
    /// let map = quintet::TwinMap::new();
    /// assert!(map.insert_new("threads", 8).is_ok());
    /// let rejected = map.insert_new("threads", 9).unwrap_err();
    /// assert_eq!((rejected.current, rejected.value), (8, 9));
    /// ```
    #[doc(alias = "try_insert")]
    pub fn insert_new(&self, key: K, value: V) -> Result<(), Rejected<V, V>> {
        self.batch(|write| write.insert_new(key, value))
    }

    /// What is there, or what is given, which is stored.
    ///
    /// ```
    /// let map = quintet::TwinMap::new();
    /// assert_eq!(map.get_or_insert("threads", 8), 8);
    /// assert_eq!(map.get_or_insert("threads", 9), 8); // it stays
    /// ```
    pub fn get_or_insert(&self, key: K, value: V) -> V {
        if let Some(found) = self.get(&key) {
            return found.clone();
        }
        self.batch(|write| write.get_or_insert(key, value))
    }

    /// What is there, or what is made, which is stored. Several makers may run, and one wins; the
    /// maker runs with no lock held.
    ///
    /// ```
    /// let lengths = quintet::TwinMap::new();
    /// assert_eq!(lengths.get_or_insert_with("tree", || "tree".len()), 4);
    /// assert_eq!(lengths.get_or_insert_with("tree", || unreachable!("it is there")), 4);
    /// ```
    pub fn get_or_insert_with(&self, key: K, make: impl FnOnce() -> V) -> V {
        if let Some(found) = self.get(&key) {
            return found.clone();
        }
        let value = make();
        self.batch(|write| write.get_or_insert(key, value))
    }

    /// Puts a value made from the old one in its place; returns the new one, or None where nothing
    /// is. The closure is shown a clone, runs with no lock held, and may run again if the value has
    /// changed meanwhile.
    ///
    /// ```
    /// let map = quintet::TwinMap::from([("threads", 8)]);
    /// assert_eq!(map.update("threads", |count| count * 2), Some(16));
    /// assert_eq!(map.update("depth", |depth| depth + 1), None);
    /// ```
    #[doc(alias("alter", "get_mut", "entry"))]
    pub fn update<Q>(&self, key: &Q, mut update: impl FnMut(&V) -> V) -> Option<V>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.change(
            key,
            |found| found.map_or(Compute::Keep, |old| Compute::Insert(update(old))),
            None,
        )
        .after
    }

    /// [`update`](Self::update), or stores what is given; returns the new value.
    ///
    /// ```
    /// let visits = quintet::TwinMap::new();
    /// assert_eq!(visits.update_or_insert("home", |count| count + 1, 1), 1);
    /// assert_eq!(visits.update_or_insert("home", |count| count + 1, 1), 2);
    /// ```
    #[doc(alias = "upsert")]
    pub fn update_or_insert(&self, key: K, update: impl FnMut(&V) -> V, value: V) -> V {
        self.update_or_insert_with(key, update, || value.clone())
    }

    /// [`update`](Self::update), or stores what is made; returns the new value.
    ///
    /// ```
    /// let words = quintet::TwinMap::new();
    /// for word in ["tea", "tree", "life"] {
    ///     let more = |list: &String| format!("{list}, {word}");
    ///     words.update_or_insert_with(word.len(), more, || word.to_string());
    /// }
    /// assert_eq!(*words.get(&4).unwrap(), "tree, life");
    /// ```
    pub fn update_or_insert_with(
        &self,
        key: K,
        mut update: impl FnMut(&V) -> V,
        mut make: impl FnMut() -> V,
    ) -> V {
        let mut answer = |found: Option<&V>| match found {
            Some(old) => Compute::Insert(update(old)),
            None => Compute::Insert(make()),
        };
        let computed = self.change(&key, &mut answer, Some(&key));
        computed.after.expect("something was inserted")
    }

    /// The closure sees what is there, and says what is to be done. It is shown a clone, runs with
    /// no lock held, and may run again if the value has changed meanwhile.
    ///
    /// ```
    /// use quintet::Compute;
    ///
    /// let tickets = quintet::TwinMap::from([("stalls", 1)]);
    /// let take = || {
    ///     tickets.compute("stalls", |left| match left {
    ///         Some(0) | None => Compute::Keep,
    ///         Some(1) => Compute::Remove, // the last one
    ///         Some(left) => Compute::Insert(left - 1),
    ///     })
    /// };
    /// let taken = take();
    /// assert_eq!((taken.before, taken.after), (Some(1), None));
    /// assert_eq!(take().before, None);
    /// ```
    pub fn compute(&self, key: K, compute: impl FnMut(Option<&V>) -> Compute<V>) -> Computed<V> {
        self.change(&key, compute, Some(&key))
    }

    /// [`compute`](Self::compute) (U1). A key that is absent is inserted if it is given.
    fn change<Q>(
        &self,
        key: &Q,
        mut compute: impl FnMut(Option<&V>) -> Compute<V>,
        own: Option<&K>,
    ) -> Computed<V>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        let shared = match own {
            Some(_) => self.desk.made(),
            None => match self.desk.get() {
                Some(shared) => shared,
                None => return Computed { before: None, after: None },
            },
        };
        let hash = self.hash_of(key);
        loop {
            let watch = shared.watches.set(Some(hash));
            let before = self.look().and_then(|version| Some(version.find(hash, key)?.1.clone()));
            let answer = compute(before.as_ref());
            if let Compute::Keep = answer {
                return Computed { after: before.clone(), before };
            }
            let done = self.batch(|write| {
                if watch.changed(write.log().iter()).has(hash) {
                    return None;
                }
                Some(carry_out(write, hash, key, own, answer))
            });
            if let Some(after) = done {
                return Computed { before, after };
            }
        }
    }

    /// Takes out a key; returns what was there.
    ///
    /// ```
    /// let map = quintet::TwinMap::from([("threads", 8)]);
    /// assert_eq!(map.remove("threads"), Some(8));
    /// assert_eq!(map.remove("threads"), None);
    /// ```
    pub fn remove<Q>(&self, key: &Q) -> Option<V>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.desk.get()?;
        self.batch(|write| write.remove(key))
    }

    /// Takes out a key whose value the closure agrees to: `Ok` of what was taken out, `Err` of what
    /// stays. The closure runs as that of [`update`](Self::update).
    ///
    /// ```
    /// let stock = quintet::TwinMap::from([("apple", 0), ("pear", 5)]);
    /// assert_eq!(stock.remove_if("apple", |left| *left == 0), Ok(Some(0)));
    /// assert_eq!(stock.remove_if("pear", |left| *left == 0), Err(5));
    /// assert_eq!(stock.remove_if("plum", |left| *left == 0), Ok(None));
    /// ```
    pub fn remove_if<Q>(&self, key: &Q, mut agrees: impl FnMut(&V) -> bool) -> Result<Option<V>, V>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        let answer = |found: Option<&V>| match found {
            Some(value) if agrees(value) => Compute::Remove,
            _ => Compute::Keep,
        };
        let Computed { before, after } = self.change(key, answer, None);
        after.map_or(Ok(before), Err)
    }

    /// Takes out what the closure refuses, in one version. The closure is shown a clone of each
    /// entry, runs with no lock held, and again for entries that have changed meanwhile: for a
    /// large table `batch(|write| write.retain(..))` clones nothing, while other writers wait.
    ///
    /// ```
    /// let stock = quintet::TwinMap::from([("apple", 0), ("pear", 5)]);
    /// stock.retain(|_, left| *left > 0);
    /// assert!(stock.contains_key("pear") && stock.len() == 1);
    /// ```
    pub fn retain(&self, keep: impl FnMut(&K, &V) -> bool) {
        retain(&self.desk, |version| version, |version| version, keep);
    }

    /// Takes out everything; keeps the memory.
    ///
    /// ```
    /// let map = quintet::TwinMap::from([("threads", 8), ("depth", 3)]);
    /// map.clear();
    /// assert!(map.is_empty());
    /// ```
    pub fn clear(&self) {
        if self.desk.get().is_some() {
            self.batch(|write| write.clear());
        }
    }

    /// Stores many, in one version; returns how many keys were new. The iterator runs before the
    /// lock is taken.
    ///
    /// ```
    /// let squares = quintet::TwinMap::from([(1, 1)]);
    /// assert_eq!(squares.insert_many((0..10).map(|n| (n, n * n))), 9);
    /// assert_eq!(squares.get(&5).as_deref(), Some(&25));
    /// ```
    #[doc(alias = "extend")]
    pub fn insert_many(&self, entries: impl IntoIterator<Item = (K, V)>) -> usize {
        let entries: Vec<_> = entries.into_iter().collect();
        self.batch(|write| write.insert_many(entries))
    }

    /// Takes out many, in one version; returns how many were there. The iterator runs before the
    /// lock is taken.
    ///
    /// ```
    /// let map = quintet::TwinMap::from([("threads", 8), ("depth", 3)]);
    /// assert_eq!(map.remove_many(["threads", "width"]), 1);
    /// assert_eq!(map.len(), 1);
    /// ```
    pub fn remove_many<'q, Q>(&self, keys: impl IntoIterator<Item = &'q Q>) -> usize
    where
        Q: Hash + Equivalent<K> + ?Sized + 'q,
    {
        let keys: Vec<_> = keys.into_iter().collect();
        self.batch(|write| write.remove_many(keys))
    }

    /// Puts this content in the place of all that is there, in one version. The iterator runs
    /// before the lock is taken.
    ///
    /// ```
    /// let map = quintet::TwinMap::from([("threads", 8), ("depth", 3)]);
    /// map.replace_all([("width", 5)]);
    /// assert!(map.contains_key("width") && map.len() == 1);
    /// ```
    #[doc(alias("store", "swap"))]
    pub fn replace_all(&self, content: impl IntoIterator<Item = (K, V)>) {
        let content: Vec<_> = content.into_iter().collect();
        self.batch(|write| write.replace_all(content));
    }

    /// Makes room for so many more entries, in both copies.
    ///
    /// ```
    /// let map = quintet::TwinMap::from([("threads", 8)]);
    /// map.reserve(1000);
    /// assert!(map.capacity() >= 1001);
    /// ```
    ///
    /// # Panics
    /// If there is no memory for it; [`try_reserve`](Self::try_reserve) returns that as a value.
    pub fn reserve(&self, more: usize) {
        self.batch(|write| write.reserve(more));
    }

    /// Makes room for so many more entries.
    ///
    /// ```
    /// let map = quintet::TwinMap::from([("threads", 8)]);
    /// map.try_reserve(1000)?;
    /// assert!(map.capacity() >= 1001);
    /// # Ok::<(), quintet::AllocError>(())
    /// ```
    pub fn try_reserve(&self, more: usize) -> Result<(), AllocError> {
        self.batch(|write| write.try_reserve(more))
    }

    /// Gives back memory that the entries do not need, in both copies.
    ///
    /// ```
    /// let squares: quintet::TwinMap<u64, u64> = (0..10_000).map(|n| (n, n * n)).collect();
    /// squares.retain(|n, _| *n < 10);
    /// let before = squares.capacity();
    /// squares.shrink_to_fit();
    /// assert!(squares.capacity() < before && squares.len() == 10);
    /// ```
    pub fn shrink_to_fit(&self) {
        if self.desk.get().is_some() {
            self.batch(|write| write.shrink_to_fit());
        }
    }
}

/// Does what a closure has said; returns what is there since.
fn carry_out<K, V, S, Q>(
    write: &mut WriteGuard<'_, K, V, S>,
    hash: u64,
    key: &Q,
    own: Option<&K>,
    answer: Compute<V>,
) -> Option<V>
where
    K: Hash + Eq + Clone,
    V: Clone,
    S: BuildHasher + Clone,
    Q: Hash + Equivalent<K> + ?Sized,
{
    match answer {
        Compute::Keep => unreachable!("looked at before"),
        Compute::Remove => {
            let old = write.remove(key);
            write.keep(old);
            None
        }
        Compute::Insert(value) => {
            let stored = write.find(hash, key).map(|(key, _)| key);
            let key = stored.or(own)?.clone();
            let shown = value.clone();
            let old = write.put(hash, key, value);
            write.keep(old);
            Some(shown)
        }
    }
}
