//! Maintenance: what operations would otherwise do when they need it, done ahead.
//!
//! Nobody has to run it. Any number of processes may offer to, each for the roles of its choice;
//! for each role one of them is elected, and another takes over when it dies or ends.
//!
//! **O1.** A role has a word that names the process in office. Whoever offers takes it by exchange
//! if it names nobody, or a process that is proved dead.
//! **O2.** Two of one process may do the same work at once, and so may one that was elected while
//! its predecessor ends its round: everything they do anybody may do at any time.
//! **O3.** Who ends, also by a panic, gives up the offices it offered for, its process's other
//! threads are elected anew in their next round.

use super::TierCache;
use super::error::CacheError;
use super::handle::Handle;
use super::view::{Global, View};
use crate::sync::{Arc, AtomicBool, Ordering, fork, thread};
use crate::tier_cache::map::Peers;
use crate::tier_cache::step::{Point, exchange};
use crate::tier_cache::word::Owner;
use std::time::Duration;

/// Blocks one round looks at for outlived entries.
const EXPIRY_STEP: usize = 1 << 16;
/// Evictions of one round.
const EVICTION_STEP: usize = 1024;

/// What one round of maintenance did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Maintained {
    /// Outlived entries taken away.
    pub expired: usize,
    /// Entries evicted to get back to the reserve.
    pub evicted: usize,
    /// Entries moved down a tier.
    pub demoted: usize,
}

/// What a process can do for all that share a cache.
///
/// ```
/// use quintet::cache::Roles;
///
/// let roles = Roles::MAINTAIN | Roles::DEMOTE;
/// assert!(roles.contains(Roles::DEMOTE) && !roles.contains(Roles::DELIVER));
/// assert_eq!(roles.to_string(), "maintains, demotes");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Roles(u8);

impl Roles {
    /// None.
    pub const NONE: Self = Self(0);
    /// Recovers dead peers, finds their blocks, takes away outlived entries.
    pub const MAINTAIN: Self = Self(1);
    /// Moves entries down that are too many or too old for their tier.
    pub const DEMOTE: Self = Self(2);
    /// Evicts down to the reserve line, to the sink of its process: to be offered where the sink
    /// is.
    pub const DELIVER: Self = Self(4);
    /// All of them.
    pub const ALL: Self = Self(7);

    const EACH: [(Self, Global, &str); 3] = [
        (Self::MAINTAIN, Global::Maintainer, "maintains"),
        (Self::DEMOTE, Global::Demoter, "demotes"),
        (Self::DELIVER, Global::Deliverer, "delivers"),
    ];

    /// All of the others are among these.
    pub const fn contains(self, others: Self) -> bool {
        self.0 & others.0 == others.0
    }

    /// No role.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The word of each of these.
    fn words(self) -> impl Iterator<Item = (Self, Global)> {
        Self::EACH
            .into_iter()
            .filter(move |each| self.contains(each.0))
            .map(|each| (each.0, each.1))
    }
}

impl std::ops::BitOr for Roles {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl std::fmt::Display for Roles {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let held = Self::EACH.into_iter().filter(|each| self.contains(each.0));
        let names: Vec<_> = held.map(|each| each.2).collect();
        out.write_str(&names.join(", "))
    }
}

impl std::fmt::Debug for Roles {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Roles({self})")
    }
}

impl View<'_> {
    /// What this process does for all.
    pub(super) fn roles_of(&self, process: Owner) -> Roles {
        let holds = |word: Global| {
            // ORDERING: Relaxed: for whoever looks.
            self.global(word).load(Ordering::Relaxed) == process.0
        };
        let held = Roles::ALL.words().filter(|(_, word)| holds(*word));
        held.fold(Roles::NONE, |roles, (role, _)| roles | role)
    }

    pub(super) fn free_blocks(&self) -> usize {
        // ORDERING: Relaxed: an estimate.
        self.bits.iter().map(|word| word.load(Ordering::Relaxed).count_ones() as usize).sum()
    }

    /// Blocks that maintenance keeps free, so that sets need not evict: room for the longest value,
    /// and at least a 128th of all.
    pub(super) fn reserve(&self) -> usize {
        self.sizes.most_blocks().max(self.sizes.blocks as usize / 128)
    }
}

impl Handle<'_> {
    /// One round: recovers dead peers, finds their blocks, takes away outlived entries, moves
    /// entries down that are too many or too old for their tier, evicts down to the reserve line.
    pub fn maintain(&mut self) -> Result<Maintained, CacheError> {
        self.serve(Roles::ALL)
    }

    /// One round of what these roles are about.
    pub(super) fn serve(&mut self, roles: Roles) -> Result<Maintained, CacheError> {
        self.inner.begin_read()?;
        let mut done = Maintained::default();
        self.view.mark_time();
        if roles.contains(Roles::MAINTAIN) {
            self.reclaim(true)?;
            if self.view.may_have_outlived() {
                done.expired = self.expire(EXPIRY_STEP)?;
            }
            self.audit();
        }
        if roles.contains(Roles::DEMOTE) && self.view.memory.tiers() > 1 {
            done.demoted = self.maintain_tiers(EVICTION_STEP)?;
        }
        if roles.contains(Roles::DELIVER) && !self.spares() {
            let is_short = |handle: &Self| {
                let free = handle.view.free_blocks() + handle.inner.kept.len();
                free < handle.view.reserve()
            };
            while done.evicted < EVICTION_STEP && is_short(self) {
                if self.evict_one()? == 0 {
                    break;
                }
                done.evicted += 1;
            }
            // For everybody, not for the next set of this handle only.
            let view = self.view;
            self.inner.kept.drain(..).for_each(|block| view.offer_kept(block));
            self.dry = 0;
        }
        Ok(done)
    }
}

impl TierCache {
    /// Those of these roles that this process holds, or has just been elected to: nobody living
    /// held them (O1).
    fn elected(&self, roles: Roles) -> Roles {
        let Some(me) = Peers::me(&*self.segment) else { return Roles::NONE };
        let view = self.view();
        let is_ours = |word: Global| {
            let word = view.global(word);
            // ORDERING: Acquire; partner: the exchange of the last one.
            let elected = Owner(word.load(Ordering::Acquire));
            elected == me
                || (elected == Owner::NOBODY || Peers::is_dead(&*self.segment, elected))
                    && exchange(Point::Maintain, word, elected.0, me.0)
        };
        let ours = roles.words().filter(|(_, word)| is_ours(*word));
        ours.fold(Roles::NONE, |roles, (role, _)| roles | role)
    }

    /// Offers to do these things for all, in the calling thread, until `stop` is set: a round each
    /// `every` of those that this process is elected to. Any number of processes may offer. Who
    /// dies or ends is replaced by another that offers; [`TierCache::processes`] tells who does
    /// what.
    ///
    /// ```
    /// use quintet::cache::{Roles, TierCache};
    /// use std::sync::atomic::{AtomicBool, Ordering};
    /// use std::time::Duration;
    ///
    /// let cache = TierCache::builder().capacity(1 << 20).tiers(3).create_sealed()?;
    /// let stop = AtomicBool::new(false);
    /// std::thread::scope(|scope| {
    ///     let service = scope.spawn(|| {
    ///         cache.run_service(Roles::MAINTAIN | Roles::DEMOTE, Duration::from_millis(1), &stop)
    ///     });
    ///     while !cache.processes().iter().any(|process| process.roles.contains(Roles::DEMOTE)) {
    ///         std::thread::yield_now();
    ///     }
    ///     stop.store(true, Ordering::Relaxed);
    ///     service.join().expect("does not panic")
    /// })?;
    /// assert!(cache.processes().iter().all(|process| process.roles.is_empty()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn run_service(
        &self,
        roles: Roles,
        every: Duration,
        stop: &AtomicBool,
    ) -> Result<(), CacheError> {
        let mut handle = self.handle()?;
        let _office = Office(self, roles);
        // ORDERING: Relaxed: it need not be noticed at once.
        while !stop.load(Ordering::Relaxed) {
            let elected = self.elected(roles);
            if !elected.is_empty() {
                match handle.serve(elected) {
                    Ok(_) | Err(CacheError::Busy | CacheError::Sink(_) | CacheError::Full) => {}
                    Err(error) => return Err(error),
                }
            }
            crate::sync::park_timeout(every);
        }
        Ok(())
    }

    /// [`TierCache::run_service`] in all roles.
    pub fn run_maintenance(&self, every: Duration, stop: &AtomicBool) -> Result<(), CacheError> {
        self.run_service(Roles::ALL, every, stop)
    }

    /// Starts a thread that runs maintenance until the returned guard is dropped.
    #[cfg(not(any(quintet_loom, quintet_shuttle)))] // a checker's `Arc` cannot be `self`
    pub fn spawn_maintenance(self: &Arc<Self>, every: Duration) -> Maintenance {
        self.spawn_service(Roles::ALL, every)
    }

    /// Starts a thread that serves in these roles ([`TierCache::run_service`]) until the returned
    /// guard is dropped.
    ///
    /// ```
    /// use quintet::cache::{Roles, TierCache};
    /// use std::sync::Arc;
    /// use std::time::Duration;
    ///
    /// let cache = Arc::new(TierCache::builder().capacity(1 << 20).create_sealed()?);
    /// let service = cache.spawn_service(Roles::DELIVER, Duration::from_millis(10));
    /// cache.insert("key", "value")?;
    /// drop(service);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(not(any(quintet_loom, quintet_shuttle)))] // a checker's `Arc` cannot be `self`
    pub fn spawn_service(self: &Arc<Self>, roles: Roles, every: Duration) -> Maintenance {
        let stop = Arc::new(AtomicBool::new(false));
        let (cache, told) = (Arc::clone(self), Arc::clone(&stop));
        let thread = thread::spawn(move || {
            // An error ends the thread; operations go on without it.
            let _ = cache.run_service(roles, every, &told);
        });
        Maintenance { stop, thread: Some(thread), forks: fork::seen().0 }
    }
}

/// Whoever ends its service, also by a panic of its sink, makes way for another (O3). Threads of
/// the same process that serve on are elected anew in their next round.
struct Office<'c>(&'c TierCache, Roles);

impl Drop for Office<'_> {
    fn drop(&mut self) {
        // A forked child is somebody else, and was not elected.
        if let Some(me) = Peers::me(&*self.0.segment) {
            for (_, word) in self.1.words() {
                exchange(Point::Maintain, self.0.view().global(word), me.0, 0);
            }
        }
    }
}

/// A running maintenance thread; stopped on drop, which waits for its end. A sink may drop the
/// guard of the thread it is called by: that ends after its round. In a forked child there is no
/// such thread, and nothing to wait for.
#[derive(Debug)]
pub struct Maintenance {
    stop: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
    forks: usize,
}

impl Drop for Maintenance {
    fn drop(&mut self) {
        // ORDERING: Relaxed: the unpark and the join order it.
        self.stop.store(true, Ordering::Relaxed);
        let Some(thread) = self.thread.take() else { return };
        if fork::seen().0 != self.forks {
            // What the handle names did not come along: it can be neither joined nor detached.
            std::mem::forget(thread);
        } else if thread.thread().id() != thread::current().id() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}
