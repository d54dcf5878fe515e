//! Our map of any keys and values: by itself, a section for each operation, and by a quiet handle,
//! a section for each batch. And our map of plain data.

use quintet::copy_map::{Handle, Plain};
use quintet::hash_map::QuietHandle;
use quintet::{CopyMap, HashMap};
use quintet_rivals::general::{Access, Map};
use quintet_rivals::{Hasher, Kind, Label};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The map itself.
pub(crate) struct Usual<T: Kind>(HashMap<T::Key, T::Value, Hasher>);

/// The same by a quiet handle, as others are pinned for a batch.
pub(crate) struct UsualBatch<T: Kind>(HashMap<T::Key, T::Value, Hasher>);

/// One thread's quiet handle.
pub(crate) struct Quiet<'m, T: Kind>(QuietHandle<'m, T::Key, T::Value, Hasher>);

impl<T: Kind> Map<T> for Usual<T> {
    const LABEL: Label = Label::new("quintet", VERSION);
    type Access<'a> = &'a Self;

    fn with_capacity(capacity: usize) -> Self {
        Self(HashMap::with_capacity_and_hasher(capacity, Hasher::default()))
    }
    fn access(&self) -> &Self {
        self
    }
}

impl<T: Kind> Map<T> for UsualBatch<T> {
    const LABEL: Label = Label::new("quintet (batch)", VERSION);
    type Access<'a> = Quiet<'a, T>;

    fn with_capacity(capacity: usize) -> Self {
        Self(HashMap::with_capacity_and_hasher(capacity, Hasher::default()))
    }
    fn access(&self) -> Quiet<'_, T> {
        Quiet(self.0.quiet_handle())
    }
}

/// The same operations by each way.
macro_rules! access {
    ($access:ty, |$own:ident| $quiet:expr) => {
        impl<T: Kind> Access<T> for $access {
            #[inline(always)]
            fn get<R>(&mut self, query: &T::Query, f: impl FnOnce(&T::Value) -> R) -> Option<R> {
                self.0.with(query, f)
            }
            #[inline(always)]
            fn insert(&mut self, key: T::Key, value: T::Value) -> bool {
                self.0.insert(key, value).is_none()
            }
            #[inline(always)]
            fn update(&mut self, query: &T::Query, value: T::Value) -> bool {
                self.0.insert(T::own(query), value).is_some()
            }
            #[inline(always)]
            fn remove(&mut self, query: &T::Query) -> bool {
                self.0.remove(query).is_some()
            }
            #[inline(always)]
            fn quiet(&mut self) {
                let $own = self;
                $quiet;
            }
        }
    };
}

access!(&Usual<T>, |own| _ = own);
access!(Quiet<'_, T>, |own| own.0.quiescent());

/// The map of plain data.
pub(crate) struct Inline<T: Kind<Key: Plain, Value: Plain>>(CopyMap<T::Key, T::Value, Hasher>);

/// One thread's handle.
pub(crate) struct ByHandle<'m, T: Kind<Key: Plain, Value: Plain>>(
    Handle<'m, T::Key, T::Value, Hasher>,
);

impl<T: Kind<Key: Plain, Value: Plain>> Map<T> for Inline<T> {
    const LABEL: Label = Label::new("quintet (copy)", VERSION);
    type Access<'a> = ByHandle<'a, T>;

    fn with_capacity(capacity: usize) -> Self {
        Self(CopyMap::builder().hasher(Hasher::default()).capacity(capacity).build())
    }
    fn access(&self) -> ByHandle<'_, T> {
        ByHandle(self.0.handle())
    }
}

impl<T: Kind<Key: Plain, Value: Plain>> Access<T> for ByHandle<'_, T> {
    #[inline(always)]
    fn get<R>(&mut self, query: &T::Query, f: impl FnOnce(&T::Value) -> R) -> Option<R> {
        self.0.get(query).map(|value| f(&value))
    }
    #[inline(always)]
    fn insert(&mut self, key: T::Key, value: T::Value) -> bool {
        self.0.insert(key, value).is_none()
    }
    #[inline(always)]
    fn update(&mut self, query: &T::Query, value: T::Value) -> bool {
        self.0.insert(T::own(query), value).is_some()
    }
    #[inline(always)]
    fn remove(&mut self, query: &T::Query) -> bool {
        self.0.remove(query).is_some()
    }
}
