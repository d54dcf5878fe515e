//! Gets, inserts and removes over a key space of which about half is present: `mix90`, `mix50`.
//! What is inserted is made inside the clock, and what is removed is freed there.

use super::general::{census, fill};
use crate::race::crew::{Lap, crew, for_a_while, joint_rate, wrong};
use crate::race::family::{Bench, Heat, Sample, Wrong};
use crate::race::keys::{Choices, Drawn, Law};
use crate::race::stint::Stint;
use quintet_rivals::Kind;
use quintet_rivals::general::{Access, BATCH, Map};
use std::marker::PhantomData;

/// A map that starts half full. What it must hold is known from the answers it gave.
pub(super) struct Mixed<T, M> {
    map: M,
    keys: u64,
    present: i64,
    kind: PhantomData<T>,
}

impl<T: Kind, M: Map<T>> Mixed<T, M> {
    /// A map made for `keys` entries, every other of them present.
    pub(super) fn new(keys: u64) -> Self {
        let map = M::with_capacity(keys as usize);
        fill::<T, M>(&map, 0, keys, 2);
        Self { map, keys, present: keys.div_ceil(2) as i64, kind: PhantomData }
    }

    /// Runs the mixture in which `writes` of 256 operations insert, and as many remove.
    #[inline(always)]
    fn run(&mut self, heat: &Heat, stint: Stint, writes: u64, law: Law) -> Result<Sample, Wrong> {
        let laps: Vec<(Lap, i64)> = crew(heat.threads, |thread, gate| {
            let mut access = self.map.access();
            let mut drawn = Drawn::<T>::new(law, self.keys, heat.round, thread);
            let mut choices = Choices::new(heat.round, thread);
            let mut net = 0;
            let lap = for_a_while(stint, gate, || {
                let mut wrong = 0;
                for _ in 0..BATCH {
                    let (key, choice) = (drawn.next(), choices.next());
                    if choice >= 2 * writes {
                        let right = access.get(key, |value| T::is_of(key, value));
                        wrong += u64::from(right == Some(false));
                    } else if choice < writes {
                        net += i64::from(access.insert(T::own(key), T::value_of(key, 0)));
                    } else {
                        net -= i64::from(access.remove(key));
                    }
                }
                access.quiet();
                (BATCH, wrong)
            });
            (lap, net)
        });
        self.present += laps.iter().map(|(_, net)| net).sum::<i64>();
        let laps: Vec<Lap> = laps.into_iter().map(|(lap, _)| lap).collect();
        Wrong::unless_zero(wrong(&laps), heat.workload.name)?;
        Ok(joint_rate(&laps))
    }
}

impl<T: Kind, M: Map<T>> Bench for Mixed<T, M> {
    fn round(&mut self, heat: &Heat, stint: Stint) -> Result<Sample, Wrong> {
        match heat.workload.name {
            "mix90" | "mix90-str" | "mix90-24b" | "mix90-key16" => {
                self.run(heat, stint, 13, Law::Uniform)
            }
            "mix90-zipf" => self.run(heat, stint, 13, Law::Zipf),
            "mix50" => self.run(heat, stint, 64, Law::Uniform),
            other => unreachable!("{other} is no workload of a half full map"),
        }
    }

    /// Every insert that said "new" minus every remove that said "was there" must be present. A map
    /// whose answers are known not to add up is out where threads meet, even if they happen to add
    /// up.
    fn check(&mut self, heat: &Heat) -> Result<(), Wrong> {
        let (present, foreign) = census::<T, M>(&self.map, self.keys);
        // The next workload starts from what is there.
        let expected = std::mem::replace(&mut self.present, present as i64);
        let believed = M::EXACT || heat.threads == 1;
        match (present, foreign) {
            (present, 0) if present as i64 == expected && believed => Ok(()),
            (present, 0) if present as i64 == expected => {
                Err(Wrong("loses answers where threads meet, if not in this round".to_owned()))
            }
            (present, foreign) => Err(Wrong(format!(
                "{present} entries at the end where the answers add up to {expected}, {foreign} \
                 with a foreign value"
            ))),
        }
    }
}
