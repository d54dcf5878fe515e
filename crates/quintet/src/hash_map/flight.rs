//! Flights: who makes a value, and who waits for it.
//!
//! ```text
//!               begin: no flight of this key                      end: stored, failed, unwound, dropped
//!   (none) ───────────────────────────────────▶ IN THE AIR ───────────────────────────────────▶ OVER, out of the list
//!                                               others wait: threads, tasks                     all are woken, and look again
//! ```
//!
//! **F1.** A flight is in the list of its map from its begin to its end, and of one key there is
//! one at most. It is no entry: lookups and walks never meet it, and a `remove` does not end it.
//! **F2.** No user code runs under the lock of the list: under it flights are told by their hash,
//! and keys are compared outside. Who finds none of its key begins one only if none was begun since
//! it looked.
//! **F3.** Who has begun a flight looks for the key once more: the last one may have ended just
//! before.
//! **F4.** A flight ends once, also if its maker unwinds or its task is dropped: first it is marked
//! as over, then it leaves the list, then all who wait are woken.
//! **F5.** Who is woken knows nothing but that the flight is over. It looks for the key; if that is
//! still absent, the first to come begins the next flight with a maker of its own.
//! **F6.** A thread that would wait for ever enters the list of all waits and follows the arrows
//! from thread to the thread that it waits for. If they lead back to it, it is told so. Each who
//! waits has written its arrow down before, under the same lock, so that the last to come sees the
//! whole circle. An arrow to a flight that is over is none: its waiter is about to go on.
//! **F7.** The flight of a task belongs to no thread, and a wait with a timeout ends by itself:
//! neither is an arrow.

use crate::sync::constant;
use crate::sync::{Arc, Condvar, Mutex, Ordering, fork};
use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// Why somebody else's value was not waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WaitError {
    /// It was not there in time.
    TimedOut,
    /// This thread waits for itself: it makes what it asks for, or those that make it wait for what
    /// this thread makes.
    WouldDeadlock,
}

impl fmt::Display for WaitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TimedOut => "the value that another caller makes was not there in time",
            Self::WouldDeadlock => {
                "a maker asks for what it makes itself, or for what waits for it: this would wait for ever; \
                 make the parts in one order, or ask with a timeout"
            }
        })
    }
}

impl Error for WaitError {}

/// The thread of a flight that belongs to a task.
const TASK: usize = 0;

/// A value that is being made.
struct Flight<K> {
    hash: u32,
    key: K,
    way: Arc<Way>,
}

/// What its waiters know of it.
pub(super) struct Way {
    /// Who makes it: the name of a thread, or [`TASK`].
    maker: usize,
    waiters: Mutex<Waiters>,
    landed: Condvar,
    /// Not 0: it is over (F6).
    mark: std::sync::Arc<constant::AtomicU64>,
}

#[derive(Default)]
struct Waiters {
    over: bool,
    /// Tasks, each by a number of its own.
    wakers: Vec<(u64, Waker)>,
    numbers: u64,
}

/// The flights of a map.
pub(super) struct Flights<K> {
    list: Mutex<List<K>>,
}

struct List<K> {
    open: Vec<Arc<Flight<K>>>,
    /// So many were begun (F2).
    begun: u64,
}

/// What [`Flights::begin`] found.
pub(super) enum Begun<'f, K> {
    /// The caller is the one to make the value.
    Mine(Landing<'f, K>),
    /// Somebody else is.
    Theirs(Arc<Way>),
}

/// The duty to make a value. The flight ends when this is dropped (F4).
pub(super) struct Landing<'f, K> {
    flights: &'f Flights<K>,
    flight: Arc<Flight<K>>,
}

impl<K> Flights<K> {
    pub(super) fn new() -> Self {
        Self { list: Mutex::new(List { open: Vec::new(), begun: 0 }) }
    }
}

impl<K: Eq + Clone> Flights<K> {
    /// Begins the flight of a key, for the calling thread or for a task, or finds the one that
    /// there is.
    pub(super) fn begin(&self, hash: u32, key: &K, task: bool) -> Begun<'_, K> {
        let mut fresh = None;
        loop {
            let (alike, begun) = {
                let list = self.list.lock();
                let alike = list.open.iter().filter(|flight| flight.hash == hash);
                (alike.cloned().collect::<Vec<_>>(), list.begun)
            };
            if let Some(theirs) = alike.iter().find(|flight| flight.key == *key) {
                return Begun::Theirs(Arc::clone(&theirs.way));
            }
            let flight = fresh.take().unwrap_or_else(|| {
                let maker = if task { TASK } else { fork::thread_key() };
                let way = Arc::new(Way::new(maker));
                Arc::new(Flight { hash, key: key.clone(), way })
            });
            let mut list = self.list.lock();
            if list.begun == begun {
                list.begun += 1;
                list.open.push(Arc::clone(&flight));
                return Begun::Mine(Landing { flights: self, flight });
            }
            fresh = Some(flight);
        }
    }
}

impl<K> Drop for Landing<'_, K> {
    fn drop(&mut self) {
        let way = &self.flight.way;
        // ORDERING: Release: what this thread does next comes after; partner: `leads_to`, which is
        // ordered by the lock of the list of waits as well.
        way.mark.store(1, Ordering::Release);
        let left = {
            let mut list = self.flights.list.lock();
            let place = list.open.iter().position(|flight| Arc::ptr_eq(flight, &self.flight));
            place.map(|place| list.open.swap_remove(place))
        };
        // Its key may be dropped with it, by nobody who holds a lock.
        drop(left);
        way.land();
    }
}

impl Way {
    fn new(maker: usize) -> Self {
        Self {
            maker,
            waiters: Mutex::new(Waiters::default()),
            landed: Condvar::new(),
            mark: std::sync::Arc::new(constant::AtomicU64::new(0)),
        }
    }

    /// Wakes all who wait.
    fn land(&self) {
        let wakers = {
            let mut waiters = self.waiters.lock();
            waiters.over = true;
            std::mem::take(&mut waiters.wakers)
        };
        self.landed.notify_all();
        wakers.into_iter().for_each(|(_, waker)| waker.wake());
    }

    /// Waits until the flight is over, or until `deadline`.
    pub(super) fn wait(&self, deadline: Option<Instant>) -> Result<(), WaitError> {
        let _waiting = Waiting::enter(self, deadline.is_none())?;
        let mut waiters = self.waiters.lock();
        while !waiters.over {
            let longest = match deadline {
                None => Duration::from_secs(3_600),
                Some(deadline) => deadline.saturating_duration_since(Instant::now()),
            };
            if longest.is_zero() {
                return Err(WaitError::TimedOut);
            }
            waiters = self.landed.wait_for(waiters, longest).0;
        }
        Ok(())
    }

    /// The same for a task.
    pub(super) const fn landed(way: Arc<Self>) -> Landed {
        Landed { way, number: None }
    }
}

/// A task's wait for the end of a flight.
pub(super) struct Landed {
    way: Arc<Way>,
    /// Its own among the wakers, if it has one there.
    number: Option<u64>,
}

impl Future for Landed {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let waker = context.waker().clone();
        let way = Arc::clone(&self.way);
        let mut waiters = way.waiters.lock();
        if waiters.over {
            return Poll::Ready(());
        }
        let number = match self.number {
            Some(number) => number,
            None => {
                waiters.numbers += 1;
                *self.number.insert(waiters.numbers)
            }
        };
        let old = waiters.wakers.iter().position(|(other, _)| *other == number);
        let old = old.map(|place| waiters.wakers.swap_remove(place));
        waiters.wakers.push((number, waker));
        drop(waiters);
        // User code, and no lock.
        drop(old);
        Poll::Pending
    }
}

impl Drop for Landed {
    fn drop(&mut self) {
        let Some(number) = self.number else { return };
        let mut waiters = self.way.waiters.lock();
        let place = waiters.wakers.iter().position(|(other, _)| *other == number);
        let left = place.map(|place| waiters.wakers.swap_remove(place));
        drop(waiters);
        drop(left);
    }
}

/// A thread that waits for ever, and for whom (F6).
struct Wait {
    thread: usize,
    maker: usize,
    mark: std::sync::Arc<constant::AtomicU64>,
}

static WAITS: constant::Mutex<Vec<Wait>> = constant::Mutex::new(Vec::new());

/// An entry in the list of waits, if there is one. Leaves it when dropped.
struct Waiting(Option<usize>);

impl Waiting {
    /// Enters the list, if the wait is for ever; an error if it would never end.
    fn enter(way: &Way, for_ever: bool) -> Result<Self, WaitError> {
        let thread = fork::thread_key();
        let mut waits = WAITS.lock();
        if leads_to(&waits, way, thread) {
            return Err(WaitError::WouldDeadlock);
        }
        if !for_ever || way.maker == TASK {
            return Ok(Self(None));
        }
        waits.push(Wait { thread, maker: way.maker, mark: std::sync::Arc::clone(&way.mark) });
        Ok(Self(Some(thread)))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(thread) = self.0 {
            // A thread waits for one thing at a time.
            WAITS.lock().retain(|wait| wait.thread != thread);
        }
    }
}

/// Whether the arrows from a flight lead to a thread (F6).
fn leads_to(waits: &[Wait], way: &Way, thread: usize) -> bool {
    // ORDERING: Acquire: partner is the end of the flight.
    let flies = |mark: &constant::AtomicU64| mark.load(Ordering::Acquire) == 0;
    let mut maker = Some(way.maker).filter(|_| flies(&way.mark));
    // As many steps as there are arrows: a circle that leads elsewhere is its own members'
    // business.
    for _ in 0..=waits.len() {
        let Some(at) = maker else { return false };
        if at == thread {
            return true;
        }
        let next = waits.iter().find(|wait| wait.thread == at && flies(&wait.mark));
        maker = next.map(|wait| wait.maker);
    }
    false
}
