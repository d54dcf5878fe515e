//! Segments where processes share none: memory of this process alone, found by all its threads
//! under the same names.
//!
//! **V1.** A place names a segment from its creation to its removal, as a file would; what is kept
//! under a path is not kept on any disk. Those who have a segment go on after its removal.
//! **V2.** There is one process, and it is alive. A forked child has a copy of everything, in which
//! it is the only one alive: whatever its parent was in the middle of it completes or undoes.

use super::{Access, Peer, Place, SegmentError, Shape, Wanted, body_at};
use crate::region::Pages;
use crate::region::heap::{Buffer, Zeroed};
use crate::sync::{AtomicBool, AtomicPair, AtomicU64, Ordering, fork};
use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// What all who have a segment share.
struct Memory {
    body: Buffer<AtomicPair>,
    body_bytes: usize,
    kind: u64,
    format: u64,
    fields: Vec<u64>,
    note: String,
    processes: usize,
    mode: u32,
    seed: u64,
    created: AtomicU64,
    removed: AtomicBool,
}

/// A segment.
pub(crate) struct Segment {
    memory: Arc<Memory>,
    writable: bool,
}

impl std::fmt::Debug for Segment {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (bytes, writable) = (self.bytes(), self.writable);
        out.debug_struct("Segment").field("bytes", &bytes).field("writable", &writable).finish()
    }
}

/// Whoever repairs after a restart: never anybody here.
#[derive(Debug)]
pub(crate) struct Turn;

type Names = Vec<(Place, Arc<Memory>)>;

fn names() -> MutexGuard<'static, Names> {
    static NAMES: Mutex<Names> = Mutex::new(Vec::new());
    NAMES.lock().unwrap_or_else(PoisonError::into_inner)
}

fn path(place: &Place) -> Result<PathBuf, SegmentError> {
    match place {
        Place::Name(name) if name.is_empty() || name.contains('/') => {
            Err(SegmentError::Name(name.into()))
        }
        Place::Name(name) => Ok(name.into()),
        Place::Path(path) => Ok(path.clone()),
    }
}

impl Memory {
    fn new(shape: &Shape<'_>, access: Access, place: PathBuf) -> Result<Self, SegmentError> {
        fork::watch();
        let words = shape.body.div_ceil(size_of::<AtomicPair>());
        let no_space = |_| SegmentError::NoSpace { bytes: shape.body as u64, place };
        Ok(Self {
            body: Buffer::try_new(words, Pages::Huge).map_err(no_space)?,
            body_bytes: shape.body,
            kind: shape.kind,
            format: shape.format,
            fields: shape.fields.iter().map(|(_, value)| *value).collect(),
            note: shape.note.to_owned(),
            processes: shape.processes,
            mode: access.mode,
            seed: RandomState::new().hash_one(0),
            created: AtomicU64::new(Segment::wall_ms()),
            removed: AtomicBool::new(false),
        })
    }

    fn verify(&self, wanted: &Wanted<'_>) -> Result<(), SegmentError> {
        let require = |field, expected, found| match expected == found {
            true => Ok(()),
            false => Err(SegmentError::Mismatch { field, expected, found }),
        };
        require("kind", wanted.kind, self.kind)?;
        let fields = wanted.fields.iter().zip(&self.fields);
        fields.into_iter().try_for_each(|((name, expected), found)| {
            expected.map_or(Ok(()), |expected| require(name, expected, *found))
        })
    }
}

impl Segment {
    pub(crate) fn create(
        place: &Place,
        shape: &Shape<'_>,
        access: Access,
    ) -> Result<Self, SegmentError> {
        let path = path(place)?;
        let mut names = names();
        if names.iter().any(|(known, _)| known == place) {
            return Err(SegmentError::Exists(path));
        }
        let memory = Arc::new(Memory::new(shape, access, path)?);
        names.push((place.clone(), Arc::clone(&memory)));
        Ok(Self { memory, writable: true })
    }

    pub(crate) fn create_sealed(shape: &Shape<'_>) -> Result<Self, SegmentError> {
        let memory = Arc::new(Memory::new(shape, Access::default(), PathBuf::new())?);
        Ok(Self { memory, writable: true })
    }

    pub(crate) fn attach(
        place: &Place,
        wanted: &Wanted<'_>,
        writable: bool,
    ) -> Result<Self, SegmentError> {
        let path = path(place)?;
        let names = names();
        let found = names.iter().find(|(known, _)| known == place);
        let (_, memory) = found.ok_or(SegmentError::NotFound(path))?;
        memory.verify(wanted)?;
        Ok(Self { memory: Arc::clone(memory), writable })
    }

    #[cfg(unix)]
    pub(crate) fn attach_sealed(
        _: std::os::fd::OwnedFd,
        _: &Wanted<'_>,
    ) -> Result<Self, SegmentError> {
        Err(SegmentError::Unsupported)
    }

    #[cfg(unix)]
    pub(crate) fn inheritable(&self) -> Result<std::os::fd::OwnedFd, SegmentError> {
        Err(SegmentError::Unsupported)
    }

    /// An array in the body. `None` if it does not lie inside of it, or not at an address for its
    /// kind.
    pub(crate) fn slice<T: Zeroed>(&self, offset: usize, len: usize) -> Option<&[T]> {
        let end = len.checked_mul(size_of::<T>())?.checked_add(offset)?;
        let aligned = offset % align_of::<T>() == 0;
        if end > self.memory.body_bytes || !aligned || align_of::<T>() > align_of::<AtomicPair>() {
            return None;
        }
        // SAFETY: the offset lies inside the buffer.
        let start = unsafe { self.memory.body.as_ptr().cast::<u8>().add(offset) };
        // SAFETY: so many values lie inside the buffer, aligned, of a kind for which all bytes from
        // zero on that were stored through it are valid; they are atomic, and the buffer stays
        // where it is until the segment is dropped.
        Some(unsafe { std::slice::from_raw_parts(start.cast::<T>(), len) })
    }

    pub(crate) fn field(&self, index: usize) -> u64 {
        self.memory.fields.get(index).copied().unwrap_or(0)
    }

    pub(crate) fn format(&self) -> u64 {
        self.memory.format
    }

    pub(crate) fn max_processes(&self) -> u64 {
        self.memory.processes as u64
    }

    pub(crate) fn note(&self) -> String {
        self.memory.note.clone()
    }

    pub(crate) fn is_foreign(&self) -> bool {
        false
    }

    pub(crate) fn mode(&self) -> u32 {
        self.memory.mode
    }

    pub(crate) fn seed(&self) -> u64 {
        self.memory.seed
    }

    pub(crate) fn is_from_another_boot(&self) -> bool {
        false
    }

    pub(crate) fn adopt_boot(&self) {}

    pub(crate) fn repair_turn(&self) -> Result<Turn, SegmentError> {
        Ok(Turn)
    }

    pub(crate) fn is_alone(&self) -> bool {
        true
    }

    pub(crate) fn wall_ms() -> u64 {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        since.map_or(1, |since| since.as_millis() as u64)
    }

    pub(crate) fn created(&self) -> &AtomicU64 {
        &self.memory.created
    }

    pub(crate) fn is_removed(&self) -> bool {
        // ORDERING: Relaxed: says all there is to know.
        self.memory.removed.load(Ordering::Relaxed)
    }

    pub(crate) fn body_bytes(&self) -> usize {
        self.memory.body_bytes
    }

    pub(crate) fn bytes(&self) -> usize {
        body_at(self.memory.processes) + self.memory.body_bytes
    }

    pub(crate) fn is_writable(&self) -> bool {
        self.writable
    }

    /// The forks before this process tell it from its parent (V2).
    pub(crate) fn me(&self) -> Result<(u32, u64), SegmentError> {
        Ok((0, fork::seen().0 as u64 + 1))
    }

    pub(crate) fn processes(&self) -> Vec<Peer> {
        let incarnation = fork::seen().0 as u64 + 1;
        vec![Peer { slot: 0, incarnation, pid: std::process::id(), here: true }]
    }

    pub(crate) fn is_dead(&self, slot: usize, incarnation: u64) -> bool {
        slot != 0 || incarnation != fork::seen().0 as u64 + 1
    }

    pub(crate) fn remove(place: &Place) -> Result<(), SegmentError> {
        let path = path(place)?;
        let mut names = names();
        let at = names.iter().position(|(known, _)| known == place);
        let (_, memory) = names.swap_remove(at.ok_or(SegmentError::NotFound(path))?);
        // ORDERING: Relaxed: as above.
        memory.removed.store(true, Ordering::Relaxed);
        Ok(())
    }
}
