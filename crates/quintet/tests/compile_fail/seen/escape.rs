// What a set shows is borrowed from it, and goes with it; what a handle shows is the set's.
use quintet::seen_set::{Handle, Iter, Offline, PrintsHandle};
use quintet::{SeenPrints, SeenSet};

fn a_record_outlives_its_set() {
    let mut kept: Option<&String> = None;
    {
        let set = SeenSet::<String>::new();
        let id = set.handle().insert("x".to_owned()).id();
        kept = set.get(id); //~ E0597
    }
    println!("{kept:?}");
}

fn a_record_moves_with_its_set() {
    let set = SeenSet::<String>::new();
    let id = set.handle().insert("x".to_owned()).id();
    let kept = set.get(id);
    drop(set); //~ E0505
    println!("{kept:?}");
}

fn a_handle_outlives_its_set() {
    let mut kept: Option<Handle<'_, String>> = None;
    {
        let set = SeenSet::<String>::new();
        kept = Some(set.handle()); //~ E0597
    }
    drop(kept);
}

fn a_record_of_a_handle_outlives_it() {
    let set = SeenSet::<String>::new();
    let id = set.insert("x").id();
    let mut kept: Option<&String> = None;
    {
        let handle = set.handle();
        kept = handle.get(id); //~ E0597
    }
    println!("{kept:?}");
}

fn an_iterator_outlives_its_set() {
    let mut kept: Option<Box<dyn Iterator<Item = (quintet::seen_set::RecordId, &u64)>>> = None;
    {
        let set = SeenSet::<u64>::new();
        kept = Some(Box::new(set.iter())); //~ E0597
    }
    drop(kept);
}

fn a_handle_works_while_it_is_offline() {
    let set = SeenSet::<u64>::new();
    let mut handle = set.handle();
    let offline: Offline<'_, '_, u64, _> = handle.offline();
    handle.insert(1); //~ E0502
    drop(offline);
}

fn a_record_of_an_owned_handle_outlives_it() {
    let set = std::sync::Arc::new(SeenSet::<String>::new());
    let id = set.insert("x").id();
    let handle = set.owned_handle();
    let kept = handle.get(id);
    drop(set);
    drop(handle); //~ E0505
    println!("{kept:?}");
}

fn a_handle_of_prints_outlives_its_set() {
    let mut kept: Option<PrintsHandle<'_>> = None;
    {
        let set = SeenPrints::new();
        kept = Some(set.handle()); //~ E0597
    }
    drop(kept);
}

fn a_set_goes_while_its_iterator_lives<'a>() {
    let set = SeenSet::<u64>::new();
    let iter: Iter<'_, u64, _> = set.iter();
    drop(set); //~ E0505
    drop(iter);
}

// A record's `Drop` runs with the set's: what it borrows must live until then.
#[derive(PartialEq, Eq, Hash)]
struct Loud<'t>(&'t str);

impl Drop for Loud<'_> {
    fn drop(&mut self) {
        println!("{}", self.0);
    }
}

fn a_record_looks_at_what_is_gone() {
    let set;
    let text = String::from("gone first");
    set = SeenSet::<Loud<'_>>::new();
    set.handle().insert(Loud(&text)); //~ E0597
}

fn main() {}
