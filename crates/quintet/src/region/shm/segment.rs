//! Creating, attaching and mapping.

use super::header::*;
use super::peers::{CREATION_LOCK, LockFile, Membership, try_lock};
use super::{Access, Place, SegmentError, Shape, Wanted, view};
use crate::region::heap::Zeroed;
use crate::sync::AtomicU64;
use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::ptr::NonNull;

/// A mapped segment.
#[derive(Debug)]
pub(crate) struct Segment {
    memory: NonNull<u8>,
    bytes: usize,
    /// Kept for the sealed form, which has no name to be opened by.
    file: File,
    path: PathBuf,
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

fn fail(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> SegmentError {
    let path = path.to_path_buf();
    move |source| match source.raw_os_error() {
        Some(libc::ENOENT) => SegmentError::NotFound(path),
        Some(libc::EEXIST) => SegmentError::Exists(path),
        Some(libc::EACCES | libc::EPERM | libc::EROFS) => SegmentError::Permission(path),
        Some(libc::ELOOP | libc::EISDIR | libc::ENAMETOOLONG | libc::EINVAL | libc::ENXIO) => {
            SegmentError::Name(path)
        }
        _ => SegmentError::Io { doing, source },
    }
}

/// The file of a place.
fn locate(place: &Place) -> Result<PathBuf, SegmentError> {
    match place {
        Place::Path(path) => Ok(path.clone()),
        Place::Name(name) => {
            let path = Path::new("/dev/shm").join(format!("quintet-{name}"));
            let plain = !name.is_empty()
                && name.len() <= 200
                && !name.contains(['/', '\0'])
                && !name.ends_with(".lock");
            if plain { Ok(path) } else { Err(SegmentError::Name(path)) }
        }
    }
}

fn lock_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    PathBuf::from(name)
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC | libc::O_NONBLOCK);
    options
}

impl Segment {
    /// Makes a new segment (M1 to M3). All bytes of its body are zero.
    pub(crate) fn create(
        place: &Place,
        shape: &Shape<'_>,
        access: Access,
    ) -> Result<Self, SegmentError> {
        let path = locate(place)?;
        let guard = open_lock(&lock_path(&path), access)?;
        if !try_lock(guard.as_raw_fd(), CREATION_LOCK) {
            return Err(SegmentError::NotReady(path));
        }
        let mut options = options();
        options.write(true).create_new(true).mode(0o600);
        let file = match options.open(&path).map_err(fail("create segment", &path)) {
            Err(SegmentError::Exists(_)) if is_half_made(&path) => {
                // We hold the creation lock, so nobody is at work on it (M3).
                std::fs::remove_file(&path).map_err(fail("replace abandoned segment", &path))?;
                options.open(&path).map_err(fail("create segment", &path))?
            }
            opened => opened?,
        };
        let made = Self::fill(file, path.clone(), shape, access);
        if made.is_err() {
            let _ = std::fs::remove_file(&path);
        }
        made
    }

    /// Makes a segment without a name that cannot change its size, to hand to children.
    pub(crate) fn create_sealed(shape: &Shape<'_>) -> Result<Self, SegmentError> {
        let path = PathBuf::from("memfd:quintet");
        let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
        // SAFETY: the name is a valid C string.
        let fd = unsafe { libc::memfd_create(c"quintet".as_ptr(), flags) };
        if fd < 0 {
            return Err(fail("create sealed segment", &path)(io::Error::last_os_error()));
        }
        // SAFETY: the descriptor is fresh and ours.
        let file = File::from(unsafe { OwnedFd::from_raw_fd(fd) });
        let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
        let segment = Self::fill(file, path, shape, Access::default())?;
        // SAFETY: an fcntl on our descriptor with an integer argument.
        let sealed = unsafe { libc::fcntl(segment.file.as_raw_fd(), libc::F_ADD_SEALS, seals) };
        if sealed < 0 {
            return Err(fail("seal segment", &segment.path)(io::Error::last_os_error()));
        }
        Ok(segment)
    }

    /// Sizes, allocates, maps and describes a fresh file.
    fn fill(
        file: File,
        path: PathBuf,
        shape: &Shape<'_>,
        access: Access,
    ) -> Result<Self, SegmentError> {
        let bytes = BODY + shape.body;
        let describe = |source| fail("describe segment", &path)(source);
        file.set_permissions(Permissions::from_mode(access.mode)).map_err(describe)?;
        if let Some(group) = access.group {
            std::os::unix::fs::fchown(&file, None, Some(group)).map_err(describe)?;
        }
        view::gather(&file, bytes);
        // SAFETY: a call on our descriptor.
        let error = unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, bytes as libc::off_t) };
        match error {
            0 => {}
            libc::ENOSPC | libc::EFBIG | libc::ENOMEM => {
                return Err(SegmentError::NoSpace { bytes: bytes as u64, place: path });
            }
            other => {
                return Err(fail("allocate segment", &path)(io::Error::from_raw_os_error(other)));
            }
        }
        let meta = file.metadata().map_err(describe)?;
        let segment = Self::map(file, path, bytes, true)?;
        let header = segment.header();
        let boot = boot_id();
        for (at, value) in [
            (AT_ENDIAN, ENDIAN),
            (AT_VERSION, VERSION),
            (AT_KIND, shape.kind),
            (AT_FORMAT, shape.format),
            (AT_BYTES, bytes as u64),
            (AT_SEED, random_word()),
            (AT_BOOT, boot[0]),
            (AT_BOOT + 1, boot[1]),
            (AT_CREATION, random_word()),
            (AT_MODE, (meta.mode() & 0o7777) as u64),
            (AT_USER, meta.uid() as u64),
            (AT_GROUP, meta.gid() as u64),
            (AT_FIELDS, shape.fields.len() as u64),
        ] {
            header.set(at, value);
        }
        assert!(shape.fields.len() <= MAX_FIELDS, "a family has few fields");
        for (index, (_, value)) in shape.fields.iter().enumerate() {
            header.set(FIRST_FIELD + index, *value);
        }
        header.set(AT_MAGIC, MAGIC);
        Ok(segment)
    }

    /// Attaches to a segment by place.
    pub(crate) fn attach(
        place: &Place,
        wanted: &Wanted<'_>,
        writable: bool,
    ) -> Result<Self, SegmentError> {
        let path = locate(place)?;
        let file = options().write(writable).open(&path).map_err(fail("open segment", &path))?;
        Self::attach_file(file, path, wanted, writable)
    }

    /// Attaches to a sealed segment whose descriptor was inherited.
    pub(crate) fn attach_sealed(fd: OwnedFd, wanted: &Wanted<'_>) -> Result<Self, SegmentError> {
        let file = File::from(fd);
        // SAFETY: an fcntl on our descriptor without an argument.
        let seals = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) };
        // Any other file could be truncated under the mapping, and those who came by its name hold their slots by another lock file.
        if seals < 0 || seals & libc::F_SEAL_SHRINK == 0 {
            let (expected, found) = (libc::F_SEAL_SHRINK as u64, seals.max(0) as u64);
            return Err(SegmentError::Mismatch { field: "seals", expected, found });
        }
        Self::attach_file(file, "memfd:quintet".into(), wanted, true)
    }

    fn attach_file(
        file: File,
        path: PathBuf,
        wanted: &Wanted<'_>,
        writable: bool,
    ) -> Result<Self, SegmentError> {
        let meta = file.metadata().map_err(fail("examine segment", &path))?;
        if !meta.is_file() {
            return Err(SegmentError::Name(path));
        }
        let bytes = meta.len() as usize;
        if bytes < BODY {
            let open = options().open(lock_path(&path));
            let busy =
                open.is_ok_and(|lock| super::peers::is_locked(lock.as_raw_fd(), CREATION_LOCK));
            return Err(match (busy, bytes) {
                (true, _) => SegmentError::NotReady(path),
                (false, 0) => SegmentError::Abandoned(path),
                _ => SegmentError::Foreign(path),
            });
        }
        let segment = Self::map(file, path, bytes, writable)?;
        let header = segment.header();
        match header.get(AT_MAGIC) {
            MAGIC => {}
            0 => {
                let lock = options().open(lock_path(&segment.path));
                let busy =
                    lock.is_ok_and(|lock| super::peers::is_locked(lock.as_raw_fd(), CREATION_LOCK));
                let path = segment.path.clone();
                return Err(if busy {
                    SegmentError::NotReady(path)
                } else {
                    SegmentError::Abandoned(path)
                });
            }
            _ => return Err(SegmentError::Foreign(segment.path.clone())),
        }
        let require = |field, at, expected| {
            let found = header.get(at);
            if found == expected {
                Ok(())
            } else {
                Err(SegmentError::Mismatch { field, expected, found })
            }
        };
        require("endianness", AT_ENDIAN, ENDIAN)?;
        require("layout version", AT_VERSION, VERSION)?;
        require("kind", AT_KIND, wanted.kind)?;
        let (oldest, newest) = wanted.formats;
        if !(oldest..=newest).contains(&segment.format()) {
            require("format version", AT_FORMAT, newest)?;
        }
        require("size in bytes", AT_BYTES, bytes as u64)?;
        require("owner", AT_USER, meta.uid() as u64)?;
        require("group", AT_GROUP, meta.gid() as u64)?;
        require("mode", AT_MODE, (meta.mode() & 0o7777) as u64)?;
        require("number of fields", AT_FIELDS, wanted.fields.len() as u64)?;
        for (index, (name, expected)) in wanted.fields.iter().enumerate() {
            if let Some(expected) = expected {
                require(name, FIRST_FIELD + index, *expected)?;
            }
        }
        Ok(segment)
    }

    fn map(file: File, path: PathBuf, bytes: usize, writable: bool) -> Result<Self, SegmentError> {
        match view::map(&file, bytes, writable) {
            Ok(memory) => {
                let membership = Membership::new();
                Ok(Self { memory, bytes, file, path, writable, membership })
            }
            Err(source) => Err(SegmentError::Io { doing: "map segment", source }),
        }
    }

    fn header(&self) -> Header<'_> {
        let words = self.memory.cast::<AtomicU64>();
        // SAFETY: the mapping spans at least `BODY` bytes (checked by every constructor), is aligned to pages, lives as long
        // as the segment, and any bytes are valid atomics.
        Header(unsafe { std::slice::from_raw_parts(words.as_ptr(), BODY / 8) })
    }

    /// `len` values of the body from byte `offset` on; `None` if they do not fit.
    pub(crate) fn slice<T: Zeroed>(&self, offset: usize, len: usize) -> Option<&[T]> {
        let from = BODY.checked_add(offset)?;
        let end = len.checked_mul(size_of::<T>())?.checked_add(from)?;
        if end > self.bytes || from % align_of::<T>() != 0 {
            return None;
        }
        // SAFETY: inside the mapping, as just checked.
        let first = unsafe { self.memory.add(from) }.cast::<T>();
        // SAFETY: in bounds and aligned; atomics without invalid values (`Zeroed` types of this crate); shared
        // access only. A read-only mapping is only given to code that does not store.
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

    /// The seed of the portable hash.
    pub(crate) fn seed(&self) -> u64 {
        self.header().get(AT_SEED)
    }

    /// True if the machine restarted since somebody last said otherwise.
    pub(crate) fn is_from_another_boot(&self) -> bool {
        let header = self.header();
        [header.get(AT_BOOT), header.get(AT_BOOT + 1)] != boot_id()
    }

    /// Says that the content was checked in this boot.
    pub(crate) fn adopt_boot(&self) {
        let boot = boot_id();
        self.header().set(AT_BOOT, boot[0]);
        self.header().set(AT_BOOT + 1, boot[1]);
    }

    /// Bytes of the whole segment.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn is_writable(&self) -> bool {
        self.writable
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// A descriptor of the same file that a child keeps over exec.
    pub(crate) fn inheritable(&self) -> Result<OwnedFd, SegmentError> {
        // SAFETY: a duplicate of our own descriptor.
        let fd = unsafe { libc::dup(self.file.as_raw_fd()) };
        if fd < 0 {
            return Err(fail("duplicate descriptor", &self.path)(io::Error::last_os_error()));
        }
        // SAFETY: the descriptor is fresh and ours.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }

    /// Slot and incarnation of this process, joining first if it has none (or has been forked since).
    pub(crate) fn me(&self) -> Result<(u32, u64), SegmentError> {
        self.membership.me(self.header(), || self.open_own_lock())
    }

    /// Slot, incarnation and process id of everybody who took part and may still be alive.
    pub(crate) fn processes(&self) -> Vec<(u32, u64, u32)> {
        super::peers::described(self.header())
    }

    /// True only on proof (M4).
    pub(crate) fn is_dead(&self, slot: usize, incarnation: u64) -> bool {
        self.membership.is_dead(self.header(), slot, incarnation)
    }

    /// An open file description of our own, for the lock of our slot.
    fn open_own_lock(&self) -> Result<LockFile, SegmentError> {
        let sealed = PathBuf::from(format!("/proc/self/fd/{}", self.file.as_raw_fd()));
        let named = lock_path(&self.path);
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(libc::O_CLOEXEC);
        let path = if self.path.starts_with("memfd:quintet") { &sealed } else { &named };
        let file = options.open(path).map_err(fail("open lock file", path))?;
        LockFile::register(file).ok_or(SegmentError::TooManyProcesses)
    }

    /// Removes a segment's name; processes that use it go on undisturbed.
    pub(crate) fn remove(place: &Place) -> Result<(), SegmentError> {
        let path = locate(place)?;
        let removed = std::fs::remove_file(&path).map_err(fail("remove segment", &path));
        let _ = std::fs::remove_file(lock_path(&path));
        removed
    }
}

fn open_lock(path: &Path, access: Access) -> Result<File, SegmentError> {
    let mut options = options();
    options.write(true).create(true).mode(0o600);
    let file = options.open(path).map_err(fail("create lock file", path))?;
    let meta = file.metadata().map_err(fail("examine lock file", path))?;
    if !meta.is_file() {
        return Err(SegmentError::Name(path.to_path_buf()));
    }
    // Only its owner can set it; an existing one of somebody else stays as it is.
    let _ = file.set_permissions(Permissions::from_mode(access.mode));
    if let Some(group) = access.group {
        let _ = std::os::unix::fs::fchown(&file, None, Some(group));
    }
    Ok(file)
}

/// No magic word yet, and a size our creators leave behind.
fn is_half_made(path: &Path) -> bool {
    use std::os::unix::fs::FileExt;
    let Ok(file) = options().open(path) else { return false };
    let mut magic = [0; 8];
    match file.read_at(&mut magic, 0) {
        Ok(0) => true,
        Ok(8) => magic == [0; 8],
        _ => false,
    }
}

fn random_word() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(0)
}
