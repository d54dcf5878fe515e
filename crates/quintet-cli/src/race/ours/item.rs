//! Our set of items, and the records it is raced with.

use crate::race::crew::{crew, for_a_while, joint_rate, wrong};
use crate::race::family::{Bench, Heat, Sample, Workload, Wrong};
use crate::race::jobs::general::fill;
use crate::race::keys::{Drawn, GROUP, Law};
use crate::race::stint::Stint;
use quintet::ItemSet;
use quintet::item_set::{Handle, Item, Keyed};
use quintet_rivals::general::{Access, BATCH, Map};
use quintet_rivals::{Hasher, Kind, Label, Texts, Words};
use std::sync::Arc;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A record of one cache line that holds its own key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Record {
    key: u64,
    number: u64,
    rest: [u64; 6],
}

impl Keyed for Record {
    type Key = u64;
    #[inline(always)]
    fn key(&self) -> &u64 {
        &self.key
    }
}

/// Shared records under 64-bit keys: the rivals hold the key and an `Arc`, we hold the `Arc`.
#[derive(Debug)]
pub(crate) struct Records;

impl Kind for Records {
    type Key = u64;
    type Query = u64;
    type Value = Arc<Record>;
    type Keys = Vec<u64>;

    fn keys(indices: impl Iterator<Item = u64>) -> Vec<u64> {
        Words::keys(indices)
    }
    #[inline(always)]
    fn ask<R>(index: u64, f: impl FnOnce(&u64) -> R) -> R {
        Words::ask(index, f)
    }
    #[inline(always)]
    fn own(query: &u64) -> u64 {
        *query
    }
    #[inline(always)]
    fn value_of(query: &u64, version: u64) -> Arc<Record> {
        let number = Words::value_of(query, version);
        Arc::new(Record { key: *query, number, rest: [number; 6] })
    }
    #[inline(always)]
    fn is_of(query: &u64, value: &Arc<Record>) -> bool {
        Words::is_of(query, &value.number)
    }
}

/// A text and its value, in a box.
pub(crate) struct Text {
    key: String,
    value: [u8; 64],
}

impl Keyed for Text {
    type Key = str;
    #[inline(always)]
    fn key(&self) -> &str {
        &self.key
    }
}

/// A set of shared records; by guards, one for each operation, if `PIN`.
pub(crate) struct Shared<const PIN: bool>(ItemSet<Arc<Record>, Hasher>);
/// A set of boxed texts.
pub(crate) struct Boxed<const PIN: bool>(ItemSet<Box<Text>, Hasher>);

/// One thread's access.
pub(crate) struct ToShared<'m, const PIN: bool>(Handle<'m, Arc<Record>, Hasher>);
/// One thread's access.
pub(crate) struct ToBoxed<'m, const PIN: bool>(Handle<'m, Box<Text>, Hasher>);

const fn label(pin: bool) -> Label {
    Label::new(if pin { "quintet (pin)" } else { "quintet" }, VERSION)
}

impl<const PIN: bool> Map<Records> for Shared<PIN> {
    const LABEL: Label = label(PIN);
    type Access<'a> = ToShared<'a, PIN>;

    fn with_capacity(capacity: usize) -> Self {
        let builder = ItemSet::<Arc<Record>>::builder().hasher(Hasher::default());
        Self(builder.capacity(capacity).build())
    }
    fn access(&self) -> ToShared<'_, PIN> {
        ToShared(self.0.handle())
    }
}

impl<const PIN: bool> Access<Records> for ToShared<'_, PIN> {
    #[inline(always)]
    fn get<R>(&mut self, query: &u64, f: impl FnOnce(&Arc<Record>) -> R) -> Option<R> {
        if PIN {
            self.0.set().pin().get_arc(query).map(|item| f(&item))
        } else {
            self.0.get_arc(query).map(|item| f(&item))
        }
    }
    #[inline(always)]
    fn insert(&mut self, _key: u64, value: Arc<Record>) -> bool {
        if PIN { self.0.set().pin().put(value).is_none() } else { self.0.put(value).is_none() }
    }
    #[inline(always)]
    fn update(&mut self, query: &u64, value: Arc<Record>) -> bool {
        debug_assert!(value.matches(query));
        !self.insert(*query, value)
    }
    #[inline(always)]
    fn remove(&mut self, query: &u64) -> bool {
        if PIN {
            self.0.set().pin().remove(query).is_some()
        } else {
            self.0.remove(query).is_some()
        }
    }
    #[inline(always)]
    fn quiet(&mut self) {
        self.0.quiescent();
    }
}

impl<const PIN: bool> Map<Texts> for Boxed<PIN> {
    const LABEL: Label = label(PIN);
    type Access<'a> = ToBoxed<'a, PIN>;

    fn with_capacity(capacity: usize) -> Self {
        let builder = ItemSet::<Box<Text>>::builder().hasher(Hasher::default());
        Self(builder.capacity(capacity).build())
    }
    fn access(&self) -> ToBoxed<'_, PIN> {
        ToBoxed(self.0.handle())
    }
}

impl<const PIN: bool> Access<Texts> for ToBoxed<'_, PIN> {
    #[inline(always)]
    fn get<R>(&mut self, query: &str, f: impl FnOnce(&[u8; 64]) -> R) -> Option<R> {
        if PIN {
            self.0.set().pin().get(query).map(|text| f(&text.value))
        } else {
            self.0.get(query).map(|text| f(&text.value))
        }
    }
    #[inline(always)]
    fn insert(&mut self, key: String, value: [u8; 64]) -> bool {
        let text = Text { key, value };
        if PIN { self.0.set().pin().put(text).is_none() } else { self.0.put(text).is_none() }
    }
    #[inline(always)]
    fn update(&mut self, query: &str, value: [u8; 64]) -> bool {
        !self.insert(query.to_owned(), value)
    }
    #[inline(always)]
    fn remove(&mut self, query: &str) -> bool {
        if PIN {
            self.0.set().pin().remove(query).is_some()
        } else {
            self.0.remove(query).is_some()
        }
    }
    #[inline(always)]
    fn quiet(&mut self) {
        self.0.quiescent();
    }
}

/// The row of [`Many`].
pub(crate) const BATCH_LABEL: Label = Label::new("quintet (batch)", VERSION);

/// `hit` by groups of keys.
pub(crate) struct Many {
    /// Made in the warm-up: its stage has other workloads, too.
    set: Option<Shared<false>>,
    keys: u64,
}

impl Many {
    /// A set that will be made for `keys` records, and filled.
    pub(crate) fn new(keys: u64) -> Self {
        Self { set: None, keys }
    }

    fn filled(keys: u64) -> Shared<false> {
        let set = Shared::with_capacity(keys as usize);
        fill::<Records, Shared<false>>(&set, 0, keys, 1);
        set
    }
}

impl Bench for Many {
    fn round(&mut self, heat: &Heat, stint: Stint) -> Result<Sample, Wrong> {
        let set = &self.set.get_or_insert_with(|| Self::filled(self.keys)).0;
        let laps = crew(heat.threads, |thread, gate| {
            let mut handle = set.handle();
            let mut drawn = Drawn::<Words>::new(Law::Uniform, self.keys, heat.round, thread);
            for_a_while(stint, gate, || {
                let mut wrong = 0;
                for _ in 0..BATCH / GROUP as u64 {
                    let keys = drawn.group();
                    let mut records = [None; GROUP];
                    handle.get_many(keys, &mut records);
                    for (key, record) in keys.iter().zip(records) {
                        let right = |record: &Record| Words::is_of(key, &record.number);
                        wrong += u64::from(!record.is_some_and(right));
                    }
                }
                handle.quiescent();
                (BATCH, wrong)
            })
        });
        Wrong::unless_zero(wrong(&laps), heat.workload.name)?;
        Ok(joint_rate(&laps))
    }

    fn joins(&self, workload: &Workload) -> bool {
        workload.name == "hit"
    }
}
