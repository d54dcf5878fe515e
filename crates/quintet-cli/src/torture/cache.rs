//! Worker processes on one cache, killed at any time; what they had acknowledged must be there,
//! whole.
//!
//! A worker is this program again. It reports every operation before and after, and a sink reports
//! what it evicts before it is gone. In cycles of about a second all workers die, the cache is
//! repaired and verified block by block, and a ledger is compared with its content.
//!
//! Workers share the cache, never a key, except one: a number all of them count up.
//!
//! A course may make it harder: every worker forks and its child works, while the parent holds a
//! handle of its own; the cache's name is removed and made anew all the time, while workers come by
//! another name of the same file; or there is no name at all, and workers inherit the memory.

use super::verdict::Verdict;
use super::{Check, Order, inherit};
use quintet::cache::{
    CacheBuilder, CacheError, Departed, Handle, Place, Policy, Quota, Reader, Roles, TierCache,
};
use quintet_testkit::Rng;
use quintet_testkit::crash::{Child, ledger::Answer, ledger::Entry, ledger::Ledger, report, task};
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub(super) fn checks() -> Vec<Check> {
    vec![
        Check {
            name: "kill -9, nothing evicted",
            run: |order| run(order, Form::Keeping, Course::Named),
        },
        Check {
            name: "kill -9, evicting to a sink",
            run: |order| run(order, Form::Evicting, Course::Named),
        },
        Check {
            name: "kill -9, tiers, none evicted",
            run: |order| run(order, Form::KeepingInTiers, Course::Named),
        },
        Check {
            name: "kill -9, tiers, to a sink",
            run: |order| run(order, Form::EvictingInTiers, Course::Named),
        },
        Check {
            name: "kill -9, s3fifo, to a sink",
            run: |order| run(order, Form::EvictingByS3Fifo, Course::Named),
        },
        Check {
            name: "kill -9, sieve, to a sink",
            run: |order| run(order, Form::EvictingBySieve, Course::Named),
        },
        Check {
            name: "kill -9, forked workers",
            run: |order| run(order, Form::Keeping, Course::Forked),
        },
        Check {
            name: "kill -9, the name made anew",
            run: |order| run(order, Form::Evicting, Course::Remade),
        },
        Check {
            name: "kill -9, forked, sealed memory",
            run: |order| run(order, Form::Keeping, Course::Sealed),
        },
    ]
}

/// What kind of cache.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Roomy, and never evicts: every acknowledged entry must be found.
    Keeping,
    /// Too small for all keys: an acknowledged entry is found, or the sink has seen it.
    Evicting,
    /// The same two in three tiers, between which workers move entries; in the second, uses too.
    /// Both keep accounts, each process is held to a quota far below what it fills, and some
    /// workers offer to serve.
    KeepingInTiers,
    EvictingInTiers,
    /// The second under other policies; with SIEVE in three tiers as well.
    EvictingByS3Fifo,
    EvictingBySieve,
}

impl Form {
    fn builder(self) -> CacheBuilder {
        let builder = TierCache::builder().handles(32);
        match self {
            Self::Keeping => builder.capacity(8 << 20).no_evict(),
            Self::Evicting => builder.capacity(512 << 10),
            Self::KeepingInTiers => Self::Keeping.builder().tiers(TIERS as u32).quotas(),
            Self::EvictingInTiers => {
                Self::Evicting.builder().tiers(TIERS as u32).promote().quotas()
            }
            Self::EvictingByS3Fifo => Self::Evicting.builder().policy(Policy::S3Fifo),
            Self::EvictingBySieve => Self::EvictingInTiers.builder().policy(Policy::Sieve),
        }
    }

    fn keeps(self) -> bool {
        matches!(self, Self::Keeping | Self::KeepingInTiers)
    }
}

const TIERS: usize = 3;
/// What each process may have where accounts are kept.
const MOST_ENTRIES: u64 = 20;

/// How workers come to the cache.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Course {
    /// By its name.
    Named,
    /// By its name; then each forks, and the child works.
    Forked,
    /// By a second name of the same file, while the first one is removed and made anew.
    Remade,
    /// By an inherited descriptor; then each forks, and the child works.
    Sealed,
}

/// Makes a cache under a name again and again, until it is dropped.
struct Remaker {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<(), String>>>,
}

impl Remaker {
    fn start(place: Place) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let work = move || {
            // ORDERING: Relaxed: noticed soon enough.
            while !told.load(Ordering::Relaxed) {
                TierCache::unlink(&place).map_err(|error| error.to_string())?;
                let made = TierCache::builder().capacity(256 << 10).create(&place);
                let made = made.map_err(|error| error.to_string())?;
                let mut handle = made.handle().map_err(|error| error.to_string())?;
                handle.insert("another", "cache").map_err(|error| error.to_string())?;
            }
            Ok(())
        };
        Self { stop, thread: Some(std::thread::spawn(work)) }
    }

    fn end(&mut self) -> Result<(), String> {
        // ORDERING: Relaxed: joining orders the rest.
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map_or(Ok(Ok(())), JoinHandle::join);
        ended.unwrap_or_else(|_| Err("the thread that makes the name anew panicked".to_owned()))
    }
}

impl Drop for Remaker {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

/// Keys of a worker.
const KEYS: u64 = 128;
const PATIENCE: Duration = Duration::from_secs(30);
/// Kills of a cycle.
const KILLS: usize = 100;
/// The number that all count up.
const COUNTER: &[u8] = b"counter";

/// The bytes of a key: some fit into a block with their value, some do not.
fn key_bytes(key: u64) -> Vec<u8> {
    let mut bytes = format!("key-{key:x}-").into_bytes();
    bytes.resize(bytes.len() + (key % 7 * key % 40) as usize, b'.');
    bytes
}

fn key_of(bytes: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(bytes).ok()?;
    u64::from_str_radix(text.strip_prefix("key-")?.split('-').next()?, 16).ok()
}

/// The bytes of a value: of many lengths, all of them telling which value it is.
fn value_bytes(value: u64) -> Vec<u8> {
    let mut random = Rng::with_seed(value);
    let length = match random.u32(..8) {
        0..4 => random.usize(8..64),
        4..7 => random.usize(64..400),
        _ => random.usize(400..2000),
    };
    let mut bytes = value.to_le_bytes().to_vec();
    bytes.extend(std::iter::repeat_with(|| random.u8(..)).take(length - 8));
    bytes
}

/// Which value these bytes are; `None` if they are none.
fn value_of(bytes: &[u8]) -> Option<u64> {
    let value = u64::from_le_bytes(*bytes.first_chunk()?);
    (value_bytes(value) == bytes).then_some(value)
}

fn departure(entry: &Departed) -> String {
    if entry.key == COUNTER {
        return "counter left".to_owned();
    }
    match (key_of(&entry.key), value_of(&entry.value)) {
        (Some(key), Some(value)) => format!("left {key} {value}"),
        _ => format!("corrupt departure of {:?}", entry.key.escape_ascii().to_string()),
    }
}

/// Does a worker's task, if this process is one; it ends by being killed.
pub(super) fn work() -> bool {
    let Some(task) = task() else { return false };
    let words: Vec<&str> = task.split(' ').collect();
    let ["cache", name, worker, seed, forks, descriptor] = words[..] else { return false };
    let (Ok(worker), Ok(seed)) = (worker.parse::<u64>(), seed.parse::<u64>()) else {
        return false;
    };
    let opened = match descriptor.parse() {
        Ok(descriptor) => TierCache::attach_sealed(inherit::descriptor(descriptor)),
        Err(_) => TierCache::attach(&Place::Name(name.to_owned())),
    };
    let worked = opened.map_err(|error| error.to_string()).and_then(|cache| {
        if forks == "forks" {
            // The parent has a handle that its child must not take for a dead one's.
            let parents = cache.handle().map_err(|error| error.to_string())?;
            inherit::go_on_in_a_child();
            std::mem::forget(parents);
        }
        toil(cache, worker, seed)
    });
    if let Err(error) = worked {
        report(&format!("failed {error}"));
    }
    true
}

fn toil(mut cache: TierCache, worker: u64, seed: u64) -> Result<(), String> {
    cache.set_sink(|batch: &[Departed]| {
        batch.iter().for_each(|entry| report(&departure(entry)));
        Ok(())
    });
    let cache = Arc::new(cache);
    // Every other one serves, in one office or in all of them, until it is killed.
    let roles = [Roles::MAINTAIN, Roles::DEMOTE, Roles::DELIVER, Roles::ALL];
    let serves = cache.tiers() > 1 && seed % 2 == 0;
    let _service = serves.then(|| {
        let roles = roles[(seed / 2 % 4) as usize];
        cache.spawn_service(roles, Duration::from_micros(200))
    });
    let mut handle = cache.handle().map_err(|error| error.to_string())?;
    handle.set_timeout(PATIENCE);
    let mut random = Rng::with_seed(seed);
    report("ready");
    for step in 0.. {
        let key = worker << 32 | random.u64(..KEYS);
        if cache.tiers() > 1 && random.u32(..4) == 0 {
            let (tier, most) = (random.usize(..TIERS - 1), random.usize(1..6));
            if let Err(error) = handle.demote_oldest(tier, most) {
                report(&format!("failed {key}: {error}"));
            }
        }
        operate(&mut handle, key, seed << 32 | step, random.u32(..16));
    }
    Ok(())
}

fn operate(handle: &mut Handle<'_>, key: u64, value: u64, choice: u32) {
    let (name, bytes) = (key_bytes(key), value_bytes(value));
    let told = |done: bool| if done { format!("done {key}") } else { format!("refused {key}") };
    let answer = match choice {
        0..5 => {
            report(&format!("set {key} {value}"));
            handle.insert(&name, &bytes).map(|_| told(true))
        }
        5 => {
            report(&format!("add {key} {value}"));
            handle.insert_new(&name, &bytes, None).map(told)
        }
        6..8 => {
            report(&format!("update {key} {value}"));
            handle.replace(&name, &bytes, None).map(told)
        }
        8..10 => {
            report(&format!("remove {key}"));
            handle.remove(&name).map(told)
        }
        10 => {
            report("counting");
            handle.incr(COUNTER, 1, Some(0), None).map(|_| "counted".to_owned())
        }
        _ => {
            report(&format!("get {key}"));
            handle.get(&name).map(|found| match found.as_deref().map(value_of) {
                Some(Some(value)) => format!("saw {key} {value}"),
                Some(None) => format!("corrupt value of {key}"),
                None => format!("missed {key}"),
            })
        }
    };
    report(&match answer {
        Ok(answer) => answer,
        // Without effect.
        Err(CacheError::Full) if choice == 10 => "counting nothing".to_owned(),
        Err(CacheError::Full) => format!("busy {key}"),
        Err(error) => format!("failed {key}: {error}"),
    });
}

fn run(order: &Order, form: Form, course: Course) -> Verdict {
    let name = format!("torture-{}-{}-{}", std::process::id(), form as u8, course as u8);
    let place = Place::Name(name.clone());
    let _ = TierCache::unlink(&place);
    let mut soak = Soak {
        name,
        form,
        course,
        descriptor: None,
        workers: order.threads.clamp(2, 8),
        random: Rng::with_seed(order.seed),
        life: 0,
        ledger: Ledger::default(),
        counted: 0,
        uncertain: 0,
        verdict: Verdict {
            cycles: Some(0),
            kills: Some(0),
            lost: Some(0),
            hangs: Some(0),
            leaks: Some(0),
            ..Verdict::default()
        },
    };
    let end = Instant::now() + order.time;
    let result = soak.open(&place).and_then(|(cache, mut remaker)| {
        soak.cycles(&cache, end)?;
        remaker.as_mut().map_or(Ok(()), Remaker::end)
    });
    let _ = TierCache::unlink(&place);
    let _ = TierCache::unlink(&Place::Name(soak.name.clone()));
    if let Err(error) = result {
        soak.verdict.violations += 1;
        soak.verdict.notes.push(error);
    }
    soak.verdict
}

/// A soak: the book, and what was found.
struct Soak {
    /// What workers attach to.
    name: String,
    form: Form,
    course: Course,
    /// What workers inherit instead.
    descriptor: Option<OwnedFd>,
    workers: usize,
    random: Rng,
    life: u64,
    ledger: Ledger,
    /// Acknowledged steps of the counter.
    counted: u64,
    /// Steps that began and were not answered.
    uncertain: u64,
    verdict: Verdict,
}

impl Soak {
    /// Makes the cache, and whatever goes on beside it.
    fn open(&mut self, place: &Place) -> Result<(TierCache, Option<Remaker>), String> {
        let said = |error: &dyn std::fmt::Display| error.to_string();
        let builder = self.form.builder();
        if self.course == Course::Sealed {
            let cache = builder.create_sealed().map_err(|error| said(&error))?;
            self.descriptor = Some(cache.inheritable().map_err(|error| said(&error))?);
            return Ok((cache, None));
        }
        let cache = builder.create(place).map_err(|error| said(&error))?;
        if cache.tiers() > 1 {
            let quota = Quota::default().entries(MOST_ENTRIES);
            cache.set_process_quota(quota).map_err(|error| said(&error))?;
        }
        let mut remaker = None;
        if self.course == Course::Remade {
            let file = |name: &str| format!("/dev/shm/quintet-{name}");
            let second = format!("{}-second", self.name);
            std::fs::hard_link(file(&self.name), file(&second)).map_err(|error| said(&error))?;
            self.name = second;
            remaker = Some(Remaker::start(place.clone()));
        }
        Ok((cache, remaker))
    }

    fn cycles(&mut self, cache: &TierCache, end: Instant) -> Result<(), String> {
        loop {
            self.kill_for_a_while(end)?;
            cache.recover().map_err(|error| error.to_string())?;
            self.judge(cache)?;
            *self.verdict.cycles.get_or_insert(0) += 1;
            let bad = !self.verdict.holds();
            if bad || Instant::now() >= end {
                return Ok(());
            }
        }
    }

    /// Starts a worker, which begins as soon as it can.
    fn start(&mut self, worker: usize) -> Result<Child, String> {
        self.life += 1;
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut command = Command::new(program);
        command.arg("torture");
        let forks = match self.course {
            Course::Forked | Course::Sealed => "forks",
            Course::Named | Course::Remade => "works",
        };
        let descriptor = self.descriptor.as_ref().map_or(-1, AsRawFd::as_raw_fd);
        let descriptor = if descriptor < 0 { "none".to_owned() } else { descriptor.to_string() };
        let (worker, life) = (worker + 1, self.life);
        let task = format!("cache {} {worker} {life} {forks} {descriptor}", self.name);
        Child::of(command, &task).map_err(|error| error.to_string())
    }

    /// Waits until a worker has begun.
    fn begun(&mut self, child: Child) -> Result<Child, String> {
        match child.line(PATIENCE) {
            Some(line) if line == "ready" => Ok(child),
            Some(line) => Err(format!("a worker did not start: {line}")),
            None => {
                *self.verdict.hangs.get_or_insert(0) += 1;
                Err("a worker did not start: nobody alive stands in its way".to_owned())
            }
        }
    }

    fn kill_for_a_while(&mut self, end: Instant) -> Result<(), String> {
        let all = 0..self.workers;
        let started = all.map(|worker| self.start(worker)).collect::<Result<Vec<_>, _>>()?;
        let begun = started.into_iter().map(|child| self.begun(child));
        let mut workers = begun.collect::<Result<Vec<_>, _>>()?;
        // Whose keys each of them has, and the keys that nobody has.
        let mut keys: Vec<usize> = (0..self.workers).collect();
        let mut free = self.workers;
        // Heard when all are dead: a book that is kept meanwhile would take the time that kills
        // need.
        let mut dead = Vec::new();
        for _ in 0..KILLS {
            if Instant::now() >= end {
                break;
            }
            // Starts while the others work on, with the keys of one that is dead.
            let next = self.start(free)?;
            std::thread::sleep(Duration::from_micros(self.random.u64(..6000)));
            let worker = self.random.usize(..self.workers);
            workers[worker].kill().map_err(|error| error.to_string())?;
            free = std::mem::replace(&mut keys[worker], free);
            let next = self.begun(next)?;
            dead.push(std::mem::replace(&mut workers[worker], next));
        }
        for mut worker in workers {
            worker.kill().map_err(|error| error.to_string())?;
            dead.push(worker);
        }
        *self.verdict.kills.get_or_insert(0) += dead.len() as u64;
        dead.iter().try_for_each(|child| self.hear_out(child))
    }

    /// Hears everything that a dead worker reported.
    fn hear_out(&mut self, child: &Child) -> Result<(), String> {
        let mut counting = false;
        for line in child.rest() {
            counting = match &line[..] {
                "counting" => true,
                "counted" | "counting nothing" => false,
                _ => counting,
            };
            self.hear(&line)?;
        }
        self.uncertain += u64::from(counting);
        Ok(())
    }

    fn hear(&mut self, line: &str) -> Result<(), String> {
        self.verdict.operations += 1;
        match line {
            "counting" | "counting nothing" | "counter left" => {}
            "counted" => self.counted += 1,
            line if line.starts_with("corrupt") => {
                self.verdict.violations += 1;
                self.verdict.notes.push(line.to_owned());
            }
            line => {
                if !self.ledger.read(line)? {
                    // Nobody alive is ever stopped here: whoever gives up has hung.
                    *self.verdict.hangs.get_or_insert(0) += 1;
                    self.verdict.notes.push(line.to_owned());
                }
            }
        }
        Ok(())
    }

    /// Verifies the cache, which nobody uses now, and compares it with the book.
    fn judge(&mut self, cache: &TierCache) -> Result<(), String> {
        let report = cache.check()?;
        let reader = cache.reader();
        let mut known = Vec::new();
        let mut corrupt = 0;
        let look = |key| {
            let found = reader.get(key_bytes(key)).ok().flatten()?;
            let Some(value) = value_of(&found) else {
                corrupt += 1;
                return None;
            };
            known.push((key, value));
            Some(value)
        };
        let present = match self.ledger.close(look) {
            Ok(present) => present as u64,
            Err(error) => {
                self.verdict.lost = Some(1);
                self.verdict.notes.push(error);
                return Ok(());
            }
        };
        self.verdict.violations += corrupt;
        let counter = self.judge_counter(&reader)?;
        let leaks = report.entries.abs_diff(present + u64::from(counter));
        *self.verdict.leaks.get_or_insert(0) += leaks;
        if let Some(holds) = cache.namespace_stats().first().and_then(|space| space.holds) {
            // Counted anew by the recovery: who pays for an entry, or that it is a suspect, is with
            // the entry.
            let known = holds.entries + cache.suspects();
            *self.verdict.leaks.get_or_insert(0) += known.abs_diff(report.entries);
        }
        // The next cycle begins with what is there.
        self.ledger = Ledger::default();
        for (key, value) in known {
            self.ledger.begin(key, Entry::Add(value));
            self.ledger.end(key, Answer::Done)?;
        }
        Ok(())
    }

    /// Every acknowledged step was counted, and no step twice. Says whether the number is there;
    /// once evicted it begins anew.
    fn judge_counter(&mut self, reader: &Reader<'_>) -> Result<bool, String> {
        let found = reader.get(COUNTER).map_err(|error| error.to_string())?;
        let text = found.as_deref().map(|text| String::from_utf8_lossy(text).into_owned());
        let number = text.as_ref().map_or(Ok(0), |text| text.parse::<u64>());
        let number = number.map_err(|_| format!("the counter is {text:?}"))?;
        let most = self.counted + self.uncertain;
        let least = if self.form.keeps() { self.counted } else { 0 };
        if number < least || number > most {
            self.verdict.lost = Some(1);
            self.verdict.notes.push(format!("{number} counted, not {least} to {most}"));
        }
        Ok(found.is_some())
    }
}
