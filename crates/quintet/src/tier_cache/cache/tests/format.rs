//! The format: a segment made once and kept with the sources is read by every later version, or refused by its number.

use super::world::tiny_of;
use crate::tier_cache::cache::*;
use std::path::PathBuf;

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// A copy whose mode and owner are as its header says.
fn copy_of(name: &str) -> Option<Place> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let path = std::env::temp_dir().join(format!("quintet-{name}-{}", std::process::id()));
    let mut bytes = std::fs::read(fixture(name)).ok()?;
    std::fs::write(&path, &bytes).unwrap();
    let mut mode = std::fs::metadata(&path).unwrap().permissions();
    mode.set_mode(0o600);
    std::fs::set_permissions(&path, mode).unwrap();
    // The owner is whoever runs the test.
    let user = std::fs::metadata(&path).unwrap().uid() as u64;
    bytes[11 * 8..12 * 8].copy_from_slice(&user.to_le_bytes());
    std::fs::write(&path, &bytes).unwrap();
    let mut lock = path.clone().into_os_string();
    lock.push(".lock");
    std::fs::write(lock, "").unwrap();
    Some(Place::Path(path))
}

/// The entries every fixture holds.
fn entries() -> Vec<(String, Vec<u8>)> {
    (0..20u8).map(|number| (format!("key {number}"), vec![number; number as usize * 20])).collect()
}

#[test]
fn format_1_is_read() {
    if std::env::var("QUINTET_WRITE_FIXTURE").is_ok() {
        let place = Place::Path(fixture("cache-1"));
        let _ = TierCache::remove(&place);
        let sizes = Sizes {
            blocks: 160,
            buckets: 160,
            seats: 2,
            max_value: 900,
            pace: 1,
            ..tiny_of(TierCache::builder(), 64).sizes
        };
        let cache = TierCache::create(&place, sizes, Access::default()).unwrap();
        cache.handle().unwrap().set_many(&entries(), None).unwrap();
        drop(cache);
        let _ = std::fs::remove_file(fixture("cache-1.lock"));
    }
    let place = copy_of("cache-1").expect("the fixture lies with the sources");
    let cache = TierCache::attach(&place).unwrap();
    assert_eq!(cache.check().unwrap().entries, 20);
    let mut handle = cache.handle().unwrap();
    for (key, value) in entries() {
        assert_eq!(handle.get(&key).unwrap(), Some(value), "{key}");
    }
    handle.set("key 3", "changed").unwrap();
    drop(handle);
    cache.check().unwrap();
    TierCache::remove(&place).unwrap();
}

/// Another format, or another layout of the header, is named in the error.
#[test]
fn other_formats_are_refused_by_name() {
    use std::os::unix::fs::FileExt;
    for (word, field) in
        [(2, "layout version"), (3, "kind"), (4, "format version"), (1, "endianness")]
    {
        let place = copy_of("cache-1").expect("the fixture lies with the sources");
        let Place::Path(path) = &place else { unreachable!() };
        let file = std::fs::File::options().write(true).open(path).unwrap();
        file.write_at(&77u64.to_le_bytes(), word * 8).unwrap();
        match TierCache::attach(&place) {
            Err(OpenError::Segment(SegmentError::Mismatch { field: named, found: 77, .. })) => {
                assert_eq!(named, field);
            }
            other => panic!("{field}: {other:?}"),
        }
        TierCache::remove(&place).unwrap();
    }
}
