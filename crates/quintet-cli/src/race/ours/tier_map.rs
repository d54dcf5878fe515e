//! Our map in a sealed shared segment.

use quintet::internals::tier::{Geometry, Handle, InputHash, SharedMap};
use quintet_rivals::Label;
use quintet_rivals::shared::{Local, Shared};

pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The map, and the descriptor by which children enter it.
pub(crate) struct Ours {
    map: SharedMap,
    #[cfg(unix)]
    file: std::os::fd::OwnedFd,
}

impl Ours {
    fn new(map: SharedMap) -> Option<Self> {
        #[cfg(unix)]
        let file = map.inheritable().ok()?;
        Some(Self {
            map,
            #[cfg(unix)]
            file,
        })
    }
}

impl Shared for Ours {
    const LABEL: Label = Label::new("quintet", VERSION);
    type Local<'a> = OursLocal<'a>;

    fn create(cells: usize, entries: usize) -> Option<Self> {
        // An update writes its record anew before the old one is free: one spare per thread and
        // some.
        let records = entries as u32 + 1024;
        let geometry = Geometry { buckets: cells as u32 / 2, window: 32, records, seats: 64 };
        SharedMap::create_sealed(geometry).ok().and_then(Self::new)
    }
    #[cfg(unix)]
    fn path(&self) -> Option<String> {
        Some(quintet_rivals::shared::path_of(std::os::fd::AsFd::as_fd(&self.file)))
    }
    #[cfg(unix)]
    fn attach(path: &str) -> Option<Self> {
        let file = std::fs::File::options().read(true).write(true).open(path).ok()?;
        SharedMap::attach_sealed(file.into()).ok().and_then(Self::new)
    }
    #[cfg(not(unix))]
    fn path(&self) -> Option<String> {
        None
    }
    #[cfg(not(unix))]
    fn attach(_: &str) -> Option<Self> {
        None
    }
    fn hold(&self, keys: &[u32], body: &mut dyn FnMut()) -> bool {
        let mut locals: Vec<OursLocal<'_>> = keys.iter().map(|_| self.local()).collect();
        let commit = |(local, key): (&mut OursLocal<'_>, &u32)| {
            let input = local.input(*key);
            let prepared = local.handle.prepare(input).ok()?;
            // Forgotten on purpose: the bucket stays held until the handle's next operation.
            local.handle.commit(prepared, 0).ok().map(std::mem::forget)
        };
        let held = locals.iter_mut().zip(keys).filter_map(commit).count();
        body();
        held == keys.len() && locals.iter_mut().zip(keys).all(|(local, key)| local.remove(*key))
    }
    fn local(&self) -> OursLocal<'_> {
        let map = self.map.map();
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
    #[inline(always)]
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
