//! Our map in a sealed shared segment.

use quintet::internal::tier::{Geometry, Handle, InputHash, SharedMap};
use quintet_rivals::Label;
use quintet_rivals::shared::{Local, Shared};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The map.
pub(crate) struct Ours(SharedMap);

impl Shared for Ours {
    const LABEL: Label = Label::new("quintet", VERSION);
    type Local<'a> = OursLocal<'a>;

    fn create(cells: usize, entries: usize) -> Option<Self> {
        // An update writes its record anew before the old one is free: one spare per thread and some.
        let records = entries as u32 + 1024;
        let geometry = Geometry { buckets: cells as u32 / 2, window: 32, records, seats: 64 };
        SharedMap::create_sealed(geometry).ok().map(Self)
    }
    fn local(&self) -> OursLocal<'_> {
        let map = self.0.map();
        let buckets = u64::from(map.geometry().buckets);
        OursLocal { handle: map.handle().expect("64 seats"), buckets }
    }
}

/// A thread's handle.
pub(crate) struct OursLocal<'a> {
    handle: Handle<'a>,
    buckets: u64,
}

impl OursLocal<'_> {
    #[inline(always)]
    fn input(&self, key: u32) -> InputHash {
        let bucket = ((u64::from(key) * self.buckets) >> 32) as u32;
        InputHash::new(key, bucket).expect("a legal key")
    }
}

impl Local for OursLocal<'_> {
    #[inline]
    fn get(&mut self, key: u32) -> Option<u64> {
        self.handle.get(self.input(key)).ok().flatten()
    }
    fn add(&mut self, key: u32, value: u64) -> bool {
        self.handle.add(self.input(key), value).is_ok()
    }
    fn update(&mut self, key: u32, value: u64) -> bool {
        self.handle.update(self.input(key), value).is_ok()
    }
    fn remove(&mut self, key: u32) -> bool {
        self.handle.remove(self.input(key)).is_ok()
    }
}
