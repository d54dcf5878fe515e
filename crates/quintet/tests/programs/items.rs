//! `ItemSet`, of boxes and of shared things.

use crate::chance::{Chance, Mood, Place};
use crate::context::{Bench, Context, Family, Operation, Seat, Shelf, World, common, fatal};
use crate::kept::Kept;
use crate::thing::{Key, Mix, Thing, ignore};
use quintet::item_set::{Handle, Pin, Pointer, QuietHandle};
use quintet::{Compute, ItemSet};
use std::rc::Rc;
use std::sync::Arc;

pub(crate) type BoxSet = ItemSet<Box<Thing>, Mix>;
pub(crate) type ArcSet = ItemSet<Arc<Thing>, Mix>;

/// A family of sets of things behind one kind of pointer.
pub(crate) trait Sets:
    Family<Own = QuietHandle<'static, Self::To, Mix>, Pin = Pin<'static, Self::To, Mix>>
{
    type To: Pointer<Item = Thing> + From<Thing> + 'static;
    fn set(&self) -> &ItemSet<Self::To, Mix>;
    fn owned(table: &Arc<Self>) -> Handle<'static, Self::To, Mix>;
}

impl Sets for BoxSet {
    type To = Box<Thing>;
    fn set(&self) -> &Self {
        self
    }
    fn owned(table: &Arc<Self>) -> Handle<'static, Self::To, Mix> {
        table.owned_handle()
    }
}

impl Sets for ArcSet {
    type To = Arc<Thing>;
    fn set(&self) -> &Self {
        self
    }
    fn owned(table: &Arc<Self>) -> Handle<'static, Self::To, Mix> {
        table.owned_handle()
    }
}

macro_rules! family {
    ($to:ty, $name:literal, $field:ident, $more:expr) => {
        impl Family for ItemSet<$to, Mix> {
            type Own = QuietHandle<'static, $to, Mix>;
            type Pin = Pin<'static, $to, Mix>;
            const NAME: &'static str = $name;

            fn fresh(mood: &Mood, chance: &Chance) -> Self {
                let hasher = Mix { seed: chance.next(), mask: mood.hash_mask };
                let builder = Self::builder_of().capacity(mood.capacity).ordered(chance.one_in(4));
                builder.shards(*chance.of(&[1, 2, 8])).hasher(hasher).build()
            }
            fn own(&'static self) -> Self::Own {
                self.quiet_handle()
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
                let here = [reads::<Self>(), writes::<Self>(), changes::<Self>(), lent::<Self>()];
                [here.concat(), owners::<Self>(), common::<Self>(), $more].concat()
            }
            fn empty(&self) {
                self.pin().clear();
                self.flush();
            }
        }

        impl Builds for ItemSet<$to, Mix> {
            fn builder_of() -> quintet::item_set::ItemSetBuilder<$to> {
                ItemSet::<$to>::builder()
            }
        }
    };
}
family!(Box<Thing>, "ItemSet", boxes, vec![]);
family!(Arc<Thing>, "shared ItemSet", arcs, shared());

trait Builds: Sets {
    fn builder_of() -> quintet::item_set::ItemSetBuilder<Self::To>;
}

/// Works on the handle or guard of a seat, whichever it is.
macro_rules! at {
    ($seat:expr, $handle:ident => $work:expr) => {
        match $seat.inside() {
            Seat::Own($handle) => $work,
            Seat::Pin($handle) => $work,
        }
    };
}

fn new_thing<F: Sets>(context: &Context) -> Thing {
    // Whose hash is not always the same cannot be taken out again, and would keep its table for
    // ever.
    let keeps = context.world.mood.lie == 0 && context.chance.one_in(16);
    let table = || -> Arc<dyn std::any::Any + Send + Sync> { context.table::<F>() };
    Thing::keeping(context.key(), keeps.then(table))
}

/// What was found by a key has that key, unless somebody lies.
fn look(context: &Context, thing: &Thing, key: Key) {
    if thing.key() != key.0 && context.world.mood.lie == 0 {
        fatal("a thing of another key");
    }
}

fn reads<F: Sets>() -> Vec<Operation> {
    vec![
        ("get, and stash it", |context| {
            let seat = context.seat::<F>();
            let key = Key(context.key());
            let held = Kept::new(seat, |seat| at!(seat, handle => handle.get(&key)));
            if let Some(thing) = *held.inside() {
                look(context, thing, key);
                context.stash(move || ignore(held.inside().map(Thing::key)));
            }
        }),
        ("get", |context| {
            let (seat, key) = (context.seat::<F>(), Key(context.key()));
            at!(seat, handle => handle.get(&key).into_iter().for_each(|thing| look(context, thing, key)));
        }),
        ("get_hashed", |context| {
            let (seat, key) = (context.seat::<F>(), Key(context.key()));
            let hash = at!(seat, handle => any_hash(context, handle.set().hash_of(&key)));
            at!(seat, handle => handle.get_hashed(hash, &key).map(Thing::key));
        }),
        ("contains, prefetch", |context| {
            let (seat, key) = (context.seat::<F>(), Key(context.key()));
            at!(seat, handle => handle.prefetch(any_hash(context, 0)));
            at!(seat, handle => handle.contains(&key));
        }),
        ("get_many, and stash them", |context| {
            let seat = context.seat::<F>();
            let keys: Vec<_> = (0..context.chance.below(40)).map(|_| Key(context.key())).collect();
            let held = Kept::new(seat, |seat| {
                let mut things = vec![None; keys.len()];
                at!(seat, handle => handle.get_many(&keys, &mut things));
                things
            });
            let look_at =
                move || held.inside().iter().flatten().for_each(|thing| ignore(thing.key()));
            look_at();
            context.stash(look_at);
        }),
        ("stash an iterator", |context| {
            let exact = context.chance.one_in(2);
            let mut held = Kept::new(
                context.seat::<F>(),
                |seat| at!(seat, handle => if exact { handle.iter_exact() } else { handle.iter() }),
            );
            context.stash(move || held.inside_mut().take(5).for_each(|thing| ignore(thing.key())));
        }),
        ("walk", |context| {
            let seat = context.seat::<F>();
            let walk = |thing: &Thing| {
                thing.key();
                Context::enter_from(Place::Closure);
                thing.key();
            };
            at!(seat, handle => handle.iter().for_each(walk));
        }),
        ("figures", |context| {
            let table = context.table::<F>();
            std::hint::black_box((
                table.set().stats(),
                table.set().memory_bytes(),
                table.set().is_empty(),
            ));
        }),
    ]
}

/// The hash of a key, or one that no key has, or another key's.
fn any_hash(context: &Context, right: u32) -> u32 {
    let odd = context.chance.next() as u32;
    *context.chance.of(&[
        right,
        0,
        u32::MAX,
        odd,
        odd & 0xffff_0000,
        odd & 0xffff,
        right & 0xffff_0000,
    ])
}

fn writes<F: Sets>() -> Vec<Operation> {
    vec![
        ("put", |context| {
            let (seat, thing) = (context.seat::<F>(), new_thing::<F>(context));
            at!(seat, handle => handle.insert(thing).map(Thing::key));
        }),
        ("put, and stash what was there", |context| {
            let thing = new_thing::<F>(context);
            let held =
                Kept::new(context.seat::<F>(), |seat| at!(seat, handle => handle.insert(thing)));
            if held.inside().is_some() {
                context.stash(move || ignore(held.inside().map(Thing::key)));
            }
        }),
        ("try_put", |context| {
            let (seat, thing) = (context.seat::<F>(), new_thing::<F>(context));
            at!(seat, handle => handle.fallible().insert(thing).ok().flatten().map(Thing::key));
        }),
        ("put_hashed", |context| {
            let (seat, thing) = (context.seat::<F>(), Thing::new(context.key()));
            let key = Key(thing.key());
            let hash = at!(seat, handle => any_hash(context, handle.set().hash_of(&key)));
            let thing = (!context.chance.one_in(3)).then(|| F::To::from(thing));
            at!(seat, handle => handle.put_hashed(hash, &key, thing).map(Thing::key));
        }),
        ("insert_new", |context| {
            let (seat, thing) = (context.seat::<F>(), new_thing::<F>(context));
            at!(seat, handle => handle.insert_new(thing).err().map(|rejected| rejected.current.key()));
        }),
        ("replace", |context| {
            let (seat, thing) = (context.seat::<F>(), new_thing::<F>(context));
            at!(seat, handle => drop(handle.replace(thing).map(Thing::key)));
        }),
        ("remove, and stash it", |context| {
            let key = Key(context.key());
            let held =
                Kept::new(context.seat::<F>(), |seat| at!(seat, handle => handle.remove(&key)));
            if held.inside().is_some() {
                context.stash(move || ignore(held.inside().map(Thing::key)));
            }
        }),
        ("get_or_insert_with", |context| {
            let (seat, key) = (context.seat::<F>(), Key(context.key()));
            let make = || {
                Context::enter_from(Place::Closure);
                Thing::new(key.0)
            };
            at!(seat, handle => look(context, handle.get_or_insert_with(&key, make), key));
        }),
        ("retain", |context| {
            let seat = context.seat::<F>();
            let keep = |thing: &Thing| {
                Context::enter_from(Place::Closure);
                thing.key() % 2 == 0 || context.chance.one_in(2)
            };
            at!(seat, handle => handle.retain(keep));
        }),
        ("clear", |context| at!(context.seat::<F>(), handle => handle.clear())),
        ("reserve", |context| {
            let more = context.chance.below(600);
            at!(context.seat::<F>(), handle => handle.reserve(more));
        }),
        ("try_reserve too much", |context| {
            let refused = at!(context.seat::<F>(), handle => handle.try_reserve(usize::MAX >> 2));
            assert!(refused.is_err());
        }),
        ("churn", |context| {
            let seat = context.seat::<F>();
            for _ in 0..1 + context.chance.below(4) {
                let more = 100 + context.chance.below(900);
                at!(seat, handle => handle.reserve(more));
                at!(seat, handle => handle.insert(new_thing::<F>(context)).map(Thing::key));
                at!(seat, handle => handle.shrink_to_fit());
            }
        }),
        ("shrink_to_fit", |context| at!(context.seat::<F>(), handle => handle.shrink_to_fit())),
        ("quiescent", |context| context.alone::<F>(|handle| handle.quiescent())),
        ("flush", |context| context.alone::<F>(|handle| handle.flush())),
        ("offline", |context| {
            context.alone::<F>(|handle| {
                let _offline = handle.offline();
                Context::enter_from(Place::Closure);
            });
        }),
        ("flush the set", |context| context.table::<F>().set().flush()),
    ]
}

/// What a closure makes of a thing: another of its key, after user code.
fn next_thing(thing: &Thing) -> Thing {
    let key = thing.key();
    Context::enter_from(Place::Closure);
    thing.key();
    Thing::new(key)
}

/// Read, think, write.
fn changes<F: Sets>() -> Vec<Operation> {
    vec![
        ("update", |context| {
            let (seat, key) = (context.seat::<F>(), Key(context.key()));
            at!(seat, handle => handle.update(&key, next_thing).map(Thing::key));
        }),
        ("update_or_insert", |context| {
            let (seat, thing) = (context.seat::<F>(), new_thing::<F>(context));
            at!(seat, handle => handle.update_or_insert(next_thing, thing).key());
        }),
        ("update_or_insert_with", |context| {
            let (seat, key) = (context.seat::<F>(), Key(context.key()));
            let make = || next_thing(&Thing::new(key.0));
            at!(seat, handle => handle.update_or_insert_with(&key, next_thing, make).key());
        }),
        ("compute, and stash both", |context| {
            let key = Key(context.key());
            let say = |found: Option<&Thing>| {
                let made = next_thing(found.unwrap_or(&Thing::new(key.0)));
                match context.chance.below(3) {
                    0 => Compute::Keep,
                    1 => Compute::Remove,
                    _ => Compute::Insert(F::To::from(made)),
                }
            };
            let held = Kept::new(
                context.seat::<F>(),
                |seat| at!(seat, handle => handle.compute(&key, say)),
            );
            context.stash(move || {
                let both = [held.inside().before, held.inside().after];
                both.into_iter().flatten().for_each(|thing| ignore(thing.key()));
            });
        }),
        ("compare_exchange", |context| {
            let (seat, key) = (context.seat::<F>(), Key(context.key()));
            at!(seat, handle => {
                let seen = handle.get(&key);
                Context::enter_from(Place::Closure);
                match seen {
                    Some(seen) => {
                        let new = Thing::new(seen.key());
                        handle.compare_exchange(seen, new).map(Thing::key).map_err(ignore).ok()
                    }
                    None => {
                        let [foreign, new] = [(); 2].map(|()| Thing::new(key.0));
                        handle.compare_exchange(&foreign, new).map(Thing::key).map_err(ignore).ok()
                    }
                }
            });
        }),
        ("remove_if", |context| {
            let (seat, key) = (context.seat::<F>(), Key(context.key()));
            let agree = |thing: &Thing| next_thing(thing).key() % 2 == 0;
            at!(seat, handle => ignore(handle.remove_if(&key, agree).map_err(Thing::key)));
        }),
        ("many", |context| {
            let seat = context.seat::<F>();
            let things: Vec<_> =
                (0..context.chance.below(40)).map(|_| new_thing::<F>(context)).collect();
            let keys: Vec<_> = things.iter().map(|thing| Key(thing.key())).collect();
            let mut there = vec![false; keys.len()];
            at!(seat, handle => handle.insert_many(things));
            at!(seat, handle => handle.contains_many(&keys, &mut there));
            at!(seat, handle => handle.remove_many(&keys[keys.len() / 2..]));
        }),
        ("drain", |context| {
            let seat = context.seat::<F>();
            let few = context.chance.below(5);
            at!(seat, handle => handle.drain().take(few).for_each(|thing| ignore(next_thing(thing))));
        }),
    ]
}

/// By those who are outside between operations: what they lend is stashed.
fn lent<F: Sets>() -> Vec<Operation> {
    vec![
        ("get by the set, and stash it", |context| {
            let key = Key(context.key());
            let held = Kept::new(context.table::<F>(), |table| table.set().get(&key));
            context.stash(move || held.inside().iter().for_each(|thing| ignore(thing.key())));
        }),
        ("insert by the set, and stash what was there", |context| {
            let thing = new_thing::<F>(context);
            let held = Kept::new(context.table::<F>(), |table| table.set().insert(thing));
            context.stash(move || held.inside().iter().for_each(|thing| ignore(thing.key())));
        }),
        ("update by an owned handle", |context| {
            let (table, key) = (context.table::<F>(), Key(context.key()));
            let handle = F::owned(&table);
            drop(table);
            let lent = handle.update(&key, next_thing);
            let again = handle.get(&key);
            lent.iter().chain(&again).for_each(|thing| ignore(thing.key()));
            Context::enter_from(Place::Closure);
            lent.iter().chain(&again).for_each(|thing| ignore(thing.key()));
            drop((lent, again));
            handle.remove(&key);
            handle.flush();
        }),
        ("stash a walk of the set", |context| {
            let mut held = Kept::new(context.table::<F>(), |table| table.set().iter());
            context.stash(move || held.inside_mut().take(5).for_each(|thing| ignore(thing.key())));
        }),
        ("drain by the set", |context| {
            let few = context.chance.below(5);
            let table = context.table::<F>();
            let drained: Vec<_> = table.set().drain().take(few).collect();
            Context::enter_from(Place::Closure);
            drained.iter().for_each(|thing| ignore(thing.key()));
        }),
    ]
}

/// Things that have left their set and are still owned.
fn owners<F: Sets>() -> Vec<Operation> {
    fn stash<F: Sets>(context: &Context, key: Option<Key>) {
        let thing = key.is_none().then(|| new_thing::<F>(context));
        let taken = |seat: &'static crate::context::Placed<F>| -> Option<Box<dyn Fn()>> {
            at!(seat, handle => {
                let removed = match (key, thing) {
                    (Some(key), _) => handle.remove_owned(&key),
                    (None, Some(thing)) => handle.insert_owned(thing),
                    (None, None) => None,
                };
                removed.map(|removed| Box::new(move || ignore(removed.key())) as Box<dyn Fn()>)
            })
        };
        let held = Kept::new(context.seat::<F>(), taken);
        if held.inside().is_some() {
            context.stash(move || held.inside().iter().for_each(|look| look()));
        }
    }
    vec![
        ("remove_owned", |context| stash::<F>(context, Some(Key(context.key())))),
        ("put_owned", |context| stash::<F>(context, None)),
    ]
}

fn shared() -> Vec<Operation> {
    vec![
        ("get_arc, and stash a clone", |context| {
            let (seat, key) = (context.seat::<ArcSet>(), Key(context.key()));
            let found = at!(seat, handle => handle.get_arc(&key).map(|found| Arc::clone(&found)));
            drop(seat);
            if let Some(found) = found {
                context.stash(move || ignore(found.key()));
            }
        }),
        ("get_arc, and stash it", |context| {
            let key = Key(context.key());
            let seat: Rc<_> = context.seat::<ArcSet>();
            let held = Kept::new(seat, |seat| at!(seat, handle => handle.get_arc(&key)));
            context.stash(move || held.inside().iter().for_each(|thing| ignore(thing.key())));
        }),
        ("put an arc that is in use", |context| {
            let thing = Arc::new(Thing::new(context.key()));
            let (seat, ours) = (context.seat::<ArcSet>(), Arc::clone(&thing));
            at!(seat, handle => handle.insert(thing).map(Thing::key));
            ours.key();
        }),
    ]
}
