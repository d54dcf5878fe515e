//! Create and attach: every way it can go wrong is an error that names what is wrong.

use super::header::*;
use super::*;
use crate::sync::{AtomicU64, Ordering};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;

const FIELDS: [(&str, u64); 2] = [("width", 7), ("height", 9)];
const SHAPE: Shape<'static> = Shape { kind: 1, format: 2, fields: &FIELDS, body: 4096 };
const WANTED: Wanted<'static> = Wanted { kind: 1, formats: (2, 2), fields: &ANY };
const ANY: [(&str, Option<u64>); 2] = [("width", None), ("height", None)];

/// A place of this test's own, cleaned up behind it.
struct Own(Place, PathBuf);

impl Own {
    fn new(name: &str) -> Self {
        let name = format!("unit-{name}-{}", std::process::id());
        let path = Path::new("/dev/shm").join(format!("quintet-{name}"));
        let own = Self(Place::Name(name), path);
        let _ = Segment::remove(&own.0);
        own
    }

    fn create(&self) -> Result<Segment, SegmentError> {
        Segment::create(&self.0, &SHAPE, Access::default())
    }

    fn attach(&self) -> Result<Segment, SegmentError> {
        Segment::attach(&self.0, &WANTED, true)
    }

    fn poke(&self, word: usize, value: u64) {
        let file = std::fs::OpenOptions::new().write(true).open(&self.1).unwrap();
        file.write_all_at(&value.to_ne_bytes(), word as u64 * 8).unwrap();
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        let _ = Segment::remove(&self.0);
    }
}

fn field(result: Result<Segment, SegmentError>) -> &'static str {
    match result {
        Err(error @ SegmentError::Mismatch { field, .. }) => {
            assert!(error.to_string().contains(field));
            field
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_one_writes_the_other_reads() {
    let own = Own::new("share");
    assert!(matches!(own.attach(), Err(SegmentError::NotFound(_))), "attach before create");
    let first = own.create().unwrap();
    assert!(matches!(own.create(), Err(SegmentError::Exists(_))), "second creator");
    let second = own.attach().unwrap();
    first.slice::<AtomicU64>(64, 1).unwrap()[0].store(5, Ordering::Release);
    assert_eq!(second.slice::<AtomicU64>(64, 1).unwrap()[0].load(Ordering::Acquire), 5);
    assert_eq!((second.field(0), second.field(1), second.seed()), (7, 9, first.seed()));
    assert!(second.slice::<AtomicU64>(0, 513).is_none(), "beyond the end");
    assert!(second.slice::<AtomicU64>(1, 1).is_none(), "not aligned");
    assert!(second.slice::<AtomicU64>(usize::MAX - 8, 1).is_none());
    let mode = std::fs::metadata(&own.1).unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode, 0o600);
    let reader = Segment::attach(&own.0, &WANTED, false).unwrap();
    assert_eq!(reader.slice::<AtomicU64>(64, 1).unwrap()[0].load(Ordering::Acquire), 5);
}

#[test]
fn a_chosen_mode_is_set_whatever_the_umask_and_verified() {
    let own = Own::new("mode");
    let access = Access { mode: 0o660, group: None };
    Segment::create(&own.0, &SHAPE, access).unwrap();
    let mode = std::fs::metadata(&own.1).unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode, 0o660);
    std::fs::set_permissions(&own.1, PermissionsExt::from_mode(0o666)).unwrap();
    assert_eq!(field(own.attach()), "mode");
}

#[test]
fn a_wrong_header_names_its_field() {
    for (word, name) in [
        (AT_ENDIAN, "endianness"),
        (AT_VERSION, "layout version"),
        (AT_FORMAT, "format version"),
        (AT_BYTES, "size in bytes"),
        (AT_USER, "owner"),
        (AT_GROUP, "group"),
        (AT_MODE, "mode"),
        (AT_FIELDS, "number of fields"),
    ] {
        let own = Own::new("header");
        own.create().unwrap();
        own.poke(word, 99);
        assert_eq!(field(own.attach()), name);
    }
    let own = Own::new("fields");
    own.create().unwrap();
    assert_eq!(
        field(Segment::attach(
            &own.0,
            &Wanted { fields: &[("width", Some(8)), ("height", None)], ..WANTED },
            true
        )),
        "width"
    );
    let wanted = |kind, formats| Wanted { kind, formats, ..WANTED };
    assert_eq!(field(Segment::attach(&own.0, &wanted(3, (2, 2)), true)), "kind");
    assert_eq!(field(Segment::attach(&own.0, &wanted(1, (3, 4)), true)), "format version");
    assert_eq!(Segment::attach(&own.0, &wanted(1, (1, 3)), true).unwrap().format(), 2);
    own.poke(AT_MAGIC, 0x1234);
    assert!(matches!(own.attach(), Err(SegmentError::Foreign(_))));
}

#[test]
fn truncated_foreign_and_linked_files_are_refused() {
    let own = Own::new("files");
    own.create().unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(&own.1).unwrap();
    file.set_len(BODY as u64 + 8).unwrap();
    assert_eq!(field(own.attach()), "size in bytes");
    file.set_len(100).unwrap();
    assert!(matches!(own.attach(), Err(SegmentError::Foreign(_))));
    std::fs::remove_file(&own.1).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", &own.1).unwrap();
    assert!(matches!(own.attach(), Err(SegmentError::Name(_))));
    assert!(own.create().is_err(), "no link is followed");
    std::fs::remove_file(&own.1).unwrap();
    std::fs::write(&own.1, vec![7; BODY + 100]).unwrap();
    assert!(matches!(own.attach(), Err(SegmentError::Foreign(_))));
    assert!(
        matches!(own.create(), Err(SegmentError::Exists(_))),
        "somebody's file is not replaced"
    );
    for name in ["", "a/b", "x.lock"] {
        let place = Place::Name(name.to_owned());
        assert!(matches!(
            Segment::create(&place, &SHAPE, Access::default()),
            Err(SegmentError::Name(_))
        ));
    }
}

/// Creator killed midway: a file without a magic word, its lock free. While the lock is held it is not ready.
#[test]
fn a_half_made_segment_is_not_ready_and_then_abandoned() {
    let own = Own::new("half");
    own.create().unwrap();
    own.poke(AT_MAGIC, 0);
    let lock =
        std::fs::OpenOptions::new().read(true).write(true).open(own.1.with_extension("lock"));
    let path = PathBuf::from(format!("{}.lock", own.1.display()));
    let lock =
        lock.or_else(|_| std::fs::OpenOptions::new().read(true).write(true).open(&path)).unwrap();
    assert!(super::peers::try_lock(lock.as_raw_fd(), super::peers::CREATION_LOCK));
    assert!(matches!(own.attach(), Err(SegmentError::NotReady(_))));
    assert!(matches!(own.create(), Err(SegmentError::NotReady(_))), "another creator is at work");
    drop(lock);
    assert!(matches!(own.attach(), Err(SegmentError::Abandoned(_))));
    own.create().unwrap();
    own.attach().unwrap();
}

#[test]
fn no_room_is_an_error_that_names_the_remedy() {
    let own = Own::new("room");
    let shape = Shape { body: 1 << 50, ..SHAPE };
    match Segment::create(&own.0, &shape, Access::default()) {
        Err(error @ SegmentError::NoSpace { .. }) => assert!(error.to_string().contains("remount")),
        other => panic!("{other:?}"),
    }
    assert!(!own.1.exists(), "nothing is left behind");
}

/// A segment of several huge pages is usable to its last byte, in every attachment, whatever pages the system granted.
#[test]
fn large_segments_are_aligned_and_whole() {
    let own = Own::new("large");
    let body = (5 << 20) + 4096;
    let shape = Shape { body, ..SHAPE };
    let first = Segment::create(&own.0, &shape, Access::default()).unwrap();
    let second = Segment::attach(&own.0, &WANTED, true).unwrap();
    let words = body / 8;
    let [mine, theirs] = [&first, &second].map(|segment| {
        let all = segment.slice::<AtomicU64>(0, words).unwrap();
        assert_eq!((all.as_ptr() as usize - BODY) % (2 << 20), 0, "aligned");
        all
    });
    assert!(theirs.iter().all(|word| word.load(Ordering::Relaxed) == 0));
    mine.iter().zip(0..).for_each(|(word, value)| word.store(value, Ordering::Relaxed));
    assert!(theirs.iter().zip(0..).all(|(word, value)| word.load(Ordering::Relaxed) == value));
    let blocks = std::os::unix::fs::MetadataExt::blocks(&std::fs::metadata(&own.1).unwrap());
    assert!(blocks * 512 >= (BODY + body) as u64, "all of it is allocated");
}

#[test]
fn another_boot_is_noticed() {
    let own = Own::new("boot");
    let segment = own.create().unwrap();
    assert!(!segment.is_from_another_boot());
    own.poke(AT_BOOT, 1);
    assert!(segment.is_from_another_boot());
    segment.adopt_boot();
    assert!(!segment.is_from_another_boot());
}

/// Two attachments of one process are two peers; a slot that was taken anew proves its last owner dead.
#[test]
fn peers_prove_death_only_on_evidence() {
    let own = Own::new("peers");
    let first = own.create().unwrap();
    let second = own.attach().unwrap();
    let third = own.attach().unwrap();
    let (a, b) = (first.me().unwrap(), second.me().unwrap());
    assert_ne!(a.0, b.0);
    assert_eq!(first.me().unwrap(), a, "joined once");
    assert!(!third.is_dead(b.0 as usize, b.1), "who has not joined proves nothing");
    assert!(!first.is_dead(b.0 as usize, b.1) && !first.is_dead(a.0 as usize, a.1));
    assert!(!first.is_dead(9999, 1) && !first.is_dead(usize::MAX, 0), "nonsense proves nothing");
    drop(second);
    assert!(first.is_dead(b.0 as usize, b.1), "its lock is free");
    let c = third.me().unwrap();
    assert_eq!((c.0, c.1), (b.0, b.1 + 1), "the slot is used again");
    assert!(first.is_dead(b.0 as usize, b.1) && !first.is_dead(c.0 as usize, c.1));
}

/// Pid reuse: the lock is held (as if a child had kept the descriptor), but the pid belongs to somebody younger.
#[test]
fn another_start_time_is_proof() {
    let own = Own::new("reuse");
    let first = own.create().unwrap();
    let second = own.attach().unwrap();
    first.me().unwrap();
    let (slot, incarnation) = second.me().unwrap();
    let started = super::header::SLOTS / 8 + slot as usize * super::header::SLOT_WORDS + 2;
    assert!(!first.is_dead(slot as usize, incarnation));
    own.poke(started, 1);
    assert!(first.is_dead(slot as usize, incarnation));
    // In another pid namespace the number says nothing.
    own.poke(started + 1, 1);
    assert!(!first.is_dead(slot as usize, incarnation));
}
