//! The table of a handle: borrowed, or kept alive by a share of it.
//!
//! **D1.** The pointer is valid for as long as the home lives: a borrowed table outlives `'t`, a
//! shared one lives while the share does, and the share is the home's.
//! **D2.** What a home lends is borrowed from the home, never for `'t`: the handle of a shared
//! table is `Handle<'static>`, and its table may go with it.
//! **D3.** The pointer is no reference: a handle that is passed by value may be the last owner of
//! its table, and free what a reference would promise to be there until the call returns.
//!
//! A handle declares its seat before its home, so that the seat is given back while the table is
//! there.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;

/// A table that a handle works on.
pub struct Home<'t, T> {
    table: NonNull<T>,
    share: Option<Arc<T>>,
    borrowed: PhantomData<&'t T>,
}

// SAFETY: it lends the table (`Sync`) and may drop it elsewhere (`Send`), as an `Arc` does.
unsafe impl<T: Send + Sync> Send for Home<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Home<'_, T> {}

impl<'t, T> Home<'t, T> {
    /// A table that somebody else keeps.
    #[inline(always)]
    pub(crate) fn borrowed(table: &'t T) -> Self {
        Self { table: NonNull::from(table), share: None, borrowed: PhantomData }
    }
}

impl<T> Home<'static, T> {
    /// A table that lives at least as long as this.
    pub(crate) fn shared(table: Arc<T>) -> Self {
        Self { table: NonNull::from(&*table), share: Some(table), borrowed: PhantomData }
    }
}

impl<T> Clone for Home<'_, T> {
    fn clone(&self) -> Self {
        Self { table: self.table, share: self.share.clone(), borrowed: PhantomData }
    }
}

impl<T> Deref for Home<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: D1; borrowed from the home (D2).
        unsafe { self.table.as_ref() }
    }
}

impl<T: fmt::Debug> fmt::Debug for Home<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
mod tests {
    use super::Home;
    use std::sync::Arc;

    #[test]
    fn a_shared_table_lives_as_long_as_its_last_home() {
        let table = Arc::new(String::from("here"));
        let home = Home::shared(Arc::clone(&table));
        let other = home.clone();
        drop(table);
        drop(home);
        assert_eq!(*other, "here");
        assert_eq!(std::thread::spawn(move || other.len()).join().unwrap(), 4);
    }

    #[test]
    fn a_borrowed_table_is_left_to_its_owner() {
        let table = String::from("here");
        drop(Home::borrowed(&table));
        assert_eq!(*Home::borrowed(&table), table);
    }
}
