//! Copies between payload words and bytes, as fast as a copy of memory.
//!
//! **Y1.** A copy out may meet a writer: each of its bytes is of some moment, and the copy counts
//! only once it is certified (`read` G1).
//! **Y2.** A copy in goes to blocks that nobody but their owner writes (`write` S1); who still
//! reads them from before cannot be certified.

use crate::sync::{AtomicU64, Ordering};
use crate::tier_cache::step::{Point, crash_point};

/// Words of a line, which is copied at once where that is possible.
const LINE: usize = 8;

/// Lines are copied at once: what watches every single word, a sanitizer or a model, must see
/// single words.
const BY_LINES: bool =
    cfg!(all(target_arch = "x86_64", not(any(quintet_tsan, quintet_loom, quintet_shuttle, miri))));

/// How many of these words are copied by lines.
#[inline(always)]
const fn by_lines(words: usize) -> usize {
    if BY_LINES { words & !(LINE - 1) } else { 0 }
}

/// Copies words to a place with room for all of them (Y1).
///
/// # Safety
/// So many bytes are writable at `to`, which need not be aligned, and nobody else uses them.
#[inline(always)]
pub(super) unsafe fn copy_out(words: &[AtomicU64], to: *mut u8) {
    let (lines, rest) = words.split_at(by_lines(words.len()));
    let mut to = to;
    for line in lines.chunks_exact(LINE) {
        // SAFETY: a line of words is readable, and the caller's room covers it.
        unsafe { copy_line(line.as_ptr().cast(), to) };
        // SAFETY: the room covers all words.
        to = unsafe { to.add(LINE * 8) };
    }
    for word in rest {
        // ORDERING: Relaxed: certified by the second look at the generation (`read` G1).
        let value = word.load(Ordering::Relaxed).to_le();
        // SAFETY: the room covers all words; the address need not be aligned.
        unsafe { to.cast::<u64>().write_unaligned(value) };
        // SAFETY: as above.
        to = unsafe { to.add(8) };
    }
}

/// Fills words with bytes, the last one padded with zeroes (Y2). What does not fit is left out.
#[inline(always)]
pub(super) fn copy_in(bytes: &[u8], words: &[AtomicU64]) {
    #[cfg(test)]
    if crate::tier_cache::step::is_by_words() {
        let values = super::read::words_of(bytes);
        return words
            .iter()
            .zip(values)
            .for_each(|(place, value)| crate::tier_cache::step::store_payload(place, value));
    }
    // One point for all of them: nobody reaches the words yet.
    if crash_point!(Point::Payload) {
        return;
    }
    let whole = by_lines(words.len().min(bytes.len() / 8));
    let (lines, rest) = words.split_at(whole);
    for (line, place) in bytes.chunks_exact(LINE * 8).zip(lines.chunks_exact(LINE)) {
        // SAFETY: a line of bytes is readable, and as many words may be written through a shared
        // reference.
        unsafe { copy_line(line.as_ptr(), place.as_ptr().cast_mut().cast()) };
    }
    for (place, word) in rest.iter().zip(super::read::words_of(&bytes[whole * 8..])) {
        // ORDERING: Relaxed: as in `store_payload`.
        place.store(word, Ordering::Relaxed);
    }
}

/// Copies a line. Nothing need be aligned.
///
/// # Safety
/// 64 bytes are readable at `from` and writable at `to`. One of the two may be atomic words that
/// others use meanwhile.
#[cfg(all(target_arch = "x86_64", not(any(quintet_tsan, quintet_loom, quintet_shuttle, miri))))]
#[inline(always)]
unsafe fn copy_line(from: *const u8, to: *mut u8) {
    // SAFETY: the caller's. The compiler takes the block for an access to any memory, and assumes
    // nothing about what was read.
    unsafe {
        std::arch::asm!(
            "movdqu {a}, [{from}]",
            "movdqu {b}, [{from} + 16]",
            "movdqu {c}, [{from} + 32]",
            "movdqu {d}, [{from} + 48]",
            "movdqu [{to}], {a}",
            "movdqu [{to} + 16], {b}",
            "movdqu [{to} + 32], {c}",
            "movdqu [{to} + 48], {d}",
            from = in(reg) from,
            to = in(reg) to,
            a = out(xmm_reg) _,
            b = out(xmm_reg) _,
            c = out(xmm_reg) _,
            d = out(xmm_reg) _,
            options(nostack, preserves_flags),
        );
    }
}

/// Never called: no word is copied by lines here.
#[cfg(not(all(
    target_arch = "x86_64",
    not(any(quintet_tsan, quintet_loom, quintet_shuttle, miri))
)))]
unsafe fn copy_line(_: *const u8, _: *mut u8) {}
