//! The backend of every ordinary build: std's atomics and threads, parking_lot's mutex.

pub(crate) use std::hint::spin_loop;
pub(crate) use std::sync::Arc;
pub(crate) use std::sync::atomic::{
    AtomicBool, AtomicI64, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize,
    Ordering,
};
pub(crate) use std::thread;

/// Whether nobody else has a share. There are no weak ones. Reads the count only, where `get_mut`
/// writes to its line with a locked instruction.
#[allow(dead_code)] // the same face in every backend
#[inline]
pub(crate) fn is_alone<T>(shared: &mut Arc<T>) -> bool {
    debug_assert_eq!(Arc::weak_count(shared), 0);
    let alone = Arc::strong_count(shared) == 1;
    // ORDERING: Acquire fence: partner is the Release of the decrement by whoever dropped the last
    // other share, which the count was read from: its reads come before our writes.
    fence(Ordering::Acquire);
    alone
}

/// A mutex that is never poisoned: every caller keeps its data consistent across panics.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(parking_lot::Mutex<T>);

pub(crate) type MutexGuard<'a, T> = parking_lot::MutexGuard<'a, T>;

#[allow(dead_code)] // the same face in every backend
impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(parking_lot::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock()
    }

    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.0.try_lock()
    }

    pub(crate) fn into_inner(self) -> T {
        self.0.into_inner()
    }

    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }
}

/// Sleeps until unparked, at most so long. May return early.
#[allow(dead_code)] // the same face in every backend
pub(crate) fn park_timeout(most: std::time::Duration) {
    thread::park_timeout(most);
}

/// A place that a protocol hands from thread to thread; a model checker sees who touches it when.
#[derive(Debug, Default)]
pub(crate) struct HandOver<T>(std::cell::UnsafeCell<T>);

#[allow(dead_code)] // the same face in every backend
impl<T> HandOver<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    /// Runs `f` with the place. Who may do what with it, and when, is the protocol's business.
    pub(crate) fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        f(self.0.get())
    }

    /// Runs `f` with the place, to change it.
    pub(crate) fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }
}

/// Threads that wait for a change of what a [`Mutex`] guards. Wakes without a reason: wait in a
/// loop over a predicate.
#[derive(Debug, Default)]
pub(crate) struct Condvar(parking_lot::Condvar);

#[allow(dead_code)] // the same face in every backend
impl Condvar {
    pub(crate) fn new() -> Self {
        Self(parking_lot::Condvar::new())
    }

    /// Lets go of the lock, waits for a notice or for `longest`, takes the lock again. True if it
    /// was the time.
    pub(crate) fn wait_for<'a, T>(
        &self,
        mut guard: MutexGuard<'a, T>,
        longest: std::time::Duration,
    ) -> (MutexGuard<'a, T>, bool) {
        let late = self.0.wait_for(&mut guard, longest).timed_out();
        (guard, late)
    }

    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }
}

/// A memory fence.
#[cfg(not(quintet_tsan))]
#[inline(always)]
pub(crate) fn fence(order: Ordering) {
    std::sync::atomic::fence(order);
}

/// ThreadSanitizer sees no fences. A read-modify-write of one word by everybody orders at least as
/// much: each call happens after every earlier one.
#[cfg(quintet_tsan)]
pub(crate) fn fence(_order: Ordering) {
    static MEETING_POINT: AtomicU64 = AtomicU64::new(0);
    MEETING_POINT.fetch_add(1, Ordering::SeqCst);
}

/// Declares a thread-local that is initialized without a lazy check where the backend allows it.
macro_rules! thread_local_cell {
    ($(#[$meta:meta])* static $name:ident: $ty:ty = $init:expr) => {
        std::thread_local! { $(#[$meta])* static $name: $ty = const { $init } }
    };
}
pub(crate) use thread_local_cell;

/// Declares a function that is `const` where the backend allows it.
macro_rules! const_where_possible {
    ($(#[$meta:meta])* $vis:vis fn $($rest:tt)*) => { $(#[$meta])* $vis const fn $($rest)* };
    ($(#[$meta:meta])* $vis:vis unsafe fn $($rest:tt)*) => { $(#[$meta])* $vis const unsafe fn $($rest)* };
}
pub(crate) use const_where_possible;
