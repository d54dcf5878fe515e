//! Exhaustive check of the rules by which a cache and its store never show a stale value (`crates/quintet/docs/tier_cache_stores.md`, N1 to N10).
//!
//!     rustc -O stale.rs && ./stale all | ./stale one SCENARIO | ./stale mutants | ./stale older
//!
//! One bucket with two keys, in memory and in a store. Writers, evictors, a dropper and readers take one step at a time, in every order; each may be killed before each of its steps. A put
//! is a message that arrives when it likes, also after its sender's death; the store forgets what it likes; time passes deadlines when it likes. What a writer does under the bucket's control
//! word is one step, since the map below makes it one; the dropper, whose two stores matter, holds the word between them.
//!
//! Every write has a number. **Stale**: a read returns an earlier write than the last one before it began. **Lost**: a read finds nothing although the key had a value throughout, which nobody
//! dropped and the store did not forget. **Stuck**: an entry that was put cannot leave.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;

const KEYS: usize = 2;
const ACTORS: usize = 4;
const MESSAGES: usize = 4;

/// An entry in memory or in the store; version 0: none.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
struct Held {
    version: u8,
    write: u8,
    removal: bool,
}

/// A put under way.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
struct Message {
    held: Held,
    key: u8,
    /// Who waits for the answer, plus 1.
    from: u8,
    late: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
enum Answer {
    #[default]
    None,
    Taken,
    Late,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
struct Actor {
    /// Which operation of its program, and which step of it.
    at: u8,
    step: u8,
    dead: bool,
    held: Held,
    answer: Answer,
    // Of a reader.
    floor: u8,
    excused: bool,
    watermark: u8,
    /// The watermark and the greatest version at the time of the lookup.
    seen: u8,
    last: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
struct State {
    memory: [Held; KEYS],
    store: [Held; KEYS],
    watermark: u8,
    /// The greatest version given so far.
    last: u8,
    /// Who holds the bucket's lease, plus 1, and whether its deadline has passed.
    lease: u8,
    over: bool,
    /// Who holds the control word from one step to the next, plus 1.
    word: u8,
    messages: [Message; MESSAGES],
    actors: [Actor; ACTORS],
    // The book: the last write of each key, whether that was a removal (or none), whether it may be lost.
    writes: u8,
    current: [u8; KEYS],
    absent: [bool; KEYS],
    excuse: [bool; KEYS],
    forgets: u8,
    ticks: u8,
    kills: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Op {
    Insert(u8),
    Remove(u8),
    /// Put, then unlink.
    Evict(u8),
    /// Raise the watermark, then unlink.
    Drop(u8),
    Read(u8),
    /// A read that keeps what it found in memory.
    Promote(u8),
}
use Op::*;

struct Scenario {
    name: &'static str,
    programs: [&'static [Op]; ACTORS],
    forgets: u8,
    ticks: u8,
    kills: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mutant {
    Sound,
    OlderReplaces,
    NoLease,
    CopyBeforeLease,
    StoreIgnoresDeadline,
    LeaseTakenEarly,
    LeaseReleasedInDoubt,
    LateCountsAsTaken,
    DropWithoutWatermark,
    WatermarkAfterUnlink,
    WatermarkNotAsked,
    WatermarkAskedFirst,
    NoNewVersionBelowWatermark,
    RemoveWithoutTombstone,
    TombstoneNotPut,
    UnlinkWhateverIsThere,
    UnlinkBelowWatermark,
    RefusedAtOnce,
    PromoteUnseen,
    VersionsBeginAgain,
}
use Mutant::*;

/// Broken rules, each of which must be caught. [`OlderReplaces`] is not among them: where leases and deadlines hold, no older put follows a newer one. It is for several machines, which have no
/// lease in common.
const MUTANTS: [Mutant; 18] = [
    NoLease,
    CopyBeforeLease,
    StoreIgnoresDeadline,
    LeaseTakenEarly,
    LeaseReleasedInDoubt,
    LateCountsAsTaken,
    DropWithoutWatermark,
    WatermarkAfterUnlink,
    WatermarkNotAsked,
    WatermarkAskedFirst,
    NoNewVersionBelowWatermark,
    RemoveWithoutTombstone,
    TombstoneNotPut,
    UnlinkWhateverIsThere,
    UnlinkBelowWatermark,
    RefusedAtOnce,
    PromoteUnseen,
    VersionsBeginAgain,
];

fn scenarios() -> Vec<Scenario> {
    let of = |name, programs, [forgets, ticks, kills]: [u8; 3]| Scenario { name, programs, forgets, ticks, kills };
    vec![
        of("replace while it is put", [&[Insert(0), Insert(0)], &[Evict(0), Evict(0)], &[Evict(0)], &[Read(0), Read(0)]], [1, 1, 1]),
        of("remove while it is put", [&[Insert(0), Remove(0)], &[Evict(0), Evict(0)], &[Evict(0)], &[Read(0), Read(0)]], [1, 1, 1]),
        of("drop beside a put", [&[Insert(0), Insert(0)], &[Evict(0)], &[Drop(0), Evict(0)], &[Read(0), Read(0)]], [1, 1, 2]),
        of("drop beside another key", [&[Insert(0), Insert(1)], &[Evict(0), Evict(1)], &[Drop(0)], &[Read(1), Read(1)]], [0, 1, 2]),
        of("drop again and again", [&[Insert(0), Insert(0), Insert(0)], &[Evict(0), Evict(0)], &[Drop(0), Drop(0)], &[Read(0)]], [1, 1, 1]),
        of("promote beside a writer", [&[Insert(0), Insert(0)], &[Evict(0), Evict(0)], &[Promote(0)], &[Read(0)]], [1, 1, 1]),
        of("promote beside a remove", [&[Insert(0), Remove(0)], &[Evict(0), Evict(0)], &[Promote(0)], &[Read(0)]], [1, 1, 1]),
        of("promote beside a drop", [&[Insert(0), Insert(0)], &[Evict(0), Drop(0)], &[Promote(0), Evict(0)], &[Read(0)]], [1, 1, 1]),
        of("two who promote", [&[Insert(0), Insert(0)], &[Evict(0), Evict(0)], &[Promote(0)], &[Promote(0), Read(0)]], [0, 1, 1]),
        of("insert after a remove", [&[Insert(0), Remove(0), Insert(0)], &[Evict(0), Evict(0)], &[Evict(0)], &[Read(0)]], [1, 1, 1]),
        of("two writers", [&[Insert(0), Insert(0)], &[Insert(0), Remove(0)], &[Evict(0), Evict(0)], &[Read(0)]], [1, 1, 1]),
        of("two evictors in doubt", [&[Insert(0), Insert(0)], &[Evict(0), Evict(0)], &[Evict(0), Evict(0)], &[Read(0)]], [1, 2, 2]),
    ]
}

struct World<'w> {
    scenario: &'w Scenario,
    mutant: Mutant,
}

/// What a step leads to: states, or a verdict.
type Next = Result<Vec<State>, &'static str>;

impl World<'_> {
    fn op(&self, state: &State, who: usize) -> Option<Op> {
        self.scenario.programs[who].get(state.actors[who].at as usize).copied()
    }

    /// N1.
    fn version(&self, state: &mut State, key: usize) -> u8 {
        if self.mutant == VersionsBeginAgain {
            state.last = state.memory[key].version;
        }
        state.last += 1;
        state.last
    }

    fn next(&self, state: &State) -> Next {
        let mut all = Vec::new();
        for who in 0..ACTORS {
            if state.actors[who].dead || self.op(state, who).is_none() {
                continue;
            }
            if state.kills > 0 && state.actors[who].step > 0 {
                let mut killed = *state;
                killed.kills -= 1;
                killed.actors[who] = Actor { dead: true, ..Actor::default() };
                if killed.word == who as u8 + 1 {
                    killed.word = 0;
                }
                for message in &mut killed.messages {
                    if message.from == who as u8 + 1 {
                        message.from = NOBODY;
                    }
                }
                all.push(killed);
            }
            let mut stepped = *state;
            if self.step(&mut stepped, who)? {
                all.push(stepped);
            }
            if state.actors[who].step == WAITING {
                all.push(self.give_up(state, who));
            }
        }
        self.store_and_time(state, &mut all);
        for state in &mut all {
            for who in 0..ACTORS {
                if let Some(Read(key) | Promote(key)) = self.op(state, who) {
                    let key = key as usize;
                    state.actors[who].excused |= state.absent[key] || state.excuse[key];
                }
            }
        }
        Ok(all)
    }

    /// What happens by itself: messages arrive, the store forgets, deadlines pass.
    fn store_and_time(&self, state: &State, all: &mut Vec<State>) {
        for at in 0..MESSAGES {
            let message = state.messages[at];
            if message.from == 0 {
                continue;
            }
            let mut arrived = *state;
            arrived.messages[at] = Message::default();
            let late = message.late && self.mutant != StoreIgnoresDeadline;
            let place = &mut arrived.store[message.key as usize];
            if !late && (place.version <= message.held.version || self.mutant == OlderReplaces) {
                *place = message.held;
            }
            if message.from != NOBODY {
                arrived.actors[message.from as usize - 1].answer = if late { Answer::Late } else { Answer::Taken };
            }
            all.push(arrived);
        }
        for key in 0..KEYS {
            if state.forgets > 0 && state.store[key].version > 0 {
                let mut forgot = *state;
                forgot.forgets -= 1;
                forgot.store[key] = Held::default();
                forgot.excuse[key] = true;
                all.push(forgot);
            }
        }
        if state.ticks > 0 && state.lease != 0 && !state.over {
            let mut passed = *state;
            passed.ticks -= 1;
            passed.over = true;
            passed.messages.iter_mut().for_each(|message| message.late = message.from != 0);
            all.push(passed);
        }
    }

    /// A put without an answer: in doubt until its deadline.
    fn give_up(&self, state: &State, who: usize) -> State {
        let mut state = *state;
        for message in &mut state.messages {
            if message.from == who as u8 + 1 {
                message.from = NOBODY;
            }
        }
        if self.mutant == LeaseReleasedInDoubt && state.lease == who as u8 + 1 {
            state.lease = 0;
        }
        end(&mut state, who);
        state
    }

    /// One step of an actor. False: it cannot take it now.
    fn step(&self, state: &mut State, who: usize) -> Result<bool, &'static str> {
        let Some(op) = self.op(state, who) else { return Ok(false) };
        match op {
            Insert(key) | Remove(key) => Ok(self.write(state, who, key as usize, matches!(op, Remove(_)))),
            Evict(key) => self.evict(state, who, key as usize),
            Drop(key) => Ok(self.discard(state, who, key as usize)),
            Read(key) => self.read(state, who, key as usize, false),
            Promote(key) => self.read(state, who, key as usize, true),
        }
    }

    /// N1, N8: under the control word.
    fn write(&self, state: &mut State, who: usize, key: usize, removal: bool) -> bool {
        if state.word != 0 {
            return false;
        }
        let version = self.version(state, key);
        state.writes += 1;
        state.memory[key] = Held { version, write: state.writes, removal };
        if removal && self.mutant == RemoveWithoutTombstone {
            state.memory[key] = Held::default();
        }
        state.current[key] = state.writes;
        state.absent[key] = removal;
        state.excuse[key] = false;
        end(state, who);
        true
    }

    fn take_lease(&self, state: &mut State, who: usize) -> bool {
        let free = state.lease == 0 || state.over || self.mutant == LeaseTakenEarly;
        if self.mutant == NoLease {
            return true;
        }
        if free {
            (state.lease, state.over) = (who as u8 + 1, false);
        }
        free
    }

    /// N2 to N6.
    fn evict(&self, state: &mut State, who: usize, key: usize) -> Result<bool, &'static str> {
        let copy_first = self.mutant == CopyBeforeLease;
        let (copies, leases) = if copy_first { (0, 1) } else { (1, 0) };
        let step = state.actors[who].step;
        if step == leases && step < 2 {
            state.actors[who].step += 1;
            return Ok(self.take_lease(state, who));
        }
        if step == copies {
            if state.memory[key].version == 0 {
                self.release(state, who);
                end(state, who);
                return Ok(true);
            }
            if state.memory[key].version < state.watermark && self.mutant != NoNewVersionBelowWatermark {
                // N7: under the control word.
                if state.word != 0 {
                    return Ok(false);
                }
                state.memory[key].version = self.version(state, key);
            }
            state.actors[who].held = state.memory[key];
            state.actors[who].seen = state.watermark;
            state.actors[who].step += 1;
            return Ok(true);
        }
        match step {
            2 => {
                if state.actors[who].held.removal && self.mutant == TombstoneNotPut {
                    state.actors[who].answer = Answer::Taken;
                    state.actors[who].step = WAITING;
                    return Ok(true);
                }
                let Some(free) = state.messages.iter().position(|message| message.from == 0) else { return Ok(false) };
                // The deadline in the message is the lease's own: one that has passed is late from the start.
                let late = self.mutant != NoLease && (state.lease != who as u8 + 1 || state.over);
                state.messages[free] = Message { held: state.actors[who].held, key: key as u8, from: who as u8 + 1, late };
                state.actors[who].step = WAITING;
            }
            WAITING => {
                let taken = match state.actors[who].answer {
                    Answer::None => return Ok(false),
                    Answer::Taken => true,
                    Answer::Late => self.mutant == LateCountsAsTaken,
                };
                match taken {
                    true => state.actors[who].step += 1,
                    false => end(state, who),
                }
            }
            4 => {
                // N4: under the control word.
                if state.word != 0 {
                    return Ok(false);
                }
                let held = state.actors[who].held;
                let counts = held.version >= state.watermark || self.mutant == UnlinkBelowWatermark;
                if state.memory[key] == held && !counts && state.watermark == state.actors[who].seen {
                    return Err("stuck");
                }
                if state.memory[key] == held && counts || self.mutant == UnlinkWhateverIsThere {
                    state.memory[key] = Held::default();
                }
                state.actors[who].step += 1;
            }
            _ => {
                self.release(state, who);
                end(state, who);
            }
        }
        Ok(true)
    }

    /// N5.
    fn release(&self, state: &mut State, who: usize) {
        if state.lease == who as u8 + 1 {
            (state.lease, state.over) = (0, false);
        }
    }

    /// N7.
    fn discard(&self, state: &mut State, who: usize, key: usize) -> bool {
        let (raise, unlink) = if self.mutant == WatermarkAfterUnlink { (1, 0) } else { (0, 1) };
        let step = state.actors[who].step;
        if step == 0 {
            if state.word != 0 {
                return false;
            }
            if state.memory[key].version == 0 {
                end(state, who);
                return true;
            }
            state.word = who as u8 + 1;
            state.actors[who].held = state.memory[key];
        }
        if step == raise && self.mutant != DropWithoutWatermark {
            state.watermark = state.watermark.max(state.actors[who].held.version + 1);
            for other in 0..KEYS {
                // Counted: what the store alone has of the bucket goes too.
                state.excuse[other] |= state.memory[other].version == 0 && other != key;
            }
        }
        if step == unlink {
            state.memory[key] = Held::default();
            state.excuse[key] = true;
        }
        state.actors[who].step += 1;
        if step == 1 {
            state.word = 0;
            end(state, who);
        }
        true
    }

    /// N9, N10.
    fn read(&self, state: &mut State, who: usize, key: usize, promotes: bool) -> Result<bool, &'static str> {
        let before = *state;
        let actor = &mut state.actors[who];
        match actor.step {
            0 => {
                actor.floor = before.current[key];
                actor.excused = before.absent[key] || before.excuse[key];
                actor.watermark = before.watermark;
                actor.step = 1;
            }
            1 => {
                let held = before.memory[key];
                if held.version != 0 {
                    let found = (!held.removal).then_some(held.write);
                    return self.answer(state, who, found);
                }
                // A miss is believed under a free word only.
                if before.word != 0 {
                    return Ok(false);
                }
                (actor.seen, actor.last) = (before.watermark, before.last);
                actor.step = 2;
            }
            2 => {
                actor.held = before.store[key];
                actor.step = 3;
            }
            3 => {
                let watermark = match self.mutant {
                    WatermarkNotAsked => 0,
                    WatermarkAskedFirst => actor.watermark,
                    _ => before.watermark,
                };
                let held = actor.held;
                let raised = before.watermark != actor.seen && self.mutant != RefusedAtOnce;
                if held.version < watermark && held.version != 0 && raised {
                    actor.step = 1;
                    return Ok(true);
                }
                if held.version == 0 || held.removal || held.version < watermark {
                    return self.answer(state, who, None);
                }
                if !promotes {
                    return self.answer(state, who, Some(held.write));
                }
                actor.step = 4;
            }
            _ => {
                // N10: under the control word.
                if before.word != 0 {
                    return Ok(false);
                }
                let held = actor.held;
                let unseen = self.mutant == PromoteUnseen || before.last == actor.last;
                if before.memory[key].version == 0 && unseen {
                    state.memory[key] = held;
                }
                return self.answer(state, who, Some(held.write));
            }
        }
        Ok(true)
    }

    fn answer(&self, state: &mut State, who: usize, found: Option<u8>) -> Result<bool, &'static str> {
        let actor = state.actors[who];
        match found {
            Some(write) if write < actor.floor => return Err("stale"),
            None if !actor.excused => return Err("lost"),
            _ => end(state, who),
        }
        Ok(true)
    }

    /// Every state that can be reached. The number of them, or what went wrong and how.
    fn explore(&self) -> Result<usize, (&'static str, Vec<State>)> {
        let Scenario { forgets, ticks, kills, .. } = *self.scenario;
        let begin = State { forgets, ticks, kills, absent: [true; KEYS], ..State::default() };
        let mut from: HashMap<State, State> = HashMap::from([(begin, begin)]);
        let mut open = vec![begin];
        while let Some(state) = open.pop() {
            match self.next(&state) {
                Ok(all) => {
                    for next in all {
                        if let Slot::Vacant(place) = from.entry(next) {
                            place.insert(state);
                            open.push(next);
                        }
                    }
                }
                Err(what) => {
                    let mut way = vec![state];
                    while way[way.len() - 1] != begin {
                        way.push(from[&way[way.len() - 1]]);
                    }
                    way.reverse();
                    return Err((what, way));
                }
            }
        }
        Ok(from.len())
    }
}

const WAITING: u8 = 3;
const NOBODY: u8 = u8::MAX;

fn end(state: &mut State, who: usize) {
    let at = state.actors[who].at + 1;
    state.actors[who] = Actor { at, ..Actor::default() };
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let wanted = arguments.first().map_or("all", String::as_str);
    let scenarios = scenarios();
    let mut wrong = false;
    match wanted {
        "mutants" => {
            for mutant in MUTANTS {
                let caught = scenarios.iter().find_map(|scenario| {
                    let found = World { scenario, mutant }.explore().err()?;
                    Some((scenario.name, found.0, found.1.len()))
                });
                match caught {
                    Some((name, what, steps)) => println!("{mutant:?}: caught, {what} after {steps} steps in \"{name}\""),
                    None => {
                        wrong = true;
                        println!("{mutant:?}: NOT caught");
                    }
                }
            }
        }
        _ => {
            let one = arguments.get(1);
            let mutant = if wanted == "older" { OlderReplaces } else { Sound };
            for scenario in scenarios.iter().filter(|scenario| one.is_none_or(|name| name == scenario.name)) {
                match (World { scenario, mutant }).explore() {
                    Ok(states) => println!("{}: holds, {states} states", scenario.name),
                    Err((what, way)) => {
                        wrong = true;
                        println!("{}: {what}", scenario.name);
                        way.iter().for_each(|state| println!("  {state:?}"));
                    }
                }
            }
        }
    }
    std::process::exit(wrong as i32);
}
