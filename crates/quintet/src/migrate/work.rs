//! Chunks: handed out once in order, then again until they are done.

use crate::sync::{AtomicBool, AtomicU64, AtomicUsize, Ordering, load_hint};

/// A chunk to be worked on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    /// Its number.
    pub(crate) chunk: usize,
    /// It was handed out before: its mover may be asleep, or at work this moment.
    pub(crate) again: bool,
}

/// The work of one migration.
#[derive(Debug)]
pub(crate) struct Work {
    chunks: usize,
    cursor: AtomicUsize,
    /// One bit per chunk; bits past the last chunk are set from the beginning.
    done: Box<[AtomicU64]>,
    swept: AtomicUsize,
}

impl Work {
    /// Work of `chunks` chunks, none of them done.
    pub(crate) fn try_new(chunks: usize) -> Result<Self, std::collections::TryReserveError> {
        let words = chunks.div_ceil(64);
        let mut done = Vec::new();
        done.try_reserve_exact(words)?;
        done.resize_with(words, || AtomicU64::new(0));
        if let (Some(last), tail @ 1..) = (done.last_mut(), chunks % 64) {
            *last = AtomicU64::new(u64::MAX << tail);
        }
        let done = done.into_boxed_slice();
        Ok(Self { chunks, cursor: AtomicUsize::new(0), done, swept: AtomicUsize::new(0) })
    }

    /// The next chunk: a fresh one, else one that is not done yet (`migrate` M3), else nothing
    /// (`migrate` M4).
    pub(crate) fn claim(&self) -> Option<Claim> {
        // ORDERING: Relaxed: the cursor only deals out numbers; what a chunk contains is ordered by
        // its slots. The load keeps the cursor from running away past the end.
        if load_hint(&self.cursor) < self.chunks {
            let chunk = self.cursor.fetch_add(1, Ordering::Relaxed);
            if chunk < self.chunks {
                return Some(Claim { chunk, again: false });
            }
        }
        self.unfinished().map(|chunk| Claim { chunk, again: true })
    }

    /// Every chunk has been handed out at least once (`migrate` M2).
    pub(crate) fn is_dealt(&self) -> bool {
        load_hint(&self.cursor) >= self.chunks
    }

    /// Marks a chunk done. True if this may have been the last one: ask `claim`.
    pub(crate) fn finish(&self, chunk: usize) -> bool {
        let bit = 1 << (chunk % 64);
        // ORDERING: Release: what was copied comes first (`migrate` M1), partner: `unfinished`.
        // Acquire: so that this thread, going on to `unfinished`, stands on what the others
        // finished.
        let before = self.done[chunk / 64].fetch_or(bit, Ordering::AcqRel);
        if before | bit == u64::MAX && before != u64::MAX {
            self.sweep();
        }
        self.is_dealt()
    }

    /// Every chunk is done (`migrate` M4).
    pub(crate) fn is_finished(&self) -> bool {
        self.is_dealt() && self.unfinished().is_none()
    }

    /// Share of the work that has been handed out, in chunks.
    pub(crate) fn progress(&self) -> (usize, usize) {
        (load_hint(&self.cursor).min(self.chunks), self.chunks)
    }

    /// The first chunk that is not done.
    fn unfinished(&self) -> Option<usize> {
        // ORDERING: Acquire of every word: `migrate` M1, partner: `finish`. `swept` itself is a
        // hint whose words are read again only when they are not full, so it carries the others'
        // Release along: Acquire, partner: `sweep`.
        let from = self.swept.load(Ordering::Acquire);
        (from..self.done.len()).find_map(|word| {
            let done = self.done[word].load(Ordering::Acquire);
            (done != u64::MAX).then(|| word * 64 + done.trailing_ones() as usize)
        })
    }

    /// Moves the hint over the words that are full (`migrate` M5).
    fn sweep(&self) {
        let mut word = self.swept.load(Ordering::Acquire);
        while word < self.done.len() && self.done[word].load(Ordering::Acquire) == u64::MAX {
            // ORDERING: Release: passes on what was acquired from the full words. A failed exchange
            // means that somebody else moved the hint; it is theirs to go on.
            match self.swept.compare_exchange(word, word + 1, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => word += 1,
                Err(found) => word = found,
            }
        }
    }
}

/// Who may prepare the next table.
///
/// **M6.** Among those that ask in earnest one wins until it gives up; the others are told to go
/// on. Whoever cannot go on prepares a table of its own: the successor is set by a
/// compare-exchange, and a superfluous table is dropped.
#[derive(Debug)]
pub(crate) struct Election(AtomicBool);

impl Election {
    pub(crate) fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// True for the one that shall prepare the next table.
    pub(crate) fn stand(&self) -> bool {
        // ORDERING: Relaxed: a hint that spares superfluous tables (M6).
        !self.0.load(Ordering::Relaxed) && !self.0.swap(true, Ordering::Relaxed)
    }

    /// The winner could not: let somebody else try later.
    pub(crate) fn resign(&self) {
        // ORDERING: Relaxed, as in `stand`.
        self.0.store(false, Ordering::Relaxed);
    }
}
