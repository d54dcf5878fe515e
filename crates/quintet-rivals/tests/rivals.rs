//! Every rival does what its trait says, so that a race compares like with like.
#![deny(unsafe_code)]

use quintet_rivals::cache::{Cache, Moka, QuickCache};
use quintet_rivals::general::{
    Access, Dashmap, Flurry, Leapfrog, Map, Mutexed, Papaya, PapayaBatch, RwLocked, SccIndex,
    SccMap,
};
use quintet_rivals::read_mostly::{
    ArcSwapped, Evmap, Flashmap, Frozen, General, Guard, LeftRight, Reader, Turns, Writer,
};
use quintet_rivals::reclaim::{Domain, Epoch, Item, Local, Seize};
use quintet_rivals::{Kind, Label, Texts, Words};
use std::sync::atomic::{AtomicU64, Ordering};

fn has<T: Kind>(access: &mut impl Access<T>, index: u64) -> Option<bool> {
    T::ask(index, |key| access.get(key, |value| T::matches(index, value)))
}

fn obeys_map<T: Kind, M: Map<T>>() {
    for capacity in [0, 1000] {
        let map = M::with_capacity(capacity);
        let mut access = map.access();
        for index in 0..1000 {
            assert_eq!(has::<T>(&mut access, index), None);
            assert!(access.insert(T::key(index), T::value(index, 0)));
            assert!(!access.insert(T::key(index), T::value(index, 1)));
            access.quiet();
        }
        for index in 0..1000 {
            assert_eq!(has::<T>(&mut access, index), Some(true));
            assert!(T::ask(index, |key| access.update(key, T::value(index, 2))));
            T::ask(index, |key| access.get(key, |v| assert!(*v == T::value(index, 2))));
        }
        for index in (1..1000).step_by(2) {
            assert!(T::ask(index, |key| access.remove(key)));
            assert!(!T::ask(index, |key| access.remove(key)));
        }
        access.quiet();
        for index in 0..1000 {
            assert_eq!(has::<T>(&mut access, index), (index % 2 == 0).then_some(true));
        }
    }
}

fn obeys_map_from_two_threads<T: Kind, M: Map<T>>() {
    let map = M::with_capacity(0);
    std::thread::scope(|scope| {
        for half in 0..2 {
            let map = &map;
            scope.spawn(move || {
                let mut access = map.access();
                for index in (half..20_000).step_by(2) {
                    assert!(access.insert(T::key(index), T::value(index, 0)));
                    if index % 128 < 2 {
                        access.quiet();
                    }
                }
            });
        }
    });
    let mut access = map.access();
    assert!((0..20_000).all(|index| has::<T>(&mut access, index) == Some(true)));
}

macro_rules! general {
    ($($name:ident: $map:ty, $kind:ty;)*) => {$(
        #[test]
        fn $name() {
            obeys_map::<$kind, $map>();
            obeys_map_from_two_threads::<$kind, $map>();
        }
    )*};
}

general! {
    mutex_words: Mutexed<Words>, Words;
    mutex_texts: Mutexed<Texts>, Texts;
    rwlock_words: RwLocked<Words>, Words;
    rwlock_texts: RwLocked<Texts>, Texts;
    dashmap_words: Dashmap<Words>, Words;
    dashmap_texts: Dashmap<Texts>, Texts;
    papaya_words: Papaya<Words>, Words;
    papaya_texts: Papaya<Texts>, Texts;
    papaya_batch_words: PapayaBatch<Words>, Words;
    papaya_batch_texts: PapayaBatch<Texts>, Texts;
    scc_words: SccMap<Words>, Words;
    scc_texts: SccMap<Texts>, Texts;
    scc_index_words: SccIndex<Words>, Words;
    scc_index_texts: SccIndex<Texts>, Texts;
    flurry_words: Flurry<Words>, Words;
    flurry_texts: Flurry<Texts>, Texts;
    leapfrog_words: Leapfrog, Words;
}

fn sees<T: Kind>(reader: &mut impl Reader<T>, index: u64) -> Option<T::Value> {
    T::ask(index, |key| reader.enter().get(key, Clone::clone))
}

fn obeys_writer<T: Kind, W: Writer<T>>(late: bool) {
    let mut writer = W::with_capacity(100);
    let fill = |writer: &mut W| {
        (0..100).for_each(|i| writer.insert(T::key(i), T::value(i, 0)));
        T::ask(7, |key| writer.remove(key));
        writer.publish();
    };
    if late {
        fill(&mut writer);
    }
    let mut reader = writer.reader();
    if !late {
        assert!(sees::<T>(&mut reader, 3).is_none());
        fill(&mut writer);
    }
    assert!(sees::<T>(&mut reader, 3) == Some(T::value(3, 0)));
    assert!(sees::<T>(&mut reader, 7).is_none());
    if !late {
        writer.insert(T::key(3), T::value(3, 9));
        writer.publish();
        assert!(sees::<T>(&mut reader, 3) == Some(T::value(3, 9)));
    }
}

#[test]
fn read_mostly_maps_publish() {
    obeys_writer::<Words, Flashmap<Words>>(false);
    obeys_writer::<Texts, Flashmap<Texts>>(false);
    obeys_writer::<Words, LeftRight<Words>>(false);
    obeys_writer::<Texts, LeftRight<Texts>>(false);
    obeys_writer::<Words, Evmap<Words>>(false);
    obeys_writer::<Texts, Evmap<Texts>>(false);
    obeys_writer::<Words, ArcSwapped<Words>>(false);
    obeys_writer::<Texts, ArcSwapped<Texts>>(false);
    obeys_writer::<Words, General<Dashmap<Words>>>(false);
    obeys_writer::<Words, Frozen<Words>>(true);
    obeys_writer::<Words, Turns<Words>>(true);
}

fn obeys_cache<C: Cache<Words>>() {
    let cache = C::with_capacity(100);
    for index in 0..1000 {
        cache.insert(Words::key(index), Words::value(index, 0));
        cache.settle();
    }
    cache.settle();
    let found = (0..1000)
        .filter_map(|index| {
            Words::ask(index, |key| cache.get(key, |value| Words::matches(index, value)))
        })
        .inspect(|right| assert!(right))
        .count();
    assert!((1..=110).contains(&found), "{found} entries in a cache of 100");
    (0..1000).for_each(|index| Words::ask(index, |key| cache.remove(key)));
    assert!((0..1000).all(|index| Words::ask(index, |key| cache.get(key, |_| ())).is_none()));
}

#[test]
fn caches_keep_to_their_capacity() {
    obeys_cache::<Moka<Words>>();
    obeys_cache::<QuickCache<Words>>();
}

fn obeys_domain<D: Domain>(freed: &'static AtomicU64) {
    let domain = D::new();
    let mut local = domain.local();
    for _ in 0..10_000 {
        local.retire(Item::new(freed, local.birth()));
        local.section(|| ());
    }
    for _ in 0..1000 {
        local.flush();
    }
    assert!(freed.load(Ordering::Relaxed) > 0, "nothing was freed while the domain lived");
    drop(local);
    drop(domain);
    assert_eq!(freed.load(Ordering::Relaxed), 10_000, "a domain frees everything when it ends");
}

#[test]
fn domains_free_what_is_retired() {
    static EPOCH: AtomicU64 = AtomicU64::new(0);
    static SEIZE: AtomicU64 = AtomicU64::new(0);
    obeys_domain::<Epoch>(&EPOCH);
    obeys_domain::<Seize>(&SEIZE);
}

/// The versions shown in a race are those of the lock file.
#[test]
fn versions_are_those_that_are_built() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.lock");
    let Ok(lock) = std::fs::read_to_string(path) else {
        return; // outside the workspace there is no lock file to compare with
    };
    let labels: &[Label] = &[
        <RwLocked<Words> as Map<Words>>::LABEL,
        <Dashmap<Words> as Map<Words>>::LABEL,
        <Papaya<Words> as Map<Words>>::LABEL,
        <PapayaBatch<Words> as Map<Words>>::LABEL,
        <SccMap<Words> as Map<Words>>::LABEL,
        <SccIndex<Words> as Map<Words>>::LABEL,
        <Flurry<Words> as Map<Words>>::LABEL,
        <Leapfrog as Map<Words>>::LABEL,
        <Flashmap<Words> as Writer<Words>>::LABEL,
        <LeftRight<Words> as Writer<Words>>::LABEL,
        <Evmap<Words> as Writer<Words>>::LABEL,
        <ArcSwapped<Words> as Writer<Words>>::LABEL,
        <Frozen<Words> as Writer<Words>>::LABEL,
        <Turns<Words> as Writer<Words>>::LABEL,
        <Moka<Words> as Cache<Words>>::LABEL,
        <QuickCache<Words> as Cache<Words>>::LABEL,
        <Epoch as Domain>::LABEL,
        <Seize as Domain>::LABEL,
    ];
    for label in labels {
        let name = label.name.split(' ').next().expect("a name has a first word");
        let version = label.version.expect("a crate has a version");
        let entry = format!("name = \"{name}\"\nversion = \"{version}\"\n");
        assert!(lock.contains(&entry), "{name} {version} is not in Cargo.lock");
    }
}
