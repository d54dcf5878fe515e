//! The operations of a set, by every way in.

use super::HashSet;
use crate::hash_map::inside::{Inside, expect};
use crate::hash_map::iter::{KeyRefs, Keys};
use crate::hash_map::lend::{Ref, Show};
use crate::hash_map::pair::{Key, Pair};
use crate::hash_map::{Equivalent, Handle, HashMapStats, Retired, SetRetired};
use crate::hasher::DefaultHashBuilder;
use crate::item_set::{self, MappedRef, Offline};
use crate::reclaim::{self, Hold, Pinned};
use crate::region::AllocError;
use crate::vocabulary::{Fallible, Rejected};
use std::fmt;
use std::hash::{BuildHasher, Hash};

/// A seat of one's own at a [`HashSet`]: the [`Handle`] of a set.
pub struct SetHandle<'m, T: Key, S = DefaultHashBuilder>(pub(super) Handle<'m, T, (), S>);

/// Access to a [`HashSet`] that is inside a section: the [`Inside`] of a set. What each operation
/// does is told at [`HashSet`].
pub struct SetInside<'m, T: Key, S, A>(pub(in crate::hash_map) Inside<'m, T, (), S, A>);

/// A guard: the [`Pin`](crate::hash_map::Pin) of a set.
pub type SetPin<'m, T, S = DefaultHashBuilder> = SetInside<'m, T, S, Pinned<'m>>;

/// A seat of one's own that is inside except at its quiet points: the
/// [`QuietHandle`](crate::hash_map::QuietHandle) of a set.
pub type SetQuietHandle<'m, T, S = DefaultHashBuilder> = SetInside<'m, T, S, reclaim::QuietHandle>;

impl<T: Key, S> fmt::Debug for SetHandle<'_, T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SetHandle").field("len", &self.len()).finish_non_exhaustive()
    }
}

impl<T: Key, S, A: Hold> fmt::Debug for SetInside<'_, T, S, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SetInside").field("len", &self.len()).finish_non_exhaustive()
    }
}

impl<'h, T: Key, S: BuildHasher, A: Hold> IntoIterator for &'h SetInside<'_, T, S, A> {
    type Item = &'h T;
    type IntoIter = Keys<'h, T, ()>;

    fn into_iter(self) -> Keys<'h, T, ()> {
        self.iter()
    }
}

impl<'a, T: Key, S: BuildHasher> IntoIterator for &'a SetHandle<'_, T, S> {
    type Item = MappedRef<'a, T>;
    type IntoIter = KeyRefs<'a, T, ()>;

    fn into_iter(self) -> KeyRefs<'a, T, ()> {
        self.iter()
    }
}

impl<T: Key, S> HashSet<T, S> {
    #[inline(always)]
    fn inner(&self) -> item_set::Pin<'_, Box<Pair<T, ()>>, S> {
        self.map.inner()
    }
}

impl<T: Key, S> SetHandle<'_, T, S> {
    #[inline(always)]
    fn inner(&self) -> item_set::Pin<'_, Box<Pair<T, ()>>, S> {
        self.0.inner()
    }

    /// A guard on this seat.
    #[inline(always)]
    pub fn pin(&self) -> SetPin<'_, T, S> {
        SetInside(self.0.pin())
    }

    /// [`Handle::flush`].
    pub fn flush(&self) {
        self.0.flush();
    }

    /// The same operations, with an [`AllocError`] where they would panic.
    pub fn fallible(&self) -> Fallible<'_, Self> {
        Fallible(self)
    }
}

impl<T: Key, S> SetQuietHandle<'_, T, S> {
    /// A quiet point: no reference is held, as the borrow checker has seen. What was removed before
    /// may be freed.
    #[inline]
    pub fn quiescent(&mut self) {
        self.0.quiescent();
    }

    /// A quiet point that lasts until the guard drops: for threads that park.
    pub fn offline(&mut self) -> Offline<'_> {
        self.0.offline()
    }

    /// A quiet point that also frees all it can.
    pub fn flush(&mut self) {
        self.0.flush();
    }
}

impl<T: Key, S> SetPin<'_, T, S> {
    /// Frees nothing: whoever is inside can refer to what was taken out.
    pub fn flush(&self) {}
}

impl<T: Key, S, A: Hold> SetInside<'_, T, S, A> {
    /// The same operations, with an [`AllocError`] where they would panic.
    pub fn fallible(&self) -> Fallible<'_, Self> {
        Fallible(self)
    }
}

/// Does something below by a way that is outside, and lends what it shows.
macro_rules! outside {
    ($way:expr, |$pin:ident| $work:expr) => {
        $way.inner().lend(|$pin| $work)
    };
}

/// The same without lending anything.
macro_rules! glance {
    ($way:expr, |$pin:ident| $work:expr) => {{
        let $pin = $way.inner();
        $work
    }};
}

/// Does something below by a way that is inside.
macro_rules! inside {
    ($way:expr, |$pin:ident| $work:expr) => {{
        let $pin = &$way.0.inner;
        $work
    }};
}

/// Looks up many elements by a way that is outside.
macro_rules! lend_many {
    ($way:expr, $elements:expr, $found:expr, |$pair:ident| $show:expr) => {
        $way.inner().lend_many($elements, $found, |$pair| $show)
    };
}

/// The same by a way that is inside.
macro_rules! find_each {
    ($way:expr, $elements:expr, $found:expr, |$pair:ident| $show:expr) => {
        $way.0.inner.find_each($elements, $found, |$pair| $show)
    };
}

/// The element of an entry: kept to who is outside, itself to who is inside.
trait Element {
    type Shown;
    fn element(self) -> Self::Shown;
}

impl<'a, T: Key> Element for Ref<'a, T, ()> {
    type Shown = MappedRef<'a, T>;
    #[inline(always)]
    fn element(self) -> MappedRef<'a, T> {
        Ref::into_key(self)
    }
}

impl<'a, T: Key> Element for item_set::Ref<'a, Box<Pair<T, ()>>> {
    type Shown = MappedRef<'a, T>;
    #[inline(always)]
    fn element(self) -> MappedRef<'a, T> {
        self.show().element()
    }
}

impl<'a, T> Element for &'a Pair<T, ()> {
    type Shown = &'a T;
    #[inline(always)]
    fn element(self) -> &'a T {
        &self.key
    }
}

/// What is lent to who is outside.
macro_rules! kept {
    ($element:ident) => { MappedRef<'_, $element> };
    ($life:lifetime, $element:ident) => { MappedRef<$life, $element> };
}

/// What is lent to who is inside.
macro_rules! plain {
    ($element:ident) => { &$element };
    ($life:lifetime, $element:ident) => { &$life $element };
}

/// The operations of one way.
macro_rules! way {
    ($way:ty, [$($more:tt)*], $do:ident, $just:ident, $look:ident, $lent:ident) => {
        /// # Looking up
        impl<T: Key, S: BuildHasher, $($more)*> $way {
            /// The element that is equal to this.
            ///
            /// ```
            /// let names = quintet::HashSet::from(["ada".to_string()]);
            /// assert_eq!(names.get("ada").unwrap().as_str(), "ada");
            /// assert!(names.get("bob").is_none());
            /// ```
            #[inline]
            pub fn get<Q>(&self, element: &Q) -> Option<$lent!(T)>
            where
                Q: ?Sized + Hash + Equivalent<T>,
            {
                $do!(self, |pin| pin.get(element)).map(Element::element)
            }

            /// True if the element is there.
            ///
            /// ```
            /// let names = quintet::HashSet::from(["ada".to_string()]);
            /// assert!(names.contains("ada") && !names.contains("bob"));
            /// ```
            #[inline]
            pub fn contains<Q: ?Sized + Hash + Equivalent<T>>(&self, element: &Q) -> bool {
                $just!(self, |pin| pin.contains(element))
            }

            /// Looks up many elements at once: `found[i]` becomes the one that is equal to number
            /// `i`. Their waits for memory overlap.
            ///
            /// ```
            /// let words = quintet::HashSet::from(["apple", "pear"]);
            /// let mut found = [const { None }; 3];
            /// words.get_many(["pear", "plum", "apple"], &mut found);
            /// assert_eq!(found[0].as_deref(), Some(&"pear"));
            /// assert!(found[1].is_none() && found[2].is_some());
            /// ```
            ///
            /// # Panics
            /// If there are not as many places as elements.
            pub fn get_many<'h, 'k, Q, I>(&'h self, elements: I, found: &mut [Option<$lent!('h, T)>])
            where
                Q: ?Sized + Hash + Equivalent<T> + 'k,
                I: IntoIterator<Item = &'k Q, IntoIter: ExactSizeIterator + Clone>,
            {
                $look!(self, elements.into_iter(), found, |pair| pair.map(Element::element));
            }

            /// Looks for many elements at once: `found[i]` tells whether the one that comes as
            /// number `i` is there. Their waits for memory overlap.
            ///
            /// ```
            /// let words = quintet::HashSet::from(["apple", "pear"]);
            /// let mut found = [false; 3];
            /// words.contains_many(["pear", "plum", "apple"], &mut found);
            /// assert_eq!(found, [true, false, true]);
            /// ```
            ///
            /// # Panics
            /// If there are not as many places as elements.
            pub fn contains_many<'k, Q, I>(&self, elements: I, found: &mut [bool])
            where
                Q: ?Sized + Hash + Equivalent<T> + 'k,
                I: IntoIterator<Item = &'k Q, IntoIter: ExactSizeIterator + Clone>,
            {
                $just!(self, |pin| pin.contains_many(elements, found));
            }
        }

        /// # Storing
        impl<T: Key, S: BuildHasher, $($more)*> $way {
            /// Stores an element unless it is there; true if it was not. One that is there stays.
            ///
            /// ```
            /// let names = quintet::HashSet::new();
            /// assert!(names.insert("ada"));
            /// assert!(!names.insert("ada")); // it is there
            /// ```
            #[inline]
            pub fn insert(&self, element: T) -> bool {
                expect(self.fallible().insert(element))
            }

            /// Stores an element unless it is there. Otherwise returns the one that is there, and
            /// hands this one back.
            ///
            /// ```
            /// let names = quintet::HashSet::new();
            /// assert!(names.insert_new("ada".to_string()).is_ok());
            /// let rejected = names.insert_new("ada".to_string()).unwrap_err();
            /// assert_eq!(*rejected.current, rejected.value);
            /// ```
            pub fn insert_new(&self, element: T) -> Result<(), Rejected<$lent!(T), T>> {
                expect(self.fallible().insert_new(element))
            }

            /// Stores an element. Returns the one it replaces.
            ///
            /// ```
            /// let names = quintet::HashSet::new();
            /// assert!(names.replace("ada").is_none());
            /// assert_eq!(names.replace("ada").as_deref(), Some(&"ada"));
            /// ```
            pub fn replace(&self, element: T) -> Option<$lent!(T)> {
                expect(self.fallible().replace(element))
            }

            /// The element that is equal to this one; this one, if there was none.
            ///
            /// ```
            /// let words = quintet::HashSet::new();
            /// let first = words.get_or_insert("tree".to_string());
            /// let again = words.get_or_insert("tree".to_string());
            /// assert!(std::ptr::eq(&*first, &*again)); // one text for both
            /// ```
            pub fn get_or_insert(&self, element: T) -> $lent!(T) {
                let make = |_: &T| ();
                let name = crate::hash_map::Given::new(element);
                expect($do!(self, |pin| pin.get_or_make(name, make))).element()
            }

            /// The element that is equal to this; if there is none, the one that `make` returns,
            /// which runs with no lock held.
            ///
            /// ```
            /// let words = quintet::HashSet::<String>::new();
            /// let first = words.get_or_insert_with("tree", || "tree".to_string());
            /// let again = words.get_or_insert_with("tree", || unreachable!("it is there"));
            /// assert!(std::ptr::eq(&*first, &*again));
            /// ```
            ///
            /// # Panics
            /// If `make` returns another element.
            pub fn get_or_insert_with<Q>(
                &self,
                element: &Q,
                make: impl FnOnce() -> T,
            ) -> $lent!(T)
            where
                Q: ?Sized + Hash + Equivalent<T>,
            {
                let pair = || Pair { key: make(), value: () };
                $do!(self, |pin| pin.get_or_insert_with(element, || pin.boxed(pair()))).element()
            }

            /// Stores many elements, their waits for memory overlapped; returns how many were new.
            /// Of equal ones the last stays.
            ///
            /// ```
            /// let words = quintet::HashSet::new();
            /// assert_eq!(words.insert_many(["tea", "tree", "tea"]), 2);
            /// ```
            pub fn insert_many(&self, elements: impl IntoIterator<Item = T>) -> usize {
                expect(self.fallible().insert_many(elements))
            }

            /// Makes room for `additional` more elements at once, so that they can be stored
            /// without growth.
            ///
            /// ```
            /// let words = quintet::HashSet::from(["tea"]);
            /// words.reserve(1000);
            /// assert!(words.capacity() >= 1001);
            /// ```
            ///
            /// # Panics
            /// If the memory cannot be had.
            pub fn reserve(&self, additional: usize) {
                expect(self.try_reserve(additional));
            }

            /// Makes room for `additional` more elements at once, or says why that cannot be.
            ///
            /// ```
            /// let words = quintet::HashSet::from(["tea"]);
            /// words.try_reserve(1000)?;
            /// assert!(words.capacity() >= 1001);
            /// # Ok::<(), quintet::AllocError>(())
            /// ```
            pub fn try_reserve(&self, additional: usize) -> Result<(), AllocError> {
                $just!(self, |pin| pin.try_reserve(additional))
            }
        }

        impl<'a, T: Key, S: BuildHasher, $($more)*> Fallible<'a, $way> {
            /// [`HashSet::insert`].
            pub fn insert(self, element: T) -> Result<bool, AllocError> {
                $just!(self.0, |pin| pin.add_key(element))
            }

            /// [`HashSet::insert_new`].
            pub fn insert_new(
                self,
                element: T,
            ) -> Result<Result<(), Rejected<$lent!('a, T), T>>, AllocError> {
                let added = $do!(self.0, |pin| pin.add_new(element, ()))?;
                Ok(added.map_err(|Rejected { current, value }| Rejected {
                    current: current.element(),
                    value: value.key,
                }))
            }

            /// [`HashSet::replace`].
            pub fn replace(self, element: T) -> Result<Option<$lent!('a, T)>, AllocError> {
                let pair = Pair { key: element, value: () };
                let stored = $do!(self.0, |pin| pin.fallible().insert(pin.boxed(pair)))?;
                Ok(stored.map(Element::element))
            }

            /// [`HashSet::insert_many`].
            pub fn insert_many(
                self,
                elements: impl IntoIterator<Item = T>,
            ) -> Result<usize, AllocError> {
                let pairs = elements.into_iter().map(|key| Pair { key, value: () });
                $just!(self.0, |pin| pin.fallible().insert_many(pairs.map(|pair| pin.boxed(pair))))
            }
        }

        /// # Taking out
        impl<T: Key, S: BuildHasher, $($more)*> $way {
            /// Removes an element; true if it was there.
            ///
            /// ```
            /// let names = quintet::HashSet::from(["ada"]);
            /// assert!(names.remove("ada"));
            /// assert!(!names.remove("ada"));
            /// ```
            #[inline]
            pub fn remove<Q: ?Sized + Hash + Equivalent<T>>(&self, element: &Q) -> bool {
                $just!(self, |pin| pin.remove(element).is_some())
            }

            /// Removes an element, and gives it back as its owner's: once nobody can be looking at
            /// it any more. See [`SetRetired`].
            ///
            /// ```
            /// let names = quintet::HashSet::from(["ada".to_string()]);
            /// let ada: String = names.take("ada").unwrap().wait().unwrap();
            /// assert!(ada == "ada" && names.take("ada").is_none());
            /// ```
            pub fn take<Q>(&self, element: &Q) -> Option<SetRetired<T>>
            where
                Q: ?Sized + Hash + Equivalent<T>,
            {
                let taken = $just!(self, |pin| pin.take_out(element));
                taken.map(|taken| SetRetired(Retired::new(taken)))
            }

            /// Removes an element if the closure agrees to the one that is there: `Ok` of what was
            /// removed, or of nothing if there was none, `Err` of what stays.
            ///
            /// ```
            /// let words = quintet::HashSet::from(["tea", "tree"]);
            /// assert!(words.remove_if("tea", |word| word.len() < 4).unwrap().is_some());
            /// assert_eq!(*words.remove_if("tree", |word| word.len() < 4).unwrap_err(), "tree");
            /// assert!(words.remove_if("life", |word| word.len() < 4).unwrap().is_none());
            /// ```
            pub fn remove_if<Q>(
                &self,
                element: &Q,
                mut condition: impl FnMut(&T) -> bool,
            ) -> Result<Option<$lent!(T)>, $lent!(T)>
            where
                Q: ?Sized + Hash + Equivalent<T>,
            {
                let agrees = |pair: &Pair<T, ()>| condition(&pair.key);
                let removed = $do!(self, |pin| pin.remove_if(element, agrees));
                removed.map(|old| old.map(Element::element)).map_err(Element::element)
            }

            /// Removes the elements for which `keep` says no, which runs with no lock held.
            ///
            /// ```
            /// let words = quintet::HashSet::from(["tea", "tree"]);
            /// words.retain(|word| word.len() > 3);
            /// assert!(words.contains("tree") && words.len() == 1);
            /// ```
            pub fn retain(&self, mut keep: impl FnMut(&T) -> bool) {
                $just!(self, |pin| pin.retain(|pair| keep(&pair.key)));
            }

            /// Removes the elements that are there now.
            ///
            /// ```
            /// let words = quintet::HashSet::from(["tea", "tree"]);
            /// words.clear();
            /// assert!(words.is_empty());
            /// ```
            pub fn clear(&self) {
                $just!(self, |pin| pin.clear());
            }

            /// Removes many elements, their waits for memory overlapped; returns how many were
            /// there.
            ///
            /// ```
            /// let words = quintet::HashSet::from(["tea", "tree"]);
            /// assert_eq!(words.remove_many(["tea", "life"]), 1);
            /// assert_eq!(words.len(), 1);
            /// ```
            pub fn remove_many<'k, Q>(&self, elements: impl IntoIterator<Item = &'k Q>) -> usize
            where
                Q: ?Sized + Hash + Equivalent<T> + 'k,
            {
                $just!(self, |pin| pin.remove_many(elements))
            }

            /// Moves to the smallest table that holds what is there.
            ///
            /// ```
            /// let numbers: quintet::HashSet<u64> = (0..10_000).collect();
            /// numbers.retain(|n| *n < 10);
            /// let before = numbers.capacity();
            /// numbers.shrink_to_fit();
            /// assert!(numbers.capacity() < before && numbers.len() == 10);
            /// ```
            pub fn shrink_to_fit(&self) {
                $just!(self, |pin| pin.shrink_to_fit());
            }
        }
    };
}

way!(HashSet<T, S>, [], outside, glance, lend_many, kept);
way!(SetHandle<'_, T, S>, [], outside, glance, lend_many, kept);
way!(SetInside<'_, T, S, A>, [A: Hold], inside, inside, find_each, plain);

/// Walks and figures, which go to the map as they are.
macro_rules! walks {
    ($way:ty, [$($more:tt)*], |$own:ident| $map:expr, $walk:ty, $lent:ty, $key:expr) => {
        impl<T: Key, S: BuildHasher, $($more)*> $way {
            /// All elements, in no order, as [`HashMap::iter`](crate::HashMap::iter) sees entries.
            ///
            /// ```
            /// let words = quintet::HashSet::from(["tea", "tree"]);
            /// assert_eq!(words.iter().map(|word| word.len()).sum::<usize>(), 7);
            /// ```
            pub fn iter(&self) -> $walk {
                let $own = self;
                $map.keys()
            }

            /// Removes the elements that are there now, and shows them. What the iterator has not
            /// come to is removed when it is dropped.
            ///
            /// ```
            /// let words = quintet::HashSet::from(["tea", "tree"]);
            /// let mut taken: Vec<_> = words.drain().map(|word| *word).collect();
            /// taken.sort();
            /// assert!(taken == ["tea", "tree"] && words.is_empty());
            /// ```
            pub fn drain(&self) -> impl Iterator<Item = $lent> {
                let $own = self;
                $map.drain().map($key)
            }

            /// Removes the elements that are there now and for which `pick` says yes, and shows
            /// them. What the iterator has not come to stays.
            ///
            /// ```
            /// let words = quintet::HashSet::from(["tea", "tree"]);
            /// let short = words.extract_if(|word| word.len() < 4);
            /// let short: Vec<_> = short.map(|word| *word).collect();
            /// assert_eq!((short, words.len()), (vec!["tea"], 1));
            /// ```
            pub fn extract_if(
                &self,
                mut pick: impl FnMut(&T) -> bool,
            ) -> impl Iterator<Item = $lent> {
                let $own = self;
                $map.extract_if(move |element, ()| pick(element)).map($key)
            }
        }

        impl<T: Key, S, $($more)*> $way {
            /// Elements. Exact when nobody writes; otherwise an estimate.
            ///
            /// ```
            /// let words = quintet::HashSet::from(["tea", "tree"]);
            /// assert_eq!(words.len(), 2);
            /// ```
            pub fn len(&self) -> usize {
                let $own = self;
                $map.len()
            }

            /// True if there are no elements, with the exactness of [`len`](Self::len).
            ///
            /// ```
            /// let words = quintet::HashSet::from(["tea", "tree"]);
            /// assert!(!words.is_empty());
            /// ```
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }

            /// Elements that fit before the set grows.
            ///
            /// ```
            /// let words = quintet::HashSet::<String>::with_capacity(1000);
            /// assert!(words.capacity() >= 1000);
            /// ```
            pub fn capacity(&self) -> usize {
                let $own = self;
                $map.capacity()
            }

            /// A look inside: load, migration, memory, what is held back.
            ///
            /// ```
            /// let numbers: quintet::HashSet<u64> = (0..1000).collect();
            /// assert_eq!(numbers.stats().len, 1000);
            /// ```
            pub fn stats(&self) -> HashMapStats {
                let $own = self;
                $map.stats()
            }

            /// Bytes held, as [`HashMap::memory_bytes`](crate::HashMap::memory_bytes) counts them.
            ///
            /// ```
            /// let numbers: quintet::HashSet<u64> = (0..1000).collect();
            /// assert!(numbers.memory_bytes() >= 1000 * 8);
            /// ```
            pub fn memory_bytes(&self) -> usize {
                let $own = self;
                $map.memory_bytes()
            }
        }
    };
}

fn key_of<T, V>((key, _): (T, V)) -> T {
    key
}

walks!(HashSet<T, S>, [], |own| own.map, KeyRefs<'_, T, ()>, MappedRef<'_, T>, Ref::into_key);
walks!(SetHandle<'_, T, S>, [], |own| own.0, KeyRefs<'_, T, ()>, MappedRef<'_, T>, Ref::into_key);
walks!(SetInside<'_, T, S, A>, [A: Hold], |own| own.0, Keys<'_, T, ()>, &T, key_of);
