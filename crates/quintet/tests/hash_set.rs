//! `HashSet`: every operation, by every way in.
#![cfg(not(any(quintet_loom, quintet_shuttle)))]

use quintet::{HashSet, Rejected};
use std::collections;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Equal to others of its name, and told apart from them by its mark.
#[derive(Clone, Debug)]
struct Marked(u32, char);

impl PartialEq for Marked {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for Marked {}

impl Hash for Marked {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

/// The same story by one way.
macro_rules! story {
    ($way:expr, $set:expr) => {{
        let (way, set) = ($way, $set);
        let a = Marked(1, 'a');
        assert!(way.is_empty() && way.get(&a).is_none() && !way.contains(&a));
        assert!(way.insert(a.clone()) && !way.insert(Marked(1, 'b')));
        assert_eq!(way.get(&a).map(|found| found.1), Some('a'), "the one that was there stays");
        let Err(Rejected { current, value }) = way.insert_new(Marked(1, 'c')) else { panic!() };
        assert_eq!((current.1, value.1), ('a', 'c'));
        assert!(way.insert_new(Marked(2, 'c')).is_ok());
        assert_eq!(way.replace(Marked(1, 'd')).map(|old| old.1), Some('a'));
        assert!(way.replace(Marked(3, 'd')).is_none());
        assert_eq!(way.get_or_insert(Marked(1, 'e')).1, 'd');
        assert_eq!(way.get_or_insert(Marked(4, 'e')).1, 'e');
        assert_eq!(way.get_or_insert_with(&Marked(4, ' '), || unreachable!()).1, 'e');
        assert_eq!(way.get_or_insert_with(&Marked(5, ' '), || Marked(5, 'f')).1, 'f');
        let (mut found, mut there) = ([const { None }; 2], [false; 2]);
        way.get_many(&[Marked(5, ' '), Marked(6, ' ')], &mut found);
        assert_eq!(found.map(|found| found.map(|found| found.1)), [Some('f'), None]);
        way.contains_many(&[Marked(5, ' '), Marked(6, ' ')], &mut there);
        assert_eq!(there, [true, false]);
        assert_eq!(way.insert_many([6, 7, 8, 9].map(|n| Marked(n, 'g'))), 4);
        assert_eq!((way.len(), way.iter().count(), way.into_iter().count()), (9, 9, 9));
        assert!(way.remove(&Marked(9, ' ')) && !way.remove(&Marked(9, ' ')));
        assert_eq!(way.remove_if(&Marked(8, ' '), |m| m.1 == 'x').map(|_| ()).unwrap_err().1, 'g');
        assert!(way.remove_if(&Marked(8, ' '), |_| true).is_ok_and(|old| old.is_some()));
        assert_eq!(way.remove_many(&[Marked(7, ' '), Marked(8, ' ')]), 1);
        way.retain(|marked| marked.0 != 6);
        assert_eq!(way.extract_if(|marked| marked.0 > 3).count(), 2);
        assert_eq!((way.drain().count(), set.len()), (3, 0));
        way.insert(a);
        way.clear();
        way.reserve(100);
        assert!(way.capacity() >= 100 && way.try_reserve(usize::MAX).is_err());
        assert!(way.memory_bytes() > 0 && way.stats().len == 0);
        way.shrink_to_fit();
        assert_eq!(way.fallible().insert(Marked(1, 'z')), Ok(true));
        assert_eq!(way.fallible().insert_many([Marked(1, 'y'), Marked(2, 'y')]), Ok(1));
        assert!(way.fallible().replace(Marked(1, 'x')).unwrap().is_some());
        assert!(way.fallible().insert_new(Marked(1, 'w')).unwrap().is_err());
        let text = format!("{way:?}");
        assert!(!text.contains("0x"), "{text}");
    }};
}

#[test]
fn by_every_way() {
    let set = Arc::new(HashSet::<Marked>::new());
    story!(&*set, &set);
    set.clear();
    story!(&set.pin(), &set);
    set.clear();
    story!(&set.owned_handle(), &set);
    set.clear();
    let handle = set.handle();
    story!(&handle.pin(), &set);
    set.clear();
    story!(&set.owned_quiet_handle(), &set);
    set.clear();
    let mut quiet = set.quiet_handle();
    story!(&quiet, &set);
    quiet.quiescent();
    drop(quiet.offline());
    quiet.flush();
    set.flush();
}

/// The last owner may be a handle.
#[test]
fn an_owned_handle_keeps_its_set() {
    let set = Arc::new(HashSet::from(["apple".to_string()]));
    let (handle, quiet) = (set.owned_handle(), set.owned_quiet_handle());
    drop(set);
    assert!(std::thread::spawn(move || handle.contains("apple")).join().unwrap());
    assert!(quiet.contains("apple"));
}

#[test]
fn a_set_is_a_collection() {
    let set = HashSet::from([1, 2, 3]);
    let std = collections::HashSet::<_>::from([3, 2, 1]);
    assert_eq!(set, HashSet::<_>::from(std.clone()));
    assert_eq!(collections::HashSet::<_>::from(set.clone()), std);
    let mut other: HashSet<u32> = set.clone().into_iter().collect();
    other.extend([4]);
    other.extend(&[5]);
    assert!(other != set && set.is_subset(&other) && other.is_superset(&set));
    assert!(!other.is_subset(&set) && set.is_disjoint(&HashSet::from([9])));
    assert_eq!(format!("{:?}", HashSet::from([7])), "{7}");
    assert_eq!(HashSet::<u8>::default(), HashSet::new());
    let hasher = std::hash::RandomState::new();
    let hashed = HashSet::with_capacity_and_hasher(9, hasher.clone());
    assert!(hashed.insert(1) && hashed.capacity() >= 9);
    assert!(HashSet::<u8, _>::with_hasher(hasher).is_empty());
    assert!(HashSet::<u8>::with_capacity(9).capacity() >= 9);
    assert!(HashSet::<u8>::builder().capacity(9).seed(1).try_build().is_ok());
}

/// Against std, over all pairs of small sets.
#[test]
fn algebra_is_that_of_std() {
    let of = |bits: u32| (0..5).filter(move |bit| bits >> bit & 1 == 1);
    for (left, right) in (0..32).flat_map(|left| (0..32).map(move |right| (left, right))) {
        let ours: [HashSet<u32>; 2] = [of(left).collect(), of(right).collect()];
        let stds: [collections::HashSet<u32>; 2] = [of(left).collect(), of(right).collect()];
        let ([a, b], [c, d]) = (&ours, &stds);
        let std = |set: HashSet<u32>| collections::HashSet::<u32>::from(set);
        assert_eq!((std(a & b), std(a | b), std(a ^ b), std(a - b)), (c & d, c | d, c ^ d, c - d));
        assert_eq!(
            (a.is_subset(b), a.is_superset(b), a.is_disjoint(b)),
            (c.is_subset(d), c.is_superset(d), c.is_disjoint(d))
        );
        assert_eq!(a.union(b).count(), c.union(d).count(), "each once");
    }
}

#[cfg(feature = "serde")]
#[test]
fn there_and_back() {
    let set = HashSet::from([1, 2]);
    let text = serde_json::to_string(&set).unwrap();
    assert_eq!(serde_json::from_str::<HashSet<u32>>(&text).unwrap(), set);
    assert!(serde_json::from_str::<HashSet<u32>>("{}").is_err());
}
