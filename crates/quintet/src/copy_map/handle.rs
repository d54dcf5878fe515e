//! Ways in: a seat of one's own, and the calling thread's for a while. What one can do by them is
//! in `operations`.
//!
//! **V1.** The seat is declared before the home: it is given back while the table is there, also
//! where the handle is the table's last owner.
//! **V2.** Whatever a handle lends is borrowed from the handle (`home` D2).

use super::operations::Way;
use super::{CopyMap, Plain};
use crate::hasher::DefaultHashBuilder;
use crate::home::Home;
use crate::reclaim::{self, Access, Pinned};
use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

/// A seat of one's own in a [`CopyMap`]: the fastest way in, for a hot loop and for a thread or
/// task that stays.
///
/// It has the operations of the map itself. It is `Send` but not `Sync`. It holds memory back only
/// while an operation runs on it: an idle or forgotten handle costs a cache line. A clone has a
/// seat of its own.
///
/// ```
/// use quintet::CopyMap;
/// use std::sync::Arc;
///
/// let hits: Arc<CopyMap<u64, u64>> = Arc::default();
/// let threads = [(); 4].map(|()| {
///     let hits = hits.owned_handle();
///     std::thread::spawn(move || {
///         for request in 0..1000 {
///             hits.update_or_insert(request % 10, |count| count + 1, 1);
///         }
///     })
/// });
/// threads.map(|thread| thread.join().unwrap());
/// assert_eq!(hits.get(&3), Some(400));
/// ```
///
/// ```compile_fail
/// fn shared<T: Sync>() {}
/// shared::<quintet::copy_map::Handle<'_, u64, u64>>();
/// ```
pub struct Handle<'m, K, V, S = DefaultHashBuilder, A: Access = reclaim::Handle> {
    access: A,
    home: Home<'m, CopyMap<K, V, S>>,
}

/// A guard on the calling thread's seat, for several operations in a row: it is inside for as long
/// as it lives, and holds back the tables that the map leaves meanwhile. See [`CopyMap::pin`].
///
/// ```compile_fail
/// fn sent<T: Send>() {}
/// sent::<quintet::copy_map::Pin<'_, u64, u64>>();
/// ```
pub type Pin<'m, K, V, S = DefaultHashBuilder> = Handle<'m, K, V, S, Pinned<'m>>;

impl<'m, K, V, S> Handle<'m, K, V, S> {
    fn new(home: Home<'m, CopyMap<K, V, S>>) -> Self {
        Self { access: home.core.domain.join(), home }
    }
}

impl<K, V, S, A: Access> Handle<'_, K, V, S, A> {
    /// The map that this works on.
    pub fn map(&self) -> &CopyMap<K, V, S> {
        &self.home
    }

    #[inline(always)]
    pub(super) fn way(&self) -> Way<'_, '_, K, V, S, A> {
        Way { map: &self.home, access: &self.access }
    }
}

impl<K, V, S> Clone for Handle<'_, K, V, S> {
    fn clone(&self) -> Self {
        Self::new(self.home.clone())
    }
}

impl<K: Plain + Hash + Eq, V: Plain, S: BuildHasher, A: Access> fmt::Debug
    for Handle<'_, K, V, S, A>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("len", &self.len()).finish_non_exhaustive()
    }
}

impl<K, V, S> CopyMap<K, V, S> {
    /// A seat of one's own: for a hot loop, and for a thread that stays.
    pub fn handle(&self) -> Handle<'_, K, V, S> {
        Handle::new(Home::borrowed(self))
    }

    /// The same over an `Arc` of the map, without a lifetime: for tasks, and threads that are not
    /// scoped.
    pub fn owned_handle(self: &Arc<Self>) -> Handle<'static, K, V, S> {
        Handle::new(Home::shared(Arc::clone(self)))
    }

    /// A guard on the calling thread's seat: for several operations in a row.
    ///
    /// ```
    /// let map = quintet::CopyMap::<u32, u32>::new();
    /// let pin = map.pin();
    /// pin.insert(1, 10);
    /// assert_eq!(pin.get(&1), Some(10));
    /// ```
    #[inline]
    pub fn pin(&self) -> Pin<'_, K, V, S> {
        Handle { access: Pinned::new(&self.core.domain), home: Home::borrowed(self) }
    }
}
