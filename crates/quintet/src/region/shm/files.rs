//! The files of segments: found, made exclusively, told from the files of others, removed.
//!
//! **F1.** A file is a segment if it begins with the magic word, and a half-made one if it begins
//! with the word for that. Any other file, an empty one too, is somebody else's: it is never
//! written to, unlinked or given another mode.
//! **F2.** Whoever makes a segment begins it without a name: it takes the creation lock, which lies
//! on the file's own first byte, writes the word for a half-made one, and only then gives it its
//! name. A half-made file whose lock is held is being made; one whose lock is free was left by a
//! creator that died, and the next one replaces it. So two that start together never take each
//! other's file for somebody else's.
//! **F3.** A name is unlinked only by who has seen a segment there and, for a half-made one, holds
//! its creation lock.
//! **F4.** No other file is made: whatever fails leaves nothing behind. Where the file system has
//! no files without names, or without `/proc`, the name comes first: others wait a moment for its
//! lock, and a creator killed before its first word leaves an empty file, which F1 protects; it has
//! to be removed by hand.

use super::header::{HALF_MADE, MAGIC};
use super::peers::{CREATION, is_locked, lock};
use super::{Place, SegmentError};
use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The error of a call about a path.
pub(super) fn fail(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> SegmentError {
    let path = path.to_path_buf();
    move |source| match source.raw_os_error() {
        Some(libc::ENOENT) => SegmentError::NotFound(path),
        Some(libc::EEXIST) => SegmentError::Exists(path),
        Some(libc::EACCES | libc::EPERM) => SegmentError::Permission(path),
        Some(libc::EROFS) => SegmentError::ReadOnlyFileSystem(path),
        Some(libc::ELOOP | libc::EISDIR | libc::ENXIO) => {
            let what = kind_of(&path);
            SegmentError::NotAFile { path, what }
        }
        Some(libc::ENAMETOOLONG | libc::EINVAL) => SegmentError::Name(path),
        _ => SegmentError::Io { doing, source },
    }
}

/// What lies at a path that is no regular file.
fn kind_of(path: &Path) -> &'static str {
    match std::fs::symlink_metadata(path).map(|meta| meta.file_type()) {
        Ok(kind) if kind.is_symlink() => "a symbolic link",
        Ok(kind) if kind.is_dir() => "a directory",
        Ok(kind) if kind.is_fifo() => "a named pipe",
        Ok(kind) if kind.is_socket() => "a socket",
        Ok(kind) if kind.is_block_device() || kind.is_char_device() => "a device",
        _ => "no regular file",
    }
}

/// The file of a place.
pub(super) fn locate(place: &Place) -> Result<PathBuf, SegmentError> {
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

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC | libc::O_NONBLOCK);
    options
}

/// Opens what lies at a path: a regular file, through no link.
pub(super) fn open(path: &Path, writable: bool) -> Result<File, SegmentError> {
    let file = options().write(writable).open(path).map_err(fail("open segment", path))?;
    let meta = file.metadata().map_err(fail("examine segment", path))?;
    if meta.is_file() {
        Ok(file)
    } else {
        Err(SegmentError::NotAFile { path: path.to_path_buf(), what: kind_of(path) })
    }
}

/// May a user trust whoever made a segment? The file's owner as this user namespace shows it, which
/// is what the system goes by; the numbers that the header holds are its maker's. An owner that has
/// no number here is shown as somebody who may have one elsewhere: nobody knows who it is.
pub(super) fn verify_owner(file: &File, path: &Path) -> Result<(), SegmentError> {
    let owner = file.metadata().map_err(fail("examine segment", path))?.uid();
    let path = path.to_path_buf();
    if !is_mapped(owner) {
        return Err(SegmentError::UnknownOwner(path));
    }
    // SAFETY: geteuid has no preconditions.
    let me = unsafe { libc::geteuid() };
    match owner == me || owner == 0 {
        true => Ok(()),
        false => Err(SegmentError::Owner { path, owner }),
    }
}

/// A user's number means somebody in this user namespace, or the system does not tell.
fn is_mapped(user: u32) -> bool {
    let Ok(map) = std::fs::read_to_string("/proc/self/uid_map") else { return true };
    map.lines().any(|line| {
        let mut numbers = line.split_whitespace().map(|number| number.parse::<u64>().unwrap_or(0));
        let (from, _, count) = (numbers.next(), numbers.next(), numbers.next());
        let (from, count) = (from.unwrap_or(0), count.unwrap_or(0));
        (from..from.saturating_add(count)).contains(&(user as u64))
    })
}

/// Both lead to one file.
pub(super) fn is_same(one: &File, other: &File) -> bool {
    let id = |file: &File| file.metadata().map(|meta| (meta.dev(), meta.ino())).ok();
    id(one).is_some() && id(one) == id(other)
}

/// The path leads to this file.
fn leads_to(path: &Path, file: &File) -> bool {
    let at = std::fs::symlink_metadata(path).map(|meta| (meta.dev(), meta.ino()));
    let of = file.metadata().map(|meta| (meta.dev(), meta.ino()));
    at.is_ok() && at.ok() == of.ok()
}

/// What a file is (F1).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Segment,
    /// Being made.
    Busy,
    /// Half made, by a creator that died.
    Abandoned,
    Empty,
    Foreign,
}

fn judge(file: &File) -> Kind {
    let mut word = [0; 8];
    let read = file.read_at(&mut word, 0);
    let busy = || is_locked(file.as_raw_fd(), CREATION);
    match (read, u64::from_ne_bytes(word)) {
        (Ok(8), MAGIC) => Kind::Segment,
        (Ok(8), HALF_MADE) if busy() => Kind::Busy,
        // It may have been completed between the two looks.
        (Ok(8), HALF_MADE) if begins_with(file, MAGIC) => Kind::Segment,
        (Ok(8), HALF_MADE) => Kind::Abandoned,
        (Ok(0), _) if busy() => Kind::Busy,
        (Ok(0), _) => Kind::Empty,
        _ => Kind::Foreign,
    }
}

fn begins_with(file: &File, expected: u64) -> bool {
    let mut word = [0; 8];
    matches!(file.read_at(&mut word, 0), Ok(8)) && u64::from_ne_bytes(word) == expected
}

/// An empty file is somebody's own, or the name a creator has just made: looks again for a moment.
fn judge_patiently(file: &File) -> Kind {
    for _ in 0..20 {
        match judge(file) {
            Kind::Empty => std::thread::sleep(Duration::from_millis(1)),
            kind => return kind,
        }
    }
    Kind::Foreign
}

/// Opens a segment that is complete.
pub(super) fn open_segment(path: &Path, writable: bool) -> Result<File, SegmentError> {
    let file = open(path, writable)?;
    match judge_patiently(&file) {
        Kind::Segment => Ok(file),
        Kind::Busy => Err(SegmentError::NotReady(path.to_path_buf())),
        Kind::Abandoned => Err(SegmentError::Abandoned(path.to_path_buf())),
        Kind::Empty | Kind::Foreign => Err(SegmentError::Foreign(path.to_path_buf())),
    }
}

/// A new name with its creation lock (F2). Unless told that the segment is complete, it goes again.
pub(super) struct Claim {
    /// A copy of the descriptor: the lock is released with the last of them.
    file: File,
    path: PathBuf,
    complete: bool,
}

impl Claim {
    /// Makes the name, in place of a half-made segment if there is one.
    pub(super) fn new(path: &Path) -> Result<(Self, File), SegmentError> {
        let mut options = options();
        options.write(true).create_new(true).mode(0o600);
        for _ in 0..100 {
            match begin_unnamed(path) {
                Ok(file) => return Self::holding(file, path),
                Err(error) if error.raw_os_error() == Some(libc::EEXIST) => {
                    clear_abandoned(path)?;
                    continue;
                }
                // No files without names here, or something that the call below says as well.
                Err(_) => {}
            }
            match options.open(path).map_err(fail("create segment", path)) {
                Ok(file) => return Self::of(file, path),
                Err(SegmentError::Exists(_)) => clear_abandoned(path)?,
                Err(error) => return Err(error),
            }
        }
        Err(SegmentError::NotReady(path.to_path_buf()))
    }

    /// A name that was made first.
    fn of(file: File, path: &Path) -> Result<(Self, File), SegmentError> {
        match begin(&file) {
            Ok(true) => Self::holding(file, path),
            // Somebody else's program locks every file it finds.
            Ok(false) => {
                unlink(path, &file);
                Err(SegmentError::NotReady(path.to_path_buf()))
            }
            Err(error) => {
                unlink(path, &file);
                Err(no_room_or(error, path))
            }
        }
    }

    /// A name whose lock is held.
    fn holding(file: File, path: &Path) -> Result<(Self, File), SegmentError> {
        match file.try_clone() {
            Ok(copy) => Ok((Self { file: copy, path: path.to_path_buf(), complete: false }, file)),
            Err(error) => {
                unlink(path, &file);
                Err(fail("begin segment", path)(error))
            }
        }
    }

    /// The segment stands: its name stays, its lock goes.
    pub(super) fn complete(mut self) {
        self.complete = true;
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if !self.complete {
            unlink(&self.path, &self.file);
        }
        super::peers::unlock(self.file.as_raw_fd(), CREATION);
    }
}

/// Takes the creation lock and writes the word of a half-made segment. False if somebody else has
/// the lock.
fn begin(file: &File) -> io::Result<bool> {
    let locked = lock(file.as_raw_fd(), CREATION)?;
    file.write_all_at(&HALF_MADE.to_ne_bytes(), 0)?;
    Ok(locked)
}

/// A half-made segment with its lock, which gets its name last (F2).
fn begin_unnamed(path: &Path) -> io::Result<File> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let mut unnamed = OpenOptions::new();
    unnamed.read(true).write(true).mode(0o600).custom_flags(libc::O_TMPFILE | libc::O_CLOEXEC);
    let file = unnamed.open(parent.unwrap_or(Path::new(".")))?;
    if !begin(&file)? {
        return Err(io::ErrorKind::WouldBlock.into());
    }
    let from = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    let to = CString::new(path.as_os_str().as_bytes())?;
    let (here, flags) = (libc::AT_FDCWD, libc::AT_SYMLINK_FOLLOW);
    // SAFETY: both are C strings that outlive the call.
    match unsafe { libc::linkat(here, from.as_ptr(), here, to.as_ptr(), flags) } {
        0 => Ok(file),
        _ => Err(io::Error::last_os_error()),
    }
}

fn no_room_or(error: io::Error, path: &Path) -> SegmentError {
    match error.raw_os_error() {
        Some(libc::ENOSPC) => SegmentError::NoSpace { bytes: 4096, place: path.to_path_buf() },
        Some(libc::ENOLCK | libc::EOPNOTSUPP | libc::ENOSYS) => {
            SegmentError::NoLocks(path.to_path_buf())
        }
        _ => fail("begin segment", path)(error),
    }
}

/// Unlinks a name that still leads to this file.
fn unlink(path: &Path, file: &File) {
    if leads_to(path, file) {
        let _ = std::fs::remove_file(path);
    }
}

/// Makes way for a creator: unlinks a half-made segment whose creator died (F2, F3), refuses
/// everything else.
fn clear_abandoned(path: &Path) -> Result<(), SegmentError> {
    let exists = |path: &Path| SegmentError::Exists(path.to_path_buf());
    let file = match open(path, true) {
        Ok(file) => file,
        // Gone meanwhile: the name is free.
        Err(SegmentError::NotFound(_)) => return Ok(()),
        Err(SegmentError::Permission(_) | SegmentError::ReadOnlyFileSystem(_)) => {
            return Err(exists(path));
        }
        Err(error) => return Err(error),
    };
    match judge_patiently(&file) {
        Kind::Abandoned => {}
        Kind::Segment => return Err(exists(path)),
        Kind::Busy => return Err(SegmentError::NotReady(path.to_path_buf())),
        Kind::Empty | Kind::Foreign => return Err(SegmentError::Foreign(path.to_path_buf())),
    }
    let locked = lock(file.as_raw_fd(), CREATION).map_err(fail("lock segment", path))?;
    // Another one may have been faster, and have replaced it.
    if locked && begins_with(&file, HALF_MADE) {
        unlink(path, &file);
    }
    Ok(())
}

/// Unlinks the name of a segment, complete or abandoned; nothing else (F1, F3).
pub(super) fn remove(path: &Path) -> Result<(), SegmentError> {
    let file = open(path, false)?;
    match judge_patiently(&file) {
        Kind::Segment | Kind::Abandoned => {}
        Kind::Busy => return Err(SegmentError::NotReady(path.to_path_buf())),
        Kind::Empty | Kind::Foreign => return Err(SegmentError::Foreign(path.to_path_buf())),
    }
    if !leads_to(path, &file) {
        return Err(SegmentError::NotFound(path.to_path_buf()));
    }
    std::fs::remove_file(path).map_err(fail("remove segment", path))
}

/// Opens a file again: an open file description of the caller's own, which no fork and no
/// descriptor that was handed on shares.
///
/// Through `/proc` where it is there, since the name may be gone or lead to another file; else by
/// its name, if that still leads here.
pub(super) fn open_again(file: &File, path: Option<&Path>) -> Result<File, SegmentError> {
    let through = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    let mut again = OpenOptions::new();
    again.read(true).write(true).custom_flags(libc::O_CLOEXEC | libc::O_NONBLOCK);
    // Neither `/proc` nor the name is to blame for these.
    let exhausted = |error: &io::Error| {
        matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM))
    };
    let doing = "open the segment again";
    match again.open(&through) {
        Ok(again) if is_same(&again, file) => return Ok(again),
        Err(source) if exhausted(&source) => return Err(SegmentError::Io { doing, source }),
        _ => {}
    }
    let Some(path) = path else { return Err(SegmentError::NeedsProc) };
    match options().write(true).open(path) {
        Ok(again) if is_same(&again, file) => Ok(again),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            Err(SegmentError::Permission(path.to_path_buf()))
        }
        Err(source) if exhausted(&source) => Err(SegmentError::Io { doing, source }),
        _ => Err(SegmentError::Removed(path.to_path_buf())),
    }
}

/// A creator that takes its time; when it is dropped, it has died.
#[cfg(test)]
pub(crate) fn hold_creation(path: &Path) -> impl Drop + Send + use<> {
    struct Creator(File);
    impl Drop for Creator {
        fn drop(&mut self) {
            super::peers::unlock(self.0.as_raw_fd(), CREATION);
        }
    }
    let (claim, file) = Claim::new(path).unwrap();
    let held = Creator(file.try_clone().unwrap());
    std::mem::forget(claim);
    held
}
