//! The cache in shared memory against what processes share today: LMDB in memory, Redis and
//! memcached on a unix socket. The racers are processes, children of the race. Caches in one
//! process and batched forms are yardsticks: the former share nothing, and whoever waits for
//! sixteen answers waits for the last of them.

use crate::race::family::{
    Bench, Family, Heat, Measure, Role, Sample, Sizes, Table, Workload, Wrong, at_work,
};
use crate::race::jobs::stores::{fill, obey, value_of};
#[cfg(target_os = "linux")]
use crate::race::ours::cache::{Alone, Many, Ours};
use crate::race::racers::{Racers, expect, lap, racer};
use crate::race::stint::Stint;
use quintet_rivals::Label;
#[cfg(target_os = "linux")]
use quintet_rivals::stores::Lmdb;
#[cfg(unix)]
use quintet_rivals::stores::{Memcached, Redis};
use quintet_rivals::stores::{MemcpyBytes, MokaBytes, QuickBytes, Store};
use quintet_testkit::crash::Child;
use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

/// The family.
pub(crate) fn family() -> Family {
    Family {
        name: "cache",
        about: "bytes under bytes in shared memory, by processes",
        workloads: WORKLOADS,
        tables: at_work!("cache", tables),
        sizes: Sizes {
            quick: &[1_000_000],
            full: &[1_000_000],
            shares: &[("1k", 10)],
            rare: &[("1m", 16_384)],
        },
    }
}

const fn workload(
    name: &'static str,
    reason: &'static str,
    stage: &'static str,
    turn: &'static str,
) -> Workload {
    Workload { name, reason, stage, turn, measure: Measure::Rate }
}

const WORKLOADS: &[Workload] = &[
    Workload {
        ..workload("get-64b", "values of 64 bytes under keys of 16, all as likely", "64b", "get")
    },
    workload("get-hot-64b", "the same of 4,096 keys", "64b", "hot"),
    workload("set-64b", "replace values of 64 bytes", "64b", "set"),
    workload("mix90-64b", "nine lookups to one replacement", "64b", "mix"),
    workload("get-1k", "values of 1 KiB", "1k", "get"),
    workload("set-1k", "replace values of 1 KiB", "1k", "set"),
    workload("get-1m", "values of 1 MiB", "1m", "get"),
    workload("set-1m", "replace values of 1 MiB", "1m", "set"),
];

/// Calls a macro with every cache and its role.
macro_rules! with_all {
    ($what:ident) => {
        #[cfg(target_os = "linux")]
        $what!(Ours, Role::Ours);
        #[cfg(target_os = "linux")]
        $what!(Lmdb<1>, Role::Rival);
        #[cfg(unix)]
        $what!(Redis<1>, Role::Rival);
        #[cfg(unix)]
        $what!(Memcached<1>, Role::Rival);
        #[cfg(target_os = "linux")]
        $what!(Alone, Role::Limit);
        #[cfg(target_os = "linux")]
        $what!(Many, Role::Limit);
        #[cfg(target_os = "linux")]
        $what!(Lmdb<256>, Role::Limit);
        #[cfg(unix)]
        $what!(Redis<16>, Role::Limit);
        #[cfg(unix)]
        $what!(Memcached<16>, Role::Limit);
        $what!(MokaBytes, Role::Limit);
        $what!(QuickBytes, Role::Limit);
        $what!(MemcpyBytes, Role::Limit);
    };
}

fn tables() -> Vec<Table> {
    let mut tables = Vec::new();
    macro_rules! add {
        ($store:ty, $role:expr) => {
            tables.push(Table {
                label: versioned(<$store as Store>::LABEL),
                role: $role,
                start: start::<$store>,
                weigh: None,
            });
        };
    }
    with_all!(add);
    tables
}

/// What a child does that was told this cache's name.
pub(crate) fn stores_by_name(name: &str) -> Option<fn()> {
    macro_rules! find {
        ($store:ty, $role:expr) => {
            if name == <$store as Store>::LABEL.name {
                return Some(obey::<$store>);
            }
        };
    }
    with_all!(find);
    None
}

/// A server's label with the version that is installed.
fn versioned(label: Label) -> Label {
    let program = match label.name.split(' ').next() {
        Some("redis") => "redis-server",
        Some("memcached") => "memcached",
        _ => return label,
    };
    static VERSIONS: Mutex<Vec<(&str, Option<&str>)>> = Mutex::new(Vec::new());
    let mut versions = VERSIONS.lock().unwrap_or_else(PoisonError::into_inner);
    if !versions.iter().any(|(name, _)| *name == program) {
        let output = std::process::Command::new(program).arg("--version").output();
        let text = output.map(|output| output.stdout).unwrap_or_default();
        // "Redis server v=7.0.15 sha=…", "memcached 1.6.18"
        let text = String::from_utf8_lossy(&text).into_owned();
        let mut words = text.split_whitespace().map(|word| word.trim_start_matches("v="));
        let version = words.find(|word| word.starts_with(|first: char| first.is_ascii_digit()));
        // Once per process and server.
        let version = version.map(|version| &*Box::leak(version.to_owned().into_boxed_str()));
        versions.push((program, version));
    }
    let found = versions.iter().find(|(name, _)| *name == program);
    Label { version: found.and_then(|(_, version)| *version), ..label }
}

/// Says once that a cache does not take part, and why.
fn missing(name: &str, why: &str) {
    static TOLD: Mutex<Option<HashSet<String>>> = Mutex::new(None);
    let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
    if told.get_or_insert_default().insert(why.to_owned()) {
        eprintln!("not run: {name}: {why}");
    }
}

fn start<S: Store>(stage: &str, keys: u64) -> Option<Box<dyn Bench>> {
    let value = value_of(stage);
    if !S::VALUES.contains(&value) {
        return None;
    }
    let company = Company::<S> { store: None, racers: Racers::default(), keys, value };
    match S::create(keys as usize, value) {
        Err(why) => {
            missing(S::LABEL.name, &why);
            None
        }
        Ok(store) if store.path().is_none() => Some(Box::new(company)),
        Ok(store) => {
            if !store.local().is_some_and(|mut local| fill(&mut local, keys, value)) {
                missing(S::LABEL.name, &format!("{} cannot be filled", S::LABEL.name));
                return None;
            }
            Some(Box::new(Company { store: Some(store), ..company }))
        }
    }
}

/// A cache and the processes that use it.
struct Company<S> {
    /// `None` if every process has its own.
    store: Option<S>,
    racers: Racers,
    keys: u64,
    value: usize,
}

impl<S: Store> Company<S> {
    fn hire(&self) -> Result<Child, Wrong> {
        let mut child = racer(&format!("race-cache {}", S::LABEL.name))?;
        match self.store.as_ref().and_then(S::path) {
            Some(path) => child.tell(&format!("enter {path} {}", self.keys)),
            None => child.tell(&format!("make {} {}", self.keys, self.value)),
        }
        expect(&child, "entered")?;
        Ok(child)
    }
}

impl<S: Store> Bench for Company<S> {
    fn round(&mut self, heat: &Heat, stint: Stint) -> Result<Sample, Wrong> {
        while self.racers.0.len() < heat.threads {
            let racer = self.hire()?;
            self.racers.0.push(racer);
        }
        let work = heat.workload.name;
        let laps = lap(&mut self.racers.0[..heat.threads], work, heat.keys, stint)?;
        Wrong::unless_zero(laps.wrong, work)?;
        Ok(Sample { mops: laps.rate * 1e3, operations: laps.operations, ..Sample::default() })
    }

    fn is_by_processes(&self) -> bool {
        true
    }
}
