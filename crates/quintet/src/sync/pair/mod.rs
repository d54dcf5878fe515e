//! Two adjacent words that change together.
//!
//! **P1.** [`AtomicPair::load`] returns the two words of one moment.
//! **P2.** [`AtomicPair::compare_exchange`] replaces both words if and only if both are as
//! expected.
//! **P3.** Every load is Acquire, every successful exchange is AcqRel: whoever sees a pair sees
//! what its writer did before. The partner of each load is the exchange that stored what it read.
//!
//! **P4.** [`AtomicPair::store`] replaces both words at one moment, Release. Only where a protocol
//! lets nobody else change the pair meanwhile.
//!
//! The address is 16-byte aligned, and all bytes zero is a valid pair (0, 0).
//!
//! | Where | How |
//! |---|---|
//! | x86-64 | inline assembly: `lock cmpxchg16b`; a 16-byte vector load, which is atomic on every processor with AVX, else `lock cmpxchg16b` as a load |
//! | elsewhere | `portable-atomic`: native where the target has it, a lock where not |
//! | ThreadSanitizer, Miri | a spin lock beside the words, which both tools understand |
//! | loom, shuttle | one atomic word that names an interned pair, so that a pair is a single access |
//!
//! This file is the only place where accesses of two sizes may meet; that is why they are assembly
//! there.

/// Both words of a pair.
pub(crate) type Words = (u64, u64);

/// Which of two pairs has the word that was sought.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Selected {
    /// 0 if one of them has it.
    missed: u64,
    /// 0 if the later one has it.
    not_later: u64,
    second: u64,
}

impl Selected {
    /// Of two loaded pairs: one whose first word is `word` under `mask`. If both are, the later.
    #[inline(always)]
    #[cfg_attr(all(target_arch = "x86_64", not(any(test, miri))), allow(dead_code))] // the instructions below do it there
    pub(crate) fn of([zero, one]: [Words; 2], mask: u64, word: u64) -> Self {
        let not_later = (one.0 ^ word) & mask;
        if not_later == 0 {
            return Self { missed: 0, not_later, second: one.1 };
        }
        Self { missed: (zero.0 ^ word) & mask, not_later, second: zero.1 }
    }

    /// The second word of the pair that has it.
    #[inline(always)]
    pub(crate) fn second(self) -> Option<u64> {
        if self.missed == 0 { Some(self.second) } else { None }
    }

    /// Which pair it is, if one has it.
    #[inline(always)]
    pub(crate) fn index(self) -> u32 {
        (self.not_later == 0) as u32
    }
}

/// [`Selected::of`] two neighbours, the first loaded before the second (P1, P4). No branch depends
/// on their words: where both are as likely, half of all predictions would fail.
#[inline(always)]
#[cfg_attr(test, allow(dead_code))] // tests let things happen between the two loads
pub(crate) fn select(pairs: &[AtomicPair; 2], mask: u64, word: u64) -> Selected {
    #[cfg(all(
        target_arch = "x86_64",
        not(any(quintet_loom, quintet_shuttle, quintet_tsan, miri))
    ))]
    if x86::has_vector_loads() {
        return x86::select(pairs, mask, word);
    }
    Selected::of([pairs[0].load(), pairs[1].load()], mask, word)
}

#[cfg(all(any(quintet_tsan, miri), not(any(quintet_loom, quintet_shuttle))))]
pub(crate) use locked::AtomicPair;
#[cfg(any(quintet_loom, quintet_shuttle))]
pub(crate) use model::AtomicPair;
#[cfg(not(any(target_arch = "x86_64", quintet_loom, quintet_shuttle, quintet_tsan, miri)))]
pub(crate) use portable::AtomicPair;
#[cfg(all(
    target_arch = "x86_64",
    not(any(quintet_loom, quintet_shuttle, quintet_tsan, miri))
))]
pub(crate) use x86::AtomicPair;

#[cfg(all(target_arch = "x86_64", not(any(quintet_loom, quintet_shuttle, quintet_tsan, miri))))]
mod x86;

#[cfg(not(any(target_arch = "x86_64", quintet_loom, quintet_shuttle, quintet_tsan, miri)))]
mod portable;

#[cfg(all(any(quintet_tsan, miri), not(any(quintet_loom, quintet_shuttle))))]
mod locked;

#[cfg(any(quintet_loom, quintet_shuttle))]
mod model;

#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
mod tests {
    use super::{AtomicPair, Selected, select};

    #[test]
    fn selects_the_pair_with_the_word() {
        let sought = |mask, word| {
            let words = [(0x70_01, 1), (0x80_01, 2)];
            let pairs = words.map(|(first, second)| AtomicPair::new(first, second));
            let selected = select(&pairs, mask, word);
            let other = Selected::of(words, mask, word);
            assert_eq!(selected.second(), other.second());
            selected.second().map(|second| (selected.index(), second))
        };
        assert_eq!(sought(0xff_ff, 0x70_01), Some((0, 1)));
        assert_eq!(sought(0xff_00, 0x80_00), Some((1, 2)));
        assert_eq!(sought(0xff_00, 0x90_00), None);
        assert_eq!(sought(0xff, 1), Some((1, 2)), "both: the later");
    }

    #[test]
    fn exchange_needs_both_words() {
        let pair = AtomicPair::new(1, 2);
        assert_eq!(pair.load(), (1, 2));
        assert_eq!(pair.compare_exchange((1, 3), (9, 9)), Err((1, 2)));
        assert_eq!(pair.compare_exchange((3, 2), (9, 9)), Err((1, 2)));
        assert_eq!(pair.compare_exchange((1, 2), (u64::MAX, 7)), Ok(()));
        assert_eq!(pair.load(), (u64::MAX, 7));
        pair.store((8, u64::MAX));
        assert_eq!(pair.load(), (8, u64::MAX));
        assert!(AtomicPair::supported());
    }

    /// A single storer, as the rule demands; whoever loads sees both words of one store (P4).
    #[test]
    fn stores_are_never_torn() {
        let pair = AtomicPair::new(0, !0);
        std::thread::scope(|scope| {
            let storer = scope.spawn(|| (1..60_000u64).for_each(|word| pair.store((word, !word))));
            while !storer.is_finished() {
                let (first, second) = pair.load();
                assert_eq!(second, !first, "torn");
            }
        });
    }

    /// Writers keep `second == !first`; a torn load would show anything else (P1, P2).
    #[test]
    fn loads_are_never_torn_and_no_exchange_is_lost() {
        let pair = AtomicPair::new(0, !0);
        let (threads, each) = (3u64, 20_000u64);
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    for _ in 0..each {
                        let mut seen = pair.load();
                        loop {
                            assert_eq!(seen.1, !seen.0, "torn");
                            let next = (seen.0 + 1, !(seen.0 + 1));
                            match pair.compare_exchange(seen, next) {
                                Ok(()) => break,
                                Err(found) => seen = found,
                            }
                        }
                    }
                });
            }
        });
        assert_eq!(pair.load(), (threads * each, !(threads * each)));
    }
}

#[cfg(all(test, quintet_loom))]
mod loom_tests {
    use super::AtomicPair;
    use crate::sync::{Arc, thread};

    /// What a pair publishes is seen by whoever loads it (P3).
    #[test]
    fn loom_pair_publishes() {
        loom::model(|| {
            let pair = Arc::new(AtomicPair::new(0, 0));
            let data = Arc::new(crate::sync::AtomicU64::new(0));
            let (other_pair, other_data) = (Arc::clone(&pair), Arc::clone(&data));
            let writer = thread::spawn(move || {
                other_data.store(5, crate::sync::Ordering::Relaxed);
                other_pair.compare_exchange((0, 0), (1, 1)).unwrap();
            });
            let words = pair.load();
            assert!(words == (0, 0) || words == (1, 1), "torn");
            if words == (1, 1) {
                assert_eq!(data.load(crate::sync::Ordering::Relaxed), 5);
            }
            writer.join().unwrap();
        });
    }
}
