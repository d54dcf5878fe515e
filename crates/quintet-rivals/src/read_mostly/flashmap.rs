//! flashmap.
//!
//! Unsafe is allowed here because flashmap takes a foreign hasher and keys outside its own list of
//! types only through unsafe constructors.
#![allow(unsafe_code)]

use super::{Guard, Reader, Writer};
use crate::{Hasher, Kind, Label};

type WriteHandle<T> = flashmap::WriteHandle<<T as Kind>::Key, <T as Kind>::Value, Hasher>;
type ReadHandle<T> = flashmap::ReadHandle<<T as Kind>::Key, <T as Kind>::Value, Hasher>;
type View<'a, T> =
    flashmap::View<flashmap::ReadGuard<'a, <T as Kind>::Key, <T as Kind>::Value, Hasher>>;

/// A change that waits for its publish.
enum Change<T: Kind> {
    Insert(T::Key, T::Value),
    Remove(T::Key),
}

/// `flashmap::WriteHandle`. Its write guard publishes when it ends, so changes are collected until
/// then.
pub struct Flashmap<T: Kind> {
    write: WriteHandle<T>,
    read: ReadHandle<T>,
    changes: Vec<Change<T>>,
}

impl<T: Kind> Writer<T> for Flashmap<T> {
    const LABEL: Label = Label::new("flashmap", "0.2.0");
    type Reader = FlashReader<T>;

    fn with_capacity(capacity: usize) -> Self {
        let builder = flashmap::Builder::new().with_capacity(capacity);
        // SAFETY: a clone of foldhash's state hashes as its original does.
        let builder = unsafe { builder.with_hasher(Hasher::default()) };
        // SAFETY: the keys of a `Kind` are integers and strings: equal means equal, always.
        let (write, read) = unsafe { builder.build_assert_trusted() };
        Self { write, read, changes: Vec::new() }
    }
    fn reader(&self) -> FlashReader<T> {
        FlashReader(self.read.clone())
    }
    fn insert(&mut self, key: T::Key, value: T::Value) {
        self.changes.push(Change::Insert(key, value));
    }
    fn remove(&mut self, query: &T::Query) {
        self.changes.push(Change::Remove(T::own(query)));
    }
    fn publish(&mut self) {
        let mut guard = self.write.guard();
        for change in self.changes.drain(..) {
            match change {
                Change::Insert(key, value) => drop(guard.insert(key, value)),
                Change::Remove(key) => drop(guard.remove(key)),
            }
        }
        guard.publish();
    }
}

/// A thread's read handle.
pub struct FlashReader<T: Kind>(ReadHandle<T>);

/// A read section.
pub struct FlashGuard<'a, T: Kind>(View<'a, T>);

impl<T: Kind> Reader<T> for FlashReader<T> {
    type Guard<'a> = FlashGuard<'a, T>;

    #[inline(always)]
    fn enter(&mut self) -> FlashGuard<'_, T> {
        FlashGuard(self.0.guard())
    }
}

impl<T: Kind> Guard<T> for FlashGuard<'_, T> {
    #[inline(always)]
    fn get<R>(&mut self, query: &T::Query, f: impl FnOnce(&T::Value) -> R) -> Option<R> {
        self.0.get(query).map(f)
    }
}
