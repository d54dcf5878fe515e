//! Our cache in a sealed shared segment.

use quintet::cache::{Handle, TierCache};
use quintet_rivals::Label;
use quintet_rivals::stores::{Key, Store, StoreLocal};
use std::os::fd::OwnedFd;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The cache, and the descriptor by which children enter it.
pub(crate) struct Ours {
    cache: TierCache,
    file: OwnedFd,
}

impl Ours {
    fn new(cache: TierCache) -> Result<Self, String> {
        let file = cache.inheritable().map_err(|error| error.to_string())?;
        Ok(Self { cache, file })
    }
}

impl Store for Ours {
    const LABEL: Label = Label::new("quintet", VERSION);
    const MAPS: bool = true;
    type Local<'a> = OursLocal<'a>;

    fn create(entries: usize, value: usize) -> Result<Self, String> {
        // A set writes its entry anew before the old one is free.
        let spare = entries / 8 + ((16 << 20) / value).clamp(16, 1024);
        let builder = TierCache::builder().for_entries(entries + spare, 16, value);
        let cache = builder.max_value(value.max(1024)).create_sealed();
        cache.map_err(|error| error.to_string()).and_then(Self::new)
    }
    fn path(&self) -> Option<String> {
        Some(quintet_rivals::shared::path_of(std::os::fd::AsFd::as_fd(&self.file)))
    }
    fn attach(path: &str) -> Option<Self> {
        let file = std::fs::File::options().read(true).write(true).open(path).ok()?;
        let cache = TierCache::attach_sealed(file.into()).ok()?;
        Self::new(cache).ok()
    }
    fn local(&self) -> Option<OursLocal<'_>> {
        Some(OursLocal { handle: self.cache.handle().ok()?, value: Vec::new() })
    }
}

/// A thread's handle, and the buffer its values are copied to.
pub(crate) struct OursLocal<'a> {
    handle: Handle<'a>,
    value: Vec<u8>,
}

impl StoreLocal for OursLocal<'_> {
    #[inline]
    fn get(&mut self, keys: &[Key], mut show: impl FnMut(usize, Option<&[u8]>)) -> bool {
        for (at, key) in keys.iter().enumerate() {
            match self.handle.get_into(key, &mut self.value) {
                Ok(found) => show(at, found.then_some(&self.value[..])),
                Err(_) => return false,
            }
        }
        true
    }
    #[inline]
    fn set<'v>(&mut self, keys: &[Key], mut value: impl FnMut(usize) -> &'v [u8]) -> bool {
        keys.iter().enumerate().all(|(at, key)| self.handle.insert(key, value(at)).is_ok())
    }
}

/// The same, but every process has a cache of its own: what two of them reach that share nothing.
pub(crate) struct Alone(Ours);

impl Store for Alone {
    const LABEL: Label = Label::new("quintet (a cache each)", VERSION);
    type Local<'a> = OursLocal<'a>;

    fn create(entries: usize, value: usize) -> Result<Self, String> {
        Ours::create(entries, value).map(Self)
    }
    fn path(&self) -> Option<String> {
        None
    }
    fn attach(_: &str) -> Option<Self> {
        None
    }
    fn local(&self) -> Option<OursLocal<'_>> {
        self.0.local()
    }
}

/// The same, sixteen keys at a time by `get_many` and `insert_many`.
pub(crate) struct Many(Ours);

impl Store for Many {
    const LABEL: Label = Label::new("quintet (16 at a time)", VERSION);
    const BATCH: usize = 16;
    const MAPS: bool = true;
    type Local<'a> = ManyLocal<'a>;

    fn create(entries: usize, value: usize) -> Result<Self, String> {
        Ours::create(entries, value).map(Self)
    }
    fn path(&self) -> Option<String> {
        self.0.path()
    }
    fn attach(path: &str) -> Option<Self> {
        Ours::attach(path).map(Self)
    }
    fn local(&self) -> Option<ManyLocal<'_>> {
        self.0.cache.handle().ok().map(ManyLocal)
    }
}

/// A thread's handle.
pub(crate) struct ManyLocal<'a>(Handle<'a>);

impl StoreLocal for ManyLocal<'_> {
    fn get(&mut self, keys: &[Key], mut show: impl FnMut(usize, Option<&[u8]>)) -> bool {
        let Ok(values) = self.0.get_many(keys) else { return false };
        values.iter().enumerate().for_each(|(at, value)| show(at, value.as_deref()));
        true
    }
    fn set<'v>(&mut self, keys: &[Key], mut value: impl FnMut(usize) -> &'v [u8]) -> bool {
        let entries: Vec<_> = keys.iter().enumerate().map(|(at, key)| (key, value(at))).collect();
        self.0.insert_many(&entries, None).is_ok()
    }
}
