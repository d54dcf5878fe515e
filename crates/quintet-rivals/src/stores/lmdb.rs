//! LMDB through `heed`, in memory and without sync: a transaction per operation, or one for 256.
//!
//! A lookup shows the bytes in the map itself, as LMDB can; nothing is copied. A thread keeps its
//! place in the reader table from one transaction to the next.
//!
//! Unsafe is allowed here because opening an environment is: its file must not be changed behind
//! LMDB's back.
#![allow(unsafe_code)]

use super::dir::Dir;
use super::{Key, Store, StoreLocal};
use crate::Label;
use heed::types::Bytes;
use heed::{CommitOrAbort, Database, Env, EnvFlags, EnvOpenOptions, WithTls};
use std::path::{Path, PathBuf};

/// An environment with one database.
pub struct Lmdb<const BATCH: usize> {
    env: Env<WithTls>,
    path: PathBuf,
    size: usize,
    _dir: Option<Dir>,
}

fn open(path: &Path, size: usize) -> heed::Result<Env<WithTls>> {
    let mut options = EnvOpenOptions::new();
    options.map_size(size).max_readers(64);
    let flags = EnvFlags::NO_SYNC | EnvFlags::WRITE_MAP | EnvFlags::MAP_ASYNC;
    // SAFETY: what is not synchronized is lost with the machine only, and nobody opens it then.
    unsafe { options.flags(flags) };
    // SAFETY: the directory is the race's own; only its processes open the file, through LMDB.
    unsafe { options.open(path) }
}

impl<const BATCH: usize> Lmdb<BATCH> {
    fn database(&self) -> heed::Result<Database<'_, Bytes, Bytes>> {
        let transaction = self.env.write_txn()?;
        let made = self.env.create_databases_and_commit(transaction, |opener, transaction| {
            opener.create_database(transaction, None).map(CommitOrAbort::<_, Never>::Commit)
        });
        match made? {
            CommitOrAbort::Commit(database) => Ok(database),
            CommitOrAbort::Abort(never) => match never {},
        }
    }
}

enum Never {}

impl<const BATCH: usize> Store for Lmdb<BATCH> {
    const LABEL: Label =
        Label::new(if BATCH == 1 { "heed (LMDB)" } else { "heed (LMDB, 256 per txn)" }, "0.23.1");
    const BATCH: usize = BATCH;
    // 256 long values in one transaction are no use of it.
    const VALUES: std::ops::RangeInclusive<usize> =
        0..=if BATCH == 1 { usize::MAX } else { 1 << 16 };
    const MAPS: bool = true;
    const LENDS: bool = true;
    type Local<'a> = LmdbLocal<'a>;

    fn create(entries: usize, value: usize) -> Result<Self, String> {
        let dir = Dir::new(|_| Vec::new()).map_err(|error| error.to_string())?;
        // Pages are half full after random inserts, and old ones are kept for a while.
        let size = (entries * (value + 64) * 4).next_multiple_of(1 << 20) + (64 << 20);
        let env = open(dir.path(), size).map_err(|error| error.to_string())?;
        Ok(Self { env, path: dir.path().to_owned(), size, _dir: Some(dir) })
    }
    fn path(&self) -> Option<String> {
        Some(format!("{}:{}", self.path.display(), self.size))
    }
    fn attach(path: &str) -> Option<Self> {
        let (path, size) = path.rsplit_once(':')?;
        let size = size.parse().ok()?;
        let env = open(Path::new(path), size).ok()?;
        Some(Self { env, path: path.into(), size, _dir: None })
    }
    fn local(&self) -> Option<LmdbLocal<'_>> {
        let database = self.database().ok()?;
        Some(LmdbLocal { env: &self.env, database })
    }
}

/// A thread's access.
pub struct LmdbLocal<'a> {
    env: &'a Env<WithTls>,
    database: Database<'a, Bytes, Bytes>,
}

impl LmdbLocal<'_> {
    fn try_set<'v>(
        &self,
        keys: &[Key],
        mut value: impl FnMut(usize) -> &'v [u8],
    ) -> heed::Result<()> {
        let mut transaction = self.env.write_txn()?;
        for (at, key) in keys.iter().enumerate() {
            self.database.put(&mut transaction, key, value(at))?;
        }
        transaction.commit()
    }
}

impl StoreLocal for LmdbLocal<'_> {
    #[inline]
    fn get(&mut self, keys: &[Key], mut show: impl FnMut(usize, Option<&[u8]>)) -> bool {
        let Ok(transaction) = self.env.read_txn() else { return false };
        for (at, key) in keys.iter().enumerate() {
            match self.database.get(&transaction, key) {
                Ok(value) => show(at, value),
                Err(_) => return false,
            }
        }
        true
    }
    fn set<'v>(&mut self, keys: &[Key], value: impl FnMut(usize) -> &'v [u8]) -> bool {
        self.try_set(keys, value).is_ok()
    }
}
