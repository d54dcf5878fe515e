//! What a map and a set say in the same words: how much there is, and every form of a batch.

/// How many there are, for a table and its handles. `look` gives a guard, or None where there is
/// nothing to see.
macro_rules! counts {
    ($what:literal) => {
        #[doc = concat!("The number of ", $what, ".")]
        pub fn len(&self) -> usize {
            self.look().map_or(0, |version| version.len())
        }

        #[doc = concat!("True if there are no ", $what, ".")]
        pub fn is_empty(&self) -> bool {
            self.len() == 0
        }

        #[doc = concat!("How many ", $what, " fit before a copy grows.")]
        pub fn capacity(&self) -> usize {
            self.look().map_or(0, |version| version.capacity())
        }
    };
}

/// A batch by `&self`: waiting, not waiting, waiting with a limit, and waiting without a thread.
macro_rules! batches {
    ($guard:ident<$($of:ident),+>, $($example:literal),+) => {
        /// Many changes in one version, published when the closure returns. Other writers wait
        /// meanwhile. If it panics, none of them has happened.
        ///
        /// # Panics
        /// If this thread holds an old read guard of this table, or is inside of a batch of it;
        /// [`try_batch`](Self::try_batch) returns the first as a value.
        #[doc(alias("commit", "rcu", "publish"))]
        pub fn batch<R>(&self, work: impl FnOnce(&mut $guard<'_, $($of),+>) -> R) -> R {
            self.desk.made().write(|write| work($guard::wrap(write)))
        }

        /// [`batch`](Self::batch) without waiting, for other writers or for readers.
        pub fn try_batch<R>(
            &self,
            work: impl FnOnce(&mut $guard<'_, $($of),+>) -> R,
        ) -> Result<R, GuardError> {
            let shared = self.desk.made();
            shared.write_within(Patience::None, |write| work($guard::wrap(write)))
        }

        /// [`batch`](Self::batch), waiting at most so long for its turn and for readers.
        pub fn batch_timeout<R>(
            &self,
            most: Duration,
            work: impl FnOnce(&mut $guard<'_, $($of),+>) -> R,
        ) -> Result<R, GuardError> {
            let end = Instant::now().checked_add(most);
            let patience = end.map_or(Patience::Forever, Patience::Until);
            self.desk.made().write_within(patience, |write| work($guard::wrap(write)))
        }

        /// [`batch`](Self::batch) for tasks: waits for its turn and for readers without blocking a
        /// thread. Needs no particular runtime. The closure runs in one go, when it can.
        ///
        /// ```
        /// # async fn example() -> Result<(), quintet::twin_map::GuardError> {
        $(#[doc = $example])+
        /// # Ok(())
        /// # }
        /// ```
        pub async fn batch_async<R>(
            &self,
            work: impl FnOnce(&mut $guard<'_, $($of),+>) -> R,
        ) -> Result<R, GuardError> {
            let (shared, mut work) = (self.desk.made(), Some(work));
            std::future::poll_fn(|task| {
                shared.poll_write(task.waker(), |write| {
                    let work = work.take().expect("a finished future is not polled again");
                    work($guard::wrap(write))
                })
            })
            .await
        }
    };
}

pub(super) use {batches, counts};
