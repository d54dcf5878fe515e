//! What a table of words shows to the kit.

use crate::model::{Kind, Op, Ret};

/// A table of words: map, counter map or set, by the operations it offers.
pub trait TableUnderTest: Send + Sync + Sized + 'static {
    /// The operations it offers.
    const OPS: &'static [Kind];

    /// A thread's access; made by the thread that uses it.
    type Handle<'t>: HandleUnderTest
    where
        Self: 't;

    /// Access for the calling thread.
    fn handle(&self) -> Self::Handle<'_>;

    /// Number of entries while nobody else works on the table, if it tells.
    fn entries(&self) -> Option<usize> {
        None
    }

    /// Bytes the table holds now, with whatever waits to be freed. Needed by the memory checks.
    fn memory_bytes(&self) -> usize {
        panic!("the adapter offers no memory_bytes: leave out the checks of memory")
    }

    /// A table with room for `entries`, or the text of the error. Needed by `capacity_overflow`.
    fn try_with_capacity(entries: usize) -> Result<Self, String> {
        panic!("the adapter offers no try_with_capacity({entries}): leave out capacity_overflow")
    }
}

/// A thread's access to a table.
pub trait HandleUnderTest {
    /// Does one operation, of a kind among [`TableUnderTest::OPS`].
    fn apply(&mut self, key: u64, op: Op) -> Ret;

    /// A quiet point: no references are held.
    fn quiet(&mut self) {}
}

/// The first of the kinds that the table offers.
pub(crate) fn offered<T: TableUnderTest>(kinds: &[Kind]) -> Option<Kind> {
    kinds.iter().copied().find(|kind| T::OPS.contains(kind))
}

/// A kind that makes an absent key present.
pub(crate) fn inserting<T: TableUnderTest>() -> Kind {
    use Kind::{FetchAdd, Insert, InsertNew, Put, SetInsert};
    offered::<T>(&[Insert, InsertNew, Put, SetInsert, FetchAdd])
        .expect("a table offers some insertion")
}

/// A kind that makes a present key absent.
pub(crate) fn removing<T: TableUnderTest>() -> Option<Kind> {
    offered::<T>(&[Kind::Remove, Kind::Delete])
}

/// A kind that tells whether a key is present, best with its value. Where the table offers none,
/// inserting again tells it too.
pub(crate) fn reading<T: TableUnderTest>() -> Kind {
    offered::<T>(&[Kind::Get, Kind::Contains]).unwrap_or_else(inserting::<T>)
}

/// Does an operation of the kind and tells whether the answer says that the key was there before.
/// A put never says so.
pub(crate) fn finds(handle: &mut impl HandleUnderTest, key: u64, kind: Kind) -> bool {
    match (kind, handle.apply(key, kind.with(key, 0))) {
        (Kind::InsertNew, Ret::Flag(new)) => !new,
        (_, Ret::Flag(present)) => present,
        (_, Ret::Value(cell)) => cell.is_some(),
        (_, ret) => matches!(ret, Ret::Existing(_)),
    }
}
