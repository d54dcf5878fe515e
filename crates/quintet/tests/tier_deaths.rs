//! `TierCache`: nobody alive is proved dead. One story for each way in which a living process could
//! look dead: forks, removed and remade names, namespaces, a missing `/proc`. Namespaces need
//! rights; a story that may not make one says so and is skipped.

#![cfg(target_os = "linux")]

use quintet::TierCache;
use quintet::cache::*;
use quintet_testkit::crash::{Child, report, task};
use std::io::BufRead;
use std::process::Command;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(20);

/// A cache that is removed with its story.
struct Named(String);

impl Named {
    fn new(name: &str) -> Self {
        let named = Self(format!("tier-deaths-{name}-{}", std::process::id()));
        let _ = TierCache::unlink(&named.place());
        named
    }

    fn place(&self) -> Place {
        Place::Name(self.0.clone())
    }

    fn create(&self) -> TierCache {
        small().create(&self.place()).unwrap()
    }

    /// A child with a task on this cache, started through `command` where one is given.
    fn child(&self, command: &[&str], task: &str) -> Child {
        let program = std::env::current_exe().unwrap();
        let words = command.iter().map(|word| word.to_string());
        let mut words: Vec<String> = words.chain([program.display().to_string()]).collect();
        words.extend(["child", "--exact", "--nocapture", "--test-threads=1"].map(str::to_owned));
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        Child::of(command, &format!("{task} {}", self.0)).unwrap()
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        let _ = TierCache::unlink(&self.place());
    }
}

fn small() -> CacheBuilder {
    TierCache::builder().capacity(1 << 20).handles(8)
}

/// True if this command may make its namespace here.
fn may(command: &[&str]) -> bool {
    let made = Command::new(command[0]).args(&command[1..]).arg("true").output();
    let may = made.is_ok_and(|made| made.status.success());
    if !may {
        println!("skipped: {} is not permitted here", command.join(" "));
    }
    may
}

const TIME: &[&str] = &["unshare", "--time", "--boottime", "100000", "--fork"];
const PIDS: &[&str] = &["unshare", "--pid", "--fork", "--mount-proc"];
const PIDS_OLD_PROC: &[&str] = &["unshare", "--pid", "--fork"];
/// This user has another number there; and nobody has a number there.
const USERS: &[&str] = &["unshare", "--user", "--map-user=7"];
const NO_USERS: &[&str] = &["unshare", "--user"];
const NO_PROC: &[&str] =
    &["unshare", "--mount", "sh", "-c", "mount -t tmpfs none /proc && exec \"$0\" \"$@\""];

/// The entry of every child; in the parent's own run it does nothing.
#[test]
fn child() {
    let Some(task) = task() else { return };
    let (task, name) = task.split_once(' ').unwrap();
    let place = Place::Name(name.to_owned());
    match task {
        "join" => {
            let cache = TierCache::attach(&place).unwrap();
            let mut handle = cache.handle().unwrap();
            cache.recover().unwrap();
            (0..200).for_each(|number| drop(handle.insert(number.to_string(), "child")));
            report(&format!("sees {}", cache.processes().len()));
            wait_for_a_line();
            handle.insert("last", "child").unwrap();
            report("done");
        }
        "look" => {
            let cache = TierCache::attach(&place).unwrap();
            report(&format!("has {}", cache.reader().get("kept").unwrap().is_some()));
        }
        "open" | "open-any" => {
            let any = task == "open-any";
            let builder = if any { small().any_owner() } else { small() };
            match builder.attach(&place) {
                Ok(cache) => report(&format!("has {}", cache.get("kept").unwrap().is_some())),
                Err(error) => report(&error.to_string()),
            }
        }
        "sealed" => match small().create_sealed() {
            Ok(_) => report("made"),
            Err(error) => report(&error.to_string()),
        },
        "fork-after-remove" | "fork-after-remake" => {
            let cache = TierCache::attach(&place).unwrap();
            let handle = cache.handle().unwrap();
            TierCache::unlink(&place).unwrap();
            if task == "fork-after-remake" {
                drop(small().create(&place).unwrap());
            }
            in_child(|| match cache.handle() {
                Ok(mut own) => report(&format!("stored {}", own.insert("k", "v").is_ok())),
                Err(error) => report(&error.to_string()),
            });
            drop(handle);
        }
        "no-descriptors" => {
            let cache = TierCache::attach(&place).unwrap();
            let none = libc::rlimit { rlim_cur: 3, rlim_max: 3 };
            // SAFETY: the structure outlives the call.
            unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &none) };
            report(&cache.handle().err().map_or("joined".to_owned(), |error| error.to_string()));
        }
        "raw-clone" => {
            let cache = TierCache::attach(&place).unwrap();
            let mut handle = cache.handle().unwrap();
            handle.insert("before", "clone").unwrap();
            // SAFETY: a fork that no library hears of; the parent ends at once, the child is a copy
            // of its only working thread.
            let pid = unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) };
            if pid != 0 {
                // SAFETY: ends the parent, so that the copy is the only user of its seat.
                unsafe { libc::_exit(0) };
            }
            report("cloned");
            wait_for_a_line();
            let stored = handle.insert("after", "clone").is_ok();
            report(&format!("stored {stored}"));
            // SAFETY: ends the copy at once.
            unsafe { libc::_exit(0) };
        }
        other => panic!("unknown task {other}"),
    }
}

fn wait_for_a_line() {
    let _ = std::io::stdin().lock().lines().next();
}

fn in_child(work: impl FnOnce()) {
    // SAFETY: the child uses this library only, whose state is atomics, and ends without running
    // destructors.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        work();
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(0) };
    }
    let (mut status, since) = (-1, Instant::now());
    // SAFETY: asks for the child made above, whose status outlives the call.
    while unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG) } == 0 {
        assert!(since.elapsed() < PATIENCE, "the child hangs");
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(status, 0, "the child failed");
}

/// Parent and child in one cache whose name was made anew: both go on in the old one, each in a
/// seat of its own.
#[test]
fn fork_then_remove_and_create_then_both_go_on() {
    let named = Named::new("fork-remade");
    let cache = named.create();
    let mut handle = cache.handle().unwrap();
    handle.insert("parent", "1").unwrap();
    TierCache::unlink(&named.place()).unwrap();
    drop(named.create());
    in_child(|| {
        let mut own = cache.handle().unwrap();
        (0..500).for_each(|number| assert!(own.insert(number.to_string(), "child").is_ok()));
        assert_eq!(cache.processes().len(), 2, "the parent is alive");
    });
    (0..500).for_each(|number| assert!(handle.insert(format!("p{number}"), "parent").is_ok()));
    assert_eq!(handle.get("parent").unwrap().as_deref(), Some(&b"1"[..]));
    drop(handle);
    cache.recover().unwrap();
    assert_eq!(cache.check().unwrap().entries, 1001);
    assert_eq!(TierCache::attach(&named.place()).unwrap().len(), 0, "the new one is another");
}

/// A seat taken by whoever came through such a name is nobody else's.
#[track_caller]
fn lives_beside_a_peer(name: &str, through: &[&str]) {
    if !may(through) {
        return;
    }
    let named = Named::new(name);
    let cache = named.create();
    let mut handle = cache.handle().unwrap();
    handle.insert("mine", "parent").unwrap();
    let mut child = named.child(through, "join");
    assert_eq!(child.line(PATIENCE).as_deref(), Some("sees 2"), "both are alive");
    for number in 0..200 {
        handle.insert(format!("p{number}"), "parent").unwrap();
        cache.recover().unwrap();
    }
    assert_eq!(cache.processes().len(), 2, "both are alive");
    child.tell("go on");
    assert_eq!(child.line(PATIENCE).as_deref(), Some("done"));
    assert!(child.wait(PATIENCE).unwrap().is_some_and(|status| status.success()));
    drop(handle);
    cache.recover().unwrap();
    assert_eq!(cache.check().unwrap().entries, 402);
    let left: Vec<u32> = cache.processes().iter().map(|process| process.pid).collect();
    assert_eq!(left, [std::process::id()], "the child has gone");
}

#[test]
fn a_peer_in_another_time_namespace_is_alive() {
    lives_beside_a_peer("time", TIME);
}

#[test]
fn a_peer_in_another_pid_namespace_is_alive() {
    lives_beside_a_peer("pids", PIDS);
}

/// Its own `/proc` still shows the other namespace: the numbers there are somebody else's.
#[test]
fn a_peer_in_a_pid_namespace_without_a_proc_of_its_own_is_alive() {
    lives_beside_a_peer("pids-old-proc", PIDS_OLD_PROC);
}

#[test]
fn a_peer_without_proc_is_alive() {
    lives_beside_a_peer("no-proc", NO_PROC);
}

/// The same user under another number: the file's owner is compared as the system shows it there,
/// not as its maker wrote it down.
#[test]
fn a_peer_in_another_user_namespace_is_alive() {
    lives_beside_a_peer("users", USERS);
}

/// Where the owner has no number, it is shown as one that anybody without a number has: nobody is
/// trusted for that.
#[test]
fn an_owner_without_a_number_is_nobody_to_trust() {
    if !may(NO_USERS) {
        return;
    }
    let named = Named::new("numberless");
    let cache = named.create();
    cache.insert("kept", "value").unwrap();
    let said = named.child(NO_USERS, "open").line(PATIENCE).unwrap();
    assert!(said.contains("user namespace") && said.contains("any owner"), "{said}");
    let child = named.child(NO_USERS, "open-any");
    assert_eq!(child.line(PATIENCE).as_deref(), Some("has true"));
}

/// Clocks that differ between namespaces decide nothing.
#[test]
fn time_means_the_same_in_every_namespace() {
    const LATER: &[&str] =
        &["unshare", "--time", "--monotonic", "100000", "--boottime", "100000", "--fork"];
    if !may(LATER) {
        return;
    }
    let named = Named::new("clock");
    let cache = named.create();
    let mut handle = cache.handle().unwrap();
    handle.insert_for("kept", "value", Some(Duration::from_secs(60))).unwrap();
    let child = named.child(LATER, "look");
    assert_eq!(child.line(PATIENCE).as_deref(), Some("has true"));
    assert!(handle.get("kept").unwrap().is_some());
}

/// Who cannot read which boot it is repairs nothing and moves no clock.
#[test]
fn without_proc_no_cache_is_restarted() {
    if !may(NO_PROC) {
        return;
    }
    let named = Named::new("no-boot");
    let cache = named.create();
    let mut handle = cache.handle().unwrap();
    handle.insert_for("kept", "value", Some(Duration::from_secs(60))).unwrap();
    let sweeps = cache.stats().sweeps;
    for _ in 0..2 {
        std::thread::sleep(Duration::from_millis(200));
        let before = handle.ttl("kept").unwrap();
        let child = named.child(NO_PROC, "look");
        assert_eq!(child.line(PATIENCE).as_deref(), Some("has true"));
        assert!(handle.ttl("kept").unwrap() <= before, "the clock went back");
        drop(TierCache::attach(&named.place()).unwrap());
        assert!(handle.ttl("kept").unwrap() <= before, "the clock went back");
    }
    assert_eq!(cache.stats().sweeps, sweeps, "nobody repaired anything");
}

/// A file without a name can be opened again only through `/proc`, and a child needs that for a
/// lock of its own.
#[test]
fn a_sealed_cache_without_proc_is_refused_with_advice() {
    if !may(NO_PROC) {
        return;
    }
    let child = Named::new("sealed").child(NO_PROC, "sealed");
    let said = child.line(PATIENCE).unwrap();
    assert!(said.contains("/proc") && said.contains("mount"), "{said}");
}

/// The name is gone, the cache is not: a child takes a seat in it.
#[test]
fn a_child_forked_after_remove_takes_a_seat() {
    let named = Named::new("removed");
    let cache = named.create();
    let child = named.child(&[], "fork-after-remove");
    assert_eq!(child.line(PATIENCE).as_deref(), Some("stored true"));
    assert_eq!(child.line(Duration::from_secs(5)), None);
    assert_eq!(cache.reader().get("k").unwrap().as_deref(), Some(&b"v"[..]));
}

/// Without `/proc` it cannot, and is told why; a new cache of the same name is not taken for the
/// old one.
#[test]
fn a_child_forked_after_remove_without_proc_is_told_why() {
    if !may(NO_PROC) {
        return;
    }
    for task in ["fork-after-remove", "fork-after-remake"] {
        let named = Named::new(task);
        let cache = named.create();
        let child = named.child(NO_PROC, task);
        let said = child.line(PATIENCE).unwrap();
        assert!(said.contains("removed") && said.contains("/proc"), "{said}");
        drop(cache);
    }
}

/// Who has no descriptor left is told so, and not that the cache or `/proc` is gone.
#[test]
fn without_a_descriptor_the_reason_is_told() {
    let named = Named::new("descriptors");
    let _cache = named.create();
    let said = named.child(&[], "no-descriptors").line(PATIENCE).unwrap();
    assert!(said.contains("open files"), "{said}");
}

/// A process whose first thread has ended shows as a zombie while its other threads work.
#[test]
fn a_process_whose_first_thread_ended_is_alive() {
    let named = Named::new("leader");
    let cache = named.create();
    let mut mine = cache.handle().unwrap();
    // SAFETY: the child uses this library only and ends without running destructors.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        let work = || {
            let mut handle = cache.handle().unwrap();
            let started = Instant::now();
            while started.elapsed() < Duration::from_secs(2) {
                handle.insert("child", "at work").unwrap();
            }
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(0) };
        };
        std::thread::scope(|scope| {
            scope.spawn(work);
            // SAFETY: ends the first thread alone; nothing of it is used by the other but the
            // cache, which stays mapped.
            unsafe { libc::syscall(libc::SYS_exit, 0) };
        });
    }
    let since = Instant::now();
    while mine.get("child").unwrap().is_none() {
        assert!(since.elapsed() < PATIENCE, "the child works");
    }
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let state = stat.rsplit_once(") ").unwrap().1.chars().next();
    for _ in 0..100 {
        cache.recover().unwrap();
        mine.insert("mine", "beside it").unwrap();
    }
    assert_eq!(cache.processes().len(), 2, "alive, though its state is {state:?}");
    let mut status = -1;
    // SAFETY: waits for the child made above, whose status outlives the call.
    unsafe { libc::waitpid(pid, &raw mut status, 0) };
    assert_eq!((state, status), (Some('Z'), 0));
    drop(mine);
    cache.recover().unwrap();
    cache.check().unwrap();
}

/// A copy of a process made behind the library's back, whose original has ended: the seat is still
/// in use.
#[test]
fn a_raw_clone_that_outlives_its_parent_is_alive() {
    let named = Named::new("clone");
    let cache = named.create();
    let mut handle = cache.handle().unwrap();
    let mut child = named.child(&[], "raw-clone");
    assert_eq!(child.line(PATIENCE).as_deref(), Some("cloned"));
    assert!(child.wait(PATIENCE).unwrap().is_some(), "the original has ended");
    for _ in 0..100 {
        cache.recover().unwrap();
        handle.insert("mine", "beside it").unwrap();
    }
    assert_eq!(cache.processes().len(), 2, "the copy is alive");
    child.tell("go on");
    assert_eq!(child.line(PATIENCE).as_deref(), Some("stored true"));
    let since = Instant::now();
    while cache.processes().len() == 2 {
        assert!(since.elapsed() < PATIENCE, "noticed when the copy ends");
        std::thread::sleep(Duration::from_millis(1));
    }
    drop(handle);
    cache.recover().unwrap();
    assert_eq!(cache.check().unwrap().entries, 3);
}

/// Every case of the page "Who is dead" names a story that is there.
#[test]
fn every_case_of_the_page_is_a_story() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("docs/tier_cache.md")).unwrap();
    let page = page.split_once("# Who is dead").unwrap().1;
    let cases = page.lines().skip_while(|line| !line.starts_with("| case |")).skip(2);
    let cases: Vec<&str> = cases.take_while(|line| line.starts_with('|')).collect();
    assert!(cases.len() >= 12, "the table is there");
    let files = [
        "tests/tier_deaths.rs",
        "src/region/shm/tests.rs",
        "src/tier_cache/tests/processes.rs",
        "src/tier_cache/cache/tests/processes.rs",
    ];
    let sources: String =
        files.iter().map(|file| std::fs::read_to_string(root.join(file)).unwrap()).collect();
    for case in cases {
        let stories = case.split('|').nth(3).unwrap();
        assert!(stories.contains('`'), "{case}");
        for story in stories.split('`').skip(1).step_by(2) {
            assert!(sources.contains(&format!("fn {story}()")), "{story}");
        }
    }
}
