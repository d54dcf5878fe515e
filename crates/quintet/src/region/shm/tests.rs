//! Create and attach: every way it can go wrong is an error that names what is wrong.

use super::header::*;
use super::*;
use crate::sync::{AtomicU64, Ordering};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;

const FIELDS: [(&str, u64); 2] = [("width", 7), ("height", 9)];
const SHAPE: Shape<'static> =
    Shape { kind: 1, format: 2, fields: &FIELDS, processes: 64, note: "", body: 4096 };
const WANTED: Wanted<'static> = Wanted { kind: 1, formats: (2, 2), fields: &ANY, any_owner: false };
const BODY: usize = body_at(64);
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
        (AT_BYTES, "size in bytes"),
        (AT_MODE, "mode"),
        (AT_FIELDS, "number of fields"),
    ] {
        let own = Own::new("header");
        own.create().unwrap();
        own.poke(word, 99);
        assert_eq!(field(own.attach()), name);
    }
    for (word, value) in [(AT_VERSION, 1), (AT_VERSION, 99), (AT_FORMAT, 1), (AT_FORMAT, 99)] {
        let own = Own::new("format");
        own.create().unwrap();
        own.poke(word, value);
        match own.attach() {
            Err(error @ SegmentError::Format { .. }) => {
                assert!(error.to_string().contains("create it again"), "{error}");
            }
            other => panic!("{other:?}"),
        }
    }
    for processes in [0, 8193, u64::MAX] {
        let own = Own::new("slots");
        own.create().unwrap();
        own.poke(AT_PROCESSES, processes);
        assert_eq!(field(own.attach()), "processes");
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
    let newer = Segment::attach(&own.0, &wanted(1, (3, 4)), true);
    assert!(matches!(newer, Err(SegmentError::Format { found: 2, wanted: 4 })));
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
    assert!(matches!(own.attach(), Err(SegmentError::NotAFile { what: "a symbolic link", .. })));
    assert!(own.create().is_err(), "no link is followed");
    std::fs::remove_file(&own.1).unwrap();
    std::fs::write(&own.1, vec![7; BODY + 100]).unwrap();
    assert!(matches!(own.attach(), Err(SegmentError::Foreign(_))));
    assert!(
        matches!(own.create(), Err(SegmentError::Foreign(_))),
        "somebody's file is not replaced"
    );
    for bytes in [&[][..], &[0; 8], &[0; 8192], b"quintet"] {
        std::fs::write(&own.1, bytes).unwrap();
        let refused = [own.create().err(), own.attach().err(), Segment::remove(&own.0).err()];
        assert!(refused.iter().all(|error| matches!(error, Some(SegmentError::Foreign(_)))));
        assert_eq!(std::fs::read(&own.1).unwrap(), bytes, "left as it was");
    }
    std::fs::remove_file(&own.1).unwrap();
    for name in ["", "a/b", "x.lock"] {
        let place = Place::Name(name.to_owned());
        assert!(matches!(
            Segment::create(&place, &SHAPE, Access::default()),
            Err(SegmentError::Name(_))
        ));
    }
}

/// Creator killed midway: a file that says so, its lock free. While the lock is held it is not
/// ready. Signals that come all the time, as a profiler's do, interrupt the allocation of a large
/// segment and do not make it fail.
#[test]
fn signals_do_not_keep_a_segment_from_being_made() {
    for (bytes, longest) in [(1, 1), (4096, 4096), (300 << 20, 5 << 20), ((1 << 30) + 5, 2 << 20)] {
        let (mut end, mut interruptions) = (0, 0);
        let told = segment::in_steps(bytes, |at, part| {
            assert_eq!(at, end, "in order, nothing twice");
            interruptions += 1;
            if part > longest || interruptions % 3 == 0 {
                return libc::EINTR;
            }
            end += part;
            0
        });
        assert_eq!((told, end), (0, bytes));
    }
    assert_eq!(segment::in_steps(1 << 30, |_, _| libc::ENOSPC), libc::ENOSPC);
}

/// The numbers that a header has for its maker are those of the maker's user namespace: the file's
/// own decide.
#[test]
fn owners_are_what_the_system_says() {
    let own = Own::new("numbers");
    own.create().unwrap();
    own.poke(AT_USER, 99);
    own.poke(AT_GROUP, 99);
    own.attach().unwrap();
}

/// Two that start together: whoever finds the name finds a segment, half made or whole, never an
/// empty file that could be anybody's.
#[test]
fn a_name_is_never_seen_empty() {
    let own = Own::new("begun");
    let done = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut seen = 0;
            while done.load(Ordering::Relaxed) == 0 {
                let Ok(file) = std::fs::File::open(&own.1) else { continue };
                let mut word = [0; 8];
                assert_eq!(file.read_at(&mut word, 0).unwrap(), 8, "an empty name");
                assert!([MAGIC, HALF_MADE].contains(&u64::from_ne_bytes(word)));
                seen += 1;
            }
            seen
        });
        for _ in 0..2_000 {
            drop(own.create().unwrap());
            Segment::remove(&own.0).unwrap();
            if watcher.is_finished() {
                break;
            }
        }
        done.store(1, Ordering::Relaxed);
        assert!(watcher.join().unwrap() > 0, "it looked");
    });
}

#[test]
fn a_half_made_segment_is_not_ready_and_then_abandoned() {
    let own = Own::new("half");
    own.create().unwrap();
    own.poke(AT_MAGIC, HALF_MADE);
    let creator = std::fs::OpenOptions::new().read(true).write(true).open(&own.1).unwrap();
    assert!(super::peers::lock(creator.as_raw_fd(), super::peers::CREATION).unwrap());
    assert!(matches!(own.attach(), Err(SegmentError::NotReady(_))));
    assert!(matches!(own.create(), Err(SegmentError::NotReady(_))), "another creator is at work");
    assert!(matches!(Segment::remove(&own.0), Err(SegmentError::NotReady(_))));
    drop(creator);
    assert!(matches!(own.attach(), Err(SegmentError::Abandoned(_))));
    own.create().unwrap();
    own.attach().unwrap();
    own.poke(AT_MAGIC, HALF_MADE);
    Segment::remove(&own.0).unwrap();
    assert!(!own.1.exists());
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

/// A segment of several huge pages is usable to its last byte, in every attachment, whatever pages
/// the system granted.
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

/// Two attachments of one process are two peers; a slot that was taken anew proves its last owner
/// dead.
#[test]
fn peers_prove_death_only_on_evidence() {
    let own = Own::new("peers");
    let first = own.create().unwrap();
    let second = own.attach().unwrap();
    let third = own.attach().unwrap();
    let (a, b) = (first.me().unwrap(), second.me().unwrap());
    assert_ne!(a.0, b.0);
    assert_eq!(first.me().unwrap(), a, "joined once");
    let reader = Segment::attach(&own.0, &WANTED, false).unwrap();
    let all = [&first, &third, &reader];
    assert!(
        all.iter().all(|who| !who.is_dead(b.0 as usize, b.1) && !who.is_dead(a.0 as usize, a.1))
    );
    assert!(!first.is_dead(b.0 as usize, b.1) && !first.is_dead(a.0 as usize, a.1));
    assert!(!first.is_dead(9999, 1) && !first.is_dead(usize::MAX, 0), "nonsense proves nothing");
    drop(second);
    let all = [&first, &third, &reader];
    assert!(all.iter().all(|who| who.is_dead(b.0 as usize, b.1)), "its lock is free");
    let c = third.me().unwrap();
    assert_eq!((c.0, c.1), (b.0, b.1 + 1), "the slot is used again");
    assert!(first.is_dead(b.0 as usize, b.1) && !first.is_dead(c.0 as usize, c.1));
}

/// What a slot says about its owner proves nothing while the lock is held: not another pid, not
/// another namespace.
#[test]
fn a_held_lock_is_alive_whatever_its_slot_says() {
    let own = Own::new("held");
    let first = own.create().unwrap();
    let second = own.attach().unwrap();
    first.me().unwrap();
    let (slot, incarnation) = second.me().unwrap();
    for word in 1..SLOT_WORDS {
        own.poke(SLOTS / 8 + slot as usize * SLOT_WORDS + word, 1 << 22 | 5);
        assert!(!first.is_dead(slot as usize, incarnation), "word {word}");
    }
}

/// Whoever attached before a name was removed and made anew takes a slot of the segment it has, not
/// of the new one.
#[test]
fn attach_racing_with_remove_and_create() {
    let own = Own::new("race");
    let first = own.create().unwrap();
    let (slot, incarnation) = first.me().unwrap();
    let late = own.attach().unwrap();
    Segment::remove(&own.0).unwrap();
    let _next = own.create().unwrap();
    let (other, _) = late.me().unwrap();
    assert_ne!(slot, other, "the slot of the living");
    assert!(!late.is_dead(slot as usize, incarnation));
    assert_eq!(first.me().unwrap(), (slot, incarnation));
}
