// Who may cross threads: see the table of `docs/soundness.md`.
use quintet::hash_map::{Handle, Iter, Pin, QuietHandle, Ref, Refs, Retired, SetPin, SetRetired};
use quintet::{CopyMap, HashMap, HashSet, copy_map};
use std::cell::Cell;
use std::rc::Rc;

fn send<T: Send>() {}
fn sync<T: Sync>() {}

fn values_are_send() {
    let _ = HashMap::<u64, String>::new();
    let _ = HashMap::<u64, Rc<()>>::new(); //~ E0277
}

fn values_are_sync() {
    let _ = HashMap::<u64, Cell<u64>>::new(); //~ E0277
}

fn keys_are_send() {
    let _ = HashSet::<Rc<u64>>::new(); //~ E0277
}

fn a_guard_is_not_send() {
    sync::<HashMap<u64, u64>>();
    send::<Pin<'static, u64, u64>>(); //~ E0277
}

fn a_guard_is_not_sync() {
    sync::<Pin<'static, u64, u64>>(); //~ E0277
}

fn a_guard_of_a_set_is_not_send() {
    sync::<HashSet<u64>>();
    send::<SetPin<'static, u64>>(); //~ E0277
}

fn a_handle_is_send() {
    send::<Handle<'static, u64, u64>>();
    sync::<Handle<'static, u64, u64>>(); //~ E0277
}

fn a_quiet_handle_is_send() {
    send::<QuietHandle<'static, u64, u64>>();
    sync::<QuietHandle<'static, u64, u64>>(); //~ E0277
}

fn what_is_lent_is_not_send() {
    send::<Ref<'static, u64, u64>>(); //~ E0277
}

fn a_walk_is_not_send() {
    send::<Refs<'static, u64, u64>>(); //~ E0277
}

fn an_iterator_is_not_send() {
    send::<Iter<'static, u64, u64>>(); //~ E0277
}

fn what_was_taken_crosses_threads() {
    send::<Retired<u64, String>>();
    sync::<Retired<u64, String>>();
    send::<SetRetired<String>>();
    sync::<SetRetired<String>>();
    sync::<Cell<u64>>(); //~ E0277
}

fn a_handle_of_copies_is_send() {
    sync::<CopyMap<u64, u64>>();
    send::<copy_map::Handle<'static, u64, u64>>();
    sync::<copy_map::Handle<'static, u64, u64>>(); //~ E0277
}

fn a_guard_of_copies_is_not_send() {
    send::<copy_map::Pin<'static, u64, u64>>(); //~ E0277
}

fn main() {
    values_are_send();
    values_are_sync();
    keys_are_send();
    a_guard_is_not_send();
    a_guard_is_not_sync();
    a_guard_of_a_set_is_not_send();
    a_handle_is_send();
    a_quiet_handle_is_send();
    what_is_lent_is_not_send();
    a_walk_is_not_send();
    an_iterator_is_not_send();
    what_was_taken_crosses_threads();
    a_handle_of_copies_is_send();
    a_guard_of_copies_is_not_send();
}
