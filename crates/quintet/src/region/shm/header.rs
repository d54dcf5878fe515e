//! The first pages of a segment.
//!
//! Words 0 to 15 say what it is, 16 to 47 are the family's fields, word 48 is the length of its
//! note in bytes, which follow; from byte 4096 on one line per process slot; the body begins at the
//! next whole page ([`body_at`](super::body_at)). The rest of the first page is zero.

use super::{LONGEST_NOTE, SLOT_WORDS, SLOTS};
use crate::sync::{AtomicU64, Ordering};

pub(super) const MAGIC: u64 = u64::from_le_bytes(*b"quintet\x01");
/// In place of the magic word while a segment is being made.
pub(super) const HALF_MADE: u64 = u64::from_le_bytes(*b"quinhalf");
pub(super) const ENDIAN: u64 = 0x0102_0304_0506_0708;
/// Changes with the layout of these pages.
pub(super) const VERSION: u64 = 2;

pub(super) const AT_MAGIC: usize = 0;
pub(super) const AT_ENDIAN: usize = 1;
pub(super) const AT_VERSION: usize = 2;
pub(super) const AT_KIND: usize = 3;
pub(super) const AT_FORMAT: usize = 4;
pub(super) const AT_BYTES: usize = 5;
pub(super) const AT_SEED: usize = 6;
pub(super) const AT_BOOT: usize = 7;
pub(super) const AT_CREATION: usize = 9;
pub(super) const AT_MODE: usize = 10;
pub(super) const AT_USER: usize = 11;
pub(super) const AT_FIELDS: usize = 12;
pub(super) const AT_GROUP: usize = 13;
pub(super) const AT_PROCESSES: usize = 14;
/// When it was made, in milliseconds of the wall clock.
pub(super) const AT_CREATED: usize = 15;
pub(super) const FIRST_FIELD: usize = 16;
pub(super) const MAX_FIELDS: usize = 32;
pub(super) const AT_NOTE: usize = FIRST_FIELD + MAX_FIELDS;
const _: () = assert!((AT_NOTE + 1) * 8 + LONGEST_NOTE <= SLOTS);

/// A view of the header's words.
#[derive(Clone, Copy)]
pub(super) struct Header<'a>(pub(super) &'a [AtomicU64]);

impl<'a> Header<'a> {
    pub(super) fn get(self, place: usize) -> u64 {
        // ORDERING: Acquire; partner: the Release of `set`, above all that of the magic word (`shm`
        // M2).
        self.0[place].load(Ordering::Acquire)
    }

    pub(super) fn set(self, place: usize, value: u64) {
        // ORDERING: Release: whoever sees the magic word sees the rest.
        self.0[place].store(value, Ordering::Release);
    }

    /// Writes the note, which is no longer than it may be.
    pub(super) fn set_note(self, note: &str) {
        let bytes = &note.as_bytes()[..note.len().min(LONGEST_NOTE)];
        self.set(AT_NOTE, bytes.len() as u64);
        for (at, part) in bytes.chunks(8).enumerate() {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            self.set(AT_NOTE + 1 + at, u64::from_le_bytes(word));
        }
    }

    /// The note. Whatever is there, it is text of at most so many bytes.
    pub(super) fn note(self) -> String {
        let length = (self.get(AT_NOTE) as usize).min(LONGEST_NOTE);
        let words = (0..length.div_ceil(8)).map(|at| self.get(AT_NOTE + 1 + at).to_le_bytes());
        let bytes: Vec<u8> = words.flatten().take(length).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// How many processes can take part: as the bytes behind the header say, whatever is stored
    /// there later.
    pub(super) fn processes(self) -> usize {
        (self.0.len() - SLOTS / 8) / SLOT_WORDS
    }

    /// The words of a process slot.
    pub(super) fn slot(self, slot: usize) -> Option<&'a [AtomicU64]> {
        if slot >= self.processes() {
            return None;
        }
        let from = SLOTS / 8 + slot * SLOT_WORDS;
        self.0.get(from..from + SLOT_WORDS)
    }
}

/// The id of this boot of the machine, two words; zero where the system does not tell.
pub(super) fn boot_id() -> [u64; 2] {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    let part =
        |range| digits.get(range).and_then(|part| u64::from_str_radix(part, 16).ok()).unwrap_or(0);
    [part(0..16), part(16..32)]
}
