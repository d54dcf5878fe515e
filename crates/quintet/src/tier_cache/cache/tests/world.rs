//! Caches for tests.

use crate::tier_cache::cache::*;

/// About a thousand blocks.
pub(super) fn small() -> CacheBuilder {
    TierCache::builder().capacity(256 << 10).handles(8)
}

/// As few blocks as there can be.
pub(super) fn tiny(blocks: u32) -> TierCache {
    tiny_of(small(), blocks)
}

pub(super) fn tiny_of(builder: CacheBuilder, blocks: u32) -> TierCache {
    let sizes = builder.sizes().unwrap();
    let max_value = (blocks / 4 * 96).min(sizes.max_value);
    let sizes = Sizes { blocks, buckets: blocks, pace: sizes.pace.min(1), max_value, ..sizes };
    TierCache::create_sealed(sizes).unwrap()
}

/// Moves the clock of a cache, for every process.
pub(super) fn advance(cache: &TierCache, ms: i64) {
    let view = cache.view();
    let epoch = view.global(Global::Epoch);
    let now = epoch.load(crate::sync::Ordering::Relaxed);
    epoch.store(now.wrapping_add(ms as u64), crate::sync::Ordering::Relaxed);
}
