//! Our two-copy map behind the rivals' trait: as it comes, with fences, and by the thread's seat,
//! as the table itself reads.

use quintet::twin_map::{
    MapReader, ReadGuard, SharedReader, TwinMap, TwinMapBuilder, Version, Writer as TwinWriter,
};
use quintet_rivals::read_mostly::{self, Reader, Writer};
use quintet_rivals::{Hasher, Kind, Label};
use std::sync::Arc;

const VERSION: &str = env!("CARGO_PKG_VERSION");

type Map<T> = Version<<T as Kind>::Key, <T as Kind>::Value, Hasher>;
type Options<T> = TwinMapBuilder<<T as Kind>::Key, <T as Kind>::Value, Hasher>;

/// A change that waits for its publish.
enum Change<T: Kind> {
    Insert(T::Key, T::Value),
    Remove(T::Key),
}

/// The writer, and the changes until the next publish: a write guard borrows it.
pub(crate) struct Batches<T: Kind> {
    writer: TwinWriter<T::Key, T::Value, Hasher>,
    reader: MapReader<T::Key, T::Value, Hasher>,
    changes: Vec<Change<T>>,
}

impl<T: Kind> Batches<T> {
    fn new(builder: Options<T>) -> Self {
        let (writer, reader) = builder.build().split();
        Self { writer, reader, changes: Vec::new() }
    }

    fn publish(&mut self) {
        let mut write = self.writer.guard();
        for change in self.changes.drain(..) {
            match change {
                Change::Insert(key, value) => drop(write.insert(key, value)),
                Change::Remove(key) => drop(write.remove(&key)),
            }
        }
        write.publish();
    }
}

macro_rules! contestants {
    ($($(#[$meta:meta])* $name:ident = $label:literal, $options:expr, $reader:ident, $make:expr;)+) => { $(
        $(#[$meta])*
        pub(crate) struct $name<T: Kind>(Batches<T>);

        impl<T: Kind> Writer<T> for $name<T> {
            const LABEL: Label = Label::new($label, VERSION);
            type Reader = $reader<T>;

            fn with_capacity(capacity: usize) -> Self {
                let options: fn(Options<T>) -> Options<T> = $options;
                let builder = TwinMap::builder().hasher(Hasher::default()).capacity(capacity);
                Self(Batches::new(options(builder)))
            }
            fn reader(&self) -> $reader<T> {
                let make: fn(&MapReader<T::Key, T::Value, Hasher>) -> $reader<T> = $make;
                make(&self.0.reader)
            }
            fn insert(&mut self, key: T::Key, value: T::Value) {
                self.0.changes.push(Change::Insert(key, value));
            }
            fn remove(&mut self, query: &T::Query) {
                self.0.changes.push(Change::Remove(T::own(query)));
            }
            fn publish(&mut self) {
                self.0.publish();
            }
        }
    )+ };
}

contestants! {
    /// As it comes.
    Twin = "quintet", |builder| builder, Own, |reader| Own(reader.clone());
    /// With fences instead of the process-wide barrier.
    Fences = "quintet (fence)", TwinMapBuilder::fences, Own, |reader| Own(reader.clone());
    /// By the thread's seat, as the table itself.
    Shared = "quintet (table)", |builder| builder, Common, |reader| Common(Arc::new(reader.shared()));
}

/// A thread's own handle.
pub(crate) struct Own<T: Kind>(MapReader<T::Key, T::Value, Hasher>);

/// A handle that threads share.
pub(crate) struct Common<T: Kind>(Arc<SharedReader<Map<T>>>);

impl<T: Kind> Reader<T> for Own<T> {
    type Guard<'a> = OwnGuard<'a, T>;

    #[inline(always)]
    fn enter(&mut self) -> OwnGuard<'_, T> {
        OwnGuard(self.0.pin())
    }
}

impl<T: Kind> Reader<T> for Common<T> {
    type Guard<'a> = OwnGuard<'a, T>;

    #[inline(always)]
    fn enter(&mut self) -> OwnGuard<'_, T> {
        OwnGuard(self.0.pin())
    }
}

/// A read section.
pub(crate) struct OwnGuard<'a, T: Kind>(ReadGuard<'a, Map<T>>);

impl<T: Kind> read_mostly::Guard<T> for OwnGuard<'_, T> {
    #[inline(always)]
    fn get<R>(&mut self, query: &T::Query, f: impl FnOnce(&T::Value) -> R) -> Option<R> {
        self.0.get(query).map(f)
    }
}
