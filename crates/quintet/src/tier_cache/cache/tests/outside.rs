//! The operations of the cache itself, and of handles that own their share of it.

use super::world::{advance, small};
use crate::sync::Arc;
use crate::tier_cache::cache::*;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

#[test]
fn the_cache_itself_does_everything() {
    let cache = small().create_sealed().unwrap();
    assert!(!cache.insert("k", "1").unwrap().replaced);
    assert!(cache.insert("k", "2").unwrap().replaced);
    assert_eq!(cache.get("k").unwrap().as_deref(), Some(&b"2"[..]));
    assert!(cache.contains_key("k").unwrap() && !cache.contains_key("j").unwrap());
    assert!(!cache.insert_new("k", "3", None).unwrap());
    let (_, version) = cache.get_versioned("k").unwrap().unwrap();
    assert!(cache.compare_exchange("k", version, "4", None).unwrap());
    assert!(!cache.compare_exchange("k", version, "5", None).unwrap());
    assert_eq!(cache.pop("k").unwrap().as_deref(), Some(&b"4"[..]));
    assert_eq!(cache.pop("k").unwrap(), None);
    assert_eq!(cache.incr("n", 2, Some(1), None).unwrap(), Some(3));
    cache.insert_many(&[("a", "1"), ("b", "2")], None).unwrap();
    assert_eq!(cache.get_many(&["a", "x"]).unwrap(), [Some(b"1".to_vec()), None]);
    assert_eq!(cache.remove_many(&["a", "b", "x"]).unwrap(), 2);
    assert_eq!(cache.get_or_compute("c", None, || b"v".to_vec()).unwrap(), b"v");
    assert_eq!(cache.check().unwrap().entries, 2);
    // Moved, with handles in its pool.
    let moved = Box::new(cache);
    assert_eq!(moved.get("c").unwrap().as_deref(), Some(&b"v"[..]));
    assert!(moved.remove("c").unwrap());
}

#[test]
fn values_go_into_slices_of_any_length() {
    let cache = small().create_sealed().unwrap();
    let value: Vec<u8> = (0..=255).cycle().take(700).collect();
    cache.insert("k", &value).unwrap();
    for length in [0, 1, 7, 8, 9, 100, 699, 700, 701] {
        let mut place = vec![0xee; length];
        assert_eq!(cache.get_into_slice("k", &mut place).unwrap(), Some(700));
        let end = length.min(700);
        assert_eq!(place[..end], value[..end]);
        assert!(place[end..].iter().all(|byte| *byte == 0xee));
    }
    assert_eq!(cache.get_into_slice("absent", &mut [0; 8]).unwrap(), None);
}

#[test]
fn a_value_is_touched_as_it_is_read() {
    let cache = small().create_sealed().unwrap();
    let second = Some(Duration::from_secs(1));
    cache.insert_for("k", "v", second).unwrap();
    assert_eq!(cache.get_and_touch("k", Some(Duration::from_secs(9))).unwrap().unwrap(), b"v");
    advance(&cache, 5_000);
    assert_eq!(cache.get_and_touch("k", None).unwrap().unwrap(), b"v");
    advance(&cache, 50_000);
    assert!(cache.contains_key("k").unwrap());
    assert_eq!(cache.get_and_touch("absent", None).unwrap(), None);
}

/// Pages show what a scan shows, each key once, whatever happens between them.
#[test]
fn a_scan_by_cursor_holds_nothing() {
    let cache = small().create_sealed().unwrap();
    let mut handle = cache.handle().unwrap();
    for number in 0..300u32 {
        handle.insert(format!("a{number}"), "1").unwrap();
        handle.insert(format!("b{number}"), "1").unwrap();
    }
    handle.set_namespace(cache.namespace("other").unwrap());
    handle.insert("a in another namespace", "1").unwrap();
    let (mut cursor, mut keys, mut pages) = (Some(0), Vec::new(), 0);
    while let Some(from) = cursor {
        let page = cache.scan_from(from, Namespace::default(), b"a", 10).unwrap();
        keys.extend(page.entries.into_iter().map(|entry| entry.key));
        cursor = page.next;
        pages += 1;
        cache.insert(format!("c{pages}"), "new").unwrap();
    }
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), 300);
    assert!(pages >= 20 && keys.iter().all(|key| key.starts_with(b"a")));
    assert!(cache.scan_from(u64::MAX, Namespace::default(), b"", 1).unwrap().next.is_none());
}

/// More threads than the pool has handles, and operations inside operations.
#[test]
fn threads_share_the_pool() {
    let cache = TierCache::builder().capacity(1 << 20).handles(16).create_sealed().unwrap();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let cache = &cache;
            scope.spawn(move || {
                for number in 0..300 {
                    let key = format!("{thread} {number}");
                    let value = cache.get_or_compute(&key, None, || {
                        cache.insert(format!("inner {key}"), "1").unwrap();
                        key.clone().into_bytes()
                    });
                    assert_eq!(value.unwrap(), key.as_bytes());
                    assert!(cache.contains_key(format!("inner {key}")).unwrap());
                }
            });
        }
    });
    cache.check().unwrap();
}

/// No handle is free: gets are answered all the same.
#[test]
fn gets_need_no_seat() {
    let cache = small().handles(1).create_sealed().unwrap();
    let mut only = cache.handle().unwrap();
    only.insert_for("k", "v", Some(Duration::from_secs(60))).unwrap();
    all_gets_are_answered(&cache);
    assert_eq!(cache.insert("k", "w"), Err(CacheError::NoSeat));
}

/// As many processes as there can be take part already, or the cache may only be read: the same.
#[test]
fn gets_need_no_part_in_the_cache() {
    let place = Place::Name(format!("gets-alone-{}", std::process::id()));
    let _ = TierCache::unlink(&place);
    let cache = small().processes(1).create(&place).unwrap();
    cache.insert_for("k", "v", Some(Duration::from_secs(60))).unwrap();
    // The slots fill a page: as many attachments as there are take them all.
    let taken: Vec<_> = (1..64).map(|_| TierCache::attach(&place).unwrap()).collect();
    taken.iter().for_each(|other| drop(other.handle().map(std::mem::forget)));
    let late = TierCache::attach(&place).unwrap();
    assert!(matches!(late.handle(), Err(CacheError::Unjoined(_) | CacheError::NoSeat)));
    all_gets_are_answered(&late);
    all_gets_are_answered(&TierCache::attach_read_only(&place).unwrap());
    TierCache::unlink(&place).unwrap();
}

/// "k" is "v" for a minute, "absent" is not there.
#[track_caller]
fn all_gets_are_answered(cache: &TierCache) {
    let (key, value) = ("k", b"v".to_vec());
    assert!(cache.handle().is_err(), "there is a seat");
    assert_eq!(cache.get(key).unwrap().as_ref(), Some(&value));
    assert_eq!(cache.peek(key).unwrap().as_ref(), Some(&value));
    assert_eq!(cache.get_versioned(key).unwrap().map(|(value, _)| value).as_ref(), Some(&value));
    assert_eq!(cache.get_many(&[key, "absent"]).unwrap(), [Some(value.clone()), None]);
    assert_eq!(cache.get_into_slice(key, &mut [0; 4]).unwrap(), Some(1));
    assert!(cache.ttl(key).unwrap().unwrap().unwrap() > Duration::from_secs(30));
    assert!(cache.contains_key(key).unwrap() && !cache.contains_key("absent").unwrap());
    assert_eq!(cache.get_or_compute(key, None, || unreachable!()).unwrap(), value);
    assert_eq!(cache.get_or_compute("absent", None, || b"own".to_vec()).unwrap(), b"own");
    let failed = cache.get_or_try_compute("absent", None, || Err::<Vec<u8>, _>("why"));
    assert_eq!(failed.unwrap(), Err("why"));
    assert!(!cache.contains_key("absent").unwrap(), "nothing was stored");
}

#[test]
fn an_owned_handle_outlives_every_borrow() {
    let cache = Arc::new(small().create_sealed().unwrap());
    let mut handle = cache.owned_handle().unwrap();
    handle.set_namespace(cache.namespace("own").unwrap()).unwrap();
    handle.insert("k", "v").unwrap();
    assert_eq!(cache.get("k").unwrap(), None);
    drop(cache);
    let Ok(Begun::Flight(flight)) = handle.begin("j") else { panic!("it is absent") };
    let mut handle = std::thread::spawn(move || {
        assert_eq!(handle.get("k").unwrap().as_deref(), Some(&b"v"[..]));
        handle
    })
    .join()
    .unwrap();
    flight.complete("w", None).unwrap();
    assert_eq!(handle.get("j").unwrap().as_deref(), Some(&b"w"[..]));
    let cache = Arc::clone(handle.cache());
    drop(handle);
    cache.check().unwrap();
}

#[test]
fn a_short_lease_is_in_one_piece() {
    let cache = small().leases().create_sealed().unwrap();
    let mut handle = cache.handle().unwrap();
    handle.insert("short", [7; 64]).unwrap();
    handle.insert("long", [7; 500]).unwrap();
    let lease = |key: &str| handle.lease(key).unwrap().unwrap();
    let (short, long) = (lease("short"), lease("long"));
    // SAFETY: nobody writes to this cache meanwhile.
    assert_eq!(unsafe { short.contiguous() }.unwrap(), [7; 64]);
    // SAFETY: as above.
    assert!(unsafe { long.contiguous() }.is_none());
}

struct Unpark(std::thread::Thread);

impl Wake for Unpark {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.unpark();
    }
}

/// The smallest runtime there is.
fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(std::sync::Arc::new(Unpark(std::thread::current())));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// Tasks of one thread: the one that waits lets the one that computes go on.
#[test]
fn tasks_compute_once() {
    let cache = small().create_sealed().unwrap();
    let ask = |value: &'static str| {
        cache.get_or_compute_async("k", None, move || async move {
            cache_yield().await;
            value.as_bytes().to_vec()
        })
    };
    let (mut one, mut two) = (Box::pin(ask("one")), Box::pin(ask("two")));
    let both = block_on(std::future::poll_fn(|context| {
        let one = one.as_mut().poll(context);
        match (one, two.as_mut().poll(context)) {
            (Poll::Ready(one), Poll::Ready(two)) => Poll::Ready((one, two)),
            (Poll::Ready(one), Poll::Pending) => {
                assert_eq!(one.unwrap(), b"one");
                Poll::Ready((Ok(b"one".to_vec()), block_on(two.as_mut())))
            }
            _ => Poll::Pending,
        }
    }));
    assert_eq!(both, (Ok(b"one".to_vec()), Ok(b"one".to_vec())));
    let dropped = cache.get_or_compute_async("j", None, std::future::pending);
    let mut dropped = Box::pin(dropped);
    let mut context = Context::from_waker(Waker::noop());
    assert!(dropped.as_mut().poll(&mut context).is_pending());
    assert!(matches!(cache.begin("j"), Ok(Begun::Busy)));
    drop(dropped);
    assert!(matches!(cache.begin("j"), Ok(Begun::Flight(_))));
}

/// Pending once.
async fn cache_yield() {
    let mut asked = false;
    std::future::poll_fn(|context| {
        context.waker().wake_by_ref();
        if std::mem::replace(&mut asked, true) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

#[test]
fn codes_of_errors_are_distinct_and_stay() {
    let all = [
        CacheError::KeyTooLarge { max: 0 },
        CacheError::ValueTooLarge { max: 0 },
        CacheError::Full,
        CacheError::Busy,
        CacheError::NotANumber,
        CacheError::ReadOnly,
        CacheError::NoSeat,
        CacheError::Forked,
        CacheError::TooManyNamespaces,
        CacheError::NoNamespace,
        CacheError::NoLeases,
        CacheError::Nested,
        CacheError::Sink(String::new()),
        CacheError::Format(String::new()),
        CacheError::Corrupt(""),
        CacheError::Unjoined(String::new()),
    ];
    assert!(all.iter().map(CacheError::code).eq(1..=16));
}
