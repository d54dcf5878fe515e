//! Sets in two copies, and copies that share what they hold: made, used and dropped by one
//! operation.

use crate::chance::Place;
use crate::context::{Context, Operation, fatal};
use crate::thing::{Key, Thing, ignore};
use quintet::TwinSet;
use quintet::twin_map::InertMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

pub(crate) fn operations() -> Vec<Operation> {
    vec![("a set in two copies", twin_set), ("copies that share", inert)]
}

fn twin_set(context: &Context) {
    let (mut writer, reader) = TwinSet::<Thing>::new().split();
    let mut guard = None;
    for _ in 0..context.chance.below(12) {
        let Ok(mut write) = writer.try_guard() else {
            guard = None;
            continue;
        };
        let _ = catch_unwind(AssertUnwindSafe(|| match context.chance.below(5) {
            0 | 1 => drop(write.insert(Thing::new(context.key()))),
            2 => drop(write.remove(&Key(context.key()))),
            3 => write.retain(|thing| {
                Context::enter_from(Place::Closure);
                thing.key() % 3 != 0
            }),
            _ => write.clear(),
        }));
        if context.chance.one_in(6) {
            write.discard();
        } else {
            write.publish();
        }
        if context.chance.one_in(3) {
            guard = Some(reader.pin());
        }
        guard.iter().flat_map(|guard| guard.iter()).for_each(|thing| ignore(thing.key()));
    }
}

fn check(map: &InertMap<u64, Vec<u64>>) {
    for (key, value) in map.iter() {
        if value.iter().any(|word| word != key) || value.len() != 5 {
            fatal("a value that nobody put there");
        }
    }
}

fn inert(context: &Context) {
    let (mut writer, reader) =
        InertMap::builder().capacity(context.world.mood.capacity).build_inert();
    let mut guard = None;
    for _ in 0..context.chance.below(16) {
        let Ok(mut write) = writer.guard_timeout(std::time::Duration::ZERO) else {
            guard = None;
            continue;
        };
        for _ in 0..context.chance.below(6) {
            let key = context.key();
            let _ = catch_unwind(AssertUnwindSafe(|| match context.chance.below(6) {
                0..4 => drop(write.insert(key, vec![key; 5]).map(Vec::len)),
                4 => drop(write.remove(&key).map(Vec::len)),
                _ => write.retain(|key, _| {
                    Context::enter_from(Place::Closure);
                    key % 3 != 0
                }),
            }));
            check(&write);
        }
        match context.chance.below(6) {
            0 => write.discard(),
            1 if context.world.mood.forgets => std::mem::forget(write),
            2 => drop(write),
            _ => drop(write.publish()),
        }
        writer.evicted().take(3).for_each(|value| ignore(value.len()));
        if context.chance.one_in(3) {
            guard = Some(reader.pin());
        }
        guard.iter().for_each(|guard| check(guard));
    }
    if context.chance.one_in(2) {
        drop(writer);
    }
    check(&reader.pin());
}
