// Who may cross threads: see the table of `docs/soundness.md`.
use quintet::TierCache;
use quintet::cache::{Handle, Reader, Departed, Lease, Maintenance, Scan};
use std::cell::Cell;
use std::rc::Rc;

fn send<T: Send>() {}
fn sync<T: Sync>() {}

// Words in shared memory are atomics, and what is not is only changed through an exclusive borrow.
fn all_may_cross() {
    send::<TierCache>();
    sync::<TierCache>();
    send::<Handle<'static>>();
    sync::<Handle<'static>>();
    send::<Reader<'static>>();
    sync::<Reader<'static>>();
    send::<Lease<'static>>();
    sync::<Lease<'static>>();
    send::<Scan<'static>>();
    sync::<Scan<'static>>();
    send::<Maintenance>();
    sync::<Maintenance>();
}

fn a_sink_is_send(cache: &mut TierCache) {
    let told = Rc::new(0);
    cache.set_sink(move |_: &[Departed]| Err(told.to_string())); //~ E0277
}

fn a_sink_is_sync(cache: &mut TierCache) {
    let told = Cell::new(0);
    cache.set_sink(move |_: &[Departed]| Err(told.get().to_string())); //~ E0277
}

fn a_shared_handle_does_not_write(handle: &Handle<'_>) {
    std::thread::scope(|scope| drop(scope.spawn(|| handle.lease("key"))));
    handle.insert("key", "value"); //~ E0596
}

fn a_shared_handle_does_not_read(handle: &Handle<'_>) {
    handle.get("key"); //~ E0596
}

fn main() {}
