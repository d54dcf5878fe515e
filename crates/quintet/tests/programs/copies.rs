//! `CopyMap`: entries that lie in the table, and are copied whole or not at all.

use crate::chance::{Chance, Mood, Place};
use crate::context::{Bench, Context, Family, Operation, Seat, Shelf, World, common, fatal};
use crate::kept::Kept;
use crate::thing::{Mix, ignore};
use quintet::copy_map::{Handle, Pin};
use quintet::{Compute, CopyMap, plain};
use std::hash::{Hash, Hasher};

plain! {
    /// A key whose hash and comparison go on with the program, and at times lie.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Number(u64);

    /// A value that tells a torn copy from a whole one.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub(crate) struct Whole([u64; 3]);
}

pub(crate) type Copies = CopyMap<Number, Whole, Mix>;

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        Context::enter_from(Place::Eq);
        Context::answer(self.0 == other.0)
    }
}
impl Eq for Number {}

impl Hash for Number {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Context::enter_from(Place::Hash);
        state.write_u64(Context::twist(self.0));
    }
}

impl Whole {
    fn new(key: Number, stamp: u64) -> Self {
        Self([key.0, stamp, !(key.0 ^ stamp)])
    }

    /// Looks whether one writer has written all of it, for this key.
    fn look(self, context: &Context, key: Number) {
        let [owner, stamp, check] = self.0;
        if check != !(owner ^ stamp) {
            fatal(&format!("a torn copy: {owner:#x}, {stamp:#x}, {check:#x}"));
        }
        if owner != key.0 && context.world.mood.lie == 0 {
            fatal("a value of another key");
        }
    }
}

impl Family for Copies {
    type Own = Handle<'static, Number, Whole, Mix>;
    type Pin = Pin<'static, Number, Whole, Mix>;
    const NAME: &'static str = "CopyMap";

    fn fresh(mood: &Mood, chance: &Chance) -> Self {
        let hasher = Mix { seed: chance.next(), mask: mood.hash_mask };
        let builder = CopyMap::<Number, Whole>::builder().capacity(mood.capacity);
        builder.shards(*chance.of(&[1, 2, 8])).hasher(hasher).build()
    }
    fn own(&'static self) -> Self::Own {
        self.handle()
    }
    fn pin(&'static self) -> Option<Self::Pin> {
        Some(self.pin())
    }
    fn shelf(world: &World) -> &Shelf<Self> {
        &world.copies
    }
    fn bench(context: &Context) -> &Bench<Self> {
        &context.copies
    }
    fn operations() -> Vec<Operation> {
        [reads(), writes(), common::<Self>()].concat()
    }
}

/// Does something with a handle of some map, or the map itself, and a key.
macro_rules! with {
    ($context:expr, |$handle:ident, $key:pat_param| $work:expr) => {{
        let $key = Number($context.key());
        if $context.chance.one_in(3) {
            let $handle = $context.table::<Copies>();
            $work
        } else {
            let seat = $context.seat::<Copies>();
            match seat.inside() {
                Seat::Own($handle) => $work,
                Seat::Pin($handle) => $work,
            }
        }
    }};
}

fn made(context: &Context, key: Number) -> Whole {
    Context::enter_from(Place::Closure);
    Whole::new(key, context.chance.next())
}

fn entry(context: &Context) -> (Number, Whole) {
    Context::enter_from(Place::Iterator);
    let key = Number(context.key());
    (key, Whole::new(key, context.chance.next()))
}

fn reads() -> Vec<Operation> {
    vec![
        ("get", |context| {
            with!(context, |handle, key| {
                handle.get(&key).into_iter().for_each(|value| value.look(context, key));
                handle.contains_key(&key)
            });
        }),
        ("get_many", |context| {
            with!(context, |handle, _| {
                let some = 0..context.chance.below(40);
                let keys: Vec<_> = some.map(|_| Number(context.key())).collect();
                let mut values = vec![None; keys.len()];
                handle.get_many(&keys, &mut values);
                let found = keys.iter().zip(values).filter_map(|(key, value)| Some((*key, value?)));
                found.for_each(|(key, value)| value.look(context, key));
            });
        }),
        ("stash an iterator", |context| {
            let mut held = Kept::new(context.table::<Copies>(), |map| map.iter());
            context.stash(move || held.inside_mut().take(5).for_each(ignore));
        }),
        ("walk", |context| {
            with!(context, |handle, _| {
                for (key, value) in handle.iter() {
                    value.look(context, key);
                    Context::enter_from(Place::Closure);
                }
            });
        }),
        ("figures", |context| {
            let map = context.table::<Copies>();
            std::hint::black_box((map.stats(), map.memory_bytes(), map.len(), map.capacity()));
        }),
    ]
}

fn writes() -> Vec<Operation> {
    vec![
        ("insert", |context| {
            with!(context, |handle, key| {
                let old = handle.insert(key, Whole::new(key, context.chance.next()));
                old.into_iter().for_each(|value| value.look(context, key));
            });
        }),
        ("fallible insert", |context| {
            with!(context, |handle, key| ignore(handle.fallible().insert(key, Whole::new(key, 1))));
        }),
        ("insert_new", |context| {
            with!(context, |handle, key| {
                let refused = handle.insert_new(key, Whole::new(key, 2)).err();
                refused.into_iter().for_each(|refused| refused.current.look(context, key));
            });
        }),
        ("get_or_insert_with", |context| {
            with!(context, |handle, key| {
                handle.get_or_insert_with(key, || made(context, key)).look(context, key);
            });
        }),
        ("update", |context| {
            with!(context, |handle, key| {
                let next = |value: Whole| {
                    value.look(context, key);
                    made(context, key)
                };
                handle.update(&key, next).into_iter().for_each(|value| value.look(context, key));
            });
        }),
        ("update_or_insert_with", |context| {
            with!(context, |handle, key| {
                let make = || made(context, key);
                handle.update_or_insert_with(key, |_| made(context, key), make).look(context, key);
            });
        }),
        ("compute", |context| {
            with!(context, |handle, key| {
                let done = handle.compute(key, |found| {
                    found.into_iter().for_each(|value| value.look(context, key));
                    match context.chance.below(3) {
                        0 => Compute::Keep,
                        1 => Compute::Remove,
                        _ => Compute::Insert(made(context, key)),
                    }
                });
                let both = done.before.into_iter().chain(done.after);
                both.for_each(|value| value.look(context, key));
            });
        }),
        ("compare_exchange", |context| {
            with!(context, |handle, key| {
                let seen = handle.get(&key).unwrap_or(Whole::new(key, 3));
                Context::enter_from(Place::Closure);
                ignore(handle.compare_exchange(&key, seen, Whole::new(key, 4)).is_ok());
            });
        }),
        ("remove", |context| {
            with!(context, |handle, key| {
                handle.remove(&key).into_iter().for_each(|value| value.look(context, key));
            });
        }),
        ("remove_if", |context| {
            with!(context, |handle, key| {
                let agree = |_: Whole| made(context, key).0[1] % 2 == 0;
                ignore(handle.remove_if(&key, agree).is_ok());
            });
        }),
        ("many", |context| {
            with!(context, |handle, _| {
                let some = 0..context.chance.below(60);
                handle.insert_many(some.clone().map(|_| entry(context)));
                handle.remove_many(some.map(|_| entry(context).0));
            });
        }),
        ("retain", |context| {
            with!(context, |handle, _| {
                handle.retain(|key, value| {
                    value.look(context, key);
                    Context::enter_from(Place::Closure);
                    context.chance.one_in(2)
                });
            });
        }),
        ("clear", |context| with!(context, |handle, _| handle.clear())),
        ("stash a drain", |context| {
            let mut held = Kept::new(context.table::<Copies>(), |map| map.drain());
            context.stash(move || held.inside_mut().take(3).for_each(ignore));
        }),
        ("churn", |context| {
            with!(context, |handle, key| {
                for _ in 0..1 + context.chance.below(4) {
                    handle.reserve(100 + context.chance.below(900));
                    handle.insert(key, Whole::new(key, 5));
                    handle.shrink_to_fit();
                }
            });
        }),
        ("copy the map", |context| {
            let map = context.table::<Copies>();
            let copy = Copies::clone(&map);
            std::hint::black_box(copy == *map);
            copy.into_iter().take(5).for_each(|(key, value)| value.look(context, key));
        }),
        ("flush", |context| with!(context, |handle, _| handle.flush())),
    ]
}
