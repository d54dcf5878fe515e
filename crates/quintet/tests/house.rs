//! The order of the house: what no room may name.

use std::fs;
use std::path::{Path, PathBuf};

/// Rooms by floor: a room imports rooms of lower floors only.
const FLOORS: &[&[&str]] = &[
    &["sync", "vocabulary", "home"],
    &["hash", "roster", "region"],
    &["reclaim", "hasher"],
    &["migrate"],
    &["copy_map", "item_set", "word_map", "twin_map", "tier_cache", "seen_set"],
    &["hash_map"],
];

/// The face that stands on a family.
const FACES: &[(&str, &str)] = &[("hash_map", "item_set")];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}

/// (room, file, code without comments), for every source file of the library.
fn house() -> Vec<(String, PathBuf, String)> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&src, &mut files);
    assert!(files.len() > 20, "the walk found the house");
    files
        .into_iter()
        .map(|file| {
            let inside = file.strip_prefix(&src).unwrap();
            let room = inside.components().next().unwrap().as_os_str().to_string_lossy();
            let code = fs::read_to_string(&file).unwrap();
            let code =
                code.lines().map(|line| line.split("//").next().unwrap_or("").to_owned() + "\n");
            (room.trim_end_matches(".rs").to_owned(), inside.to_path_buf(), code.collect())
        })
        .collect()
}

fn floor(room: &str) -> usize {
    let floor = FLOORS.iter().position(|rooms| rooms.contains(&room));
    floor.unwrap_or_else(|| panic!("{room} is on no floor"))
}

#[test]
fn atomics_are_named_in_sync_only() {
    for (room, file, code) in house() {
        if room != "sync" {
            for name in
                ["sync::atomic", "portable_atomic", "compiler_fence", "cfg(loom)", "cfg(shuttle)"]
            {
                assert!(!code.contains(name), "{} names `{name}`; use crate::sync", file.display());
            }
        }
    }
}

#[test]
fn rooms_import_lower_floors_only() {
    for (room, file, code) in house() {
        // The front door names everything.
        let Some(own) = (room != "lib").then(|| floor(&room)) else { continue };
        for other in FLOORS.iter().copied().flatten().filter(|other| **other != room) {
            let named = [
                format!("crate::{other}::"),
                format!("crate::{other};"),
                format!("crate::{{{other}"),
            ]
            .iter()
            .any(|path| code.contains(path));
            let allowed = floor(other) < own
                && (floor(other) != floor("item_set") || FACES.contains(&(room.as_str(), other)));
            assert!(allowed || !named, "{} names `crate::{other}`", file.display());
        }
    }
}

#[test]
fn the_pure_room_has_no_atomics_and_no_unsafe_code() {
    for (room, file, code) in house() {
        if room == "hash" {
            assert!(
                !code.contains("unsafe") && !code.contains("Atomic"),
                "{} is not pure",
                file.display()
            );
        }
    }
}

#[test]
fn platform_switches_live_in_four_rooms() {
    for (room, file, code) in house() {
        if !["sync", "region", "reclaim", "tier_cache"].contains(&room.as_str()) {
            for name in ["target_os", "cfg(unix", "cfg(windows", "target_arch"] {
                assert!(!code.contains(name), "{} switches on `{name}`", file.display());
            }
        }
    }
}

/// Every name in the tables of `docs/soundness.md` is a test that exists: `function`,
/// `file::function`, or `folder/program::part` of a program that must not compile.
#[test]
fn every_test_that_the_soundness_page_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("docs/soundness.md")).unwrap();
    let mut files = Vec::new();
    sources(&root.join("src"), &mut files);
    sources(&root.join("tests"), &mut files);
    let texts: Vec<_> =
        files.iter().map(|file| (file, fs::read_to_string(file).unwrap())).collect();
    let has = |file: &str, function: &str| {
        let kinds =
            [format!("fn {function}("), format!("fn {function}<"), format!("mod {function} ")];
        let named = |path: &Path| file.is_empty() || path.with_extension("").ends_with(file);
        texts.iter().any(|(path, text)| named(path) && kinds.iter().any(|kind| text.contains(kind)))
    };
    let mut cells = 0;
    // The first row of a table names types.
    for row in page.lines().filter(|line| line.starts_with('|') && !line.starts_with("| |")) {
        // Names in backticks, behind the first column; those of types are capitalized.
        for name in row.split('|').skip(2).flat_map(|cell| cell.split('`').skip(1).step_by(2)) {
            if name.starts_with(|letter: char| letter.is_ascii_uppercase()) {
                continue;
            }
            let (file, function) = name.rsplit_once("::").unwrap_or(("", name));
            assert!(has(&file.replace("::", "/"), function), "no test `{name}`: {row}");
            cells += 1;
        }
    }
    assert!(cells > 50, "the page has tables");
}
