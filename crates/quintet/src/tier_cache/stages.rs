//! The three stages of adding, apart: any thread begins, any thread completes.
//!
//! **E1.** An add that is *pending* is a handle whose operation is sealed: the entry can be found,
//! its bucket is held, nothing else is needed to complete it. Each has a seat of its own, so that
//! its intent is there for whoever survives this process.
//! **E2.** A handle is owned by one place: the idle ones, the line of pending ones, or the thread
//! that works on it. No lock is held while a handle works, so a sink may call whatever it likes but
//! the map.
//! **E3.** Who commits never waits for a completion that nobody is at: behind a held bucket, and
//! without a free seat, it completes the first pending add itself.

use super::MapError;
use super::map::{Committed, DEFAULT_TIMEOUT, Handle, Map, Prepared};
use super::wait::Wait;
use super::word::{InputHash, Token};
use crate::sync::{Condvar, Mutex};
use std::collections::VecDeque;
use std::time::Duration;

/// Adds entries in stages that different threads may do: positions are chosen for a whole batch,
/// then a batch of values is written, and the completion is left to threads that
/// [serve](Stages::run_service), or to whoever needs it first.
///
/// ```
/// use quintet::tier_cache::map::{Geometry, InputHash, SharedMap, Stages};
///
/// let shared = SharedMap::create_sealed(Geometry::for_records(1000, 32))?;
/// let map = shared.map();
/// let stages = Stages::new(map, 16);
/// std::thread::scope(|scope| {
///     scope.spawn(|| stages.run_service());
///     let inputs: Vec<InputHash> =
///         (1..=100).map(|key| InputHash::new(key, key % 50)).collect::<Result<_, _>>()?;
///     // Stage 1 for all, then stage 2 for all: from here on they are found.
///     let prepared = stages.prepare_many(&inputs);
///     let tokens = stages.commit_many(prepared.into_iter().zip(1000..));
///     for (token, value) in tokens.into_iter().zip(1000..) {
///         assert_eq!(map.reader().get(token?)?, Some(value));
///     }
///     // Stage 3 is done by the service thread; the line it works on is empty when it returns.
///     stages.stop();
///     Ok::<(), quintet::tier_cache::map::MapError>(())
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Stages<'a> {
    map: Map<'a>,
    /// The most seats it takes.
    most: usize,
    timeout: Duration,
    inner: Mutex<Inner<'a>>,
    woken: Condvar,
}

#[derive(Debug)]
struct Inner<'a> {
    idle: Vec<Handle<'a>>,
    pending: VecDeque<Handle<'a>>,
    /// Handles that exist, wherever they are.
    made: usize,
    stopped: bool,
}

/// How long a commit waits at a held bucket before it completes something itself.
const SLICE: Duration = Duration::from_millis(2);
/// Who serves looks at least so often, told or not.
const ROUND: Duration = Duration::from_secs(1);

impl<'a> Stages<'a> {
    /// Stages of a map. So many adds, at least one, can be pending at once: each has a seat.
    pub fn new(map: Map<'a>, seats: usize) -> Self {
        let (idle, pending) = (Vec::new(), VecDeque::new());
        let inner = Inner { idle, pending, made: 0, stopped: false };
        Self {
            map,
            most: seats.max(1),
            timeout: DEFAULT_TIMEOUT,
            inner: Mutex::new(inner),
            woken: Condvar::new(),
        }
    }

    /// Sets how long a commit tries before it returns [`MapError::Busy`].
    pub fn set_timeout(&mut self, timeout: Duration) {
        self.timeout = timeout;
    }

    /// First stage for many: each gets its tie bit, and the buckets are on their way. Holds
    /// nothing.
    pub fn prepare_many(&self, inputs: &[InputHash]) -> Vec<Result<Prepared, MapError>> {
        let mut ties = crate::hash::random_seed();
        let prepare = |input: &InputHash| {
            ties = ties.rotate_left(1);
            Prepared::new(&self.map, *input, ties as u32 & 1)
        };
        inputs.iter().map(prepare).collect()
    }

    /// Second stage: the entry is in the map and can be found. Its bucket is held until somebody
    /// has done the third.
    pub fn commit(&self, prepared: Prepared, value: u64) -> Result<Token, MapError> {
        let mut wait = Wait::new(self.timeout);
        loop {
            let Some(mut handle) = self.take_idle()? else {
                // E3
                if !self.complete_one() {
                    wait.pause()?;
                }
                continue;
            };
            handle.set_timeout(SLICE.min(self.timeout));
            match handle.commit(prepared, value).map(Committed::leave) {
                Ok(token) => {
                    self.add_pending(handle);
                    return Ok(token);
                }
                Err(error) => {
                    self.put_idle(handle);
                    match error {
                        MapError::Busy if self.complete_one() => {}
                        MapError::Busy => wait.pause()?,
                        // A handle of before a fork: dropped, which changes nothing.
                        MapError::Forked => {}
                        error => return Err(error),
                    }
                }
            }
        }
    }

    /// Second stage for many, in their order.
    pub fn commit_many(
        &self,
        entries: impl IntoIterator<Item = (Result<Prepared, MapError>, u64)>,
    ) -> Vec<Result<Token, MapError>> {
        entries.into_iter().map(|(prepared, value)| self.commit(prepared?, value)).collect()
    }

    /// Third stage of the add that has waited longest, by the calling thread. False if none is
    /// pending.
    pub fn complete_one(&self) -> bool {
        let Some(handle) = self.inner.lock().pending.pop_front() else { return false };
        self.finish(handle);
        true
    }

    /// Third stage of all that are pending now, by the calling thread. Returns how many it
    /// completed.
    pub fn complete_all(&self) -> usize {
        std::iter::from_fn(|| self.complete_one().then_some(())).count()
    }

    /// Adds whose third stage nobody has begun.
    pub fn pending(&self) -> usize {
        self.inner.lock().pending.len()
    }

    /// Does the third stage for everybody, until [`Stages::stop`]; then it does what is left. Any
    /// number of threads may. Returns how many this one completed.
    pub fn run_service(&self) -> usize {
        let mut completed = 0;
        loop {
            let mut inner = self.inner.lock();
            let handle = loop {
                match inner.pending.pop_front() {
                    Some(handle) => break handle,
                    None if inner.stopped => return completed,
                    None => inner = self.woken.wait_for(inner, ROUND).0,
                }
            };
            drop(inner);
            self.finish(handle);
            completed += 1;
        }
    }

    /// Lets those who serve return once nothing is pending.
    pub fn stop(&self) {
        self.inner.lock().stopped = true;
        self.woken.notify_all();
    }

    /// A handle at rest, or another seat while there may be more. `None` if all are at work or
    /// pending.
    fn take_idle(&self) -> Result<Option<Handle<'a>>, MapError> {
        {
            let mut inner = self.inner.lock();
            if let Some(handle) = inner.idle.pop() {
                return Ok(Some(handle));
            }
            if inner.made >= self.most {
                return Ok(None);
            }
            inner.made += 1;
        }
        let made = self.map.handle();
        if made.is_err() {
            self.inner.lock().made -= 1;
        }
        match made {
            Ok(handle) => Ok(Some(handle)),
            // Others have the seats: those that are pending here will do, if there are any.
            Err(MapError::NoSeat) if self.inner.lock().made > 0 => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn put_idle(&self, handle: Handle<'a>) {
        let ours = handle.begin_read().is_ok();
        let mut inner = self.inner.lock();
        if ours {
            inner.idle.push(handle);
        } else {
            inner.made -= 1;
        }
    }

    fn add_pending(&self, handle: Handle<'a>) {
        self.inner.lock().pending.push_back(handle);
        self.woken.notify_all();
    }

    /// E2. If the sink unwinds, the handle goes, and its seat is free.
    fn finish(&self, handle: Handle<'a>) {
        struct Lost<'s, 'a>(&'s Stages<'a>, bool);
        impl Drop for Lost<'_, '_> {
            fn drop(&mut self) {
                if self.1 {
                    self.0.inner.lock().made -= 1;
                }
            }
        }
        let mut lost = Lost(self, true);
        let mut handle = handle;
        handle.finish();
        lost.1 = false;
        drop(lost);
        self.put_idle(handle);
    }
}
