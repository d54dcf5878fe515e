//! A thread's access to a set.

use super::ItemSet;
use super::at_once::Wish;
use super::core::Want;
use super::item::{Item, Pointer};
use super::iter::Iter;
use super::owned::{ArcRef, Removed};
use super::table::Table;
use super::word::brought;
use super::write::Unplaced;
use crate::hasher::DefaultHashBuilder;
use crate::reclaim::{self, Hold, Peek, Pinned, QuietHandle, Visit};
use crate::region::AllocError;
use std::fmt;
use std::hash::BuildHasher;
use std::ptr;
use std::sync::Arc;

/// The key of a set's items.
pub(crate) type KeyOf<P> = <<P as Pointer>::Item as Item>::Key;

/// Access to an [`ItemSet`] for one thread: from [`ItemSet::handle`] with quiet points, from [`ItemSet::pin`] as a guard.
///
/// References last as long as the access is borrowed. An access of the first kind must come to a quiet point now and then
/// ([`quiescent`](Self::quiescent)), where none is left:
///
/// ```compile_fail
/// # use quintet::{ItemSet, item_set::Keyed};
/// # struct Word(String);
/// # impl Keyed for Word { type Key = str; fn key(&self) -> &str { &self.0 } }
/// # let set = ItemSet::<Box<Word>>::new();
/// let mut handle = set.handle();
/// let word = handle.get("apple");
/// handle.quiescent(); // `word` is still borrowed
/// assert!(word.is_none());
/// ```
///
/// Use what you found first, or clone it:
///
/// ```
/// # use quintet::{ItemSet, item_set::Keyed};
/// # struct Word(String);
/// # impl Keyed for Word { type Key = str; fn key(&self) -> &str { &self.0 } }
/// # let set = ItemSet::<Box<Word>>::new();
/// let mut handle = set.handle();
/// let word = handle.get("apple").map(|word| word.0.clone());
/// handle.quiescent();
/// assert!(word.is_none());
/// ```
///
/// An access is `Send` if it is a handle, and never `Sync`:
///
/// ```compile_fail
/// # use quintet::{ItemSet, item_set::Keyed};
/// # struct Word(String);
/// # impl Keyed for Word { type Key = str; fn key(&self) -> &str { &self.0 } }
/// let set = ItemSet::<Box<Word>>::new();
/// let handle = set.handle();
/// std::thread::scope(|scope| scope.spawn(|| handle.get("apple").is_some()));
/// ```
pub struct Handle<'s, P: Pointer, S = DefaultHashBuilder, A: Hold = QuietHandle> {
    pub(super) set: &'s ItemSet<P, S>,
    pub(super) access: A,
}

/// A guard: access through the calling thread's own seat, for as long as it lives.
pub type Pin<'s, P, S = DefaultHashBuilder> = Handle<'s, P, S, Pinned<'s>>;

/// While this lives, its handle holds nothing back.
#[derive(Debug)]
pub struct Offline<'h>(#[allow(dead_code)] reclaim::Offline<'h>);

impl<P: Pointer, S, A: Hold> fmt::Debug for Handle<'_, P, S, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").finish_non_exhaustive()
    }
}

impl<'s, P: Pointer, S> Handle<'s, P, S> {
    pub(super) fn new(set: &'s ItemSet<P, S>) -> Self {
        Self { set, access: set.core.domain.join_quiet() }
    }

    /// A quiet point: no reference is held, as the borrow checker has seen. What was removed before may be freed.
    #[inline]
    pub fn quiescent(&mut self) {
        self.access.quiescent();
        self.set.core.acquaint(&self.access);
    }

    /// A quiet point that lasts until the guard drops: for threads that park.
    pub fn offline(&mut self) -> Offline<'_> {
        Offline(self.access.offline())
    }

    /// A quiet point that also frees all it can, and gives back the memory of tables that were left.
    pub fn flush(&mut self) {
        self.access.flush();
    }
}

impl<'s, P: Pointer, S> Pin<'s, P, S> {
    pub(super) fn pin(set: &'s ItemSet<P, S>) -> Self {
        Self { set, access: Pinned::new(&set.core.domain) }
    }
}

impl<'s, P: Pointer, S, A: Hold> Handle<'s, P, S, A> {
    /// The set.
    pub fn set(&self) -> &'s ItemSet<P, S> {
        self.set
    }

    #[inline(always)]
    pub(super) fn visit<R>(&self, work: impl FnOnce(&Visit<'_>) -> R) -> R {
        self.access.view(work)
    }

    /// An item that this access found, for as long as it is borrowed.
    #[inline(always)]
    pub(super) fn show(&self, raw: *mut ()) -> Option<&P::Item> {
        // SAFETY: the set's raw items are items of `P`; found by this access, they are not freed before its next quiet point,
        // which needs it mutably, or its end.
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
        unsafe { reclaim::Retired::new(raw, bytes, birth, free::<P>) }
    }

    /// Retires an item that was taken out of the set.
    pub(super) fn retire(&self, raw: *mut (), birth: u64) {
        let piece = Self::piece(raw, birth);
        // SAFETY: both tables were changed before, and the writer that took the item out retires it.
        self.visit(|visit| unsafe { visit.retire(piece) });
    }
}

impl<P: Pointer, S: BuildHasher, A: Hold> Handle<'_, P, S, A> {
    /// The item of `key`.
    #[inline(always)]
    pub fn get(&self, key: &KeyOf<P>) -> Option<&P::Item> {
        self.show(self.find_key(key))
    }

    /// The item of `key`, or null. The hash is not kept for what is rare: what does not fit into the processor's window is missing to the next lookup.
    #[inline(always)]
    fn find_key(&self, key: &KeyOf<P>) -> *mut () {
        self.glance(self.set.hash_of(key), key).unwrap_or_else(|| self.find_anew(key))
    }

    #[inline(never)]
    fn find_anew(&self, key: &KeyOf<P>) -> *mut () {
        self.find_slowly(self.set.hash_of(key), key)
    }

    /// A look at the home line, in the usual case. `None` says nothing.
    #[inline(always)]
    fn glance(&self, hash: u32, key: &KeyOf<P>) -> Option<*mut ()> {
        let same = ItemSet::<P, S>::matcher(key);
        self.at_hand(|table| table.glance(hash, || self.peek().check(), same))
    }

    /// Works with the root in the usual case. `None` says nothing.
    #[inline(always)]
    pub(super) fn at_hand<R>(&self, work: impl FnOnce(&Table) -> Option<R>) -> Option<R> {
        self.set.core.at_hand(&self.access, work)
    }

    /// A look with what the section remembers.
    #[inline(always)]
    pub(super) fn peek(&self) -> Peek<'_> {
        self.access.recall()
    }

    #[inline(always)]
    pub(super) fn find(&self, hash: u32, key: &KeyOf<P>) -> *mut () {
        self.glance(hash, key).unwrap_or_else(|| self.find_slowly(hash, key))
    }

    #[inline(never)]
    fn find_slowly(&self, hash: u32, key: &KeyOf<P>) -> *mut () {
        let same = ItemSet::<P, S>::matcher(key);
        let peek = self.peek();
        // Behind its home line, as a rule.
        let find = |table: &Table| table.find(hash, || peek.check(), &same);
        if let Some(item) = self.at_hand(find) {
            return item;
        }
        let item = self.visit(|visit| self.set.core.get(visit, hash, same));
        self.set.core.acquaint(&self.access);
        item
    }

    /// The item of `key`, whose [hash](ItemSet::hash_of) is known. With a foreign hash the item is not found; debug builds panic.
    #[inline(always)]
    pub fn get_hashed(&self, hash: u32, key: &KeyOf<P>) -> Option<&P::Item> {
        debug_assert_eq!(hash, self.set.hash_of(key), "ItemSet: a hash of another key");
        self.show(self.find(brought(hash), key))
    }

    /// True if there is an item of `key`.
    #[inline]
    pub fn contains(&self, key: &KeyOf<P>) -> bool {
        self.get(key).is_some()
    }

    /// Asks the cache for the place of a key that will be looked up soon.
    #[inline]
    pub fn prefetch(&self, hash: u32) {
        self.visit(|visit| self.set.core.prefetch(visit, brought(hash)));
    }

    /// Puts an item into the set. Returns the one it replaces, which the set drops when nobody can refer to it any more.
    ///
    /// # Panics
    /// If a larger table is needed and memory for it cannot be had: see [`try_put`](Self::try_put).
    #[inline]
    pub fn put(&self, item: impl Into<P>) -> Option<&P::Item> {
        let item = Unplaced::new(item.into());
        // SAFETY: borrowed for this call.
        let hash = self.set.hash_of_item(unsafe { item.shown() });
        self.put_unplaced(hash, item)
    }

    /// Puts an item into the set. If there is no memory for a table that is needed, the item is dropped and the set is as it was.
    pub fn try_put(&self, item: impl Into<P>) -> Result<Option<&P::Item>, AllocError> {
        let (outcome, _) = self.write_item(Want::Put, item.into())?;
        Ok(self.retire_taken(outcome))
    }

    /// The one operation under all others: puts the item of `key`, or removes it. The hash is that of the key, and the
    /// key that of the item; debug builds check both. With others the item is lost, nothing worse.
    pub fn put_hashed(&self, hash: u32, key: &KeyOf<P>, item: Option<P>) -> Option<&P::Item> {
        debug_assert_eq!(hash, self.set.hash_of(key), "ItemSet: a hash of another key");
        debug_assert!(
            item.as_ref().is_none_or(|item| item.as_item().matches(key)),
            "ItemSet: an item of another key"
        );
        let want = if item.is_some() { Want::Put } else { Want::Remove };
        let same = ItemSet::<P, S>::matcher(key);
        self.retire_taken(expect(self.write(brought(hash), same, want, item)).0)
    }

    /// Puts an item into the set. Hands back the one it replaces as an owner, which drops it when that is safe.
    pub fn put_owned(&self, item: impl Into<P>) -> Option<Removed<'_, P, S, A>> {
        Removed::new(self, expect(self.write_item(Want::Put, item.into())).0)
    }

    /// Puts an item into the set only if there is none of its key; otherwise drops it and returns the one that is there.
    pub fn insert_new(&self, item: impl Into<P>) -> Result<(), &P::Item> {
        let (outcome, _) = expect(self.write_item(Want::New, item.into()));
        self.show(outcome.before).map_or(Ok(()), Err)
    }

    /// Puts an item into the set only if there is one of its key, and returns that one; otherwise hands the item back.
    pub fn replace(&self, item: impl Into<P>) -> Result<&P::Item, P> {
        match expect(self.write_item(Want::Replace, item.into())) {
            (_, Some(item)) => Err(item),
            (outcome, None) => Ok(self.retire_taken(outcome).unwrap_or_else(|| unreachable!())),
        }
    }

    /// Removes the item of `key`.
    #[inline]
    pub fn remove(&self, key: &KeyOf<P>) -> Option<&P::Item> {
        let same = ItemSet::<P, S>::matcher(key);
        let hash = self.set.hash_of(key);
        match self.change_at_once(Wish { hash, item: ptr::null_mut() }, &same) {
            Some(taken) => self.answer(taken),
            None => self.retire_taken(expect(self.write_locked(hash, same, Want::Remove, None)).0),
        }
    }

    /// Removes the item of `key`. Hands it back as an owner, which drops it when that is safe.
    pub fn remove_owned(&self, key: &KeyOf<P>) -> Option<Removed<'_, P, S, A>> {
        let same = ItemSet::<P, S>::matcher(key);
        let written = self.write(self.set.hash_of(key), same, Want::Remove, None);
        Removed::new(self, expect(written).0)
    }

    /// The item of `key`; if there is none, the one that `make` returns. `make` runs with no lock held, so that it may use
    /// the set; if another thread puts an item of this key first, that one is returned and the one just made is dropped. Several threads may run
    /// `make` for one key at once: nobody waits for anybody's.
    ///
    /// # Panics
    /// If `make` returns an item of another key, or memory is needed and cannot be had.
    pub fn get_or_insert_with<I: Into<P>>(
        &self,
        key: &KeyOf<P>,
        make: impl FnOnce() -> I,
    ) -> &P::Item {
        let hash = self.set.hash_of(key);
        if let Some(found) = self.get_hashed(hash, key) {
            return found;
        }
        let item: P = make().into();
        assert!(
            item.as_item().matches(key),
            "ItemSet: `make` must return an item of the key it was called for"
        );
        let same = ItemSet::<P, S>::matcher(key);
        let (outcome, _) = expect(self.write(hash, same, Want::New, Some(item)));
        let item = if outcome.placed { outcome.item } else { outcome.before };
        self.show(item).unwrap_or_else(|| unreachable!("either placed or found"))
    }

    /// All items, in no order; in that of their first insertion if the set is [`ordered`](super::ItemSetBuilder::ordered), until it is first rebuilt (grown, shrunk or
    /// compacted). An item that is there throughout is seen; one that comes or goes meanwhile may be. Ends a migration under way first.
    ///
    /// Until the next quiet point, or the end of the guard, everything that is removed is held back.
    pub fn iter(&self) -> Iter<'_, P> {
        self.visit(|visit| Iter::new(&self.set.core, visit, false))
    }

    /// The items that are there now: each that is there throughout is seen exactly once. Items that are put later are not waited
    /// for. When the set is rebuilt meanwhile, the walk goes on in the table it began with, and may show what was removed since.
    ///
    /// Until the next quiet point, or the end of the guard, everything that is removed is held back.
    pub fn iter_exact(&self) -> Iter<'_, P> {
        self.visit(|visit| Iter::new(&self.set.core, visit, true))
    }

    /// Removes the items for which `keep` says no; each one that it has said no to, if it is still the one in the set.
    /// `keep` runs with no lock held.
    pub fn retain(&self, mut keep: impl FnMut(&P::Item) -> bool) {
        for item in self.iter_exact() {
            if !keep(item) {
                let raw = ptr::from_ref(item).cast_mut().cast::<()>();
                let same = |other: *mut ()| ptr::eq(other, raw);
                let hash = self.set.hash_of_item(item);
                self.retire_taken(expect(self.write(hash, same, Want::Remove, None)).0);
            }
        }
    }

    /// Removes the items that are there now.
    pub fn clear(&self) {
        self.retain(|_| false);
    }

    /// Makes room for `additional` more items at once, so that they can be put without growth.
    ///
    /// # Panics
    /// If the memory cannot be had.
    pub fn reserve(&self, additional: usize) {
        expect(self.try_reserve(additional));
    }

    /// Makes room for `additional` more items at once, or says why that cannot be.
    pub fn try_reserve(&self, additional: usize) -> Result<(), AllocError> {
        let core = &self.set.core;
        let wanted = core.len().checked_add(additional).ok_or(AllocError::CapacityOverflow)?;
        let bits = core.settings.bits_for(wanted);
        self.visit(|visit| core.resize(visit, bits, |now, bits| now < bits))
    }

    /// Moves to the smallest table that holds what is there.
    pub fn shrink_to_fit(&self) {
        // Without memory for a smaller table the larger one serves on.
        let _ = self.visit(|visit| self.set.core.shrink(visit));
    }
}

impl<T: Item + Send + Sync, S: BuildHasher, A: Hold> Handle<'_, Arc<T>, S, A> {
    /// The item of `key` as the set holds it, to be cloned by those who want to keep it.
    ///
    /// ```
    /// # use quintet::{ItemSet, item_set::Keyed};
    /// # use std::sync::Arc;
    /// # struct Word(String);
    /// # impl Keyed for Word { type Key = str; fn key(&self) -> &str { &self.0 } }
    /// let set = ItemSet::<Arc<Word>>::new();
    /// set.pin().put(Word("apple".into()));
    /// let kept: Arc<Word> = set.pin().get_arc("apple").unwrap().clone();
    /// drop(set);
    /// assert_eq!(kept.0, "apple");
    /// ```
    #[inline(always)]
    pub fn get_arc(&self, key: &T::Key) -> Option<ArcRef<'_, T>> {
        let raw = self.find_key(key);
        // SAFETY: the set's raw items are `Arc<T>`s; found by this access, protected while it is borrowed.
        (!raw.is_null()).then(|| unsafe { ArcRef::new(raw) })
    }
}

pub(super) fn expect<R>(result: Result<R, AllocError>) -> R {
    result.unwrap_or_else(|error| panic!("ItemSet: {error}"))
}
