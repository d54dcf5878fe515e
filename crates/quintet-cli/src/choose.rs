//! `quintet choose`: which table do I want?

use crate::fail::{Exit, Fail};
use crate::ui::{Tone, paint, say};

/// What you have, what to use, why, and what it does not do.
const TABLES: [[&str; 4]; 7] = [
    [
        "Keys and values of any type, shared by threads",
        "HashMap",
        "Readers never lock, and what they hold blocks nobody; writers lock one of many shards; growth is spread over the writes.",
        "Not for counters updated by everybody: use WordMap.",
    ],
    [
        "Records that carry their own key",
        "ItemSet",
        "The same engine; the key is kept once, inside of the record, boxed or shared.",
        "Not where the key is no part of the value: use HashMap.",
    ],
    [
        "Integers, ids, counters, pointers",
        "WordMap",
        "64-bit key to 64-bit value, one cache line per operation, growth paid a few entries at a time.",
        "Not for keys or values larger than a word: use HashMap.",
    ],
    [
        "Small plain data: keys and values without pointers, up to 48 bytes together",
        "CopyMap",
        "They lie in the table's own cache lines and are copied under a version; no entry is allocated.",
        "Not where one thread does nearly everything: a lock around a plain table is faster there.",
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
        "LRU in shared memory that survives kill -9 of any process.",
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
    say("Unsure? Start with HashMap: it takes keys and values of any type.");
    say("Measure on your own machine: quintet race --quick");
    Ok(Exit::Fine)
}

#[cfg(test)]
mod tests {
    use super::TABLES;

    /// Every table that there is, as the library exports it.
    fn exported() -> [&'static str; 7] {
        use quintet::{CopyMap, HashMap, ItemSet, SeenSet, TierCache, TwinMap, WordMap};
        [
            std::any::type_name::<HashMap<u8, u8>>(),
            std::any::type_name::<ItemSet<Box<Item>>>(),
            std::any::type_name::<WordMap>(),
            std::any::type_name::<CopyMap<u8, u8>>(),
            std::any::type_name::<TwinMap<u8, u8>>(),
            std::any::type_name::<SeenSet<u8>>(),
            std::any::type_name::<TierCache>(),
        ]
        .map(|path| {
            path.split('<').next().and_then(|path| path.rsplit("::").next()).unwrap_or(path)
        })
    }

    struct Item(u8);

    impl quintet::item_set::Keyed for Item {
        type Key = u8;
        fn key(&self) -> &u8 {
            &self.0
        }
    }

    #[test]
    fn what_is_recommended_exists() {
        let exported = exported();
        for [have, table, reason, not] in TABLES {
            assert!(exported.contains(&table), "{table}");
            for word in [have, reason, not].join(" ").split(|c: char| !c.is_alphanumeric()) {
                let names_a_table = ["Map", "Set", "Cache"].iter().any(|end| word.ends_with(end));
                assert!(!names_a_table || exported.contains(&word), "{word}");
            }
        }
    }
}
