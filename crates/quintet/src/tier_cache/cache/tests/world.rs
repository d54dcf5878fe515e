//! Caches for tests.

use crate::tier_cache::cache::*;
use crate::tier_cache::word::Owner;

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
    let buckets = blocks.div_ceil(sizes.tiers);
    let sizes = Sizes { blocks, buckets, pace: sizes.pace.min(1), max_value, ..sizes };
    TierCache::create_sealed(sizes).unwrap()
}

/// Moves the clock of a cache, for every process: as if it had been made so much earlier.
pub(super) fn advance(cache: &TierCache, ms: i64) {
    let created = cache.segment.created();
    let then = created.load(crate::sync::Ordering::Relaxed);
    created.store(then.wrapping_sub(ms as u64), crate::sync::Ordering::Relaxed);
}

/// A process that never was, and therefore is dead.
const DEAD: Owner = Owner::new(0, 1 << 47);

/// From now on the owner of the handle counts as dead.
pub(super) fn declare_dead(cache: &TierCache, handle: &Handle<'_>) {
    let seat = cache.view().memory.seat(handle.inner.number).unwrap();
    seat.owner_word().store(DEAD.0, crate::sync::Ordering::Release);
}

/// Whoever was recovering somebody counts as dead.
pub(super) fn forget_recoverers(cache: &TierCache) {
    let view = cache.view();
    for number in 0..view.sizes.seats {
        let seat = view.memory.seat(number).unwrap();
        if seat.recovery() != Owner::NOBODY {
            seat.recovery_word().store(DEAD.0, crate::sync::Ordering::Release);
        }
    }
}

/// Whoever was making or removing a namespace counts as dead.
pub(super) fn forget_namer(cache: &TierCache) {
    let word = cache.view().global(Global::Naming);
    if word.load(crate::sync::Ordering::Relaxed) != 0 {
        word.store(DEAD.0, crate::sync::Ordering::Release);
    }
}
