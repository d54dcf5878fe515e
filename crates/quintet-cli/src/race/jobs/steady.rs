//! A map that keeps its keys: `hit`, `miss`, `update`.

use super::general::{census, fill};
use crate::race::crew::{crew, for_a_while_with, joint_rate, wrong};
use crate::race::family::{Bench, Heat, Sample, Wrong};
use crate::race::keys::{Drawn, Law};
use crate::race::stint::Stint;
use quintet_rivals::Kind;
use quintet_rivals::general::{Access, BATCH, Map};
use std::marker::PhantomData;

/// A full map.
pub(super) struct Steady<T, M> {
    map: M,
    keys: u64,
    kind: PhantomData<T>,
}

impl<T: Kind, M: Map<T>> Steady<T, M> {
    /// A map made for `keys` entries, and filled.
    pub(super) fn new(keys: u64) -> Self {
        let map = M::with_capacity(keys as usize);
        fill::<T, M>(&map, 0, keys, 1);
        Self { map, keys, kind: PhantomData }
    }

    /// Runs `operation` with keys of this law, each with a `value` that is made while the clock
    /// stands still; it says whether the answer was right.
    #[inline(always)]
    fn run<V>(
        &self,
        heat: &Heat,
        stint: Stint,
        law: Law,
        value: impl Fn(&T::Query) -> V + Sync,
        operation: impl for<'a> Fn(&mut M::Access<'a>, &T::Query, V) -> bool + Sync,
    ) -> Result<Sample, Wrong> {
        let laps = crew(heat.threads, |thread, gate| {
            let mut access = self.map.access();
            let draw = || Drawn::<T>::new(law, self.keys, heat.round, thread);
            // The second reads ahead, for what is made beforehand.
            let (mut drawn, mut ahead) = (draw(), draw());
            let values = Vec::with_capacity(BATCH as usize);
            let prepare = |values: &mut Vec<V>| {
                values.extend((0..BATCH).map(|_| value(ahead.next())));
            };
            for_a_while_with(stint, gate, values, prepare, |values| {
                let mut wrong = 0;
                for value in values.drain(..) {
                    wrong += u64::from(!operation(&mut access, drawn.next(), value));
                }
                access.quiet();
                (BATCH, wrong)
            })
        });
        Wrong::unless_zero(wrong(&laps), heat.workload.name)?;
        Ok(joint_rate(&laps))
    }
}

impl<T: Kind, M: Map<T>> Bench for Steady<T, M> {
    fn round(&mut self, heat: &Heat, stint: Stint) -> Result<Sample, Wrong> {
        let hit = |access: &mut M::Access<'_>, key: &T::Query, ()| {
            access.get(key, |value| T::is_of(key, value)) == Some(true)
        };
        let miss =
            |access: &mut M::Access<'_>, key: &T::Query, ()| access.get(key, |_| ()).is_none();
        let make = |key: &T::Query| T::value_of(key, heat.round);
        let update = |access: &mut M::Access<'_>, key: &T::Query, value| access.update(key, value);
        let update_alloc =
            |access: &mut M::Access<'_>, key: &T::Query, ()| access.update(key, make(key));
        match heat.workload.name {
            "hit" | "hit-str" | "hit-24b" | "hit-key16" => {
                self.run(heat, stint, Law::Uniform, |_| (), hit)
            }
            "hit-zipf" => self.run(heat, stint, Law::Zipf, |_| (), hit),
            "miss" => self.run(heat, stint, Law::Absent, |_| (), miss),
            "update" | "update-str" | "update-24b" | "update-key16" => {
                self.run(heat, stint, Law::Uniform, make, update)
            }
            "update-zipf" => self.run(heat, stint, Law::Zipf, make, update),
            "update-alloc" => self.run(heat, stint, Law::Uniform, |_| (), update_alloc),
            other => unreachable!("{other} is no workload of a full map"),
        }
    }

    /// Lookups are right or wrong by themselves; overwriting must leave every entry in its place.
    fn check(&mut self, heat: &Heat) -> Result<(), Wrong> {
        if !heat.workload.name.starts_with("update") {
            return Ok(());
        }
        match census::<T, M>(&self.map, self.keys) {
            (present, 0) if present == self.keys => Ok(()),
            (present, foreign) => Err(Wrong(format!(
                "{present} of {} entries at the end, {foreign} with a foreign value",
                self.keys
            ))),
        }
    }
}
