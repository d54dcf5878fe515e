//! Writing: one frame of the map below per operation, with an entry instead of a word.
//!
//! ```text
//!  find free blocks (hints), evict if there are too few      no intent
//!  open · name head · take head · name, take, chain the others · age · bytes      OPEN
//!  lock · judge · plan                                       OPEN, PLANNED
//!  hole · SEALED · cells · LIVE · free the old entry · count  SEALED
//!  DONE · unlock · what left the window (without a sink) · IDLE
//! ```
//!
//! **S1.** Bytes, lengths, expiry and age are complete before the key is linked.
//! **S2.** A value is replaced by linking another entry. Nothing of a linked entry changes but its
//! tick and its expiry, a word each, and of a flight its token (`flight` H3).
//! **S3.** Whatever an operation asks of the present entry is judged under the bucket's control
//! word, where it can be neither replaced nor freed.

use super::block::{Block, CHAIN_HEADER, HEAD_HEADER, Meta};
use super::copy::copy_in;
use super::error::CacheError;
use super::handle::Handle;
use super::spaces::Space;
use super::stats::Count;
use super::view::View;
use crate::sync::AtomicU64;
use crate::tier_cache::MapError;
use crate::tier_cache::plan::{Task, Verdict, Want};
use crate::tier_cache::step::{Point, store, store_payload};
use crate::tier_cache::wait::Wait;
use crate::tier_cache::word::{InputHash, Link, Probe, RecordState};

/// What a placed entry met.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placed {
    pub(super) link: Link,
    pub(super) replaced: bool,
    /// Entries that left their full window within it.
    pub(super) forced: u32,
}

/// An entry to be placed.
#[derive(Clone, Copy)]
pub(super) struct Entry<'e> {
    pub(super) input: InputHash,
    pub(super) space: Space,
    pub(super) key: &'e [u8],
    pub(super) value: &'e [u8],
    pub(super) expiry: u64,
}

/// Rounds of finding blocks, or making way in a window, that others then took.
const MAX_ROUNDS: usize = 1000;

impl<'c> Handle<'c> {
    /// Links an entry if the key is as wanted. `Exists` and `NotFound` are answers, not failures.
    pub(super) fn place(
        &mut self,
        entry: Entry<'_>,
        want: Want,
    ) -> Result<Result<Placed, MapError>, CacheError> {
        if !Space::is_flight(entry.space.number()) {
            self.check_lengths(entry.key, entry.value)?;
        }
        self.inner.begin()?;
        let need = self.view.sizes.blocks_for(entry.key.len(), entry.value.len());
        self.expect(entry.input);
        let spare = self.spares() || self.stores || self.cache.sink.is_some();
        let mut wait = Wait::new(self.inner.timeout);
        for _ in 0..MAX_ROUNDS {
            self.gather_blocks(need)?;
            let tick = self.view.tick_of_access();
            self.inner.set_tick(tick);
            self.inner.open()?;
            let new = match self.prepare_entry(entry, tick) {
                Ok(Some(new)) => new,
                Ok(None) => {
                    self.inner.abandon();
                    continue;
                }
                Err(error) => {
                    self.inner.abandon();
                    return Err(error);
                }
            };
            // Taken: whatever becomes of the operation, they are the entry's or free again and
            // offered.
            self.blocks.clear();
            let task = Task::Place { new, tie: self.inner.tie(), want, spare };
            match (self.link(entry, task, new), self.inner.frame.plan.out) {
                (Err(CacheError::Full), Some(leaver)) if !self.spares() => {
                    if !self.make_way(leaver)? {
                        wait.pause()?;
                    }
                }
                (Ok(Ok(placed)), out) => return Ok(Ok(self.is_placed(entry, need, placed, out))),
                (done, _) => return done,
            }
        }
        Err(CacheError::Busy)
    }

    /// Counts what was placed, and charges it.
    fn is_placed(
        &mut self,
        entry: Entry<'_>,
        blocks: usize,
        placed: Placed,
        out: Option<Link>,
    ) -> Placed {
        if blocks > 1 {
            self.view.count(self.inner.number, Count::Further, blocks as u64 - 1);
        }
        if self.view.sizes.quotas {
            self.charge(placed.link, entry.space);
        }
        Placed { forced: out.is_some() as u32, ..placed }
    }

    /// Asks for what the operation will need: the bucket, the block it is going to fill, and then,
    /// as soon as the cells say where it is, the entry it may replace. One miss is waited for
    /// instead of six.
    fn expect(&mut self, input: InputHash) {
        let view = self.view;
        view.memory.expect_bucket(input.bucket());
        let block = self.inner.kept.last().copied().unwrap_or(self.cursor);
        view.expect_block(block);
        if self.stores {
            view.expect_stamp(input.bucket(), block);
        }
        if let Some(link) = view.memory.base_link(input) {
            view.expect_block(link.record);
        }
    }

    fn link(
        &mut self,
        entry: Entry<'_>,
        task: Task,
        new: Link,
    ) -> Result<Result<Placed, MapError>, CacheError> {
        let view = self.view;
        let judge = |link: Link| view.judge(link, entry.space, entry.key);
        match self.run(entry.input, task, &judge) {
            Ok(found) => {
                let replaced = found.is_some_and(|(_, verdict)| verdict == Verdict::Present);
                if found.is_none() {
                    let before = view.count(self.inner.number, Count::Insertions, 1);
                    view.count_insertion(before);
                }
                Ok(Ok(Placed { link: new, replaced, forced: 0 }))
            }
            Err(answer @ (MapError::Exists | MapError::NotFound)) => Ok(Err(answer)),
            Err(error) => Err(error.into()),
        }
    }

    /// Steps 6 to 19 of the frame, for an operation whose record is prepared or that needs none.
    pub(super) fn run(
        &mut self,
        input: InputHash,
        task: Task,
        judge: &dyn Fn(Link) -> Verdict,
    ) -> Result<Option<(Link, Verdict)>, MapError> {
        if let Err(error) = self.inner.lock_and_plan(Probe::from(input), task, judge) {
            self.inner.abandon();
            return Err(error);
        }
        let found = self.inner.frame.plan.found;
        if self.stores {
            self.stamp(input, &task);
        }
        self.inner.keeps = !self.no_evict && self.inner.kept.len() < self.most_kept;
        if let (false, Task::Place { new, .. }, Some((old, Verdict::Present))) =
            (self.view.stamps_uses(), task, found)
        {
            self.view.inherit(new, old);
        }
        let shifted = self.view.weigh_shifts(&self.inner.frame.plan);
        self.inner.carry_out()?;
        self.note_shifts(shifted);
        if self.inner.frame.plan.out.is_some() {
            self.view.count(self.inner.number, Count::Forced, 1);
        }
        self.inner.complete();
        Ok(found)
    }

    pub(super) fn check_lengths(&self, key: &[u8], value: &[u8]) -> Result<(), CacheError> {
        let sizes = self.view.sizes;
        if value.len() > sizes.max_value as usize {
            return Err(CacheError::ValueTooLarge { max: sizes.max_value as usize });
        }
        let most = sizes.most_blocks();
        let fits = sizes.blocks_for(key.len(), value.len()) <= most.max(sizes.blocks as usize / 8);
        if key.len() > super::MAX_KEY || !fits {
            return Err(CacheError::KeyTooLarge { max: super::MAX_KEY });
        }
        Ok(())
    }

    /// Takes the gathered blocks and writes the entry into them (S1). `None` if others were faster.
    fn prepare_entry(&mut self, entry: Entry<'_>, tick: u32) -> Result<Option<Link>, CacheError> {
        let (view, seat) = (self.view, self.inner.number);
        let Some(&first) = self.blocks.first() else { return Ok(None) };
        let generation = view.generation_for(entry.space).ok_or(CacheError::NoNamespace)?;
        let word = view.memory.record(first)?.state();
        if word.state() != Some(RecordState::Free) {
            return Ok(None);
        }
        let head = Link { record: first, generation: word.generation() };
        view.memory.seat(seat)?.set_new(head);
        let Some(record) = view.take_head(seat, first, word) else { return Ok(None) };
        self.inner.frame.new = Some(head);
        if view.sizes.quotas {
            view.forget_payer(first);
        }
        if self.stores {
            view.clear_version(head);
        }
        let block = Block::of(record);
        let space = (generation as u64) << 32;
        store_payload(block.next_word(), space);
        let named = (block.next_word(), space);
        let mut source = Source { key: entry.key, value: entry.value };
        source.fill(&block.0[HEAD_HEADER..]);
        let mut fill = |further: Block<'_>| source.fill(&further.0[CHAIN_HEADER..]);
        if !view.take_all_further(seat, head, named, &self.blocks[1..], &mut fill) {
            return Ok(None);
        }
        if !source.is_empty() {
            return Err(MapError::Corrupt("too few blocks").into());
        }
        store_payload(record.input(), entry.input.word());
        let meta = Meta::new(entry.key.len(), entry.space.number(), entry.value.len());
        store_payload(block.meta_word(), meta.0);
        store_payload(block.expiry_word(), entry.expiry);
        store_payload(record.tick(), tick as u64);
        view.set_sum(head, block);
        let of_value = !Space::is_flight(entry.space.number());
        let order = view.order_of_new(of_value.then_some(entry.input), tick);
        view.set_age(first, order, entry.expiry, 0);
        if view.sizes.quotas {
            let of = (entry.space, generation);
            view.set_payer(first, of, self.owner, self.blocks.len());
        }
        Ok(Some(head))
    }

    /// Unlinks a key. False if it is absent.
    pub(super) fn take_key(
        &mut self,
        input: InputHash,
        space: Space,
        key: &[u8],
    ) -> Result<bool, CacheError> {
        if self.stores {
            return self.remove_through(key);
        }
        self.inner.begin()?;
        let view = self.view;
        self.inner.open()?;
        let judge = |link: Link| view.judge(link, space, key);
        match self.run(input, Task::Take { want: Want::Any }, &judge) {
            Ok(Some((_, Verdict::Present))) => {
                view.count(self.inner.number, Count::Removes, 1);
                Ok(true)
            }
            Ok(_) => {
                view.count(self.inner.number, Count::Expired, 1);
                Ok(false)
            }
            Err(MapError::NotFound) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Unlinks this very entry of a key. False if it is not there any more.
    pub(super) fn take_exactly(
        &mut self,
        space: Space,
        key: &[u8],
        link: Link,
    ) -> Result<bool, CacheError> {
        if self.stores && !Space::is_flight(space.number()) {
            return self.bury_exactly(key, link);
        }
        self.inner.begin()?;
        let view = self.view;
        self.inner.open()?;
        let judge = |link: Link| view.judge(link, space, key);
        let task = Task::Take { want: Want::Exactly(link) };
        match self.run(view.input(space, key), task, &judge) {
            Ok(_) => Ok(true),
            Err(MapError::NotFound | MapError::Exists) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Changes the expiry of a key that is present, under the control word of its bucket (S2).
    pub(super) fn set_expiry(
        &mut self,
        input: InputHash,
        space: Space,
        key: &[u8],
        expiry: u64,
    ) -> Result<bool, CacheError> {
        if self.stores {
            return Ok(self.touch_through(key, expiry)?.is_some());
        }
        self.inner.begin()?;
        let view = self.view;
        self.inner.open()?;
        let judge = |link: Link| view.judge(link, space, key);
        if let Err(error) = self.inner.lock_and_plan(Probe::from(input), Task::Hold, &judge) {
            self.inner.abandon();
            return if error == MapError::NotFound { Ok(false) } else { Err(error.into()) };
        }
        let (found, tier) = (self.inner.frame.plan.found, self.inner.frame.plan.tier);
        if let Some((link, _)) = found {
            if let Ok(record) = view.memory.record(link.record) {
                store(Point::Expiry, Block::of(record).expiry_word(), expiry);
                view.note_use_of(link);
                view.set_age(link.record, view.order_of(link), expiry, tier);
            }
        }
        self.inner.carry_out()?;
        self.inner.complete();
        Ok(true)
    }
}

/// What is left to be written of an entry: the rest of its key, then that of its value, each
/// beginning with a word of its own.
struct Source<'e> {
    key: &'e [u8],
    value: &'e [u8],
}

impl Source<'_> {
    fn is_empty(&self) -> bool {
        self.key.is_empty() && self.value.is_empty()
    }

    /// Fills as many of the words as there are bytes for.
    fn fill(&mut self, words: &[AtomicU64]) {
        let mut words = words;
        for part in [&mut self.key, &mut self.value] {
            let (now, later) = part.split_at(part.len().min(words.len() * 8));
            if !now.is_empty() {
                let (places, free) = words.split_at(now.len().div_ceil(8));
                copy_in(now, places);
                (words, *part) = (free, later);
            }
        }
    }
}

impl View<'_> {
    /// The tick of a hit is stored by the reader; this is for those who only look.
    pub(super) fn entry_input(&self, link: Link) -> Option<InputHash> {
        let record = super::read::current(self, link)?;
        // ORDERING: Relaxed: judged again under the control word.
        let word = record.input().load(crate::sync::Ordering::Relaxed);
        let input = InputHash::from_word(word).ok()?;
        (input.bucket() < self.sizes.buckets).then_some(input)
    }
}
