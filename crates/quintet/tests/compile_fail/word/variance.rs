// A map keeps what is put in through a shared reference: types of words vary too, where one
// function is good for more than another.
use quintet::WordMap;
use quintet::word_map::{Drain, Handle, IntoIter, Iter, Keys, Pin, Values, WordMapBuilder};

type Any = &'static for<'t> fn(&'t str);
type One = &'static fn(&'static str);

fn a_map_of_keys_is_not_narrowed<'a>(map: &'a WordMap<Any, u64>) {
    let _: &WordMap<Any, u64> = map;
    let _: &WordMap<One, u64> = map; //~ E0308
}

fn a_map_of_values_is_not_narrowed<'a>(map: &'a WordMap<u64, Any>) {
    let _: &WordMap<u64, Any> = map;
    let _: &WordMap<u64, One> = map; //~ E0308
}

fn a_map_is_not_widened<'a>(map: &'a WordMap<u64, One>) {
    let _: &WordMap<u64, One> = map;
    let _: &WordMap<u64, Any> = map; //~ E0308
}

fn a_handle_is_not_narrowed<'a>(handle: &'a Handle<'a, u64, Any>) {
    let _: &Handle<'a, u64, Any> = handle;
    let _: &Handle<'a, u64, One> = handle; //~ E0308
}

fn a_handle_does_not_live_longer<'a>(handle: &'a Handle<'a, u64, u64>) {
    let _: &Handle<'a, u64, u64> = handle;
    let _: &Handle<'static, u64, u64> = handle; //~ lifetime may not live long enough
}

fn a_guard_is_not_narrowed<'a>(pin: &'a Pin<'a, u64, Any>) {
    let _: &Pin<'a, u64, Any> = pin;
    let _: &Pin<'a, u64, One> = pin; //~ E0308
}

fn a_guard_does_not_live_longer<'a>(pin: &'a Pin<'a, u64, u64>) {
    let _: &Pin<'a, u64, u64> = pin;
    let _: &Pin<'static, u64, u64> = pin; //~ lifetime may not live long enough
}

// An iterator only shows: it may pass for one of narrower functions, never for one of wider ones.
fn an_iterator_is_not_widened<'a>(iter: Iter<'a, u64, One>) {
    let _: Iter<'a, u64, Any> = iter; //~ E0308
}

fn an_iterator_does_not_live_longer<'a>(iter: Iter<'a, u64, u64>) {
    let _: Iter<'static, u64, u64> = iter; //~ lifetime may not live long enough
}

fn the_keys_do_not_live_longer<'a>(keys: Keys<'a, u64, u64>) {
    let _: Keys<'static, u64, u64> = keys; //~ lifetime may not live long enough
}

fn the_values_do_not_live_longer<'a>(values: Values<'a, u64, u64>) {
    let _: Values<'static, u64, u64> = values; //~ lifetime may not live long enough
}

fn a_builder_is_not_narrowed<'a>(builder: &'a WordMapBuilder<u64, Any>) {
    let _: &WordMapBuilder<u64, Any> = builder;
    let _: &WordMapBuilder<u64, One> = builder; //~ E0308
}

fn an_iterator_of_all_is_not_narrowed(all: IntoIter<u64, Any>) {
    let _: IntoIter<u64, One> = all; //~ E0308
}

fn a_drain_is_not_narrowed<'a>(drain: Drain<'a, u64, Any>) {
    let _: Drain<'a, u64, One> = drain; //~ E0308
}

fn a_drain_does_not_live_longer<'a>(drain: Drain<'a, u64, u64>) {
    let _: Drain<'static, u64, u64> = drain; //~ lifetime may not live long enough
}

fn main() {}
