//! What is known costs no allocation. One test: the counts of the allocator are the process's.

use quintet::SeenSet;
use quintet_testkit::alloc::Shredder;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts what it passes on.
struct Counting(Shredder, AtomicUsize);

// SAFETY: all is passed on.
unsafe impl std::alloc::GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: std::alloc::Layout) -> *mut u8 {
        self.1.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { self.0.alloc(layout) }
    }
    unsafe fn dealloc(&self, place: *mut u8, layout: std::alloc::Layout) {
        // SAFETY: the caller's promise.
        unsafe { self.0.dealloc(place, layout) };
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting(Shredder::new(), AtomicUsize::new(0));

fn allocations(work: impl FnOnce()) -> usize {
    let before = ALLOCATOR.1.load(Ordering::Relaxed);
    work();
    ALLOCATOR.1.load(Ordering::Relaxed) - before
}

#[test]
fn a_known_record_allocates_nothing() {
    let (texts, lists, bytes) =
        (SeenSet::<String>::new(), SeenSet::<Vec<u32>>::new(), SeenSet::<[u8]>::new());
    let words = ["one", "another", "a third one, longer than most"];
    let insert = || {
        for word in words {
            texts.insert(word);
            lists.insert(&[7u32, 8, 9]);
            bytes.insert(word);
        }
        assert_eq!(texts.insert_many(words), 0);
        assert!(texts.contains("one") && bytes.contains("one"));
    };
    texts.insert_many(words);
    insert();
    let handle = texts.handle();
    assert_eq!(allocations(insert), 0, "on the set");
    assert_eq!(allocations(|| assert!(words.iter().all(|word| !handle.insert(*word).is_new()))), 0);
    assert!(allocations(|| assert!(handle.insert("new").is_new())) > 0, "the record");
}
