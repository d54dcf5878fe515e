//! Memory that processes share: a file in memory (by name), a file of the user's (by path, for warm restarts), or
//! a sealed anonymous file handed to children.
//!
//! | Room | Holds |
//! |---|---|
//! | `header` | the first page: who made the segment, of which shape |
//! | `segment` | create, attach, map |
//! | `view` | the mapping, in huge pages where they can be had |
//! | `peers` | the processes that take part, and the proof that one of them is dead |
//!
//! **M1.** A segment is created exclusively, follows no symbolic link, gets its mode by `fchmod`, and is allocated in full before
//! anybody sees it: a full file system is an error value, never a signal later.
//! **M2.** The magic word is written last; whoever attaches sees a complete header or an error that names the field.
//! **M3.** While a segment is being created its creator holds a lock that the kernel releases with the process: a half-made
//! segment whose lock is free is abandoned, and the next creator replaces it.
//! **M4.** A process that takes part holds the lock of its slot by an open file description of its own: not shared with
//! forked children (closed there at once), not kept over exec. Dead means: the lock is free, the slot has been
//! taken anew, or, in the same pid namespace and boot, the process is gone, a zombie, or started at another time.
//! **M5.** No address is ever stored in a segment.
//!
//! Truncation of a mapped file by somebody else with the right to write it ends in a signal; a sealed segment cannot be truncated.

#[cfg(all(
    feature = "shm",
    any(target_os = "linux", target_os = "android"),
    not(any(quintet_loom, quintet_shuttle, miri))
))]
mod header;
#[cfg(all(
    feature = "shm",
    any(target_os = "linux", target_os = "android"),
    not(any(quintet_loom, quintet_shuttle, miri))
))]
#[cfg(all(
    feature = "shm",
    any(target_os = "linux", target_os = "android"),
    not(any(quintet_loom, quintet_shuttle, miri))
))]
mod peers;
#[cfg(all(
    feature = "shm",
    any(target_os = "linux", target_os = "android"),
    not(any(quintet_loom, quintet_shuttle, miri))
))]
mod segment;
#[cfg(all(
    test,
    feature = "shm",
    target_os = "linux",
    not(any(quintet_loom, quintet_shuttle, miri))
))]
mod tests;
#[cfg(all(
    feature = "shm",
    any(target_os = "linux", target_os = "android"),
    not(any(quintet_loom, quintet_shuttle, miri))
))]
mod view;

#[cfg(all(
    feature = "shm",
    any(target_os = "linux", target_os = "android"),
    any(quintet_loom, quintet_shuttle),
    not(miri)
))]
#[path = "model.rs"]
mod segment;
#[cfg(not(all(feature = "shm", any(target_os = "linux", target_os = "android"), not(miri))))]
#[path = "absent.rs"]
mod segment;

#[allow(unused_imports)] // absent where no family can use it
pub(crate) use segment::Segment;

use std::fmt;
use std::path::PathBuf;

/// Where a segment lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// In memory, under this name, until it is removed or the machine restarts.
    Name(String),
    /// In a file of the user's, which outlives a restart.
    Path(PathBuf),
}

/// Who may use a new segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// Permission bits, 0600 by default. Everybody who attaches needs to read and write.
    pub mode: u32,
    /// A group other than the creator's own.
    pub group: Option<u32>,
}

impl Default for Access {
    fn default() -> Self {
        Self { mode: 0o600, group: None }
    }
}

/// What a family stores in a segment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape<'s> {
    /// Which family.
    pub(crate) kind: u64,
    /// The family's format.
    pub(crate) format: u64,
    /// Named sizes, recorded in the header.
    pub(crate) fields: &'s [(&'static str, u64)],
    /// Bytes behind the header.
    pub(crate) body: usize,
}

/// What a family asks of a segment it attaches to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'w> {
    /// Which family.
    pub(crate) kind: u64,
    /// The oldest and the newest format it understands.
    pub(crate) formats: (u64, u64),
    /// Its sizes; `None` are taken as they are.
    pub(crate) fields: &'w [(&'static str, Option<u64>)],
}

/// Why there is no segment.
#[derive(Debug)]
#[non_exhaustive]
pub enum SegmentError {
    /// This platform has no shared segments.
    Unsupported,
    /// A segment of this name exists.
    Exists(PathBuf),
    /// No segment of this name exists.
    NotFound(PathBuf),
    /// Its creator is still at work.
    NotReady(PathBuf),
    /// Its creator died at work.
    Abandoned(PathBuf),
    /// The file is not a segment.
    Foreign(PathBuf),
    /// A recorded property differs.
    Mismatch {
        /// Which one.
        field: &'static str,
        /// What was asked for.
        expected: u64,
        /// What the segment has.
        found: u64,
    },
    /// There is no room for the segment.
    NoSpace {
        /// What it needs.
        bytes: u64,
        /// Where it should lie.
        place: PathBuf,
    },
    /// The user may not do that.
    Permission(PathBuf),
    /// The name is empty, too long or has a slash, or the path is a symbolic link or no file.
    Name(PathBuf),
    /// Every process slot is taken.
    TooManyProcesses,
    /// The system refused a call.
    Io {
        /// What was being done.
        doing: &'static str,
        /// Why it failed.
        source: std::io::Error,
    },
}

impl fmt::Display for SegmentError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsupported => out.write_str(
                "shared segments are not supported here: use Linux and the feature `shm`",
            ),
            Self::Exists(path) => {
                write!(out, "{} exists: attach to it, or remove it first", path.display())
            }
            Self::NotFound(path) => {
                write!(out, "{} does not exist: create it first", path.display())
            }
            Self::NotReady(path) => {
                write!(out, "{} is being created: try again in a moment", path.display())
            }
            Self::Abandoned(path) => {
                write!(out, "{} is half made, its creator died: create it again", path.display())
            }
            Self::Foreign(path) => {
                write!(out, "{} is not a quintet segment: choose another name", path.display())
            }
            Self::Mismatch { field, expected, found } => write!(
                out,
                "{field} is {found}, not {expected}: use the segment's own parameters or remove it"
            ),
            Self::NoSpace { bytes, place } => write!(
                out,
                "no room for {bytes} bytes at {}: free some, enlarge the file system (for /dev/shm: mount \
                 -o remount,size=...) or choose a smaller capacity",
                place.display()
            ),
            Self::Permission(path) => {
                write!(out, "{}: permission denied; check its owner and mode", path.display())
            }
            Self::Name(path) => write!(
                out,
                "{} cannot be a segment: take a plain name without slash, or the path of a regular file",
                path.display()
            ),
            Self::TooManyProcesses => {
                out.write_str("every process slot is taken: end a process that uses the segment")
            }
            Self::Io { doing, source } => write!(out, "{doing}: {source}"),
        }
    }
}

impl std::error::Error for SegmentError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}
