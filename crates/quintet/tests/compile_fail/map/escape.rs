// What an access lends goes with it, or at its next quiet point; a map goes after all of them. What
// was taken does not need it.
use quintet::hash_map::{Handle, Pin, Ref, Refs, Retired, SetPin};
use quintet::{CopyMap, HashMap, HashSet, copy_map};

type Map = HashMap<u64, String>;

fn a_value_outlives_its_guard(map: &Map) {
    let mut kept: Option<&String> = None;
    {
        let pin = map.pin();
        kept = pin.get(&1); //~ E0597
    }
    println!("{}", kept.is_some());
}

fn a_value_passes_a_quiet_point(map: &Map) {
    let mut handle = map.quiet_handle();
    let kept = handle.get(&1);
    handle.quiescent(); //~ E0502
    println!("{}", kept.is_some());
}

fn a_guard_outlives_its_map() {
    let mut kept: Option<Pin<'_, u64, String>> = None;
    {
        let map = Map::new();
        kept = Some(map.pin()); //~ E0597
    }
    drop(kept);
}

fn a_guard_of_a_set_outlives_it() {
    let mut kept: Option<SetPin<'_, u64>> = None;
    {
        let set = HashSet::<u64>::new();
        kept = Some(set.pin()); //~ E0597
    }
    drop(kept);
}

fn a_handle_outlives_its_map() {
    let mut kept: Option<Handle<'_, u64, String>> = None;
    {
        let map = Map::new();
        kept = Some(map.handle()); //~ E0597
    }
    drop(kept);
}

fn what_is_lent_outlives_its_map() {
    let mut kept: Option<Ref<'_, u64, String>> = None;
    {
        let map = Map::new();
        kept = map.get(&1); //~ E0597
    }
    drop(kept);
}

fn a_walk_outlives_its_map() {
    let mut kept: Option<Refs<'_, u64, String>> = None;
    {
        let map = Map::new();
        kept = Some(map.iter()); //~ E0597
    }
    drop(kept);
}

fn what_was_taken_outlives_what_its_value_borrows() {
    let mut kept: Option<Retired<u64, &String>> = None;
    {
        let text = String::new();
        let map = HashMap::<u64, &String>::new();
        map.insert(1, &text); //~ E0597
        kept = map.take(&1);
    }
    drop(kept);
}

fn a_guard_of_copies_outlives_its_map() {
    let mut kept: Option<copy_map::Pin<'_, u64, u64>> = None;
    {
        let map = CopyMap::<u64, u64>::new();
        kept = Some(map.pin()); //~ E0597
    }
    drop(kept);
}

fn a_walk_of_copies_outlives_its_map() {
    let mut kept: Option<copy_map::Iter<'_, u64, u64>> = None;
    {
        let map = CopyMap::<u64, u64>::new();
        kept = Some(map.iter()); //~ E0597
    }
    drop(kept);
}

fn main() {
    let map = Map::new();
    a_value_outlives_its_guard(&map);
    a_value_passes_a_quiet_point(&map);
    a_guard_outlives_its_map();
    a_guard_of_a_set_outlives_it();
    a_handle_outlives_its_map();
    what_is_lent_outlives_its_map();
    a_walk_outlives_its_map();
    what_was_taken_outlives_what_its_value_borrows();
    a_guard_of_copies_outlives_its_map();
    a_walk_of_copies_outlives_its_map();
}
