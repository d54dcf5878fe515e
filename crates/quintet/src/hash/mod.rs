//! From a key to a place: pure functions, no atomics, no unsafe code.
//!
//! | Room | Holds |
//! |---|---|
//! | [`mixer`] | [`WordMixer`]: a seeded permutation of the 64-bit words |
//! | this page | where in a table a hash starts; random seeds |
//!
//! **H1.** The start comes from the *high* bits and is monotone in the hash: a table of twice the
//! size keeps the order of the entries, so migration reads and writes in sequence.
//! **H2.** Shard and start use the same top bits, so that one shard is one contiguous range of
//! starts.

pub(crate) mod mixer;

#[allow(unused_imports)] // each family uses its share
pub(crate) use mixer::{WordMixer, odd_factor, spread};

/// The start of a 32-bit hash among any number of slots, powers of two or not (H1).
#[inline(always)]
pub(crate) const fn start_scaled(hash: u32, slots: u64) -> usize {
    debug_assert!(slots <= 1 << 32);
    ((hash as u64 * slots) >> 32) as usize
}

/// A seed nobody outside the process can guess. Under a model checker always the same, so that runs
/// repeat.
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
    fn scaled_start_covers_any_capacity() {
        for slots in [1u64, 3, 1000, (1 << 32) - 1, 1 << 32] {
            assert_eq!(start_scaled(0, slots), 0);
            assert_eq!(start_scaled(u32::MAX, slots), (slots - 1) as usize);
        }
    }

    #[test]
    fn doubling_keeps_the_order() {
        for hash in [0, 1, 0x0123_4567, u32::MAX / 3, u32::MAX] {
            assert_eq!(start_scaled(hash, 2_000) >> 1, start_scaled(hash, 1_000));
        }
    }

    #[test]
    fn seeds_differ() {
        if !crate::sync::MODEL {
            assert_ne!(random_seed(), random_seed());
        }
    }
}
