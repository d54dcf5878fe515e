// Who may cross threads: see the table of `docs/soundness.md`.
use quintet::WordMap;
use quintet::word_map::{Drain, Handle, IntoIter, Iter, Pin};
use std::cell::Cell;

fn send<T: Send>() {}
fn sync<T: Sync>() {}

fn words_are_sync() {
    send::<WordMap<u64, &'static u64>>();
    sync::<WordMap<u64, &'static u64>>();
    let _ = WordMap::<u64, &'static Cell<u64>>::new(); //~ E0277
}

fn a_handle_is_send() {
    send::<Handle<'static, u64, u64>>();
    sync::<Handle<'static, u64, u64>>(); //~ E0277
}

fn a_guard_is_not_send() {
    send::<Pin<'static, u64, u64>>(); //~ E0277
}

fn a_guard_is_not_sync() {
    sync::<Pin<'static, u64, u64>>(); //~ E0277
}

fn an_iterator_is_not_sync() {
    send::<Iter<'static, u64, u64>>();
    sync::<Iter<'static, u64, u64>>(); //~ E0277
}

fn an_iterator_of_all_is_not_sync() {
    send::<IntoIter<u64, &'static u64>>();
    sync::<IntoIter<u64, u64>>(); //~ E0277
}

fn a_drain_is_not_sync() {
    send::<Drain<'static, u64, u64>>();
    sync::<Drain<'static, u64, u64>>(); //~ E0277
}

fn main() {}
