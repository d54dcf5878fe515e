//! A map that keeps its keys: `hit`, `miss`, `update`.

use super::general::{census, fill};
use crate::race::crew::{crew, for_a_while, joint_rate, wrong};
use crate::race::family::{Bench, Heat, Sample, Wrong};
use crate::race::keys::{Draw, Uniform, Zipf};
use crate::race::stint::Stint;
use quintet_rivals::Kind;
use quintet_rivals::general::{Access, BATCH, Map};
use std::marker::PhantomData;

/// Entries from here on are never inserted.
const ABSENT: u64 = 1 << 35;

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

    /// Runs `operation` with numbers from `draw`; it says whether the answer was right.
    #[inline(always)]
    fn run<D: Draw>(
        &self,
        heat: &Heat,
        stint: Stint,
        draw: impl Fn(u64, u64, usize) -> D + Sync,
        operation: impl for<'a> Fn(&mut M::Access<'a>, u64) -> bool + Sync,
    ) -> Result<Sample, Wrong> {
        let laps = crew(heat.threads, |thread, gate| {
            let mut access = self.map.access();
            let mut draw = draw(self.keys, heat.round, thread);
            for_a_while(stint, gate, || {
                let mut wrong = 0;
                for _ in 0..BATCH {
                    wrong += u64::from(!operation(&mut access, draw.next()));
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
        let hit = |access: &mut M::Access<'_>, index| {
            T::ask(index, |key| access.get(key, |value| T::matches(index, value))) == Some(true)
        };
        let miss = |access: &mut M::Access<'_>, index: u64| {
            T::ask(index + ABSENT, |key| access.get(key, |_| ())).is_none()
        };
        let update = |access: &mut M::Access<'_>, index| {
            T::ask(index, |key| access.update(key, T::value(index, heat.round)))
        };
        match heat.workload.name {
            "hit" | "hit-str" => self.run(heat, stint, Uniform::new, hit),
            "hit-zipf" => self.run(heat, stint, Zipf::new, hit),
            "miss" => self.run(heat, stint, Uniform::new, miss),
            "update" | "update-str" => self.run(heat, stint, Uniform::new, update),
            "update-zipf" => self.run(heat, stint, Zipf::new, update),
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
