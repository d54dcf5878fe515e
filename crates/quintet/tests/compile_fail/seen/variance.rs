// A set keeps what is put in through a shared reference: a set of long-lived records must not pass
// for one of short-lived ones, nor the other way.
use quintet::SeenSet;
use quintet::seen_set::{Handle, Iter, Offline};
use quintet::SeenPrints;
use quintet::seen_set::PrintsHandle;
use std::hash::RandomState;

type Long = &'static str;

fn a_set_is_not_shortened<'a>(set: &'a SeenSet<Long>) {
    let _: &SeenSet<Long> = set;
    let _: &SeenSet<&'a str> = set; //~ lifetime may not live long enough
}

fn a_set_is_not_lengthened<'a>(set: &'a SeenSet<&'a str>) {
    let _: &SeenSet<&'a str> = set;
    let _: &SeenSet<Long> = set; //~ lifetime may not live long enough
}

fn an_owned_set_is_not_shortened<'a>(set: SeenSet<Long>) -> SeenSet<Long> {
    let _: fn(SeenSet<Long>) -> SeenSet<Long> = |set| set;
    let _: fn(SeenSet<Long>) -> SeenSet<&'a str> = |set| set; //~ lifetime may not live long enough
    set
}

fn a_handle_is_not_shortened<'a>(handle: &'a Handle<'a, Long>) {
    let _: &Handle<'a, Long> = handle;
    let _: &Handle<'a, &'a str> = handle; //~ lifetime may not live long enough
}

fn the_set_of_a_handle_does_not_live_longer<'a>(handle: &'a Handle<'a, Long>) {
    let _: &Handle<'a, Long> = handle;
    let _: &Handle<'static, Long> = handle; //~ lifetime may not live long enough
}

fn a_handle_offline_is_not_shortened<'a>(offline: Offline<'a, 'a, Long, RandomState>) {
    let _: Offline<'a, 'a, &'a str, RandomState> = offline; //~ lifetime may not live long enough
}

fn an_iterator_is_not_shortened<'a>(iter: Iter<'a, Long, RandomState>) {
    let _: Iter<'a, &'a str, RandomState> = iter; //~ lifetime may not live long enough
}

fn an_iterator_does_not_live_longer<'a>(iter: Iter<'a, Long, RandomState>) {
    let _: Iter<'static, Long, RandomState> = iter; //~ lifetime may not live long enough
}

// The hasher is only looked at: a set may pass for one whose hasher lives less long, never for one
// whose hasher lives longer.
#[derive(Clone)]
struct Seeded<'h>(&'h RandomState);

impl std::hash::BuildHasher for Seeded<'_> {
    type Hasher = std::hash::DefaultHasher;
    fn build_hasher(&self) -> Self::Hasher {
        self.0.build_hasher()
    }
}

fn a_hasher_is_not_lengthened<'a>(set: &'a SeenSet<u64, Seeded<'a>>) {
    let _: &SeenSet<u64, Seeded<'a>> = set;
    let _: &SeenSet<u64, Seeded<'static>> = set; //~ lifetime may not live long enough
}

fn a_hasher_of_prints_is_not_lengthened<'a>(set: &'a SeenPrints<Seeded<'a>>) {
    let _: &SeenPrints<Seeded<'a>> = set;
    let _: &SeenPrints<Seeded<'static>> = set; //~ lifetime may not live long enough
}

fn a_handle_of_prints_does_not_live_longer<'a>(handle: &'a PrintsHandle<'a>) {
    let _: &PrintsHandle<'a> = handle;
    let _: &PrintsHandle<'static> = handle; //~ lifetime may not live long enough
}

// The story: a record that is gone, read as one that lives for ever.
fn a_short_lived_record_does_not_get_in() {
    let set = SeenSet::<Long>::new();
    {
        let text = String::from("gone soon");
        let short: &str = &text;
        set.handle().insert("stays");
        set.handle().insert(text.as_str()); //~ E0597
        println!("{short}");
    }
    set.iter().for_each(|(_, text)| println!("{text}"));
}

fn main() {}
