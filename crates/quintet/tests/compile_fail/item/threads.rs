// Who may cross threads: see the table of `docs/soundness.md`.
use quintet::ItemSet;
use quintet::item_set::{
    ArcRef, DrainRefs, Handle, Iter, Keyed, MappedRef, Offline, Pin, QuietHandle, Ref, Refs, Removed,
};
use std::cell::Cell;
use std::hash::{BuildHasher, DefaultHasher};
use std::rc::Rc;
use std::sync::Arc;

fn send<T: Send>() {}
fn sync<T: Sync>() {}

struct Word(String);

impl Keyed for Word {
    type Key = str;
    fn key(&self) -> &str {
        &self.0
    }
}

type Items = Box<Word>;

/// An item that stays on its thread.
struct Home(u64, Rc<()>);

impl Keyed for Home {
    type Key = u64;
    fn key(&self) -> &u64 {
        &self.0
    }
}

/// An item that two threads must not look at.
struct Counter(u64, Cell<u64>);

impl Keyed for Counter {
    type Key = u64;
    fn key(&self) -> &u64 {
        &self.0
    }
}

/// A hasher that counts, on one thread.
#[derive(Default)]
struct Counting(Cell<u64>);

impl BuildHasher for Counting {
    type Hasher = DefaultHasher;
    fn build_hasher(&self) -> DefaultHasher {
        self.0.set(self.0.get() + 1);
        DefaultHasher::new()
    }
}

fn items_are_send() {
    let _ = ItemSet::<Items>::new();
    let _ = ItemSet::<Box<Home>>::new(); //~ E0277
}

fn items_are_sync() {
    let _ = ItemSet::<Items>::new();
    let _ = ItemSet::<Box<Counter>>::new(); //~ E0277
}

fn shared_items_are_send() {
    let _ = ItemSet::<Arc<Home>>::new(); //~ E0277
}

fn a_set_is_as_sync_as_its_hasher() {
    sync::<ItemSet<Items>>();
    send::<ItemSet<Items, Counting>>();
    sync::<ItemSet<Items, Counting>>(); //~ E0277
}

fn a_handle_is_send() {
    send::<QuietHandle<'static, Items>>();
    sync::<QuietHandle<'static, Items>>(); //~ E0277
}

fn a_handle_is_as_send_as_its_hasher_is_sync() {
    send::<QuietHandle<'static, Items, Counting>>(); //~ E0277
}

fn an_ordinary_handle_is_send() {
    send::<Handle<'static, Items>>();
    sync::<Handle<'static, Items>>(); //~ E0277
}

fn an_ordinary_handle_is_as_send_as_its_hasher_is_sync() {
    send::<Handle<'static, Items, Counting>>(); //~ E0277
}

fn what_is_lent_is_not_send() {
    send::<Ref<'static, Items>>(); //~ E0277
}

fn what_is_lent_is_not_sync() {
    sync::<Ref<'static, Items>>(); //~ E0277
}

fn a_part_is_not_send() {
    send::<MappedRef<'static, str>>(); //~ E0277
}

fn a_part_is_not_sync() {
    sync::<MappedRef<'static, str>>(); //~ E0277
}

fn a_walk_is_not_send() {
    send::<Refs<'static, Items>>(); //~ E0277
}

fn a_walk_is_not_sync() {
    sync::<Refs<'static, Items>>(); //~ E0277
}

fn a_walk_that_drains_is_not_send() {
    send::<DrainRefs<'static, Items>>(); //~ E0277
}

fn a_guard_is_not_send() {
    send::<Pin<'static, Items>>(); //~ E0277
}

fn a_guard_is_not_sync() {
    sync::<Pin<'static, Items>>(); //~ E0277
}

fn an_iterator_is_not_send() {
    send::<Iter<'static, Items>>(); //~ E0277
}

fn an_iterator_is_not_sync() {
    sync::<Iter<'static, Items>>(); //~ E0277
}

fn what_was_removed_is_not_send() {
    send::<Removed<'static, Items>>(); //~ E0277
}

fn what_was_removed_is_not_sync() {
    sync::<Removed<'static, Items>>(); //~ E0277
}

fn a_handle_offline_is_not_sync() {
    send::<Offline<'static>>();
    sync::<Offline<'static>>(); //~ E0277
}

fn a_shared_item_goes_where_it_may() {
    send::<ArcRef<'static, Word>>();
    sync::<ArcRef<'static, Word>>();
    send::<ArcRef<'static, Counter>>(); //~ E0277
}

fn a_quiet_handle_is_used_by_two(set: &ItemSet<Items>) {
    let handle = set.quiet_handle();
    std::thread::scope(|scope| {
        scope.spawn(|| handle.get("x").is_some()); //~ E0277
    });
}

fn main() {}
