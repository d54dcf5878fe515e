//! Results as one HTML page that needs nothing else.

use super::record::Record;
use crate::ui::{count, nanoseconds};

const HEAD: &str = "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\">\
<meta name=\"viewport\" content=\"width=device-width\"><title>quintet race</title>\n<style>\
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:60rem;padding:0 1rem;\
color-scheme:light dark}h2{margin:2rem 0 .3rem;font-size:1.1rem}table{width:100%;\
border-collapse:collapse}td{padding:.1rem .5rem;white-space:nowrap}td.bar{width:60%}\
td.figure{text-align:right;font-variant-numeric:tabular-nums}\
i{display:block;height:.8rem;background:#8aa;border-radius:2px}tr.ours i{background:#2a7}\
tr.ours{font-weight:600}tr.limit{opacity:.6}</style>\n<h1>quintet race</h1>\n";

/// The page for all records.
pub(crate) fn page(records: &[Record]) -> String {
    let mut page = HEAD.to_owned();
    let mut seen: Vec<(&str, &str, u64, usize)> = Vec::new();
    for record in records {
        let key = (record.family, record.workload, record.keys, record.racers());
        if !seen.contains(&key) {
            seen.push(key);
            let same =
                |other: &&Record| (other.family, other.workload, other.keys, other.racers()) == key;
            page += &section(&records.iter().filter(same).collect::<Vec<_>>());
        }
    }
    page
}

/// A bar per table; the longest bar is the largest figure.
fn section(rows: &[&Record]) -> String {
    let first = rows[0];
    let mut text = format!(
        "<h2>{} {}, {} keys, {}</h2>\n<table>\n",
        first.family,
        first.workload,
        count(first.keys),
        first.crowd()
    );
    let longest = rows.iter().map(|row| figure(row).0).fold(f64::MIN_POSITIVE, f64::max);
    for row in rows {
        let (value, shown) = figure(row);
        let class = match (row.limit, row.ratio_to_best_rival) {
            (true, _) => "limit",
            (_, Some(_)) => "ours",
            _ => "rival",
        };
        let ratio = row.ratio_to_best_rival.map_or_else(String::new, |r| format!(" ({r:.2}x)"));
        text += &format!(
            "<tr class=\"{class}\"><td>{} {}</td><td class=\"figure\">{shown}{ratio}</td>\
             <td class=\"bar\"><i style=\"width:{:.1}%\"></i></td></tr>\n",
            escape(row.table),
            row.version.unwrap_or(""),
            100.0 * value / longest
        );
    }
    text + "</table>\n"
}

/// The figure that decides, and how it is shown.
fn figure(row: &Record) -> (f64, String) {
    match (row.bytes_per_entry, row.max_ns) {
        (Some(bytes), _) => (bytes, format!("{bytes:.1} bytes")),
        (_, Some(worst)) if row.workload.ends_with("-latency") => {
            (worst as f64, nanoseconds(worst))
        }
        _ => (row.mops.unwrap_or(0.0), format!("{:.1} Mops", row.mops.unwrap_or(0.0))),
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}
