//! The cache that processes share: entries over the hopscotch map, in fixed blocks.
//!
#![doc = include_str!("../../../docs/tier_cache_entries.md")]
//!
//! # Rooms
//!
//! | Room | Holds |
//! |---|---|
//! | `layout`, `view` | sizes, offsets, the arrays |
//! | `block`, `copy` | the words of an entry; how they are copied |
//! | `free` | free blocks: taken by exchange, found by bits |
//! | `read`, `quick` | certified copies, validated misses; the usual case |
//! | `write` | the frame of a writing operation |
//! | `evict`, `demand`, `sink` | recency, the hand, victims; those that somebody asks for; where they go |
//! | `policy` | least recently used, S3-FIFO, SIEVE |
//! | `sums` | what tells a damaged entry |
//! | `alarm` | wakes tasks that wait for a flight |
//! | `pool`, `outside` | handles for whoever has none; the operations of the cache itself |
//! | `ops`, `many`, `scan`, `typed`, `tagged` | conditional stores, batches, scans, typed fronts, values that say what they are |
//! | `spaces`, `flight`, `lease`, `maintain` | namespaces, single flight, pinned values, the optional thread |
//! | `members`, `quota` | what each process did and does for all; who is held to how much |
//! | `sweep` | orphans and outlived entries |
//! | `stored` | the store behind the cache |
//! | `tiers` | who moves down when, and up; what each tier holds |
//! | `clock`, `stats`, `hash`, `error` | what their names say |
//! | `builder`, `handle` | the public face |

mod accounts;
mod alarm;
mod block;
mod builder;
mod check;
mod clock;
mod copy;
mod demand;
mod error;
mod evict;
mod flight;
mod free;
mod handle;
mod hash;
mod layout;
mod lease;
mod maintain;
mod many;
mod members;
mod ops;
mod outside;
mod policy;
mod pool;
mod quick;
mod quota;
mod read;
mod reader;
mod scan;
mod sink;
mod spaces;
mod stats;
mod stored;
mod sums;
mod sweep;
mod tagged;
mod tiers;
mod typed;
mod view;
mod write;

#[cfg(all(test, quintet_loom))]
mod loom_tests;
#[cfg(all(test, quintet_shuttle, not(quintet_loom)))]
mod shuttle_tests;
#[cfg(all(
    test,
    not(quintet_private),
    target_os = "linux",
    not(any(quintet_loom, quintet_shuttle, miri))
))]
mod tests;

pub use crate::region::shm::{Access, Place, SegmentError};
pub use crate::tier_cache::OpenError;
pub use builder::CacheBuilder;
pub use check::CheckReport;
pub use error::CacheError;
pub use flight::{Begun, Flight};
pub use handle::{Handle, Inserted};
pub use layout::MAX_KEY;
pub use lease::Lease;
pub use maintain::{Maintained, Maintenance, Roles};
pub use members::{Attached, Holding};
pub use outside::OwnedHandle;
pub use policy::Policy;
pub use quota::Quota;
pub use reader::Reader;
pub use scan::{Scan, ScanPage, ScannedEntry};
pub use sink::{Departed, EvictionSink};
pub use spaces::{Namespace, NamespaceStats};
pub use stats::CacheStats;
pub use stored::StoreState;
pub use sweep::Swept;
pub use tagged::Tagged;
pub use tiers::TierStats;
#[cfg(feature = "serde")]
pub use typed::{Format, TypedHandle};

use crate::region::shm::{Segment, Shape};
use crate::store::Store;
use crate::tier_cache::MapError;
use crate::tier_cache::map::{Map, Upper};
use crate::tier_cache::shared::{settle, verify_machine};
use crate::tier_cache::step::{Point, add, raise};
use crate::tier_cache::word::Link;
use alarm::Alarm;
use layout::{FIELDS, KIND, Sizes, Stored, wanted};
use pool::Pool;
#[cfg(unix)]
use std::os::fd::OwnedFd;
use std::sync::Arc;
use stored::{Backing, LAST_BATCH, Recipe, Writer};
use view::{Global, View};

/// A cache of bytes under bytes that any number of processes share, with or without a name in the
/// file system.
///
/// # When to use
///
/// The processes of one machine want to share what one of them has fetched or computed, or a
/// program wants to find its cache again after a restart. Within one process moka or quick_cache
/// are simpler and keep values of any type; what must not be lost belongs into a database. With a
/// [store](crate::store) behind it, a cache holds more than memory, or is shared by machines.
///
/// # Example
///
/// ```
/// use quintet::TierCache;
/// use std::time::Duration;
///
/// let cache = TierCache::builder().capacity(64 << 20).create_sealed()?;
/// cache.insert_for("user:1", "Ada", Some(Duration::from_secs(300)))?;
/// assert_eq!(cache.get("user:1")?.as_deref(), Some(&b"Ada"[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A cache with a name is made by [`CacheBuilder::create_or_attach`] in one process and found by
/// the same call in all others. Size it by [`CacheBuilder::for_entries`] or by
/// [`CacheBuilder::capacity`].
///
/// # Consistency
///
/// What concerns one key is linearizable, across processes: after an insert or a remove has
/// returned, nobody reads an older value, whoever is killed. Batches and scans are not atomic; a
/// scan shows what is there throughout.
///
/// # Progress
///
/// A hit waits for nobody, not even for a writer that is stopped. Writes of keys of one bucket wait
/// for each other, at most as long as the handle's timeout, then fail with
/// [`Busy`](CacheError::Busy). What a killed process has begun is ended, or undone, by whoever
/// comes next.
///
/// # Growth
///
/// None: a cache has the size it was made with, and who needs room takes it from what was used
/// least recently ([`Policy`]), after what has expired.
///
/// # Memory
///
/// The capacity is kept to the byte, all that the cache needs for itself included. An entry takes
/// whole blocks, of 128 bytes by default: one holds a key of 16 bytes and a value of 64.
///
/// # Panics
///
/// No operation panics. A segment that was damaged gives misses and errors
/// ([`TierCache::check`] tells).
pub struct TierCache {
    segment: Arc<Segment>,
    sizes: Sizes,
    /// Only lent for as long as the cache is: see `view`.
    arrays: View<'static>,
    sink: Option<Box<dyn EvictionSink>>,
    pool: Pool,
    alarm: Alarm,
    /// What leaves goes there, if the segment names a store.
    backing: Option<Arc<Backing>>,
    writer: Writer,
}

impl Drop for TierCache {
    fn drop(&mut self) {
        self.writer.end(LAST_BATCH);
        self.pool.drain().into_iter().for_each(|parked| parked.leave(self));
    }
}

impl std::fmt::Debug for TierCache {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (segment, sizes) = (&self.segment, &self.sizes);
        let mut out = out.debug_struct("TierCache");
        out.field("segment", segment).field("sizes", sizes).finish_non_exhaustive()
    }
}

impl Upper for TierCache {
    fn free(&self, point: Point, link: Link, keeps: bool) -> Result<(), MapError> {
        self.view().free(point, link, keeps)
    }

    fn claim(&self, seat: u32, link: Link) -> bool {
        let view = self.view();
        view.set_claiming(seat, true);
        let claimed = view.claim(&*self.segment, seat, link);
        if !claimed {
            view.set_claiming(seat, false);
        }
        claimed
    }

    fn unclaim(&self, seat: u32, link: Link) {
        let view = self.view();
        view.unclaim(seat, link);
        view.set_claiming(seat, false);
    }

    fn recovered(&self, seat: u32, busy: bool) {
        let view = self.view();
        view.end_leases(seat);
        view.set_putting(seat, 0);
        add(Point::Sweep, view.global(Global::Recoveries), busy as u64);
        add(Point::Sweep, view.global(Global::SweepsWanted), 1);
        view.doubt_accounts();
    }
}

impl TierCache {
    /// Sizes and rights of a new cache.
    pub fn builder() -> CacheBuilder {
        CacheBuilder::default()
    }

    #[cfg(test)]
    fn create(place: &Place, sizes: Sizes, access: Access) -> Result<Self, OpenError> {
        Self::make(sizes, &Recipe::default(), |shape| Segment::create(place, shape, access))
    }

    #[cfg(test)]
    fn create_sealed(sizes: Sizes) -> Result<Self, OpenError> {
        Self::make(sizes, &Recipe::default(), Segment::create_sealed)
    }

    fn make(
        sizes: Sizes,
        recipe: &Recipe,
        create: impl FnOnce(&Shape<'_>) -> Result<Segment, SegmentError>,
    ) -> Result<Self, OpenError> {
        let values = sizes.fields();
        let fields: [_; FIELDS.len()] = std::array::from_fn(|at| (FIELDS[at], values[at]));
        let body = sizes.offsets().end;
        let processes = sizes.processes as usize;
        // A store that cannot be opened is told before there is a cache.
        let store = sizes.store.exists().then(|| recipe.open()).transpose()?;
        let (kind, format, note) = (KIND, sizes.format, recipe.note(store.as_deref()));
        let shape = Shape { kind, format, fields: &fields, processes, note: &note, body };
        let made = Self::enter(create(&shape)?, recipe, store)?;
        if let (Some(backing), true) = (&made.backing, sizes.store.has(Stored::ADOPTS)) {
            raise(Point::Version, made.view().global(Global::StoreBase), backing.newest()?);
        }
        // Every block is free. A creator that dies here leaves them to the sweep.
        made.view().sweep_orphans()?;
        Ok(made)
    }

    /// Attaches to a cache by its place. One that another user made, root excepted, is refused: see
    /// [`CacheBuilder::any_owner`].
    pub fn attach(place: &Place) -> Result<Self, OpenError> {
        Self::builder().attach(place)
    }

    /// Attaches to a cache to read only: the memory is mapped without the right to write.
    pub fn attach_read_only(place: &Place) -> Result<Self, OpenError> {
        Self::builder().attach_read_only(place)
    }

    fn open(
        place: &Place,
        writable: bool,
        any_owner: bool,
        recipe: &Recipe,
    ) -> Result<Self, OpenError> {
        Self::enter(Segment::attach(place, &wanted(any_owner), writable)?, recipe, None)
    }

    /// Attaches to a sealed cache by an inherited descriptor.
    #[cfg(unix)]
    pub fn attach_sealed(fd: OwnedFd) -> Result<Self, OpenError> {
        Self::enter(Segment::attach_sealed(fd, &wanted(true))?, &Recipe::default(), None)
    }

    /// `recipe`: what the caller knows of the store; `store`: it is open already.
    fn enter(
        segment: Segment,
        recipe: &Recipe,
        store: Option<Box<dyn Store>>,
    ) -> Result<Self, OpenError> {
        verify_machine(&segment)?;
        let fields = std::array::from_fn(|at| segment.field(at));
        let sizes = Sizes::from_fields(segment.format(), fields)?;
        let (expected, found) = (segment.max_processes(), sizes.processes as u64);
        if expected != found {
            return Err(SegmentError::Mismatch { field: "processes", expected, found }.into());
        }
        let (expected, found) = (sizes.offsets().end as u64, segment.body_bytes() as u64);
        let mismatch = SegmentError::Mismatch { field: "size in bytes", expected, found };
        let Some(view) = View::new(&segment, sizes).filter(|_| expected == found) else {
            return Err(mismatch.into());
        };
        // SAFETY: the arrays lie in the mapping, which stays where it is until the segment is
        // dropped, and the view is only lent for as long as the cache that owns the segment is
        // borrowed.
        let arrays = unsafe { std::mem::transmute::<View<'_>, View<'static>>(view) };
        let pool = Pool::new(sizes.seats);
        let backing = sizes.store.exists().then(|| {
            let is_foreign = store.is_none() && !recipe.trusted && segment.is_foreign();
            Arc::new(Backing::new(recipe.of_note(&segment.note(), is_foreign), store))
        });
        let (segment, alarm, writer) = (Arc::new(segment), Alarm::default(), Writer::default());
        let entered = Self { segment, sizes, arrays, sink: None, pool, alarm, backing, writer };
        settle(&entered.segment, || {
            entered.map().recover()?;
            // Blocks that only the processes of the former boot knew of.
            entered.view().sweep_orphans()?;
            entered.check().map(|_| ()).map_err(OpenError::Damaged)
        })?;
        Ok(entered)
    }

    /// The same cache for a thread that may outlive this value.
    fn twin(&self) -> Self {
        Self {
            segment: Arc::clone(&self.segment),
            sizes: self.sizes,
            arrays: self.arrays,
            sink: None,
            pool: Pool::new(self.sizes.seats),
            alarm: Alarm::default(),
            backing: self.backing.clone(),
            writer: Writer::default(),
        }
    }

    fn view(&self) -> &View<'_> {
        &self.arrays
    }

    fn map(&self) -> Map<'_> {
        Map::below(self.view().memory, &*self.segment, self)
    }

    /// Takes a seat for the calling thread. Dead peers' seats are recovered first if no other is
    /// free.
    pub fn handle(&self) -> Result<Handle<'_>, CacheError> {
        if !self.segment.is_writable() {
            return Err(CacheError::ReadOnly);
        }
        self.segment.me().map_err(|error| CacheError::Unjoined(error.to_string()))?;
        let map = self.map();
        // Whoever comes looks after those who went: their seats, and blocks that only they knew to
        // be free.
        map.recover()?;
        Ok(Handle::new(self, map.handle()?))
    }

    /// Read access without a seat.
    pub fn reader(&self) -> Reader<'_> {
        Reader::new(self.view(), self.backing.as_deref())
    }

    /// Entries, those that have expired unnoticed included. Exact while nobody writes.
    pub fn len(&self) -> u64 {
        self.view().len()
    }

    /// No entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What happened since the cache was created, in all processes.
    pub fn stats(&self) -> CacheStats {
        self.view().gather(self.segment.bytes() as u64)
    }

    /// Bytes of the segment.
    pub fn memory_bytes(&self) -> usize {
        self.segment.bytes()
    }

    /// Which entry leaves when room is needed.
    pub fn policy(&self) -> Policy {
        self.sizes.policy
    }

    /// The longest value.
    pub fn max_value(&self) -> usize {
        self.sizes.max_value as usize
    }

    /// The permission bits it was made with.
    fn mode(&self) -> u32 {
        self.segment.mode()
    }

    /// Completes or undoes what dead peers left, and finds their blocks.
    pub fn recover(&self) -> Result<Swept, CacheError> {
        if !self.segment.is_writable() {
            return Err(CacheError::ReadOnly);
        }
        self.map().recover()?;
        let swept = self.view().sweep_orphans()?;
        self.view().recount_accounts();
        Ok(swept)
    }

    /// Its name was removed: those who have it go on, nobody else comes.
    pub fn is_removed(&self) -> bool {
        self.segment.is_removed()
    }

    /// A descriptor that a child inherits, for [`TierCache::attach_sealed`].
    #[cfg(unix)]
    pub fn inheritable(&self) -> Result<OwnedFd, OpenError> {
        Ok(self.segment.inheritable()?)
    }

    /// Removes a cache's name; processes that use it go on undisturbed. What is no cache or other
    /// segment of this library is left alone: [`SegmentError::Foreign`].
    pub fn unlink(place: &Place) -> Result<(), OpenError> {
        Ok(Segment::remove(place)?)
    }
}
