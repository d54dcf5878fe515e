//! The packed words: stored hashes and birth stamps.

use crate::sync::MODEL;

/// The hash of a place that was never used, or is just being claimed. No stored hash is 0.
pub(crate) const EMPTY: u32 = 0;

/// The era of an item's birth in 32 bits: 27 of mantissa, 5 of exponent, rounded down.
///
/// Eras never end, so 32 of their bits alone would wrap after 2^32 batches, and an old item would
/// look young: it would be freed under a reader. Rounding down makes it look at most a 2^26th part
/// of the present era older than it is, which only holds it back a little longer. Eras below 2^27
/// are exact; none below 2^58 is out of range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Birth(u32);

impl Birth {
    const MANTISSA: u32 = 27;

    #[inline(always)]
    pub(crate) const fn of(era: u64) -> Self {
        if era < 1 << Self::MANTISSA {
            return Self(era as u32);
        }
        Self::of_late(era)
    }

    #[inline(always)]
    const fn of_late(era: u64) -> Self {
        let exponent = (u64::BITS - era.leading_zeros()).saturating_sub(Self::MANTISSA);
        if exponent > 31 {
            return Self(u32::MAX);
        }
        Self(exponent << Self::MANTISSA | (era >> exponent) as u32)
    }

    /// The latest era that is known not to be after the birth.
    pub(crate) const fn era(self) -> u64 {
        let mantissa = (self.0 & ((1 << Self::MANTISSA) - 1)) as u64;
        mantissa << (self.0 >> Self::MANTISSA)
    }

    pub(crate) const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    #[inline(always)]
    pub(crate) const fn bits(self) -> u32 {
        self.0
    }
}

/// The 32 bits of a hash that the table keeps, of which the lowest is always set. The
/// multiplication lets every bit of a weak hash reach the top ones, which decide on shard and
/// start. Under a model checker keys choose their own place.
#[inline(always)]
pub(crate) const fn fold(hash: u64) -> u32 {
    // The lowest bit is set: neither a hash nor its tag is 0.
    if MODEL {
        hash as u32 | 1
    } else {
        (hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32 | 1
    }
}

/// A stored hash out of one that a user has brought along. What [`fold`] made stays as it is;
/// whatever else it may be, it has a tag.
#[inline(always)]
pub(crate) const fn brought(hash: u32) -> u32 {
    if cfg!(quintet_mutation = "tag-zero") { hash } else { hash | 1 }
}

/// The part of a stored hash that readers compare: its low bits, which decide on a home in very
/// large tables only. It is not 0: stored hashes come from [`fold`] and [`brought`] only.
#[inline(always)]
pub(crate) const fn tag_of(hash: u32) -> u16 {
    hash as u16
}

/// The shard of a stored hash among `2^bits` (`hash` H2).
#[inline(always)]
pub(crate) const fn shard_of(hash: u32, bits: u32) -> usize {
    ((hash as u64) << bits >> 32) as usize
}

#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
mod tests {
    use super::*;
    use crate::sync::six::NO_TAG;

    #[test]
    fn no_stored_hash_is_empty() {
        assert!([0, 1, u64::MAX, 1 << 32].into_iter().all(|hash| {
            let stored = fold(hash);
            stored != EMPTY && tag_of(stored) != NO_TAG
        }));
        assert_eq!(fold(0), 1);
        let made = (0..100).map(fold).chain([0, 1 << 16, u32::MAX - 1, u32::MAX]);
        assert!(made.clone().all(|hash| tag_of(brought(hash)) != NO_TAG));
        assert!(made.take(100).all(|hash| brought(hash) == hash), "as it was made");
    }

    /// Whatever the era, a birth is never later than it was, never much earlier, and keeps the
    /// order.
    #[test]
    fn a_birth_is_rounded_down_and_never_wraps() {
        let mut last = 0;
        for shift in 0..58u32 {
            for step in [0u64, 1, 2, 3, 1 << 20, (1 << 26) - 1] {
                let era = (1u64 << shift).saturating_add(step << shift.saturating_sub(30));
                let birth = Birth::from_bits(Birth::of(era).bits()).era();
                assert!(birth <= era, "{era} was born at {birth}: freed under a reader");
                assert!(era - birth <= era >> 26, "{era} was born at {birth}: held too long");
                if era < 1 << 27 {
                    assert_eq!(birth, era);
                }
                if step == 0 {
                    assert!(birth >= last, "order");
                    last = birth;
                }
            }
        }
        assert!(Birth::of(u64::MAX).era() < u64::MAX);
    }

    #[test]
    fn weak_hashes_reach_all_shards() {
        let shards: std::collections::HashSet<_> =
            (0..1_000).map(|hash| shard_of(fold(hash), 4)).collect();
        assert_eq!(shards.len(), 16);
    }
}
