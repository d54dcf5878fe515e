//! Caches of bytes that processes share: keys of 16 bytes, values of one length.
//!
//! A thread asks for one or several keys at once. Whoever gains by it (a pipeline, a common
//! transaction) does the whole slice together; how long slices are is the race's choice,
//! [`Store::BATCH`].

mod dir;
mod in_process;
#[cfg(target_os = "linux")]
mod lmdb;
#[cfg(unix)]
mod memcached;
#[cfg(unix)]
mod redis;
#[cfg(unix)]
mod server;

pub use in_process::{MemcpyBytes, MokaBytes, QuickBytes};
#[cfg(target_os = "linux")]
pub use lmdb::Lmdb;
#[cfg(unix)]
pub use memcached::Memcached;
#[cfg(unix)]
pub use redis::Redis;

use crate::{Label, mix};

/// A key: printable, without blanks, so that every protocol takes it as it is.
pub type Key = [u8; 16];

/// A cache of bytes.
pub trait Store: Sized + 'static {
    /// Name and version.
    const LABEL: Label;
    /// How many keys a thread asks for at once.
    const BATCH: usize = 1;
    /// Whether processes that enter map its memory, so that their first touch of each page costs
    /// more than the later ones.
    const MAPS: bool = false;
    /// Whether it shows values where they lie instead of copying them: then the race copies long
    /// ones, so that all do the same.
    const LENDS: bool = false;
    /// Lengths of values it takes part with.
    const VALUES: std::ops::RangeInclusive<usize> = 0..=usize::MAX;
    /// A thread's access.
    type Local<'a>: StoreLocal
    where
        Self: 'a;
    /// A cache with room for so many entries with values of this length, or why there is none.
    fn create(entries: usize, value: usize) -> Result<Self, String>;
    /// By which another process of this user enters the cache; `None` if every process has its own.
    fn path(&self) -> Option<String>;
    /// Enters the cache of another process.
    fn attach(path: &str) -> Option<Self>;
    /// Access for the calling thread.
    fn local(&self) -> Option<Self::Local<'_>>;
}

/// A thread's access.
pub trait StoreLocal {
    /// Shows the value of each key, in their order. False if the cache failed.
    fn get(&mut self, keys: &[Key], show: impl FnMut(usize, Option<&[u8]>)) -> bool;
    /// Sets the value of each key. False if the cache failed or refused one.
    fn set<'v>(&mut self, keys: &[Key], value: impl FnMut(usize) -> &'v [u8]) -> bool;
}

/// The key of entry `index`: sixteen letters, four bits each.
#[inline(always)]
pub fn key(index: u64) -> Key {
    let bits = mix(index);
    let mut key = [0; 16];
    key[..8].copy_from_slice(&letters(bits as u32).to_le_bytes());
    key[8..].copy_from_slice(&letters((bits >> 32) as u32).to_le_bytes());
    key
}

/// Eight letters from `a` to `p`.
#[inline(always)]
fn letters(bits: u32) -> u64 {
    let mut wide = u64::from(bits);
    wide = (wide | wide << 16) & 0x0000_ffff_0000_ffff;
    wide = (wide | wide << 8) & 0x00ff_00ff_00ff_00ff;
    wide = (wide | wide << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    wide + 0x6161_6161_6161_6161
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_differ_and_are_letters() {
        let mut keys: Vec<Key> = (0..100_000).map(key).collect();
        assert!(keys.iter().flatten().all(|byte| (b'a'..=b'p').contains(byte)));
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), 100_000);
    }
}
