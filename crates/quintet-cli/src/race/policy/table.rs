//! The results as a table of Markdown, which is read as easily in a terminal.

use crate::race::record::Record;

/// A row for each heat, a column for each contestant, hit ratios in percent.
pub(super) fn table(records: &[Record]) -> String {
    let mut heats: Vec<&Record> = Vec::new();
    let mut names: Vec<&str> = Vec::new();
    for record in records {
        if !heats.iter().any(|heat| heat.is_beside(record)) {
            heats.push(record);
        }
        if !names.contains(&record.table.as_str()) {
            names.push(&record.table);
        }
    }
    let width = heats.iter().map(|heat| heat.workload.len()).max().unwrap_or(0);
    let mut text = format!("| {:width$} |", "hits in percent");
    names.iter().for_each(|name| text += &format!(" {name} |"));
    text += &format!("\n|{}|", "-".repeat(width + 2));
    names.iter().for_each(|name| text += &format!("{}:|", "-".repeat(name.len() + 1)));
    for heat in heats {
        text += &format!("\n| {:width$} |", heat.workload);
        for name in &names {
            let row = records.iter().find(|row| row.is_beside(heat) && row.table == *name);
            let ratio = row.and_then(|row| row.hit_ratio);
            let shown = ratio.map_or_else(String::new, |ratio| format!("{:.1}", ratio * 100.0));
            text += &format!(" {shown:>0$} |", name.len());
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_heat_is_a_row() {
        let record = |workload: &str, table: &str, ratio| Record {
            workload: workload.to_owned(),
            table: table.to_owned(),
            hit_ratio: Some(ratio),
            ..Record::default()
        };
        let records =
            [record("loop", "a", 0.5), record("loop", "moka", 0.25), record("zipf", "moka", 1.0)];
        let lines: Vec<String> = table(&records).lines().map(str::to_owned).collect();
        assert_eq!(lines.len(), 4);
        assert_eq!(
            lines[2].split_whitespace().collect::<Vec<_>>().join(" "),
            "| loop | 50.0 | 25.0 |"
        );
        assert!(lines[3].contains("100.0"), "{lines:?}");
    }
}
