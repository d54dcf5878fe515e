// A map goes after all that works on it.
use quintet::word_map::{Drain, Handle, Iter, Keys, Pin};
use quintet::{Fallible, WordMap};

type Map = WordMap<u64, u64>;

fn a_handle_outlives_its_map() {
    let mut kept: Option<Handle<'_, u64, u64>> = None;
    {
        let map = Map::new();
        kept = Some(map.handle()); //~ E0597
    }
    drop(kept);
}

fn a_guard_outlives_its_map() {
    let mut kept: Option<Pin<'_, u64, u64>> = None;
    {
        let map = Map::new();
        kept = Some(map.pin()); //~ E0597
    }
    drop(kept);
}

fn an_iterator_outlives_its_handle(map: &Map) {
    let mut kept: Option<Iter<'_, u64, u64>> = None;
    {
        let handle = map.handle();
        kept = Some(handle.iter()); //~ E0597
    }
    drop(kept);
}

fn an_iterator_outlives_its_guard(map: &Map) {
    let mut kept: Option<Iter<'_, u64, u64>> = None;
    kept = Some(map.pin().iter()); //~ E0716
    drop(kept);
}

fn an_iterator_outlives_its_map() {
    let mut kept: Option<Iter<'_, u64, u64>> = None;
    {
        let map = Map::new();
        kept = Some(map.iter()); //~ E0597
    }
    drop(kept);
}

// The handle may be the last owner of its map, whatever its own lifetime says.
fn an_iterator_outlives_its_owned_handle(handle: Handle<'static, u64, u64>) {
    let kept: Iter<'_, u64, u64> = handle.iter();
    drop(handle); //~ E0505
    drop(kept);
}

fn a_map_is_lent_for_longer_than_its_owned_handle(handle: &Handle<'static, u64, u64>) {
    let _: &Map = handle.map();
    let _: &'static Map = handle.map(); //~ lifetime may not live long enough
}

fn the_keys_outlive_their_map() {
    let mut kept: Option<Keys<'_, u64, u64>> = None;
    {
        let map = Map::new();
        kept = Some(map.keys()); //~ E0597
    }
    drop(kept);
}

fn a_fallible_form_outlives_its_map() {
    let mut kept: Option<Fallible<'_, Map>> = None;
    {
        let map = Map::new();
        kept = Some(map.fallible()); //~ E0597
    }
    drop(kept);
}

fn a_drain_outlives_its_handle(map: &Map) {
    let mut kept: Option<Drain<'_, u64, u64>> = None;
    {
        let handle = map.handle();
        kept = Some(handle.drain()); //~ E0597
    }
    drop(kept);
}

fn a_map_goes_while_its_handle_lives() {
    let map = Map::new();
    let handle = map.handle();
    drop(map); //~ E0505
    drop(handle);
}

fn a_word_lives_less_than_its_map<'a>(_number: &'a u64) {
    let _ = WordMap::<u64, &'static u64>::new();
    let _ = WordMap::<u64, &'a u64>::new(); //~ lifetime may not live long enough
}

fn main() {}
