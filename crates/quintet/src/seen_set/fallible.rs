//! Inserts that say what they lack.

use super::offer::IntoRecord;
use super::record::{Origin, Record};
use super::{Handle, Insertion, RecordId, SeenError, SeenSet};
use crate::sync::Ordering;
use crate::vocabulary::Fallible;
use std::hash::BuildHasher;

/// The inserts, for an `impl` block over the set or its handle.
macro_rules! inserts {
    ($($table:tt)*) => {
        impl<R: Record + ?Sized, S: BuildHasher> Fallible<'_, $($table)*> {
            /// As the method of the table, but a refused record is an error, and the set is then as
            /// before.
            #[inline(always)]
            pub fn insert<Q: IntoRecord<R>>(&self, record: Q) -> Result<Insertion, SeenError> {
                self.0.at()?.insert(record.offer(), Origin::default())
            }

            /// As the method of the table, but a refused record is an error, and the set is then as
            /// before.
            ///
            /// # Panics
            /// If the parent is another set's record.
            #[inline]
            pub fn insert_from<Q: IntoRecord<R>>(
                &self,
                record: Q,
                parent: RecordId,
                label: u32,
            ) -> Result<Insertion, SeenError> {
                let at = self.0.at()?;
                at.insert(record.offer(), at.origin(parent, label))
            }

            /// As the method of the table, but a refused record is an error, and the set is then as
            /// before.
            #[inline]
            pub fn insert_counted<Q: IntoRecord<R>>(
                &self,
                record: Q,
            ) -> Result<(Insertion, Option<u64>), SeenError> {
                let at = self.0.at()?;
                let insertion = at.insert(record.offer(), Origin::default())?;
                let counted = &at.inner.counted;
                // ORDERING: Relaxed: a number for each, in no order but its own.
                let count = || counted.fetch_add(1, Ordering::Relaxed) + 1;
                Ok((insertion, insertion.is_new().then(count)))
            }

            /// As the method of the table, but a refused record is an error: what came before it is
            /// in the set, no other is.
            pub fn insert_many<Q: IntoRecord<R>>(
                &self,
                records: impl IntoIterator<Item = Q>,
            ) -> Result<usize, SeenError> {
                let mut new = 0;
                self.insert_each(records, |insertion| new += usize::from(insertion.is_new()))?;
                Ok(new)
            }

            /// As the method of the table, but a refused record is an error: every record told of
            /// is in the set, no other is.
            pub fn insert_each<Q: IntoRecord<R>>(
                &self,
                records: impl IntoIterator<Item = Q>,
                tell: impl FnMut(Insertion),
            ) -> Result<(), SeenError> {
                let offers = records.into_iter().map(|record| (record.offer(), 0));
                self.0.at()?.insert_each(0, offers, tell)
            }

            /// As the method of the table, but a refused record is an error: every record told of
            /// is in the set, no other is.
            ///
            /// # Panics
            /// If the parent is another set's record.
            pub fn insert_each_from<Q: IntoRecord<R>>(
                &self,
                parent: RecordId,
                records: impl IntoIterator<Item = (Q, u32)>,
                tell: impl FnMut(Insertion),
            ) -> Result<(), SeenError> {
                let at = self.0.at()?;
                let parent = at.origin(parent, 0).parent;
                let offers = records.into_iter().map(|(record, label)| (record.offer(), label));
                at.insert_each(parent, offers, tell)
            }
        }
    };
}
inserts!(SeenSet<R, S>);
inserts!(Handle<'_, R, S>);
