// Who may cross threads: see the table of `docs/soundness.md`.
use quintet::{TwinMap, TwinSet};
use quintet::twin_map::*;
use std::cell::Cell;
use std::rc::Rc;

fn send<T: Send>() {}
fn sync<T: Sync>() {}

type Plain = Version<u64, u64>;
/// May move, not be shared.
type Cells = Version<u64, Cell<u64>>;
/// May not move.
type Counts = Version<u64, Rc<u64>>;

fn a_reader_is_not_sync() {
    send::<Reader<Plain>>();
    sync::<Reader<Plain>>(); //~ E0277
}

fn a_reader_shares_its_copies() {
    send::<Reader<Plain>>();
    send::<Reader<Cells>>(); //~ E0277
}

fn a_reader_drops_its_copies() {
    send::<Reader<Plain>>();
    send::<Reader<Counts>>(); //~ E0277
}

fn a_shared_reader_shares_its_copies() {
    sync::<SharedReader<Plain>>();
    sync::<SharedReader<Cells>>(); //~ E0277
}

fn a_shared_reader_drops_its_copies() {
    send::<SharedReader<Plain>>();
    send::<SharedReader<Counts>>(); //~ E0277
}

fn a_guard_stays_on_its_thread() {
    send::<ReadGuard<'static, Plain>>(); //~ E0277
}

fn a_guard_is_not_sync() {
    sync::<ReadGuard<'static, Plain>>(); //~ E0277
}

fn an_owned_guard_shares_its_copy() {
    send::<OwnedGuard<Plain>>();
    sync::<OwnedGuard<Plain>>();
    send::<OwnedGuard<Cells>>(); //~ E0277
}

fn an_owned_guard_drops_its_copies() {
    send::<OwnedGuard<Counts>>(); //~ E0277
}

fn a_writer_shares_its_copies_with_readers() {
    send::<Writer<u64, u64>>();
    send::<Writer<u64, Cell<u64>>>(); //~ E0277
}

fn a_writer_moves_its_entries() {
    send::<Writer<u64, Rc<u64>>>(); //~ E0277
}

fn a_write_guard_moves_its_entries() {
    send::<WriteGuard<'static, u64, u64>>();
    send::<WriteGuard<'static, u64, Rc<u64>>>(); //~ E0277
}

fn a_write_guard_shows_its_entries() {
    sync::<WriteGuard<'static, u64, u64>>();
    sync::<WriteGuard<'static, u64, Cell<u64>>>(); //~ E0277
}

fn a_guard_to_come_moves_its_entries() {
    send::<AcquireMap<'static, u64, u64>>();
    send::<AcquireMap<'static, u64, Rc<u64>>>(); //~ E0277
}

fn an_entry_moves() {
    send::<Entry<'static, 'static, u64, u64, std::hash::RandomState>>();
    send::<Entry<'static, 'static, u64, Rc<u64>, std::hash::RandomState>>(); //~ E0277
}

fn a_table_moves_its_entries() {
    send::<TwinMap<u64, u64>>();
    sync::<TwinMap<u64, u64>>();
    sync::<TwinMap<u64, Rc<u64>>>(); //~ E0277
}

fn a_table_shares_its_copies_with_readers() {
    send::<TwinMap<u64, Cell<u64>>>(); //~ E0277
}

fn a_set_is_as_sync_as_its_elements() {
    send::<TwinSet<u64>>();
    sync::<TwinSet<u64>>();
    sync::<TwinSet<Rc<u64>>>(); //~ E0277
}

fn a_ref_stays_on_its_thread() {
    send::<Ref<'static, u64>>(); //~ E0277
}

fn a_ref_is_not_sync() {
    sync::<Ref<'static, u64>>(); //~ E0277
}

fn an_iterator_of_refs_stays_on_its_thread() {
    send::<Refs<'static, (u64, u64), u64>>(); //~ E0277
}

fn a_set_writer_moves_its_elements() {
    send::<SetWriter<u64>>();
    send::<SetWriter<Rc<u64>>>(); //~ E0277
}

fn a_set_write_guard_moves_its_elements() {
    send::<SetWriteGuard<'static, u64>>();
    send::<SetWriteGuard<'static, Rc<u64>>>(); //~ E0277
}

fn a_map_of_duplicates_moves_its_entries() {
    send::<InertMap<u64, u64>>();
    sync::<InertMap<u64, u64>>();
    send::<InertMap<u64, Rc<u64>>>(); //~ E0277
}

fn duplicates_have_no_cells() {
    let _ = InertMap::<u64, u64>::builder().build_inert();
    let _ = InertMap::<u64, std::sync::atomic::AtomicU64>::builder().build_inert(); //~ E0277
}

fn duplicates_have_no_mutex() {
    let _ = InertMap::<u64, std::sync::Mutex<Vec<u64>>>::builder().build_inert(); //~ E0277
}

fn an_iterator_shows_its_entries() {
    send::<Iter<'static, u64, u64>>();
    send::<Iter<'static, u64, Cell<u64>>>(); //~ E0277
}

fn what_was_evicted_moves() {
    send::<Evicted<u64, u64>>();
    send::<Evicted<u64, Rc<u64>>>(); //~ E0277
}

fn main() {}
