//! `quintet choose`: which table do I want?

use crate::fail::{Exit, Fail};
use crate::ui::{Tone, paint, say};

/// What you have, what to use, why, and what it does not do.
const TABLES: [[&str; 4]; 5] = [
    [
        "Values of any type, shared by threads",
        "HashMap, ItemSet",
        "Readers never lock; writers lock one of many shards; growth is spread over the writes.",
        "Not for counters updated by everybody: use WordMap.",
    ],
    [
        "Integers, ids, counters, pointers",
        "WordMap",
        "64-bit key to 64-bit value, one cache line per operation, growth paid a few entries at a time.",
        "Not for keys or values larger than a word: use HashMap.",
    ],
    [
        "A table that is read all the time and changed now and then",
        "TwinMap",
        "Two copies; a read costs what a plain hashbrown read costs; one writer publishes versions.",
        "Not for many writers, nor where twice the memory is too much: use HashMap.",
    ],
    [
        "A set that only grows: search, crawling, model checking, dedup",
        "SeenSet",
        "Insert-only; every thread helps to grow it; ids and parents give traces.",
        "Not where entries are removed: use HashMap or WordMap.",
    ],
    [
        "A cache that several processes share",
        "TierCache",
        "LRU in shared memory, in tiers, survives kill -9 of any process.",
        "Not for one process alone: a cache without shared memory is simpler.",
    ],
];

/// Prints the chooser.
pub(crate) fn run() -> Result<Exit, Fail> {
    say("Which table do I want? Take the first line that describes your data.\n");
    for (number, [have, table, reason, not]) in TABLES.iter().enumerate() {
        say(&format!("{}. {have}\n   use {}", number + 1, paint(table, Tone::Good)));
        say(&format!("   {reason}\n   {}\n", paint(not, Tone::Dim)));
    }
    say("Unsure? Start with HashMap; it is the one that asks nothing of you.");
    say("Measure on your own machine: quintet race --quick");
    Ok(Exit::Fine)
}
