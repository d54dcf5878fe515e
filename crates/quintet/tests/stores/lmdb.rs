//! LMDB: one file, many processes, a bound.

use crate::dir::Dir;
use crate::{WITHIN, conformance::conforms, look, record};
use quintet::store::*;
use quintet_testkit::crash::{Child, report, task};
use std::path::Path;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

fn open(path: &Path, size: u64) -> Lmdb {
    // Power loss is not what these tests are about.
    Lmdb::open(path, Some(size), StoreSync::None).unwrap()
}

fn key(number: u64) -> Vec<u8> {
    format!("key:{number:08}").into_bytes()
}

/// The entry of every child; in the parent's own run it does nothing.
#[test]
fn lmdb_child() {
    let Some(task) = task() else { return };
    let (task, path) = task.split_once(' ').unwrap();
    let store = open(Path::new(path), 8 << 20);
    match task {
        // Stores and says so, until it is killed.
        "write" => {
            let mut version = store.newest().unwrap().unwrap_or(0);
            loop {
                let keys: Vec<_> = (0..8).map(|at| key(version % 50 * 8 + at)).collect();
                version += 1;
                let value = version.to_be_bytes();
                let batch: Vec<_> = keys.iter().map(|key| record(key, version, &value)).collect();
                store.put(&batch, WITHIN).unwrap();
                report(&format!("{version}"));
            }
        }
        "read" => loop {
            let keys: Vec<_> = (0..400).map(key).collect();
            store.get(&keys.iter().map(Vec::as_slice).collect::<Vec<_>>()).unwrap();
        },
        other => panic!("{other}"),
    }
}

fn child(task: &str, path: &Path) -> Child {
    Child::of_test("lmdb::lmdb_child", &format!("{task} {}", path.display())).unwrap()
}

#[test]
fn lmdb_conforms() {
    let dir = Dir::new("conforms");
    let address = format!("lmdb:{}?size=64MiB&sync=none", dir.path().display());
    conforms(&*address.parse::<StoreAddress>().unwrap().open().unwrap());
}

#[test]
fn every_mode_of_sync_stores() {
    for sync in ["full", "meta", "none"] {
        let dir = Dir::new(&format!("sync-{sync}"));
        let address = format!("lmdb:{}?size=4MiB&sync={sync}", dir.path().display());
        let store = address.parse::<StoreAddress>().unwrap().open().unwrap();
        store.put(&[record(b"key", 1, b"value")], WITHIN).unwrap();
        store.sync().unwrap();
        assert_eq!(look(&*store, b"key"), Some((1, b"value".to_vec())));
    }
}

#[test]
fn what_was_stored_is_there_when_it_is_opened_again() {
    let dir = Dir::new("again");
    let store = open(dir.path(), 4 << 20);
    store.put(&[record(b"kept", 41, b"value"), record(b"other", 7, b"")], WITHIN).unwrap();
    store.remove(&[(b"gone", 42)], WITHIN).unwrap();
    let twice = open(dir.path(), 4 << 20);
    assert_eq!(look(&twice, b"kept"), Some((41, b"value".to_vec())), "shared within a process");
    drop((store, twice));
    // Without a size: it knows.
    let again = Lmdb::open(dir.path(), None, StoreSync::Meta).unwrap();
    assert_eq!(look(&again, b"kept"), Some((41, b"value".to_vec())));
    assert_eq!(again.newest(), Ok(Some(42)), "removals have versions too");
    assert_eq!(again.put(&[record(b"gone", 41, b"late")], WITHIN), Ok(0));
    drop(again);
    let error = Lmdb::open(dir.path(), Some(8 << 20), StoreSync::Meta).unwrap_err();
    assert!(error.to_string().contains("4194304 bytes"), "{error}");
}

/// Sixteen times its size goes through it: the file stays within its bound, the newest are there,
/// and what is gone went in order.
#[test]
fn the_oldest_leave_and_the_file_keeps_its_size() {
    for length in [10usize, 300, 3_000, 50_000] {
        let dir = Dir::new(&format!("bound-{length}"));
        let size = 4u64 << 20;
        let store = open(dir.path(), size);
        let value = vec![7; length];
        let count = 16 * size / (length as u64 + 60);
        for from in (0..count).step_by(64) {
            let keys: Vec<_> = (from..count.min(from + 64)).map(key).collect();
            let batch: Vec<_> = keys.iter().map(|key| record(key, 1, &value)).collect();
            assert_eq!(store.put(&batch, WITHIN), Ok(batch.len()));
        }
        let file = std::fs::metadata(dir.path().join("data.mdb")).unwrap().len();
        assert!(file <= size, "{file} bytes");
        let there: Vec<u64> = (0..count).filter(|at| look(&store, &key(*at)).is_some()).collect();
        assert_eq!(there.last(), Some(&(count - 1)));
        assert!(there.windows(2).all(|pair| pair[0] + 1 == pair[1]), "the oldest left first");
        let kept = there.len() as u64 * (length as u64 + 60);
        assert!(kept > size / 4, "{} records of {length} bytes are {kept} bytes", there.len());
        let stats = store.stats();
        assert_eq!(stats.evicted + there.len() as u64, count, "every departure is counted");
        assert_eq!(stats.entries, Some(there.len() as u64));
        assert!(stats.bytes.is_some_and(|bytes| bytes <= size));
    }
}

#[test]
fn a_record_that_is_too_large_is_refused_and_harms_nothing() {
    let dir = Dir::new("large");
    let store = open(dir.path(), 1 << 20);
    store.put(&[record(b"small", 1, b"value")], WITHIN).unwrap();
    let value = vec![0; 1 << 17];
    let error = store.put(&[record(b"large", 1, &value)], WITHIN).unwrap_err();
    let StoreError::TooLarge { max } = error else { panic!("{error}") };
    store.put(&[record(b"large", 1, &value[..max])], WITHIN).unwrap();
    assert_eq!(look(&store, b"large"), Some((1, value[..max].to_vec())));
}

/// An expired record keeps older ones out as long as it is there.
#[test]
fn what_has_expired_is_not_replaced_by_something_older() {
    let dir = Dir::new("expired");
    let store = open(dir.path(), 4 << 20);
    let past = Some(std::time::SystemTime::now() - Duration::from_secs(1));
    store.put(&[Record { expiry: past, ..record(b"key", 2, b"two") }], WITHIN).unwrap();
    assert_eq!(store.put(&[record(b"key", 1, b"one")], WITHIN), Ok(0));
    assert_eq!(look(&store, b"key"), None);
}

/// Writers are killed at any instruction, readers too: what was acknowledged is there, batches are
/// whole, nothing goes back, and the file never fills up with pages that dead readers hold.
#[test]
fn killed_at_any_time() {
    let dir = Dir::new("killed");
    let path = dir.path();
    let store = open(path, 8 << 20);
    let mut acknowledged = 0;
    for round in 0..40u64 {
        let mut readers: Vec<_> = (0..2).map(|_| child("read", path)).collect();
        let mut writer = child("write", path);
        let told = 1 + round * 7 % 23;
        for _ in 0..told {
            let version: u64 = writer.line(PATIENCE).expect("a line").parse().unwrap();
            acknowledged = acknowledged.max(version);
        }
        std::thread::sleep(Duration::from_micros(round * 131 % 1000));
        writer.kill().unwrap();
        for line in writer.rest() {
            acknowledged = acknowledged.max(line.parse().unwrap());
        }
        readers.iter_mut().for_each(|reader| _ = reader.kill().unwrap());
        let newest = store.newest().unwrap().unwrap();
        assert!(newest >= acknowledged && newest <= acknowledged + 1, "{newest}, {acknowledged}");
        for version in newest.saturating_sub(49).max(1)..=newest {
            for at in 0..8 {
                let found = look(&store, &key((version - 1) % 50 * 8 + at));
                assert_eq!(found, Some((version, version.to_be_bytes().to_vec())));
            }
        }
        acknowledged = newest;
    }
}

/// Several processes write the same keys; versions decide.
#[test]
fn processes_share_one_file() {
    let dir = Dir::new("share");
    let store = open(dir.path(), 8 << 20);
    let mut writers: Vec<_> = (0..3).map(|_| child("write", dir.path())).collect();
    let mut last = 0;
    for _ in 0..100 {
        for writer in &writers {
            writer.line(PATIENCE).expect("a line");
        }
        let (version, value) = look(&store, &key(0)).unwrap_or((0, 0u64.to_be_bytes().to_vec()));
        assert!(version >= last && value == version.to_be_bytes());
        last = version;
    }
    writers.iter_mut().for_each(|writer| _ = writer.kill().unwrap());
}

#[test]
fn a_forked_child_is_told_to_open_it_again() {
    let dir = Dir::new("fork");
    let store = open(dir.path(), 4 << 20);
    store.put(&[record(b"key", 1, b"parent")], WITHIN).unwrap();
    // SAFETY: the child uses this store only and ends without running destructors.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        let told = store.put(&[record(b"key", 2, b"child")], WITHIN) == Err(StoreError::Forked)
            && store.get(&[b"key"]) == Err(StoreError::Forked)
            && store.sync() == Err(StoreError::Forked);
        drop(store);
        let again = Lmdb::open(dir.path(), None, StoreSync::None);
        let works =
            again.is_ok_and(|again| again.put(&[record(b"key", 3, b"again")], WITHIN) == Ok(1));
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(if told && works { 0 } else { 1 }) };
    }
    let mut status = -1;
    // SAFETY: waits for the child made above, whose status outlives the call.
    let ended = unsafe { libc::waitpid(pid, &raw mut status, 0) };
    assert_eq!((ended, status), (pid, 0));
    assert_eq!(look(&store, b"key"), Some((3, b"again".to_vec())));
    assert_eq!(store.put(&[record(b"key", 4, b"parent")], WITHIN), Ok(1), "the parent goes on");
}

#[test]
fn what_is_no_store_is_told() {
    let dir = Dir::new("wrong");
    std::fs::write(dir.path().join("data.mdb"), vec![1; 8192]).unwrap();
    let error = Lmdb::open(dir.path(), None, StoreSync::Meta).unwrap_err();
    assert!(error.to_string().contains("LMDB"), "{error}");
    let file = dir.path().join("data.mdb");
    let error = Lmdb::open(&file, None, StoreSync::Meta).unwrap_err();
    assert!(error.to_string().contains("data.mdb"), "{error}");
}
