//! The figures of README and BENCHMARKS are those of the committed records, no more and no fewer.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(name: &str) -> String {
    std::fs::read_to_string(root().join(name)).unwrap()
}

/// The cells of a row of ratios: table, workload, keys, by one, by two, best rival.
fn cells(line: &str) -> Option<[&str; 6]> {
    let cells: Vec<&str> = line.strip_prefix("| ")?.strip_suffix('|')?.split('|').collect();
    let cells: [&str; 6] = cells.try_into().ok()?;
    let cells = cells.map(str::trim);
    (cells[1].starts_with('`')).then_some(cells)
}

fn rows(page: &str) -> impl Iterator<Item = [&str; 6]> {
    page.lines().filter_map(cells)
}

/// What `race --table` makes of every record. Its tables begin with their family, which is the
/// heading on the page.
fn recorded() -> BTreeSet<[String; 6]> {
    let files = std::fs::read_dir(root().join("records")).unwrap();
    let files = files.map(|file| file.unwrap().path());
    let mut all = BTreeSet::new();
    for file in files.filter(|file| file.extension().is_some_and(|end| end == "jsonl")) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_quintet"));
        let shown = command.args(["race", "--table"]).arg(&file).output().unwrap();
        assert!(shown.status.success(), "{}", file.display());
        let table = String::from_utf8(shown.stdout).unwrap();
        for mut row in rows(&table) {
            row[0] = row[0].split_once(' ').unwrap().1;
            all.insert(row.map(str::to_owned));
        }
    }
    assert!(!all.is_empty(), "no record has a row");
    all
}

#[test]
fn every_row_of_the_benchmarks_is_recorded_and_every_record_is_shown() {
    let page = read("BENCHMARKS.md");
    let page: BTreeSet<[String; 6]> = rows(&page).map(|row| row.map(str::to_owned)).collect();
    let recorded = recorded();
    let invented: Vec<_> = page.difference(&recorded).collect();
    assert!(invented.is_empty(), "in BENCHMARKS.md and in no record: {invented:?}");
    let hidden: Vec<_> = recorded.difference(&page).collect();
    assert!(hidden.is_empty(), "recorded and not in BENCHMARKS.md: {hidden:?}");
}

#[test]
fn every_figure_of_the_readme_is_recorded() {
    let recorded = recorded();
    let page = read("README.md");
    let mut shown = 0;
    for row in rows(&page) {
        // The figures behind the ratios are left to the other page.
        let ratio = |cell: &str| cell.split_once(':').map_or(cell, |(ratio, _)| ratio).to_owned();
        let same = |old: &&[String; 6]| {
            old[1..].iter().map(|cell| ratio(cell)).eq(row[1..].iter().copied())
        };
        assert!(recorded.iter().find(same).is_some(), "in no record: {row:?}");
        shown += 1;
    }
    assert!(shown > 0, "README.md has no row of figures");
}
