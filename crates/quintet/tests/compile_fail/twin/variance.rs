// Two copies, written while readers look: nothing that leads to them may pass for something that
// holds longer-lived or shorter-lived entries.
use quintet::twin_map::*;
use quintet::{TwinMap, TwinSet};
use std::hash::{BuildHasher, RandomState};

type Long = &'static str;
type Map<T> = Version<u64, T>;

fn a_reader<'a>(reader: &'a MapReader<u64, Long>) {
    let _: &MapReader<u64, &'a str> = reader; //~ lifetime may not live long enough
}

fn a_reader_by_its_keys<'a>(reader: &'a MapReader<Long, u64>) {
    let _: &MapReader<&'a str, u64> = reader; //~ lifetime may not live long enough
}

fn a_shared_reader<'a>(reader: &'a SharedReader<Map<Long>>) {
    let _: &SharedReader<Map<&'a str>> = reader; //~ lifetime may not live long enough
}

fn a_guard_is_not_lengthened<'a>(guard: &'a ReadGuard<'a, Map<&'a str>>) {
    let _: &ReadGuard<'a, Map<Long>> = guard; //~ lifetime may not live long enough
}

fn the_reader_of_a_guard_does_not_live_longer<'a>(guard: &'a ReadGuard<'a, Map<Long>>) {
    let _: &ReadGuard<'static, Map<Long>> = guard; //~ lifetime may not live long enough
}

fn an_owned_guard_is_not_lengthened<'a>(guard: &'a OwnedGuard<Map<&'a str>>) {
    let _: &OwnedGuard<Map<Long>> = guard; //~ lifetime may not live long enough
}

fn an_owned_guard_makes_no_shorter_copies<'a>(guard: &'a OwnedGuard<Map<Long>>) {
    let _: &OwnedGuard<Map<&'a str>> = guard; //~ lifetime may not live long enough
}

fn a_writer<'a>(writer: &'a Writer<u64, Long>) {
    let _: &Writer<u64, &'a str> = writer; //~ lifetime may not live long enough
}

fn a_writer_by_its_keys<'a>(writer: &'a Writer<Long, u64>) {
    let _: &Writer<&'a str, u64> = writer; //~ lifetime may not live long enough
}

#[derive(Clone)]
struct Seeded<'h>(&'h RandomState);

impl BuildHasher for Seeded<'_> {
    type Hasher = std::hash::DefaultHasher;
    fn build_hasher(&self) -> Self::Hasher {
        self.0.build_hasher()
    }
}

fn a_writer_by_its_hasher<'a>(writer: &'a Writer<u64, u64, Seeded<'static>>) {
    let _: &Writer<u64, u64, Seeded<'a>> = writer; //~ lifetime may not live long enough
}

fn a_write_guard<'a>(guard: WriteGuard<'a, u64, Long>) {
    let _: WriteGuard<'a, u64, &'a str> = guard; //~ lifetime may not live long enough
}

fn a_write_guard_does_not_live_longer<'a>(guard: WriteGuard<'a, u64, Long>) {
    let _: WriteGuard<'static, u64, Long> = guard; //~ lifetime may not live long enough
}

fn a_guard_to_come<'a>(future: AcquireMap<'a, u64, Long>) {
    let _: AcquireMap<'a, u64, &'a str> = future; //~ lifetime may not live long enough
}

fn an_entry<'a>(entry: Entry<'a, 'a, u64, Long, RandomState>) {
    let _: Entry<'a, 'a, u64, &'a str, RandomState> = entry; //~ lifetime may not live long enough
}

fn an_occupied_entry<'a>(entry: Occupied<'a, 'a, u64, Long, RandomState>) {
    let _: Occupied<'a, 'a, u64, &'a str, RandomState> = entry; //~ lifetime may not live long enough
}

fn a_vacant_entry<'a>(entry: Vacant<'a, 'a, u64, Long, RandomState>) {
    let _: Vacant<'a, 'a, u64, &'a str, RandomState> = entry; //~ lifetime may not live long enough
}

fn a_table<'a>(map: &'a TwinMap<u64, Long>) {
    let _: &TwinMap<u64, &'a str> = map; //~ lifetime may not live long enough
}

fn a_table_by_its_keys<'a>(map: &'a TwinMap<Long, u64>) {
    let _: &TwinMap<&'a str, u64> = map; //~ lifetime may not live long enough
}

fn a_table_by_its_hasher<'a>(map: &'a TwinMap<u64, u64, Seeded<'static>>) {
    let _: &TwinMap<u64, u64, Seeded<'a>> = map; //~ lifetime may not live long enough
}

fn a_set<'a>(set: &'a TwinSet<Long>) {
    let _: &TwinSet<&'a str> = set; //~ lifetime may not live long enough
}

fn a_ref_is_not_lengthened<'a>(value: Ref<'a, &'a str>) {
    let _: Ref<'a, Long> = value; //~ lifetime may not live long enough
}

fn a_ref_does_not_live_longer<'a>(value: Ref<'a, Long>) {
    let _: Ref<'static, Long> = value; //~ lifetime may not live long enough
}

fn refs_do_not_live_longer<'a>(values: Refs<'a, (u64, Long), Long>) {
    let _: Refs<'static, (u64, Long), Long> = values; //~ lifetime may not live long enough
}

fn a_set_writer<'a>(writer: &'a SetWriter<Long>) {
    let _: &SetWriter<&'a str> = writer; //~ lifetime may not live long enough
}

fn a_set_write_guard<'a>(guard: SetWriteGuard<'a, Long>) {
    let _: SetWriteGuard<'a, &'a str> = guard; //~ lifetime may not live long enough
}

fn a_map_of_duplicates<'a>(map: &'a InertMap<Long, Long>) {
    let _: &InertMap<Long, &'a str> = map; //~ lifetime may not live long enough
}

// One version alone is a plain collection, and what is taken out of it is the taker's: these are
// covariant, and no more.
fn a_map_may_be_shortened<'a>(map: &'a Map<Long>) -> &'a Map<&'a str> {
    map
}

fn a_map_is_not_lengthened<'a>(map: &'a Map<&'a str>) {
    let _: &Map<Long> = map; //~ lifetime may not live long enough
}

fn a_set_is_not_lengthened<'a>(set: &'a SetVersion<&'a str>) {
    let _: &SetVersion<Long> = set; //~ lifetime may not live long enough
}

fn entries_are_not_lengthened<'a>(iter: Iter<'a, u64, &'a str>) {
    let _: Iter<'a, u64, Long> = iter; //~ lifetime may not live long enough
}

fn what_was_evicted_is_not_lengthened<'a>(evicted: Evicted<u64, &'a str>) {
    let _: Evicted<u64, Long> = evicted; //~ lifetime may not live long enough
}

fn a_builder_is_not_lengthened<'a>(builder: TwinMapBuilder<u64, u64, Seeded<'a>>) {
    let _: TwinMapBuilder<u64, u64, Seeded<'static>> = builder; //~ lifetime may not live long enough
}

// The engine itself, under a structure of the user's.
struct Text<'t>(&'t str);

impl<'t> Absorb<&'t str> for Text<'t> {
    type Old = &'t str;
    fn absorb_first(&mut self, op: &mut &'t str) -> Option<&'t str> {
        Some(std::mem::replace(&mut self.0, op))
    }
    fn absorb_second(&mut self, op: &'t str, _: &mut Vec<&'t str>) -> Result<(), Differs> {
        self.0 = op;
        Ok(())
    }
    fn rebuild(from: &Self) -> Self {
        Self(from.0)
    }
}

fn an_engine<'a>(twin: &'a Twin<Text<'static>, Long>) {
    let _: &Twin<Text<'a>, &'a str> = twin; //~ lifetime may not live long enough
}

fn a_guard_of_an_engine<'a>(write: Write<'a, Text<'static>, Long>) {
    let _: Write<'a, Text<'a>, &'a str> = write; //~ lifetime may not live long enough
}

fn a_guard_to_come_of_an_engine<'a>(future: Acquire<'a, Text<'static>, Long>) {
    let _: Acquire<'a, Text<'a>, &'a str> = future; //~ lifetime may not live long enough
}

fn main() {}
