//! `HashMap` and `HashSet`, of things: what a map adds to the set it stands on, and what it lends.

use crate::chance::{Chance, Mood, Place};
use crate::context::{Bench, Context, Family, Operation, Seat, Shelf, World, common, fatal};
use crate::kept::Kept;
use crate::thing::{Key, Mix, Thing, ignore};
use quintet::hash_map::{self, Ref, Retired};
use quintet::{Compute, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

pub(crate) type ThingMap = HashMap<Thing, Thing, Mix>;
pub(crate) type ThingHashSet = HashSet<Thing, Mix>;

macro_rules! family {
    ($table:ty, $own:ty, $pin:ty, $name:literal, $field:ident, $operations:expr) => {
        impl Family for $table {
            type Own = $own;
            type Pin = $pin;
            const NAME: &'static str = $name;

            fn fresh(mood: &Mood, chance: &Chance) -> Self {
                let hasher = Mix { seed: chance.next(), mask: mood.hash_mask };
                let builder = Self::builder_of().capacity(mood.capacity);
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
                [$operations, common::<Self>()].concat()
            }
            fn empty(&self) {
                self.pin().clear();
                self.flush();
            }
        }
    };
}
family!(
    ThingMap,
    hash_map::QuietHandle<'static, Thing, Thing, Mix>,
    hash_map::Pin<'static, Thing, Thing, Mix>,
    "HashMap",
    maps,
    [reads(), writes(), changes(), entries(), flights(), owners()].concat()
);
family!(
    ThingHashSet,
    hash_map::SetQuietHandle<'static, Thing, Mix>,
    hash_map::SetPin<'static, Thing, Mix>,
    "HashSet",
    sets,
    elements()
);

/// The builder of a table, whatever its hasher.
trait Builds {
    type Builder;
    fn builder_of() -> Self::Builder;
}
impl Builds for ThingMap {
    type Builder = hash_map::HashMapBuilder<Thing, Thing>;
    fn builder_of() -> Self::Builder {
        HashMap::builder()
    }
}
impl Builds for ThingHashSet {
    type Builder = hash_map::HashSetBuilder<Thing>;
    fn builder_of() -> Self::Builder {
        HashSet::builder()
    }
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

/// A value remembers the key that it was stored under.
fn pair(context: &Context) -> (Thing, Thing) {
    let key = context.key();
    (Thing::new(key), Thing::new(key))
}

fn value_of(key: u64) -> Thing {
    Context::enter_from(Place::Closure);
    Thing::new(key)
}

/// What was found by a key has that key, unless somebody lies.
fn look(context: &Context, thing: &Thing, key: u64) {
    if thing.key() != key && context.world.mood.lie == 0 {
        fatal("a thing of another key");
    }
}

fn reads() -> Vec<Operation> {
    vec![
        ("get, and stash it", |context| {
            let (seat, key) = (context.seat::<ThingMap>(), Key(context.key()));
            let held = Kept::new(seat, |seat| at!(seat, handle => handle.get_key_value(&key)));
            if let Some((owner, value)) = *held.inside() {
                look(context, owner, key.0);
                look(context, value, key.0);
                context.stash(move || {
                    held.inside().iter().for_each(|(key, value)| ignore((key.key(), value.key())));
                });
            }
        }),
        ("get by the map, and stash it", |context| {
            let key = Key(context.key());
            let held = Kept::new(context.table::<ThingMap>(), |map| map.get(&key));
            held.inside().iter().for_each(|value| look(context, value, key.0));
            context.stash(move || held.inside().iter().for_each(|value| ignore(value.key())));
        }),
        ("with, get_cloned, contains_key", |context| {
            let (map, key) = (context.table::<ThingMap>(), Key(context.key()));
            map.with(&key, |value| {
                Context::enter_from(Place::Closure);
                look(context, value, key.0);
            });
            map.get_cloned(&key).iter().for_each(|value| look(context, value, key.0));
            map.contains_key(&key);
        }),
        ("get_many, and stash them", |context| {
            let keys: Vec<_> = (0..context.chance.below(40)).map(|_| Key(context.key())).collect();
            let held = Kept::new(context.table::<ThingMap>(), |map| {
                let mut values = Vec::new();
                values.resize_with(keys.len(), || None);
                map.get_many(&keys, &mut values);
                values
            });
            context.stash(move || {
                held.inside().iter().flatten().for_each(|value| ignore(value.key()));
            });
        }),
        ("stash a part of what was found", |context| {
            let key = Key(context.key());
            let held = Kept::new(context.table::<ThingMap>(), |map| {
                map.get(&key).map(|found| Ref::map(found, |value| value))
            });
            context.stash(move || held.inside().iter().for_each(|value| ignore(value.key())));
        }),
        ("stash a walk", |context| {
            let exact = context.chance.one_in(2);
            let mut held = Kept::new(context.table::<ThingMap>(), |map| {
                if exact { map.iter_exact() } else { map.iter() }
            });
            context.stash(move || {
                held.inside_mut()
                    .take(5)
                    .for_each(|entry| ignore((entry.key().key(), entry.key())));
            });
        }),
        ("walk by a guard", |context| {
            let seat = context.seat::<ThingMap>();
            at!(seat, handle => for (key, value) in handle {
                key.key();
                Context::enter_from(Place::Closure);
                value.key();
            });
        }),
        ("figures", |context| {
            let map = context.table::<ThingMap>();
            std::hint::black_box((map.stats(), map.memory_bytes(), map.len(), map.capacity()));
        }),
    ]
}

fn writes() -> Vec<Operation> {
    vec![
        ("insert, and stash what was there", |context| {
            let (key, value) = pair(context);
            let held = Kept::new(
                context.seat::<ThingMap>(),
                |seat| at!(seat, handle => handle.insert(key, value)),
            );
            if held.inside().is_some() {
                context.stash(move || ignore(held.inside().map(Thing::key)));
            }
        }),
        ("insert by the map", |context| {
            let (key, value) = pair(context);
            drop(context.table::<ThingMap>().insert(key, value));
        }),
        ("insert by an owned handle, and stash the handle", |context| {
            let handle = context.table::<ThingMap>().owned_handle();
            let (key, value) = pair(context);
            handle.insert(key, value);
            let key = Key(context.key());
            context.stash(move || ignore(handle.get(&key).map(|found| found.key().key())));
        }),
        ("fallible insert", |context| {
            let (key, value) = pair(context);
            ignore(context.table::<ThingMap>().fallible().insert(key, value).is_ok());
        }),
        ("insert_new", |context| {
            let (key, value) = pair(context);
            let added = context.table::<ThingMap>();
            let added = added.insert_new(key, value);
            added.err().iter().for_each(|rejected| ignore(rejected.current.key().key()));
        }),
        ("swap", |context| {
            let (map, (key, value)) = (context.table::<ThingMap>(), pair(context));
            let key = Key(key.key());
            ignore(map.swap(&key, value).map(|old| old.key().key()).is_ok());
        }),
        ("remove, and stash it", |context| {
            let key = Key(context.key());
            let held = Kept::new(context.table::<ThingMap>(), |map| map.remove(&key));
            held.inside().iter().for_each(|value| look(context, value, key.0));
            context.stash(move || held.inside().iter().for_each(|value| ignore(value.key().key())));
        }),
        ("get_or_insert_with", |context| {
            let (seat, key) = (context.seat::<ThingMap>(), context.key());
            at!(seat, handle => look(
                context,
                handle.get_or_insert_with(Thing::new(key), || value_of(key)),
                key,
            ));
        }),
        ("insert_many, remove_many, contains_many", |context| {
            let seat = context.seat::<ThingMap>();
            let pairs: Vec<_> = (0..context.chance.below(40)).map(|_| pair(context)).collect();
            let keys: Vec<_> = pairs.iter().map(|(key, _)| Key(key.key())).collect();
            let entries = pairs.into_iter().inspect(|_| Context::enter_from(Place::Iterator));
            at!(seat, handle => handle.insert_many(entries));
            let mut there = vec![false; keys.len()];
            at!(seat, handle => handle.contains_many(&keys, &mut there));
            at!(seat, handle => handle.remove_many(&keys[keys.len() / 2..]));
        }),
        ("retain", |context| {
            let seat = context.seat::<ThingMap>();
            let keep = |key: &Thing, value: &Thing| {
                Context::enter_from(Place::Closure);
                key.key() ^ value.key() == 0 && context.chance.one_in(2)
            };
            at!(seat, handle => handle.retain(keep));
        }),
        ("extract_if", |context| {
            let (map, few) = (context.table::<ThingMap>(), context.chance.below(5));
            let taken = map.extract_if(|key, _| value_of(key.key()).key() % 2 == 0);
            taken.take(few).for_each(|entry| ignore(entry.key().key()));
        }),
        ("stash a drain", |context| {
            let mut held = Kept::new(context.table::<ThingMap>(), |map| map.drain());
            context.stash(move || {
                held.inside_mut().take(3).for_each(|entry| ignore(entry.key().key()));
            });
        }),
        ("clear", |context| at!(context.seat::<ThingMap>(), handle => handle.clear())),
        ("churn", |context| {
            let seat = context.seat::<ThingMap>();
            for _ in 0..1 + context.chance.below(4) {
                let ((key, value), more) = (pair(context), 100 + context.chance.below(900));
                at!(seat, handle => handle.reserve(more));
                at!(seat, handle => handle.insert(key, value).map(Thing::key));
                at!(seat, handle => handle.shrink_to_fit());
            }
        }),
        ("quiescent", |context| context.alone::<ThingMap>(|handle| handle.quiescent())),
        ("flush", |context| context.alone::<ThingMap>(|handle| handle.flush())),
        ("flush the map", |context| context.table::<ThingMap>().flush()),
    ]
}

/// Read, think, write.
fn changes() -> Vec<Operation> {
    vec![
        ("update", |context| {
            let (seat, key) = (context.seat::<ThingMap>(), Key(context.key()));
            at!(seat, handle => handle.update(&key, |value| value_of(value.key())).map(Thing::key));
        }),
        ("update_or_insert_with", |context| {
            let (map, key) = (context.table::<ThingMap>(), context.key());
            let update = |value: &Thing| value_of(value.key());
            look(
                context,
                &map.update_or_insert_with(Thing::new(key), update, || value_of(key)),
                key,
            );
        }),
        ("compute, and stash both", |context| {
            let key = context.key();
            let say = |found: Option<&Thing>| {
                found.map(Thing::key);
                match context.chance.below(3) {
                    0 => Compute::Keep,
                    1 => Compute::Remove,
                    _ => Compute::Insert(value_of(key)),
                }
            };
            let held =
                Kept::new(context.table::<ThingMap>(), |map| map.compute(Thing::new(key), say));
            context.stash(move || {
                let both = [&held.inside().before, &held.inside().after];
                both.into_iter().flatten().for_each(|value| ignore(value.key().key()));
            });
        }),
        ("compare_exchange", |context| {
            let (seat, key) = (context.seat::<ThingMap>(), Key(context.key()));
            let [current, new] = [(); 2].map(|()| Thing::new(key.0));
            at!(seat, handle => {
                ignore(handle.compare_exchange(&key, &current, new).map(Thing::key).is_ok());
            });
        }),
        ("remove_if", |context| {
            let (map, key) = (context.table::<ThingMap>(), Key(context.key()));
            let agree = |value: &Thing| value_of(value.key()).key() % 2 == 0;
            ignore(map.remove_if(&key, agree).is_ok());
        }),
        ("work alone", |context| {
            let mut map: ThingMap = HashMap::with_hasher(Mix { seed: 1, mask: u64::MAX });
            map.insert_many((0..context.chance.below(200)).map(|_| pair(context)));
            map.values_mut().for_each(|value| *value = value_of(value.key()));
            let key = Key(context.key());
            map.get_mut(&key).map(|value| std::mem::replace(value, value_of(key.0)));
            let clone = map.clone();
            std::hint::black_box(clone == map);
            map.into_iter().take(5).for_each(|(key, value)| ignore((key.key(), value.key())));
            clone.into_values().take(5).for_each(|value| ignore(value.key()));
        }),
    ]
}

fn entries() -> Vec<Operation> {
    vec![
        ("entry: and_update, or_insert", |context| {
            let (map, (key, value)) = (context.table::<ThingMap>(), pair(context));
            let there = map.entry(key).and_update(|value| value_of(value.key())).or_insert(value);
            let held = there.key().key();
            Context::enter_from(Place::Closure);
            look(context, &there, held);
        }),
        ("entry: and_modify, or_insert_with_key", |context| {
            let (map, key) = (context.table::<ThingMap>(), context.key());
            let entry =
                map.entry(Thing::new(key)).and_modify(|value| *value = value_of(value.key()));
            entry.or_insert_with_key(|key| value_of(key.key())).key().key();
        }),
        ("entry, kept and dropped", |context| {
            let (map, key) = (context.table::<ThingMap>(), context.key());
            let entry = map.entry(Thing::new(key));
            Context::enter_from(Place::Closure);
            match context.chance.below(3) {
                0 => ignore(entry.remove_entry().map(|entry| entry.key().key())),
                1 => ignore(entry.insert_entry(value_of(key)).key().key()),
                _ => drop(entry),
            }
        }),
    ]
}

/// One maker, and those who wait for it. Among threads whose comparisons lie a flight is not the
/// same one to all of them.
fn flights() -> Vec<Operation> {
    vec![
        ("get_or_compute", |context| {
            if context.world.mood.lie == 0 {
                let (map, key) = (context.table::<ThingMap>(), context.key());
                look(context, &map.get_or_compute(Thing::new(key), || value_of(key)), key);
            }
        }),
        ("get_or_try_compute", |context| {
            if context.world.mood.lie == 0 {
                let (map, key) = (context.table::<ThingMap>(), context.key());
                let fails = context.chance.one_in(2);
                let make = || if fails { Err(value_of(key)) } else { Ok(value_of(key)) };
                let made = map.get_or_try_compute(Thing::new(key), make);
                made.as_ref().map_or_else(Thing::key, |value| value.key().key());
            }
        }),
        ("get_or_compute_timeout", |context| {
            let (map, key) = (context.table::<ThingMap>(), context.key());
            let patience = Duration::from_micros(50);
            let made = map.get_or_compute_timeout(Thing::new(key), patience, || value_of(key));
            ignore(made.map(|value| value.key().key()).is_ok());
        }),
    ]
}

/// What was taken out for good.
fn owners() -> Vec<Operation> {
    fn stash(context: &Context, mut retired: Option<Retired<Thing, Thing>>) {
        context.stash(move || {
            let Some(taken) = retired.take() else { return };
            let (key, value) = (taken.key().key(), Thing::key(&taken));
            match taken.try_into_entry() {
                Ok(owned) => assert_eq!((owned.0.key(), owned.1.key()), (key, value)),
                Err(taken) => retired = Some(taken),
            }
        });
    }
    vec![
        ("take by the map, and stash it", |context| {
            let taken = context.table::<ThingMap>().take(&Key(context.key()));
            stash(context, taken);
        }),
        ("take by a guard, and stash it", |context| {
            let (seat, key) = (context.seat::<ThingMap>(), Key(context.key()));
            let taken = at!(seat, handle => handle.take(&key));
            drop(seat);
            stash(context, taken);
        }),
        ("take, and wait a little", |context| {
            let taken = context.table::<ThingMap>().take(&Key(context.key()));
            let Some(taken) = taken else { return };
            Context::enter_from(Place::Closure);
            let patience = Duration::from_micros(100);
            taken.wait_timeout(patience).map_or_else(|error| drop(error.retired), drop);
        }),
    ]
}

fn elements() -> Vec<Operation> {
    fn some(context: &Context) -> Vec<Thing> {
        (0..context.chance.below(40)).map(|_| Thing::new(context.key())).collect()
    }
    vec![
        ("get, and stash it", |context| {
            let key = Key(context.key());
            let held = Kept::new(context.table::<ThingHashSet>(), |set| set.get(&key));
            held.inside().iter().for_each(|thing| look(context, thing, key.0));
            context.stash(move || held.inside().iter().for_each(|thing| ignore(thing.key())));
        }),
        ("insert", |context| {
            let seat = context.seat::<ThingHashSet>();
            at!(seat, handle => handle.insert(Thing::new(context.key())));
        }),
        ("insert_new, replace, get_or_insert", |context| {
            let seat = context.seat::<ThingHashSet>();
            let thing = || Thing::new(context.key());
            at!(seat, handle => ignore(handle.insert_new(thing()).map_err(|no| no.value.key())));
            at!(seat, handle => handle.replace(thing()).map(Thing::key));
            at!(seat, handle => handle.get_or_insert(thing()).key());
        }),
        ("remove, remove_if", |context| {
            let (set, key) = (context.table::<ThingHashSet>(), Key(context.key()));
            let agree = |thing: &Thing| value_of(thing.key()).key() % 2 == 0;
            ignore(set.remove_if(&key, agree).is_ok());
            set.remove(&Key(context.key()));
        }),
        ("take, and stash it", |context| {
            let mut taken = context.table::<ThingHashSet>().take(&Key(context.key()));
            context.stash(move || {
                let Some(thing) = taken.take() else { return };
                thing.key();
                taken = thing.try_into_inner().err();
            });
        }),
        ("many", |context| {
            let (seat, things) = (context.seat::<ThingHashSet>(), some(context));
            let keys: Vec<_> = things.iter().map(|thing| Key(thing.key())).collect();
            at!(seat, handle => handle.insert_many(things));
            at!(seat, handle => handle.contains_many(&keys, &mut vec![false; keys.len()]));
            at!(seat, handle => handle.remove_many(&keys[keys.len() / 2..]));
        }),
        ("stash a walk", |context| {
            let mut held = Kept::new(context.table::<ThingHashSet>(), |set| set.iter());
            context.stash(move || held.inside_mut().take(5).for_each(|thing| ignore(thing.key())));
        }),
        ("algebra", |context| {
            let sets = [(); 2].map(|()| context.table::<ThingHashSet>());
            let [one, other]: &[Arc<ThingHashSet>; 2] = &sets;
            one.union(other).take(9).for_each(|thing| ignore(value_of(thing.key())));
            one.intersection(other).take(9).for_each(|thing| ignore(thing.key()));
            one.difference(other).take(9).for_each(|thing| ignore(thing.key()));
        }),
        ("retain, extract_if, clear", |context| {
            let set = context.table::<ThingHashSet>();
            set.retain(|thing| value_of(thing.key()).key() % 3 != 0);
            let taken = set.extract_if(|thing| value_of(thing.key()).key() % 2 == 0);
            taken.take(3).for_each(|thing| ignore(thing.key()));
            if context.chance.one_in(3) {
                set.clear();
            }
        }),
        ("flush", |context| context.alone::<ThingHashSet>(|handle| handle.flush())),
    ]
}
