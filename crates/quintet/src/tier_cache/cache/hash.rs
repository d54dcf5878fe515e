//! The hash of keys. Part of the format: every process and every version must agree on it.
//!
//! Products of 64 bits folded to 64, over 16 bytes at a time, in the manner of wyhash. The seed is
//! the segment's.

const A: u64 = 0x2d35_8dcc_aa6c_78a5;
const B: u64 = 0x8bb8_4b93_962e_acc9;
const C: u64 = 0x4b33_a62e_d433_d4a3;

#[inline(always)]
fn fold(a: u64, b: u64) -> u64 {
    let product = a as u128 * b as u128;
    product as u64 ^ (product >> 64) as u64
}

#[inline(always)]
fn whole(bytes: &[u8; 8]) -> u64 {
    u64::from_le_bytes(*bytes)
}

#[inline(always)]
fn word(bytes: &[u8]) -> u64 {
    let mut padded = [0; 8];
    padded[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(padded)
}

/// Hashes a key. The salt is its namespace's, 0 for the unnamed one; its low bits are the length's.
#[inline(always)]
pub(crate) fn hash(seed: u64, salt: u64, key: &[u8]) -> u64 {
    let mut state = fold(seed ^ A, salt ^ key.len() as u64 ^ B);
    let mut pairs = key.chunks_exact(16);
    for pair in &mut pairs {
        if let (Some(low), Some(high)) = (pair.first_chunk(), pair.last_chunk()) {
            state = fold(whole(low) ^ state, whole(high) ^ C);
        }
    }
    let rest = pairs.remainder();
    if !rest.is_empty() {
        let (low, high) = rest.split_at(rest.len().min(8));
        state = fold(word(low) ^ state, word(high) ^ C);
    }
    fold(state ^ A, B)
}

#[cfg(test)]
mod tests {
    use super::hash;

    /// The format: these values must never change.
    #[test]
    fn hashes_are_part_of_the_format() {
        let of = |key: &[u8]| hash(7, 0, key);
        let known = [of(b""), of(b"a"), of(b"0123456789abcdef"), of(b"0123456789abcdefg")];
        let distinct: std::collections::HashSet<_> = known.iter().collect();
        assert_eq!(distinct.len(), 4);
        assert_ne!(hash(7, 1 << 17, b"a"), of(b"a"), "namespaces differ");
        assert_ne!(hash(8, 0, b"a"), of(b"a"), "seeds differ");
        assert_ne!(of(b"a"), of(b"a\0"), "padding is not part of a key");
    }

    /// Similar keys spread over buckets and hashes alike.
    #[test]
    fn similar_keys_spread() {
        let mut high = vec![0u32; 1 << 10];
        let mut low = vec![0u32; 1 << 10];
        for number in 0..100_000u64 {
            let hash = hash(1, 0, format!("key:{number:012}").as_bytes());
            high[(hash >> 54) as usize] += 1;
            low[hash as usize & 1023] += 1;
        }
        for count in high.iter().chain(&low) {
            assert!((50..150).contains(count), "{count} of 97");
        }
    }
}
