//! What comments name exists: the numbered invariants that they cite, and the partners of
//! orderings. And prose ends before column 101.
//!
//! An invariant is defined by `**N1.**` at the beginning of a comment or of a page's line, or by a
//! row `| N1 |` of a table. It is cited by its number alone in its own file, and with its room
//! elsewhere: `barrier` B1. A room is a file, a folder or a page.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Words of figures in which letters with a number are something else: lanes of a line.
const NOT_NUMBERS: &[&str] = &["K0", "K1", "K2", "K3", "V0", "V1", "V2", "V3"];

fn files(folder: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            files(&path, ending, found);
        } else if path.extension().is_some_and(|it| it == ending) {
            found.push(path);
        }
    }
}

fn sources() -> Vec<PathBuf> {
    let mut found = Vec::new();
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), "rs", &mut found);
    found
}

fn pages() -> Vec<PathBuf> {
    let mut found = Vec::new();
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("docs"), "md", &mut found);
    found
}

/// The comment of a line of code: what stands behind slashes that are not inside of a text.
fn comment(line: &str) -> Option<&str> {
    let (code, comment) = line.split_once("//")?;
    (code.matches('"').count() % 2 == 0).then(|| comment.trim_start_matches(['/', '!']))
}

/// The numbers of a text, as in `E10`, with their places. Of `WL4.2` it is `WL4`.
fn numbers(text: &str) -> Vec<(usize, usize, &str)> {
    let bytes = text.as_bytes();
    let joins = |byte: u8| byte.is_ascii_alphanumeric() || b"_^.`-".contains(&byte);
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let letters = bytes[at..].iter().take_while(|byte| byte.is_ascii_uppercase()).count();
        let digits = bytes[at + letters..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let end = at + letters + digits;
        let alone = at == 0 || !joins(bytes[at - 1]) || text[..at].ends_with("** ");
        let ends = bytes
            .get(end)
            .is_none_or(|byte| !byte.is_ascii_alphanumeric() && !b"_-^".contains(byte));
        if (1..=2).contains(&letters) && (1..=2).contains(&digits) && alone && ends {
            found.push((at, end, &text[at..end]));
        }
        at = if letters + digits > 0 { end } else { at + 1 };
    }
    found
}

/// The number that a line defines.
fn defined(text: &str) -> Option<&str> {
    let text = text.trim();
    let marked = text
        .trim_start_matches(|it: char| it.is_ascii_digit())
        .trim_start_matches(['.', '*', '-', ' ']);
    let bold = text.contains("**").then(|| marked.trim_start_matches('*'));
    let row = text.strip_prefix("| ").filter(|row| row[..row.len().min(8)].contains(" |"));
    let text = bold.or(row)?;
    let (_, end, number) = *numbers(text).first().filter(|(at, ..)| *at == 0)?;
    let closes = text[end..].starts_with("**")
        || text[end..].starts_with(".**")
        || text[end..].starts_with(" |");
    closes.then_some(number)
}

/// The names by which a file is cited.
fn rooms(file: &Path) -> String {
    let stem = |path: &Path| path.file_stem().unwrap().to_string_lossy().into_owned();
    if file.ends_with("mod.rs") { stem(file.parent().unwrap()) } else { stem(file) }
}

/// By number, the files and rooms that define it.
fn definitions() -> BTreeMap<String, Vec<(PathBuf, String)>> {
    let mut all = BTreeMap::<String, Vec<_>>::new();
    for file in sources().into_iter().chain(pages()) {
        let text = fs::read_to_string(&file).unwrap();
        let is_page = file.extension().is_some_and(|it| it == "md");
        for line in text.lines() {
            let said = if is_page { Some(line) } else { comment(line) };
            // Some are defined at the end of a sentence.
            let inside = said.into_iter().flat_map(|said| said.split("**").skip(1).step_by(2));
            let inside = inside.filter_map(|it| it.strip_suffix('.'));
            let inside =
                inside.filter(|it| numbers(it).first().is_some_and(|one| one.1 == it.len()));
            for number in said.and_then(defined).into_iter().chain(inside) {
                all.entry(number.to_owned()).or_default().push((file.clone(), rooms(&file)));
            }
        }
    }
    all
}

/// The comments of a file, each with the line it begins in: lines of comment that follow one
/// another are one text.
fn comments(text: &str) -> Vec<(usize, String)> {
    let mut all: Vec<(usize, String)> = Vec::new();
    let mut goes_on = false;
    for (line, it) in text.lines().enumerate() {
        let whole = it.trim_start().starts_with("//");
        match (comment(it), all.last_mut()) {
            (Some(said), Some((_, last))) if whole && goes_on => {
                last.push(' ');
                last.push_str(said.trim());
            }
            (Some(said), _) => all.push((line + 1, said.trim().to_owned())),
            _ => {}
        }
        goes_on = whole;
    }
    all
}

/// The room that a text names behind a number and those that it is listed with: `B1` of `barrier`.
fn named_behind(said: &str) -> Option<&str> {
    let mut rest = said;
    while let Some(next) = [", ", " and ", " to "].iter().find_map(|it| rest.strip_prefix(it)) {
        let (0, end, _) = *numbers(next).first()? else { return None };
        rest = &next[end..];
    }
    rest.strip_prefix(" of `")?.split('`').next()
}

#[test]
fn every_number_that_is_cited_is_defined() {
    let (definitions, mut wrong, mut cited) = (definitions(), Vec::new(), 0);
    for file in sources() {
        for (line, said) in comments(&fs::read_to_string(&file).unwrap()) {
            // The room that was named last, and the end of what it was named for.
            let mut room: Option<(&str, usize)> = None;
            for (at, end, number) in numbers(&said) {
                let before = &said[..at];
                let named = before.strip_suffix("` ").and_then(|it| it.rsplit_once('`'));
                let goes_on =
                    |until: usize| [", ", " and ", " to ", " or "].contains(&&said[until..at]);
                room = match (named, room) {
                    (Some((_, named)), _) => Some((named, end)),
                    (None, Some((named, until))) if goes_on(until) => Some((named, end)),
                    _ => named_behind(&said[end..]).map(|named| (named, end)),
                };
                cited += 1;
                let places = definitions.get(number).map_or(&[][..], Vec::as_slice);
                let holds = |(place, own): &(PathBuf, String)| {
                    *place == file || room.is_some_and(|(named, _)| named == own)
                };
                let defines = before.ends_with("**");
                if !defines && !places.iter().any(holds) && !NOT_NUMBERS.contains(&number) {
                    let from = said[..at].rfind(['.', '(']).unwrap_or(0);
                    wrong.push(format!("{}:{line}: {}", file.display(), &said[from..end]));
                }
            }
        }
    }
    assert!(cited > 500, "the walk found the citations");
    assert!(wrong.is_empty(), "not defined where they are said to be:\n{}", wrong.join("\n"));
}

#[test]
fn every_partner_of_an_ordering_exists() {
    let mut names = BTreeSet::new();
    let texts: Vec<_> =
        sources().iter().map(|file| (file.clone(), fs::read_to_string(file).unwrap())).collect();
    for (_, text) in &texts {
        for line in text.lines() {
            let code = line.split("//").next().unwrap_or("");
            let words = code.split(|it: char| !it.is_alphanumeric() && it != '_');
            names.extend(words.filter(|word| !word.is_empty()).map(str::to_owned));
        }
    }
    names.extend(sources().iter().map(|file| rooms(file)));
    let (mut wrong, mut named) = (Vec::new(), 0);
    for (file, text) in &texts {
        let mut ordering = false;
        for (line, it) in text.lines().enumerate() {
            let Some(said) = comment(it).filter(|_| it.trim_start().starts_with("//")) else {
                ordering = false;
                continue;
            };
            ordering |= said.trim_start().starts_with("ORDERING");
            if !ordering {
                continue;
            }
            for name in said.split('`').skip(1).step_by(2) {
                let last = name
                    .rsplit(|it: char| !it.is_alphanumeric() && it != '_')
                    .find(|it| !it.is_empty());
                named += 1;
                if last.is_some_and(|last| !names.contains(last)) {
                    wrong.push(format!("{}:{}: `{name}`", file.display(), line + 1));
                }
            }
        }
    }
    assert!(named > 50, "the walk found the partners");
    assert!(wrong.is_empty(), "nothing has these names:\n{}", wrong.join("\n"));
}

/// Tables, figures and links may be wider; what can be broken is.
#[test]
fn prose_ends_before_column_101() {
    const WIDTH: usize = 100;
    let mut wrong = Vec::new();
    for file in sources().into_iter().chain(pages()) {
        let is_page = file.extension().is_some_and(|it| it == "md");
        let mut figure = false;
        for (line, text) in fs::read_to_string(&file).unwrap().lines().enumerate() {
            let said = if is_page { Some(text) } else { text.trim_start().strip_prefix("//") };
            let Some(said) = said.map(|it| it.trim_start_matches(['/', '!']).trim_start()) else {
                figure = false;
                continue;
            };
            if said.starts_with("```") {
                figure = !figure;
            }
            let drawn = said.contains(['|', '─', '│', '▶', '▼'])
                || said.contains("](")
                || said.contains("   ");
            if !figure && !drawn && text.chars().count() > WIDTH && said.contains(' ') {
                wrong.push(format!("{}:{}", file.display(), line + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "too wide:\n{}", wrong.join("\n"));
}
