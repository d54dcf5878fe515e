//! How large the next table is, and how much of the old one each operation must move.
//!
//! A table of size N is left when LIVE + TOMB reaches R·N. Of its entries L are live. The next
//! table has size N'. Where slots are probed one by one R is the highest load for large tables and
//! half of it for those that fit the nearest caches ([`load_of`]): there a mispredicted step of a
//! probe costs more than the memory it saves. Where a whole line is looked at in one step, R is the
//! same for all.
//!
//! **M7.** N' is the smallest power of two with L ≤ 0.55·R·N', but not below N / [`MOST_SHRINK`]:
//! it starts little more than half as full as it may become at most (a full table is noticed a
//! little late, and shall double nevertheless), and a table that only collected tombstones is
//! replaced by one of its own size or less. A small table that has to grow becomes four times as
//! large: while a table is small, moving costs more than memory does. How small, each family says.
//! **M8.** If every operation that adds an entry first moves `least_quota` slots, the old table is
//! empty before the new one has to be left. The old table has at most 1.125·N slots (its size, and
//! the reach behind it). They are dealt out after 1.125·N / M additions. The new table then holds
//! at most L + 1.125·N / M entries. With L ≤ 0.55·R·N' that is at most R·N' if M ≥ 2.5·N / (R·N'),
//! and N / N' is at most [`MOST_SHRINK`].
//! **M9.** A mover may sleep with a chunk in its hands. With P threads at most P chunks are in that
//! state when the last one is dealt out. From then on every operation is handed an unfinished chunk
//! and finishes it itself; operations that run at the same time may be handed the same one, at most
//! P of them. So P·P further additions at most come before the end, whoever sleeps and however
//! long. They fit between R and the hard limit unless the table is tiny; if they do not fit, an
//! addition that finds no slot moves all of the rest at once: the one path whose length is that of
//! a table.

/// Tables of words of this size, or less, grow by four (M7).
pub(crate) const SMALL_BITS: u32 = if crate::sync::MODEL { 0 } else { 12 };

/// The next table has at least this fraction of the size (M7).
pub(crate) const MOST_SHRINK: usize = 4;

/// Tables of this size, or less, are filled by half as much: half a megabyte of 16-byte slots.
const CACHED_BITS: u32 = if crate::sync::MODEL { 0 } else { 15 };

/// The share R of a table of size `2^bits` that may be filled, if that of large tables is
/// `max_load`.
pub(crate) fn load_of(bits: u32, max_load: f64) -> f64 {
    if bits <= CACHED_BITS { max_load / 2.0 } else { max_load }
}

/// Slots that one operation moves at least, for the share `max_load` of a table that may be filled
/// (M8), and its half.
pub(crate) fn least_quota(max_load: f64) -> usize {
    (2.5 * MOST_SHRINK as f64 / load_of(0, max_load)).ceil() as usize
}

/// log2 of the size of the next table (M7). `load` is the share R that may be filled, by log2 of
/// the size: [`load_of`], or always the same. Tables up to `small` grow by four.
pub(crate) fn next_capacity(
    live: usize,
    bits: u32,
    load: impl Fn(u32) -> f64,
    min_bits: u32,
    small: u32,
) -> u32 {
    let mut wanted = capacity_for(live.saturating_mul(20) / 11, load);
    if wanted == bits + 1 && bits <= small {
        wanted += 1;
    }
    wanted.max(bits.saturating_sub(MOST_SHRINK.ilog2())).max(min_bits)
}

/// log2 of the least size that `live` entries do not fill beyond its `load`.
pub(crate) fn capacity_for(live: usize, load: impl Fn(u32) -> f64) -> u32 {
    let mut bits = 0;
    while bits < 63 && live as f64 > load(bits) * (1u64 << bits) as f64 {
        bits += 1;
    }
    bits
}

#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn capacity_follows_the_live_count() {
        let next_capacity = |live, bits, max_load, min_bits| {
            next_capacity(live, bits, |bits| load_of(bits, max_load), min_bits, SMALL_BITS)
        };
        // A full table doubles, or more if it is small; one full of tombstones stays, an empty one
        // shrinks step by step.
        assert_eq!(next_capacity(350, 10, 0.7, 6), 12);
        assert_eq!(next_capacity(11_468, 15, 0.7, 6), 16);
        assert_eq!(next_capacity(45_000, 16, 0.7, 6), 17);
        // Noticed a little late, a full table still doubles.
        assert_eq!(next_capacity(46_500, 16, 0.7, 6), 17);
        assert_eq!(next_capacity(734_100, 20, 0.7, 6), 21);
        assert_eq!(next_capacity(170, 10, 0.7, 6), 10);
        assert_eq!(next_capacity(50, 10, 0.7, 6), 9);
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
                    let most = load_of(bits, max_load) * f64::from(1u32 << bits);
                    let live = most as usize * share / 20;
                    let load = |bits| load_of(bits, max_load);
                    let next = next_capacity(live, bits, load, 6, SMALL_BITS);
                    let filled = live + slots.div_ceil(quota);
                    let room = load_of(next, max_load) * f64::from(1u32 << next);
                    assert!(filled as f64 <= room + 1.0, "{bits} {next} {live}");
                }
            }
        }
    }
}
