//! What safe code might try with a `SeenSet`, and must not succeed with. `docs/soundness.md` says which test stands for what.

use quintet::SeenSet;
use quintet::seen_set::{Ids, RecordId};
use std::panic::{AssertUnwindSafe, catch_unwind};

fn panics<R>(f: impl FnOnce() -> R) -> bool {
    catch_unwind(AssertUnwindSafe(f)).is_err()
}

/// Sets that hold their ids in different widths: the marks of one kind were the marks of the other, shifted.
#[test]
fn an_id_of_a_wide_set_is_no_id_of_a_narrow_one() {
    let wide = SeenSet::<u64>::builder().ids(Ids::Wide).segments(1).build::<u64>();
    let foreign = wide.handle().insert(7).id();
    for _ in 0..50_000 {
        let narrow = SeenSet::<String>::builder().segments(1).build::<String>();
        assert!(narrow.get(foreign).is_none());
    }
}

/// Every call that takes an id, with ids of sets of another type, another width of ids, the same type, and of a set that is gone.
#[test]
fn foreign_ids_are_refused_by_every_call() {
    let set = SeenSet::<String>::builder().parents(true).build::<String>();
    let handle = set.handle();
    let own = handle.insert("own".to_owned()).id();
    let twin = SeenSet::<String>::builder().parents(true).build::<String>();
    let wide = SeenSet::<String>::builder().ids(Ids::Wide).build::<[u64; 4]>();
    let text = SeenSet::<[u8]>::new();
    let gone = SeenSet::<String>::new().handle().insert("own".to_owned()).id();
    let foreign: [RecordId; 4] = [
        twin.handle().insert("own".to_owned()).id(),
        wide.handle().insert([1; 4]).id(),
        text.handle().insert(b"own").id(),
        gone,
    ];
    for id in foreign {
        assert_eq!((set.get(id), handle.get(id)), (None, None));
        assert_eq!((set.parent(id), set.label(id)), (None, 0));
        assert_eq!(set.trace(id), [id]);
        assert!(panics(|| handle.insert_from("new".to_owned(), id, 1)));
        assert!(panics(|| handle.try_insert_from("new".to_owned(), id, 1)));
        let many = || [("new".to_owned(), 1)];
        assert!(panics(|| handle.insert_many_from(id, many(), |_| ())));
        assert!(panics(|| handle.try_insert_many_from(id, many(), |_| ())));
        assert!(panics(|| text.handle().insert_from(b"new", own, 1)));
    }
    assert_eq!((set.len(), text.len()), (1, 1));
    assert_eq!(set.get(own).map(String::as_str), Some("own"));
}

/// No size, but an alignment; and nothing equals anything, so that a set holds many.
macro_rules! aligned {
    ($($name:ident $align:literal $size:literal),+) => { $(
        #[derive(Debug)]
        #[repr(align($align))]
        struct $name([u8; $size]);

        impl $name {
            fn fill(set: &SeenSet<$name>) {
                let handle = set.handle();
                for _ in 0..3_000 {
                    let id = handle.insert(Self([7; $size])).id();
                    let place = std::ptr::from_ref(set.get(id).unwrap());
                    assert_eq!(place.addr() % align_of::<Self>(), 0, "{} of {}", $align, $size);
                }
                handle.insert_many((0..100).map(|_| Self([7; $size])), |_| ());
                assert_eq!((set.len(), set.iter().count()), (3_100, 3_100));
                let places = set.iter().map(|(_, record)| std::ptr::from_ref(record).addr());
                let places: std::collections::HashSet<_> = places.collect();
                assert_eq!(places.len(), 3_100, "each has its place");
                let sound = |record: &Self| record.0.iter().all(|byte| *byte == 7);
                assert!(set.iter().all(|(_, record)| sound(record)));
            }
        }
        impl PartialEq for $name {
            fn eq(&self, _: &Self) -> bool {
                false
            }
        }
        impl Eq for $name {}
        impl std::hash::Hash for $name {
            fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
                // Some differ, so that lines do not run full of one home.
                thread_local!(static TURN: std::cell::Cell<u64> = const { std::cell::Cell::new(0) });
                TURN.set(TURN.get() + 1);
                state.write_u64(TURN.get());
            }
        }
    )+ };
}
aligned!(Nothing1 1 0, Nothing8 8 0, Nothing64 64 0, Nothing4096 4096 0, One64 64 1, One4096 4096 1, Odd16 16 17);

/// References to records without size, or of unusual alignment, were not aligned.
#[test]
fn records_are_aligned_whatever_their_size() {
    let base = SeenSet::<u64>::builder();
    for builder in [base, base.parents(true), base.ids(Ids::Wide).parents(true)] {
        Nothing1::fill(&builder.build());
        Nothing8::fill(&builder.build());
        Nothing64::fill(&builder.build());
        Nothing4096::fill(&builder.build());
        One64::fill(&builder.build());
        One4096::fill(&builder.build());
        Odd16::fill(&builder.build());
    }
    let units = SeenSet::<()>::new();
    assert!(units.handle().insert(()).is_new() && !units.handle().insert(()).is_new());
    let words = SeenSet::<[u64; 0]>::builder().parents(true).build::<[u64; 0]>();
    let id = words.handle().insert([]).id();
    assert_eq!(words.get(id), Some(&[]));
}
