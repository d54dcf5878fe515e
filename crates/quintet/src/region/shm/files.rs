//! The files of segments: found, made exclusively, told from the files of others, removed.
//!
//! **F1.** A file is a segment if it begins with the magic word, and a half-made one if it begins with the word for that. Any other
//! file, an empty one too, is somebody else's: it is never written to, unlinked or given another mode.
//! **F2.** Whoever makes a segment makes its name, and at once holds the creation lock, which lies on the file's own first byte. A half-made
//! file whose lock is held is being made; one whose lock is free was left by a creator that died, and the next one replaces it.
//! **F3.** A name is unlinked only by who has seen a segment there and, for a half-made one, holds its creation lock.
//! **F4.** No other file is made: whatever fails leaves nothing behind. Only a creator killed between making the name and its first word leaves an
//! empty file, which F1 protects; it has to be removed by hand.

use super::header::{HALF_MADE, MAGIC};
use super::peers::{CREATION, is_locked, lock};
use super::{Place, SegmentError};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The error of a call about a path.
pub(super) fn fail(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> SegmentError {
    let path = path.to_path_buf();
    move |source| match source.raw_os_error() {
        Some(libc::ENOENT) => SegmentError::NotFound(path),
        Some(libc::EEXIST) => SegmentError::Exists(path),
        Some(libc::EACCES | libc::EPERM | libc::EROFS) => SegmentError::Permission(path),
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
            match options.open(path).map_err(fail("create segment", path)) {
                Ok(file) => return Self::of(file, path),
                Err(SegmentError::Exists(_)) => clear_abandoned(path)?,
                Err(error) => return Err(error),
            }
        }
        Err(SegmentError::NotReady(path.to_path_buf()))
    }

    fn of(file: File, path: &Path) -> Result<(Self, File), SegmentError> {
        let copy = file.try_clone();
        let begun = copy.and_then(|copy| {
            let locked = lock(file.as_raw_fd(), CREATION)?;
            file.write_all_at(&HALF_MADE.to_ne_bytes(), 0)?;
            Ok((copy, locked))
        });
        match begun {
            Ok((copy, true)) => {
                Ok((Self { file: copy, path: path.to_path_buf(), complete: false }, file))
            }
            // Somebody else's program locks every file it finds.
            Ok((_, false)) => {
                unlink(path, &file);
                Err(SegmentError::NotReady(path.to_path_buf()))
            }
            Err(error) => {
                unlink(path, &file);
                Err(no_room_or(error, path))
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

/// Makes way for a creator: unlinks a half-made segment whose creator died (F2, F3), refuses everything else.
fn clear_abandoned(path: &Path) -> Result<(), SegmentError> {
    let exists = |path: &Path| SegmentError::Exists(path.to_path_buf());
    let file = match open(path, true) {
        Ok(file) => file,
        // Gone meanwhile: the name is free.
        Err(SegmentError::NotFound(_)) => return Ok(()),
        Err(SegmentError::Permission(_)) => return Err(exists(path)),
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

/// Opens a file again: an open file description of the caller's own, which no fork and no descriptor that was handed on shares.
///
/// Through `/proc` where it is there, since the name may be gone or lead to another file; else by its name, if that still leads here.
pub(super) fn open_again(file: &File, path: Option<&Path>) -> Result<File, SegmentError> {
    let through = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    let mut again = OpenOptions::new();
    again.read(true).write(true).custom_flags(libc::O_CLOEXEC | libc::O_NONBLOCK);
    let by_proc = again.open(&through).ok().filter(|again| is_same(again, file));
    if let Some(again) = by_proc {
        return Ok(again);
    }
    let Some(path) = path else { return Err(SegmentError::NeedsProc) };
    match options().write(true).open(path) {
        Ok(again) if is_same(&again, file) => Ok(again),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            Err(SegmentError::Permission(path.to_path_buf()))
        }
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
