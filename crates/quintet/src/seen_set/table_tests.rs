//! Single tables.

use super::budget::Account;
use super::ground::Lines;
use super::table::{Plan, Seen, Table};
use super::word::Split;
use crate::region::Pages;
use crate::sync::Arc;
use crate::sync::line::LINE;

fn table(lines: usize) -> Box<Table> {
    let account = Arc::new(Account::new(None));
    account.book_table(Table::bytes_for(lines * LINE)).unwrap();
    let plan = Plan {
        slots: lines * LINE,
        before: 0,
        max_load: 0.75,
        growths: 0,
        is_small: false,
        birth: 0,
    };
    let lines = Lines::own(lines, Pages::default()).unwrap();
    Table::try_new(plan, Split::new(32, 0), lines, &account).unwrap()
}

/// Where lines of a cluster would share lines of the successor with others, movers would overwrite
/// each other's words.
#[test]
fn movers_refuse_a_successor_that_does_not_fit() {
    for (lines, fits) in [(8, true), (16, true), (4, false), (6, false), (12, false), (2, false)] {
        let (from, to) = (table(4), table(lines));
        let moves = || {
            from.move_clusters(0, &to);
            from.move_ring(&to);
        };
        let moved = std::panic::catch_unwind(std::panic::AssertUnwindSafe(moves));
        assert_eq!(moved.is_ok(), fits, "{lines}");
        let ring = std::panic::AssertUnwindSafe(|| from.move_ring(&to));
        assert_eq!(std::panic::catch_unwind(ring).is_ok(), fits, "{lines}");
    }
}

/// A later line may still have an EMPTY, but somebody else may be putting the same key into the
/// successor already.
#[test]
fn a_probe_ends_at_a_sealed_line() {
    const LINES: usize = 4;
    let (split, table) = (Split::new(32, 0), table(LINES));
    for quarter in 0..LINES as u64 {
        let tag = split.tag(quarter << 62 | 1 << 40);
        let words: Vec<_> = (1..=2 * quarter).map(|id| tag | id).collect();
        words.iter().for_each(|&word| table.copy_in(word, |_| ()));
        let look = || table.look(&mut table.walk(tag), tag, |_| false);
        let Seen::Empty(gap) = look() else { panic!("there is room") };
        let mut sealed = Vec::new();
        assert!(table.seal(split.home(tag, LINES), |word| sealed.push(word)));
        assert_eq!(sealed, words);
        assert_eq!(look(), Seen::Never);
        // Who has looked before comes too late (`table` T4).
        assert!(!Table::take_at(table.home(tag), gap, tag | 99));
    }
}
