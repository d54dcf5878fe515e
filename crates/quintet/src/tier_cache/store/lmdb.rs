//! LMDB: a file that the processes of one machine share.
//!
//! | database | key | value |
//! |---|---|---|
//! | `entries` | the key, or of a long one its beginning and a hash | sequence, then the record (`line`), with its key if that is long |
//! | `order` | sequence | the key in `entries` |
//! | `about` | `format`, `size`, `newest`, `identity` | what the file is, the most bytes of it, the greatest version it was given, a number of its own |
//!
//! **D1.** A batch is one transaction, or several if it is large; a transaction happens or does
//! not, whoever dies.
//! **D2.** The deadline is looked at inside of the transaction, where no other writer is: whoever
//! finds it passed writes nothing, and who writes later than that was let in later.
//! **D3.** Every record has one sequence, which grows with each store, and one line in `order`. The
//! oldest go first, in the transaction that needs their room, so that records take at most 11 parts
//! of 16 of the file. The rest is for pages that readers still see: a put that finds none waits for
//! them until its deadline.
//! **D4.** An environment is opened once per process and path: a second opening shares it. LMDB's
//! locks belong to the process.
//! **D5.** Readers of dead processes are cleared when the store is opened, when room runs out, and
//! now and then.

use super::counts::{Counts, Tally};
use super::line::{self, HEADER, Line};
use super::{Found, Record, Store, StoreError, StoreStats, StoreSync, wall_ms};
use crate::sync::constant::Mutex;
use heed::types::Bytes;
use heed::{
    CommitOrAbort, Database, Env, EnvFlags, EnvOpenOptions, MdbError, PutFlags, RoTxn, RwTxn,
    WithoutTls,
};
use std::fmt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant, SystemTime};

type Bare = Database<'static, Bytes, Bytes>;

/// What a file says it is.
const FORMAT: &[u8] = b"quintet store 1";
const FILE: &str = "data.mdb";
/// The file's size if nobody chose one, and the least there is.
const SIZE: u64 = 1 << 30;
const LEAST_SIZE: u64 = 1 << 20;
/// Of the file, in parts of 16: what records take at most (D3), and what one transaction writes.
const LIVE: u64 = 11;
const BATCH: u64 = 1;
/// LMDB's keys end here: longer ones are cut, and carry a hash.
const WHOLE_KEY: usize = 480;
const CUT_KEY: usize = 440;
/// Records that leave at a time, at most: few of few.
const LEAVERS: usize = 64;
/// Puts between two looks for readers of dead processes (D5).
const CHECK_READERS: u64 = 256;
/// How long others of this process may take to open or close a store.
const PATIENCE: Duration = Duration::from_secs(2);
/// Readers at once, in all processes.
const READERS: u32 = 1024;

/// A store in a directory of its own. Multi-process, crash-safe, bounded.
#[derive(Clone)]
pub struct Lmdb(Arc<Shared>);

struct Shared {
    // Dropped after the databases, which mean nothing without it.
    entries: Bare,
    order: Bare,
    about: Bare,
    env: Env<WithoutTls>,
    path: PathBuf,
    /// Device and number of the file.
    file: (u64, u64),
    size: u64,
    identity: u64,
    sync: StoreSync,
    process: u32,
    counts: Counts,
}

/// D4.
static OPEN: Mutex<Vec<(PathBuf, Weak<Shared>)>> = Mutex::new(Vec::new());

impl fmt::Debug for Lmdb {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shared { path, size, sync, .. } = &*self.0;
        let mut out = out.debug_struct("Lmdb");
        out.field("path", path).field("size", size).field("sync", sync).finish_non_exhaustive()
    }
}

impl From<heed::Error> for StoreError {
    fn from(error: heed::Error) -> Self {
        match error {
            heed::Error::Mdb(MdbError::MapFull) => Self::Refused(
                "no room, although old records were let go; give it a larger size".into(),
            ),
            heed::Error::Mdb(MdbError::ReadersFull) => {
                Self::Unavailable(format!("{READERS} lookups are under way at once"))
            }
            heed::Error::Mdb(error) => {
                Self::Refused(format!("LMDB: {error}; remove the store if it is damaged"))
            }
            heed::Error::Io(error) => Self::Unavailable(format!("LMDB: {error}")),
            error => Self::Refused(format!("LMDB: {error}")),
        }
    }
}

impl Lmdb {
    /// Opens the store in this directory, or makes it. One that is there keeps the size it was made
    /// with, and asking for another is an error.
    pub fn open(path: &Path, size: Option<u64>, sync: StoreSync) -> Result<Self, StoreError> {
        let unusable =
            |error: std::io::Error| StoreError::Unavailable(format!("{}: {error}", path.display()));
        let mut made = std::fs::DirBuilder::new();
        made.recursive(true).mode(0o700).create(path).map_err(unusable)?;
        let path = path.canonicalize().map_err(unusable)?;
        let patience = Instant::now() + PATIENCE;
        let mut open = loop {
            match OPEN.try_lock() {
                Some(open) => break open,
                // Or it was held when this process was forked, and nobody here ever lets it go.
                None if Instant::now() >= patience => return Err(StoreError::Forked),
                None => std::thread::sleep(Duration::from_millis(1)),
            }
        };
        open.retain(|(_, shared)| shared.strong_count() > 0);
        let known = open.iter().find(|(known, _)| *known == path);
        let shared = match known.and_then(|(_, shared)| shared.upgrade()) {
            Some(shared) if file_of(&path).ok() != Some(shared.file) => {
                return Err(StoreError::Refused(format!(
                    "{} was removed or replaced while this process had it open",
                    path.display()
                )));
            }
            Some(shared) if shared.process == std::process::id() => shared,
            Some(_) => return Err(StoreError::Forked),
            None => {
                let shared = Arc::new(Shared::open(path.clone(), size, sync)?);
                open.push((path, Arc::downgrade(&shared)));
                shared
            }
        };
        if size.is_some_and(|size| whole_pages(size) != shared.size) || sync != shared.sync {
            return Err(StoreError::Refused(format!(
                "the store has a size of {} bytes and sync {:?}; ask for these, or remove it",
                shared.size, shared.sync
            )));
        }
        Ok(Self(shared))
    }
}

fn file_of(path: &Path) -> std::io::Result<(u64, u64)> {
    let about = std::fs::metadata(path.join(FILE))?;
    Ok((about.dev(), about.ino()))
}

/// Sizes are whole pieces of 64 KiB, which are whole pages everywhere.
fn whole_pages(size: u64) -> u64 {
    size.max(LEAST_SIZE).next_multiple_of(1 << 16)
}

enum Never {}

impl Shared {
    fn open(path: PathBuf, size: Option<u64>, sync: StoreSync) -> Result<Self, StoreError> {
        let env = open_env(&path, size, sync)?;
        let _ = env.clear_stale_readers()?;
        let file = lengthen(&env, &path)?;
        let writing = env.write_txn()?;
        let made = env.create_databases_and_commit(writing, |opener, writing| {
            let entries = opener.database_options().types().name("entries").create(writing)?;
            let order = opener.database_options().types().name("order").create(writing)?;
            let about = opener.database_options().types().name("about").create(writing)?;
            Ok::<_, heed::Error>(CommitOrAbort::<_, Never>::Commit((entries, order, about)))
        })?;
        let CommitOrAbort::Commit(databases) = made;
        type Three<'e> =
            (Database<'e, Bytes, Bytes>, Database<'e, Bytes, Bytes>, Database<'e, Bytes, Bytes>);
        // SAFETY: the three are numbers that mean something as long as the environment is open, and
        // it lies beside them.
        let (entries, order, about) =
            unsafe { std::mem::transmute::<Three<'_>, Three<'static>>(databases) };
        let process = std::process::id();
        let counts = Counts::default();
        let mut shared = Self {
            entries,
            order,
            about,
            env,
            path,
            file,
            size: 0,
            identity: 0,
            sync,
            process,
            counts,
        };
        (shared.size, shared.identity) = shared.introduce(size)?;
        Ok(shared)
    }

    /// Verifies what the file is, or writes it down. Its size and its identity.
    fn introduce(&self, size: Option<u64>) -> Result<(u64, u64), StoreError> {
        let mut writing = self.env.write_txn()?;
        let size = match self.about.get(&writing, b"format")? {
            Some(FORMAT) => self.about.get(&writing, b"size")?.and_then(word),
            Some(_) => {
                return Err(StoreError::Refused(format!(
                    "{} is of another format; remove it",
                    self.path.display()
                )));
            }
            None => {
                let size = whole_pages(size.unwrap_or(SIZE));
                self.about.put(&mut writing, b"format", FORMAT)?;
                self.about.put(&mut writing, b"size", &size.to_be_bytes())?;
                Some(size)
            }
        };
        let known = self.about.get(&writing, b"identity")?.and_then(word);
        let identity = known.unwrap_or_else(crate::hash::random_seed);
        if known.is_none() {
            self.about.put(&mut writing, b"identity", &identity.to_be_bytes())?;
        }
        writing.commit()?;
        let size =
            size.ok_or_else(|| StoreError::Refused("the store lacks its size; remove it".into()))?;
        Ok((size, identity))
    }

    fn enter(&self) -> Result<(), StoreError> {
        if std::process::id() == self.process { Ok(()) } else { Err(StoreError::Forked) }
    }

    fn share(&self, parts: u64) -> u64 {
        self.size / 16 * parts
    }

    /// Bytes of the pages that records take.
    fn used(&self, txn: &RoTxn<'_>) -> heed::Result<u64> {
        let of = |database: &Bare| {
            let stat = database.stat(txn)?;
            let pages = stat.branch_pages + stat.leaf_pages + stat.overflow_pages;
            Ok::<_, heed::Error>(pages as u64 * stat.page_size as u64)
        };
        Ok(of(&self.entries)? + of(&self.order)?)
    }

    /// D3: lets go of the oldest until `need` bytes fit. Returns how many left.
    fn make_room(&self, writing: &mut RwTxn<'_>, need: u64) -> heed::Result<usize> {
        let mut left = 0;
        let leavers = (self.entries.len(writing)? as usize / LEAVERS).clamp(1, LEAVERS);
        while self.used(writing)? + need > self.share(LIVE) {
            let oldest: Vec<(Vec<u8>, Vec<u8>)> = {
                let lines = self.order.iter(writing)?.take(leavers);
                let owned = lines.map(|line| line.map(|(at, key)| (at.to_vec(), key.to_vec())));
                owned.collect::<heed::Result<_>>()?
            };
            if oldest.is_empty() {
                break;
            }
            for (at, key) in &oldest {
                self.order.delete(writing, at)?;
                self.entries.delete(writing, key)?;
            }
            left += oldest.len();
        }
        Ok(left)
    }

    /// One transaction of a batch (D1). Returns how many were taken, met something newer, left.
    fn put_some(
        &self,
        batch: &[Record<'_>],
        until: SystemTime,
    ) -> heed::Result<Option<[usize; 3]>> {
        let mut writing = self.env.write_txn()?;
        // D2
        if SystemTime::now() >= until {
            return Ok(None);
        }
        let need = batch.iter().map(|record| weight(record) as u64).sum();
        let left = self.make_room(&mut writing, need)?;
        let last = self.order.last(&writing)?.and_then(|(at, _)| word(at)).unwrap_or(0);
        let before = self.about.get(&writing, b"newest")?.and_then(word);
        let (mut taken, mut newest) = (0, before.unwrap_or(0));
        for (record, sequence) in batch.iter().zip(last + 1..) {
            newest = newest.max(record.version);
            let key = cut(record.key);
            let at = sequence.to_be_bytes();
            let mut bytes = at.to_vec();
            line::write(&mut bytes, record, is_cut(record.key));
            // One search for a key that is new, as most are.
            if let Some(old) = self.entries.get_or_put(&mut writing, &key, &bytes)? {
                let old = placed(old)
                    .map(|(at, old)| (*at, old.is_of(record.key) && old.version > record.version));
                match old {
                    Some((_, true)) => continue,
                    Some((at, false)) => _ = self.order.delete(&mut writing, &at)?,
                    None => {}
                }
                self.entries.put(&mut writing, &key, &bytes)?;
            }
            self.order.put_with_flags(&mut writing, PutFlags::APPEND, &at, &key)?;
            taken += 1;
        }
        if before != Some(newest) {
            self.about.put(&mut writing, b"newest", &newest.to_be_bytes())?;
        }
        writing.commit()?;
        Ok(Some([taken, batch.len() - taken, left]))
    }

    /// The same, again where the map turns out to be full, until the deadline.
    fn put_patiently(&self, batch: &[Record<'_>], until: SystemTime) -> Result<usize, StoreError> {
        loop {
            match self.put_some(batch, until) {
                Ok(None) => return Err(StoreError::Late),
                Ok(Some([taken, older, left])) => {
                    self.counts.add(Tally::Puts, taken);
                    self.counts.add(Tally::Older, older);
                    self.counts.add(Tally::Evicted, left);
                    return Ok(taken);
                }
                Err(heed::Error::Mdb(MdbError::MapFull)) => self.relieve()?,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The map is full of pages that are not records. Either they lie badly, and some records have
    /// to go; or readers hold them, which passes.
    fn relieve(&self) -> Result<(), StoreError> {
        self.env.clear_stale_readers()?;
        let mut writing = self.env.write_txn()?;
        let (used, live) = (self.used(&writing)?, self.share(LIVE));
        if used < live / 2 {
            drop(writing);
            std::thread::sleep(Duration::from_millis(1));
            return Ok(());
        }
        let room = live.saturating_sub(used) + self.share(1) / 2;
        match self.make_room(&mut writing, room).and_then(|left| writing.commit().map(|()| left)) {
            Ok(left) => self.counts.add(Tally::Evicted, left),
            Err(heed::Error::Mdb(MdbError::MapFull)) => {
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    fn put(&self, batch: &[Record<'_>], until: SystemTime) -> Result<usize, StoreError> {
        self.enter()?;
        let most = self.share(BATCH) as usize;
        if batch.iter().any(|record| weight(record) > most) {
            return Err(StoreError::TooLarge { max: most - 2 * HEADER - WHOLE_KEY });
        }
        let mut taken = 0;
        let mut rest = batch;
        while !rest.is_empty() {
            let mut bytes = 0;
            let fits = rest.iter().take_while(|record| {
                bytes += weight(record);
                bytes <= most
            });
            let (some, later) = rest.split_at(fits.count().max(1));
            taken += self.put_patiently(some, until)?;
            rest = later;
        }
        if self.counts.stats().puts % CHECK_READERS < batch.len() as u64 {
            let _ = self.env.clear_stale_readers();
        }
        Ok(taken)
    }

    fn read(&self) -> Result<RoTxn<'_, WithoutTls>, StoreError> {
        match self.env.read_txn() {
            Err(heed::Error::Mdb(MdbError::ReadersFull)) => {
                self.env.clear_stale_readers()?;
                Ok(self.env.read_txn()?)
            }
            begun => Ok(begun?),
        }
    }

    fn get(&self, keys: &[&[u8]]) -> Result<Vec<Option<Found>>, StoreError> {
        self.enter()?;
        let reading = self.read()?;
        let now = wall_ms(SystemTime::now());
        let found = keys.iter().map(|key| {
            let placed = self.entries.get(&reading, &cut(key))?.and_then(placed);
            Ok::<_, heed::Error>(placed.and_then(|(_, line)| line.found(key, now)))
        });
        let found = found.collect::<heed::Result<Vec<_>>>()?;
        self.counts.add(Tally::Gets, keys.len());
        self.counts.add(Tally::Hits, found.iter().flatten().count());
        Ok(found)
    }
}

fn open_env(
    path: &Path,
    size: Option<u64>,
    sync: StoreSync,
) -> Result<Env<WithoutTls>, StoreError> {
    let mut options = EnvOpenOptions::new().read_txn_without_tls();
    options.max_dbs(3).max_readers(READERS);
    // A file that is there knows its size.
    if let Some(size) = size.or((!path.join(FILE).exists()).then_some(SIZE)) {
        let size = usize::try_from(whole_pages(size))
            .map_err(|_| StoreError::Address("the size is beyond this machine's memory".into()))?;
        options.map_size(size);
    }
    let flags = match sync {
        StoreSync::Full => EnvFlags::empty(),
        StoreSync::Meta => EnvFlags::NO_META_SYNC,
        StoreSync::None => EnvFlags::NO_SYNC,
    };
    // SAFETY: what these give up is the newest transaction after power loss, and with `NO_SYNC` the
    // file, which its user chose.
    unsafe { options.flags(flags | EnvFlags::NO_READ_AHEAD) };
    // Somebody may be closing the same environment just now.
    let patience = Instant::now() + PATIENCE;
    loop {
        // SAFETY: the directory belongs to the store: its files are changed through LMDB only, by
        // processes that lock them.
        match unsafe { options.open(path) } {
            Err(heed::Error::EnvAlreadyOpened) if Instant::now() < patience => {
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(heed::Error::EnvAlreadyOpened) => return Err(StoreError::Forked),
            opened => return Ok(opened?),
        }
    }
}

/// A file that somebody cut is made as long as it says: beyond its end a page would be no memory,
/// and whoever looked at it would be killed. Its device and number.
fn lengthen(env: &Env<WithoutTls>, path: &Path) -> Result<(u64, u64), StoreError> {
    let unusable =
        |error: std::io::Error| StoreError::Unavailable(format!("{}: {error}", path.display()));
    // Nobody else makes it longer meanwhile.
    let _writing = env.write_txn()?;
    // SAFETY: sysconf has no preconditions.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    let length = (env.info().last_page_number as u64 + 1) * u64::try_from(page).unwrap_or(4096);
    let file = std::fs::File::options().write(true).open(path.join(FILE)).map_err(unusable)?;
    if file.metadata().map_err(unusable)?.len() < length {
        file.set_len(length).map_err(unusable)?;
    }
    file_of(path).map_err(unusable)
}

fn is_cut(key: &[u8]) -> bool {
    key.len() > WHOLE_KEY || key.is_empty()
}

/// The key in `entries`: 0 and the key, or 1, the beginning of a long one, its length and two sums.
/// LMDB has no empty keys.
fn cut(key: &[u8]) -> Vec<u8> {
    let mut cut = Vec::with_capacity(WHOLE_KEY + 1);
    if !is_cut(key) {
        cut.push(0);
        cut.extend_from_slice(key);
        return cut;
    }
    cut.push(1);
    cut.extend_from_slice(&key[..key.len().min(CUT_KEY)]);
    cut.extend_from_slice(&(key.len() as u64).to_be_bytes());
    cut.extend_from_slice(&digest(key).to_be_bytes());
    cut
}

/// Part of the format. Two long keys that agree in it share a place, and are told apart by the
/// whole key: the later one wins.
fn digest(key: &[u8]) -> u128 {
    let mut state = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128;
    for byte in key {
        state = (state ^ *byte as u128).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
    }
    state
}

/// A sequence, and the record behind it.
fn placed(bytes: &[u8]) -> Option<(&[u8; 8], Line<'_>)> {
    let (at, line) = bytes.split_first_chunk()?;
    Some((at, Line::of(line)?))
}

fn word(bytes: &[u8]) -> Option<u64> {
    Some(u64::from_be_bytes(bytes.try_into().ok()?))
}

/// Bytes that a record takes, about.
fn weight(record: &Record<'_>) -> usize {
    2 * (HEADER + record.key.len().min(WHOLE_KEY))
        + record.key.len()
        + record.value.map_or(0, <[u8]>::len)
}

impl Store for Lmdb {
    fn put_until(&self, batch: &[Record<'_>], until: SystemTime) -> Result<usize, StoreError> {
        self.0.counts.noting(self.0.put(batch, until))
    }

    fn get(&self, keys: &[&[u8]]) -> Result<Vec<Option<Found>>, StoreError> {
        self.0.counts.noting(self.0.get(keys))
    }

    fn sync(&self) -> Result<(), StoreError> {
        self.0.enter()?;
        self.0.counts.noting(self.0.env.force_sync().map_err(StoreError::from))
    }

    fn newest(&self) -> Result<Option<u64>, StoreError> {
        self.0.enter()?;
        let reading = self.0.read()?;
        Ok(self.0.about.get(&reading, b"newest")?.and_then(word))
    }

    fn identity(&self) -> Option<u64> {
        Some(self.0.identity)
    }

    fn stats(&self) -> StoreStats {
        let shared = &*self.0;
        let mut stats = shared.counts.stats();
        if let (Ok(()), Ok(reading)) = (shared.enter(), shared.read()) {
            stats.entries = shared.entries.len(&reading).ok();
            stats.bytes = shared.used(&reading).ok();
        }
        stats
    }
}
