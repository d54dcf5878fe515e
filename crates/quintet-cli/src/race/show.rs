//! Results for people.

use super::family::Family;
use super::record::Record;
use crate::ui::{Tone, count, nanoseconds, paint, say};

/// Lists families and workloads with their reasons.
pub(crate) fn list(families: &[Family]) {
    for family in families {
        say(&format!("{}: {}", paint(family.name, Tone::Bold), family.about));
        for workload in family.workloads {
            let star = if workload.headline { "*" } else { " " };
            say(&format!(" {star} {:<22}{}", workload.name, workload.reason));
        }
    }
    say(&paint("* is part of a race over all families", Tone::Dim));
}

/// Prints the records of one stage, a block per workload, a row per table.
pub(crate) fn blocks(records: &[Record]) {
    let mut names: Vec<&str> = Vec::new();
    for record in records {
        if !names.contains(&record.workload) {
            names.push(record.workload);
        }
    }
    for name in names {
        let rows: Vec<&Record> = records.iter().filter(|record| record.workload == name).collect();
        block(&rows);
    }
}

fn block(rows: &[&Record]) {
    let mut threads: Vec<usize> = rows.iter().map(|row| row.racers()).collect();
    threads.sort_unstable();
    threads.dedup();
    let first = rows[0];
    let title = format!("{} {}, {} keys", first.family, first.workload, count(first.keys));
    let plural = |n: &usize| {
        rows.iter().find(|row| row.racers() == *n).map_or_else(String::new, |row| row.crowd())
    };
    let heads: String = match first.beside {
        Some(_) => format!("{:>12}{:>12}{:>12}", "resident", "allocated", "mapped"),
        None => threads.iter().map(|n| format!("{:>WIDTH$}", plural(n))).collect(),
    };
    say(&format!("\n{}{heads}", paint(&format!("{title:<38}"), Tone::Bold)));
    let mut tables: Vec<&str> = Vec::new();
    for row in rows {
        if !tables.contains(&row.table) {
            tables.push(row.table);
        }
    }
    let last = threads.last().copied().unwrap_or(1);
    let find = |table: &str, n: usize| {
        rows.iter().copied().find(|row| row.table == table && row.racers() == n)
    };
    tables.sort_by(|a, b| {
        let key = |table: &str| find(table, last).map_or(f64::NEG_INFINITY, goodness);
        key(b).total_cmp(&key(a))
    });
    for table in tables {
        let cells: String =
            threads.iter().map(|n| find(table, *n).map_or_else(blank, cell)).collect();
        let row = find(table, last).unwrap_or(first);
        let name = format!("  {:<26}{:<10}", table, row.version.unwrap_or(""));
        let ratios: Vec<String> =
            threads.iter().filter_map(|n| find(table, *n)).filter_map(ratio).collect();
        let line = format!("{name}{cells}{}", ratios.join(", "));
        match (row.limit, row.ratio_to_best_rival) {
            (true, _) => say(&paint(&format!("{line}  limit"), Tone::Dim)),
            (_, Some(_)) => say(&paint(&line, Tone::Good)),
            _ => say(&line),
        }
    }
}

/// Width of a column of figures.
const WIDTH: usize = 18;

fn blank() -> String {
    format!("{:>WIDTH$}", "-")
}

/// What rows are sorted by; more is better.
fn goodness(row: &Record) -> f64 {
    match (row.bytes_per_entry, row.max_ns, row.mops) {
        (Some(bytes), _, _) => -bytes,
        (_, Some(worst), _) if row.workload.ends_with("-latency") => -(worst as f64),
        (_, _, mops) => mops.unwrap_or(0.0),
    }
}

fn cell(row: &Record) -> String {
    match (row.bytes_per_entry, row.max_ns, row.mops) {
        (Some(bytes), _, _) => match row.beside {
            Some((allocated, mapped)) => format!("{bytes:>12.1}{allocated:>12.1}{mapped:>12.1}"),
            None => format!("{:>WIDTH$}", format!("{bytes:.3} bytes")),
        },
        (_, Some(worst), _) if row.workload.ends_with("-latency") => {
            format!("{:>WIDTH$}", nanoseconds(worst))
        }
        (_, _, mops) => format!("{:>WIDTH$}", format!("{:.1} Mops", mops.unwrap_or(0.0))),
    }
}

fn ratio(row: &Record) -> Option<String> {
    let (median, low, high) = (row.ratio_to_best_rival?, row.ratio_low?, row.ratio_high?);
    Some(match median {
        0.0..100.0 => format!("  {median:.2}x ({low:.2} to {high:.2})"),
        _ => format!("  {median:.0}x ({low:.0} to {high:.0})"),
    })
}
