// A set keeps what is put in through a shared reference: a set of long-lived items must not pass
// for one of short-lived ones, nor the other way.
use quintet::ItemSet;
use quintet::item_set::{
    ArcRef, Handle, Item, ItemSetBuilder, Iter, Keyed, MappedRef, Pin, QuietHandle, Ref, Refs, Removed,
};
use std::hash::RandomState;
use std::sync::Arc;

struct Word<'t>(&'t str);

impl Keyed for Word<'_> {
    type Key = str;
    fn key(&self) -> &str {
        self.0
    }
}

type Long = Box<Word<'static>>;
type Short<'a> = Box<Word<'a>>;

fn a_set_is_not_shortened<'a>(set: &'a ItemSet<Long>) {
    let _: &ItemSet<Long> = set;
    let _: &ItemSet<Short<'a>> = set; //~ lifetime may not live long enough
}

fn a_set_is_not_lengthened<'a>(set: &'a ItemSet<Short<'a>>) {
    let _: &ItemSet<Short<'a>> = set;
    let _: &ItemSet<Long> = set; //~ lifetime may not live long enough
}

fn a_set_of_shared_items_is_not_shortened<'a>(set: &'a ItemSet<Arc<Word<'static>>>) {
    let _: &ItemSet<Arc<Word<'static>>> = set;
    let _: &ItemSet<Arc<Word<'a>>> = set; //~ lifetime may not live long enough
}

fn an_owned_set_is_not_shortened<'a>(set: ItemSet<Long>) {
    let _: ItemSet<Short<'a>> = set; //~ lifetime may not live long enough
}

fn a_handle_is_not_shortened<'a>(handle: &'a QuietHandle<'a, Long>) {
    let _: &QuietHandle<'a, Long> = handle;
    let _: &QuietHandle<'a, Short<'a>> = handle; //~ lifetime may not live long enough
}

fn the_set_of_a_handle_does_not_live_longer<'a>(handle: &'a QuietHandle<'a, Long>) {
    let _: &QuietHandle<'a, Long> = handle;
    let _: &QuietHandle<'static, Long> = handle; //~ lifetime may not live long enough
}

fn an_ordinary_handle_is_not_shortened<'a>(handle: &'a Handle<'a, Long>) {
    let _: &Handle<'a, Long> = handle;
    let _: &Handle<'a, Short<'a>> = handle; //~ lifetime may not live long enough
}

fn the_set_of_an_ordinary_handle_does_not_live_longer<'a>(handle: &'a Handle<'a, Long>) {
    let _: &Handle<'a, Long> = handle;
    let _: &Handle<'static, Long> = handle; //~ lifetime may not live long enough
}

fn what_is_lent_does_not_live_longer<'a>(lent: Ref<'a, Long>) {
    let _: Ref<'static, Long> = lent; //~ lifetime may not live long enough
}

fn a_part_does_not_live_longer<'a>(part: MappedRef<'a, str>) {
    let _: MappedRef<'static, str> = part; //~ lifetime may not live long enough
}

fn a_walk_does_not_live_longer<'a>(walk: Refs<'a, Long>) {
    let _: Refs<'static, Long> = walk; //~ lifetime may not live long enough
}

fn a_guard_is_not_shortened<'a>(pin: &'a Pin<'a, Long>) {
    let _: &Pin<'a, Long> = pin;
    let _: &Pin<'a, Short<'a>> = pin; //~ lifetime may not live long enough
}

fn the_set_of_a_guard_does_not_live_longer<'a>(pin: &'a Pin<'a, Long>) {
    let _: &Pin<'a, Long> = pin;
    let _: &Pin<'static, Long> = pin; //~ lifetime may not live long enough
}

fn an_iterator_does_not_live_longer<'a>(iter: Iter<'a, Long>) {
    let _: Iter<'static, Long> = iter; //~ lifetime may not live long enough
}

fn what_was_removed_is_not_shortened<'a>(removed: Removed<'a, Long>) {
    let _: Removed<'a, Short<'a>> = removed; //~ lifetime may not live long enough
}

fn what_was_removed_does_not_live_longer<'a>(removed: Removed<'a, Long>) {
    let _: Removed<'static, Long> = removed; //~ lifetime may not live long enough
}

// A shared item is only shown: it may pass for one that lives less long, never for one that lives
// longer.
fn a_shown_item_does_not_live_longer<'a>(item: ArcRef<'a, Word<'static>>) {
    let _: ArcRef<'static, Word<'static>> = item; //~ lifetime may not live long enough
}

fn a_shown_item_is_not_lengthened<'a>(item: ArcRef<'a, Word<'a>>) {
    let _: ArcRef<'a, Word<'static>> = item; //~ lifetime may not live long enough
}

fn what_was_set_up_is_not_lengthened<'a>(builder: ItemSetBuilder<Short<'a>>) {
    let _: ItemSetBuilder<Long> = builder; //~ lifetime may not live long enough
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

fn a_hasher_is_not_lengthened<'a>(set: &'a ItemSet<Long, Seeded<'a>>) {
    let _: &ItemSet<Long, Seeded<'a>> = set;
    let _: &ItemSet<Long, Seeded<'static>> = set; //~ lifetime may not live long enough
}

fn main() {}
