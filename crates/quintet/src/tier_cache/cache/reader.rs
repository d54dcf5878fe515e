//! Read access that takes no seat.

use super::error::CacheError;
use super::quick::Quick;
use super::read::{Hit, Nothing, Part, Target, Tried};
use super::spaces::Space;
use super::stored::Backing;
use super::view::View;
use crate::tier_cache::map::DEFAULT_TIMEOUT;
use std::time::Duration;

/// Read access that stores nothing at all: no seat, no recency, no counters, no recovery.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'c> {
    pub(super) view: &'c View<'c>,
    /// The store, which a miss goes on to.
    pub(super) backing: Option<&'c Backing>,
    pub(super) space: Space,
    pub(super) timeout: Duration,
}

impl<'c> Reader<'c> {
    pub(super) fn new(view: &'c View<'c>, backing: Option<&'c Backing>) -> Self {
        Self { view, backing, space: Space::default(), timeout: DEFAULT_TIMEOUT }
    }

    /// Sets how long a miss waits for a writer of its bucket. Behind a dead one it returns
    /// [`CacheError::Busy`] then.
    pub fn set_timeout(&mut self, timeout: Duration) {
        self.timeout = timeout;
    }

    fn read(&self, key: &[u8], target: &mut impl Target) -> Result<Option<Hit>, CacheError> {
        let (view, space) = (self.view, self.space);
        let input = view.input(space, key);
        match view.read_all(input, space, key, target) {
            Tried::Hit(hit) => Ok(Some(hit)),
            _ => match self.backing {
                Some(backing) => self.read_through(backing, input, key, target),
                None => view.read_slow(None, self.timeout, input, space, key, target),
            },
        }
    }

    /// The value of a key.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>, CacheError> {
        let mut value = Vec::new();
        Ok(self.get_into(key, &mut value)?.then_some(value))
    }

    /// The value of a key, into a buffer of the caller's.
    #[inline]
    pub fn get_into(&self, key: impl AsRef<[u8]>, value: &mut Vec<u8>) -> Result<bool, CacheError> {
        let (view, key) = (self.view, key.as_ref());
        if !view.sizes.sums && matches!(view.quick(self.space, key, value), Quick::Hit { .. }) {
            return Ok(true);
        }
        Ok(self.read(key, value)?.is_some())
    }

    /// As much of a value as fits into a slice, and how long it is; see
    /// [`Handle::get_into_slice`](super::Handle::get_into_slice).
    pub fn get_into_slice(
        &self,
        key: impl AsRef<[u8]>,
        value: &mut [u8],
    ) -> Result<Option<usize>, CacheError> {
        let mut part = Part { place: value, length: 0 };
        Ok(self.read(key.as_ref(), &mut part)?.map(|_| part.length))
    }

    /// The value and its version; see [`Handle::get_versioned`](super::Handle::get_versioned).
    pub fn get_versioned(
        &self,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<(Vec<u8>, u64)>, CacheError> {
        let mut value = Vec::new();
        let hit = self.read(key.as_ref(), &mut value)?;
        Ok(hit.map(|hit| (value, hit.link.word())))
    }

    /// The values of many keys, in their order; see [`Handle::get_many`](super::Handle::get_many).
    pub fn get_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Vec<u8>>>, CacheError> {
        self.view.in_groups(self.space, keys, |key| self.get(key))
    }

    /// Is the key there?
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool, CacheError> {
        Ok(self.read(key.as_ref(), &mut Nothing)?.is_some())
    }

    /// How long a key will live; see [`Handle::ttl`](super::Handle::ttl).
    pub fn ttl(&self, key: impl AsRef<[u8]>) -> Result<Option<Option<Duration>>, CacheError> {
        let hit = self.read(key.as_ref(), &mut Nothing)?;
        Ok(hit.map(|hit| self.view.left(hit.expiry)))
    }
}
