//! `WordMap`: plain words, and words of types that would not survive a foreign one.

use crate::chance::{Chance, Mood, Place};
use crate::context::{Bench, Context, Family, Operation, Seat, Shelf, World, common, fatal};
use crate::kept::Kept;
use crate::thing::ignore;
use quintet::word_map::{Handle, Pin, Word};
use quintet::{Compute, WordMap, word_type};
use std::rc::Rc;
use std::sync::Arc;

pub(crate) type Plain = WordMap<u64, u64>;
pub(crate) type Typed = WordMap<Label, &'static Beacon>;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Label(char);
word_type!(Label(char));

/// A place that nobody moves, with a mark.
#[derive(Debug)]
pub(crate) struct Beacon(u64);

const MARK: u64 = 0xbeac_0000_beac_0000;
static BEACONS: [Beacon; 4] = [Beacon(MARK), Beacon(MARK), Beacon(MARK), Beacon(MARK)];

/// Words of a type: how they are chosen, and whether they are what they should be.
pub(crate) trait Vocabulary:
    Family<Own = Handle<'static, Self::Key, Self::Value>, Pin = Pin<'static, Self::Key, Self::Value>>
{
    type Key: Word;
    type Value: Word;
    fn key(context: &Context) -> Self::Key;
    fn value(context: &Context) -> Self::Value;
    fn look(value: Self::Value);
    fn map(&self) -> &WordMap<Self::Key, Self::Value>;
    fn owned(self: &Arc<Self>) -> Handle<'static, Self::Key, Self::Value>;
}

impl Vocabulary for Plain {
    type Key = u64;
    type Value = u64;
    fn key(context: &Context) -> u64 {
        // Every word is a legal key.
        [0, u64::MAX][context.chance.below(2)] ^ context.key()
    }
    fn value(context: &Context) -> u64 {
        context.chance.next()
    }
    fn look(_: u64) {}
    fn map(&self) -> &Self {
        self
    }
    fn owned(self: &Arc<Self>) -> Handle<'static, Self::Key, Self::Value> {
        self.owned_handle()
    }
}

impl Vocabulary for Typed {
    type Key = Label;
    type Value = &'static Beacon;
    fn key(context: &Context) -> Label {
        Label(char::from_u32(0x1_0000 + context.key() as u32).unwrap_or('?'))
    }
    fn value(context: &Context) -> &'static Beacon {
        context.chance.of(&BEACONS)
    }
    fn look(value: &'static Beacon) {
        if value.0 != MARK {
            fatal("a value that nobody put there");
        }
    }
    fn map(&self) -> &Self {
        self
    }
    fn owned(self: &Arc<Self>) -> Handle<'static, Self::Key, Self::Value> {
        self.owned_handle()
    }
}

macro_rules! family {
    ($map:ty, $key:ty, $value:ty, $name:literal, $field:ident, $more:expr) => {
        impl Family for $map {
            type Own = Handle<'static, $key, $value>;
            type Pin = Pin<'static, $key, $value>;
            const NAME: &'static str = $name;

            fn fresh(mood: &Mood, chance: &Chance) -> Self {
                WordMap::builder()
                    .capacity(mood.capacity)
                    .m(1 + chance.below(64))
                    .seed(chance.next())
                    .build()
            }
            fn own(&'static self) -> Self::Own {
                self.handle()
            }
            fn pin(&'static self) -> Option<Self::Pin> {
                Some(self.pin())
            }
            fn shelf(world: &World) -> &Shelf<Self> {
                &world.$field
            }
            fn bench(context: &Context) -> &Bench<Self> {
                &context.$field
            }
            fn operations() -> Vec<Operation> {
                [reads::<Self>(), writes::<Self>(), common::<Self>(), $more].concat()
            }
        }
    };
}
family!(Plain, u64, u64, "WordMap", plain, counts());
family!(Typed, Label, &'static Beacon, "typed WordMap", typed, vec![]);

/// Works on the handle or guard of a seat, whichever it is.
macro_rules! at {
    ($seat:expr, $handle:ident => $work:expr) => {
        match $seat.inside() {
            Seat::Own($handle) => $work,
            Seat::Pin($handle) => $work,
        }
    };
}

/// Does something with a handle of some map, or the map itself, and a key.
macro_rules! with {
    ($map:ty, $context:expr, |$handle:ident, $key:pat_param| $work:expr) => {{
        let $key = <$map>::key($context);
        if $context.chance.one_in(3) {
            let table = $context.table::<$map>();
            let $handle = table.map();
            $work
        } else {
            let seat = $context.seat::<$map>();
            at!(seat, $handle => $work)
        }
    }};
}

fn reads<F: Vocabulary>() -> Vec<Operation> {
    vec![
        ("get", |context| {
            with!(F, context, |handle, key| handle.get(key).into_iter().for_each(F::look))
        }),
        ("contains", |context| with!(F, context, |handle, key| ignore(handle.contains_key(key)))),
        ("get_many", |context| {
            with!(F, context, |handle, _| {
                let keys: Vec<_> = (0..context.chance.below(40)).map(|_| F::key(context)).collect();
                let mut values = vec![None; keys.len()];
                handle.get_many(&keys, &mut values);
                values.into_iter().flatten().for_each(F::look);
            });
        }),
        ("stash an iterator", |context| {
            let seat = context.seat::<F>();
            let mut held = Kept::new(seat, |seat| at!(seat, handle => handle.iter()));
            context.stash(move || held.inside_mut().take(5).for_each(|(_, value)| F::look(value)));
        }),
        ("walk", |context| {
            with!(F, context, |handle, _| {
                for (_, value) in handle.iter() {
                    F::look(value);
                    Context::enter_from(Place::Closure);
                }
            });
        }),
        ("figures", |context| {
            let table = context.table::<F>();
            let (stats, bytes) = (table.map().stats(), table.map().memory_bytes());
            std::hint::black_box((stats, bytes, table.map().is_empty()));
        }),
        ("forget an iterator", |context| {
            if context.world.mood.forgets {
                with!(F, context, |handle, _| std::mem::forget(handle.iter()));
            }
        }),
    ]
}

fn writes<F: Vocabulary>() -> Vec<Operation> {
    vec![
        ("insert", |context| {
            with!(F, context, |handle, key| ignore(handle.insert(key, F::value(context))))
        }),
        ("fallible insert", |context| {
            with!(F, context, |handle, key| {
                ignore(handle.fallible().insert(key, F::value(context)));
            });
        }),
        ("insert_new", |context| {
            with!(F, context, |handle, key| {
                let stored = handle.insert_new(key, F::value(context));
                stored.err().into_iter().for_each(|rejected| F::look(rejected.current));
            });
        }),
        ("insert_many", |context| {
            let entry = |_| {
                Context::enter_from(Place::Iterator);
                (F::key(context), F::value(context))
            };
            let entries = (0..context.chance.below(60)).map(entry);
            with!(F, context, |handle, _| ignore(handle.insert_many(entries)));
        }),
        ("remove_many", |context| {
            let key = |_| {
                Context::enter_from(Place::Iterator);
                F::key(context)
            };
            let keys = (0..context.chance.below(60)).map(key);
            with!(F, context, |handle, _| ignore(handle.remove_many(keys)));
        }),
        ("extend", |context| {
            let entry = |_| {
                Context::enter_from(Place::Iterator);
                (F::key(context), F::value(context))
            };
            let table = context.table::<F>();
            let mut map = table.map();
            map.extend((0..context.chance.below(60)).map(entry));
        }),
        ("remove", |context| {
            with!(F, context, |handle, key| handle.remove(key).into_iter().for_each(F::look));
        }),
        ("compare_exchange", |context| {
            with!(F, context, |handle, key| {
                let old = handle.get(key).unwrap_or(F::value(context));
                Context::enter_from(Place::Closure);
                let _ = handle.compare_exchange(key, old, F::value(context));
            });
        }),
        ("update", |context| {
            with!(F, context, |handle, key| {
                handle.update(key, |old| {
                    F::look(old);
                    Context::enter_from(Place::Closure);
                    F::value(context)
                });
            });
        }),
        ("update, and stash an iterator of the same handle", update_and_iterate::<F>),
        ("own the map", own_the_map::<F>),
        ("copy the map", copy_the_map::<F>),
        ("compute", |context| {
            with!(F, context, |handle, key| {
                let done = handle.compute(key, |old| {
                    old.into_iter().for_each(F::look);
                    Context::enter_from(Place::Closure);
                    match context.chance.below(3) {
                        0 => Compute::Keep,
                        1 => Compute::Remove,
                        _ => Compute::Insert(F::value(context)),
                    }
                });
                done.before.into_iter().chain(done.after).for_each(F::look);
            });
        }),
        ("update_or_insert_with", |context| {
            with!(F, context, |handle, key| {
                let value = || {
                    Context::enter_from(Place::Closure);
                    F::value(context)
                };
                F::look(handle.update_or_insert_with(key, |_| value(), value));
            });
        }),
        ("remove_if", |context| {
            with!(F, context, |handle, key| {
                let removed = handle.remove_if(key, |value| {
                    F::look(value);
                    Context::enter_from(Place::Closure);
                    context.chance.one_in(2)
                });
                removed.unwrap_or_else(Some).into_iter().for_each(F::look);
            });
        }),
        ("get_or_insert_with", |context| {
            with!(F, context, |handle, key| {
                F::look(handle.get_or_insert_with(key, || {
                    Context::enter_from(Place::Closure);
                    F::value(context)
                }));
            });
        }),
        ("retain", |context| {
            with!(F, context, |handle, _| {
                handle.retain(|_, value| {
                    F::look(value);
                    Context::enter_from(Place::Closure);
                    !context.chance.one_in(2)
                });
            });
        }),
        ("clear", |context| with!(F, context, |handle, _| handle.clear())),
        ("stash a drain", |context| {
            let mut held =
                Kept::new(context.seat::<F>(), |seat| at!(seat, handle => handle.drain()));
            context.stash(move || held.inside_mut().take(3).for_each(|(_, value)| F::look(value)));
        }),
        ("reserve", |context| {
            with!(F, context, |handle, _| handle.reserve(context.chance.below(300)))
        }),
        ("try_reserve too much", |context| {
            with!(F, context, |handle, _| {
                assert!(handle.try_reserve(usize::MAX >> context.chance.below(12)).is_err());
            });
        }),
        ("churn", |context| {
            with!(F, context, |handle, key| {
                for _ in 0..1 + context.chance.below(4) {
                    handle.reserve(100 + context.chance.below(900));
                    handle.insert(key, F::value(context));
                    handle.shrink_to_fit();
                }
            });
        }),
        ("shrink_to_fit", |context| with!(F, context, |handle, _| handle.shrink_to_fit())),
        ("flush", |context| with!(F, context, |handle, _| handle.flush())),
    ]
}

fn update_and_iterate<F: Vocabulary>(context: &Context) {
    let seat = context.seat::<F>();
    let key = F::key(context);
    let iterate = |old| {
        let mut held = Kept::new(Rc::clone(&seat), |seat| at!(seat, handle => handle.iter()));
        context.stash(move || held.inside_mut().take(5).for_each(|(_, value)| F::look(value)));
        old
    };
    at!(seat, handle => handle.update(key, iterate));
}

/// Keeps a handle that owns its map, and may be the last that does; its iterators have seats of
/// their own.
fn own_the_map<F: Vocabulary>(context: &Context) {
    let handle = context.table::<F>().owned();
    let mut others = vec![handle.clone()];
    let (key, value) = (F::key(context), F::value(context));
    context.stash(move || {
        F::look(handle.get_or_insert(key, value));
        handle.values().take(3).for_each(F::look);
        drop(others.pop());
    });
}

/// Maps made of another one.
fn copy_the_map<F: Vocabulary>(context: &Context) {
    let table = context.table::<F>();
    let mut all = table.map().clone().into_iter();
    Context::enter_from(Place::Iterator);
    all.by_ref().take(5).for_each(|(_, value)| F::look(value));
    context.stash(move || all.by_ref().take(5).for_each(|(_, value)| F::look(value)));
    std::hint::black_box(table.map() == table.map());
}

fn counts() -> Vec<Operation> {
    vec![
        ("count", |context| {
            let way = context.chance.below(7);
            let by = context.chance.next();
            with!(Plain, context, |handle, key| {
                ignore(match way {
                    0 => handle.fetch_add(key, by),
                    1 => handle.fetch_sub(key, by),
                    2 => handle.fetch_max(key, by),
                    3 => handle.fetch_min(key, by),
                    4 => handle.fetch_and(key, by),
                    5 => handle.fetch_or(key, by),
                    _ => handle.fetch_xor(key, by),
                });
            });
        }),
        ("collect a map of its own", |context| {
            let entry = |_| {
                Context::enter_from(Place::Iterator);
                (context.key(), context.chance.next())
            };
            let map: Plain = (0..context.chance.below(90)).map(entry).collect();
            std::hint::black_box(format!("{map:?}"));
        }),
    ]
}
