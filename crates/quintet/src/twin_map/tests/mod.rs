//! Tests by question: does it do what a map does (`oracle`), also with many writers (`fronts`) and
//! shared values (`inerts`), do guards show one version (`snapshots`), what goes wrong in others
//! and must not here (`traps`), who waits for whom (`waiting`), in which forms (`forms`), who owns
//! which copy (`owners`), what tasks do (`tasks`), which copy readers return to (`homes`), what
//! somebody does who has not read the page (`strangers`).

mod forms;
mod fronts;
mod homes;
mod inerts;
mod oracle;
mod owners;
mod snapshots;
mod strangers;
mod tasks;
mod traps;
mod waiting;

use super::*;

/// The two copies agree, and readers see `expected`, whichever of them is readable.
fn expect_both<S: std::hash::BuildHasher + Clone>(
    writer: &mut Writer<u64, String, S>,
    reader: &MapReader<u64, String, S>,
    expected: &[(u64, &str)],
) {
    for _ in 0..2 {
        let guard = reader.pin();
        let mut seen: Vec<(u64, &str)> = guard.iter().map(|(k, v)| (*k, v.as_str())).collect();
        seen.sort_unstable();
        assert_eq!(seen, expected);
        for (key, value) in expected {
            assert_eq!(guard.get(key).map(String::as_str), Some(*value));
        }
        drop(guard);
        writer.guard().publish();
    }
}
