//! How large the next table is, and how much of the old one each operation must move.
//!
//! A table of N homes is left when LIVE + TOMB reaches R·N. Of its entries L are live. The next table has N' homes.
//!
//! **M7.** N' is the smallest power of two with L ≤ R·N'/2, but not below N / [`MOST_SHRINK`]: it starts at most half as
//! full as it may become, and a table that only collected tombstones is replaced by one of its own size or less. A small table
//! that has to grow becomes four times as large: while a table is small, moving costs more than memory does.
//! **M8.** If every operation that adds an entry first moves `least_quota` slots, the old table is empty before the new
//! one has to be left. The old table has at most 1.125·N slots (homes, and the reach behind them). They are dealt out
//! after 1.125·N / M additions. The new table then holds at most L + 1.125·N / M entries. With L ≤ R·N'/2 that is at
//! most R·N' if M ≥ 2.25·N / (R·N'), and N / N' is at most [`MOST_SHRINK`].
//! **M9.** A mover may sleep with a chunk in its hands. With P threads at most P chunks are in that state when
//! the last one is dealt out. From then on every operation is handed an unfinished chunk and finishes it itself; operations that run at
//! the same time may be handed the same one, at most P of them. So P·P further additions at most come before the
//! end, whoever sleeps and however long. They fit between R and the hard limit unless the table is tiny; if they do
//! not fit, an addition that finds no slot moves all of the rest at once: the one path whose length is that of a table.

/// Tables of so many homes, or fewer, grow by four (M7).
const SMALL_BITS: u32 = if crate::sync::MODEL { 0 } else { 12 };

/// The next table has at least this fraction of the homes (M7).
pub(crate) const MOST_SHRINK: usize = 4;

/// Slots that one operation moves at least, for the share `max_load` of a table that may be filled (M8).
pub(crate) fn least_quota(max_load: f64) -> usize {
    (2.25 * MOST_SHRINK as f64 / max_load).ceil() as usize
}

/// log2 of the number of homes of the next table (M7).
pub(crate) fn next_capacity(live: usize, bits: u32, max_load: f64, min_bits: u32) -> u32 {
    let mut wanted = capacity_for(live.saturating_mul(2), max_load);
    if wanted == bits + 1 && bits <= SMALL_BITS {
        wanted += 1;
    }
    wanted.max(bits.saturating_sub(MOST_SHRINK.ilog2())).max(min_bits)
}

/// log2 of the least number of homes that `live` entries do not fill beyond `max_load`.
pub(crate) fn capacity_for(live: usize, max_load: f64) -> u32 {
    let mut bits = 0;
    while bits < 63 && live as f64 > max_load * (1u64 << bits) as f64 {
        bits += 1;
    }
    bits
}

#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn capacity_follows_the_live_count() {
        // A full table doubles, a table full of tombstones stays, an empty one shrinks step by step.
        assert_eq!(next_capacity(700, 10, 0.7, 6), 12);
        assert_eq!(next_capacity(11_468, 14, 0.7, 6), 15);
        assert_eq!(next_capacity(350, 10, 0.7, 6), 10);
        assert_eq!(next_capacity(100, 10, 0.7, 6), 9);
        assert_eq!(next_capacity(0, 10, 0.7, 6), 8);
        assert_eq!(next_capacity(0, 6, 0.7, 6), 6);
    }

    #[test]
    fn the_quota_empties_the_old_table_in_time() {
        for max_load in [0.5, 0.6, 0.65, 0.7, 0.75, 0.8] {
            let quota = least_quota(max_load);
            for bits in 6..24u32 {
                let slots = (1.125 * f64::from(1u32 << bits)) as usize;
                for share in 0..=20 {
                    let live = (max_load * f64::from(1u32 << bits)) as usize * share / 20;
                    let next = next_capacity(live, bits, max_load, 6);
                    let filled = live + slots.div_ceil(quota);
                    assert!(filled as f64 <= max_load * f64::from(1u32 << next) + 1.0);
                }
            }
        }
    }
}
