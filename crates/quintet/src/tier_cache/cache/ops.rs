//! Operations that ask something of the present entry: one decision under the bucket's control word
//! each.

use super::error::CacheError;
use super::handle::{Handle, Inserted};
use super::write::Entry;
use crate::tier_cache::MapError;
use crate::tier_cache::plan::Want;
use crate::tier_cache::word::Link;
use std::time::Duration;

impl Handle<'_> {
    /// Stores a value if the key is absent. False if it is there.
    pub fn insert_new(
        &mut self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        ttl: Option<Duration>,
    ) -> Result<bool, CacheError> {
        self.put_if(key.as_ref(), value.as_ref(), ttl, Want::Absent)
    }

    /// Stores a value if the key is there. False if it is absent.
    pub fn replace(
        &mut self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        ttl: Option<Duration>,
    ) -> Result<bool, CacheError> {
        self.put_if(key.as_ref(), value.as_ref(), ttl, Want::Present)
    }

    /// Stores a value if the key still has the version that [`Handle::get_versioned`] returned.
    /// False if it is absent or another.
    pub fn compare_exchange(
        &mut self,
        key: impl AsRef<[u8]>,
        version: u64,
        value: impl AsRef<[u8]>,
        ttl: Option<Duration>,
    ) -> Result<bool, CacheError> {
        let want = Want::Exactly(Link::from_word(version));
        self.put_if(key.as_ref(), value.as_ref(), ttl, want)
    }

    fn put_if(
        &mut self,
        key: &[u8],
        value: &[u8],
        ttl: Option<Duration>,
        want: Want,
    ) -> Result<bool, CacheError> {
        let done = match self.stores {
            true => self.put_through(self.entry(key, value, ttl), want)?,
            false => self.put(key, value, ttl, want)?,
        };
        match done {
            Ok(Inserted { .. }) => Ok(true),
            Err(MapError::Exists | MapError::NotFound) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Adds to a decimal number and returns the sum. An absent key counts as `initial` and gets
    /// `ttl`; without `initial` it stays absent and the answer is `None`. A number that is there
    /// keeps its expiry.
    pub fn incr(
        &mut self,
        key: impl AsRef<[u8]>,
        by: i64,
        initial: Option<i64>,
        ttl: Option<Duration>,
    ) -> Result<Option<i64>, CacheError> {
        let key = key.as_ref();
        let mut text = Vec::new();
        loop {
            let hit = self.bring(key, &mut text)?;
            let (before, want, expiry) = match (hit, initial) {
                (Some(hit), _) => (number(&text)?, Want::Exactly(hit.link), hit.expiry),
                (None, Some(initial)) => (initial, Want::Absent, self.view.expiry(ttl)),
                (None, None) => return Ok(None),
            };
            let sum = before.checked_add(by).ok_or(CacheError::NotANumber)?;
            let value = sum.to_string();
            let input = self.view.input(self.space, key);
            let entry = Entry { input, space: self.space, key, value: value.as_bytes(), expiry };
            let done = match self.stores {
                true => self.put_through(entry, want)?,
                false => self.store(entry, want)?,
            };
            match done {
                Ok(_) => return Ok(Some(sum)),
                // Somebody else was faster.
                Err(MapError::Exists | MapError::NotFound) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Subtracts; see [`Handle::incr`].
    pub fn decr(
        &mut self,
        key: impl AsRef<[u8]>,
        by: i64,
        initial: Option<i64>,
        ttl: Option<Duration>,
    ) -> Result<Option<i64>, CacheError> {
        let by = by.checked_neg().ok_or(CacheError::NotANumber)?;
        self.incr(key, by, initial, ttl)
    }

    /// Gives a key a new expiry (`None`: never), and counts as a use of it. False if it is absent.
    pub fn touch(
        &mut self,
        key: impl AsRef<[u8]>,
        ttl: Option<Duration>,
    ) -> Result<bool, CacheError> {
        let key = key.as_ref();
        let expiry = self.view.expiry(ttl);
        self.set_expiry(self.view.input(self.space, key), self.space, key, expiry)
    }

    /// The value of a key, which gets a new expiry (`None`: never). What is returned is the value
    /// that got it.
    pub fn get_and_touch(
        &mut self,
        key: impl AsRef<[u8]>,
        ttl: Option<Duration>,
    ) -> Result<Option<Vec<u8>>, CacheError> {
        let key = key.as_ref();
        if self.stores {
            return self.touch_through(key, self.view.expiry(ttl));
        }
        loop {
            let Some((value, version)) = self.get_versioned(key)? else { return Ok(None) };
            let touched = self.touch(key, ttl)?;
            let same = self.read(key, &mut super::read::Nothing)?.map(|hit| hit.link.word());
            if touched && same == Some(version) {
                return Ok(Some(value));
            }
        }
    }

    /// How long a key will live: `None` if it is absent, `Some(None)` if it does not expire.
    pub fn ttl(&mut self, key: impl AsRef<[u8]>) -> Result<Option<Option<Duration>>, CacheError> {
        let hit = self.read(key.as_ref(), &mut super::read::Nothing)?;
        Ok(hit.map(|hit| self.view.left(hit.expiry)))
    }
}

fn number(text: &[u8]) -> Result<i64, CacheError> {
    let text = std::str::from_utf8(text).map_err(|_| CacheError::NotANumber)?;
    text.parse().map_err(|_| CacheError::NotANumber)
}
