//! The race of who asks for nothing in particular: one contest for each table, in 90 seconds, and
//! why it matters.

use super::family::Family;
use super::show;
use crate::ui::{Tone, paint, say};

/// One contest of the story.
struct Chapter {
    family: &'static str,
    workload: &'static str,
    tables: &'static str,
    /// How many keys, if fewer than a quick race of the family has: others must be filled too.
    keys: Option<u64>,
    why: &'static str,
}

const CHAPTERS: [Chapter; 6] = [
    Chapter {
        family: "map",
        workload: "mix90",
        tables: "HashMap, CopyMap",
        keys: None,
        why: "any keys and values: a busy index, mostly read. Readers never lock here, and what \
              they hold blocks nobody.",
    },
    Chapter {
        family: "word",
        workload: "mix90",
        tables: "WordMap",
        keys: None,
        why: "ids, counters, pointers: a word costs one cache line, and no lock is taken anywhere.",
    },
    Chapter {
        family: "item",
        workload: "hit",
        tables: "ItemSet",
        keys: None,
        why: "records that carry their key, found by it: two lines of memory are waited for.",
    },
    Chapter {
        family: "cache",
        workload: "get-64b",
        tables: "TierCache",
        keys: Some(100_000),
        why: "one cache for many processes, which any of them may be killed beside: against \
              databases and servers that processes share.",
    },
    Chapter {
        family: "twin",
        workload: "read-1ms",
        tables: "TwinMap",
        keys: None,
        why: "a table that is read all the time and changed now and then: a read costs what it \
              costs in a plain map that nobody shares.",
    },
    Chapter {
        family: "seen",
        workload: "grow-16b",
        tables: "SeenSet",
        keys: None,
        why: "which of these states are new? A search remembers millions, and its set grows all \
              the way.",
    },
];

/// The families of the story, in its order.
pub(super) fn families(all: &[Family]) -> Vec<&Family> {
    let of = |chapter: &Chapter| all.iter().find(|family| family.name == chapter.family);
    CHAPTERS.iter().filter_map(of).collect()
}

/// How many keys a family is told with, if not as many as it quickly races with.
pub(super) fn keys(family: &str) -> Option<u64> {
    CHAPTERS.iter().find(|chapter| chapter.family == family).and_then(|chapter| chapter.keys)
}

/// Whether a workload of a family is told.
pub(super) fn is_told(family: &str, workload: &str) -> bool {
    CHAPTERS.iter().any(|chapter| chapter.family == family && chapter.workload == workload)
}

/// What comes before a contest.
pub(super) fn open(family: &str) {
    if let Some(chapter) = CHAPTERS.iter().find(|chapter| chapter.family == family) {
        say(&format!("\n{}", paint(chapter.tables, Tone::Bold)));
        show::wrapped(chapter.why, show::WIDTH).iter().for_each(|line| say(line));
    }
}

/// What comes after the last.
pub(super) fn close() {
    say("\nAll workloads of a table: quintet race --family word (race --list names them)");
    say("Figures of a quiet machine, losses first: BENCHMARKS.md");
    say("Which table is mine? quintet choose");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::race::families;

    #[test]
    fn every_chapter_is_a_contest() {
        let all = families::all();
        assert_eq!(families(&all).len(), CHAPTERS.len());
        for (chapter, family) in CHAPTERS.iter().zip(families(&all)) {
            assert!(family.workloads.iter().any(|work| is_told(family.name, work.name)));
            assert!(chapter.why.is_ascii(), "{}", chapter.why);
        }
        assert!(!is_told("region", "read") && !is_told("word", "hit"));
    }
}
