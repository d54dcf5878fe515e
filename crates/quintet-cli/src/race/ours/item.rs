//! Our set of items, and the records it is raced with.

use crate::race::crew::{crew, for_a_while, joint_rate, wrong};
use crate::race::family::{Bench, Heat, Sample, Workload, Wrong};
use crate::race::jobs::general::fill;
use crate::race::keys::{Drawn, GROUP, Law};
use crate::race::stint::Stint;
use quintet::ItemSet;
use quintet::item_set::{Handle, Item, Keyed, QuietHandle, Ref};
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

/// A row of the race by one way into the set: what a thread has, how it works by that, and how it
/// shows the set's own `Arc` without counting it up.
macro_rules! row {
    (
        $shared:ident, $to_shared:ident, $boxed:ident, $to_boxed:ident, $label:literal, $access:ident = $make:ident,
        |$own:ident| $at:expr, $get:ident |$found:ident| $arc:expr, quiet: $quiet:expr
    ) => {
        /// A set of shared records.
        pub(crate) struct $shared(ItemSet<Arc<Record>, Hasher>);
        /// A set of boxed texts.
        pub(crate) struct $boxed(ItemSet<Box<Text>, Hasher>);
        /// One thread's access.
        pub(crate) struct $to_shared<'m>($access<'m, Arc<Record>, Hasher>);
        /// One thread's access.
        pub(crate) struct $to_boxed<'m>($access<'m, Box<Text>, Hasher>);

        impl Map<Records> for $shared {
            const LABEL: Label = Label::new($label, VERSION);
            type Access<'a> = $to_shared<'a>;

            fn with_capacity(capacity: usize) -> Self {
                Self(ItemSet::with_capacity_and_hasher(capacity, Hasher::default()))
            }
            fn access(&self) -> $to_shared<'_> {
                $to_shared(self.0.$make())
            }
        }

        impl Access<Records> for $to_shared<'_> {
            #[inline(always)]
            fn get<R>(&mut self, query: &u64, f: impl FnOnce(&Arc<Record>) -> R) -> Option<R> {
                let $own = &self.0;
                $at.$get(query).map(|$found| f(&$arc))
            }
            #[inline(always)]
            fn insert(&mut self, _key: u64, value: Arc<Record>) -> bool {
                let $own = &self.0;
                $at.insert(value).is_none()
            }
            #[inline(always)]
            fn update(&mut self, query: &u64, value: Arc<Record>) -> bool {
                debug_assert!(value.matches(query));
                !self.insert(*query, value)
            }
            #[inline(always)]
            fn remove(&mut self, query: &u64) -> bool {
                let $own = &self.0;
                $at.remove(query).is_some()
            }
            #[inline(always)]
            fn quiet(&mut self) {
                let quiet: fn(&mut _) = $quiet;
                quiet(&mut self.0);
            }
        }

        impl Map<Texts> for $boxed {
            const LABEL: Label = Label::new($label, VERSION);
            type Access<'a> = $to_boxed<'a>;

            fn with_capacity(capacity: usize) -> Self {
                Self(ItemSet::with_capacity_and_hasher(capacity, Hasher::default()))
            }
            fn access(&self) -> $to_boxed<'_> {
                $to_boxed(self.0.$make())
            }
        }

        impl Access<Texts> for $to_boxed<'_> {
            #[inline(always)]
            fn get<R>(&mut self, query: &str, f: impl FnOnce(&[u8; 64]) -> R) -> Option<R> {
                let $own = &self.0;
                $at.get(query).map(|text| f(&text.value))
            }
            #[inline(always)]
            fn insert(&mut self, key: String, value: [u8; 64]) -> bool {
                let $own = &self.0;
                $at.insert(Text { key, value }).is_none()
            }
            #[inline(always)]
            fn update(&mut self, query: &str, value: [u8; 64]) -> bool {
                !self.insert(query.to_owned(), value)
            }
            #[inline(always)]
            fn remove(&mut self, query: &str) -> bool {
                let $own = &self.0;
                $at.remove(query).is_some()
            }
            #[inline(always)]
            fn quiet(&mut self) {
                let quiet: fn(&mut _) = $quiet;
                quiet(&mut self.0);
            }
        }
    };
}

row!(Shared, ToShared, Boxed, ToBoxed, "quintet", QuietHandle = quiet_handle,
    |own| own, get_arc |found| found, quiet: QuietHandle::quiescent);
row!(SharedPin, ToSharedPin, BoxedPin, ToBoxedPin, "quintet (pin)", QuietHandle = quiet_handle,
    |own| own.set().pin(), get_arc |found| found, quiet: QuietHandle::quiescent);
row!(SharedHandle, ToSharedHandle, BoxedHandle, ToBoxedHandle, "quintet (handle)", Handle = handle,
    |own| own, get |found| Ref::as_arc(&found), quiet: |_| ());

/// The row of [`Many`].
pub(crate) const BATCH_LABEL: Label = Label::new("quintet (batch)", VERSION);

/// `hit` by groups of keys.
pub(crate) struct Many {
    /// Made in the warm-up: its stage has other workloads, too.
    set: Option<Shared>,
    keys: u64,
}

impl Many {
    /// A set that will be made for `keys` records, and filled.
    pub(crate) fn new(keys: u64) -> Self {
        Self { set: None, keys }
    }

    fn filled(keys: u64) -> Shared {
        let set = Shared::with_capacity(keys as usize);
        fill::<Records, Shared>(&set, 0, keys, 1);
        set
    }
}

impl Bench for Many {
    fn round(&mut self, heat: &Heat, stint: Stint) -> Result<Sample, Wrong> {
        let set = &self.set.get_or_insert_with(|| Self::filled(self.keys)).0;
        let laps = crew(heat.threads, |thread, gate| {
            let mut handle = set.quiet_handle();
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
