//! `TwinMap`: readers, guards of all kinds, a writer or the table itself.

use crate::chance::{Chance, Mood, Place};
use crate::context::{Bench, Context, Family, Operation, Shelf, World, common, fatal, locked};
use crate::kept::Kept;
use crate::thing::{Key, Mix, Thing, ignore};
use quintet::twin_map::{Entry, MapReader, SharedReader, Stalled, Version, WriteGuard, Writer};
use quintet::{Compute, TwinMap};
use std::convert::Infallible;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context as Task, Waker};
use std::time::Duration;

type Map = Version<Thing, Thing, Mix>;
type Front = TwinMap<Thing, Thing, Mix>;
type Write<'a> = WriteGuard<'a, Thing, Thing, Mix>;

/// A map with all that is made of it once: a writer, or a table that is shared, called front here.
/// A front has guards for the time of an operation only: its writers wait for them.
pub(crate) struct TwinTable {
    /// Taken out by whoever writes.
    writer: Mutex<Option<Writer<Thing, Thing, Mix>>>,
    front: Option<Front>,
    reader: Mutex<MapReader<Thing, Thing, Mix>>,
    shared: SharedReader<Map>,
}

impl Family for TwinTable {
    type Own = MapReader<Thing, Thing, Mix>;
    type Pin = Infallible;
    const NAME: &'static str = "TwinMap";

    fn fresh(mood: &Mood, chance: &Chance) -> Self {
        let hasher = Mix { seed: chance.next(), mask: mood.hash_mask };
        let stalled = *chance.of(&[Stalled::Wait, Stalled::Copy]);
        let builder = TwinMap::builder().hasher(hasher).stalled(stalled).capacity(mood.capacity);
        let builder = if chance.one_in(3) { builder.fences() } else { builder };
        let (writer, reader) = builder.build().split();
        let shared = writer.shared_reader();
        let (writer, front) =
            if chance.one_in(3) { (None, Some(writer.into_map())) } else { (Some(writer), None) };
        Self { writer: Mutex::new(writer), front, reader: Mutex::new(reader), shared }
    }
    fn own(&'static self) -> Self::Own {
        locked(&self.reader).clone()
    }
    fn pin(&'static self) -> Option<Infallible> {
        None
    }
    fn shelf(world: &World) -> &Shelf<Self> {
        &world.twins
    }
    fn bench(context: &Context) -> &Bench<Self> {
        &context.twins
    }
    fn operations() -> Vec<Operation> {
        [reads(), writes(), fronts(), crate::aside::operations(), common::<Self>()].concat()
    }
}

/// Counts a read guard of a map with a front for as long as it lives.
struct Reading<'c>(&'c Context);

impl<'c> Reading<'c> {
    fn new(context: &'c Context) -> Self {
        context.reading.set(context.reading.get() + 1);
        Self(context)
    }
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        self.0.reading.set(self.0.reading.get() - 1);
    }
}

fn look(context: &Context, map: &Map) {
    walk(map);
    let key = Key(context.key());
    if let Some((found, value)) = map.get_key_value(&key) {
        value.key();
        if found.key() != key.0 && context.world.mood.lie == 0 {
            fatal("an entry of another key");
        }
    }
    walk(map);
}

fn walk(map: &Map) {
    map.iter().take(6).for_each(|(key, value)| ignore((key.key(), value.key())));
}

fn reads() -> Vec<Operation> {
    vec![
        ("read", |context| {
            let seat = context.seat::<TwinTable>();
            let reader = seat.inside().handle();
            let _reading = Reading::new(context);
            let guard = reader.pin();
            look(context, &guard);
            Context::enter_from(Place::Closure);
            look(context, &guard);
        }),
        ("read by the shared reader", |context| {
            let table = context.table::<TwinTable>();
            let _reading = Reading::new(context);
            let guard = table.shared.pin();
            look(context, &guard);
        }),
        ("stash a guard", |context| {
            let seat = context.seat::<TwinTable>();
            if seat.owner().front.is_some() {
                return;
            }
            let held = Kept::new(seat, |seat| seat.inside().handle().pin());
            context.stash(move || walk(held.inside()));
        }),
        ("stash a shared guard", |context| {
            let table = context.table::<TwinTable>();
            if table.front.is_none() {
                let held = Kept::new(table, |table| table.shared.pin());
                context.stash(move || walk(held.inside()));
            }
        }),
        ("stash an owned guard", |context| {
            let table = context.table::<TwinTable>();
            let held = table.shared.owned_pin();
            context.stash(move || walk(&held));
        }),
        ("wait for a version", |context| {
            let seat = context.seat::<TwinTable>();
            let reader = seat.inside().handle();
            let version = context.chance.below(12) as u64;
            if let Ok(guard) = reader.wait_for_timeout(version, Duration::from_micros(50)) {
                walk(&guard);
            }
            std::hint::black_box(reader.is_final());
        }),
        ("forget a guard", |context| {
            let seat = context.seat::<TwinTable>();
            let reader = seat.inside().handle();
            if context.world.mood.forgets && seat.owner().front.is_none() {
                std::mem::forget(reader.pin());
            }
        }),
    ]
}

/// The writer of a map, put back when the operation is over.
struct Borrowed(Arc<TwinTable>, Option<Writer<Thing, Thing, Mix>>);

impl Drop for Borrowed {
    fn drop(&mut self) {
        *locked(&self.0.writer) = self.1.take();
    }
}

fn with_writer(context: &Context, work: impl FnOnce(&mut Writer<Thing, Thing, Mix>)) {
    let table = context.table::<TwinTable>();
    let Some(writer) = locked(&table.writer).take() else { return };
    let mut borrowed = Borrowed(table, Some(writer));
    if let Some(writer) = &mut borrowed.1 {
        work(writer);
    }
}

fn batch(context: &Context, mut write: Write<'_>) {
    for _ in 0..context.chance.below(8) {
        let caught = catch_unwind(AssertUnwindSafe(|| change(context, &mut write)));
        if let Err(panic) = caught {
            if context.chance.one_in(2) {
                resume_unwind(panic);
            }
        }
        look(context, &write);
    }
    match context.chance.below(8) {
        0 => write.discard(),
        1 | 2 => drop(write),
        3 if context.world.mood.forgets => std::mem::forget(write),
        _ => drop(write.publish()),
    }
}

fn writes() -> Vec<Operation> {
    vec![
        ("write", |context| {
            with_writer(context, |writer| {
                if let Ok(write) = writer.try_guard() {
                    batch(context, write);
                }
            });
        }),
        ("write in time", |context| {
            with_writer(context, |writer| {
                if let Ok(write) = writer.guard_timeout(Duration::from_micros(200)) {
                    batch(context, write);
                }
            });
        }),
        ("write as a task", |context| {
            with_writer(context, |writer| {
                let mut coming = writer.guard_async();
                let ready = Pin::new(&mut coming).poll(&mut Task::from_waker(Waker::noop()));
                if let std::task::Poll::Ready(Ok(write)) = ready {
                    batch(context, write);
                }
            });
        }),
    ]
}

fn change(context: &Context, write: &mut Write<'_>) {
    let key = Key(context.key());
    let thing = || {
        Context::enter_from(Place::Closure);
        Thing::new(context.key())
    };
    match context.chance.below(14) {
        0..3 => drop(write.insert(Thing::new(key.0), thing())),
        3 => drop(write.remove(&key)),
        4 => drop(write.update(&key, |old| Thing::new(old.key() + thing().key()))),
        5 => drop(write.modify(&key, |old| *old = thing())),
        6 => retain(context, write),
        7 => write.clear(),
        8 => write.reserve(context.chance.below(100)),
        9 => write.shrink_to_fit(),
        10 => drop(write.entry(Thing::new(key.0)).or_insert_with(thing).key()),
        11 => drop(write.entry(Thing::new(key.0)).and_modify(|old| *old = thing()).key().key()),
        12 => {
            if let Entry::Occupied(entry) = write.entry(Thing::new(key.0)) {
                entry.get().key();
                drop(entry.remove());
            }
        }
        _ => write.extend((0..context.chance.below(30)).map(|_| {
            Context::enter_from(Place::Iterator);
            (Thing::new(context.key()), Thing::new(context.key()))
        })),
    }
}

/// Entries other than that of the key which is used to look.
fn others(write: &Write<'_>) -> usize {
    write.iter().filter(|(key, _)| key.key() != u64::MAX).count()
}

/// If this panics, it has not happened.
fn retain(context: &Context, write: &mut Write<'_>) {
    let before = others(write);
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        write.retain(|key, value| {
            Context::enter_from(Place::Closure);
            key.key() + value.key() > 3 && !context.chance.one_in(3)
        });
    }));
    let Err(panic) = outcome else { return };
    // The next change shows what is left, unless it panics itself.
    let look = || drop(write.insert(Thing::new(u64::MAX), Thing::new(0)));
    if catch_unwind(AssertUnwindSafe(look)).is_ok() && context.world.mood.lie == 0 {
        let after = others(write);
        if before != after {
            fatal(&format!("retain panicked, and {after} of {before} entries are left"));
        }
    }
    resume_unwind(panic);
}

/// Restores the front that this thread works with.
struct Committing<'c>(&'c Context, usize);

impl Drop for Committing<'_> {
    fn drop(&mut self) {
        self.0.committing.set(self.1);
    }
}

/// Works with a front, unless this thread holds what others wait for: a guard, a lock around
/// `matches`, another front.
fn with_front(context: &Context, work: impl FnOnce(&Front)) {
    let table = context.table::<TwinTable>();
    let (own, outer) = (Arc::as_ptr(&table).addr(), context.committing.get());
    let crosswise = ![0, own].contains(&outer) && context.world.mood.threads > 1;
    if context.reading.get() > 0 || context.matching.get() > 0 || crosswise {
        return;
    }
    context.committing.set(own);
    let _committing = Committing(context, outer);
    if let Some(front) = &table.front {
        work(front);
    }
}

fn fronts() -> Vec<Operation> {
    vec![
        ("write many", |context| {
            let entry = |_| {
                Context::enter_from(Place::Iterator);
                (Thing::new(context.key()), Thing::new(context.key()))
            };
            let batch: Vec<_> = (0..context.chance.below(12)).map(entry).collect();
            with_front(context, |front| ignore(front.insert_many(batch)));
        }),
        ("write one", |context| {
            let key = Thing::new(context.key());
            with_front(context, |front| ignore(front.insert(key, Thing::new(1))));
        }),
        ("remove one", |context| {
            let key = Key(context.key());
            with_front(context, |front| ignore(front.remove(&key)));
        }),
        ("compute", |context| {
            let key = Thing::new(context.key());
            let answer = |found: Option<&Thing>| {
                found.map(Thing::key);
                Context::enter_from(Place::Closure);
                match context.chance.below(3) {
                    0 => Compute::Keep,
                    1 => Compute::Remove,
                    _ => Compute::Insert(Thing::new(2)),
                }
            };
            with_front(context, |front| ignore(front.compute(key, answer)));
        }),
        ("retain", |context| {
            with_front(context, |front| {
                front.retain(|key, value| {
                    Context::enter_from(Place::Closure);
                    key.key() + value.key() > 3 && !context.chance.one_in(3)
                });
            });
        }),
        ("ask a front", |context| {
            with_front(context, |front| {
                ignore((front.version(), front.len(), front.stats(), front.memory_bytes()));
                drop(front.handle());
            });
        }),
        ("read by a front", |context| {
            let table = context.table::<TwinTable>();
            let Some(front) = &table.front else { return };
            let _reading = Reading::new(context);
            look(context, &front.pin());
            front.get(&Key(context.key())).iter().for_each(|value| ignore(value.key()));
            front.iter().take(3).for_each(|entry| ignore(entry.0.key() + entry.1.key()));
        }),
        ("a batch of a front", |context| {
            with_front(context, |front| {
                let outcome = front.try_batch(|write| {
                    for _ in 0..context.chance.below(8) {
                        change(context, write);
                    }
                });
                ignore(outcome);
            });
        }),
    ]
}
