// A cache stores bytes, no user's values: all that varies is how long it is lent, and that gets
// shorter only.
use quintet::TierCache;
use quintet::cache::{Handle, Reader, Lease, Scan};

fn a_handle_is_lent_for_less<'a>(handle: Handle<'static>) -> Handle<'a> {
    handle
}

fn a_handle_is_not_lent_for_longer<'a>(handle: &'a Handle<'a>) {
    let _: &Handle<'a> = handle;
    let _: &Handle<'static> = handle; //~ lifetime may not live long enough
}

fn the_cache_of_a_handle_is_not_lent_for_longer<'a>(handle: &Handle<'a>) {
    let _: &'a TierCache = handle.cache();
    let _: &'static TierCache = handle.cache(); //~ lifetime may not live long enough
}

// Whoever has a handle exclusively may put another in its place.
fn a_handle_lent_exclusively_is_not_shortened<'a>(handle: &'a mut Handle<'static>) {
    let _: &mut Handle<'static> = handle;
    let _: &mut Handle<'a> = handle; //~ lifetime may not live long enough
}

fn a_reader_is_lent_for_less<'a>(reader: Reader<'static>) -> Reader<'a> {
    reader
}

fn a_reader_is_not_lent_for_longer<'a>(reader: Reader<'a>) {
    let _: Reader<'static> = reader; //~ lifetime may not live long enough
}

fn a_lease_is_held_for_less<'a>(lease: Lease<'static>) -> Lease<'a> {
    lease
}

fn a_lease_is_not_held_for_longer<'a>(lease: Lease<'a>) {
    let _: Lease<'static> = lease; //~ lifetime may not live long enough
}

fn a_scan_is_lent_for_less<'a>(scan: Scan<'static>) -> Scan<'a> {
    scan
}

fn a_scan_is_not_lent_for_longer<'a>(scan: Scan<'a>) {
    let _: Scan<'static> = scan; //~ lifetime may not live long enough
}

fn main() {}
