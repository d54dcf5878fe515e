// What a guard shows goes with the guard, and the guard with its handle.
use quintet::twin_map::{self, Builder, InertMap, Reader};

fn a_value_outlives_its_guard() {
    let (_writer, reader) = twin_map::new::<u64, String>();
    let mut kept: Option<&String> = None;
    {
        let guard = reader.guard();
        kept = guard.get(&1); //~ E0597
    }
    println!("{kept:?}");
}

fn a_value_outlives_its_shared_guard() {
    let (_writer, reader) = twin_map::new::<u64, String>();
    let shared = reader.shared();
    let mut kept: Option<&String> = None;
    {
        let guard = shared.guard();
        kept = guard.get(&1); //~ E0597
    }
    println!("{kept:?}");
}

fn a_value_outlives_its_owned_guard() {
    let (_writer, reader) = twin_map::new::<u64, String>();
    let mut kept: Option<&String> = None;
    {
        let guard = reader.owned_guard();
        kept = guard.get(&1); //~ E0597
    }
    println!("{kept:?}");
}

fn an_iterator_outlives_its_guard() {
    let (_writer, reader) = twin_map::new::<u64, String>();
    let mut kept: Option<twin_map::Iter<'_, u64, String>> = None;
    {
        let guard = reader.guard();
        kept = Some(guard.iter()); //~ E0597
    }
    drop(kept);
}

fn a_guard_outlives_its_reader() {
    let (_writer, reader) = twin_map::new::<u64, String>();
    let guard = reader.guard();
    drop(reader); //~ E0505
    println!("{}", guard.len());
}

fn a_shared_guard_outlives_its_reader() {
    let (_writer, reader) = twin_map::new::<u64, String>();
    let shared = reader.shared();
    let guard = shared.guard();
    drop(shared); //~ E0505
    println!("{}", guard.len());
}

fn a_writer_has_two_guards() {
    let (mut writer, _reader) = twin_map::new::<u64, String>();
    let first = writer.guard();
    let _second = writer.guard(); //~ E0499
    drop(first);
}

fn a_write_guard_outlives_its_writer() {
    let (mut writer, _reader) = twin_map::new::<u64, String>();
    let guard = writer.guard();
    drop(writer); //~ E0505
    drop(guard);
}

fn a_guard_to_come_outlives_its_writer() {
    let (mut writer, _reader) = twin_map::new::<u64, String>();
    let future = writer.guard_async();
    drop(writer); //~ E0505
    drop(future);
}

fn what_the_writer_reads_is_not_changed_under_it() {
    let (mut writer, _reader) = twin_map::new::<u64, String>();
    let mut guard = writer.guard();
    let value = guard.get(&1);
    guard.clear(); //~ E0502
    println!("{value:?}");
}

fn what_the_writer_reads_is_not_published_under_it() {
    let (mut writer, _reader) = twin_map::new::<u64, String>();
    let guard = writer.guard();
    let value = guard.get(&1);
    guard.publish(); //~ E0505
    println!("{value:?}");
}

fn the_value_of_an_entry_outlives_the_borrow() {
    let (mut writer, _reader) = twin_map::new::<u64, String>();
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
    let (mut writer, _reader) = Builder::new().build_inert::<u64, String>();
    let mut guard = writer.guard();
    let old = guard.insert(1, String::new());
    guard.clear(); //~ E0499
    println!("{old:?}");
}

fn a_shared_value_outlives_its_guard() {
    let (_writer, reader): (_, Reader<InertMap<u64, String>>) = Builder::new().build_inert();
    let mut kept: Option<&String> = None;
    {
        let guard = reader.guard();
        kept = guard.get(&1); //~ E0597
    }
    println!("{kept:?}");
}

fn the_writer_does_not_leave_its_front() {
    let (writer, _reader) = twin_map::new::<u64, String>();
    let front = writer.into_front();
    let mut kept: Option<&mut twin_map::Writer<u64, String>> = None;
    front.with_writer(|writer| kept = Some(writer)); //~ E0521
    drop(kept);
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
    (writer, _reader) = twin_map::new::<u64, Loud<'_>>();
    writer.guard().insert(0, Loud("stays"));
    writer.guard().insert(1, Loud(&text)); //~ E0597
}

fn main() {}
