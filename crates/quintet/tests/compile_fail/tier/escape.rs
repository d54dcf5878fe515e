// A cache goes after all that works on it, a handle after its leases.
use quintet::TierCache;
use quintet::cache::{CacheError, Handle, Reader, Departed, Lease, Scan};
use std::sync::Arc;

fn a_handle_outlives_its_cache(make: fn() -> TierCache) {
    let mut kept: Option<Handle<'_>> = None;
    {
        let cache = make();
        kept = cache.handle().ok(); //~ E0597
    }
    drop(kept);
}

fn a_reader_outlives_its_cache(make: fn() -> TierCache) {
    let mut kept: Option<Reader<'_>> = None;
    {
        let cache = make();
        kept = Some(cache.reader()); //~ E0597
    }
    drop(kept);
}

fn a_scan_outlives_its_cache(make: fn() -> TierCache) {
    let mut kept: Option<Scan<'_>> = None;
    {
        let cache = make();
        kept = Some(cache.scan()); //~ E0597
    }
    drop(kept);
}

fn a_cache_goes_while_its_handle_lives(cache: TierCache) {
    let handle = cache.handle();
    drop(cache); //~ E0505
    drop(handle);
}

fn an_owner_goes_while_its_handle_lives(cache: Arc<TierCache>) {
    let handle = cache.handle();
    drop(cache); //~ E0505
    drop(handle);
}

fn a_cache_goes_while_it_is_scanned(cache: TierCache) {
    let mut scan = cache.scan();
    drop(cache); //~ E0505
    scan.next();
}

fn a_lease_outlives_its_handle(cache: &TierCache) {
    let mut kept: Option<Lease<'_>> = None;
    {
        let handle = cache.handle().unwrap();
        kept = handle.lease("key").unwrap(); //~ E0597
    }
    drop(kept);
}

fn a_handle_goes_while_it_leases(handle: Handle<'_>) {
    let lease = handle.lease("key");
    drop(handle); //~ E0505
    drop(lease);
}

fn a_handle_writes_while_it_leases(mut handle: Handle<'_>) {
    let lease = handle.lease("key");
    handle.insert("key", "value"); //~ E0502
    drop(lease);
}

fn bytes_outlive_their_lease(handle: &Handle<'_>) {
    let mut kept: Vec<&[u8]> = Vec::new();
    {
        let lease = handle.lease("key").unwrap().unwrap();
        // SAFETY: never runs.
        kept = unsafe { lease.chunks() }; //~ E0597
    }
    drop(kept);
}

fn a_computation_uses_the_handle_that_calls_it(mut handle: Handle<'_>) {
    let compute = || Vec::new();
    handle.get_or_compute("key", None, compute);
    handle.get_or_compute("key", None, || handle.get("other").unwrap().unwrap()); //~ E0499
}

fn a_sink_changes_under_a_handle(mut cache: TierCache) {
    let handle = cache.handle();
    cache.set_sink(|_: &[Departed]| Ok(())); //~ E0502
    drop(handle);
}

fn a_sink_looks_at_what_is_gone(cache: &mut TierCache) {
    let told = std::sync::Mutex::new(Vec::<Departed>::new());
    cache.set_sink(|batch: &[Departed]| Ok(told.lock().unwrap().extend_from_slice(batch))); //~ E0373
}

fn an_evicted_entry_outlives_the_call(cache: &mut TierCache) {
    cache.set_sink(|batch: &[Departed]| {
        let _: &[Departed] = batch;
        let _: &'static [Departed] = batch; //~ lifetime may not live long enough
        Ok(())
    });
}

fn what_a_call_returns_is_its_own(cache: &TierCache) -> Result<Vec<Departed>, CacheError> {
    let mut handle = cache.handle()?;
    handle.evict_oldest(1)
}

fn main() {}
