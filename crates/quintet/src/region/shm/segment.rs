//! Creating, attaching and mapping.

use super::files::{self, Claim, fail, locate};
use super::header::*;
use super::peers::{Description, Membership, REPAIR, lock_when_free};
use super::{
    Access, MAX_PROCESSES, Peer, Place, SLOTS, SegmentError, Shape, Wanted, body_at, view,
};
use crate::region::heap::Zeroed;
use crate::sync::AtomicU64;
use std::fs::{File, Permissions};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::ptr::NonNull;

/// A mapped segment.
#[derive(Debug)]
pub(crate) struct Segment {
    memory: NonNull<u8>,
    bytes: usize,
    /// Where the family's bytes begin.
    body: usize,
    /// The mapped file: what locks are asked about, and opened again for a lock of one's own. Holds
    /// no lock itself.
    file: File,
    /// `None` of a sealed one, which has no name.
    path: Option<PathBuf>,
    writable: bool,
    membership: Membership,
}

// SAFETY: the mapping belongs to the segment and is only accessed through atomics.
unsafe impl Send for Segment {}
// SAFETY: as above.
unsafe impl Sync for Segment {}

impl Drop for Segment {
    fn drop(&mut self) {
        self.membership.leave();
        // SAFETY: mapped in `map` with this length; borrows of the memory end with the segment.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), self.bytes) };
    }
}

impl Segment {
    /// Makes a new segment (`shm` M1 to M3). All bytes of its body are zero.
    pub(crate) fn create(
        place: &Place,
        shape: &Shape<'_>,
        access: Access,
    ) -> Result<Self, SegmentError> {
        let path = locate(place)?;
        let (claim, file) = Claim::new(&path)?;
        let made = Self::fill(file, Some(path), shape, access)?;
        claim.complete();
        Ok(made)
    }

    /// Makes a segment without a name that cannot change its size, to hand to children.
    pub(crate) fn create_sealed(shape: &Shape<'_>) -> Result<Self, SegmentError> {
        let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
        // SAFETY: the name is a valid C string.
        let fd = unsafe { libc::memfd_create(c"quintet".as_ptr(), flags) };
        if fd < 0 {
            return Err(unnamed("create sealed segment")(io::Error::last_os_error()));
        }
        // SAFETY: the descriptor is fresh and ours.
        let file = File::from(unsafe { OwnedFd::from_raw_fd(fd) });
        let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
        files::open_again(&file, None)?;
        let segment = Self::fill(file, None, shape, Access::default())?;
        // SAFETY: an fcntl on our descriptor with an integer argument.
        let sealed = unsafe { libc::fcntl(segment.file.as_raw_fd(), libc::F_ADD_SEALS, seals) };
        if sealed < 0 {
            return Err(unnamed("seal segment")(io::Error::last_os_error()));
        }
        Ok(segment)
    }

    /// Sizes, allocates, maps and describes a fresh file.
    fn fill(
        file: File,
        path: Option<PathBuf>,
        shape: &Shape<'_>,
        access: Access,
    ) -> Result<Self, SegmentError> {
        assert!(shape.fields.len() <= MAX_FIELDS, "a family has few fields");
        assert!((1..=MAX_PROCESSES).contains(&shape.processes), "a family has bounded processes");
        let body = body_at(shape.processes);
        let bytes = body.saturating_add(shape.body);
        let place = || path.clone().unwrap_or_else(|| SEALED.into());
        let describe = |source| fail("describe segment", &place())(source);
        file.set_permissions(Permissions::from_mode(access.mode)).map_err(describe)?;
        if let Some(group) = access.group {
            std::os::unix::fs::fchown(&file, None, Some(group)).map_err(describe)?;
        }
        view::gather(&file, bytes);
        match allocate(&file, bytes) {
            0 => {}
            libc::ENOSPC | libc::EFBIG | libc::ENOMEM => {
                return Err(SegmentError::NoSpace { bytes: bytes as u64, place: place() });
            }
            other => {
                let error = io::Error::from_raw_os_error(other);
                return Err(fail("allocate segment", &place())(error));
            }
        }
        let meta = file.metadata().map_err(describe)?;
        let segment = Self::map(file, path, bytes, body, true)?;
        segment.describe(shape, &meta);
        Ok(segment)
    }

    /// Writes the header, its magic word last (`shm` M2).
    fn describe(&self, shape: &Shape<'_>, meta: &std::fs::Metadata) {
        let header = self.header();
        let boot = boot_id();
        for (at, value) in [
            (AT_ENDIAN, ENDIAN),
            (AT_VERSION, VERSION),
            (AT_KIND, shape.kind),
            (AT_FORMAT, shape.format),
            (AT_BYTES, self.bytes as u64),
            (AT_SEED, random_word()),
            (AT_BOOT, boot[0]),
            (AT_BOOT + 1, boot[1]),
            (AT_CREATION, random_word()),
            (AT_MODE, (meta.mode() & 0o7777) as u64),
            (AT_USER, meta.uid() as u64),
            (AT_GROUP, meta.gid() as u64),
            (AT_FIELDS, shape.fields.len() as u64),
            (AT_PROCESSES, shape.processes as u64),
            (AT_CREATED, Self::wall_ms()),
        ] {
            header.set(at, value);
        }
        for (index, (_, value)) in shape.fields.iter().enumerate() {
            header.set(FIRST_FIELD + index, *value);
        }
        header.set_note(shape.note);
        header.set(AT_MAGIC, MAGIC);
    }

    /// Attaches to a segment by place.
    pub(crate) fn attach(
        place: &Place,
        wanted: &Wanted<'_>,
        writable: bool,
    ) -> Result<Self, SegmentError> {
        let path = locate(place)?;
        let file = files::open_segment(&path, writable)?;
        if !wanted.any_owner {
            files::verify_owner(&file, &path)?;
        }
        Self::attach_file(file, Some(path), wanted, writable)
    }

    /// Attaches to a sealed segment whose descriptor was inherited.
    pub(crate) fn attach_sealed(fd: OwnedFd, wanted: &Wanted<'_>) -> Result<Self, SegmentError> {
        let file = File::from(fd);
        // SAFETY: an fcntl on our descriptor without an argument.
        let seals = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) };
        // Any other file could be truncated under the mapping.
        if seals < 0 || seals & libc::F_SEAL_SHRINK == 0 {
            let (expected, found) = (libc::F_SEAL_SHRINK as u64, seals.max(0) as u64);
            return Err(SegmentError::Mismatch { field: "seals", expected, found });
        }
        files::open_again(&file, None)?;
        Self::attach_file(file, None, wanted, true)
    }

    /// Verifies the header before anything of it is mapped.
    fn attach_file(
        file: File,
        path: Option<PathBuf>,
        wanted: &Wanted<'_>,
        writable: bool,
    ) -> Result<Self, SegmentError> {
        let place = path.clone().unwrap_or_else(|| SEALED.into());
        let meta = file.metadata().map_err(fail("examine segment", &place))?;
        let mut page = vec![0; SLOTS];
        if file.read_exact_at(&mut page, 0).is_err() {
            return Err(SegmentError::Foreign(place));
        }
        let word = |at: usize| {
            let bytes = page[at * 8..].first_chunk().copied().unwrap_or_default();
            u64::from_ne_bytes(bytes)
        };
        if word(AT_MAGIC) != MAGIC {
            return Err(SegmentError::Foreign(place));
        }
        let processes = verify(&word, &meta, wanted)?;
        let bytes = meta.len() as usize;
        Self::map(file, path, bytes, body_at(processes), writable)
    }

    fn map(
        file: File,
        path: Option<PathBuf>,
        bytes: usize,
        body: usize,
        writable: bool,
    ) -> Result<Self, SegmentError> {
        match view::map(&file, bytes, writable) {
            Ok(memory) => {
                let membership = Membership::new();
                Ok(Self { memory, bytes, body, file, path, writable, membership })
            }
            Err(source) => Err(SegmentError::Io { doing: "map segment", source }),
        }
    }

    fn header(&self) -> Header<'_> {
        let words = self.memory.cast::<AtomicU64>();
        // SAFETY: the mapping spans at least `body` bytes (checked by every constructor), is
        // aligned to pages, lives as long as the segment, and any bytes are valid atomics.
        Header(unsafe { std::slice::from_raw_parts(words.as_ptr(), self.body / 8) })
    }

    /// `len` values of the body from byte `offset` on; `None` if they do not fit.
    pub(crate) fn slice<T: Zeroed>(&self, offset: usize, len: usize) -> Option<&[T]> {
        let from = self.body.checked_add(offset)?;
        let end = len.checked_mul(size_of::<T>())?.checked_add(from)?;
        if end > self.bytes || from % align_of::<T>() != 0 {
            return None;
        }
        // SAFETY: inside the mapping, as just checked.
        let first = unsafe { self.memory.add(from) }.cast::<T>();
        // SAFETY: in bounds and aligned; atomics without invalid values (`Zeroed` types of this
        // crate); shared access only. A read-only mapping is only given to code that does not
        // store.
        Some(unsafe { std::slice::from_raw_parts(first.as_ptr(), len) })
    }

    /// A recorded field.
    pub(crate) fn field(&self, index: usize) -> u64 {
        self.header().get(FIRST_FIELD + index)
    }

    /// The family's format it was made with.
    pub(crate) fn format(&self) -> u64 {
        self.header().get(AT_FORMAT)
    }

    /// Processes that were asked for; there is room for those that fill the last page of slots as
    /// well.
    pub(crate) fn max_processes(&self) -> u64 {
        self.header().get(AT_PROCESSES)
    }

    /// What its family wrote down when it was made.
    pub(crate) fn note(&self) -> String {
        self.header().note()
    }

    /// Somebody else's, root's excepted, as the system says.
    pub(crate) fn is_foreign(&self) -> bool {
        let owner = self.file.metadata().map_or(u32::MAX, |meta| meta.uid());
        // SAFETY: geteuid has no preconditions.
        let me = unsafe { libc::geteuid() };
        owner != me && owner != 0
    }

    /// Its permission bits.
    pub(crate) fn mode(&self) -> u32 {
        self.header().get(AT_MODE) as u32
    }

    /// The seed of the portable hash.
    pub(crate) fn seed(&self) -> u64 {
        self.header().get(AT_SEED)
    }

    /// The system's coarse wall clock, in milliseconds.
    pub(crate) fn wall_ms() -> u64 {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the structure outlives the call and is written by it.
        let told = unsafe { libc::clock_gettime(libc::CLOCK_REALTIME_COARSE, &mut time) };
        if told != 0 || time.tv_sec < 0 {
            return 0;
        }
        (time.tv_sec as u64).wrapping_mul(1000).wrapping_add(time.tv_nsec as u64 / 1_000_000)
    }

    /// When it was made, in milliseconds of the wall clock.
    pub(crate) fn created(&self) -> &AtomicU64 {
        let words = self.header().0;
        &words[AT_CREATED]
    }

    /// True if the machine restarted since somebody last said otherwise. Where the system does not
    /// tell which boot this is, nobody knows: false.
    pub(crate) fn is_from_another_boot(&self) -> bool {
        let header = self.header();
        let boot = boot_id();
        boot != [0, 0] && [header.get(AT_BOOT), header.get(AT_BOOT + 1)] != boot
    }

    /// Says that the content was checked in this boot.
    pub(crate) fn adopt_boot(&self) {
        let boot = boot_id();
        self.header().set(AT_BOOT, boot[0]);
        self.header().set(AT_BOOT + 1, boot[1]);
    }

    /// Waits until nobody else repairs the segment. The turn ends when it is dropped, or with the
    /// process.
    pub(crate) fn repair_turn(&self) -> Result<Turn, SegmentError> {
        let own = self.own_description()?;
        let waited = lock_when_free(own.fd(), REPAIR);
        waited.map_err(|source| SegmentError::Io { doing: "wait for a repair", source })?;
        Ok(Turn { _own: own })
    }

    /// Nobody else takes part. Locks do not outlive a boot: with somebody else there the content is
    /// of this one.
    pub(crate) fn is_alone(&self) -> bool {
        self.membership.is_alone(self.header(), self.file.as_raw_fd())
    }

    /// Bytes of the whole segment.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn is_writable(&self) -> bool {
        self.writable
    }

    /// Its name was removed; those who have it go on.
    pub(crate) fn is_removed(&self) -> bool {
        self.path.is_some() && self.file.metadata().is_ok_and(|meta| meta.nlink() == 0)
    }

    /// Bytes of the family's part.
    pub(crate) fn body_bytes(&self) -> usize {
        self.bytes - self.body
    }

    /// A descriptor of the same file that a child keeps over exec.
    pub(crate) fn inheritable(&self) -> Result<OwnedFd, SegmentError> {
        // SAFETY: a duplicate of our own descriptor.
        let fd = unsafe { libc::dup(self.file.as_raw_fd()) };
        if fd < 0 {
            return Err(unnamed("duplicate descriptor")(io::Error::last_os_error()));
        }
        // SAFETY: the descriptor is fresh and ours.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }

    /// Slot and incarnation of this process, joining first if it has none (or has been forked
    /// since).
    pub(crate) fn me(&self) -> Result<(u32, u64), SegmentError> {
        self.membership.me(self.header(), || self.own_description())
    }

    /// Everybody who took part and may still be alive.
    pub(crate) fn processes(&self) -> Vec<Peer> {
        super::peers::described(self.header())
    }

    /// True only on proof (`shm` M4).
    pub(crate) fn is_dead(&self, slot: usize, incarnation: u64) -> bool {
        self.membership.is_dead(self.header(), self.file.as_raw_fd(), slot, incarnation)
    }

    /// An open file description of our own (`peers` D3).
    fn own_description(&self) -> Result<Description, SegmentError> {
        let file = files::open_again(&self.file, self.path.as_deref())?;
        Description::register(file).ok_or_else(|| SegmentError::Io {
            doing: "open the segment again",
            source: io::Error::other("this process takes part too many times; drop some"),
        })
    }

    /// Removes a segment's name; processes that use it go on undisturbed.
    pub(crate) fn remove(place: &Place) -> Result<(), SegmentError> {
        files::remove(&locate(place)?)
    }
}

/// Allocates all bytes of a file; the number of an error, or 0.
fn allocate(file: &File, bytes: usize) -> libc::c_int {
    let offset = |bytes: usize| libc::off_t::try_from(bytes).unwrap_or(libc::off_t::MAX);
    in_steps(bytes, |at, part| {
        // SAFETY: a call on our descriptor.
        unsafe { libc::posix_fallocate(file.as_raw_fd(), offset(at), offset(part)) }
    })
}

/// Many systems let a signal interrupt an allocation, and give back what it had got so far: so it
/// goes on in smaller and smaller steps, of which even a profiler that interrupts a thousand times
/// a second lets one pass.
pub(super) fn in_steps(
    bytes: usize,
    mut allocate: impl FnMut(usize, usize) -> libc::c_int,
) -> libc::c_int {
    const SMALLEST: usize = 2 << 20;
    let (mut at, mut step) = (0, bytes);
    while at < bytes {
        let part = step.min(bytes - at);
        match allocate(at, part) {
            0 => at += part,
            libc::EINTR => step = (step / 2).max(SMALLEST),
            error => return error,
        }
    }
    0
}

/// Somebody's turn to repair a segment.
#[derive(Debug)]
pub(crate) struct Turn {
    /// Closed with the turn, which releases the lock.
    _own: Description,
}

/// How a segment without a name is called.
const SEALED: &str = "memfd:quintet";

fn unnamed(doing: &'static str) -> impl FnOnce(io::Error) -> SegmentError {
    fail(doing, Path::new(SEALED))
}

/// Compares a header with what is wanted and with its file. Returns the number of processes it has
/// room for.
fn verify(
    word: &impl Fn(usize) -> u64,
    meta: &std::fs::Metadata,
    wanted: &Wanted<'_>,
) -> Result<usize, SegmentError> {
    let require = |field, at, expected| {
        let found = word(at);
        if found == expected {
            Ok(())
        } else {
            Err(SegmentError::Mismatch { field, expected, found })
        }
    };
    require("endianness", AT_ENDIAN, ENDIAN)?;
    require("kind", AT_KIND, wanted.kind)?;
    let ((oldest, newest), format) = (wanted.formats, word(AT_FORMAT));
    if word(AT_VERSION) != VERSION || !(oldest..=newest).contains(&format) {
        return Err(SegmentError::Format { found: format, wanted: newest });
    }
    require("size in bytes", AT_BYTES, meta.len())?;
    // Owner and group are what the maker's user namespace calls them; the file itself has been
    // asked.
    require("mode", AT_MODE, (meta.mode() & 0o7777) as u64)?;
    require("number of fields", AT_FIELDS, wanted.fields.len() as u64)?;
    for (index, (name, expected)) in wanted.fields.iter().enumerate() {
        if let Some(expected) = expected {
            require(name, FIRST_FIELD + index, *expected)?;
        }
    }
    let processes = word(AT_PROCESSES) as usize;
    if !(1..=MAX_PROCESSES).contains(&processes) || body_at(processes) as u64 > meta.len() {
        let (expected, found) = (MAX_PROCESSES as u64, processes as u64);
        return Err(SegmentError::Mismatch { field: "processes", expected, found });
    }
    Ok(processes)
}

fn random_word() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(0)
}
