//! The backend under `--cfg quintet_shuttle`: sequentially consistent, random schedules of many
//! steps.

pub(crate) use ::shuttle::hint::spin_loop;
pub(crate) use ::shuttle::sync::Arc;
pub(crate) use ::shuttle::sync::atomic::{
    AtomicBool, AtomicI64, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize,
    Ordering,
};
pub(crate) use ::shuttle::thread;

/// Whether nobody else has a share. There are no weak ones.
#[allow(dead_code)] // the same face in every backend
pub(crate) fn is_alone<T>(shared: &mut Arc<T>) -> bool {
    Arc::get_mut(shared).is_some()
}

/// A mutex that is never poisoned.
#[derive(Debug)]
pub(crate) struct Mutex<T>(::shuttle::sync::Mutex<T>);

pub(crate) type MutexGuard<'a, T> = ::shuttle::sync::MutexGuard<'a, T>;

#[allow(dead_code)] // the same face in every backend
impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(::shuttle::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.0.try_lock().ok()
    }

    pub(crate) fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// Returns at once, as a sleep that wakes for no reason.
#[allow(dead_code)] // the same face in every backend
pub(crate) fn park_timeout(_most: std::time::Duration) {
    thread::yield_now();
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

/// Threads that wait for a change of what a [`Mutex`] guards. Time does not pass in a model: only a
/// notice ends a wait.
#[derive(Debug)]
pub(crate) struct Condvar(::shuttle::sync::Condvar);

#[allow(dead_code)] // the same face in every backend
impl Condvar {
    pub(crate) fn new() -> Self {
        Self(::shuttle::sync::Condvar::new())
    }

    pub(crate) fn wait_for<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        _longest: std::time::Duration,
    ) -> (MutexGuard<'a, T>, bool) {
        (self.0.wait(guard).unwrap_or_else(|poisoned| poisoned.into_inner()), false)
    }

    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }
}

/// Every step is sequentially consistent already.
pub(crate) fn fence(_order: Ordering) {}

/// Declares a thread-local of the scheduled thread.
macro_rules! thread_local_cell {
    ($(#[$meta:meta])* static $name:ident: $ty:ty = $init:expr) => {
        ::shuttle::thread_local! { $(#[$meta])* static $name: $ty = $init }
    };
}
pub(crate) use thread_local_cell;

/// Declares a function that is `const` where the backend allows it.
macro_rules! const_where_possible {
    ($(#[$meta:meta])* $vis:vis fn $($rest:tt)*) => { $(#[$meta])* $vis fn $($rest)* };
    ($(#[$meta:meta])* $vis:vis unsafe fn $($rest:tt)*) => { $(#[$meta])* $vis unsafe fn $($rest)* };
}
pub(crate) use const_where_possible;

/// Runs so many random schedules and as many by priority. The first let threads take turns at every
/// step; the others let one stand still for as long as the rest need to move, free and fill again
/// what it looks at.
#[cfg(test)]
pub(crate) fn schedules(number: usize, check: impl Fn() + Send + Sync + 'static) {
    /// Times that the order of threads changes in a schedule by priority.
    const CHANGES: usize = 3;
    let check = std::sync::Arc::new(check);
    let again = std::sync::Arc::clone(&check);
    ::shuttle::check_random(move || check(), number);
    ::shuttle::check_pct(move || again(), number, CHANGES);
}
