//! What was taken out for good: [`Retired`].

use super::flight::WaitError;
use super::pair::{Key, Pair, Value};
use crate::item_set::TakenOut;
use crate::sync::{Backoff, later, park_timeout};
use std::error::Error;
use std::fmt;
use std::future::Future;
use std::ops::Deref;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// A value that [`take`](crate::HashMap::take) has removed, on its way to being owned again.
///
/// Others may still be looking at it: whoever was inside when it was removed, by a
/// [`Ref`](super::Ref), a guard, an iterator or a quiet handle. It can be looked at here as well,
/// and it is yours when the last of them is gone. Ask for it
/// ([`try_into_inner`](Self::try_into_inner)), wait for it ([`wait`](Self::wait),
/// [`wait_timeout`](Self::wait_timeout)), or let a task wait ([`wait_async`](Self::wait_async)). It
/// needs no reference to the map, and may outlive it.
///
/// Dropped, it leaves key and value to the map, which drops them when that is safe, as after
/// [`remove`](crate::HashMap::remove). Forgotten, it leaks them.
///
/// ```
/// use quintet::HashMap;
///
/// let jobs = HashMap::from([(7, vec!["a", "b"])]);
/// let seen = jobs.get(&7).unwrap();
/// let job = jobs.take(&7).unwrap(); // out of the map at once
/// assert!(jobs.is_empty() && job.len() == 2);
/// let job = job.try_into_inner().unwrap_err(); // `seen` still shows it
/// drop(seen);
/// let mut job: Vec<_> = job.wait().unwrap();
/// job.push("c");
/// ```
pub struct Retired<K: Key, V: Value>(TakenOut<Box<Pair<K, V>>>);

/// An element that [`HashSet::take`](crate::HashSet::take) has removed: the [`Retired`] of a set.
///
/// ```
/// let names = quintet::HashSet::from(["ada".to_string()]);
/// let ada: String = names.take("ada").unwrap().wait().unwrap();
/// assert!(ada == "ada" && names.is_empty());
/// ```
pub struct SetRetired<T: Key>(pub(in crate::hash_map) Retired<T, ()>);

/// A wait that ended without the value, which comes back as it was.
///
/// ```
/// use quintet::hash_map::{StillShared, WaitError};
///
/// let map = quintet::HashMap::from([(1, "one".to_string())]);
/// let guard = map.pin();
/// let StillShared { why, retired, .. } = guard.take(&1).unwrap().wait().unwrap_err();
/// assert_eq!(why, WaitError::WouldDeadlock); // this very thread is inside
/// drop(guard);
/// assert_eq!(retired.wait().unwrap(), "one");
/// ```
#[non_exhaustive]
pub struct StillShared<R> {
    /// What the wait would have come to.
    pub why: WaitError,
    /// What was waited for.
    pub retired: R,
}

impl<R> fmt::Debug for StillShared<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StillShared").field("why", &self.why).finish_non_exhaustive()
    }
}

impl<R> fmt::Display for StillShared<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.why {
            WaitError::TimedOut => "others were still looking at the value when the time was over",
            WaitError::WouldDeadlock => {
                "this thread is inside of the map, by a guard, an iterator or a reference, and would \
                 wait for itself: let that go first"
            }
        })
    }
}

impl<R> Error for StillShared<R> {}

/// The longest sleep between two looks.
const LONGEST: Duration = Duration::from_millis(5);

/// The pause after so many looks: nothing at first.
fn pause(looks: u32) -> Option<Duration> {
    const AT_ONCE: u32 = 16;
    let more = looks.checked_sub(AT_ONCE)?;
    Some(Duration::from_micros(50 << more.min(12)).min(LONGEST))
}

impl<K: Key, V: Value> Retired<K, V> {
    pub(super) const fn new(taken: TakenOut<Box<Pair<K, V>>>) -> Self {
        Self(taken)
    }

    /// The key that the value had.
    pub fn key(&self) -> &K {
        &self.0.key
    }

    /// Key and value, if nobody can be looking at them any more. Never waits.
    ///
    /// The first call lets all threads of the process pass a barrier, which takes some
    /// microseconds.
    ///
    /// # Errors
    /// What was asked for, as it was.
    pub fn try_into_entry(self) -> Result<(K, V), Self> {
        let pair = self.0.finish().map_err(Self)?;
        Ok((pair.key, pair.value))
    }

    /// The value, if nobody can be looking at it any more. Never waits. The key is dropped.
    ///
    /// # Errors
    /// What was asked for, as it was.
    pub fn try_into_inner(self) -> Result<V, Self> {
        self.try_into_entry().map(|(_, value)| value)
    }

    /// Waits until nobody can be looking at the value any more, and returns it.
    ///
    /// Who looks does not tell when it ends: this looks again and again, more and more seldom, up
    /// to 200 times a second.
    ///
    /// # Errors
    /// [`WaitError::WouldDeadlock`] if this thread itself is inside of the map: by a guard, a
    /// reference or an iterator that it has from the map itself. What it has from a handle is not
    /// seen: a thread that holds such a guard, or a quiet handle that comes to no quiet point,
    /// waits for itself, for ever.
    pub fn wait(self) -> Result<V, StillShared<Self>> {
        self.wait_until(None)
    }

    /// [`wait`](Self::wait) for at most `patience`.
    ///
    /// # Errors
    /// As [`wait`](Self::wait), and [`WaitError::TimedOut`].
    pub fn wait_timeout(self, patience: Duration) -> Result<V, StillShared<Self>> {
        // One that lies beyond all times is none.
        self.wait_until(Instant::now().checked_add(patience))
    }

    fn wait_until(self, deadline: Option<Instant>) -> Result<V, StillShared<Self>> {
        wait_until(self, deadline, Self::try_into_inner, |retired| retired.0.waits_for_itself())
    }

    /// [`wait`](Self::wait) for tasks. A task that holds a guard or a reference of the map
    /// meanwhile waits for itself.
    ///
    /// A thread of the library's own wakes the task, while one waits, to look again. A future that
    /// is dropped leaves key and value to the map.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let map = quintet::HashMap::from([(1, "one".to_string())]);
    /// let one: String = map.take(&1).unwrap().wait_async().await;
    /// # assert_eq!(one, "one");
    /// # });
    /// ```
    pub fn wait_async(self) -> impl Future<Output = V> + Send + Unpin {
        Waiting::new(self, Self::try_into_inner)
    }
}

/// Asks again and again, until `deadline` if there is one.
fn wait_until<R, T>(
    mut waiting: R,
    deadline: Option<Instant>,
    ask: fn(R) -> Result<T, R>,
    waits_for_itself: fn(&R) -> bool,
) -> Result<T, StillShared<R>> {
    let (mut backoff, mut looks) = (Backoff::new(), 0);
    loop {
        waiting = match ask(waiting) {
            Ok(value) => return Ok(value),
            Err(retired) => retired,
        };
        let refuse = |why, retired| Err(StillShared { why, retired });
        if waits_for_itself(&waiting) {
            return refuse(WaitError::WouldDeadlock, waiting);
        }
        if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            return refuse(WaitError::TimedOut, waiting);
        }
        match pause(looks) {
            None => backoff.snooze(),
            Some(pause) => park_timeout(pause),
        }
        looks += 1;
    }
}

/// A task's wait.
struct Waiting<R, T> {
    /// There until it is over.
    retired: Option<R>,
    ask: fn(R) -> Result<T, R>,
    looks: u32,
}

impl<R, T> Waiting<R, T> {
    const fn new(retired: R, ask: fn(R) -> Result<T, R>) -> Self {
        Self { retired: Some(retired), ask, looks: 0 }
    }
}

impl<R: Unpin, T> Future for Waiting<R, T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        // Asked after it was over: nothing comes any more.
        let Some(retired) = self.retired.take() else { return Poll::Pending };
        match (self.ask)(retired) {
            Ok(value) => Poll::Ready(value),
            Err(retired) => {
                self.retired = Some(retired);
                self.looks += 1;
                match pause(self.looks) {
                    None => context.waker().wake_by_ref(),
                    Some(pause) => later::wake_later(context.waker(), pause),
                }
                Poll::Pending
            }
        }
    }
}

impl<K: Key, V: Value> Deref for Retired<K, V> {
    type Target = V;

    fn deref(&self) -> &V {
        &self.0.value
    }
}

impl<K: Key, V: Value + fmt::Debug> fmt::Debug for Retired<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Retired").field(&**self).finish()
    }
}

impl<T: Key> SetRetired<T> {
    /// The element, if nobody can be looking at it any more. Never waits.
    ///
    /// # Errors
    /// What was asked for, as it was.
    pub fn try_into_inner(self) -> Result<T, Self> {
        self.0.try_into_entry().map(|(element, ())| element).map_err(Self)
    }

    /// [`Retired::wait`].
    ///
    /// # Errors
    /// As there.
    pub fn wait(self) -> Result<T, StillShared<Self>> {
        wait_until(self, None, Self::try_into_inner, Self::waits_for_itself)
    }

    /// [`Retired::wait_timeout`].
    ///
    /// # Errors
    /// As there.
    pub fn wait_timeout(self, patience: Duration) -> Result<T, StillShared<Self>> {
        let deadline = Instant::now().checked_add(patience);
        wait_until(self, deadline, Self::try_into_inner, Self::waits_for_itself)
    }

    fn waits_for_itself(&self) -> bool {
        self.0.0.waits_for_itself()
    }

    /// [`Retired::wait_async`].
    pub fn wait_async(self) -> impl Future<Output = T> + Send + Unpin {
        Waiting::new(self, Self::try_into_inner)
    }
}

impl<T: Key> Deref for SetRetired<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.key()
    }
}

impl<T: Key + fmt::Debug> fmt::Debug for SetRetired<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SetRetired").field(&**self).finish()
    }
}
