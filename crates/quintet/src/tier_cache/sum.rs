//! The sum of a record: CRC-32C over its input hash, its value and its generation.
//!
//! It lies in the upper half of the tick's word. Every writer stores it; `check` verifies it, and
//! so does every hit of a map that was told to ([`Map::verifying`](super::Map::verifying)).

use crate::sync::{AtomicU64, Ordering};

/// CRC-32C, reflected.
const POLYNOMIAL: u32 = 0x82f6_3b78;

const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut rest, mut bit) = (byte as u32, 0);
        while bit < 8 {
            rest = if rest & 1 == 1 { rest >> 1 ^ POLYNOMIAL } else { rest >> 1 };
            bit += 1;
        }
        table[byte] = rest;
        byte += 1;
    }
    table
};

fn by_table(words: [u64; 3]) -> u32 {
    let bytes = words.into_iter().flat_map(u64::to_le_bytes);
    !bytes.fold(!0, |sum, byte| sum >> 8 ^ TABLE[(sum as u8 ^ byte) as usize])
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[target_feature(enable = "sse4.2")]
#[allow(unused_unsafe)] // the oldest compiler we support asks for the inner block
/// # Safety
/// The processor has the instruction.
unsafe fn by_instruction(words: [u64; 3]) -> u32 {
    let next = |sum, word| {
        // SAFETY: the instruction is there, by the caller's promise.
        unsafe { std::arch::x86_64::_mm_crc32_u64(sum, word) }
    };
    !words.into_iter().fold(u64::from(u32::MAX), next) as u32
}

/// The sum of a record.
pub(crate) fn of(input: u64, value: u64, generation: u32) -> u32 {
    let words = [input, value, u64::from(generation)];
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if std::arch::is_x86_feature_detected!("sse4.2") {
        // SAFETY: the processor has the instruction.
        return unsafe { by_instruction(words) };
    }
    by_table(words)
}

#[cfg(all(target_arch = "x86_64", not(any(miri, quintet_loom, quintet_shuttle))))]
#[target_feature(enable = "sse4.2")]
#[allow(unused_unsafe)] // the oldest compiler we support asks for the inner block
/// # Safety
/// The processor has the instruction.
unsafe fn words_by_instruction(sum: u32, words: &[AtomicU64]) -> u32 {
    let next = |sum, word: &AtomicU64| {
        // ORDERING: Relaxed: certified by whoever asks for the sum.
        let word = word.load(Ordering::Relaxed);
        // SAFETY: the instruction is there, by the caller's promise.
        unsafe { std::arch::x86_64::_mm_crc32_u64(sum, word) }
    };
    words.iter().fold(u64::from(sum), next) as u32
}

/// A sum goes on over these words. It begins with all bits set and ends inverted.
pub(crate) fn over(sum: u32, words: &[AtomicU64]) -> u32 {
    #[cfg(all(target_arch = "x86_64", not(any(miri, quintet_loom, quintet_shuttle))))]
    if std::arch::is_x86_feature_detected!("sse4.2") {
        // SAFETY: the processor has the instruction.
        return unsafe { words_by_instruction(sum, words) };
    }
    // ORDERING: Relaxed: as above.
    let bytes = words.iter().flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes());
    bytes.fold(sum, |sum, byte| sum >> 8 ^ TABLE[(sum as u8 ^ byte) as usize])
}

/// The tick's word with the sum.
pub(crate) fn with_tick(sum: u32, tick: u32) -> u64 {
    u64::from(sum) << 32 | u64::from(tick)
}

/// The words of a record belong together.
pub(crate) fn fits(input: u64, value: u64, tick: u64, generation: u32) -> bool {
    of(input, value, generation) == (tick >> 32) as u32
}

#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn is_the_castagnoli_sum_on_every_machine() {
        let counting = [0, 8, 16].map(|from: u64| {
            u64::from_le_bytes(std::array::from_fn(|at| (from + at as u64) as u8))
        });
        let bitwise = |words: [u64; 3]| {
            let bits = words.into_iter().flat_map(|word| (0..64).map(move |bit| word >> bit & 1));
            !bits.fold(!0u32, |sum, bit| {
                let odd = (sum ^ bit as u32) & 1 == 1;
                if odd { sum >> 1 ^ POLYNOMIAL } else { sum >> 1 }
            })
        };
        for words in [counting, [0; 3], [u64::MAX; 3], [1, 2, 3]] {
            assert_eq!(by_table(words), bitwise(words));
        }
        assert_eq!(of(7, 9, 11), by_table([7, 9, 11]), "both ways agree");
        assert_ne!(of(7, 9, 11), of(7, 9, 12));
        assert!(fits(7, 9, with_tick(of(7, 9, 11), 5), 11));
        assert!(!fits(7, 8, with_tick(of(7, 9, 11), 5), 11));
        let words: Vec<AtomicU64> = (0..40u64).map(|at| AtomicU64::new((at * at) << 7)).collect();
        for cut in [0, 1, 2, 39, 40] {
            let (head, tail) = words.split_at(cut);
            assert_eq!(over(over(!0, head), tail), over(!0, &words), "piece by piece");
        }
        let three = [7, 9, 11].map(AtomicU64::new);
        assert_eq!(!over(!0, &three), of(7, 9, 11), "the same sum");
    }
}
