//! Random programs over the whole public interface: every operation of every table in this process,
//! from several threads, nested in closures, `Hash`, `Eq`, `matches`, `Clone`, `Drop` and
//! iterators, with guards, references, iterators and ids kept across operations.
//!
//! Whatever safe code does, a program ends without a memory error (AddressSanitizer, and a mark in
//! every thing), without a hang, without a panic that is not documented, and with every thing
//! dropped.
//!
//! | Variable | Meaning |
//! |---|---|
//! | `QUINTET_SEED` | the first program; alone, the only one |
//! | `QUINTET_PROGRAMS` | how many programs from there, in one process |
//! | `QUINTET_OPERATIONS` | how many operations altogether |
//! | `QUINTET_SECONDS` | or for how long |
//! | `QUINTET_PATIENCE` | seconds without an operation that are a hang |
//! | `QUINTET_TRACE` | tells each operation before it runs |
//! | `QUINTET_HONEST` | programs of one thread whose comparisons and hashes are always right |
//! | `QUINTET_AVOID` | parts of names, as in `SeenSet of nothing,get_hashed`: operations that are left out |
//!
//! Programs run in child processes: whatever a child dies of, its parent names the program.
//! Programs of one thread repeat exactly; others as far as the system lets them.

mod aside;
mod chance;
mod context;
mod copies;
mod items;
mod kept;
mod maps;
mod seen;
mod thing;
mod twins;
mod watch;
mod words;

use chance::mixed;
use context::{Context, DONE, SEED, World, fatal};
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use thing::ALIVE;

/// Operations of one program.
const LENGTH: usize = 6_000;
/// Programs of one child.
const BATCH: u64 = 24;
/// What plain `cargo test` runs.
const USUAL: u64 = 400_000;

fn number(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{name}={value}: not a number")))
}

pub(crate) fn traced() -> bool {
    static TRACED: OnceLock<bool> = OnceLock::new();
    *TRACED.get_or_init(|| std::env::var_os("QUINTET_TRACE").is_some())
}

pub(crate) fn avoided() -> &'static [String] {
    static AVOIDED: OnceLock<Vec<String>> = OnceLock::new();
    AVOIDED.get_or_init(|| {
        let names = std::env::var("QUINTET_AVOID").unwrap_or_default();
        names.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
    })
}

fn main() -> ExitCode {
    if let Some(count) = number("QUINTET_CHILD") {
        child(number("QUINTET_SEED").unwrap_or(0), count);
        return ExitCode::SUCCESS;
    }
    let seed = number("QUINTET_SEED");
    let programs = number("QUINTET_PROGRAMS").or(seed.map(|_| 1));
    let operations = number("QUINTET_OPERATIONS").unwrap_or(USUAL);
    let end =
        number("QUINTET_SECONDS").map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let mut next = seed.unwrap_or_else(|| mixed(now()) >> 24);
    let (first, start) = (next, Instant::now());
    let mut tally = Tally::default();
    loop {
        let count =
            programs.map_or(BATCH, |programs| (programs - tally.programs).min(BATCH.max(programs)));
        if !tally.run(next, count) {
            return ExitCode::FAILURE;
        }
        next += count;
        let over = match (programs, end) {
            (Some(programs), _) => tally.programs >= programs,
            (None, Some(end)) => Instant::now() >= end,
            (None, None) => tally.operations >= operations,
        };
        if over {
            break;
        }
    }
    let Tally { programs, operations } = tally;
    let rate = operations as f64 / start.elapsed().as_secs_f64();
    println!("{operations} operations, programs {first} to {}, {rate:.0} operations/s", next - 1);
    println!("{programs} passed, 0 failed");
    ExitCode::SUCCESS
}

fn now() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as u64)
}

#[derive(Default)]
struct Tally {
    programs: u64,
    operations: u64,
}

impl Tally {
    /// Runs programs in a child. False if one failed.
    fn run(&mut self, first: u64, count: u64) -> bool {
        let program = std::env::current_exe().expect("this program has a path");
        let options = std::env::var("ASAN_OPTIONS").unwrap_or_default();
        let mut child = Command::new(program)
            .env("QUINTET_CHILD", count.to_string())
            .env("QUINTET_SEED", first.to_string())
            .env("ASAN_OPTIONS", format!("detect_leaks=0:{options}"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("this program can be run again");
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let errors = std::thread::spawn(move || {
            let mut text = Vec::new();
            stderr.map(|mut stderr| stderr.read_to_end(&mut text));
            String::from_utf8_lossy(&text).into_owned()
        });
        let mut at = first;
        for line in BufReader::new(stdout.expect("was asked for")).lines().map_while(Result::ok) {
            let mut words = line.split(' ');
            match (words.next(), words.next().and_then(|word| word.parse::<u64>().ok())) {
                (Some("program"), Some(seed)) => at = seed,
                (Some("operations"), Some(done)) => self.operations += done,
                _ => println!("{line}"),
            }
        }
        let status = child.wait().expect("the child was started");
        let errors = errors.join().unwrap_or_default();
        if status.success() {
            self.programs += count;
            if traced() {
                eprint!("{errors}");
            }
            return true;
        }
        let lines: Vec<_> = errors.lines().collect();
        let most = if traced() { usize::MAX } else { 120 };
        lines.iter().take(most).for_each(|line| eprintln!("{line}"));
        println!("program {at} failed: {status}");
        println!(
            "again: QUINTET_SEED={at}, or QUINTET_SEED={first} QUINTET_PROGRAMS={}",
            at - first + 1
        );
        println!(
            "after {} operations and {} programs",
            self.operations,
            self.programs + at - first
        );
        println!("{} passed, 1 failed", self.programs + at - first);
        false
    }
}

fn child(first: u64, count: u64) {
    watch::watch();
    for seed in first..first + count {
        println!("program {seed}");
        SEED.store(seed, Ordering::Relaxed);
        run(seed);
    }
    println!("operations {}", DONE.load(Ordering::Relaxed));
}

/// Runs one program, and looks whether anything is left of it.
fn run(seed: u64) {
    let world = Arc::new(World::new(seed));
    if traced() {
        eprintln!("{:?}", world.mood);
    }
    let (threads, leaks) = (world.mood.threads, world.mood.forgets || world.mood.drop_panics);
    let spawn = |thread| {
        let world = Arc::clone(&world);
        std::thread::spawn(move || Context::run(world, thread, LENGTH / threads))
    };
    let crew: Vec<_> = (0..threads).map(spawn).collect();
    for thread in crew {
        if thread.join().is_err() {
            fatal("a thread of the program ended by a panic");
        }
    }
    // In a thread of its own, which takes along what its seats hold.
    let end = std::thread::spawn(move || {
        world.empty();
        world.empty();
    });
    if end.join().is_err() {
        fatal("the end of the program panicked");
    }
    let left = ALIVE.swap(0, Ordering::Relaxed);
    if left < 0 || (left > 0 && !leaks) {
        fatal(&format!("{left} things are left when everything is dropped"));
    }
}
