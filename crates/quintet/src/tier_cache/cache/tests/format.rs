//! The formats: a segment of each was made once and is kept with the sources, as text. Every later
//! version reads it, or refuses it by its number.

use super::world::tiny_of;
use crate::tier_cache::cache::*;
use std::path::PathBuf;
use std::time::Duration;

/// The words of a header that depend on where the file lies.
const USER: usize = 11;
const GROUP: usize = 13;

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// A segment as text: its length, then the words that are not zero, each line beginning with the
/// index of its first one.
fn text_of(bytes: &[u8]) -> String {
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
    let words: Vec<u64> = bytes.chunks_exact(8).map(word).collect();
    let mut text = format!("bytes {}", bytes.len());
    let mut at = 0;
    let mut follows = 0;
    while at < words.len() {
        let run = words[at..].iter().take_while(|word| **word == words[at]).count();
        if words[at] == 0 {
            follows = 0;
        } else {
            if follows % 8 == 0 {
                text += &format!("\n{at}");
            }
            follows += 1;
            let times = if run > 1 { format!("*{run}") } else { String::new() };
            text += &format!(" {:x}{times}", words[at]);
        }
        at += run;
    }
    text + "\n"
}

fn words_of(text: &str) -> Vec<u64> {
    let mut lines = text.lines();
    let bytes = lines.next().and_then(|line| line.strip_prefix("bytes ")).expect("its length");
    let mut words = vec![0; bytes.parse::<usize>().unwrap() / 8];
    for line in lines {
        let mut parts = line.split(' ');
        let mut at: usize = parts.next().unwrap().parse().unwrap();
        for part in parts {
            let (word, times) = part.split_once('*').unwrap_or((part, "1"));
            let word = u64::from_str_radix(word, 16).unwrap();
            for _ in 0..times.parse::<usize>().unwrap() {
                words[at] = word;
                at += 1;
            }
        }
    }
    words
}

/// A file of the segment; its owner is whoever runs the test.
fn copy_of(name: &str) -> Place {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let text = std::fs::read_to_string(fixture(name)).expect("the fixture lies with the sources");
    let mut words = words_of(&text);
    let thread = format!("{:?}", std::thread::current().id());
    let path = std::env::temp_dir().join(format!("quintet-{name}-{}-{thread}", std::process::id()));
    std::fs::write(&path, "").unwrap();
    let meta = std::fs::metadata(&path).unwrap();
    (words[USER], words[GROUP]) = (meta.uid() as u64, meta.gid() as u64);
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    std::fs::write(&path, bytes).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    Place::Path(path)
}

/// The entries every fixture holds.
fn entries() -> Vec<(String, Vec<u8>)> {
    (0..20u8).map(|number| (format!("key {number}"), vec![number; number as usize * 20])).collect()
}

/// Opens a fixture, reads and changes it, and lets the caller look further.
fn is_read(name: &str, format: u64, further: impl FnOnce(&mut Handle<'_>)) {
    let place = copy_of(name);
    let cache = TierCache::attach(&place).unwrap();
    assert_eq!(cache.sizes.format, format);
    assert_eq!(cache.check().unwrap().entries, 20);
    let mut handle = cache.handle().unwrap();
    for (key, value) in entries() {
        assert_eq!(handle.get(&key).unwrap(), Some(value), "{key}");
    }
    handle.insert("key 3", "changed").unwrap();
    further(&mut handle);
    drop(handle);
    cache.check().unwrap();
    TierCache::unlink(&place).unwrap();
}

/// Caches of earlier versions are refused, and the text says what to do; nothing of them is
/// changed.
#[test]
fn older_formats_are_refused_with_advice() {
    for (name, format) in [("cache-1.txt", 1), ("cache-2.txt", 2), ("cache-3.txt", 3)] {
        let place = copy_of(name);
        let Place::Path(path) = &place else { unreachable!() };
        let before = std::fs::read(path).unwrap();
        for opened in [
            TierCache::attach(&place),
            TierCache::attach_read_only(&place),
            TierCache::builder().any_size().create_or_attach(&place),
        ] {
            let error = opened.unwrap_err();
            assert!(
                matches!(error, OpenError::Segment(SegmentError::Format { found, wanted: 4 }) if found == format),
                "{error:?}"
            );
            let text = error.to_string();
            assert!(text.contains("older version") && text.contains("create it again"), "{text}");
        }
        assert!(before == std::fs::read(path).unwrap(), "nothing was written");
        TierCache::unlink(&place).unwrap();
    }
}

#[test]
fn format_4_is_read() {
    if std::env::var("QUINTET_WRITE_FIXTURE").is_ok() {
        let place = Place::Path(std::env::temp_dir().join("quintet-fixture"));
        let _ = TierCache::unlink(&place);
        let sizes = Sizes {
            blocks: 160,
            buckets: 160,
            seats: 2,
            processes: 2,
            max_value: 900,
            pace: 1,
            spaces: 4,
            ..tiny_of(TierCache::builder(), 64).sizes
        };
        let cache = TierCache::create(&place, sizes, Access::default()).unwrap();
        cache.handle().unwrap().insert_many(&entries(), None).unwrap();
        drop(cache);
        let Place::Path(path) = &place else { unreachable!() };
        let bytes = std::fs::read(path).unwrap();
        std::fs::write(fixture("cache-4.txt"), text_of(&bytes)).unwrap();
        TierCache::unlink(&place).unwrap();
    }
    is_read("cache-4.txt", 4, |handle| {
        assert_eq!(handle.evict_unused(Duration::ZERO, 5).unwrap().len(), 5);
    });
}

#[test]
fn fixtures_are_written_as_they_are_read() {
    for name in ["cache-1.txt", "cache-2.txt", "cache-3.txt", "cache-4.txt"] {
        let text = std::fs::read_to_string(fixture(name)).unwrap();
        let bytes: Vec<u8> = words_of(&text).iter().flat_map(|word| word.to_le_bytes()).collect();
        assert_eq!(words_of(&text_of(&bytes)), words_of(&text));
    }
}

/// Another format, or another layout of the header, is named in the error.
#[test]
fn other_formats_are_refused_by_name() {
    use std::os::unix::fs::FileExt;
    for (word, field) in [(2, "format"), (3, "kind"), (4, "format"), (1, "endianness")] {
        let place = copy_of("cache-4.txt");
        let Place::Path(path) = &place else { unreachable!() };
        let file = std::fs::File::options().write(true).open(path).unwrap();
        file.write_at(&77u64.to_le_bytes(), word * 8).unwrap();
        match TierCache::attach(&place) {
            Err(OpenError::Segment(SegmentError::Mismatch { field: named, found: 77, .. })) => {
                assert_eq!(named, field);
            }
            Err(OpenError::Segment(SegmentError::Format { .. })) => assert_eq!(field, "format"),
            other => panic!("{field}: {other:?}"),
        }
        TierCache::unlink(&place).unwrap();
    }
}
