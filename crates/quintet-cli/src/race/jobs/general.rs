//! Workloads of general maps, and the way a map joins them.

use super::life::{Grow, Life};
use super::mixed::Mixed;
use super::steady::Steady;
use super::window::Window;
use crate::race::crew::crew;
use crate::race::family::{Bench, Measure, Role, Table, Workload};
use quintet_rivals::general::{Access, BATCH, Map};
use quintet_rivals::{Digests, Kind, Texts, Triples, Words};

const fn rate(
    name: &'static str,
    stage: &'static str,
    turn: &'static str,
    reason: &'static str,
) -> Workload {
    Workload { name, reason, stage, turn, measure: Measure::Rate }
}

/// What every general map is measured by.
#[rustfmt::skip]
pub(crate) const WORKLOADS: &[Workload] = &[
    rate("hit", "full", "hit", "get of a present key: what most programs do most of the time"),
    rate("hit-zipf", "full", "hit-zipf", "get with skewed keys: hot entries stay in the caches, shared lock words bounce between cores"),
    rate("miss", "full", "miss", "get of an absent key: shows how early a table knows that it has nothing"),
    rate("update", "full", "update", "overwrite a present value, which is made beforehand: in place, or a new allocation per write?"),
    rate("update-zipf", "full", "update-zipf", "overwrite with skewed keys: writers meet on the same entries"),
    rate("mix90", "half", "mix90", "90 % get, 5 % insert, 5 % remove over twice as many keys as entries: a busy cache or index"),
    rate("mix90-zipf", "half", "mix90-zipf", "the same with skewed keys: the same few entries come and go"),
    rate("mix50", "half", "mix50", "50 % get, 25 % insert, 25 % remove: writers dominate"),
    Workload { measure: Measure::Bytes, ..rate("memory", "memory", "memory", "resident bytes per entry after growing from empty, in a process of its own") },
    Workload { measure: Measure::Bytes, ..rate("memory-after-remove", "memory", "memory", "what is left, per former entry, when all have been removed") },
    rate("insert", "life", "life", "new keys into a map made for them: the cost of an insert without growth; what is inserted is made beforehand"),
    rate("remove", "life", "life", "remove every other key of that map"),
    rate("insert-kept", "life", "insert-kept", "insert without even ground: the allocator keeps what earlier tables left, no memory is touched before"),
    rate("grow", "grow", "grow", "new keys into a map that starts empty: the cost of growth; what is inserted is made beforehand"),
    rate("grow-kept", "grow", "grow-kept", "grow without even ground: the allocator keeps what earlier tables left, no memory is touched before"),
    Workload { measure: Measure::Worst, ..rate("grow-latency", "grow", "grow-latency", "the same with every insert timed: who waits while a table grows?") },
    rate("churn", "window", "churn", "a sliding window: insert the newest, remove the oldest; tombstones and reclamation show up here"),
    rate("hit-str", "text", "hit-str", "String keys and 64-byte values: a second miss on the key, and hashing that costs something"),
    rate("update-str", "text", "update-str", "overwrite 64-byte values under String keys"),
    rate("mix90-str", "half-text", "mix90-str", "mix90 with String keys: every insert allocates, every remove frees"),
    rate("grow-str", "grow-text", "grow-str", "growth with entries of 88 bytes and a heap key"),
];

/// What maps of 24-byte values are measured by.
#[rustfmt::skip]
pub(crate) const WIDE: &[Workload] = &[
    rate("hit-24b", "wide", "hit-24b", "get of 24 bytes: plain data that is too long for a word"),
    rate("update-24b", "wide", "update-24b", "overwrite 24 bytes: in place, or a new allocation per write?"),
    rate("mix90-24b", "half-wide", "mix90-24b", "mix90 with 24-byte values"),
    rate("grow-24b", "grow-wide", "grow-24b", "growth with entries of 32 bytes"),
];

/// What maps with keys of 16 bytes are measured by.
#[rustfmt::skip]
pub(crate) const DIGEST: &[Workload] = &[
    rate("hit-key16", "digest", "hit-key16", "get by a key of 16 bytes: a digest, an address, a uuid"),
    rate("update-key16", "digest", "update-key16", "overwrite a word under such a key"),
    rate("mix90-key16", "half-digest", "mix90-key16", "mix90 with such keys"),
    rate("grow-key16", "grow-digest", "grow-key16", "growth with entries of 24 bytes"),
];

impl Table {
    /// A general map of words. This line is all that a map needs to take part.
    pub(crate) fn words<M: Map<Words>>(role: Role) -> Table {
        Table::of::<Words, M>(role)
    }

    /// A general map of any kind of entries.
    pub(crate) fn of<T: Kind, M: Map<T>>(role: Role) -> Table {
        Table { label: M::LABEL, role, start: start::<T, M>, weigh: Some(weigh::<T, M>) }
    }

    /// A general map of words and of texts.
    pub(crate) fn words_and_texts<M: Map<Words>, N: Map<Texts>>(role: Role) -> Table {
        Table { start: start_both::<Words, M, N>, ..Table::words::<M>(role) }
    }
}

pub(crate) fn start_words<M: Map<Words>>(stage: &str, keys: u64) -> Option<Box<dyn Bench>> {
    start::<Words, M>(stage, keys)
}

fn start<T: Kind, M: Map<T>>(stage: &str, keys: u64) -> Option<Box<dyn Bench>> {
    match stage {
        "full" => Some(Box::new(Steady::<T, M>::new(keys))),
        "half" => Some(Box::new(Mixed::<T, M>::new(keys))),
        "window" if M::LASTING => Some(Box::new(Window::<T, M>::new())),
        "life" => Some(Box::new(Life::<T, M>::new())),
        "grow" => Some(Box::new(Grow::<T, M>::new())),
        _ => None,
    }
}

/// Starts a map of some kind of entries, and one of texts in the stages of texts.
pub(crate) fn start_both<T: Kind, M: Map<T>, N: Map<Texts>>(
    stage: &str,
    keys: u64,
) -> Option<Box<dyn Bench>> {
    match stage {
        "text" => Some(Box::new(Steady::<Texts, N>::new(keys))),
        "half-text" => Some(Box::new(Mixed::<Texts, N>::new(keys))),
        "grow-text" => Some(Box::new(Grow::<Texts, N>::new())),
        _ => start::<T, M>(stage, keys),
    }
}

/// The same with a map of plain data in the stages of 24-byte values and of 16-byte keys.
pub(crate) fn start_all<M: Map<Words>, W: Map<Triples>, D: Map<Digests>, N: Map<Texts>>(
    stage: &str,
    keys: u64,
) -> Option<Box<dyn Bench>> {
    start_plain::<M, W, D>(stage, keys).or_else(|| start_both::<Words, M, N>(stage, keys))
}

/// Starts maps of plain data: of words, of 24-byte values, of 16-byte keys.
pub(crate) fn start_plain<M: Map<Words>, W: Map<Triples>, D: Map<Digests>>(
    stage: &str,
    keys: u64,
) -> Option<Box<dyn Bench>> {
    match stage {
        "wide" => Some(Box::new(Steady::<Triples, W>::new(keys))),
        "half-wide" => Some(Box::new(Mixed::<Triples, W>::new(keys))),
        "grow-wide" => Some(Box::new(Grow::<Triples, W>::new())),
        "digest" => Some(Box::new(Steady::<Digests, D>::new(keys))),
        "half-digest" => Some(Box::new(Mixed::<Digests, D>::new(keys))),
        "grow-digest" => Some(Box::new(Grow::<Digests, D>::new())),
        _ => start::<Words, M>(stage, keys),
    }
}

/// Inserts entries `first`, `first + step`, … below `end`.
pub(crate) fn fill<T: Kind, M: Map<T>>(map: &M, first: u64, end: u64, step: usize) {
    let mut access = map.access();
    for index in (first..end).step_by(step) {
        access.insert(T::key(index), T::value(index, 0));
        if index % BATCH == 0 {
            access.quiet();
        }
    }
}

/// How many of the entries below `keys` are present, and how many of those hold a foreign value.
pub(super) fn census<T: Kind, M: Map<T>>(map: &M, keys: u64) -> (u64, u64) {
    let counts = crew(2, |thread, _| {
        let mut access = map.access();
        let (mut present, mut foreign) = (0, 0);
        for index in (thread as u64..keys).step_by(2) {
            let found = T::ask(index, |key| access.get(key, |value| T::matches(index, value)));
            present += u64::from(found.is_some());
            foreign += u64::from(found == Some(false));
        }
        (present, foreign)
    });
    counts.into_iter().fold((0, 0), |sum, part| (sum.0 + part.0, sum.1 + part.1))
}

/// Grows a map from empty, steps on the scale, removes all, steps on it again.
fn weigh<T: Kind, M: Map<T>>(keys: u64, scale: &mut dyn FnMut()) {
    let map = M::with_capacity(0);
    fill::<T, M>(&map, 0, keys, 1);
    scale();
    let mut access = map.access();
    for index in 0..keys {
        T::ask(index, |key| access.remove(key));
        if index % BATCH == 0 {
            access.quiet();
        }
    }
    drop(access);
    scale();
}
