//! Our map of words.

use crate::race::crew::{crew, for_a_while, joint_rate, wrong};
use crate::race::family::{Bench, Heat, Sample, Wrong};
use crate::race::jobs::general::fill;
use crate::race::jobs::life::insert_batches;
use crate::race::keys::{Drawn, GROUP, Law};
use crate::race::stint::Stint;
use quintet::word_map::{Handle, Pin};
use quintet::{Pages, WordMap};
use quintet_rivals::general::{Access, BATCH, Map};
use quintet_rivals::{Kind, Label, Words};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The map as it comes.
pub(crate) struct Usual(WordMap);
/// The map in small pages, for those who count the worst case.
pub(crate) struct Small(WordMap);

/// The map by a guard that is kept for a batch, as
/// [`PapayaBatch`](quintet_rivals::general::PapayaBatch) keeps its own.
pub(crate) struct Batch(WordMap);

/// One thread's handle.
pub(crate) struct ByHandle<'m>(Handle<'m, u64, u64>);

impl Map<Words> for Usual {
    const LABEL: Label = Label::new("quintet", VERSION);
    type Access<'a> = ByHandle<'a>;

    fn with_capacity(capacity: usize) -> Self {
        Self(WordMap::with_capacity(capacity))
    }
    fn access(&self) -> ByHandle<'_> {
        ByHandle(self.0.handle())
    }
}

impl Map<Words> for Small {
    const LABEL: Label = Label::new("quintet (small pages)", VERSION);
    type Access<'a> = ByHandle<'a>;

    fn with_capacity(capacity: usize) -> Self {
        Self(WordMap::builder().capacity(capacity).pages(Pages::Small).build())
    }
    fn access(&self) -> ByHandle<'_> {
        ByHandle(self.0.handle())
    }
}

/// A guard that lives for a batch. It is absent only inside [`Access::quiet`]: another that was
/// made before it has ended would nest in it.
pub(crate) struct ByPin<'m> {
    map: &'m WordMap,
    pin: Option<Pin<'m, u64, u64>>,
}

impl Map<Words> for Batch {
    const LABEL: Label = Label::new("quintet (batch)", VERSION);
    type Access<'a> = ByPin<'a>;

    fn with_capacity(capacity: usize) -> Self {
        Self(WordMap::with_capacity(capacity))
    }
    fn access(&self) -> ByPin<'_> {
        ByPin { map: &self.0, pin: Some(self.0.pin()) }
    }
}

impl<'m> ByPin<'m> {
    #[inline(always)]
    fn pin(&self) -> &Pin<'m, u64, u64> {
        self.pin.as_ref().expect("pinned between quiet points")
    }
}

impl Access<Words> for ByPin<'_> {
    #[inline(always)]
    fn get<R>(&mut self, query: &u64, f: impl FnOnce(&u64) -> R) -> Option<R> {
        self.pin().get(*query).map(|value| f(&value))
    }
    #[inline(always)]
    fn insert(&mut self, key: u64, value: u64) -> bool {
        self.pin().insert(key, value).is_none()
    }
    #[inline(always)]
    fn update(&mut self, query: &u64, value: u64) -> bool {
        self.pin().insert(*query, value).is_some()
    }
    #[inline(always)]
    fn remove(&mut self, query: &u64) -> bool {
        self.pin().remove(*query).is_some()
    }
    #[inline(always)]
    fn quiet(&mut self) {
        self.pin = None;
        self.pin = Some(self.map.pin());
    }
}

impl Access<Words> for ByHandle<'_> {
    #[inline(always)]
    fn get<R>(&mut self, query: &u64, f: impl FnOnce(&u64) -> R) -> Option<R> {
        self.0.get(*query).map(|value| f(&value))
    }
    #[inline(always)]
    fn insert(&mut self, key: u64, value: u64) -> bool {
        self.0.insert(key, value).is_none()
    }
    #[inline(always)]
    fn update(&mut self, query: &u64, value: u64) -> bool {
        self.0.insert(*query, value).is_some()
    }
    #[inline(always)]
    fn remove(&mut self, query: &u64) -> bool {
        self.0.remove(*query).is_some()
    }
}

/// `get-many`: what `hit` does, by groups of keys.
pub(crate) struct Many {
    map: Usual,
    keys: u64,
}

impl Many {
    /// A map made for `keys` entries, and filled.
    pub(crate) fn new(keys: u64) -> Self {
        let map = Usual::with_capacity(keys as usize);
        fill::<Words, Usual>(&map, 0, keys, 1);
        Self { map, keys }
    }
}

impl Bench for Many {
    fn round(&mut self, heat: &Heat, stint: Stint) -> Result<Sample, Wrong> {
        let laps = crew(heat.threads, |thread, gate| {
            let handle = self.map.0.handle();
            let mut drawn = Drawn::<Words>::new(Law::Uniform, self.keys, heat.round, thread);
            let mut values = [None; GROUP];
            for_a_while(stint, gate, || {
                let mut wrong = 0;
                for _ in 0..BATCH / GROUP as u64 {
                    let keys = drawn.group();
                    handle.get_many(keys, &mut values);
                    for (key, value) in keys.iter().zip(&values) {
                        let right = value.is_some_and(|value| Words::is_of(key, &value));
                        wrong += u64::from(!right);
                    }
                }
                (BATCH, wrong)
            })
        });
        Wrong::unless_zero(wrong(&laps), heat.workload.name)?;
        Ok(joint_rate(&laps))
    }
}

/// `insert-many`: what `insert` does, by groups of entries.
pub(crate) struct ManyNew;

impl Bench for ManyNew {
    fn round(&mut self, heat: &Heat, stint: Stint) -> Result<Sample, Wrong> {
        insert_batches::<Words, Usual>(heat, stint, |access, batch| {
            access.0.insert_many(batch.drain(..))
        })
    }
}
