//! Options of a map or set to be made.

use super::alias::Inert;
use super::desk::Options;
use super::inert::{InertMap, InertWriter};
use super::map::TwinMap;
use super::reader::Reader;
use super::set::TwinSet;
use super::set_writer::SetVersion;
use super::twin::Stalled;
use super::version::Version;
use crate::hasher::DefaultHashBuilder;
use crate::region::{AllocError, Pages};
use std::hash::{BuildHasher, Hash};
use std::marker::PhantomData;

/// Options of a [`TwinMap`] to be made.
pub struct TwinMapBuilder<K, V, S = DefaultHashBuilder> {
    plan: Plan<S>,
    of: PhantomData<fn() -> (K, V)>,
}

/// Options of a [`TwinSet`] to be made.
pub struct TwinSetBuilder<T, S = DefaultHashBuilder> {
    plan: Plan<S>,
    of: PhantomData<fn() -> T>,
}

/// Two that are equal.
type Copies<K, V, S> = [Version<K, V, S>; 2];

#[derive(Debug, Clone)]
struct Plan<S> {
    capacity: usize,
    hasher: S,
    pages: Pages,
    options: Options,
}

impl Plan<DefaultHashBuilder> {
    fn new() -> Self {
        let hasher = DefaultHashBuilder::new();
        Self { capacity: 0, hasher, pages: Pages::default(), options: Options::DEFAULT }
    }
}

impl<S> Plan<S> {
    fn hasher<H>(self, hasher: H) -> Plan<H> {
        let Self { capacity, pages, options, .. } = self;
        Plan { capacity, hasher, pages, options }
    }

    /// Two empty copies with room for what was asked; none if nothing was asked.
    fn copies<K, V>(&self) -> Result<Option<Copies<K, V, S>>, AllocError>
    where
        K: Hash + Eq,
        S: BuildHasher + Clone,
    {
        if self.capacity == 0 {
            return Ok(None);
        }
        let copy = || {
            let mut version = Version::with_pages(self.hasher.clone(), self.pages);
            version.try_make_room(self.capacity).map(|()| version)
        };
        Ok(Some([copy()?, copy()?]))
    }
}

macro_rules! options {
    ($builder:ident, $($type:ident),+) => {
        impl<$($type),+> $builder<$($type),+> {
            /// The defaults: empty, a random seed, huge pages, and writers that wait for readers.
            pub fn new() -> Self {
                Self { plan: Plan::new(), of: PhantomData }
            }
        }

        impl<$($type),+> Default for $builder<$($type),+> {
            fn default() -> Self {
                Self::new()
            }
        }

        impl<$($type),+, S> $builder<$($type),+, S> {
            /// Room for so many in each copy.
            pub fn capacity(mut self, most: usize) -> Self {
                self.plan.capacity = most;
                self
            }

            /// Another hasher. Any will do: nothing about it is trusted.
            pub fn hasher<H>(self, hasher: H) -> $builder<$($type),+, H> {
                $builder { plan: self.plan.hasher(hasher), of: PhantomData }
            }

            /// The usual hasher with a fixed seed, so that runs repeat.
            pub fn seed(self, seed: u64) -> $builder<$($type),+, foldhash::fast::FixedState> {
                self.hasher(foldhash::fast::FixedState::with_seed(seed))
            }

            /// Which pages large copies lie in.
            pub fn pages(mut self, pages: Pages) -> Self {
                self.plan.pages = pages;
                self
            }

            /// What a writer does when readers do not leave.
            pub fn stalled(mut self, stalled: Stalled) -> Self {
                self.plan.options.stalled = stalled;
                self
            }

            /// Readers and writers use fences instead of the process-wide barrier, as they do where
            /// the system has none.
            #[doc(hidden)]
            pub fn fences(mut self) -> Self {
                self.plan.options.fences = true;
                self
            }
        }

        impl<$($type),+, S: Clone> Clone for $builder<$($type),+, S> {
            fn clone(&self) -> Self {
                Self { plan: self.plan.clone(), of: PhantomData }
            }
        }

        impl<$($type),+, S> std::fmt::Debug for $builder<$($type),+, S> {
            fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let Plan { capacity, pages, options, .. } = &self.plan;
                out.debug_struct(stringify!($builder))
                    .field("capacity", capacity)
                    .field("pages", pages)
                    .field("stalled", &options.stalled)
                    .finish_non_exhaustive()
            }
        }
    };
}
options!(TwinMapBuilder, K, V);
options!(TwinSetBuilder, T);

impl<K: Hash + Eq + Clone, V: Clone, S: BuildHasher + Clone> TwinMapBuilder<K, V, S> {
    /// The map.
    ///
    /// # Panics
    /// If there is no memory for it.
    pub fn build(self) -> TwinMap<K, V, S> {
        self.try_build().unwrap_or_else(|error| panic!("{error}"))
    }

    /// The map, or an error if there is no memory for it.
    pub fn try_build(self) -> Result<TwinMap<K, V, S>, AllocError> {
        Ok(match self.plan.copies()? {
            Some([first, second]) => TwinMap::over_both(first, second, self.plan.options),
            None => {
                let Plan { hasher, pages, options, .. } = self.plan;
                TwinMap::blank(Version::with_pages(hasher, pages), options)
            }
        })
    }
}

impl<T: Hash + Eq + Clone, S: BuildHasher + Clone> TwinSetBuilder<T, S> {
    /// The set.
    ///
    /// # Panics
    /// If there is no memory for it.
    pub fn build(self) -> TwinSet<T, S> {
        self.try_build().unwrap_or_else(|error| panic!("{error}"))
    }

    /// The set, or an error if there is no memory for it.
    pub fn try_build(self) -> Result<TwinSet<T, S>, AllocError> {
        Ok(match self.plan.copies()? {
            Some(copies) => {
                let [first, second] = copies.map(SetVersion);
                TwinSet::over_both(first, second, self.plan.options)
            }
            None => {
                let Plan { hasher, pages, options, .. } = self.plan;
                TwinSet::blank(SetVersion(Version::with_pages(hasher, pages)), options)
            }
        })
    }
}

impl<K, V> TwinMapBuilder<K, V> {
    /// A map whose two copies share keys and values bit by bit: half the memory for what lies on
    /// the heap, and no `Clone`. Its one writer always waits for readers, and replaced values come
    /// back one batch later.
    ///
    /// ```
    /// use quintet::twin_map::InertMap;
    /// let (mut writer, reader) = InertMap::<String, Vec<u8>>::builder().build_inert();
    /// writer.guard().insert("a".to_owned(), vec![1; 1000]);
    /// assert_eq!(writer.guard().remove("a").map(Vec::len), Some(1000));
    /// drop(writer.guard());
    /// assert_eq!(writer.evicted().next().map(|old| old.len()), Some(1000));
    /// assert!(reader.pin().is_empty());
    /// ```
    pub fn build_inert(self) -> (InertWriter<K, V>, Reader<InertMap<K, V>>)
    where
        K: Inert + Hash + Eq,
        V: Inert,
    {
        let Plan { capacity, hasher, pages, options } = self.plan;
        InertWriter::new(Version::with_pages(hasher, pages), capacity, options.barrier())
    }
}
