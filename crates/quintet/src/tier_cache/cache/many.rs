//! Many keys at once: the memory of the later ones is on its way while the first is read.

use super::error::CacheError;
use super::handle::{Handle, Inserted};
use super::spaces::Space;
use super::view::View;
use crate::sync::prefetch::prefetch_read;
use crate::tier_cache::word::InputHash;
use std::time::Duration;

/// Keys whose memory is asked for ahead.
const AHEAD: usize = 16;

impl Handle<'_> {
    /// The values of many keys, in their order. As many single gets, not one moment of all.
    pub fn get_many<K: AsRef<[u8]>>(
        &mut self,
        keys: &[K],
    ) -> Result<Vec<Option<Vec<u8>>>, CacheError> {
        let (view, space) = (self.view, self.space);
        view.in_groups(space, keys, |key| self.get(key))
    }

    /// Stores many values, in their order. As many single sets: the first error ends it.
    pub fn insert_many<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &mut self,
        entries: &[(K, V)],
        ttl: Option<Duration>,
    ) -> Result<Vec<Inserted>, CacheError> {
        let mut reports = Vec::with_capacity(entries.len());
        for group in entries.chunks(AHEAD) {
            for (key, _) in group {
                let input = self.view.input(self.space, key.as_ref());
                self.view.memory.expect_bucket(input.bucket());
            }
            for (key, value) in group {
                reports.push(self.insert_for(key, value, ttl)?);
            }
        }
        Ok(reports)
    }
}

impl View<'_> {
    /// Reads many keys one by one, the memory of a group asked for before the first of it is read.
    pub(super) fn in_groups<K: AsRef<[u8]>>(
        &self,
        space: Space,
        keys: &[K],
        mut read: impl FnMut(&[u8]) -> Result<Option<Vec<u8>>, CacheError>,
    ) -> Result<Vec<Option<Vec<u8>>>, CacheError> {
        let mut values = Vec::with_capacity(keys.len());
        for group in keys.chunks(AHEAD) {
            self.expect_keys(space, group.iter().map(AsRef::as_ref));
            for key in group {
                values.push(read(key.as_ref())?);
            }
        }
        Ok(values)
    }

    /// Asks for the cells of all keys, then for the blocks those name.
    fn expect_keys<'k>(&self, space: Space, keys: impl Iterator<Item = &'k [u8]>) {
        let memory = self.memory;
        let mut inputs = [InputHash::of_parts(1, 0); AHEAD];
        let mut count = 0;
        for (place, key) in inputs.iter_mut().zip(keys) {
            *place = self.input(space, key);
            count += 1;
            let entry = memory.at(0, place.bucket() as usize);
            if let Some(cell) = memory.cells().get(entry) {
                prefetch_read(cell);
            }
        }
        for input in &inputs[..count] {
            let link = memory.base_link(*input).or_else(|| memory.member_link(*input));
            if let Some(Ok(record)) = link.map(|link| memory.record(link.record)) {
                for word in record.words().iter().step_by(8).take(2) {
                    prefetch_read(word);
                }
            }
        }
    }
}
