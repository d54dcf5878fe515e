//! A reference that does not keep what it names.

use super::Arc;

/// Names what an [`Arc`] keeps. Model checkers have none such: there it keeps it.
#[derive(Debug)]
pub(crate) struct Weak<T>(
    #[cfg(not(any(quintet_loom, quintet_shuttle)))] std::sync::Weak<T>,
    #[cfg(any(quintet_loom, quintet_shuttle))] Arc<T>,
);

impl<T> Weak<T> {
    pub(crate) fn of(shared: &Arc<T>) -> Self {
        #[cfg(not(any(quintet_loom, quintet_shuttle)))]
        return Self(Arc::downgrade(shared));
        #[cfg(any(quintet_loom, quintet_shuttle))]
        return Self(Arc::clone(shared));
    }

    /// What it names, if somebody still keeps it.
    pub(crate) fn get(&self) -> Option<Arc<T>> {
        #[cfg(not(any(quintet_loom, quintet_shuttle)))]
        return self.0.upgrade();
        #[cfg(any(quintet_loom, quintet_shuttle))]
        return Some(Arc::clone(&self.0));
    }
}
