//! Copies that share their keys and values: half the memory, no `Clone`.
//!
//! Both copies hold the same keys and values, bit by bit. Nothing that is stored in a copy is
//! dropped by the copy; who owns what:
//!
//! **N1.** What is in the readable copy is owned by the map, and dropped with the copy whose number
//! is `Yard::owner`.
//! **N2.** What a published batch took out of the readable copy may still be in other ones: it is
//! owned by `pending`, until a guard has brought the other copy up to date and there are no more
//! than these two (owned guards may have more); then by `evicted`, until it is taken or dropped.
//! **N3.** What an unpublished batch put in is owned by the log; what it took out is owned by the
//! readable copy still, unless the same batch put it in. A discard therefore drops what the log put
//! in, and forgets what was taken out.
//! **N4.** When the writer goes first, readers may be on any copy: `pending` waits in the yard
//! until all copies are gone. An owned guard keeps the core, and so the copy that drops the
//! entries.
//!
//!
//! Equal answers of `Eq` and `Hash` on both copies are what N2 rests on, hence the promise of
//! [`Inert`] and the fixed hasher. Keys that one asks with are anybody's: what they find is looked
//! up once more by the stored key before it changes anything.

use super::absorb::{Absorb, Differs};
use super::alias::{Alias, Ask, Inert};
use super::reader::Reader;
use super::twin::{Stalled, Twin, TwinStats};
use super::version::{Op, Version};
use super::wait::GuardError;
use super::write::Write;
use crate::sync::{Arc, AtomicU64, Barrier, Mutex, Ordering};
use equivalent::Equivalent;
use std::hash::Hash;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

/// What fell out.
type Dead<K, V> = (Option<K>, Option<V>);
type Pending<K, V> = Vec<(Option<Alias<K>>, Option<Alias<V>>)>;
type Change<K, V> = Op<Alias<K>, Alias<V>>;

/// What both copies share.
struct Yard<K, V> {
    /// The number of the copy whose entries are the map's (N1).
    owner: AtomicU64,
    numbers: AtomicU64,
    /// How many copies there are (N2).
    copies: AtomicU64,
    /// What waits for both copies to go (N4).
    dead: Mutex<Vec<Dead<K, V>>>,
}

/// One version of a map whose copies share keys and values; see
/// [`Builder::build_inert`](super::TwinMapBuilder::build_inert).
pub struct InertMap<K, V> {
    map: Version<Alias<K>, Alias<V>>,
    yard: Arc<Yard<K, V>>,
    number: u64,
}

impl<K, V> InertMap<K, V> {
    /// Sets up such a map, with [`build_inert`](super::TwinMapBuilder::build_inert).
    pub fn builder() -> super::TwinMapBuilder<K, V> {
        super::TwinMapBuilder::new()
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// True if there are no entries.
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// All entries, in no particular order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&K, &V)> + Clone {
        self.map.iter().map(|(key, value)| (key.get(), value.get()))
    }

    /// The value of a key.
    #[inline]
    pub fn get<Q: Hash + Equivalent<K> + ?Sized>(&self, key: &Q) -> Option<&V> {
        self.map.get(&Ask(key)).map(Alias::get)
    }

    /// True if the key is there.
    #[inline]
    pub fn contains_key<Q: Hash + Equivalent<K> + ?Sized>(&self, key: &Q) -> bool {
        self.map.contains_key(&Ask(key))
    }
}

impl<K, V> Drop for InertMap<K, V> {
    fn drop(&mut self) {
        // ORDERING: Release: partner is the Acquire of `ready`: who had this copy has looked at it
        // for the last time.
        self.yard.copies.fetch_sub(1, Ordering::Release);
        // ORDERING: Relaxed: the writer changes it before it publishes, and whoever drops a copy
        // comes after both.
        if self.yard.owner.load(Ordering::Relaxed) != self.number {
            return;
        }
        for (key, value) in self.map.iter() {
            // SAFETY: the map's entries are dropped by this copy alone (N1), when the core that
            // held the copies goes.
            drop(unsafe { key.duplicate().own() });
            // SAFETY: as above.
            drop(unsafe { value.duplicate().own() });
        }
    }
}

impl<K: Hash + Eq, V> Absorb<Change<K, V>> for InertMap<K, V> {
    type Old = ();

    fn absorb_first(&mut self, op: &mut Change<K, V>) -> Option<()> {
        self.map.absorb_first(op);
        None
    }

    fn absorb_second(&mut self, op: Change<K, V>, _: &mut Vec<()>) -> Result<(), Differs> {
        // What falls out is owned by `pending` (N2).
        self.map.absorb_second(op, &mut Vec::new())
    }

    fn prepare(&self, op: &Change<K, V>) {
        self.map.prepare(op);
    }

    fn rebuild(from: &Self) -> Self {
        let yard = Arc::clone(&from.yard);
        // ORDERING: Relaxed: only unique.
        let number = yard.numbers.fetch_add(1, Ordering::Relaxed);
        // ORDERING: Relaxed: only the writer makes copies, and only the writer asks.
        yard.copies.fetch_add(1, Ordering::Relaxed);
        Self { map: Version::rebuild(&from.map), yard, number }
    }

    fn is_copied_sooner(&self, operations: usize) -> bool {
        self.map.is_copied_sooner(operations)
    }

    fn memory_bytes(&self) -> usize {
        self.map.memory_bytes()
    }

    fn agrees(&self, other: &Self) -> bool {
        self.map.agrees(&other.map)
    }
}

impl<K: std::fmt::Debug, V: std::fmt::Debug> std::fmt::Debug for InertMap<K, V> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_map().entries(self.iter()).finish()
    }
}

/// The writer of an [`InertMap`].
pub struct InertWriter<K: Inert + Hash + Eq, V: Inert> {
    twin: Twin<InertMap<K, V>, Change<K, V>>,
    yard: Arc<Yard<K, V>>,
    /// What the batch under way took out (N3).
    taken: Pending<K, V>,
    /// What the last published batch took out (N2).
    pending: Pending<K, V>,
    evicted: Vec<Dead<K, V>>,
}

/// A batch of changes to an [`InertMap`]: reads its own writes, publishes when dropped.
pub struct InertWriteGuard<'a, K: Inert + Hash + Eq, V: Inert> {
    write: Write<'a, InertMap<K, V>, Change<K, V>>,
    taken: &'a mut Pending<K, V>,
    pending: &'a mut Pending<K, V>,
    was_panicking: bool,
}

/// Values that were replaced or removed, and that no reader can see any more.
#[derive(Debug)]
pub struct Evicted<K, V>(std::vec::IntoIter<Dead<K, V>>);

impl<K, V> Iterator for Evicted<K, V> {
    type Item = V;

    fn next(&mut self) -> Option<V> {
        self.0.find_map(|(_, value)| value)
    }
}

impl<K: Inert + Hash + Eq, V: Inert> InertWriter<K, V> {
    pub(super) fn new(
        mut map: Version<Alias<K>, Alias<V>>,
        capacity: usize,
        barrier: Barrier,
    ) -> (Self, Reader<InertMap<K, V>>) {
        map.make_room(capacity);
        let yard = Arc::new(Yard {
            owner: AtomicU64::new(0),
            numbers: AtomicU64::new(1),
            copies: AtomicU64::new(1),
            dead: Mutex::new(Vec::new()),
        });
        let first = InertMap { map, yard: Arc::clone(&yard), number: 0 };
        // A third copy would keep what was taken out for as long as a reader stays (N2): readers
        // are waited for.
        let (twin, reader) = Twin::with(first, Stalled::Wait, barrier);
        let (taken, pending, evicted) = (Vec::new(), Vec::new(), Vec::new());
        (Self { twin, yard, taken, pending, evicted }, reader)
    }

    /// Starts a batch of changes; see [`Writer::guard`](super::Writer::guard). What the batch
    /// before last took out is dropped, unless [`evicted`](Self::evicted) was asked for it.
    ///
    /// # Panics
    /// As there.
    pub fn guard(&mut self) -> InertWriteGuard<'_, K, V> {
        let write = self.twin.guard();
        Self::ready(write, &mut self.taken, &mut self.pending, &mut self.evicted)
    }

    /// The same without waiting.
    pub fn try_guard(&mut self) -> Result<InertWriteGuard<'_, K, V>, GuardError> {
        let write = self.twin.try_guard()?;
        Ok(Self::ready(write, &mut self.taken, &mut self.pending, &mut self.evicted))
    }

    /// The same, waiting at most so long.
    pub fn guard_timeout(
        &mut self,
        most: Duration,
    ) -> Result<InertWriteGuard<'_, K, V>, GuardError> {
        let write = self.twin.guard_timeout(most)?;
        Ok(Self::ready(write, &mut self.taken, &mut self.pending, &mut self.evicted))
    }

    /// The same for tasks: the last reader that leaves wakes the task. Needs no particular runtime.
    pub async fn guard_async(&mut self) -> Result<InertWriteGuard<'_, K, V>, GuardError> {
        let write = self.twin.guard_async().await?;
        Ok(Self::ready(write, &mut self.taken, &mut self.pending, &mut self.evicted))
    }

    /// Both copies agree: what waited for that is free, unless an owned guard has a third one (N2).
    fn ready<'a>(
        write: Write<'a, InertMap<K, V>, Change<K, V>>,
        taken: &'a mut Pending<K, V>,
        pending: &'a mut Pending<K, V>,
        evicted: &mut Vec<Dead<K, V>>,
    ) -> InertWriteGuard<'a, K, V> {
        // ORDERING: Acquire: partner is the Release of whoever dropped another copy.
        let are_two = write.yard.copies.load(Ordering::Acquire) <= 2;
        let free = if are_two { pending.len() } else { 0 };
        let freed = pending.drain(..free).map(|dead| {
            // SAFETY: taken out of the copy that is readable since, and of the other by the replay;
            // there is no third: no duplicate is left (N2).
            unsafe { own_both(dead) }
        });
        let old = std::mem::replace(evicted, freed.collect());
        let guard =
            InertWriteGuard { write, taken, pending, was_panicking: std::thread::panicking() };
        drop(old);
        guard
    }

    /// The values that the last published batch but one, or the last one if a guard was taken
    /// since, replaced and removed.
    pub fn evicted(&mut self) -> Evicted<K, V> {
        Evicted(std::mem::take(&mut self.evicted).into_iter())
    }

    /// A further reader.
    pub fn reader(&self) -> Reader<InertMap<K, V>> {
        self.twin.reader()
    }

    /// What has been done so far.
    pub fn stats(&self) -> TwinStats {
        self.twin.stats()
    }
}

impl<K: Inert + Hash + Eq, V: Inert> Drop for InertWriter<K, V> {
    fn drop(&mut self) {
        // The copy of an unpublished batch is never looked at again (N3).
        drop_put_in(self.twin.take_staged());
        let waiting = self.pending.drain(..).map(|dead| {
            // SAFETY: owned by `pending` (N2); the yard keeps it until both copies are gone (N4).
            unsafe { own_both(dead) }
        });
        self.yard.dead.lock().extend(waiting);
    }
}

impl<K: Inert + Hash + Eq, V: Inert> InertWriteGuard<'_, K, V> {
    /// Changes the copy; a panic discards the batch, since only whole batches are owned by somebody
    /// (N3).
    fn change<R>(
        &mut self,
        change: impl FnOnce(
            &mut Version<Alias<K>, Alias<V>>,
            &mut std::collections::VecDeque<Change<K, V>>,
        ) -> R,
    ) -> R {
        let write = &mut self.write;
        let changed =
            catch_unwind(AssertUnwindSafe(|| write.change(|copy, log| change(&mut copy.map, log))));
        changed.unwrap_or_else(|payload| {
            self.discard_now();
            resume_unwind(payload)
        })
    }

    /// Sets the value of a key; shows the old one, which [`InertWriter::evicted`] hands back when
    /// no reader can see it.
    pub fn insert(&mut self, key: K, value: V) -> Option<&V> {
        let key = Alias::new(key);
        let unused = key.duplicate();
        let old = self.change(|map, log| map.put(log, key, Alias::new(value)))?;
        self.take((Some(unused), Some(old)))
    }

    /// Removes a key; shows its value, which [`InertWriter::evicted`] hands back when no reader can
    /// see it.
    pub fn remove<Q: Hash + Equivalent<K> + ?Sized>(&mut self, key: &Q) -> Option<&V> {
        let stored = self.write.map.get_key_value(&Ask(key))?.0.duplicate();
        let value = self.change(|map, log| map.remove(log, &stored))?;
        self.take((Some(stored), Some(value)))
    }

    fn take(&mut self, dead: (Option<Alias<K>>, Option<Alias<V>>)) -> Option<&V> {
        self.taken.push(dead);
        let (_, value) = self.taken.last()?;
        value.as_ref().map(Alias::get)
    }

    /// Keeps the entries for which `keep` is true.
    pub fn retain(&mut self, mut keep: impl FnMut(&K, &V) -> bool) {
        let entries = self.write.map.iter().filter(|(key, value)| !keep(key.get(), value.get()));
        let leaving: Vec<Alias<K>> = entries.map(|(key, _)| key.duplicate()).collect();
        for key in leaving {
            let value = self.change(|map, log| map.remove(log, &key));
            self.taken.push((Some(key), value));
        }
    }

    /// Removes everything.
    pub fn clear(&mut self) {
        self.retain(|_, _| false);
    }

    /// Makes the changes visible to all readers at one moment; returns the number of the new
    /// version.
    pub fn publish(mut self) -> u64 {
        self.publish_now()
    }

    /// Gives up all changes of this batch, and copies the table anew.
    pub fn discard(mut self) {
        self.discard_now();
    }

    fn publish_now(&mut self) -> u64 {
        self.write.make_whole();
        // ORDERING: Relaxed: read by whoever drops the copies, after the writer and all readers.
        self.write.yard.owner.store(self.write.number, Ordering::Relaxed);
        self.pending.append(self.taken);
        self.write.publish_now()
    }

    fn discard_now(&mut self) {
        let staged = self.write.take_staged();
        // What was taken out is the readable copy's (N3): forgotten before anything can panic, it
        // is never dropped as if it were the batch's.
        self.taken.clear();
        // First a copy without them, then they may go (N3).
        self.write.make_whole();
        drop_put_in(staged);
    }
}

impl<K: Inert + Hash + Eq, V: Inert> Drop for InertWriteGuard<'_, K, V> {
    fn drop(&mut self) {
        if self.write.staged() == 0 || self.write.is_published() {
            return;
        }
        if std::thread::panicking() && !self.was_panicking {
            // A second panic while one is under way would end the process.
            if let Err(payload) = catch_unwind(AssertUnwindSafe(|| self.discard_now())) {
                std::mem::forget(payload);
            }
        } else {
            self.publish_now();
        }
    }
}

impl<K: Inert + Hash + Eq, V: Inert> Deref for InertWriteGuard<'_, K, V> {
    type Target = InertMap<K, V>;

    fn deref(&self) -> &InertMap<K, V> {
        &self.write
    }
}

impl<K: Inert + Hash + Eq, V: Inert> std::fmt::Debug for InertWriter<K, V> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.twin.fmt(out)
    }
}

impl<K, V> std::fmt::Debug for InertWriteGuard<'_, K, V>
where
    K: Inert + Hash + Eq + std::fmt::Debug,
    V: Inert + std::fmt::Debug,
{
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        (**self).fmt(out)
    }
}

/// # Safety
/// As [`Alias::own`], for both.
unsafe fn own_both<K, V>((key, value): (Option<Alias<K>>, Option<Alias<V>>)) -> Dead<K, V> {
    // SAFETY: the caller's promise.
    let key = key.map(|key| unsafe { key.own() });
    // SAFETY: as above.
    let value = value.map(|value| unsafe { value.own() });
    (key, value)
}

/// Drops what a batch put in that nobody will see (N3).
fn drop_put_in<K, V>(staged: Vec<Change<K, V>>) {
    let put_in = staged.into_iter().filter_map(|op| match op {
        Op::Insert { key, value, .. } => Some((Some(key), Some(value))),
        _ => None,
    });
    for dead in put_in {
        // SAFETY: owned by the log (N3); the copy that had a duplicate is gone or never looked at
        // again.
        drop(unsafe { own_both(dead) });
    }
}
