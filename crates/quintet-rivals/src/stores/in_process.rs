//! Caches in the memory of one process: what an operation costs where nothing is shared. Values are
//! counted references, as both crates advise.

use super::{Key, Store, StoreLocal};
use crate::{Hasher, Label};
use quick_cache::UnitWeighter;
use quick_cache::sync::DefaultLifecycle;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

/// moka's synchronous cache.
#[derive(Debug)]
pub struct MokaBytes(moka::sync::Cache<Key, Arc<[u8]>, Hasher>);

impl Store for MokaBytes {
    const LABEL: Label = Label::new("moka (one process)", "0.12.16");
    const LENDS: bool = true;
    type Local<'a> = &'a Self;

    fn create(entries: usize, _: usize) -> Result<Self, String> {
        // An admission filter turns some away before the cache is full.
        let builder = moka::sync::Cache::builder().max_capacity(entries as u64 * 2);
        Ok(Self(builder.initial_capacity(entries).build_with_hasher(Hasher::default())))
    }
    fn path(&self) -> Option<String> {
        None
    }
    fn attach(_: &str) -> Option<Self> {
        None
    }
    fn local(&self) -> Option<&Self> {
        Some(self)
    }
}

impl StoreLocal for &MokaBytes {
    #[inline]
    fn get(&mut self, keys: &[Key], mut show: impl FnMut(usize, Option<&[u8]>)) -> bool {
        keys.iter().enumerate().for_each(|(at, key)| show(at, self.0.get(key).as_deref()));
        true
    }
    fn set<'v>(&mut self, keys: &[Key], mut value: impl FnMut(usize) -> &'v [u8]) -> bool {
        keys.iter().enumerate().for_each(|(at, key)| self.0.insert(*key, value(at).into()));
        true
    }
}

/// quick_cache's synchronous cache.
pub struct QuickBytes(quick_cache::sync::Cache<Key, Arc<[u8]>, UnitWeighter, Hasher>);

impl Store for QuickBytes {
    const LABEL: Label = Label::new("quick_cache (one process)", "0.7.0");
    const LENDS: bool = true;
    type Local<'a> = &'a Self;

    fn create(entries: usize, _: usize) -> Result<Self, String> {
        // Its shards fill unevenly.
        let capacity = entries + entries / 4 + 1024;
        Ok(Self(quick_cache::sync::Cache::with(
            capacity,
            capacity as u64,
            UnitWeighter,
            Hasher::default(),
            DefaultLifecycle::default(),
        )))
    }
    fn path(&self) -> Option<String> {
        None
    }
    fn attach(_: &str) -> Option<Self> {
        None
    }
    fn local(&self) -> Option<&Self> {
        Some(self)
    }
}

impl StoreLocal for &QuickBytes {
    #[inline]
    fn get(&mut self, keys: &[Key], mut show: impl FnMut(usize, Option<&[u8]>)) -> bool {
        keys.iter().enumerate().for_each(|(at, key)| show(at, self.0.get(key).as_deref()));
        true
    }
    fn set<'v>(&mut self, keys: &[Key], mut value: impl FnMut(usize) -> &'v [u8]) -> bool {
        keys.iter().enumerate().for_each(|(at, key)| self.0.insert(*key, value(at).into()));
        true
    }
}

/// What copying costs: values in a map of one thread, copied in and out by `memcpy`. Only where
/// values are long, so that nothing else counts.
#[derive(Debug)]
pub struct MemcpyBytes(Mutex<HashMap<Key, Vec<u8>, Hasher>>);

impl Store for MemcpyBytes {
    const LABEL: Label = Label { name: "memcpy (one process)", version: None };
    const VALUES: std::ops::RangeInclusive<usize> = 1 << 16..=usize::MAX;
    type Local<'a> = MemcpyLocal<'a>;

    fn create(_: usize, _: usize) -> Result<Self, String> {
        Ok(Self(Mutex::default()))
    }
    fn path(&self) -> Option<String> {
        None
    }
    fn attach(_: &str) -> Option<Self> {
        None
    }
    fn local(&self) -> Option<MemcpyLocal<'_>> {
        Some(MemcpyLocal { values: self.0.lock().ok()?, copy: Vec::new() })
    }
}

/// The map, and the buffer its values are copied to.
#[derive(Debug)]
pub struct MemcpyLocal<'a> {
    values: MutexGuard<'a, HashMap<Key, Vec<u8>, Hasher>>,
    copy: Vec<u8>,
}

impl StoreLocal for MemcpyLocal<'_> {
    fn get(&mut self, keys: &[Key], mut show: impl FnMut(usize, Option<&[u8]>)) -> bool {
        for (at, key) in keys.iter().enumerate() {
            let Some(value) = self.values.get(key) else {
                show(at, None);
                continue;
            };
            self.copy.clear();
            self.copy.extend_from_slice(value);
            show(at, Some(&self.copy));
        }
        true
    }
    fn set<'v>(&mut self, keys: &[Key], mut value: impl FnMut(usize) -> &'v [u8]) -> bool {
        for (at, key) in keys.iter().enumerate() {
            let place = self.values.entry(*key).or_default();
            place.clear();
            place.extend_from_slice(value(at));
        }
        true
    }
}
