//! Caches of bytes: each does what the race asks of it, and another process's way in leads to the
//! same entries.
#![cfg(target_os = "linux")]

use quintet_rivals::stores::{
    Lmdb, Memcached, MokaBytes, QuickBytes, Redis, Store, StoreLocal, key,
};

fn obeys<S: Store>() {
    let store = match S::create(1000, 64) {
        Ok(store) => store,
        Err(why) => return println!("skipped: {why}"),
    };
    let mut local = store.local().expect("access");
    let keys: Vec<_> = (0..20).map(key).collect();
    let values: Vec<Vec<u8>> = (0..20).map(|number| vec![number as u8; 64]).collect();
    assert!(local.set(&keys, |at| &values[at]), "{}", S::LABEL.name);
    // The last ten are absent.
    let asked: Vec<_> = (0..30).map(|number| key(number + number / 20 * 1000)).collect();
    let mut seen = Vec::new();
    let look = |local: &mut S::Local<'_>, seen: &mut Vec<Option<Vec<u8>>>| {
        seen.clear();
        let answered = local.get(&asked, |at, value| {
            assert_eq!(at, seen.len(), "in order");
            seen.push(value.map(<[u8]>::to_vec));
        });
        assert!(answered, "{}", S::LABEL.name);
    };
    let expected: Vec<Option<Vec<u8>>> =
        (0..30).map(|number| values.get(number).cloned()).collect();
    look(&mut local, &mut seen);
    assert_eq!(seen, expected, "{}", S::LABEL.name);

    assert!(local.set(&keys[..1], |_| &values[7]), "{}", S::LABEL.name);
    drop(local);
    // LMDB opens a file once per process; the others have a second way in.
    let second = store.path().filter(|_| !S::LABEL.name.starts_with("heed"));
    let second = second.map(|path| S::attach(&path).expect("its own path"));
    let mut local = second.as_ref().unwrap_or(&store).local().expect("access");
    look(&mut local, &mut seen);
    assert_eq!(seen[0].as_ref(), Some(&values[7]), "{}", S::LABEL.name);
    assert_eq!(seen[1..], expected[1..], "{}", S::LABEL.name);
}

#[test]
fn every_store_keeps_what_it_was_given() {
    obeys::<Lmdb<1>>();
    obeys::<Lmdb<256>>();
    obeys::<Redis<1>>();
    obeys::<Redis<16>>();
    obeys::<Memcached<1>>();
    obeys::<Memcached<16>>();
    obeys::<MokaBytes>();
    obeys::<QuickBytes>();
}

#[test]
fn nothing_is_left_in_memory() {
    let Ok(store) = Lmdb::<1>::create(10, 64) else { return };
    let path = store.path().expect("a file");
    let (path, _) = path.rsplit_once(':').expect("a size");
    assert!(std::path::Path::new(path).is_dir());
    drop(store);
    assert!(!std::path::Path::new(path).exists());
}
