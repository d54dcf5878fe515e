// What a guard shows goes with the guard, and the guard with its handle.
use quintet::TwinMap;
use quintet::twin_map::{self, InertMap, ReadGuard, Reader, Ref};

fn a_value_outlives_its_guard() {
    let (_writer, reader) = TwinMap::<u64, String>::new().split();
    let mut kept: Option<&String> = None;
    {
        let guard = reader.pin();
        kept = guard.get(&1); //~ E0597
    }
    println!("{kept:?}");
}

fn a_value_outlives_its_shared_guard() {
    let (_writer, reader) = TwinMap::<u64, String>::new().split();
    let shared = reader.shared();
    let mut kept: Option<&String> = None;
    {
        let guard = shared.pin();
        kept = guard.get(&1); //~ E0597
    }
    println!("{kept:?}");
}

fn a_value_outlives_its_owned_guard() {
    let (_writer, reader) = TwinMap::<u64, String>::new().split();
    let mut kept: Option<&String> = None;
    {
        let guard = reader.owned_pin();
        kept = guard.get(&1); //~ E0597
    }
    println!("{kept:?}");
}

fn an_iterator_outlives_its_guard() {
    let (_writer, reader) = TwinMap::<u64, String>::new().split();
    let mut kept: Option<twin_map::Iter<'_, u64, String>> = None;
    {
        let guard = reader.pin();
        kept = Some(guard.iter()); //~ E0597
    }
    drop(kept);
}

fn a_guard_outlives_its_reader() {
    let (_writer, reader) = TwinMap::<u64, String>::new().split();
    let guard = reader.pin();
    drop(reader); //~ E0505
    println!("{}", guard.len());
}

fn a_shared_guard_outlives_its_reader() {
    let (_writer, reader) = TwinMap::<u64, String>::new().split();
    let shared = reader.shared();
    let guard = shared.pin();
    drop(shared); //~ E0505
    println!("{}", guard.len());
}

fn a_writer_has_two_guards() {
    let (mut writer, _reader) = TwinMap::<u64, String>::new().split();
    let first = writer.guard();
    let _second = writer.guard(); //~ E0499
    drop(first);
}

fn a_write_guard_outlives_its_writer() {
    let (mut writer, _reader) = TwinMap::<u64, String>::new().split();
    let guard = writer.guard();
    drop(writer); //~ E0505
    drop(guard);
}

fn a_guard_to_come_outlives_its_writer() {
    let (mut writer, _reader) = TwinMap::<u64, String>::new().split();
    let future = writer.guard_async();
    drop(writer); //~ E0505
    drop(future);
}

fn what_the_writer_reads_is_not_changed_under_it() {
    let (mut writer, _reader) = TwinMap::<u64, String>::new().split();
    let mut guard = writer.guard();
    let value = guard.get(&1);
    guard.clear(); //~ E0502
    println!("{value:?}");
}

fn what_the_writer_reads_is_not_published_under_it() {
    let (mut writer, _reader) = TwinMap::<u64, String>::new().split();
    let guard = writer.guard();
    let value = guard.get(&1);
    guard.publish(); //~ E0505
    println!("{value:?}");
}

fn the_value_of_an_entry_outlives_the_borrow() {
    let (mut writer, _reader) = TwinMap::<u64, String>::new().split();
    let mut guard = writer.guard();
    let value = guard.entry(1).or_insert(String::new());
    guard.clear(); //~ E0499
    println!("{value}");
}

fn a_set_guard_outlives_its_writer() {
    let (mut writer, _reader) = quintet::TwinSet::<u64>::new().split();
    let guard = writer.guard();
    drop(writer); //~ E0505
    drop(guard);
}

fn what_was_replaced_is_not_kept_beyond_the_change() {
    let (mut writer, _reader) = InertMap::<u64, String>::builder().build_inert();
    let mut guard = writer.guard();
    let old = guard.insert(1, String::new());
    guard.clear(); //~ E0499
    println!("{old:?}");
}

fn a_shared_value_outlives_its_guard() {
    let (_writer, reader): (_, Reader<InertMap<u64, String>>) = InertMap::builder().build_inert();
    let mut kept: Option<&String> = None;
    {
        let guard = reader.pin();
        kept = guard.get(&1); //~ E0597
    }
    println!("{kept:?}");
}

fn a_batch_does_not_leave_its_table() {
    let map = TwinMap::<u64, String>::new();
    let mut kept: Option<&mut twin_map::WriteGuard<'_, u64, String>> = None;
    map.batch(|write| kept = Some(write)); //~ E0521
    drop(kept);
}

fn a_ref_outlives_its_table() {
    let map = TwinMap::<u64, String>::new();
    let value = map.get(&1);
    drop(map); //~ E0505
    println!("{value:?}");
}

fn a_ref_outlives_its_handle() {
    let reader = TwinMap::<u64, String>::new().handle();
    let value = reader.get(&1);
    drop(reader); //~ E0505
    println!("{value:?}");
}

fn a_guard_outlives_its_table() {
    let map = TwinMap::<u64, String>::new();
    let guard = map.pin();
    drop(map); //~ E0505
    println!("{}", guard.len());
}

fn a_table_is_split_while_it_is_read() {
    let map = TwinMap::<u64, String>::new();
    let entries = map.iter();
    let _ = map.split(); //~ E0505
    drop(entries);
}

fn a_value_outlives_its_ref() {
    let map = TwinMap::<u64, String>::new();
    let mut kept: Option<&String> = None;
    {
        let value = map.get(&1).unwrap();
        kept = Some(&value); //~ E0597
    }
    println!("{kept:?}");
}

fn a_part_escapes_its_projection() {
    let map = TwinMap::<u64, String>::new();
    let mut kept: Option<&String> = None;
    let _part: Ref<'_, String> = ReadGuard::map(map.pin(), |version| {
        kept = version.get(&1); //~ E0521
        &version[&1]
    });
    println!("{kept:?}");
}

// The last reader drops both copies: what their entries borrow must live until then.
#[derive(Clone)]
struct Loud<'t>(&'t str);

impl Drop for Loud<'_> {
    fn drop(&mut self) {
        println!("{}", self.0);
    }
}

fn an_entry_looks_at_what_is_gone() {
    let (mut writer, _reader);
    let text = String::from("gone first");
    (writer, _reader) = TwinMap::<u64, Loud<'_>>::new().split();
    writer.guard().insert(0, Loud("stays"));
    writer.guard().insert(1, Loud(&text)); //~ E0597
}

fn main() {}
