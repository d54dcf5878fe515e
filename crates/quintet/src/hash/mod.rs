//! From a key to a place: pure functions, no atomics, no unsafe code.
//!
//! | Room | Holds |
//! |---|---|
//! | `build` | [`DefaultHashBuilder`]: the default hasher, keyed by a random seed per table |
//! | [`mixer`] | [`WordMixer`]: a seeded permutation of the 64-bit words |
//! | this page | where in a table a hash starts, its tag, its shard; random seeds |
//!
//! **H1.** The start comes from the *high* bits and is monotone in the hash: a table of twice the size
//! keeps the order of the entries, so migration reads and writes in sequence.
//! **H2.** Shard and start use the same top bits, so that one shard is one contiguous range of starts.
//! **H3.** A tag comes from bits below those of the start, so it tells apart what the start does not.

mod build;
pub(crate) mod mixer;

pub use build::{DefaultHashBuilder, DefaultHasher};

#[allow(unused_imports)] // each family uses its share
pub(crate) use mixer::WordMixer;

/// The start of `hash` among `2^bits` slots (H1).
#[inline(always)]
pub(crate) const fn start(hash: u64, bits: u32) -> usize {
    debug_assert!(bits <= 48);
    // Two shifts, since a shift by 64 (one slot, no bits) is not defined.
    ((hash >> 1) >> (63 - bits)) as usize
}

/// The start of a 32-bit hash among any number of slots, powers of two or not (H1).
#[inline(always)]
pub(crate) const fn start_scaled(hash: u32, slots: u64) -> usize {
    debug_assert!(slots <= 1 << 32);
    ((hash as u64 * slots) >> 32) as usize
}

/// The `tag_bits` bits of `hash` just below the top `start_bits` (H3).
#[inline(always)]
pub(crate) const fn tag(hash: u64, start_bits: u32, tag_bits: u32) -> u64 {
    debug_assert!(tag_bits >= 1 && start_bits + tag_bits <= 64);
    (hash << start_bits) >> (64 - tag_bits)
}

/// The shard of `hash` among `2^bits` (H2).
#[inline(always)]
pub(crate) const fn shard(hash: u64, bits: u32) -> usize {
    start(hash, bits)
}

/// A seed nobody outside the process can guess. Under a model checker always the same, so that runs repeat.
pub(crate) fn random_seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    if crate::sync::MODEL {
        return 0x5eed;
    }
    // RandomState takes its keys from the system once per thread and counts on from there.
    RandomState::new().hash_one(0x5eed_u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_is_monotone_and_in_range() {
        for bits in [0, 1, 6, 20, 48] {
            let mut last = 0;
            for step in 0..=1_000u64 {
                let at = start(step * (u64::MAX / 1_000), bits);
                assert!(at >= last && at < 1 << bits);
                last = at;
            }
            assert_eq!(start(u64::MAX, bits), (1 << bits) - 1);
        }
    }

    #[test]
    fn doubling_keeps_the_order() {
        for hash in [0, 1, 0x0123_4567_89ab_cdef, u64::MAX / 3, u64::MAX] {
            assert_eq!(start(hash, 11) >> 1, start(hash, 10));
            assert_eq!(shard(hash, 4), start(hash, 10) >> 6);
        }
    }

    #[test]
    fn scaled_start_covers_any_capacity() {
        for slots in [1u64, 3, 1000, (1 << 32) - 1, 1 << 32] {
            assert_eq!(start_scaled(0, slots), 0);
            assert_eq!(start_scaled(u32::MAX, slots), (slots - 1) as usize);
        }
    }

    #[test]
    fn tag_sits_below_the_start() {
        let hash = 0xabcd_ef01_2345_6789;
        assert_eq!(start(hash, 8), 0xab);
        assert_eq!(tag(hash, 8, 8), 0xcd);
        assert_eq!(tag(hash, 0, 64), hash);
    }

    #[test]
    fn seeds_differ() {
        if !crate::sync::MODEL {
            assert_ne!(random_seed(), random_seed());
        }
    }
}
