//! The process's side of a store: opened once, left alone after failures, opened again in a forked
//! child.

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
        address.open()
    }
}

/// The store as one process has it. One that was forked has another, and leaves the parent's as it
/// is but for what that had open.
struct Side {
    forks: usize,
    opened: OnceLock<Result<Box<dyn Store>, StoreError>>,
    before: Option<*mut Side>,
    /// When the store is asked again, on the pacing clock, and the failures in a row.
    alone_until: AtomicU64,
    failures: AtomicU64,
    last_error: Mutex<Option<String>>,
}

impl Side {
    fn new(
        opened: OnceLock<Result<Box<dyn Store>, StoreError>>,
        before: Option<*mut Self>,
    ) -> Self {
        Self {
            forks: fork::seen().0,
            opened,
            before,
            alone_until: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            last_error: Mutex::new(None),
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
    /// Opens it, or notes why not. `opened`: it is open already.
    pub(in super::super) fn new(recipe: Recipe, opened: Option<Box<dyn Store>>) -> Self {
        let first = opened.map_or_else(|| recipe.open(), Ok);
        let side = Box::into_raw(Box::new(Side::new(OnceLock::from(first), None)));
        Self { recipe, side: AtomicPtr::new(side) }
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
        let fresh = Box::into_raw(Box::new(Side::new(OnceLock::new(), Some(before))));
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
        let opened = side.opened.get_or_init(|| {
            if let Some(before) = side.before {
                // SAFETY: the parent's side, in a child that this thread or the one that forked it
                // is the only one to have: the threads that used it did not come along, and whoever
                // uses the backing since uses the fresh side. This runs once. The side itself
                // stays, for those who look at its forks.
                let opened = unsafe { &raw mut (*before).opened };
                // SAFETY: as above: dropped once, and never read again.
                unsafe { std::ptr::drop_in_place(opened) };
            }
            self.recipe.open()
        });
        opened.as_ref().map(|store| &**store).map_err(StoreError::clone)
    }

    /// The store may be asked, or why not (B5).
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
        let now = super::super::clock::monotonic_ms();
        // ORDERING: Relaxed, here and below: a pause, nothing is published by it.
        if now < side.alone_until.load(Ordering::Relaxed) {
            count_failure(view);
            return Err(StoreError::Unavailable("it failed, and is left alone for a while".into()));
        }
        let answer = what(store);
        match &answer {
            Err(error) => {
                count_failure(view);
                *side.last_error.lock() = Some(error.to_string());
                if !matches!(error, StoreError::Late | StoreError::TooLarge { .. }) {
                    let failures = side.failures.fetch_add(1, Ordering::Relaxed);
                    let pause = (FIRST_PAUSE << failures.min(10)).min(LONGEST_PAUSE);
                    side.alone_until.store(now + pause, Ordering::Relaxed);
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
        let now = super::super::clock::monotonic_ms();
        StoreState {
            address: self.recipe.address.clone(),
            closed: opened.as_ref().err().map(ToString::to_string),
            last_error: side.last_error.lock().clone(),
            // ORDERING: Relaxed, as above.
            left_alone: now < side.alone_until.load(Ordering::Relaxed),
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
