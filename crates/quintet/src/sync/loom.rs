//! The backend under `--cfg quintet_loom`: every access is a step that loom reorders.

pub(crate) use ::loom::hint::spin_loop;
pub(crate) use ::loom::sync::Arc;
pub(crate) use ::loom::sync::atomic::{
    AtomicBool, AtomicI64, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize,
    Ordering, fence,
};
pub(crate) use ::loom::thread;

/// Whether nobody else has a share. There are no weak ones.
#[allow(dead_code)] // the same face in every backend
pub(crate) fn is_alone<T>(shared: &mut Arc<T>) -> bool {
    Arc::get_mut(shared).is_some()
}

/// A mutex that is never poisoned.
#[derive(Debug)]
pub(crate) struct Mutex<T>(::loom::sync::Mutex<T>);

pub(crate) type MutexGuard<'a, T> = ::loom::sync::MutexGuard<'a, T>;

#[allow(dead_code)] // the same face in every backend
impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(::loom::sync::Mutex::new(value))
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
#[derive(Debug)]
pub(crate) struct HandOver<T>(::loom::cell::UnsafeCell<T>);

#[allow(dead_code)] // the same face in every backend
impl<T> HandOver<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(::loom::cell::UnsafeCell::new(value))
    }

    /// Runs `f` with the place. Who may do what with it, and when, is the protocol's business.
    pub(crate) fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        self.0.with(f)
    }

    /// Runs `f` with the place, to change it.
    pub(crate) fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        self.0.with_mut(f)
    }
}

/// Threads that wait for a change of what a [`Mutex`] guards. Time does not pass in a model: only a
/// notice ends a wait.
#[derive(Debug)]
pub(crate) struct Condvar(::loom::sync::Condvar);

#[allow(dead_code)] // the same face in every backend
impl Condvar {
    pub(crate) fn new() -> Self {
        Self(::loom::sync::Condvar::new())
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

/// Declares a thread-local of the model's thread.
macro_rules! thread_local_cell {
    ($(#[$meta:meta])* static $name:ident: $ty:ty = $init:expr) => {
        ::loom::thread_local! { $(#[$meta])* static $name: $ty = $init }
    };
}
pub(crate) use thread_local_cell;

/// Declares a function that is `const` where the backend allows it.
macro_rules! const_where_possible {
    ($(#[$meta:meta])* $vis:vis fn $($rest:tt)*) => { $(#[$meta])* $vis fn $($rest)* };
    ($(#[$meta:meta])* $vis:vis unsafe fn $($rest:tt)*) => { $(#[$meta])* $vis unsafe fn $($rest)* };
}
pub(crate) use const_where_possible;

/// Checks every order of steps with at most `preemptions` preemptions, or with as many as
/// `LOOM_MAX_PREEMPTIONS` asks for.
#[cfg(test)]
pub(crate) fn model(preemptions: usize, check: impl Fn() + Sync + Send + 'static) {
    let mut builder = ::loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(preemptions));
    builder.max_branches = 20_000;
    builder.check(check);
}

/// The same for tables that migrate: up to one preemption, and for half a minute unless
/// LOOM_MAX_PREEMPTIONS asks for all. A model that is stopped has not seen every order.
#[cfg(test)]
pub(crate) fn model_of_growth(check: impl Fn() + Sync + Send + 'static) {
    let mut builder = ::loom::model::Builder::new();
    if builder.preemption_bound.is_none() {
        builder.preemption_bound = Some(1);
        builder.max_duration = Some(std::time::Duration::from_secs(30));
    }
    builder.max_branches = 20_000;
    builder.check(check);
}
