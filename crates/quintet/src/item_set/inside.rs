//! Access from inside a section: plain references, for as long as the access is borrowed.

use super::core::Want;
use super::item::{Item, Pointer};
use super::iter::{Drain, Iter};
use super::owned::{ArcRef, Removed};
use super::table::Table;
use super::word::brought;
use super::write::Unplaced;
use super::{Equivalent, ItemSet};
use crate::hasher::DefaultHashBuilder;
use crate::home::Home;
use crate::reclaim::{self, Hold, Peek, Pinned, Visit};
use crate::region::AllocError;
use crate::vocabulary::{Compute, Computed, Fallible, Rejected};
use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::ops::Deref;
use std::sync::Arc;

/// The key of a set's items.
pub(crate) type KeyOf<P> = <<P as Pointer>::Item as Item>::Key;

/// Access to an [`ItemSet`] that is inside a section: a [`Pin`] as long as it lives, a
/// [`QuietHandle`] between its quiet points.
///
/// It has the operations of the [set itself](ItemSet), and lends plain references: they last as
/// long as the access is borrowed. What each operation does is told there.
pub struct Inside<A, H> {
    /// Before the home: the seat is given back while the set is there.
    pub(super) access: A,
    pub(super) home: H,
}

/// A guard: inside on the calling thread's seat, or on that of a [`Handle`](super::Handle), for as
/// long as it lives.
pub type Pin<'s, P, S = DefaultHashBuilder> = Inside<Pinned<'s>, &'s ItemSet<P, S>>;

/// A seat of one's own that is inside except at its quiet points, which its owner names: the
/// fastest way to work on a set.
///
/// It must come to a quiet point now and then ([`quiescent`](Self::quiescent)), where no reference
/// is left:
///
/// ```compile_fail
/// # use quintet::ItemSet;
/// # let set = ItemSet::<Box<String>>::new();
/// let mut handle = set.quiet_handle();
/// let word = handle.get("apple");
/// handle.quiescent(); // `word` is still borrowed
/// assert!(word.is_none());
/// ```
///
/// Use what you found first, or clone it:
///
/// ```
/// # use quintet::ItemSet;
/// # let set = ItemSet::<Box<String>>::new();
/// let mut handle = set.quiet_handle();
/// let word = handle.get("apple").cloned();
/// handle.quiescent();
/// assert!(word.is_none());
/// ```
///
/// It is `Send`, and never `Sync`:
///
/// ```compile_fail
/// # use quintet::ItemSet;
/// let set = ItemSet::<Box<String>>::new();
/// let handle = set.quiet_handle();
/// std::thread::scope(|scope| scope.spawn(|| handle.get("apple").is_some()));
/// ```
pub type QuietHandle<'s, P, S = DefaultHashBuilder> =
    Inside<reclaim::QuietHandle, Home<'s, ItemSet<P, S>>>;

/// While this lives, its handle holds nothing back.
pub struct Offline<'h>(#[allow(dead_code)] reclaim::Offline<'h>);

impl fmt::Debug for Offline<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Offline").finish_non_exhaustive()
    }
}

impl<P: Pointer, S, A: Hold, H: Deref<Target = ItemSet<P, S>>> fmt::Debug for Inside<A, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inside").field("len", &self.len()).finish_non_exhaustive()
    }
}

impl<P: Pointer, S, A, H: Deref<Target = ItemSet<P, S>>> Inside<A, H> {
    /// An access of any kind to the set of a home, in whose domain it has its seat.
    #[inline(always)]
    pub(crate) fn of(access: A, home: H) -> Self {
        Self { access, home }
    }

    /// The home.
    #[inline(always)]
    pub(crate) fn home(&self) -> &H {
        &self.home
    }
}

impl<'s, P: Pointer, S> QuietHandle<'s, P, S> {
    pub(super) fn new(home: Home<'s, ItemSet<P, S>>) -> Self {
        Self::of(home.core.domain.join_quiet(), home)
    }
}

impl<P: Pointer, S, H: Deref<Target = ItemSet<P, S>>> Inside<reclaim::QuietHandle, H> {
    /// A quiet point: no reference is held, as the borrow checker has seen. What was removed before
    /// may be freed.
    #[inline]
    pub fn quiescent(&mut self) {
        self.access.quiescent();
        self.home.core.acquaint(&self.access);
    }

    /// A quiet point that lasts until the guard drops: for threads that park.
    pub fn offline(&mut self) -> Offline<'_> {
        Offline(self.access.offline())
    }

    /// A quiet point that also frees all it can, and gives back the memory of tables that were
    /// left.
    pub fn flush(&mut self) {
        self.access.flush();
    }
}

impl<'s, P: Pointer, S> Pin<'s, P, S> {
    #[inline(always)]
    pub(crate) fn new(access: Pinned<'s>, set: &'s ItemSet<P, S>) -> Self {
        Self { access, home: set }
    }

    /// Frees nothing: whoever is inside can refer to what was taken out. Flush the set, or the
    /// handle, when the guard is gone.
    pub fn flush(&self) {}
}

impl<T, S, A: Hold, H: Deref<Target = ItemSet<Box<T>, S>>> Inside<A, H>
where
    T: Item + Send + Sync,
{
    /// Boxes an item for this set, in memory that an earlier one has left if there is some
    /// (`reclaim` E11 of `reclaim`). Runs the drop of that one, with nothing locked.
    #[inline(always)]
    pub(crate) fn boxed(&self, item: T) -> Box<T> {
        // SAFETY: the set's domain has pieces of this type alone (`piece`).
        unsafe { self.access.boxed(item) }
    }
}

impl<P: Pointer, S, A: Hold, H: Deref<Target = ItemSet<P, S>>> Inside<A, H> {
    /// The set.
    #[inline(always)]
    pub fn set(&self) -> &ItemSet<P, S> {
        &self.home
    }

    /// The same operations, with an [`AllocError`] where they would panic.
    pub fn fallible(&self) -> Fallible<'_, Self> {
        Fallible(self)
    }

    #[inline(always)]
    pub(super) fn visit<R>(&self, work: impl FnOnce(&Visit<'_>) -> R) -> R {
        self.access.view(work)
    }

    /// An item that this access found, for as long as it is borrowed.
    #[inline(always)]
    pub(crate) fn show(&self, raw: *mut ()) -> Option<&P::Item> {
        // SAFETY: the set's raw items are items of `P`; found by this access, they are not freed
        // before its next quiet point, which needs it mutably, or its end.
        unsafe { raw.cast::<P::Item>().as_ref() }
    }

    /// An item that was taken out of the set, to be retired.
    #[inline(always)]
    pub(super) fn piece(raw: *mut (), birth: u64) -> reclaim::Retired {
        unsafe fn free<P: Pointer>(place: *mut ()) -> reclaim::Freed {
            // SAFETY: made by `into_raw` of the same type, retired once.
            drop(unsafe { P::from_raw(place) });
            reclaim::Freed::Done
        }
        let bytes = size_of::<P::Item>();
        // SAFETY: pointers are `Send`, so any thread may drop them.
        let piece = unsafe { reclaim::Retired::new(raw, bytes, birth, free::<P>) };
        if !P::REUSED {
            return piece;
        }
        // SAFETY: reused pointers are boxes; the domain is the set's, which has items of one type
        // and marks no other pieces.
        unsafe { piece.reusable::<P::Item>() }
    }

    /// Retires an item that was taken out of the set. With `using`, one that was
    /// [boxed](Self::boxed) is in its place.
    pub(super) fn retire(&self, raw: *mut (), birth: u64, using: bool) {
        let piece = Self::piece(raw, birth);
        self.visit(|visit| {
            // SAFETY: both tables were changed before, and the writer that took the item out
            // retires it.
            unsafe { visit.retire_only(piece) };
            visit.free_some(using && P::REUSED);
        });
    }

    /// Works with the root in the usual case. `None` says nothing.
    #[inline(always)]
    pub(super) fn at_hand<R>(&self, work: impl FnOnce(&Table) -> Option<R>) -> Option<R> {
        self.set().core.at_hand(&self.access, work)
    }

    /// A look with what the section remembers.
    #[inline(always)]
    pub(super) fn peek(&self) -> Peek<'_> {
        self.access.recall()
    }

    /// The item of a hash that is the `same`, or null.
    #[inline(always)]
    pub(super) fn find_slowly(&self, hash: u32, same: impl Fn(*mut ()) -> bool) -> *mut () {
        let peek = self.peek();
        // Behind its home line, as a rule.
        let find = |table: &Table| table.find(hash, || peek.check(), &same);
        if let Some(item) = self.at_hand(find) {
            return item;
        }
        let item = self.visit(|visit| self.set().core.get(visit, hash, same));
        self.set().core.acquaint(&self.access);
        item
    }
}

/// Looking up.
impl<P: Pointer, S: BuildHasher, A: Hold, H: Deref<Target = ItemSet<P, S>>> Inside<A, H> {
    /// The item of `key`, or null. The hash is not kept for what is rare: what does not fit into
    /// the processor's window is missing to the next lookup.
    #[inline(always)]
    pub(crate) fn find_key<Q: ?Sized + Hash + Equivalent<KeyOf<P>>>(&self, key: &Q) -> *mut () {
        self.glance(self.set().hash_of(key), key).unwrap_or_else(|| self.find_anew(key))
    }

    #[inline(never)]
    fn find_anew<Q: ?Sized + Hash + Equivalent<KeyOf<P>>>(&self, key: &Q) -> *mut () {
        self.find_slowly(self.set().hash_of(key), ItemSet::<P, S>::matcher(key))
    }

    /// A look at the home line, in the usual case. `None` says nothing.
    #[inline(always)]
    fn glance<Q: ?Sized + Equivalent<KeyOf<P>>>(&self, hash: u32, key: &Q) -> Option<*mut ()> {
        let same = ItemSet::<P, S>::matcher(key);
        self.at_hand(|table| table.glance(hash, || self.peek().check(), same))
    }

    #[inline(always)]
    pub(crate) fn find<Q: ?Sized + Equivalent<KeyOf<P>>>(&self, hash: u32, key: &Q) -> *mut () {
        self.glance(hash, key).unwrap_or_else(|| self.find_hashed(hash, key))
    }

    #[inline(never)]
    fn find_hashed<Q: ?Sized + Equivalent<KeyOf<P>>>(&self, hash: u32, key: &Q) -> *mut () {
        self.find_slowly(hash, ItemSet::<P, S>::matcher(key))
    }

    /// [`ItemSet::get`].
    #[inline(always)]
    pub fn get<Q: ?Sized + Hash + Equivalent<KeyOf<P>>>(&self, key: &Q) -> Option<&P::Item> {
        self.show(self.find_key(key))
    }

    /// [`ItemSet::get_hashed`].
    #[inline(always)]
    pub fn get_hashed<Q>(&self, hash: u32, key: &Q) -> Option<&P::Item>
    where
        Q: ?Sized + Hash + Equivalent<KeyOf<P>>,
    {
        debug_assert_eq!(hash, self.set().hash_of(key), "ItemSet: a hash of another key");
        self.show(self.find(brought(hash), key))
    }

    /// [`ItemSet::contains`].
    #[inline]
    pub fn contains<Q: ?Sized + Hash + Equivalent<KeyOf<P>>>(&self, key: &Q) -> bool {
        self.get(key).is_some()
    }

    /// [`ItemSet::prefetch`].
    #[inline]
    pub fn prefetch(&self, hash: u32) {
        self.visit(|visit| self.set().core.prefetch(visit, brought(hash)));
    }

    /// [`ItemSet::iter`]. Until the next quiet point, or the end of the guard, everything that is
    /// removed is held back.
    pub fn iter(&self) -> Iter<'_, P> {
        self.visit(|visit| Iter::new(&self.set().core, visit, false))
    }

    /// [`ItemSet::iter_exact`]. Until the next quiet point, or the end of the guard, everything
    /// that is removed is held back.
    pub fn iter_exact(&self) -> Iter<'_, P> {
        self.visit(|visit| Iter::new(&self.set().core, visit, true))
    }
}

/// Writing.
impl<P: Pointer, S: BuildHasher, A: Hold, H: Deref<Target = ItemSet<P, S>>> Inside<A, H> {
    /// [`ItemSet::insert`].
    #[inline]
    pub fn insert(&self, item: impl Into<P>) -> Option<&P::Item> {
        let item = Unplaced::new(item.into());
        // SAFETY: borrowed for this call.
        let hash = self.set().hash_of_item(unsafe { item.shown() });
        self.put_unplaced(hash, item)
    }

    /// [`ItemSet::put_hashed`].
    pub fn put_hashed<Q>(&self, hash: u32, key: &Q, item: Option<P>) -> Option<&P::Item>
    where
        Q: ?Sized + Hash + Equivalent<KeyOf<P>>,
    {
        debug_assert_eq!(hash, self.set().hash_of(key), "ItemSet: a hash of another key");
        debug_assert!(
            item.as_ref().is_none_or(|item| item.as_item().matches(key)),
            "ItemSet: an item of another key"
        );
        let want = if item.is_some() { Want::Put } else { Want::Remove };
        let same = ItemSet::<P, S>::matcher(key);
        self.retire_taken(expect(self.write(brought(hash), same, want, item)).0)
    }

    /// [`ItemSet::insert`] that hands back what was there as an owner, which drops it when that is
    /// safe.
    pub fn insert_owned(&self, item: impl Into<P>) -> Option<Removed<'_, P, Self>> {
        Removed::new(self, expect(self.write_item(Want::Put, item.into())).0)
    }

    /// [`ItemSet::insert_new`].
    pub fn insert_new(&self, item: impl Into<P>) -> Result<(), Rejected<&P::Item, P>> {
        expect(self.fallible().insert_new(item))
    }

    /// [`ItemSet::get_or_insert`].
    pub fn get_or_insert(&self, item: impl Into<P>) -> &P::Item {
        expect(self.fallible().get_or_insert(item))
    }

    /// [`ItemSet::get_or_insert_with`].
    pub fn get_or_insert_with<Q, I: Into<P>>(&self, key: &Q, make: impl FnOnce() -> I) -> &P::Item
    where
        Q: ?Sized + Hash + Equivalent<KeyOf<P>>,
    {
        expect(self.fallible().get_or_insert_with(key, make))
    }

    /// [`ItemSet::replace`].
    pub fn replace(&self, item: impl Into<P>) -> Result<&P::Item, P> {
        expect(self.fallible().replace(item))
    }

    /// [`ItemSet::update`].
    pub fn update<Q, I: Into<P>>(
        &self,
        key: &Q,
        update: impl FnMut(&P::Item) -> I,
    ) -> Option<&P::Item>
    where
        Q: ?Sized + Hash + Equivalent<KeyOf<P>>,
    {
        expect(self.fallible().update(key, update))
    }

    /// [`ItemSet::update_or_insert`].
    pub fn update_or_insert<I: Into<P>>(
        &self,
        update: impl FnMut(&P::Item) -> I,
        item: impl Into<P>,
    ) -> &P::Item {
        expect(self.fallible().update_or_insert(update, item))
    }

    /// [`ItemSet::update_or_insert_with`].
    pub fn update_or_insert_with<Q, I: Into<P>, J: Into<P>>(
        &self,
        key: &Q,
        update: impl FnMut(&P::Item) -> I,
        make: impl FnOnce() -> J,
    ) -> &P::Item
    where
        Q: ?Sized + Hash + Equivalent<KeyOf<P>>,
    {
        expect(self.fallible().update_or_insert_with(key, update, make))
    }

    /// [`ItemSet::compute`].
    pub fn compute<Q>(
        &self,
        key: &Q,
        compute: impl FnMut(Option<&P::Item>) -> Compute<P>,
    ) -> Computed<&P::Item>
    where
        Q: ?Sized + Hash + Equivalent<KeyOf<P>>,
    {
        expect(self.fallible().compute(key, compute))
    }

    /// [`ItemSet::compare_exchange`].
    pub fn compare_exchange(
        &self,
        current: &P::Item,
        new: impl Into<P>,
    ) -> Result<&P::Item, Rejected<Option<&P::Item>, P>> {
        expect(self.fallible().compare_exchange(current, new))
    }

    /// [`ItemSet::insert_many`].
    pub fn insert_many<I: Into<P>>(&self, items: impl IntoIterator<Item = I>) -> usize {
        expect(self.fallible().insert_many(items))
    }

    /// [`ItemSet::reserve`].
    pub fn reserve(&self, additional: usize) {
        expect(self.try_reserve(additional));
    }

    /// [`ItemSet::try_reserve`].
    pub fn try_reserve(&self, additional: usize) -> Result<(), AllocError> {
        let core = &self.set().core;
        let wanted = core.len().checked_add(additional).ok_or(AllocError::CapacityOverflow)?;
        let bits = core.settings.bits_for(wanted);
        self.visit(|visit| core.resize(visit, bits, |now, bits| now < bits))
    }
}

/// Taking out.
impl<P: Pointer, S: BuildHasher, A: Hold, H: Deref<Target = ItemSet<P, S>>> Inside<A, H> {
    /// [`ItemSet::remove`].
    #[inline]
    pub fn remove<Q: ?Sized + Hash + Equivalent<KeyOf<P>>>(&self, key: &Q) -> Option<&P::Item> {
        self.remove_known(self.set().hash_of(key), key)
    }

    /// [`ItemSet::remove`] that hands back what was there as an owner, which drops it when that is
    /// safe.
    pub fn remove_owned<Q>(&self, key: &Q) -> Option<Removed<'_, P, Self>>
    where
        Q: ?Sized + Hash + Equivalent<KeyOf<P>>,
    {
        let same = ItemSet::<P, S>::matcher(key);
        let written = self.write(self.set().hash_of(key), same, Want::Remove, None);
        Removed::new(self, expect(written).0)
    }

    /// [`ItemSet::remove_if`].
    pub fn remove_if<Q>(
        &self,
        key: &Q,
        mut condition: impl FnMut(&P::Item) -> bool,
    ) -> Result<Option<&P::Item>, &P::Item>
    where
        Q: ?Sized + Hash + Equivalent<KeyOf<P>>,
    {
        let hash = self.set().hash_of(key);
        while let Some(seen) = self.look_for(hash, key) {
            if !condition(seen) {
                return Err(seen);
            }
            if self.take(hash, seen) {
                return Ok(Some(seen));
            }
        }
        Ok(None)
    }

    /// [`ItemSet::retain`].
    pub fn retain(&self, mut keep: impl FnMut(&P::Item) -> bool) {
        for item in self.iter_exact() {
            if !keep(item) {
                self.take_seen(item);
            }
        }
    }

    /// [`ItemSet::clear`].
    pub fn clear(&self) {
        self.retain(|_| false);
    }

    /// [`ItemSet::drain`].
    pub fn drain(&self) -> Drain<'_, P, Self> {
        Drain::new(self, self.iter_exact())
    }

    /// [`ItemSet::shrink_to_fit`].
    pub fn shrink_to_fit(&self) {
        // Without memory for a smaller table the larger one serves on.
        let _ = self.visit(|visit| self.set().core.shrink(visit));
    }
}

impl<T, S, A, H> Inside<A, H>
where
    T: Item + Send + Sync,
    S: BuildHasher,
    A: Hold,
    H: Deref<Target = ItemSet<Arc<T>, S>>,
{
    /// The item of `key` as the set holds it, to be cloned by those who want to keep it.
    ///
    /// ```
    /// # use quintet::ItemSet;
    /// # use std::sync::Arc;
    /// let set = ItemSet::<Arc<String>>::new();
    /// set.insert("apple".to_string());
    /// let kept: Arc<String> = set.pin().get_arc("apple").unwrap().clone();
    /// drop(set);
    /// assert_eq!(*kept, "apple");
    /// ```
    #[inline(always)]
    pub fn get_arc<Q>(&self, key: &Q) -> Option<ArcRef<'_, T>>
    where
        Q: ?Sized + Hash + Equivalent<T::Key>,
    {
        let raw = self.find_key(key);
        // SAFETY: the set's raw items are `Arc<T>`s; found by this access, protected while it is
        // borrowed.
        (!raw.is_null()).then(|| unsafe { ArcRef::new(raw) })
    }
}

pub(super) fn expect<R>(result: Result<R, AllocError>) -> R {
    result.unwrap_or_else(|error| panic!("ItemSet: {error}"))
}
