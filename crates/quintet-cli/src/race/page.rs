//! Results as one HTML page that needs nothing else.

use super::about::About;
use super::family::Measure;
use super::record::Record;
use super::show;
use super::show::rate;
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
pub(crate) fn page(about: &About, records: &[Record]) -> String {
    let mut page = HEAD.to_owned();
    page += &format!(
        "<p>{}, {} cores, {}, huge pages {}, {}, commit {}{}, {}, others used {:.0} % of the cores</p>\n",
        escape(&about.machine),
        about.cores,
        escape(&about.kernel),
        escape(&about.huge_pages),
        escape(&about.compiler),
        escape(&about.commit),
        if about.clean { "" } else { " with changes" },
        about.date,
        about.busy_share * 100.0
    );
    let mut seen: Vec<&Record> = Vec::new();
    for record in records {
        if !seen.iter().any(|other| other.is_beside(record)) {
            seen.push(record);
            let same = |other: &&Record| other.is_beside(record);
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
        let ratio = show::ratio(row).map_or_else(String::new, |ratio| format!(", {ratio}"));
        text += &format!(
            "<tr class=\"{class}\"><td>{} {}</td><td class=\"figure\">{shown}{ratio}</td>\
             <td class=\"bar\"><i style=\"width:{:.1}%\"></i></td></tr>\n",
            escape(&row.table),
            row.version.as_deref().unwrap_or_default(),
            100.0 * value / longest
        );
    }
    text + "</table>\n"
}

/// The figure that decides, and how it is shown.
fn figure(row: &Record) -> (f64, String) {
    let Some(value) = row.figure() else { return (0.0, "struck".to_owned()) };
    let shown = match row.measure {
        Measure::Rate => rate(value),
        Measure::Worst => nanoseconds(value as u64),
        Measure::Held | Measure::Bytes => format!("{value:.1} bytes"),
        Measure::Hits => format!("{:.1} %", value * 100.0),
    };
    (value, shown)
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}
