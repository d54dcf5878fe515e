//! What a store may meet: a full disk, a damaged, removed or foreign file, a server with another
//! password, keys and values as long as they may be, as many namespaces as there may be.

use crate::cache::{PATIENCE, builder, empty, insist, name, number_of, value};
use crate::dir::Dir;
use quintet::cache::{CacheError, Namespace, OpenError, Place, TierCache};
use quintet_testkit::crash::{Child, report, task};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What a child does, in a process of its own, since it may be killed by it or changes what is the
/// whole process's. In the parent's own run it does nothing.
#[test]
fn attacks_child() {
    let Some(task) = task() else { return };
    let (what, rest) = task.split_once(' ').unwrap();
    match what {
        "disk" => on_a_full_disk(Path::new(rest)),
        "damaged" => over_a_damaged_store(rest),
        "foreign" => as_another_user(rest),
        "fork" => and_forks(Path::new(rest)),
        other => panic!("{other}"),
    }
    report("fine");
}

fn fares_well(task: &str) {
    let mut child = Child::of_test("attacks::attacks_child", task).unwrap();
    assert_eq!(child.line(PATIENCE).as_deref(), Some("fine"), "{task}: {:?}", child.wait(PATIENCE));
}

fn over(path: &Path) -> String {
    format!("lmdb:{}?size=64MiB&sync=none", path.display())
}

fn place_of(name: &str) -> Place {
    Place::Name(format!("quintet-attacks-{name}-{}", std::process::id()))
}

/// Looks until the store is not being left alone.
fn find(cache: &TierCache, key: u64) -> Option<u64> {
    let since = Instant::now();
    loop {
        let errors = cache.stats().store_errors;
        let found = cache.get(name(key)).unwrap();
        if found.is_some() || cache.stats().store_errors == errors {
            return found.map(|found| number_of(key, &found));
        }
        assert!(since.elapsed() < PATIENCE, "the store does not come back");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn limit_files(bytes: u64) {
    // SAFETY: a signal that is ignored from here on.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the limit outlives the call.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit) }, 0);
}

/// No file gets longer than a megabyte, as if the disk were full.
fn on_a_full_disk(path: &Path) {
    let cache = builder(&over(path)).create_sealed().unwrap();
    limit_files(1 << 20);
    let mut handle = cache.handle().unwrap();
    handle.set_timeout(Duration::from_millis(300));
    let mut told = None;
    let mut many = 0;
    while told.is_none() {
        match handle.insert(name(many), value(many, many)) {
            Ok(_) => many += 1,
            Err(error) => told = Some(error),
        }
    }
    assert!(matches!(told, Some(CacheError::Store(_))), "{told:?} after {many}");
    assert!(many > 2_000, "{many} fit");
    (0..many).for_each(|key| assert_eq!(find(&cache, key), Some(key), "of {many}"));
    assert!(cache.store_state().unwrap().last_error.is_some());
    limit_files(libc::RLIM_INFINITY);
    for key in 0..many + 2_000 {
        insist(|| handle.insert(name(key), value(key, key + 1)));
    }
    (0..many + 2_000).for_each(|key| assert_eq!(find(&cache, key), Some(key + 1)));
    assert_eq!(cache.stats().store_drops, 0);
}

#[test]
fn what_does_not_fit_on_the_disk_stays_in_memory() {
    let dir = Dir::new("full-disk");
    fares_well(&format!("disk {}", dir.path().display()));
}

/// A child that is forked has no thread and no open store of its own: it opens the store again. The
/// parent's writer is at work when it is forked.
fn and_forks(path: &Path) {
    let cache = builder(&over(path)).create_sealed().unwrap();
    let many = 4_000;
    let finds = |many: u64| {
        (0..many).all(|key| cache.get(name(key)).is_ok_and(|found| found == Some(value(key, key))))
    };
    for key in 0..many {
        cache.insert(name(key), value(key, key)).unwrap();
    }
    // SAFETY: the child uses the cache, reports by its exit code and ends without running anything
    // of the test.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let works = finds(many)
            && (many..2 * many).all(|key| cache.insert(name(key), value(key, key)).is_ok());
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(if works { 0 } else { 1 }) };
    }
    let mut status = 0;
    // SAFETY: waits for the child just made.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0, "the child");
    assert!(finds(2 * many));
}

#[test]
fn a_forked_child_opens_the_store_again() {
    let dir = Dir::new("forks");
    fares_well(&format!("fork {}", dir.path().display()));
}

/// Attaches, and finds each key or not, but no other value. There is something in memory.
fn over_a_damaged_store(named: &str) {
    let cache = TierCache::attach(&Place::Name(named.to_owned())).unwrap();
    let mut handle = cache.handle().unwrap();
    handle.set_timeout(Duration::from_millis(100));
    let found = (0..3_000).filter(|key| {
        let found = handle.get(name(*key)).unwrap();
        found.is_some_and(|found| number_of(*key, &found) == *key)
    });
    assert!(found.count() > 100, "what is in memory is found");
    // Whatever this returns: it returns.
    for key in 3_000..6_000 {
        let _ = handle.insert(name(key), value(key, key));
        let _ = handle.remove(name(key - 3_000));
    }
}

#[test]
fn a_store_that_was_damaged_or_removed_takes_nothing_from_memory() {
    type Damage = fn(&Path);
    let damages: [(&str, Damage); 6] = [
        ("overwritten", |file| {
            let length = std::fs::metadata(file).unwrap().len() as usize;
            std::fs::write(file, vec![0xa5; length]).unwrap();
        }),
        ("emptied", |file| std::fs::write(file, b"").unwrap()),
        ("cut", |file| {
            let file = std::fs::File::options().write(true).open(file).unwrap();
            file.set_len(file.metadata().unwrap().len() / 2).unwrap();
        }),
        ("cut to its heads", |file| {
            std::fs::File::options().write(true).open(file).unwrap().set_len(8192).unwrap();
        }),
        ("removed", |file| std::fs::remove_dir_all(file.parent().unwrap()).unwrap()),
        ("forbidden", |file| {
            // Nothing that can be opened, also for root.
            std::fs::remove_file(file).unwrap();
            std::fs::create_dir(file).unwrap();
        }),
    ];
    for (what, damage) in damages {
        let dir = Dir::new("damaged");
        let Place::Name(named) = place_of("damaged") else { unreachable!() };
        let place = Place::Name(named.clone());
        let cache = builder(&over(dir.path())).create(&place).unwrap();
        for key in 0..3_000 {
            cache.insert(name(key), value(key, key)).unwrap();
        }
        drop(cache);
        damage(&dir.path().join("data.mdb"));
        let mut child =
            Child::of_test("attacks::attacks_child", &format!("damaged {named}")).unwrap();
        let told = child.line(PATIENCE);
        TierCache::unlink(&place).unwrap();
        assert_eq!(told.as_deref(), Some("fine"), "{what}: {:?}", child.wait(PATIENCE));
    }
}

/// Its directory is removed while somebody has it open: that one goes on; who attaches meanwhile
/// would have another store, and older values, so it has none.
#[test]
fn a_store_that_was_removed_while_open_is_not_replaced_by_another() {
    let dir = Dir::new("removed-open");
    let place = place_of("removed-open");
    let cache = builder(&over(dir.path())).create(&place).unwrap();
    cache.insert(name(1), value(1, 1)).unwrap();
    empty(&cache);
    std::fs::remove_dir_all(dir.path()).unwrap();
    let again = TierCache::attach(&place);
    TierCache::unlink(&place).unwrap();
    let again = again.unwrap();
    let closed = again.store_state().unwrap().closed.unwrap();
    assert!(closed.contains("removed"), "{closed}");
    again.insert(name(1), value(1, 2)).unwrap();
    assert!(matches!(again.handle().unwrap().evict_oldest(1), Err(CacheError::NoStore(_))));
    assert_eq!(find(&cache, 1), Some(2));
    empty(&cache);
    assert_eq!(find(&cache, 1), Some(2), "in the store that this one has");
    drop((cache, again));
    // Another store in the same place is another store.
    let place = place_of("replaced");
    let cache = builder(&over(dir.path())).create(&place).unwrap();
    drop(cache);
    std::fs::remove_dir_all(dir.path()).unwrap();
    drop(builder(&over(dir.path())).create_sealed().unwrap());
    let again = TierCache::attach(&place);
    TierCache::unlink(&place).unwrap();
    let closed = again.unwrap().store_state().unwrap().closed.unwrap();
    assert!(closed.contains("not the store"), "{closed}");
}

/// Two caches over one file: apart, or together where both adopt what is there.
#[test]
fn two_caches_over_one_file_are_apart_unless_they_adopt_it() {
    let dir = Dir::new("two-caches");
    for adopts in [false, true] {
        let make = || {
            let builder = builder(&over(dir.path()));
            let builder = if adopts { builder.adopt_store() } else { builder };
            builder.create_sealed().unwrap()
        };
        let (here, there) = (make(), make());
        for key in 0..500 {
            here.insert(name(key), value(key, 1)).unwrap();
        }
        empty(&here);
        // The clock's step, within which nobody knows which write was the later one.
        std::thread::sleep(Duration::from_millis(20));
        for key in 0..500 {
            assert_eq!(find(&there, key), adopts.then_some(1));
            there.insert(name(key), value(key, 2)).unwrap();
        }
        empty(&there);
        (0..500).for_each(|key| assert_eq!(find(&here, key), Some(if adopts { 2 } else { 1 })));
    }
}

/// Through the store and back; what the store cannot take is dropped, counted, and never stale.
#[test]
fn keys_and_values_as_long_as_they_may_be() {
    let dir = Dir::new("longest");
    let small = format!("lmdb:{}?size=2MiB&sync=none", dir.path().join("small").display());
    for (address, fits) in [(over(dir.path()), true), (small, false)] {
        let builder = TierCache::builder().capacity(32 << 20).max_value(1 << 20);
        let cache = builder.store(&address).unwrap().create_sealed().unwrap();
        let key = vec![7; quintet::cache::MAX_KEY];
        let long = |number: u8| vec![number; 1 << 20];
        cache.insert("long", long(1)).unwrap();
        cache.insert(&key, "short").unwrap();
        cache.insert("short", "1").unwrap();
        assert!(matches!(
            cache.insert([&key[..], b"1"].concat(), ""),
            Err(CacheError::KeyTooLarge { .. })
        ));
        empty(&cache);
        assert_eq!(cache.get("long").unwrap(), fits.then(|| long(1)));
        assert_eq!(cache.get(&key).unwrap().as_deref(), Some(&b"short"[..]));
        assert_eq!(cache.get("short").unwrap().as_deref(), Some(&b"1"[..]));
        assert_eq!(cache.stats().store_drops, if fits { 0 } else { 1 });
        cache.insert("long", long(2)).unwrap();
        empty(&cache);
        assert_eq!(cache.get("long").unwrap(), fits.then(|| long(2)));
    }
}

/// A hundred thousand namespaces, one after another in the same few places, and as many at once as
/// there may be: nobody finds what another has in the store.
#[test]
fn a_hundred_thousand_namespaces_are_apart() {
    let dir = Dir::new("namespaces");
    let cache = builder(&over(dir.path())).namespaces(4).create_sealed().unwrap();
    let mut handle = cache.handle().unwrap();
    for round in 0..100_000_u64 {
        let space = cache.namespace("passing").unwrap();
        handle.set_namespace(space);
        if round % 100 == 0 {
            assert_eq!(handle.get(name(1)).unwrap(), None, "{round}");
            insist(|| handle.insert(name(1), value(1, round)));
            while !handle.evict_oldest(64).unwrap().is_empty() {}
            let found = handle.get(name(1)).unwrap().map(|found| number_of(1, &found));
            assert_eq!(found, Some(round));
        }
        assert!(cache.remove_namespace("passing").unwrap());
    }
    handle.set_namespace(Namespace::default());
    drop(handle);
    let cache = TierCache::builder().capacity(4 << 20).namespaces(4_095);
    let cache = cache.store(&over(dir.path())).unwrap().create_sealed().unwrap();
    let mut handle = cache.handle().unwrap();
    let mut spaces = Vec::new();
    let told = loop {
        let number = spaces.len() as u64;
        let space = match cache.namespace(&format!("space {number}")) {
            Ok(space) => space,
            Err(error) => break error,
        };
        if number % 50 == 0 {
            handle.set_namespace(space);
            insist(|| handle.insert(name(1), value(1, number)));
        }
        spaces.push(space);
    };
    assert_eq!((spaces.len(), told), (4_095, CacheError::TooManyNamespaces));
    while !handle.evict_oldest(64).unwrap().is_empty() {}
    for (number, space) in spaces.into_iter().enumerate().step_by(50) {
        handle.set_namespace(space);
        let found = handle.get(name(1)).unwrap().map(|found| number_of(1, &found));
        assert_eq!(found, Some(number as u64));
    }
}

/// The file of a segment with this name.
fn segment(named: &str) -> PathBuf {
    let mut there = std::fs::read_dir("/dev/shm").unwrap().flatten();
    there.find(|entry| entry.file_name().to_string_lossy().contains(named)).unwrap().path()
}

fn become_user(user: u32) {
    // SAFETY: root gives up its rights, for this process.
    assert_eq!(unsafe { libc::setresgid(user, user, user) }, 0);
    // SAFETY: as above.
    assert_eq!(unsafe { libc::setresuid(user, user, user) }, 0);
}

/// As a user that is neither root nor who made the segment: its store is opened on demand only.
fn as_another_user(named: &str) {
    become_user(54_321);
    let place = Place::Name(named.to_owned());
    assert!(matches!(TierCache::attach(&place), Err(OpenError::Segment(_))), "another user's");
    let cache = TierCache::builder().any_owner().attach(&place).unwrap();
    let state = cache.store_state().unwrap();
    assert!(state.closed.as_ref().is_some_and(|why| why.contains("another user")), "{state:?}");
    assert_eq!(cache.get(name(1)).unwrap(), None, "it is in the store");
    assert_eq!(cache.get(name(2)).unwrap(), Some(value(2, 2)));
    assert!(matches!(cache.handle().unwrap().evict_oldest(1), Err(CacheError::NoStore(_))));
    let trusting = TierCache::builder().any_owner().any_store().attach(&place).unwrap();
    assert_eq!(trusting.store_state().unwrap().closed, None);
    assert_eq!(trusting.get(name(1)).unwrap(), Some(value(1, 1)));
}

/// The segment is one user's, and names a store that everybody could open.
#[test]
fn a_store_that_another_users_segment_names_is_opened_on_demand_only() {
    use quintet::cache::Access;
    // SAFETY: geteuid has no preconditions.
    if unsafe { libc::geteuid() } != 0 {
        println!("skipped: only root can become two other users");
        return;
    }
    let dir = Dir::new("foreign");
    let open = |path: &Path, mode: u32| {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
        std::fs::set_permissions(path, mode).unwrap();
    };
    open(dir.path(), 0o777);
    let Place::Name(named) = place_of("foreign") else { unreachable!() };
    let place = Place::Name(named.clone());
    let access = Access { mode: 0o666, group: None };
    let cache = builder(&over(dir.path())).access(access).create(&place).unwrap();
    cache.insert(name(1), value(1, 1)).unwrap();
    empty(&cache);
    cache.insert(name(2), value(2, 2)).unwrap();
    drop(cache);
    for file in ["data.mdb", "lock.mdb"] {
        open(&dir.path().join(file), 0o666);
    }
    std::os::unix::fs::chown(segment(&named), Some(54_322), None).unwrap();
    let fared = std::panic::catch_unwind(|| fares_well(&format!("foreign {named}")));
    TierCache::unlink(&place).unwrap();
    fared.unwrap();
}

/// The password of a server is in no segment. It comes back with another one: memory goes on,
/// nothing is lost, and with the old password everything is there again.
#[cfg(feature = "redis")]
#[test]
fn a_server_with_another_password_is_told_and_loses_nothing() {
    const OLD: &str = "open-sesame-42";
    let Some(mut server) = crate::server::Server::durable("password") else { return };
    server.with("--requirepass", OLD);
    server.restart();
    let with = |password: &str| builder(&format!("redis://:{password}@127.0.0.1:{}", server.port));
    let error = with("wrong").create_sealed().unwrap_err();
    assert!(matches!(error, OpenError::Store(_)), "{error:?}");
    let Place::Name(named) = place_of("password") else { unreachable!() };
    let place = Place::Name(named.clone());
    let cache = with(OLD).create(&place).unwrap();
    let bytes = std::fs::read(segment(&named)).unwrap();
    let ignorant = TierCache::attach(&place).unwrap();
    TierCache::unlink(&place).unwrap();
    assert!(!bytes.windows(OLD.len()).any(|part| part == OLD.as_bytes()), "recorded");
    assert!(ignorant.store_state().unwrap().closed.is_some(), "it was told no password");
    for key in 0..4_000 {
        insist(|| cache.insert(name(key), value(key, 1)));
    }
    server.with("--requirepass", "another");
    server.restart();
    let mut handle = cache.handle().unwrap();
    handle.set_timeout(Duration::from_millis(300));
    let told = (4_000..).find_map(|key| handle.insert(name(key), value(key, 1)).err()).unwrap();
    assert!(matches!(told, CacheError::Store(_)), "{told:?}");
    let last = cache.store_state().unwrap().last_error.unwrap();
    assert!(!last.contains(OLD), "{last}");
    assert!(handle.get(name(3_999)).unwrap().is_some(), "memory goes on");
    server.with("--requirepass", OLD);
    server.restart();
    insist(|| cache.insert("again", "1"));
    (0..4_000).for_each(|key| assert_eq!(find(&cache, key), Some(1), "key {key}"));
}

/// The server stands still while a batch is under way: the end of the process waits as long as it
/// says, and says that it was too short. Nothing is lost.
#[cfg(feature = "redis")]
#[test]
fn the_end_waits_for_a_batch_as_long_as_it_was_told_to() {
    let Some(server) = crate::server::Server::durable("drains") else { return };
    let place = place_of("drains");
    let cache = builder(&format!("{}?timeout=3s", server.address())).create(&place).unwrap();
    let mut handle = cache.handle().unwrap();
    handle.set_timeout(Duration::from_millis(200));
    for key in 0..200 {
        insist(|| handle.insert(name(key), value(key, 1)));
    }
    server.signal(libc::SIGSTOP);
    let many = (200..).find(|key| handle.insert(name(*key), value(*key, 1)).is_err()).unwrap();
    drop(handle);
    assert!(cache.stats().store_queue > 0, "a batch is under way: {:?}", cache.stats());
    let since = Instant::now();
    assert!(!cache.close(Duration::from_millis(50)), "it is still under way");
    assert!(since.elapsed() < Duration::from_secs(2), "{:?}", since.elapsed());
    server.signal(libc::SIGCONT);
    let cache = TierCache::attach(&place);
    TierCache::unlink(&place).unwrap();
    let cache = cache.unwrap();
    (0..many).for_each(|key| assert_eq!(find(&cache, key), Some(1), "key {key} of {many}"));
    assert!(cache.close(Duration::from_secs(20)), "nothing is under way");
}

/// A time to live is the server's too.
#[cfg(feature = "redis")]
#[test]
fn what_expires_ends_at_the_server_as_well() {
    let Some(server) = crate::server::Server::durable("expires") else { return };
    let cache = builder(&server.address()).create_sealed().unwrap();
    let mut handle = cache.handle().unwrap();
    handle.insert_for("mortal", "1", Some(Duration::from_secs(1_000))).unwrap();
    empty(&cache);
    let ask = |words: &[&str]| {
        let port = server.port.to_string();
        let asked =
            std::process::Command::new("redis-cli").args(["-p", &port]).args(words).output();
        String::from_utf8_lossy(&asked.unwrap().stdout).trim().to_owned()
    };
    let left: i64 = ask(&["EVAL", "return redis.call('TTL', redis.call('KEYS', '*')[1])", "0"])
        .parse()
        .unwrap();
    assert!((900..=1_000).contains(&left), "{left}");
    assert!(handle.ttl("mortal").unwrap().unwrap().unwrap() > Duration::from_secs(900));
    handle.insert("immortal", "1").unwrap();
    empty(&cache);
    assert_eq!(ask(&["DBSIZE"]), "2");
}

/// Who attaches while the server is away goes on in memory, and has the store when it is back: it
/// need not attach again.
#[cfg(feature = "redis")]
#[test]
fn who_attached_while_the_server_was_away_has_it_when_it_is_back() {
    let Some(mut server) = crate::server::Server::durable("away") else { return };
    let place = place_of("attached-away");
    let cache = builder(&server.address()).create(&place).unwrap();
    cache.insert(name(1), value(1, 1)).unwrap();
    empty(&cache);
    server.kill();
    let again = TierCache::attach(&place);
    TierCache::unlink(&place).unwrap();
    let again = again.unwrap();
    assert!(again.store_state().unwrap().closed.is_some(), "it is away");
    again.insert(name(2), value(2, 2)).unwrap();
    assert!(matches!(again.handle().unwrap().evict_oldest(1), Err(CacheError::NoStore(_))));
    assert_eq!(again.get(name(2)).unwrap(), Some(value(2, 2)), "in memory");
    assert!(server.run());
    let since = Instant::now();
    while again.get(name(1)).ok().flatten() != Some(value(1, 1)) {
        assert!(since.elapsed() < PATIENCE, "{:?}", again.store_state());
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(again.store_state().unwrap().closed, None);
    empty(&again);
    assert_eq!(again.get(name(2)).unwrap(), Some(value(2, 2)), "in the store now");
}
