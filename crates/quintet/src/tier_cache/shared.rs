//! The map in a shared segment.

use super::memory::{Geometry, Memory, RECORD_WORDS, SEAT_WORDS};
use super::{Left, Map, OpenError, Owner, Peers};
use crate::region::shm::{Access, Place, SHARED, Segment, SegmentError, Shape, Wanted};
use crate::sync::{AtomicPair, AtomicU64, MODEL, fork};
#[cfg(unix)]
use std::os::fd::OwnedFd;

const KIND: u64 = u64::from_le_bytes(*b"tier-map");
const FORMAT: u64 = 2;
/// Processes that can take part at once.
const PROCESSES: usize = 256;
const FIELDS: [&str; 4] = ["buckets", "window", "records", "seats"];

/// Where each array begins in the body, and where the last one ends.
struct Offsets {
    controls: usize,
    cells: usize,
    records: usize,
    end: usize,
}

fn offsets(geometry: Geometry) -> Offsets {
    let line = |bytes: usize| bytes.next_multiple_of(64);
    let controls = line(geometry.seats as usize * SEAT_WORDS * 8);
    let cells = controls + line(geometry.buckets as usize * 8);
    let records = cells + line(geometry.cells() * size_of::<AtomicPair>());
    let end = records + line(geometry.records as usize * RECORD_WORDS * 8);
    Offsets { controls, cells, records, end }
}

type OwnedSink = Box<dyn Fn(Left) + Sync + Send>;

/// A map that processes share.
pub struct SharedMap {
    segment: Segment,
    geometry: Geometry,
    sink: OwnedSink,
}

impl std::fmt::Debug for SharedMap {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("SharedMap").field("segment", &self.segment).finish_non_exhaustive()
    }
}

impl Peers for Segment {
    fn me(&self) -> Option<Owner> {
        if !self.is_writable() {
            return None;
        }
        Segment::me(self).ok().map(|(slot, incarnation)| Owner::new(slot, incarnation))
    }

    fn is_dead(&self, owner: Owner) -> bool {
        Segment::is_dead(self, owner.slot(), owner.incarnation())
    }

    fn forks(&self) -> usize {
        fork::seen().0
    }
}

/// Lets `repair` find a segment in order if the machine restarted since it was last used. Whoever
/// comes first repairs; the others wait and find it done. A process takes a slot of the segment
/// only for that, and when it first writes.
pub(super) fn settle(
    segment: &Segment,
    repair: impl FnOnce() -> Result<(), OpenError>,
) -> Result<(), OpenError> {
    if !segment.is_writable() || !segment.is_from_another_boot() {
        return Ok(());
    }
    let _turn = segment.repair_turn()?;
    if segment.is_from_another_boot() {
        Segment::me(segment)?;
        // Somebody who cannot tell which boot this is may be at work already: then it is of this
        // one.
        if segment.is_alone() {
            let repaired = repair();
            if segment.is_alone() {
                repaired?;
            }
        }
        segment.adopt_boot();
    }
    Ok(())
}

/// Cells are read and written as one: not on every machine, and not everywhere in memory that may
/// only be read.
pub(super) fn verify_machine(segment: &Segment) -> Result<(), OpenError> {
    let shared = MODEL || !SHARED || AtomicPair::can_be_shared(segment.is_writable());
    if shared { Ok(()) } else { Err(SegmentError::Unsupported.into()) }
}

impl SharedMap {
    /// Makes a new map.
    pub fn create(place: &Place, geometry: Geometry, access: Access) -> Result<Self, OpenError> {
        Self::make(geometry, |shape| Segment::create(place, shape, access))
    }

    /// Makes a map without a name whose memory cannot be truncated, to hand to children.
    pub fn create_sealed(geometry: Geometry) -> Result<Self, OpenError> {
        Self::make(geometry, Segment::create_sealed)
    }

    fn make(
        geometry: Geometry,
        create: impl FnOnce(&Shape<'_>) -> Result<Segment, SegmentError>,
    ) -> Result<Self, OpenError> {
        let geometry = geometry.verify()?;
        let values = [geometry.buckets, geometry.window, geometry.records, geometry.seats];
        let fields: [_; 4] = std::array::from_fn(|at| (FIELDS[at], values[at] as u64));
        let body = offsets(geometry).end;
        let processes = PROCESSES;
        let shape =
            Shape { kind: KIND, format: FORMAT, fields: &fields, processes, note: "", body };
        Self::enter(create(&shape)?)
    }

    /// Enters a map by its place. A geometry that is given must be the map's own.
    pub fn attach(place: &Place, geometry: Option<Geometry>) -> Result<Self, OpenError> {
        Self::enter(Segment::attach(place, &wanted(&sizes(geometry)), true)?)
    }

    /// Enters a map to read only.
    pub fn attach_read_only(place: &Place) -> Result<Self, OpenError> {
        Self::enter(Segment::attach(place, &wanted(&sizes(None)), false)?)
    }

    /// Enters a sealed map by an inherited descriptor.
    #[cfg(unix)]
    pub fn attach_sealed(fd: OwnedFd) -> Result<Self, OpenError> {
        Self::enter(Segment::attach_sealed(fd, &wanted(&sizes(None)))?)
    }

    fn enter(segment: Segment) -> Result<Self, OpenError> {
        verify_machine(&segment)?;
        let field = |at| u32::try_from(segment.field(at)).unwrap_or(0);
        let [buckets, window, records, seats] = std::array::from_fn(field);
        let geometry = Geometry { buckets, window, records, seats }.verify()?;
        let entered = Self { segment, geometry, sink: Box::new(|_| {}) };
        let (expected, found) = (offsets(geometry).end, entered.segment.body_bytes());
        if expected != found || entered.arrays().is_none() {
            let (expected, found) = (expected as u64, found as u64);
            return Err(SegmentError::Mismatch { field: "size in bytes", expected, found }.into());
        }
        settle(&entered.segment, || {
            entered.map().recover()?;
            entered.map().check().map(|_| ()).map_err(OpenError::Damaged)
        })?;
        Ok(entered)
    }

    /// Sets who receives entries that leave.
    pub fn set_sink(&mut self, sink: impl Fn(Left) + Sync + Send + 'static) {
        self.sink = Box::new(sink);
    }

    fn arrays(&self) -> Option<Memory<'_>> {
        let geometry = self.geometry;
        let at = offsets(geometry);
        Some(Memory::new(
            geometry,
            self.segment.slice::<AtomicU64>(at.controls, geometry.buckets as usize)?,
            self.segment.slice::<AtomicPair>(at.cells, geometry.cells())?,
            self.segment
                .slice::<AtomicU64>(at.records, geometry.records as usize * RECORD_WORDS)?,
            self.segment.slice::<AtomicU64>(0, geometry.seats as usize * SEAT_WORDS)?,
        ))
    }

    /// The map.
    pub fn map(&self) -> Map<'_> {
        let memory = self.arrays().expect("verified when the segment was entered");
        Map::new(memory, &self.segment, &*self.sink)
    }

    /// The seed for hashes that every process must agree on.
    pub fn seed(&self) -> u64 {
        self.segment.seed()
    }

    /// A descriptor that a child inherits, for [`SharedMap::attach_sealed`].
    #[cfg(unix)]
    pub fn inheritable(&self) -> Result<OwnedFd, OpenError> {
        Ok(self.segment.inheritable()?)
    }

    /// Removes a map's name; processes that use it go on undisturbed.
    pub fn remove(place: &Place) -> Result<(), OpenError> {
        Ok(Segment::remove(place)?)
    }
}

type Fields = [(&'static str, Option<u64>); 4];

fn wanted(fields: &Fields) -> Wanted<'_> {
    Wanted { kind: KIND, formats: (FORMAT, FORMAT), fields, any_owner: false }
}

fn sizes(geometry: Option<Geometry>) -> Fields {
    let values = geometry.map(|geometry| {
        [geometry.buckets, geometry.window, geometry.records, geometry.seats].map(u64::from)
    });
    std::array::from_fn(|at| (FIELDS[at], values.map(|values| values[at])))
}
