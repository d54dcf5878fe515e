//! Memory that processes share: a file in memory (by name), a file of the user's (by path, for warm
//! restarts), or a sealed anonymous file handed to children.
//!
//! | Room | Holds |
//! |---|---|
//! | `header` | the first page: who made the segment, of which shape |
//! | `files` | names: what is ours and what is not, making and removing |
//! | `segment` | create, attach, map |
//! | `view` | the mapping, in huge pages where they can be had |
//! | `peers` | the processes that take part, and the proof that one of them is dead |
//! | `private` | segments of one process alone, where processes share none |
//!
//! **M1.** A segment is created exclusively, follows no symbolic link, gets its mode by `fchmod`,
//! and is allocated in full before anybody sees it: a full file system is an error value, never a
//! signal later.
//! **M2.** The magic word is written last; whoever attaches sees a complete header or an error that
//! names the field.
//! **M3.** While a segment is being created its creator holds a lock on it that the kernel releases
//! with the process: a half-made segment whose lock is free is abandoned, and the next creator
//! replaces it. Files of others are left alone (F1 to F4 of `files`).
//! **M4.** A process that takes part holds the lock of its slot on the segment's own file, by an
//! open file description of its own. Dead means: the lock is free, or the slot has been taken anew;
//! nothing else does (D1 to D5 of `peers`).
//! **M5.** No address is ever stored in a segment.
//!
//! Truncation of a mapped file by somebody else with the right to write it ends in a signal; a
//! sealed segment cannot be truncated.

#[cfg(all(
    not(quintet_private),
    any(target_os = "linux", target_os = "android"),
    not(any(quintet_loom, quintet_shuttle, miri))
))]
mod files;
#[cfg(all(
    not(quintet_private),
    any(target_os = "linux", target_os = "android"),
    not(any(quintet_loom, quintet_shuttle, miri))
))]
mod header;
#[cfg(all(
    not(quintet_private),
    any(target_os = "linux", target_os = "android"),
    not(any(quintet_loom, quintet_shuttle, miri))
))]
mod peers;
#[cfg(all(
    not(quintet_private),
    any(target_os = "linux", target_os = "android"),
    not(any(quintet_loom, quintet_shuttle, miri))
))]
mod segment;
#[cfg(all(
    test,
    not(quintet_private),
    target_os = "linux",
    not(any(quintet_loom, quintet_shuttle, miri))
))]
mod tests;
#[cfg(all(
    not(quintet_private),
    any(target_os = "linux", target_os = "android"),
    not(any(quintet_loom, quintet_shuttle, miri))
))]
mod view;

#[cfg(all(
    not(quintet_private),
    any(target_os = "linux", target_os = "android"),
    any(quintet_loom, quintet_shuttle),
    not(miri)
))]
#[path = "model.rs"]
mod segment;
#[cfg(not(all(not(quintet_private), any(target_os = "linux", target_os = "android"), not(miri))))]
#[path = "private.rs"]
mod segment;

#[cfg(all(
    test,
    not(quintet_private),
    target_os = "linux",
    not(any(quintet_loom, quintet_shuttle, miri))
))]
pub(crate) use files::hold_creation;
#[allow(unused_imports)] // absent where no family can use it
pub(crate) use segment::Segment;

use std::fmt;
use std::path::PathBuf;

/// Processes share segments here. Elsewhere one process has them to itself.
pub(crate) const SHARED: bool =
    cfg!(all(not(quintet_private), any(target_os = "linux", target_os = "android"), not(miri)));

/// Processes that can take part in a segment at once, at most.
pub(crate) const MAX_PROCESSES: usize = 1 << 13;
/// Words of a process slot: incarnation, pid, pid namespace; the rest is zero.
const SLOT_WORDS: usize = 8;
/// Bytes of a process slot.
pub(crate) const SLOT_BYTES: usize = SLOT_WORDS * 8;
/// The longest note of a segment.
#[allow(dead_code)] // absent where no family can use it
pub(crate) const LONGEST_NOTE: usize = 2048;
/// Where the slots begin.
const SLOTS: usize = 4096;

/// Where the family's bytes begin in a segment for so many processes, whose slots fill whole pages.
#[allow(dead_code)] // absent where no family can use it
pub(crate) const fn body_at(processes: usize) -> usize {
    SLOTS + (processes * SLOT_BYTES).next_multiple_of(4096)
}

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

/// Whoever took a slot and may still be alive.
#[derive(Clone, Copy, Debug)]
#[allow(dead_code)] // absent where no family can use it
pub(crate) struct Peer {
    pub(crate) slot: u32,
    pub(crate) incarnation: u64,
    pub(crate) pid: u32,
    /// In the caller's pid namespace, where its number means the same.
    pub(crate) here: bool,
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
    /// Processes that can take part at once, up to [`MAX_PROCESSES`].
    pub(crate) processes: usize,
    /// What the family writes down beside its fields: at most [`LONGEST_NOTE`] bytes.
    pub(crate) note: &'s str,
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
    /// Whoever made it: else only this user's own and those of root.
    pub(crate) any_owner: bool,
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
    /// The file system may only be read.
    ReadOnlyFileSystem(PathBuf),
    /// The name is empty, too long, has a slash or ends in `.lock`.
    Name(PathBuf),
    /// Something else than a regular file lies there.
    NotAFile {
        /// Where.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// Another version made it, in a format that this one does not read.
    Format {
        /// Of the segment.
        found: u64,
        /// Of this version.
        wanted: u64,
    },
    /// Another user made it, and that was not allowed.
    Owner {
        /// Where.
        path: PathBuf,
        /// Who.
        owner: u32,
    },
    /// Whoever made it has no number in this user namespace, and that was not allowed.
    UnknownOwner(PathBuf),
    /// A segment without a name needs `/proc`, which is not there.
    NeedsProc,
    /// Its name was removed, and without `/proc` it cannot be opened again.
    Removed(PathBuf),
    /// The file system has no locks.
    NoLocks(PathBuf),
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
                "processes cannot share segments on this system: use Linux",
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
            Self::Mismatch { field: field @ "mode", expected, found } => write!(
                out,
                "{field} is {found:04o}, not {expected:04o}: use the segment's own parameters or remove it"
            ),
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
            Self::ReadOnlyFileSystem(path) => write!(
                out,
                "{} lies on a file system that may only be read: attach to read, or choose another place",
                path.display()
            ),
            Self::Name(path) => write!(
                out,
                "{} cannot be a segment: take a plain name without slash, or the path of a regular file",
                path.display()
            ),
            Self::NotAFile { path, what } => {
                write!(out, "{} is {what}: give the path of a regular file", path.display())
            }
            Self::Format { found, wanted } if found < wanted => write!(
                out,
                "an older version made it (format {found}, this one reads {wanted}): remove it and create it again"
            ),
            Self::Format { found, wanted } => write!(
                out,
                "a newer version made it (format {found}, this one reads {wanted}): use that version, or remove it \
                 and create it again"
            ),
            Self::Owner { path, owner } => write!(
                out,
                "user {owner} made {}: allow any owner if you trust that user, or choose another name",
                path.display()
            ),
            Self::UnknownOwner(path) => write!(
                out,
                "whoever made {} has no number in this user namespace: allow any owner if you trust it, or choose \
                 another name",
                path.display()
            ),
            Self::NeedsProc => out.write_str(
                "a segment without a name needs /proc, which is not there: mount it, or create the segment by name",
            ),
            Self::Removed(path) => write!(
                out,
                "{} was removed, and without /proc it cannot be opened again: mount /proc, or attach anew",
                path.display()
            ),
            Self::NoLocks(path) => {
                write!(out, "{} lies where files have no locks: choose a local file system", path.display())
            }
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
