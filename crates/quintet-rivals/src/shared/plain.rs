//! hashbrown in the memory of one process: what a lookup costs where nothing is shared.

use super::{Local, Shared};
use crate::{Hasher, Label};
use hashbrown::HashMap;
use std::sync::{Mutex, OnceLock, PoisonError};

/// Filled first, looked up afterwards.
#[derive(Debug, Default)]
pub struct Plain {
    filling: Mutex<HashMap<u32, u64, Hasher>>,
    full: OnceLock<HashMap<u32, u64, Hasher>>,
}

impl Shared for Plain {
    const LABEL: Label = Label::new("hashbrown (one process)", "0.17");
    type Local<'a> = PlainLocal<'a>;

    fn create(_: usize, entries: usize) -> Option<Self> {
        let filling = HashMap::with_capacity_and_hasher(entries, Hasher::default());
        Some(Self { filling: Mutex::new(filling), full: OnceLock::new() })
    }
    fn path(&self) -> Option<String> {
        None
    }
    fn attach(_: &str) -> Option<Self> {
        None
    }
    fn local(&self) -> PlainLocal<'_> {
        PlainLocal { table: self, full: None }
    }
    fn writes() -> bool {
        false
    }
}

/// Access of a thread.
#[derive(Debug)]
pub struct PlainLocal<'a> {
    table: &'a Plain,
    full: Option<&'a HashMap<u32, u64, Hasher>>,
}

impl Local for PlainLocal<'_> {
    #[inline]
    fn get(&mut self, key: u32) -> Option<u64> {
        let table = self.table;
        let take =
            || std::mem::take(&mut *table.filling.lock().unwrap_or_else(PoisonError::into_inner));
        let full = *self.full.get_or_insert_with(|| table.full.get_or_init(take));
        full.get(&key).copied()
    }
    fn add(&mut self, key: u32, value: u64) -> bool {
        let mut filling = self.table.filling.lock().unwrap_or_else(PoisonError::into_inner);
        filling.insert(key, value).is_none()
    }
    fn update(&mut self, _: u32, _: u64) -> bool {
        false
    }
    fn remove(&mut self, _: u32) -> bool {
        false
    }
}
