//! The process's side of a store: left alone after failures, opened again where it was away, and in
//! a forked child.

use super::super::error::CacheError;
use super::super::view::{Global, View};
use super::super::{OpenError, TierCache};
use crate::store::{Credentials, Found, Record, Store, StoreAddress, StoreError, StoreStats};
use crate::sync::constant::{AtomicU64, Mutex};
use crate::sync::{AtomicPtr, Ordering, fork};
use crate::tier_cache::step::{Point, add};
use std::sync::OnceLock;
use std::time::SystemTime;

/// How a process opens the store of a cache.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Recipe {
    pub(in super::super) address: String,
    /// Which store it must be, if it was opened before and can tell.
    pub(in super::super) identity: Option<u64>,
    pub(in super::super) credentials: Option<Credentials>,
    /// The segment is another user's, and that is not enough to open what it names.
    pub(in super::super) is_foreign: bool,
    /// What segments of other users name is opened as well.
    pub(in super::super) trusted: bool,
}

impl Recipe {
    pub(in super::super) fn open(&self) -> Result<Box<dyn Store>, StoreError> {
        if self.is_foreign {
            return Err(StoreError::Refused(format!(
                "another user's segment names {}; allow that when you attach, if you trust it",
                self.address
            )));
        }
        let mut address: StoreAddress = self.address.parse()?;
        if let (StoreAddress::Redis { credentials, .. }, Some(own)) =
            (&mut address, &self.credentials)
        {
            *credentials = own.clone();
        }
        let store = address.open()?;
        if self.identity.is_some() && store.identity() != self.identity {
            return Err(StoreError::Refused(
                "it is not the store that this cache was made with, which was removed or \
                 replaced; put that back, or make the cache anew"
                    .into(),
            ));
        }
        Ok(store)
    }

    /// What the segment records: the address, and the store's identity behind it.
    pub(in super::super) fn note(&self, store: Option<&dyn Store>) -> String {
        match store.and_then(Store::identity) {
            Some(identity) => format!("{}#{identity:016x}", self.address),
            None => self.address.clone(),
        }
    }

    /// This recipe, for what a segment records.
    pub(in super::super) fn of_note(&self, note: &str, is_foreign: bool) -> Self {
        let known = note.rsplit_once('#').filter(|(_, digits)| digits.len() == 16);
        let known = known
            .and_then(|(address, digits)| Some((address, u64::from_str_radix(digits, 16).ok()?)));
        let (address, identity) = known.map_or((note, None), |(front, id)| (front, Some(id)));
        Self { address: address.to_owned(), identity, is_foreign, ..self.clone() }
    }
}

/// The store as one process has it. One that was forked has another, and leaves the parent's as it
/// is but for what that had open.
struct Side {
    forks: usize,
    opened: OnceLock<Box<dyn Store>>,
    /// Held by who opens it; the parent's side, until somebody does.
    opening: Mutex<Option<*mut Side>>,
    /// Why it is not open, once that was tried.
    refused: Mutex<Option<StoreError>>,
    /// When the store is asked again, or opened, on the pacing clock, and the failures in a row.
    alone_until: AtomicU64,
    failures: AtomicU64,
    last_error: Mutex<Option<String>>,
}

impl Side {
    fn new(before: Option<*mut Self>) -> Self {
        Self {
            forks: fork::seen().0,
            opened: OnceLock::new(),
            opening: Mutex::new(before),
            refused: Mutex::new(None),
            alone_until: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            last_error: Mutex::new(None),
        }
    }

    /// Whether it is left alone now.
    fn is_left_alone(&self) -> bool {
        // ORDERING: Relaxed, as in `fails`: a pause, nothing is published by it.
        super::super::clock::monotonic_ms() < self.alone_until.load(Ordering::Relaxed)
    }

    /// Leaves it alone for a while, the longer the more often it has failed.
    fn fails(&self) {
        // ORDERING: Relaxed, here and below: a pause, nothing is published by it.
        let failures = self.failures.fetch_add(1, Ordering::Relaxed);
        let pause = (FIRST_PAUSE << failures.min(10)).min(LONGEST_PAUSE);
        let until = super::super::clock::monotonic_ms() + pause;
        self.alone_until.store(until, Ordering::Relaxed);
    }

    /// Opens it, unless that is in vain now. Of several threads one opens it; the others wait for
    /// that the first time only.
    #[cold]
    fn open(&self, recipe: &Recipe) -> Result<&dyn Store, StoreError> {
        let refused = self.refused.lock().clone();
        let opening = match &refused {
            None => Some(self.opening.lock()),
            Some(StoreError::Unavailable(_)) if !self.is_left_alone() => self.opening.try_lock(),
            Some(_) => None,
        };
        let (mut opening, refused) = match (opening, refused) {
            (Some(opening), refused) => (opening, refused),
            (None, refused) => {
                let opening = || StoreError::Unavailable("it is being opened".into());
                return Err(refused.unwrap_or_else(opening));
            }
        };
        if let Some(store) = self.opened.get() {
            return Ok(&**store);
        }
        if let (None, Some(why)) = (refused, &*self.refused.lock()) {
            // Another thread was faster, and had no success.
            return Err(why.clone());
        }
        if let Some(before) = opening.take() {
            // SAFETY: the parent's side, in a child that this thread or the one that forked it is
            // the only one to have: the threads that used it did not come along, and whoever uses
            // the backing since uses the fresh side. It is taken once. The side itself stays, for
            // those who look at its forks.
            let opened = unsafe { &raw mut (*before).opened };
            // SAFETY: as above: dropped once, and never read again.
            unsafe { std::ptr::drop_in_place(opened) };
        }
        match recipe.open() {
            Ok(store) => {
                self.failures.store(0, Ordering::Relaxed);
                Ok(&**self.opened.get_or_init(|| store))
            }
            Err(why) => {
                self.fails();
                *self.refused.lock() = Some(why.clone());
                Err(why)
            }
        }
    }
}

/// The first pause after a failure, and the longest, in milliseconds.
const FIRST_PAUSE: u64 = 10;
const LONGEST_PAUSE: u64 = 1_000;

/// A question without an answer. Who may only read counts nothing.
fn count_failure(view: &View<'_>) {
    if view.writable {
        add(Point::Stat, view.global(Global::StoreErrors), 1);
    }
}

/// What this process knows of its cache's store.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct StoreState {
    /// The address, without credentials.
    pub address: String,
    /// Why it is not open in this process, if it is not: nothing is evicted then.
    pub closed: Option<String>,
    /// The last failure.
    pub last_error: Option<String>,
    /// It failed, and is not asked for a while.
    pub left_alone: bool,
    /// What happened to it in this process.
    pub stats: StoreStats,
}

/// The store of a cache.
pub(in super::super) struct Backing {
    recipe: Recipe,
    /// Never null. Replaced once in every forked child that uses it.
    side: AtomicPtr<Side>,
}

// SAFETY: the side is shared and has no interior but atomics, locks and a store, which is `Sync`;
// the one before it is only touched by who opens the next.
unsafe impl Send for Backing {}
// SAFETY: as above.
unsafe impl Sync for Backing {}

impl std::fmt::Debug for Backing {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Backing").field("address", &self.recipe.address).finish_non_exhaustive()
    }
}

impl Drop for Backing {
    fn drop(&mut self) {
        // ORDERING: Relaxed: whoever drops it has it alone.
        let side = self.side.load(Ordering::Relaxed);
        // SAFETY: made by `Box::into_raw`, and nobody borrows the backing any more.
        let side = unsafe { Box::from_raw(side) };
        if side.forks != fork::seen().0 {
            // The parent's: its connections and its environment are not ours to end.
            std::mem::forget(side);
        }
    }
}

impl Backing {
    /// Opens it, or notes why not: then it is tried again, unless it was refused for good.
    /// `opened`: it is open already.
    pub(in super::super) fn new(recipe: Recipe, opened: Option<Box<dyn Store>>) -> Self {
        let side = Side::new(None);
        match opened {
            Some(store) => _ = side.opened.set(store),
            // Why not is told to who asks for it.
            None => _ = side.open(&recipe),
        }
        Self { recipe, side: AtomicPtr::new(Box::into_raw(Box::new(side))) }
    }

    fn side(&self) -> &Side {
        // ORDERING: Acquire; partner: the exchange below, or the making of the backing.
        let side = self.side.load(Ordering::Acquire);
        // SAFETY: never null, and never freed before the backing is: what was replaced is leaked.
        let known = unsafe { &*side };
        if known.forks == fork::seen().0 { known } else { self.renew(side) }
    }

    #[cold]
    fn renew(&self, before: *mut Side) -> &Side {
        let fresh = Box::into_raw(Box::new(Side::new(Some(before))));
        // ORDERING: AcqRel: publishes the fresh one; Acquire: somebody else's.
        match self.side.compare_exchange(before, fresh, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: ours, published and never freed before the backing is.
            Ok(_) => unsafe { &*fresh },
            Err(other) => {
                // SAFETY: nobody has seen it.
                drop(unsafe { Box::from_raw(fresh) });
                // SAFETY: as in `side`.
                unsafe { &*other }
            }
        }
    }

    fn opened(&self) -> Result<&dyn Store, StoreError> {
        let side = self.side();
        side.opened.get().map_or_else(|| side.open(&self.recipe), |store| Ok(&**store))
    }

    /// The store may be asked, or why not (`stored` B5).
    pub(super) fn is_open(&self) -> Result<(), CacheError> {
        self.opened().map(|_| ()).map_err(|why| {
            let address = &self.recipe.address;
            CacheError::NoStore(format!("{address}: {why}"))
        })
    }

    /// Asks the store, unless it is being left alone.
    fn ask<R>(
        &self,
        view: &View<'_>,
        what: impl FnOnce(&dyn Store) -> Result<R, StoreError>,
    ) -> Result<R, StoreError> {
        let side = self.side();
        let store = self.opened()?;
        if side.is_left_alone() {
            count_failure(view);
            return Err(StoreError::Unavailable("it failed, and is left alone for a while".into()));
        }
        let answer = what(store);
        match &answer {
            Err(error) => {
                count_failure(view);
                *side.last_error.lock() = Some(error.to_string());
                if !matches!(error, StoreError::Late | StoreError::TooLarge { .. }) {
                    side.fails();
                }
            }
            Ok(_) => side.failures.store(0, Ordering::Relaxed),
        }
        answer
    }

    pub(super) fn put(
        &self,
        view: &View<'_>,
        batch: &[Record<'_>],
        until: SystemTime,
    ) -> Result<(), StoreError> {
        self.ask(view, |store| store.put_until(batch, until))?;
        add(Point::Stat, view.global(Global::StoreWrites), batch.len() as u64);
        Ok(())
    }

    pub(super) fn get(&self, view: &View<'_>, key: &[u8]) -> Result<Option<Found>, StoreError> {
        let found = self.ask(view, |store| store.get(&[key]))?;
        Ok(found.into_iter().next().flatten())
    }

    /// The greatest version the store was ever given.
    pub(in super::super) fn newest(&self) -> Result<u64, StoreError> {
        Ok(self.opened()?.newest()?.unwrap_or(0))
    }

    fn state(&self) -> StoreState {
        let side = self.side();
        let opened = self.opened();
        StoreState {
            address: self.recipe.address.clone(),
            closed: opened.as_ref().err().map(ToString::to_string),
            last_error: side.last_error.lock().clone(),
            left_alone: side.is_left_alone(),
            stats: opened.map(|store| store.stats()).unwrap_or_default(),
        }
    }
}

impl TierCache {
    /// The store of this cache, as this process has it; `None` if it has none.
    pub fn store_state(&self) -> Option<StoreState> {
        self.backing.as_ref().map(|backing| backing.state())
    }
}

impl From<StoreError> for OpenError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Backing {
    pub(super) fn last_error(&self) -> Option<String> {
        self.side().last_error.lock().clone()
    }
}
