//! Results for people.

use super::family::{Family, Measure, Role};
use super::record::Record;
use super::story;
use crate::ui::{Tone, count, nanoseconds, paint, say};

/// Marks yardsticks.
const LIMIT: char = '~';
/// No line is longer.
pub(super) const WIDTH: usize = 80;
/// The column of names.
const NAME: usize = 28;
/// The column of names with their versions.
const TITLE: usize = 38;
/// A column of figures: a ratio and its spread fit.
const COLUMN: usize = 21;
/// So many columns of figures fit beside the names.
const COLUMNS: usize = (WIDTH - TITLE) / COLUMN;

/// Lists families and workloads with their reasons.
pub(crate) fn list(families: &[Family]) {
    for family in families {
        say(&format!("{}: {}", paint(family.name, Tone::Bold), family.about));
        for workload in family.workloads {
            let star = if story::is_told(family.name, workload.name) { "*" } else { " " };
            let lines = wrapped(workload.reason, WIDTH - NAME);
            for (number, line) in lines.iter().enumerate() {
                let name =
                    if number == 0 { format!(" {star} {}", workload.name) } else { String::new() };
                say(&format!("{name:<NAME$}{line}"));
            }
        }
        list_tables(family);
    }
    let about = super::policy::ABOUT;
    say(&format!("{}: {about}", paint(super::policy::NAME, Tone::Bold)));
    for (name, reason) in super::policy::workloads() {
        say(&format!("{:<NAME$}{reason}", format!("   {name}")));
    }
    say(&paint("* is told by quintet race --quick", Tone::Dim));
}

/// Prints who takes part in a family, as `--tables` takes it.
fn list_tables(family: &Family) {
    let tables = (family.tables)();
    for (role, title) in [(Role::Ours, "ours"), (Role::Rival, "rivals"), (Role::Limit, "limits")] {
        let mut names: Vec<&str> = Vec::new();
        for table in tables.iter().filter(|table| table.role == role) {
            if !names.contains(&table.label.name) {
                names.push(table.label.name);
            }
        }
        if !names.is_empty() {
            for (number, line) in wrapped(&names.join(", "), WIDTH - NAME).iter().enumerate() {
                let title = if number == 0 { format!("   {title}:") } else { String::new() };
                say(&format!("{title:<NAME$}{line}"));
            }
        }
    }
}

/// Prints the records of one stage, a block per workload, a row per table.
pub(crate) fn blocks(records: &[Record]) {
    let mut names: Vec<&str> = Vec::new();
    for record in records {
        if !names.contains(&record.workload.as_str()) {
            names.push(&record.workload);
        }
    }
    for name in names {
        let rows: Vec<&Record> = records.iter().filter(|record| record.workload == name).collect();
        block(&rows).iter().for_each(|line| say(line));
    }
}

/// The lines about one workload with one number of keys.
fn block(rows: &[&Record]) -> Vec<String> {
    let first = rows[0];
    let title = format!("{} {}, {} keys", first.family, first.workload, count(first.keys));
    let mut crowds: Vec<usize> = rows.iter().map(|row| row.racers()).collect();
    crowds.sort_unstable();
    crowds.dedup();
    let mut lines = vec![String::new()];
    match (first.measure, first.beside) {
        (Measure::Worst, _) => lines.extend(latencies(&title, rows)),
        (_, Some(_)) => lines.extend(weights(&title, rows)),
        _ => crowds.chunks(COLUMNS).for_each(|some| lines.extend(figures(&title, rows, some))),
    }
    if rows.iter().any(|row| row.limit) {
        lines.push(paint(&format!("{LIMIT} is a yardstick and nobody's rival"), Tone::Dim));
    }
    for row in rows {
        if let Some(what) = &row.struck {
            let text = format!("struck: {}, {}: {what}", row.table, row.crowd());
            let told = wrapped(&text, WIDTH - 4);
            lines.extend(told.iter().map(|line| paint(&format!("    {line}"), Tone::Bad)));
        }
    }
    lines
}

/// The tables of some rows, the best with the most threads first.
fn tables<'a>(rows: &[&'a Record], crowd: usize) -> Vec<&'a str> {
    let mut tables: Vec<&str> = Vec::new();
    for row in rows {
        if !tables.contains(&row.table.as_str()) {
            tables.push(&row.table);
        }
    }
    let key = |table: &str| find(rows, table, crowd).map_or(f64::NEG_INFINITY, Record::goodness);
    tables.sort_by(|a, b| key(b).total_cmp(&key(a)));
    tables
}

fn find<'a>(rows: &[&'a Record], table: &str, crowd: usize) -> Option<&'a Record> {
    rows.iter().copied().find(|row| row.table == table && row.racers() == crowd)
}

/// A row's name, and its line in the tone that befits it.
fn named(row: &Record, cells: &str) -> String {
    let version = row.version.as_deref().unwrap_or_default();
    let mark = if row.limit { LIMIT } else { ' ' };
    let line = format!("{:<NAME$}{version:<10}{cells}", format!("{mark} {}", row.table));
    match (row.limit, row.ratio_to_best_rival) {
        (true, _) => paint(&line, Tone::Dim),
        (_, Some(_)) => paint(&line, Tone::Good),
        _ => line,
    }
}

/// Columns of figures, one per number of threads; ratios below those of our own.
fn figures(title: &str, rows: &[&Record], crowds: &[usize]) -> Vec<String> {
    let column = |text: String| format!("{text:>COLUMN$}");
    let crowd = |n: &usize| rows.iter().find(|row| row.racers() == *n).map(|row| row.crowd());
    let heads: String = crowds.iter().filter_map(crowd).map(column).collect();
    let mut lines = headed(title, &heads);
    let last = *crowds.last().unwrap_or(&1);
    for table in tables(rows, last) {
        let of = |n: &usize| find(rows, table, *n);
        let Some(row) = crowds.iter().rev().find_map(of) else { continue };
        let cell = |n: &usize| column(of(n).map_or_else(|| "-".to_owned(), figure));
        lines.push(named(row, &crowds.iter().map(cell).collect::<String>()));
        if crowds.iter().filter_map(of).any(|row| row.ratio_to_best_rival.is_some()) {
            let cell = |n: &usize| column(of(n).and_then(ratio).unwrap_or_default());
            let cells: String = crowds.iter().map(cell).collect();
            let line = format!("{:<TITLE$}{cells}", "    to the best rival");
            lines.push(paint(&line, Tone::Good));
        }
    }
    lines
}

/// A title and the heads of columns, in two lines if one is too short.
fn headed(title: &str, heads: &str) -> Vec<String> {
    let bold = |text: String| paint(&text, Tone::Bold);
    match title.chars().count() < TITLE {
        true => vec![bold(format!("{title:<TITLE$}{heads}"))],
        false => vec![bold(title.to_owned()), format!("{:<TITLE$}{heads}", "")],
    }
}

/// A row for each table and number of threads.
fn latencies(title: &str, rows: &[&Record]) -> Vec<String> {
    let heads = ["", "p50", "p99", "p99.99", "max", "faults"];
    let line = |cells: [String; 6]| {
        let [crowd, p50, p99, p9999, max, faults] = cells;
        format!("{crowd:>3}{p50:>8}{p99:>8}{p9999:>10}{max:>10}{faults:>10}")
    };
    let name = NAME + 2;
    let mut lines = vec![paint(title, Tone::Bold)];
    lines.push(format!("{:<name$}{}", "", line(heads.map(str::to_owned))));
    let mut rows = rows.to_vec();
    rows.sort_by(|a, b| a.racers().cmp(&b.racers()).then(b.goodness().total_cmp(&a.goodness())));
    for row in rows {
        let Some(latency) = row.latency else { continue };
        let worst = [
            latency.p50_ns,
            latency.p99_ns,
            latency.p9999_ns,
            latency.max_ns,
            latency.max_faults_ns,
        ];
        let [p50, p99, p9999, max, faults] = worst.map(nanoseconds);
        let crowd = format!("{}t", row.racers());
        let cells = line([crowd, p50, p99, p9999, max, faults]);
        let text = format!("{:<name$}{cells}", format!("  {}", row.table));
        let ours = row.ratio_to_best_rival.is_some();
        lines.push(if ours { paint(&text, Tone::Good) } else { text });
        if let Some(ratio) = ratio(row) {
            let best = nanoseconds(latency.max_best_ns);
            let jitter = nanoseconds(latency.jitter_ns);
            let text =
                format!("    max to the best rival {ratio}, best round {best}, jitter {jitter}");
            lines.push(paint(&text, Tone::Good));
        }
    }
    lines
}

/// Bytes per entry: in memory, handed out, mapped.
fn weights(title: &str, rows: &[&Record]) -> Vec<String> {
    let heads = format!("{:>10}{:>10}{:>10}{:>10}", "resident", "allocated", "mapped", "ratio");
    let mut lines = headed(title, &heads);
    for table in tables(rows, 1) {
        let Some(row) = find(rows, table, 1) else { continue };
        let (allocated, mapped) = row.beside.unwrap_or_default();
        let bytes = row.bytes_per_entry.unwrap_or(f64::NAN);
        let ratio = row.ratio_to_best_rival.map_or_else(String::new, |ratio| format!("{ratio:.2}"));
        lines.push(named(row, &format!("{bytes:>10.1}{allocated:>10.1}{mapped:>10.1}{ratio:>10}")));
    }
    lines
}

/// Operations per second, in thousands where they are few.
pub(crate) fn rate(mops: f64) -> String {
    if mops < 1.0 { format!("{:.1} kops", mops * 1e3) } else { format!("{mops:.1} Mops") }
}

/// The same, and what one operation of one of so many racers takes, where that is less than a
/// millisecond.
fn rate_and_time(mops: f64, racers: usize) -> String {
    match racers as f64 * 1e3 / mops {
        ns @ 0.0..1e3 => format!("{}, {ns:.1} ns", rate(mops)),
        ns @ 1e3..1e6 => format!("{}, {:.1} µs", rate(mops), ns / 1e3),
        _ => rate(mops),
    }
}

/// The figure that decides.
fn figure(row: &Record) -> String {
    match (&row.struck, row.measure, row.figure()) {
        (Some(_), ..) => "struck".to_owned(),
        (_, Measure::Rate, Some(mops)) => rate_and_time(mops, row.racers()),
        (_, Measure::Worst, Some(worst)) => nanoseconds(worst as u64),
        (_, Measure::Hits, Some(share)) => format!("{:.1} %", share * 100.0),
        (_, _, Some(bytes)) => format!("{bytes:.3} bytes"),
        (_, _, None) => "-".to_owned(),
    }
}

/// The same, in a word.
pub(crate) fn brief(row: &Record) -> String {
    match (row.measure, row.figure()) {
        (Measure::Rate, Some(mops)) => rate(mops),
        _ => figure(row),
    }
}

/// A ratio with its spread.
pub(crate) fn ratio(row: &Record) -> Option<String> {
    let (median, low, high) = (row.ratio_to_best_rival?, row.ratio_low?, row.ratio_high?);
    Some(match high {
        0.0..10.0 => format!("{median:.2} ({low:.2} to {high:.2})"),
        10.0..100.0 => format!("{median:.1} ({low:.1} to {high:.1})"),
        _ => format!("{median:.0} ({low:.0} to {high:.0})"),
    })
}

/// Breaks a text between words into lines of at most so many characters.
pub(super) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::race::families;
    use crate::race::record::Slowest;

    fn row(workload: &str, measure: Measure, table: &str, threads: usize) -> Record {
        let latency =
            Slowest { max_ns: 123_456_789, max_faults_ns: 987_654_321, ..Slowest::default() };
        Record {
            family: "tier-map".to_owned(),
            workload: workload.to_owned(),
            measure,
            table: table.to_owned(),
            version: Some("0.12.16".to_owned()),
            threads,
            keys: 16_777_216,
            mops: Some(12345.6),
            latency: (measure == Measure::Worst).then_some(latency),
            bytes_per_entry: Some(1234.567),
            beside: (measure == Measure::Bytes).then_some((1234.5, 12345.6)),
            ratio_to_best_rival: Some(99.99),
            ratio_low: Some(98.76),
            ratio_high: Some(99.99),
            struck: (threads == 4).then(|| "a wrong answer ".repeat(12)),
            ..Record::default()
        }
    }

    #[test]
    fn every_block_fits_eighty_columns() {
        for measure in [Measure::Rate, Measure::Worst, Measure::Held, Measure::Bytes] {
            let name = "memory-after-remove";
            let tables = ["quick_cache (one process)", "quintet (nobody stopped)"];
            let rows: Vec<Record> = [1, 2, 4]
                .into_iter()
                .flat_map(|threads| tables.map(|table| row(name, measure, table, threads)))
                .collect();
            let lines = block(&rows.iter().collect::<Vec<_>>());
            assert!(lines.len() > 4, "{lines:?}");
            for line in lines {
                assert!(line.chars().count() <= WIDTH, "{} in {line:?}", line.chars().count());
            }
        }
    }

    #[test]
    fn every_workload_has_room_for_its_name() {
        for family in families::all() {
            for workload in family.workloads {
                assert!(workload.name.len() + 3 < NAME, "{}", workload.name);
            }
        }
    }

    #[test]
    fn texts_break_between_words() {
        assert_eq!(wrapped("one two  three", 8), ["one two", "three"]);
        assert_eq!(wrapped("unbreakable", 3), ["unbreakable"]);
        assert!(wrapped("", 3).is_empty());
    }
}
