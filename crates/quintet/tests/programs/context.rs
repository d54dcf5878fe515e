//! A running program: the tables that its threads share, and what each thread holds of them.

use crate::chance::{Chance, Mood, Place};
use crate::copies::Copies;
use crate::items::{ArcSet, BoxSet};
use crate::kept::Kept;
use crate::maps::{ThingHashSet, ThingMap};
use crate::seen::{ByteSet, EmptySet, ThingSet};
use crate::twins::TwinTable;
use crate::words::{Plain, Typed};
use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The program under way, for whoever has to report it.
pub(crate) static SEED: AtomicU64 = AtomicU64::new(0);
/// Operations done by this process.
pub(crate) static DONE: AtomicU64 = AtomicU64::new(0);
/// The last operations of each thread.
static LAST: [Mutex<Vec<String>>; 4] = [const { Mutex::new(Vec::new()) }; 4];
const REMEMBERED: usize = 24;

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reports the program and ends the process.
pub(crate) fn fatal(what: &str) -> ! {
    eprintln!("program {}: {what}", SEED.load(Ordering::Relaxed));
    for (thread, last) in LAST.iter().enumerate() {
        let Ok(last) = last.try_lock() else { continue };
        last.iter().for_each(|name| eprintln!("  thread {thread}: {name}"));
    }
    std::process::abort();
}

/// An operation: its name, and what it does.
pub(crate) type Operation = (&'static str, fn(&Context));

/// A family's operations, each as often as the program wants it.
struct Choice {
    family: &'static str,
    operations: Vec<Operation>,
}

/// A kind of table.
pub(crate) trait Family: Send + Sync + Sized + 'static {
    /// A handle that may be sent to other threads.
    type Own: Send + 'static;
    /// Access by the thread's own seat.
    type Pin: 'static;
    const NAME: &'static str;

    fn fresh(mood: &Mood, chance: &Chance) -> Self;
    fn own(&'static self) -> Self::Own;
    fn pin(&'static self) -> Option<Self::Pin>;
    fn shelf(world: &World) -> &Shelf<Self>;
    fn bench(context: &Context) -> &Bench<Self>;
    fn operations() -> Vec<Operation>;

    /// Takes out all that can be taken out, so that nothing in the table keeps the table.
    fn empty(&self) {}
}

/// A thread's access to a table, of either kind.
pub(crate) enum Seat<F: Family> {
    Own(F::Own),
    Pin(F::Pin),
}

impl<F: Family<Pin = Infallible>> Seat<F> {
    pub(crate) fn handle(&self) -> &F::Own {
        match self {
            Self::Own(own) => own,
            Self::Pin(never) => match *never {},
        }
    }
}

/// An access together with its table.
pub(crate) type Placed<F> = Kept<Arc<F>, Seat<F>>;

/// The tables of a family.
pub(crate) struct Shelf<F: Family> {
    tables: Mutex<Vec<Arc<F>>>,
    all: Mutex<Vec<Weak<F>>>,
    /// Handles on their way from one thread to another.
    mail: Mutex<Vec<Kept<Arc<F>, F::Own>>>,
}

/// A thread's places at the tables of a family.
pub(crate) struct Bench<F: Family>(RefCell<Vec<Rc<Placed<F>>>>);

impl<F: Family> Shelf<F> {
    fn new(mood: &Mood, chance: &Chance) -> Self {
        let shelf =
            Self { tables: Mutex::default(), all: Mutex::default(), mail: Mutex::default() };
        let tables: Vec<_> = (0..2).map(|_| shelf.made(mood, chance)).collect();
        *locked(&shelf.tables) = tables;
        shelf
    }

    fn made(&self, mood: &Mood, chance: &Chance) -> Arc<F> {
        let table = Arc::new(F::fresh(mood, chance));
        locked(&self.all).push(Arc::downgrade(&table));
        table
    }

    fn empty(&self) {
        drop(std::mem::take(&mut *locked(&self.mail)));
        let all = locked(&self.all).clone();
        all.iter().filter_map(Weak::upgrade).for_each(|table| table.empty());
    }
}

macro_rules! families {
    ($($name:ident: $family:ty,)+) => {
        /// All tables of a program.
        pub(crate) struct World {
            pub(crate) mood: Mood,
            choices: Vec<Choice>,
            $(pub(crate) $name: Shelf<$family>,)+
        }

        impl World {
            pub(crate) fn new(seed: u64) -> Self {
                let mut mood = Mood::new(seed);
                let chance = Chance::new(!seed);
                let choices = vec![$(Choice::new::<$family>(&mood),)+];
                mood.leave_out(|family| choices[family].operations.is_empty());
                $(let $name = Shelf::new(&mood, &chance);)+
                Self { mood, choices, $($name,)+ }
            }

            /// Unties what tables and their contents hold of each other.
            pub(crate) fn empty(&self) {
                $(self.$name.empty();)+
            }
        }

        /// What one thread has at hand.
        pub(crate) struct Context {
            pub(crate) world: Arc<World>,
            pub(crate) chance: Chance,
            thread: usize,
            left: Cell<usize>,
            depth: Cell<u32>,
            /// Calls of `matches` and `same_key` that are under way.
            pub(crate) matching: Cell<u32>,
            /// Read guards of maps with a front that are held.
            pub(crate) reading: Cell<u32>,
            /// The front that this thread works with, by address, or 0.
            pub(crate) committing: Cell<usize>,
            stash: RefCell<Vec<Box<dyn FnMut()>>>,
            $(pub(crate) $name: Bench<$family>,)+
        }

        impl Context {
            fn new(world: Arc<World>, thread: usize, operations: usize) -> Self {
                let chance = Chance::new(world.mood.seed.wrapping_mul(8) + 1 + thread as u64);
                Self {
                    world,
                    chance,
                    thread,
                    left: Cell::new(operations),
                    depth: Cell::new(0),
                    matching: Cell::new(0),
                    reading: Cell::new(0),
                    committing: Cell::new(0),
                    stash: RefCell::default(),
                    $($name: Bench(RefCell::default()),)+
                }
            }

            fn leave_all(&self) {
                while let Some(held) = { let held = self.stash.borrow_mut().pop(); held } {
                    let _ = catch_unwind(AssertUnwindSafe(|| drop(held)));
                }
                $(
                    while let Some(seat) = { let seat = self.$name.0.borrow_mut().pop(); seat } {
                        let _ = catch_unwind(AssertUnwindSafe(|| drop(seat)));
                    }
                )+
            }
        }
    };
}

families! {
    plain: Plain,
    typed: Typed,
    boxes: BoxSet,
    arcs: ArcSet,
    things: ThingSet,
    bytes: ByteSet,
    empties: EmptySet,
    twins: TwinTable,
    maps: ThingMap,
    sets: ThingHashSet,
    copies: Copies,
}

impl Choice {
    fn new<F: Family>(mood: &Mood) -> Self {
        let weight = |name: &str| {
            let name = format!("{}: {name}", F::NAME);
            let avoided = crate::avoided().iter().any(|part| name.contains(part));
            if avoided { 0 } else { mood.weight(&name) }
        };
        let often =
            |operation: Operation| std::iter::repeat_n(operation, weight(operation.0) as usize);
        Self { family: F::NAME, operations: F::operations().into_iter().flat_map(often).collect() }
    }
}

thread_local! {
    static CURRENT: RefCell<Option<Rc<Context>>> = const { RefCell::new(None) };
}

/// Restores what a call of user code has changed.
struct Inside<'c>(&'c Context, Place);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.depth.set(self.0.depth.get() - 1);
        if self.0.is_under_lock(self.1) {
            self.0.matching.set(self.0.matching.get() - 1);
        }
    }
}

impl Context {
    fn current() -> Option<Rc<Self>> {
        CURRENT.try_with(|current| current.borrow().clone()).ok().flatten()
    }

    /// Runs one thread of a program to its end.
    pub(crate) fn run(world: Arc<World>, thread: usize, operations: usize) {
        let context = Rc::new(Self::new(world, thread, operations));
        CURRENT.with(|current| current.replace(Some(Rc::clone(&context))));
        while context.left.get() > 0 {
            let _ = catch_unwind(AssertUnwindSafe(|| context.step(Place::Top)));
        }
        context.leave_all();
        CURRENT.with(|current| current.replace(None));
        locked(&LAST[thread]).clear();
    }

    /// A set or map compares under the lock of a shard. Who waits there for a lock of another kind
    /// of table, which its owner keeps while it compares a key of this one, waits for ever: with one
    /// thread nobody does.
    fn is_under_lock(&self, place: Place) -> bool {
        place == Place::Matches || place == Place::Eq && self.world.mood.threads > 1
    }

    /// User code: goes on with the program from inside, as far as chance and depth allow.
    pub(crate) fn enter_from(place: Place) {
        let Some(context) = Self::current() else { return };
        let mood = &context.world.mood;
        let may = context.depth.get() < mood.depth && context.left.get() > 0;
        if !may || !context.chance.one_in(mood.nests(place)) {
            return;
        }
        context.depth.set(context.depth.get() + 1);
        if context.is_under_lock(place) {
            context.matching.set(context.matching.get() + 1);
        }
        let _inside = Inside(&context, place);
        let quiet = std::thread::panicking() || (place == Place::Drop && !mood.drop_panics);
        for _ in 0..=context.chance.below(6) {
            if quiet || context.chance.one_in(2) {
                let _ = catch_unwind(AssertUnwindSafe(|| context.step(place)));
            } else {
                context.step(place);
            }
        }
        if !quiet && context.chance.one_in(mood.panic) {
            resume_unwind(Box::new("a panic of user code"));
        }
    }

    /// The answer of a comparison: at times a wrong one.
    pub(crate) fn answer(truth: bool) -> bool {
        let lie = Self::current().is_some_and(|it| it.chance.one_in(it.world.mood.lie));
        truth ^ lie
    }

    /// What a key feeds its hasher: at times something else.
    pub(crate) fn twist(key: u64) -> u64 {
        let lie = Self::current().is_some_and(|it| it.chance.one_in(it.world.mood.lie));
        key ^ u64::from(lie)
    }

    fn step(&self, place: Place) {
        let Some(left) = self.left.get().checked_sub(1) else { return };
        self.left.set(left);
        DONE.fetch_add(1, Ordering::Relaxed);
        if self.chance.one_in(5) {
            self.note(place, "stash", "touch");
            return self.touch();
        }
        let families = &self.world.mood.families;
        let mut at = self.chance.below(families.iter().sum::<u32>() as usize) as u32;
        let mut family = 0;
        while at >= families[family] {
            at -= families[family];
            family += 1;
        }
        let Choice { family, operations } = &self.world.choices[family];
        let (name, operation) = *self.chance.of(operations);
        self.note(place, family, name);
        operation(self);
    }

    fn note(&self, place: Place, family: &str, name: &str) {
        let mut last = locked(&LAST[self.thread]);
        if last.len() == REMEMBERED {
            last.remove(0);
        }
        let indent = 2 * self.depth.get() as usize;
        last.push(format!("{:indent$}{place:?}: {family}: {name}", ""));
        if crate::traced() {
            eprintln!("  thread {}: {}", self.thread, last[last.len() - 1]);
        }
    }

    /// A key of the few that a program has.
    pub(crate) fn key(&self) -> u64 {
        self.chance.below(self.world.mood.keys) as u64
    }

    /// Keeps something for later operations, which touch or drop it.
    pub(crate) fn stash(&self, held: impl FnMut() + 'static) {
        const MOST: usize = 24;
        let mut stash = self.stash.borrow_mut();
        let over = (stash.len() >= MOST).then(|| stash.swap_remove(self.chance.below(MOST)));
        stash.push(Box::new(held));
        drop(stash);
        drop(over);
    }

    /// Touches something stashed, and puts it back or drops it.
    fn touch(&self) {
        let mut stash = self.stash.borrow_mut();
        if stash.is_empty() {
            return;
        }
        let at = self.chance.below(stash.len());
        let mut held = stash.swap_remove(at);
        drop(stash);
        held();
        if !self.chance.one_in(3) {
            self.stash.borrow_mut().push(held);
        }
    }

    /// One of a family's tables.
    pub(crate) fn table<F: Family>(&self) -> Arc<F> {
        let tables = locked(&F::shelf(&self.world).tables);
        Arc::clone(&tables[self.chance.below(tables.len())])
    }

    /// A place at one of a family's tables: one that this thread has, or a new one.
    pub(crate) fn seat<F: Family>(&self) -> Rc<Placed<F>> {
        let bench = &F::bench(self).0;
        if !self.chance.one_in(4) {
            let seats = bench.borrow();
            if !seats.is_empty() {
                return Rc::clone(&seats[self.chance.below(seats.len())]);
            }
        }
        let by_pin = self.chance.one_in(2);
        let seat = Rc::new(Kept::new(self.table::<F>(), |table| match table.pin() {
            Some(pin) if by_pin => Seat::Pin(pin),
            _ => Seat::Own(table.own()),
        }));
        if self.chance.one_in(3) {
            self.keep_seat(Rc::clone(&seat));
        }
        seat
    }

    fn keep_seat<F: Family>(&self, seat: Rc<Placed<F>>) {
        const MOST: usize = 4;
        let mut seats = F::bench(self).0.borrow_mut();
        let over = (seats.len() >= MOST).then(|| seats.swap_remove(self.chance.below(MOST)));
        seats.push(seat);
        drop(seats);
        drop(over);
    }

    fn take_seat<F: Family>(&self) -> Option<Rc<Placed<F>>> {
        let mut seats = F::bench(self).0.borrow_mut();
        let at = self.chance.below(seats.len().max(1));
        (at < seats.len()).then(|| seats.swap_remove(at))
    }

    /// Works on a handle as its only user, if it has no other.
    pub(crate) fn alone<F: Family>(&self, work: impl FnOnce(&mut F::Own)) {
        let Some(mut seat) = self.take_seat::<F>() else { return };
        if let Some(Seat::Own(own)) = Rc::get_mut(&mut seat).map(Kept::inside_mut) {
            work(own);
        }
        self.keep_seat(seat);
    }
}

/// What can be done to every family's tables and handles.
pub(crate) fn common<F: Family>() -> Vec<Operation> {
    vec![
        ("drop a seat", |context| drop(context.take_seat::<F>())),
        ("forget a seat", |context| {
            if context.world.mood.forgets {
                std::mem::forget(context.take_seat::<F>());
            }
        }),
        ("send a handle", |context| {
            let Some(Ok(seat)) = context.take_seat::<F>().map(Rc::try_unwrap) else { return };
            if let (Seat::Own(own), table) = seat.into_parts() {
                let sent = Kept::again(own, table);
                locked(&F::shelf(&context.world).mail).push(sent);
            }
        }),
        ("receive a handle", |context| {
            let received = locked(&F::shelf(&context.world).mail).pop();
            if let Some((own, table)) = received.map(Kept::into_parts) {
                context.keep_seat(Rc::new(Kept::again(Seat::Own(own), table)));
            }
        }),
        ("replace a table", |context| {
            let shelf = F::shelf(&context.world);
            let mut new = shelf.made(&context.world.mood, &context.chance);
            let mut tables = locked(&shelf.tables);
            let at = context.chance.below(tables.len());
            std::mem::swap(&mut tables[at], &mut new);
            drop(tables);
            drop(new);
        }),
    ]
}
