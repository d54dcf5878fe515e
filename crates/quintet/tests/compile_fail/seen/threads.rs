// Who may cross threads: see the table of `docs/soundness.md`.
use quintet::seen_set::{Handle, Iter, Offline, PrintsHandle};
use quintet::{SeenPrints, SeenSet};
use std::cell::Cell;
use std::hash::{BuildHasher, DefaultHasher, RandomState};
use std::rc::Rc;

fn send<T: Send>() {}
fn sync<T: Sync>() {}

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

/// A hasher that stays on its thread.
struct Home(Rc<()>);

impl BuildHasher for Home {
    type Hasher = DefaultHasher;
    fn build_hasher(&self) -> DefaultHasher {
        DefaultHasher::new()
    }
}

fn records_are_send() {
    let _ = SeenSet::<u64>::new();
    let _ = SeenSet::<Rc<u64>>::new(); //~ E0277
}

fn records_are_sync() {
    let _ = SeenSet::<u64>::new();
    let _ = SeenSet::<Cell<u64>>::new(); //~ E0277
}

fn a_set_is_as_sync_as_its_hasher() {
    sync::<SeenSet<u64>>();
    send::<SeenSet<u64, Counting>>();
    sync::<SeenSet<u64, Counting>>(); //~ E0277
}

fn a_set_is_as_send_as_its_hasher() {
    send::<SeenSet<u64>>();
    send::<SeenSet<u64, Home>>(); //~ E0277
}

fn a_handle_is_not_sync() {
    send::<Handle<'static, u64>>();
    sync::<Handle<'static, u64>>(); //~ E0277
}

fn a_handle_of_a_set_that_is_not_sync_is_not_send() {
    send::<Handle<'static, u64, RandomState>>();
    send::<Handle<'static, u64, Counting>>(); //~ E0277
}

fn an_offline_guard_is_not_sync() {
    send::<Offline<'static, 'static, u64, RandomState>>();
    sync::<Offline<'static, 'static, u64, RandomState>>(); //~ E0277
}

fn an_iterator_of_a_set_that_is_not_sync_is_not_send() {
    send::<Iter<'static, u64, RandomState>>();
    send::<Iter<'static, u64, Counting>>(); //~ E0277
}

fn an_iterator_is_not_sync() {
    sync::<Iter<'static, u64, RandomState>>(); //~ E0277
}

fn prints_are_as_sync_as_their_hasher() {
    sync::<SeenPrints>();
    sync::<SeenPrints<Counting>>(); //~ E0277
}

fn a_handle_of_prints_is_not_sync() {
    send::<PrintsHandle<'static>>();
    sync::<PrintsHandle<'static>>(); //~ E0277
}

fn main() {}
