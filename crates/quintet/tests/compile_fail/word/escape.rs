// A map goes after all that works on it.
use quintet::WordMap;
use quintet::word_map::{Drain, Handle, Iter, Pin};

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
