//! evmap, one value per key (`update`).
//!
//! Unsafe is allowed here because evmap takes a foreign hasher and keys outside its own list of
//! types only through unsafe constructors.
#![allow(unsafe_code)]

use super::{Guard, Reader, Writer};
use crate::{Hasher, Kind, Label};

type ReadHandle<T> = evmap::handles::ReadHandle<<T as Kind>::Key, <T as Kind>::Value, (), Hasher>;

/// `evmap::WriteHandle`.
pub struct Evmap<T: Kind> {
    write: evmap::handles::WriteHandle<T::Key, T::Value, (), Hasher>,
    read: ReadHandle<T>,
}

impl<T: Kind> Writer<T> for Evmap<T> {
    const LABEL: Label = Label::new("evmap", "11.0.0");
    type Reader = EvmapReader<T>;

    fn with_capacity(capacity: usize) -> Self {
        let options = evmap::Options::default().with_capacity(capacity);
        // SAFETY: a clone of foldhash's state hashes as its original does.
        let options = unsafe { options.with_hasher(Hasher::default()) };
        // SAFETY: the keys of a `Kind` are integers and strings: equal means equal, always.
        let (mut write, read) = unsafe { options.assert_stable() };
        write.publish();
        Self { write, read }
    }
    fn reader(&self) -> EvmapReader<T> {
        EvmapReader(self.read.clone())
    }
    fn insert(&mut self, key: T::Key, value: T::Value) {
        self.write.update(key, value);
    }
    fn remove(&mut self, query: &T::Query) {
        self.write.remove_entry(T::own(query));
    }
    fn publish(&mut self) {
        self.write.publish();
    }
}

/// A thread's read handle.
pub struct EvmapReader<T: Kind>(ReadHandle<T>);

/// A read section.
pub struct EvmapGuard<'a, T: Kind>(evmap::refs::MapReadRef<'a, T::Key, T::Value, (), Hasher>);

impl<T: Kind> Reader<T> for EvmapReader<T> {
    type Guard<'a> = EvmapGuard<'a, T>;

    #[inline(always)]
    fn enter(&mut self) -> EvmapGuard<'_, T> {
        EvmapGuard(self.0.enter().expect("the writer outlives its readers"))
    }
}

impl<T: Kind> Guard<T> for EvmapGuard<'_, T> {
    #[inline(always)]
    fn get<R>(&mut self, query: &T::Query, f: impl FnOnce(&T::Value) -> R) -> Option<R> {
        self.0.get_one(query).map(f)
    }
}
