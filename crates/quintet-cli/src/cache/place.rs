//! Where a name leads, and what went wrong there.
//!
//! A cache in a file has its path noted under its name in the user's state directory; a name with a
//! slash is a path.

use crate::fail::Fail;
use crate::nearest::nearest;
use quintet::cache::{Attached, CacheBuilder, CacheError, Namespace, OpenError, Place};
use quintet::cache::{SegmentError, TierCache};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// Caches in memory are files here, under this prefix.
pub(super) const MEMORY: &str = "/dev/shm";
pub(super) const PREFIX: &str = "quintet-";

/// Notes of the caches that lie in files.
fn notes() -> Option<PathBuf> {
    let state = std::env::var_os("XDG_STATE_HOME").filter(|path| !path.is_empty());
    let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".local/state"));
    Some(state.map(PathBuf::from).or_else(home)?.join("quintet/caches"))
}

/// The note of a name, if the name can have one.
fn note(name: &str) -> Option<PathBuf> {
    let plain = !name.is_empty() && !name.contains(['/', '\0']) && !name.starts_with('.');
    notes().filter(|_| plain).map(|notes| notes.join(name))
}

/// The file noted under a name.
pub(super) fn noted(name: &str) -> Option<PathBuf> {
    let bytes = std::fs::read(note(name)?).ok()?;
    Some(PathBuf::from(std::ffi::OsStr::from_bytes(&bytes)))
}

/// A note that is written but not yet under its name; dropped, nothing of it is left.
pub(super) struct Note {
    temporary: PathBuf,
    note: PathBuf,
    name: String,
    path: PathBuf,
    /// Directories that were made for it, the deepest first.
    made: Vec<PathBuf>,
}

impl Note {
    /// Writes down that a name's cache lies in a file, so that it only has to be kept once there is
    /// one.
    pub(super) fn prepare(name: &str, path: &Path) -> Result<Self, Fail> {
        let refuse = |why: String| unnoted(name, path, why);
        let note = note(name).ok_or_else(|| refuse("there is no home directory".to_owned()))?;
        if let Some(other) = noted(name).filter(|other| other != path && other.exists()) {
            let what = format!("there is a cache {name:?}");
            let why = format!("it lies in {}", other.display());
            return Err(Fail::misuse(what, why, "choose another name, or remove it first"));
        }
        let parent = note.parent().unwrap_or(Path::new("/"));
        let temporary = parent.join(format!(".{name}.{}", std::process::id()));
        let made = parent.ancestors().take_while(|parent| !parent.exists());
        let made = made.map(Path::to_path_buf).collect();
        let (name, path) = (name.to_owned(), path.to_path_buf());
        let prepared = Self { temporary, note: note.clone(), name, path: path.clone(), made };
        std::fs::create_dir_all(parent)
            .and_then(|()| std::fs::write(&prepared.temporary, path.as_os_str().as_bytes()))
            .map_err(|error| refuse(error.to_string()))?;
        Ok(prepared)
    }

    /// The cache is there.
    pub(super) fn keep(self) -> Result<(), Fail> {
        let kept = std::fs::rename(&self.temporary, &self.note);
        kept.map_err(|error| unnoted(&self.name, &self.path, error.to_string()))
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        // Kept, it has another name, and its directories are not empty.
        let _ = std::fs::remove_file(&self.temporary);
        for directory in &self.made {
            let _ = std::fs::remove_dir(directory);
        }
    }
}

fn unnoted(name: &str, path: &Path, why: String) -> Fail {
    let what = format!("cannot note that {name} lies in {}", path.display());
    Fail::misuse(what, why, "set XDG_STATE_HOME to a directory you may write to")
}

/// Forgets what is noted under a name.
pub(super) fn forget(name: &str) {
    if let Some(note) = note(name) {
        let _ = std::fs::remove_file(note);
    }
}

/// Where the cache of this name lies.
pub(super) fn place(name: &str) -> Place {
    if name.contains('/') {
        return Place::Path(name.into());
    }
    noted(name).map_or_else(|| Place::Name(name.to_owned()), Place::Path)
}

/// The names of all caches, in memory and noted. What is in memory may be something else.
pub(super) fn names() -> Vec<String> {
    let list = |path: PathBuf| std::fs::read_dir(path).into_iter().flatten().flatten();
    let text = |entry: std::fs::DirEntry| entry.file_name().into_string().ok();
    let memory = list(MEMORY.into()).filter_map(text);
    let memory = memory.filter(|name| !name.ends_with(".lock"));
    let memory = memory.filter_map(|name| name.strip_prefix(PREFIX).map(str::to_owned));
    let noted = notes().into_iter().flat_map(list).filter_map(text);
    let mut names: Vec<String> =
        memory.chain(noted.filter(|name| !name.starts_with('.'))).collect();
    names.sort_unstable();
    names.dedup();
    names
}

static ANY_OWNER: AtomicBool = AtomicBool::new(false);
static ANY_STORE: AtomicBool = AtomicBool::new(false);

/// From now on caches of other users are used as well, and the stores they name.
pub(super) fn allow_any_owner(allowed: bool, stores: bool) {
    // ORDERING: Relaxed: set once, by the only thread.
    ANY_OWNER.store(allowed, Ordering::Relaxed);
    ANY_STORE.store(stores, Ordering::Relaxed);
}

/// What every cache is asked for.
pub(super) fn builder() -> CacheBuilder {
    // ORDERING: Relaxed, as above.
    let builder = match ANY_OWNER.load(Ordering::Relaxed) {
        true => TierCache::builder().any_owner(),
        false => TierCache::builder(),
    };
    if ANY_STORE.load(Ordering::Relaxed) { builder.any_store() } else { builder }
}

/// Attaches to write.
pub(super) fn attach(name: &str) -> Result<TierCache, Fail> {
    builder().attach(&place(name)).map_err(|error| unopened(name, &error))
}

/// Attaches to look: a cache from before a restart is repaired first, if this user may. Looking
/// trusts nobody, whoever made it.
pub(super) fn look(name: &str) -> Result<TierCache, Fail> {
    let place = place(name);
    let cache = match builder().attach(&place) {
        Err(OpenError::Segment(
            SegmentError::Permission(_)
            | SegmentError::ReadOnlyFileSystem(_)
            | SegmentError::Owner { .. }
            | SegmentError::UnknownOwner(_),
        )) => TierCache::builder().any_owner().attach_read_only(&place),
        opened => opened,
    };
    cache.map_err(|error| unopened(name, &error))
}

/// Attaches for gets: whoever may only read gets values too, uncounted.
pub(super) fn attach_for_gets(name: &str) -> Result<TierCache, Fail> {
    let place = place(name);
    let cache = match builder().attach(&place) {
        Err(OpenError::Segment(
            SegmentError::Permission(_) | SegmentError::ReadOnlyFileSystem(_),
        )) => builder().attach_read_only(&place),
        opened => opened,
    };
    cache.map_err(|error| unopened(name, &error))
}

/// The namespace of this name, if there is one; without a name the one every handle begins in.
pub(super) fn known_space(cache: &TierCache, name: Option<&str>) -> Option<Namespace> {
    cache.find_namespace(name.unwrap_or_default())
}

/// The other processes that take part.
pub(super) fn others(cache: &TierCache) -> Vec<Attached> {
    let me = std::process::id();
    let counts = |other: &Attached| !(other.here && other.pid == me);
    cache.processes().into_iter().filter(counts).collect()
}

/// One line of text, whatever it holds: control characters are escaped.
pub(super) fn printable(text: &str) -> String {
    match text.contains(char::is_control) {
        true => text.escape_debug().to_string(),
        false => text.to_owned(),
    }
}

/// Why there is no cache, and what to do.
pub(super) fn unopened(name: &str, error: &OpenError) -> Fail {
    let what = format!("no cache {name:?}");
    match error {
        OpenError::Segment(SegmentError::NotFound(path)) => {
            let names = names();
            let near = nearest(name, names.iter().map(String::as_str));
            let advice = match near {
                Some(near) => format!("did you mean {near}? quintet cache ls shows all"),
                None => format!("quintet cache create {name} --capacity 64MiB makes it"),
            };
            Fail::misuse(what, format!("{} does not exist", path.display()), advice)
        }
        OpenError::Segment(SegmentError::Exists(path)) => Fail::misuse(
            format!("there is a cache {name:?}"),
            format!("{} exists", path.display()),
            "use it as it is with --if-absent, or quintet cache remove it first",
        ),
        OpenError::Segment(SegmentError::NoSpace { bytes, place }) => no_space(*bytes, place),
        OpenError::Segment(SegmentError::Permission(path)) => Fail::misuse(
            what,
            format!("{}: permission denied", path.display()),
            "ask its owner to create it with --mode 0660 or 0666, or run as its owner",
        ),
        OpenError::Segment(SegmentError::ReadOnlyFileSystem(path)) => Fail::misuse(
            what,
            format!("{} lies on a file system that may only be read", path.display()),
            "get, mget, ttl, scan, dump and stat work there; to write, remount it",
        ),
        OpenError::Segment(SegmentError::Owner { path, owner }) => Fail::misuse(
            what,
            format!("user {owner} made {}", path.display()),
            "give --any-owner if you trust that user, or choose another name",
        ),
        OpenError::Segment(SegmentError::UnknownOwner(path)) => Fail::misuse(
            what,
            format!("whoever made {} has no number in this user namespace", path.display()),
            "give --any-owner if you trust it, or choose another name",
        ),
        OpenError::Segment(SegmentError::Format { .. }) => {
            let advice = format!("quintet cache remove {name}, then create it again");
            let text = error.to_string();
            let why = text.split_once(": ").map_or(text.as_str(), |(why, _)| why);
            Fail::misuse(what, why, advice)
        }
        OpenError::Segment(SegmentError::NotAFile { path, what: kind }) => Fail::misuse(
            format!("{name:?} cannot name a cache"),
            format!("{} is {kind}", path.display()),
            "give the path of a regular file, or a name",
        ),
        OpenError::Segment(SegmentError::Foreign(_) | SegmentError::Mismatch { .. }) => {
            Fail::misuse(
                what,
                error.to_string(),
                "choose another name, or remove the file if nobody needs it",
            )
        }
        OpenError::Segment(SegmentError::Name(_)) => Fail::misuse(
            format!("{name:?} cannot name a cache"),
            "a name has 1 to 200 characters and no slash, and does not end in .lock",
            "give a plain name, or the path of a regular file",
        ),
        OpenError::Store(error) => Fail::misuse(
            format!("no store for {name:?}"),
            error.to_string(),
            "start the store, or give another --store",
        ),
        OpenError::Segment(SegmentError::Abandoned(_)) | OpenError::Damaged(_) => Fail::misuse(
            what,
            error.to_string(),
            format!("quintet cache remove {name}, then create it again"),
        ),
        // Their texts end with what to do.
        other => split(what, &other.to_string()),
    }
}

/// A full file system: of memory, the limit may be a container's.
fn no_space(bytes: u64, place: &Path) -> Fail {
    let what = format!("no room for {} at {}", super::units::size(bytes), place.display());
    let directory = place.parent().unwrap_or(Path::new("/"));
    let why = super::space::of(directory).map_or_else(
        || format!("{} is full", directory.display()),
        |(free, all)| {
            let (free, all) = (super::units::size(free), super::units::size(all));
            format!("{} has {free} free of {all}", directory.display())
        },
    );
    let advice = if directory == Path::new(MEMORY) {
        "give a smaller --capacity or --path FILE, or enlarge it: docker run --shm-size=1g; Kubernetes: emptyDir with \
         medium Memory at /dev/shm; mount -o remount,size=1G /dev/shm"
    } else {
        "free some room, or give a smaller --capacity"
    };
    Fail::misuse(what, why, advice)
}

/// A text of the library: what is wrong, then what to do, after a colon or semicolon.
fn split(what: String, text: &str) -> Fail {
    match text.rsplit_once([':', ';']) {
        Some((why, advice)) => Fail::misuse(what, why, advice.trim()),
        None => Fail::misuse(what, text, "quintet cache check NAME looks for damage"),
    }
}

/// Why an operation had no effect, and what to do.
pub(super) fn refused(name: &str, doing: &str, error: &CacheError) -> Fail {
    let what = format!("cannot {doing} {name}");
    match error {
        CacheError::ValueTooLarge { max } => Fail::misuse(
            what,
            format!("the value is longer than {max} bytes"),
            "store less, or create the cache with a larger --max-value",
        ),
        CacheError::KeyTooLarge { max } => Fail::misuse(
            what,
            format!("the key is longer than {max} bytes"),
            "use a shorter key, for example a hash of it",
        ),
        CacheError::Full => Fail::misuse(
            what,
            "the cache is full and evicts nothing",
            "del some keys, or create it with a larger --capacity or without --no-evict",
        ),
        CacheError::NotANumber => Fail::misuse(
            what,
            "the value is no decimal number of 64 bits, or the sum would not be",
            "set the key to a number first",
        ),
        CacheError::NoSeat => Fail::misuse(
            what,
            "as many handles as the cache has seats are in use",
            "end a process that uses it; quintet cache stat shows them",
        ),
        CacheError::Corrupt(_) => Fail::misuse(
            what,
            error.to_string(),
            format!("quintet cache check {name}; if that fails, remove and create it again"),
        ),
        other => split(what, &other.to_string()),
    }
}
