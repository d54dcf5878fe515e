//! Files of results, read again: `race --check` compares a run with one, `race --table` shows one
//! for a page.

use super::about::Header;
use super::record::Record;
use super::show;
use crate::fail::Fail;
use crate::ui::{count, say};
use std::path::Path;

/// The results in a file.
pub(crate) fn load(path: &Path) -> Result<Vec<Record>, Fail> {
    let refuse = |why: String| {
        let advice = "give a file that quintet race --json has written";
        Fail::misuse(format!("cannot read {}", path.display()), why, advice)
    };
    let text = std::fs::read_to_string(path).map_err(|error| refuse(error.to_string()))?;
    let lines = text.lines().filter(|line| serde_json::from_str::<Header>(line).is_err());
    let records: Result<Vec<Record>, _> = lines.map(serde_json::from_str).collect();
    let records = records.map_err(|error| refuse(error.to_string()))?;
    match records.is_empty() {
        true => Err(refuse("it has no results".to_owned())),
        false => Ok(records),
    }
}

/// One of our tables that is not what it was.
#[derive(Debug, PartialEq)]
pub(crate) struct Loss {
    what: String,
    then: String,
    now: String,
}

/// Our rows that lost more than their spread: each median lies outside of the other's spread. Also
/// how many rows were compared.
pub(crate) fn losses(then: &[Record], now: &[Record]) -> (Vec<Loss>, usize) {
    let mut compared = 0;
    let mut losses = Vec::new();
    for new in now {
        let same = |old: &&Record| old.is_beside(new) && old.table == new.table;
        let Some(old) = then.iter().find(same) else { continue };
        let ratios =
            |row: &Record| Some((row.ratio_to_best_rival?, row.ratio_low?, row.ratio_high?));
        let (Some(was), Some(is)) = (ratios(old), ratios(new)) else { continue };
        compared += 1;
        if is.0 < was.1 && was.0 > is.2 {
            let shown = |row| show::ratio(row).unwrap_or_default();
            let (keys, crowd) = (count(new.keys), new.crowd());
            losses.push(Loss {
                what: format!("{} {} {keys}, {crowd}, {}", new.family, new.workload, new.table),
                then: shown(old),
                now: shown(new),
            });
        }
    }
    (losses, compared)
}

/// Says what lost.
pub(crate) fn tell(losses: &[Loss], compared: usize) {
    say(&format!("\n{} of {compared} ratios lost more than their spread", losses.len()));
    for Loss { what, then, now } in losses {
        say(&format!("  {what}"));
        say(&format!("    {then} in the record, {now} now"));
    }
}

/// Our rows as a table of a Markdown page, one line per workload, number of keys and table: what we
/// lose first, the worst above all.
pub(crate) fn markdown(records: &[Record]) -> String {
    let mut lines: Vec<(f64, String)> = Vec::new();
    let mut seen: Vec<&Record> = Vec::new();
    for record in records.iter().filter(|record| record.ratio_to_best_rival.is_some()) {
        let same = |other: &&Record| {
            (&other.family, &other.workload, &other.table, other.keys)
                == (&record.family, &record.workload, &record.table, record.keys)
        };
        if seen.iter().any(same) {
            continue;
        }
        seen.push(record);
        let of = |racers: usize| {
            let mut rows = records.iter().filter(same);
            rows.find(|row| row.racers() == racers)
        };
        let rows: Vec<&Record> = [1, 2].into_iter().filter_map(of).collect();
        let rivals = rows.iter().filter_map(|row| best_rival(records, row));
        let mut rivals: Vec<&str> = rivals.map(|best| best.table.as_str()).collect();
        rivals.dedup();
        let worst = rows.iter().filter_map(|row| row.ratio_to_best_rival);
        let cell = |racers| of(racers).map(|row| cell(records, row)).unwrap_or_default();
        let line = format!(
            "| {} {} | `{}` | {} | {} | {} | {} |\n",
            record.family,
            record.table,
            record.workload,
            count(record.keys),
            cell(1),
            cell(2),
            rivals.join(", ")
        );
        lines.push((worst.fold(f64::INFINITY, f64::min).min(1.0), line));
    }
    // What we win stays in its order.
    lines.sort_by(|a, b| a.0.total_cmp(&b.0));
    let head = "| Table | Workload | Keys | 1 | 2 | Best rival |\n|---|---|---|---|---|---|\n";
    lines.into_iter().fold(head.to_owned(), |page, (_, line)| page + &line)
}

/// A ratio with its spread, bold where we lose, and what it is the ratio of: our figure, and the
/// best rival's.
fn cell(records: &[Record], row: &Record) -> String {
    let Some(shown) = show::ratio(row) else { return String::new() };
    let ratio = match (row.ratio_to_best_rival, shown.split_once(' ')) {
        (Some(ratio), Some((median, spread))) if ratio < 1.0 => format!("**{median}** {spread}"),
        _ => shown,
    };
    match best_rival(records, row) {
        Some(best) => format!("{ratio}: {} to {}", show::brief(row), show::brief(best)),
        None => ratio,
    }
}

/// The rival with the best figure in a row's contest.
fn best_rival<'a>(records: &'a [Record], row: &Record) -> Option<&'a Record> {
    let rivals = records.iter().filter(|other| other.is_beside(row) && !other.limit);
    let rivals =
        rivals.filter(|other| other.ratio_to_best_rival.is_none() && other.struck.is_none());
    rivals.max_by(|a, b| a.goodness().total_cmp(&b.goodness()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(table: &str, threads: usize, mops: f64, ratio: Option<(f64, f64, f64)>) -> Record {
        Record {
            family: "word".to_owned(),
            workload: "hit".to_owned(),
            table: table.to_owned(),
            threads,
            keys: 1_000_000,
            mops: Some(mops),
            ratio_low: ratio.map(|ratio| ratio.0),
            ratio_to_best_rival: ratio.map(|ratio| ratio.1),
            ratio_high: ratio.map(|ratio| ratio.2),
            ..Record::default()
        }
    }

    #[test]
    fn a_loss_is_one_that_the_spread_does_not_explain() {
        let then = [row("quintet", 1, 9.0, Some((1.0, 1.1, 1.2)))];
        let lost = |ratio| losses(&then, &[row("quintet", 1, 9.0, Some(ratio))]).0.len();
        assert_eq!(lost((0.7, 0.8, 0.9)), 1);
        assert_eq!(lost((0.7, 0.8, 1.15)), 0, "its spread reaches what it was");
        assert_eq!(lost((0.9, 1.05, 1.08)), 0, "what it was reaches it");
        assert_eq!(lost((1.5, 1.6, 1.7)), 0);
        let other = [row("quintet", 2, 9.0, Some((0.1, 0.1, 0.1)))];
        assert_eq!(losses(&then, &other).1, 0, "another number of threads");
    }

    #[test]
    fn a_page_names_the_best_rival_and_marks_what_loses() {
        let mut struck = row("leapfrog", 2, 99.0, None);
        (struck.mops, struck.struck) = (None, Some("wrong".to_owned()));
        let limit = Record { limit: true, ..row("unshared", 1, 99.0, None) };
        let records = [
            row("quintet", 1, 9.0, Some((0.8, 0.9, 1.0))),
            row("dashmap", 1, 10.0, None),
            row("scc", 1, 5.0, None),
            limit,
            row("quintet", 2, 18.0, Some((1.1, 1.2, 1.3))),
            row("scc", 2, 15.0, None),
            struck,
        ];
        let page = markdown(&records);
        let lines: Vec<&str> = page.lines().collect();
        assert_eq!(lines.len(), 3);
        let expected = "| word quintet | `hit` | 10^6 | **0.90** (0.80 to 1.00): 9.0 Mops to 10.0 Mops | \
                        1.20 (1.10 to 1.30): 18.0 Mops to 15.0 Mops | dashmap, scc |";
        assert_eq!(lines[2], expected);
    }
}
