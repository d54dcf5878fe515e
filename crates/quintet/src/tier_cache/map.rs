//! The map below the cache: 64-bit values under hashes of 32 bits, in memory that processes share.
//!
//! A key is an [`InputHash`]: a hash and the bucket that follows from it. Adding it gives a
//! [`Token`], the same with the slice it lies in, by which later operations find it without looking
//! at both. An add has three stages: [`Handle::prepare`] chooses between the slices and asks for
//! the memory, [`Handle::commit`] writes the entry, and [`Committed::complete`] releases its bucket
//! and hands out what had to leave. [`Handle::add`] does all of them, [`Handle::add_batch`] for
//! many; with [`Stages`] the first two are done in batches and the third by threads that serve.
//!
//! How it works, who may store what, and what happens to the work of a process that is killed: see
//! [the page above](super). What became of each statement of the design it grew from: see
//! [`seed`](super::seed).
//!
//! # Example
//!
//! ```
//! use quintet::tier_cache::map::{Geometry, InputHash, SharedMap};
//!
//! let shared = SharedMap::create_sealed(Geometry::for_records(1000, 8))?;
//! let map = shared.map();
//! let mut handle = map.handle()?;
//! let input = InputHash::new(0x5eed, 7)?;
//! // All stages at once, or one by one.
//! let token = handle.add(input, 1)?;
//! let prepared = handle.prepare(InputHash::new(0xfeed, 7)?)?;
//! let committed = handle.commit(prepared, 2)?;
//! assert_eq!(map.reader().get(committed.token())?, Some(2));
//! committed.complete();
//! assert_eq!(handle.get(token)?, Some(1));
//! handle.update(token, 3)?;
//! handle.remove(token)?;
//! assert_eq!(handle.get(input)?, None);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use super::get::{Found, look_up};
use super::memory::Memory;
use super::operate::Frame;
use super::plan::{Task, Want, Way};
use super::planner::Seen;
use super::recover;
use super::step::{Point, exchange, store};
use super::wait::Wait;
use super::word::{Link, Owner};
use crate::sync::prefetch::prefetch_read;
use std::time::Duration;

pub use super::check::Report;
pub use super::error::{MapError, OpenError};
pub use super::memory::Geometry;
pub use super::shared::SharedMap;
pub use super::stages::Stages;
pub use super::word::{InputHash, Probe, Token};
pub use crate::region::shm::{Access, Place, SegmentError};

/// Who is alive among the processes that share a map.
#[doc(hidden)]
pub trait Peers: Sync {
    /// The process of the caller. `None` if it may only read.
    fn me(&self) -> Option<Owner>;
    /// True only on proof of death.
    fn is_dead(&self, owner: Owner) -> bool;
    /// Counts the forks this process descends from: a handle of another count is the parent's.
    fn forks(&self) -> usize {
        0
    }
}

/// An entry that had to leave a full window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Left {
    /// Hash and bucket.
    pub input: InputHash,
    /// Tells a repetition after a crash from another departure of the same key.
    pub generation: u32,
    /// Its last value.
    pub value: u64,
}

/// Receives entries that leave. Called without any control word held by the operation that caused
/// it; it must not use the map, since a waiter that recovers a dead peer may hold words.
pub type Sink<'a> = &'a (dyn Fn(Left) + Sync);

/// What lies above the map and stores more in a record than the map does.
pub(crate) trait Upper: Sync {
    /// Frees a record of this generation, and what hangs on it, unless it is free already. Others
    /// are told where it is, unless the caller `keeps` it for its own next operation.
    fn free(&self, point: Point, link: Link, keeps: bool) -> Result<(), MapError>;
    /// A record is about to leave a full window: from now on nobody else delivers it. False if
    /// somebody living is delivering it.
    fn claim(&self, seat: u32, link: Link) -> bool;
    /// The record does not leave, or has left.
    fn unclaim(&self, seat: u32, link: Link);
    /// A dead peer's seat is recovered. `busy`: it was in mid-operation, which is completed or
    /// undone.
    fn recovered(&self, seat: u32, busy: bool);
}

/// How long an operation waits for a living peer by default.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(1);

/// A hopscotch map over memory that processes may share.
#[derive(Clone, Copy)]
pub struct Map<'a> {
    pub(crate) memory: Memory<'a>,
    pub(crate) peers: &'a dyn Peers,
    pub(crate) sink: Sink<'a>,
    /// Hits verify the sum of their record.
    pub(crate) verifies: bool,
    pub(crate) upper: Option<&'a dyn Upper>,
}

impl std::fmt::Debug for Map<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Map").field("memory", &self.memory).finish_non_exhaustive()
    }
}

impl<'a> Map<'a> {
    /// A map over `memory`.
    #[doc(hidden)]
    pub fn new(memory: Memory<'a>, peers: &'a dyn Peers, sink: Sink<'a>) -> Self {
        Self { memory, peers, sink, upper: None, verifies: false }
    }

    /// The map below a cache.
    pub(crate) fn below(memory: Memory<'a>, peers: &'a dyn Peers, upper: &'a dyn Upper) -> Self {
        Self { memory, peers, sink: &|_| {}, upper: Some(upper), verifies: false }
    }

    /// The same map for whoever does not trust its memory: a hit verifies the sum of its record,
    /// and one that is damaged is [`MapError::Corrupt`].
    pub fn verifying(self) -> Self {
        Self { verifies: true, ..self }
    }

    /// The sizes.
    pub fn geometry(&self) -> Geometry {
        self.memory.geometry
    }

    /// The memory below.
    #[doc(hidden)]
    pub fn memory(&self) -> Memory<'a> {
        self.memory
    }

    /// Takes a seat. Dead peers' seats are recovered first if no other is free.
    pub fn handle(&self) -> Result<Handle<'a>, MapError> {
        let me = self.peers.me().ok_or(MapError::NoSeat)?;
        for round in 0..2 {
            for number in 0..self.memory.geometry.seats {
                let seat = self.memory.seat(number)?;
                // A seat that is still being recovered is not free: its word says so until the last
                // but one store.
                if seat.owner() == Owner::NOBODY
                    && exchange(Point::Join, seat.owner_word(), Owner::NOBODY.0, me.0)
                {
                    return Ok(Handle::new(*self, number, me));
                }
            }
            if round == 0 {
                self.recover_dead(Wait::new(DEFAULT_TIMEOUT))?;
            }
        }
        Err(MapError::NoSeat)
    }

    /// A reader: takes no seat, writes nothing, cannot recover.
    pub fn reader(&self) -> Reader<'a> {
        Reader { map: *self, timeout: DEFAULT_TIMEOUT }
    }

    /// Completes or undoes what dead peers left.
    pub fn recover(&self) -> Result<(), MapError> {
        self.recover_dead(Wait::new(DEFAULT_TIMEOUT))
    }

    pub(crate) fn recover_dead(&self, mut wait: Wait) -> Result<(), MapError> {
        for number in 0..self.memory.geometry.seats {
            let owner = self.memory.seat(number)?.owner();
            if owner != Owner::NOBODY && self.peers.is_dead(owner) {
                recover::seat(self, number, owner, &mut wait)?;
            }
        }
        Ok(())
    }

    /// Verifies the nine invariants. Nobody may write meanwhile; recover dead peers before.
    pub fn check(&self) -> Result<Report, String> {
        super::check::check(self)
    }

    pub(crate) fn verify(&self, input: InputHash) -> Result<(), MapError> {
        let (bucket, buckets) = (input.bucket(), self.memory.geometry.buckets);
        if bucket < buckets { Ok(()) } else { Err(MapError::InvalidBucket { bucket, buckets }) }
    }
}

/// Read access without a seat.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    map: Map<'a>,
    timeout: Duration,
}

impl Reader<'_> {
    /// Sets how long a miss waits for a writer of its bucket.
    pub fn set_timeout(&mut self, timeout: Duration) {
        self.timeout = timeout;
    }

    /// The value of a key, if present.
    #[inline(always)]
    pub fn get(&self, at: impl Into<Probe>) -> Result<Option<u64>, MapError> {
        Ok(look_up(&self.map, at.into(), &self.timeout, false)?.map(|found| found.value))
    }
}

/// What [`Handle::prepare`] found out. Holds nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prepared {
    input: InputHash,
    tie: u32,
}

impl Prepared {
    /// Asks for the bucket.
    pub(crate) fn new(map: &Map<'_>, input: InputHash, tie: u32) -> Result<Self, MapError> {
        map.verify(input)?;
        let entry = map.memory.at(0, input.bucket() as usize);
        prefetch_read(&raw const map.memory.cells()[entry]);
        Ok(Self { input, tie })
    }

    /// What is added.
    pub fn input(&self) -> InputHash {
        self.input
    }

    #[cfg(test)]
    pub(crate) fn with_tie(input: InputHash, tie: u32) -> Self {
        Self { input, tie }
    }
}

/// A thread's access to the map: its seat.
#[derive(Debug)]
pub struct Handle<'a> {
    pub(crate) map: Map<'a>,
    pub(crate) number: u32,
    pub(crate) me: Owner,
    pub(crate) timeout: Duration,
    pub(crate) tick: u32,
    /// State of the operation under way.
    pub(crate) frame: Frame,
    pub(crate) seen: Seen,
    pub(crate) cursor: u32,
    /// Keep freed records for the next operation, which are then found here.
    pub(crate) keeps: bool,
    pub(crate) kept: Vec<u32>,
    forks: usize,
    ties: u64,
}

impl<'a> Handle<'a> {
    fn new(map: Map<'a>, number: u32, me: Owner) -> Self {
        let forks = map.peers.forks();
        let seed = crate::hash::random_seed();
        let cursor = (number as u64 * map.memory.geometry.records as u64
            / map.memory.geometry.seats as u64) as u32;
        Self {
            map,
            number,
            me,
            timeout: DEFAULT_TIMEOUT,
            tick: 0,
            frame: Frame::default(),
            seen: Seen::new(),
            cursor,
            keeps: false,
            kept: Vec::new(),
            forks,
            ties: seed | 1,
        }
    }

    /// The map.
    pub fn map(&self) -> Map<'a> {
        self.map
    }

    /// The seat's number.
    pub fn seat(&self) -> u32 {
        self.number
    }

    /// Sets how long an operation waits for a living peer before it returns [`MapError::Busy`].
    pub fn set_timeout(&mut self, timeout: Duration) {
        self.timeout = timeout;
    }

    /// Sets the time that the next entries carry: the oldest leaves a full window.
    pub fn set_tick(&mut self, tick: u32) {
        self.tick = tick;
    }

    /// Sets the source of tie bits, for repeatable placement.
    pub fn set_ties(&mut self, seed: u64) {
        self.ties = seed | 1;
    }

    pub(crate) fn tie(&mut self) -> u32 {
        // xorshift64: a bit that need not be unpredictable, only balanced.
        self.ties ^= self.ties << 13;
        self.ties ^= self.ties >> 7;
        self.ties ^= self.ties << 17;
        (self.ties >> 40) as u32 & 1
    }

    /// A handle that came along in a fork is the parent's. One left in mid-operation is completed.
    pub(crate) fn begin(&mut self) -> Result<(), MapError> {
        if self.map.peers.forks() != self.forks {
            return Err(MapError::Forked);
        }
        self.settle()
    }

    /// Third stage of what is committed, unless that came along in a fork: then it is the parent's.
    pub(crate) fn finish(&mut self) {
        if self.begin_read().is_ok() {
            self.complete();
        }
    }

    /// A handle that came along in a fork is the parent's, for reading too: it counts and touches.
    #[inline(always)]
    pub(crate) fn begin_read(&self) -> Result<(), MapError> {
        if self.map.peers.forks() != self.forks { Err(MapError::Forked) } else { Ok(()) }
    }

    /// The value of a key, if present. A hit waits for nobody.
    #[inline(always)]
    pub fn get(&self, at: impl Into<Probe>) -> Result<Option<u64>, MapError> {
        Ok(look_up(&self.map, at.into(), &self.timeout, true)?.map(|found| found.value))
    }

    /// Token and value of a key, if present.
    pub fn find(&self, input: InputHash) -> Result<Option<(Token, u64)>, MapError> {
        let found = look_up(&self.map, input.into(), &self.timeout, true)?;
        Ok(found.map(|Found { slice, value, .. }| (input.augment(slice), value)))
    }

    /// First stage: draws the tie bit and asks the cache for the bucket. Holds nothing.
    pub fn prepare(&mut self, input: InputHash) -> Result<Prepared, MapError> {
        let tie = self.tie();
        Prepared::new(&self.map, input, tie)
    }

    /// Second stage: the entry is in the map and can be found; its bucket stays held until the
    /// third.
    pub fn commit(
        &mut self,
        prepared: Prepared,
        value: u64,
    ) -> Result<Committed<'_, 'a>, MapError> {
        self.begin()?;
        self.map.verify(prepared.input)?;
        let tie = prepared.tie;
        let slice = self.write(prepared.input.into(), Some(value), |new| Task::Add { new, tie })?;
        Ok(Committed { token: prepared.input.augment(slice), handle: self })
    }

    /// All three stages: adds a key that is absent.
    pub fn add(&mut self, input: InputHash, value: u64) -> Result<Token, MapError> {
        let prepared = self.prepare(input)?;
        Ok(self.commit(prepared, value)?.complete())
    }

    /// Prepares all, then commits and completes each in turn: the buckets are on their way while
    /// the first is added.
    pub fn add_batch(&mut self, entries: &[(InputHash, u64)]) -> Vec<Result<Token, MapError>> {
        let prepared: Vec<_> = entries.iter().map(|(input, _)| self.prepare(*input)).collect();
        let values = entries.iter().map(|(_, value)| *value);
        prepared
            .into_iter()
            .zip(values)
            .map(|(prepared, value)| Ok(self.commit(prepared?, value)?.complete()))
            .collect()
    }

    /// Replaces the value of a key that is present.
    pub fn update(&mut self, at: impl Into<Probe>, value: u64) -> Result<Token, MapError> {
        let probe = at.into();
        self.begin()?;
        self.map.verify(probe.input)?;
        let slice = self.write(probe, Some(value), |new| Task::Update { new })?;
        self.complete();
        Ok(probe.input.augment(slice))
    }

    /// Stores a value, whether the key is present or not: in the first tier, and nowhere else
    /// afterwards.
    pub fn set(&mut self, input: InputHash, value: u64) -> Result<Token, MapError> {
        self.begin()?;
        self.map.verify(input)?;
        let tie = self.tie();
        let task = |new| Task::Place { new, tie, want: Want::Any, spare: false };
        let slice = self.write(input.into(), Some(value), task)?;
        self.complete();
        Ok(input.augment(slice))
    }

    /// Moves a key that is present to the next older tier. It is found at every instant.
    /// [`MapError::NotFound`] if it lies in the last one.
    pub fn demote(&mut self, input: InputHash) -> Result<(), MapError> {
        self.shift(input, Way::Down)
    }

    /// Moves a key that is present in an older tier to the first. [`MapError::NotFound`] if it lies
    /// there already.
    pub fn promote(&mut self, input: InputHash) -> Result<(), MapError> {
        self.shift(input, Way::Up)
    }

    fn shift(&mut self, input: InputHash, way: Way) -> Result<(), MapError> {
        self.begin()?;
        self.map.verify(input)?;
        let tie = self.tie();
        self.write(input.into(), None, |_| Task::Move { way, from: None, tie, spare: false })?;
        self.complete();
        Ok(())
    }

    /// Removes a key that is present.
    pub fn remove(&mut self, at: impl Into<Probe>) -> Result<(), MapError> {
        let probe = at.into();
        self.begin()?;
        self.map.verify(probe.input)?;
        self.write(probe, None, |_| Task::Remove)?;
        self.complete();
        Ok(())
    }
}

impl Drop for Handle<'_> {
    fn drop(&mut self) {
        if self.begin().is_ok() {
            if let Ok(seat) = self.map.memory.seat(self.number) {
                if seat.owner() == self.me {
                    store(Point::Leave, seat.owner_word(), Owner::NOBODY.0);
                }
            }
        }
    }
}

/// An added entry whose bucket is still held. Completed by [`Committed::complete`] or on drop.
#[derive(Debug)]
pub struct Committed<'h, 'a> {
    token: Token,
    handle: &'h mut Handle<'a>,
}

impl Committed<'_, '_> {
    /// Where the entry lies.
    pub fn token(&self) -> Token {
        self.token
    }

    /// Third stage: releases the bucket and hands out what had to leave.
    pub fn complete(self) -> Token {
        self.token
    }

    /// Leaves the third stage to whoever has the handle next.
    pub(crate) fn leave(self) -> Token {
        let token = self.token;
        std::mem::forget(self);
        token
    }
}

impl Drop for Committed<'_, '_> {
    fn drop(&mut self) {
        self.handle.finish();
    }
}
