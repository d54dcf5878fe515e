//! Where randomness starts.

use std::env;
use std::hash::{BuildHasher, RandomState};

/// The environment variable that replays a run.
pub const SEED_VARIABLE: &str = "QUINTET_SEED";

/// The seed in [`SEED_VARIABLE`], decimal or `0x` hexadecimal; a random one if it is not set.
///
/// # Panics
/// If the variable is set to anything else.
pub fn seed_from_environment() -> u64 {
    match env::var(SEED_VARIABLE) {
        Ok(text) => parse(&text).unwrap_or_else(|| {
            panic!("{SEED_VARIABLE}={text} is no seed: write a number, decimal or 0x...")
        }),
        Err(_) => RandomState::new().hash_one(0),
    }
}

/// An independent seed for part number `lane` of a run.
pub fn derive(seed: u64, lane: u64) -> u64 {
    let mut x = seed ^ lane.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for factor in [0xff51_afd7_ed55_8ccd, 0xc4ce_b9fe_1a85_ec53] {
        x = (x ^ (x >> 32)).wrapping_mul(factor);
    }
    x ^ (x >> 29)
}

fn parse(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_both_notations_and_nothing_else() {
        assert_eq!(parse("0xff"), Some(255));
        assert_eq!(parse("255"), Some(255));
        assert_eq!(parse("ff"), None);
        assert_eq!(parse(""), None);
    }

    #[test]
    fn lanes_and_seeds_differ() {
        let mut all: Vec<_> = (0..50).flat_map(|s| (0..50).map(move |l| derive(s, l))).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 2_500);
    }
}
