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
