//! `SeenSet`: of things, of byte strings, of records without size, narrow and wide.

use crate::chance::{Chance, Mood, Place, mixed};
use crate::context::{Bench, Context, Family, Operation, Shelf, World, common, fatal, locked};
use crate::kept::Kept;
use crate::thing::{Key, Mix, Nothing, Thing, ignore};
use quintet::seen_set::{Growth, Handle, Ids, Insertion, Record, RecordId, SeenSetBuilder};
use quintet::{SeenPrints, SeenSet};
use std::convert::Infallible;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// A set, with a number that no other has.
pub(crate) struct Set<R: Record + ?Sized + 'static> {
    set: SeenSet<R, Mix>,
    serial: u64,
    width: Option<usize>,
}

pub(crate) type ThingSet = Set<Thing>;
pub(crate) type ByteSet = Set<[u8]>;
pub(crate) type EmptySet = Set<Nothing>;

/// Ids with the number of their set: the first of them for ever, later ones in turn.
static IDS: Mutex<Vec<(u64, RecordId)>> = Mutex::new(Vec::new());
static SERIAL: AtomicU64 = AtomicU64::new(1);
const FOR_EVER: usize = 256;
const MOST: usize = 512;

fn remember(serial: u64, id: RecordId) {
    let mut ids = locked(&IDS);
    if ids.len() < MOST {
        ids.push((serial, id));
    } else {
        let at = FOR_EVER + mixed(id.to_bits()) as usize % (MOST - FOR_EVER);
        ids[at] = (serial, id);
    }
}

impl<R: Record + ?Sized + 'static> Set<R> {
    fn build(builder: SeenSetBuilder<R>, width: Option<usize>, mask: u64, chance: &Chance) -> Self {
        let hasher = Mix { seed: chance.next(), mask };
        let Ok(set) = builder.hasher(hasher).try_build() else { fatal("a small set was refused") };
        Self { set, serial: SERIAL.fetch_add(1, Ordering::Relaxed), width }
    }

    fn any(
        mood: &Mood,
        chance: &Chance,
        width: Option<usize>,
        widen: fn(SeenSetBuilder<R>, usize) -> SeenSetBuilder<R>,
    ) -> Self {
        let builder = SeenSet::builder()
            .capacity(mood.capacity)
            .ids(*chance.of(&[Ids::Narrow, Ids::Wide]))
            .shards(*chance.of(&[1, 1, 2, 16]))
            .max_load(*chance.of(&[0.5, 0.75, 0.9]))
            .parents(chance.one_in(2));
        let builder = if chance.one_in(6) { builder.budget(1 << 16) } else { builder };
        let builder = match width {
            Some(bytes) => widen(builder, bytes),
            None => builder,
        };
        Self::build(builder, width, mood.hash_mask, chance)
    }
}

/// A family of sets of one kind of record.
pub(crate) trait Seen:
    Family<Own = Handle<'static, Self::Of, Mix>, Pin = Infallible>
{
    type Of: Record + ?Sized + 'static;
    fn inner(&self) -> &Set<Self::Of>;
    /// Inserts a record, from a parent if there is one.
    fn put(
        &self,
        handle: &Handle<'static, Self::Of, Mix>,
        context: &Context,
        parent: Option<RecordId>,
    ) -> Option<Insertion>;
    /// Inserts many records, most of them new.
    fn grow(&self, handle: &Handle<'static, Self::Of, Mix>, context: &Context);
    fn put_many(
        &self,
        handle: &Handle<'static, Self::Of, Mix>,
        context: &Context,
        tell: &mut dyn FnMut(Insertion),
    );
    fn find(&self, handle: &Handle<'static, Self::Of, Mix>, context: &Context) -> Option<RecordId>;
    fn look(&self, record: &Self::Of);
}

/// Bytes that repeat their number.
fn text(set: &ByteSet, number: u64) -> Vec<u8> {
    let length = set.width.unwrap_or(8 + mixed(number) as usize % 24);
    number.to_le_bytes().into_iter().cycle().take(length).collect()
}

impl Seen for ThingSet {
    type Of = Thing;
    fn inner(&self) -> &Self {
        self
    }
    fn put(
        &self,
        handle: &Handle<'static, Thing, Mix>,
        context: &Context,
        parent: Option<RecordId>,
    ) -> Option<Insertion> {
        let thing = Thing::new(context.chance.next() % (4 * context.world.mood.keys as u64));
        match parent {
            Some(parent) => handle.fallible().insert_from(thing, parent, 7).ok(),
            None if context.chance.one_in(2) => handle.fallible().insert(thing).ok(),
            None => Some(handle.insert_counted(thing).0),
        }
    }
    fn put_many(
        &self,
        handle: &Handle<'static, Thing, Mix>,
        context: &Context,
        tell: &mut dyn FnMut(Insertion),
    ) {
        let keys = 4 * context.world.mood.keys as u64;
        let thing = |_| {
            Context::enter_from(Place::Iterator);
            Thing::new(context.chance.next() % keys)
        };
        let _ = handle.fallible().insert_each((0..context.chance.below(50)).map(thing), tell);
    }
    fn find(&self, handle: &Handle<'static, Thing, Mix>, context: &Context) -> Option<RecordId> {
        let key = Key(context.key());
        if context.chance.one_in(2) { self.set.find(&key) } else { handle.find(&key) }
    }
    fn grow(&self, handle: &Handle<'static, Thing, Mix>, context: &Context) {
        for _ in 0..context.chance.below(300) {
            let _ = handle.fallible().insert(Thing::new(context.chance.next() >> 1));
        }
    }
    fn look(&self, record: &Thing) {
        record.key();
    }
}

impl Seen for ByteSet {
    type Of = [u8];
    fn inner(&self) -> &Self {
        self
    }
    fn put(
        &self,
        handle: &Handle<'static, [u8], Mix>,
        context: &Context,
        parent: Option<RecordId>,
    ) -> Option<Insertion> {
        let mut record = text(self, context.key() + 1);
        if context.chance.one_in(20) {
            record.push(0);
        }
        match parent {
            Some(parent) => handle.fallible().insert_from(&record, parent, 7).ok(),
            None => handle.fallible().insert(&record).ok(),
        }
    }
    fn put_many(
        &self,
        handle: &Handle<'static, [u8], Mix>,
        context: &Context,
        tell: &mut dyn FnMut(Insertion),
    ) {
        let records: Vec<_> =
            (0..context.chance.below(50)).map(|_| text(self, context.key() + 1)).collect();
        let records = records.iter().map(|record| {
            Context::enter_from(Place::Iterator);
            &record[..]
        });
        let _ = handle.fallible().insert_each(records, tell);
    }
    fn find(&self, handle: &Handle<'static, [u8], Mix>, context: &Context) -> Option<RecordId> {
        let record = text(self, context.key() + 1);
        if context.chance.one_in(2) { self.set.find(&record) } else { handle.find(&record) }
    }
    fn grow(&self, handle: &Handle<'static, [u8], Mix>, context: &Context) {
        for _ in 0..context.chance.below(300) {
            let _ = handle.fallible().insert(&text(self, context.chance.next() | 1));
        }
    }
    fn look(&self, record: &[u8]) {
        if record.is_empty() || self.width.is_some_and(|width| width != record.len()) {
            fatal("a record that nobody inserted");
        }
        let number =
            record.iter().take(8).rev().fold(0u64, |sum, byte| sum << 8 | u64::from(*byte));
        let whole = text(self, number);
        let alike = record == whole || record[..record.len() - 1] == whole[..];
        if record.len() >= 8 && (number == 0 || !alike) {
            fatal(&format!("a record that nobody inserted: {record:?}"));
        }
    }
}

impl Seen for EmptySet {
    type Of = Nothing;
    fn inner(&self) -> &Self {
        self
    }
    fn put(
        &self,
        handle: &Handle<'static, Nothing, Mix>,
        _: &Context,
        parent: Option<RecordId>,
    ) -> Option<Insertion> {
        match parent {
            Some(parent) => handle.fallible().insert_from(Nothing, parent, 7).ok(),
            None => handle.fallible().insert(Nothing).ok(),
        }
    }
    fn put_many(
        &self,
        handle: &Handle<'static, Nothing, Mix>,
        _: &Context,
        tell: &mut dyn FnMut(Insertion),
    ) {
        let _ = handle.fallible().insert_each([Nothing, Nothing], tell);
    }
    fn find(&self, handle: &Handle<'static, Nothing, Mix>, _: &Context) -> Option<RecordId> {
        handle.find(&Nothing)
    }
    fn grow(&self, _: &Handle<'static, Nothing, Mix>, _: &Context) {}
    fn look(&self, record: &Nothing) {
        record.look();
    }
}

macro_rules! family {
    ($of:ty, $name:literal, $field:ident, $widths:expr, $widen:expr, $more:expr) => {
        impl Family for Set<$of> {
            type Own = Handle<'static, $of, Mix>;
            type Pin = Infallible;
            const NAME: &'static str = $name;

            fn fresh(mood: &Mood, chance: &Chance) -> Self {
                Self::any(mood, chance, *chance.of(&$widths), $widen)
            }
            fn own(&'static self) -> Self::Own {
                self.set.handle()
            }
            fn pin(&'static self) -> Option<Self::Pin> {
                None
            }
            fn shelf(world: &World) -> &Shelf<Self> {
                &world.$field
            }
            fn bench(context: &Context) -> &Bench<Self> {
                &context.$field
            }
            fn operations() -> Vec<Operation> {
                [operations::<Self>(), $more, common::<Self>()].concat()
            }
        }
    };
}
family!(Thing, "SeenSet of things", things, [None], |builder, _| builder, vec![]);
family!(
    [u8],
    "SeenSet of bytes",
    bytes,
    [None, None, Some(9), Some(1)],
    SeenSetBuilder::width,
    aside()
);
family!(Nothing, "SeenSet of nothing", empties, [None], |builder, _| builder, vec![]);

fn with<F: Seen>(context: &Context, work: impl FnOnce(&F, &Handle<'static, F::Of, Mix>)) {
    let seat = context.seat::<F>();
    work(seat.owner(), seat.inside().handle());
}

fn noted<F: Seen>(table: &F, insertion: Option<Insertion>) {
    if let Some(insertion) = insertion {
        remember(table.inner().serial, insertion.id());
        if let Some(record) = table.inner().set.get(insertion.id()) {
            table.look(record);
        } else {
            fatal("a set does not know its own id");
        }
    }
}

/// An id of any set.
fn any_id(context: &Context) -> Option<(u64, RecordId)> {
    let ids = locked(&IDS);
    (!ids.is_empty()).then(|| ids[context.chance.below(ids.len())])
}

/// Shows a set an id, which it knows if it is its own and not otherwise.
fn show<F: Seen>(table: &F, (serial, id): (u64, RecordId)) {
    let Set { set, serial: own, .. } = table.inner();
    match set.get(id) {
        Some(record) if serial == *own => table.look(record),
        None if serial != *own => {}
        Some(_) => fatal("a set takes another set's id for its own"),
        None => fatal("a set does not know its own id"),
    }
}

fn operations<F: Seen>() -> Vec<Operation> {
    vec![
        ("insert", |context| {
            with::<F>(context, |table, handle| noted(table, table.put(handle, context, None)))
        }),
        ("insert_from", |context| {
            with::<F>(context, |table, handle| {
                let parent = any_id(context).map(|(_, id)| id);
                noted(table, table.put(handle, context, parent));
            });
        }),
        ("insert_many", |context| {
            with::<F>(context, |table, handle| {
                let mut told = Vec::new();
                table.put_many(handle, context, &mut |insertion| {
                    told.push(insertion);
                    Context::enter_from(Place::Closure);
                });
                told.into_iter().for_each(|insertion| noted(table, Some(insertion)));
            });
        }),
        ("grow", |context| {
            // Where all hashes are alike, large sets are slow.
            let most = if context.world.mood.hash_mask == u64::MAX { 4_000 } else { 300 };
            with::<F>(context, |table, handle| {
                if table.inner().set.len() < most {
                    table.grow(handle, context);
                }
            });
        }),
        ("find", |context| {
            with::<F>(context, |table, handle| {
                if let Some(id) = table.find(handle, context) {
                    show(table, (table.inner().serial, id));
                }
            });
        }),
        ("ids of all sets", |context| {
            let table = context.table::<F>();
            let ids: Vec<_> = (0..20).filter_map(|_| any_id(context)).collect();
            ids.into_iter().for_each(|id| show(&*table, id));
        }),
        ("origins of any id", |context| {
            let table = context.table::<F>();
            let Some((serial, id)) = any_id(context) else { return };
            let set = &table.inner().set;
            let origin = (set.parent(id), set.label(id), set.trace(id).len());
            if serial != table.inner().serial && origin != (None, 0, 1) {
                fatal(&format!("another set's id has an origin: {origin:?}"));
            }
        }),
        ("stash a record", |context| {
            let Some((_, id)) = any_id(context) else { return };
            let held = Kept::new(context.table::<F>(), |table| table.inner().set.get(id));
            if held.inside().is_some() {
                context.stash(move || {
                    held.inside().iter().for_each(|record| held.owner().look(record))
                });
            }
        }),
        ("stash an iterator", |context| {
            let mut held = Kept::new(context.table::<F>(), |table| table.inner().set.iter());
            context.stash(move || {
                let met: Vec<_> = held.inside_mut().take(5).collect();
                met.into_iter().for_each(|(_, record)| held.owner().look(record));
            });
        }),
        ("walk", |context| {
            let table = context.table::<F>();
            for (id, record) in table.inner().set.iter() {
                Context::enter_from(Place::Closure);
                table.look(record);
                show(&*table, (table.inner().serial, id));
            }
        }),
        ("figures", |context| {
            let table = context.table::<F>();
            let set = &table.inner().set;
            std::hint::black_box((
                set.stats(),
                set.memory_bytes(),
                set.table_bytes(),
                set.waiting_for(),
                set.is_empty(),
            ));
        }),
        ("offline", |context| {
            context.alone::<F>(|handle| {
                let _offline = handle.offline();
                Context::enter_from(Place::Closure);
            });
        }),
    ]
}

/// Sets that live for one operation.
fn aside() -> Vec<Operation> {
    vec![
        ("many sets", |context| {
            if !context.chance.one_in(40) {
                return;
            }
            for _ in 0..400 {
                let ids = if context.chance.one_in(8) { Ids::Wide } else { Ids::Narrow };
                let builder = SeenSet::builder().ids(ids).shards(1);
                let table = ByteSet::build(builder, None, u64::MAX, &context.chance);
                if ids == Ids::Wide {
                    remember(table.serial, table.set.handle().insert(&text(&table, 1)).id());
                }
                let all = locked(&IDS).clone();
                all.into_iter().for_each(|id| show(&table, id));
            }
        }),
        ("a set that grows together", |context| {
            let builder = SeenSet::builder().growth(Growth::Together);
            let table =
                ThingSet::build(builder, None, context.world.mood.hash_mask, &context.chance);
            let handle = table.set.handle();
            for _ in 0..context.chance.below(120) {
                let _ = handle.fallible().insert(Thing::new(context.chance.next() % 200));
            }
            table.set.iter().for_each(|(_, thing)| ignore(thing.key()));
        }),
        ("fingerprints", |context| {
            let prints = SeenPrints::builder().bits(1 + context.chance.below(64) as u32).build();
            let handle = prints.handle();
            for _ in 0..context.chance.below(120) {
                handle.insert(&Key(context.key()));
                handle.contains(&Key(context.key()));
                prints.contains(&Key(context.key()));
            }
            std::hint::black_box((prints.len(), prints.omission_probability(), prints.stats()));
        }),
    ]
}
