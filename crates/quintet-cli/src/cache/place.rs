//! Where a name leads, and what went wrong there.
//!
//! A cache in a file has its path noted under its name in the user's state directory; a name with a slash is a path.

use crate::fail::Fail;
use crate::nearest::nearest;
use quintet::cache::{Attached, CacheError, Namespace, OpenError, Place, SegmentError, TierCache};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

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

/// Notes a file under a name.
pub(super) fn write_note(name: &str, path: &Path) -> Result<(), Fail> {
    let refuse = |why: String| {
        let what = format!("cannot note that {name} lies in {}", path.display());
        Fail::misuse(what, why, "set XDG_STATE_HOME to a directory you may write to")
    };
    let note = note(name).ok_or_else(|| refuse("there is no home directory".to_owned()))?;
    let parent = note.parent().unwrap_or(Path::new("/"));
    std::fs::create_dir_all(parent).map_err(|error| refuse(error.to_string()))?;
    let temporary = parent.join(format!(".{name}.{}", std::process::id()));
    std::fs::write(&temporary, path.as_os_str().as_bytes())
        .and_then(|()| std::fs::rename(&temporary, &note))
        .map_err(|error| refuse(error.to_string()))
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

/// Attaches to write.
pub(super) fn attach(name: &str) -> Result<TierCache, Fail> {
    TierCache::attach(&place(name)).map_err(|error| unopened(name, &error))
}

/// Attaches to look: with the right to write if this user has it, since only who takes part can prove others dead.
pub(super) fn look(name: &str) -> Result<TierCache, Fail> {
    let place = place(name);
    let cache = match TierCache::attach(&place) {
        Err(OpenError::Segment(SegmentError::Permission(_))) => TierCache::attach_read_only(&place),
        opened => opened,
    };
    cache.map_err(|error| unopened(name, &error))
}

/// The namespace of this name, if there is one; without a name the one every handle begins in.
pub(super) fn known_space(cache: &TierCache, name: Option<&str>) -> Option<Namespace> {
    cache.find_namespace(name.unwrap_or_default())
}

/// The other processes that are attached.
pub(super) fn others(cache: &TierCache) -> Vec<Attached> {
    let me = std::process::id();
    let exists = |pid: u32| Path::new(&format!("/proc/{pid}")).exists();
    // A cache that is only read proves nobody dead: whom this system does not know is taken for gone.
    let counts = |other: &Attached| other.pid != me && exists(other.pid);
    cache.processes().into_iter().filter(counts).collect()
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
