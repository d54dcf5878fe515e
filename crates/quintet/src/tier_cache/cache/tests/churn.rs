//! Values of all lengths come and go: no set ever fails for want of room in one piece.

use super::world::small;
use quintet_testkit::Rng;

#[test]
fn mixed_lengths_never_fail() {
    let steps = std::env::var("QUINTET_CHURN").ok().and_then(|text| text.parse().ok());
    let cache = small().capacity(1 << 20).create_sealed().unwrap();
    let longest = cache.max_value();
    std::thread::scope(|scope| {
        for thread in 0..2u64 {
            let cache = &cache;
            scope.spawn(move || {
                let mut handle = cache.handle().unwrap();
                let mut random = Rng::with_seed(thread);
                let bytes: Vec<u8> = (0..longest).map(|at| at as u8).collect();
                for _ in 0..steps.unwrap_or(30_000) {
                    let len = match random.u32(..20) {
                        0 => random.usize(..=longest),
                        1..6 => random.usize(..2000.min(longest)),
                        _ => random.usize(..100),
                    };
                    let key = random.u32(..20_000).to_string();
                    match random.u32(..10) {
                        0 => drop(handle.remove(&key).unwrap()),
                        1..4 => {
                            if let Some(value) = handle.get(&key).unwrap() {
                                assert_eq!(value, &bytes[..value.len()]);
                            }
                        }
                        _ => drop(handle.insert(&key, &bytes[..len]).unwrap()),
                    }
                }
            });
        }
    });
    let report = cache.check().unwrap();
    let stats = cache.stats();
    println!("{report:?}, {} evicted, {} forced", stats.evicted, stats.forced);
    assert!(stats.evicted > 1000);
    assert_eq!(stats.orphans, 0, "no crash, no orphan");
}
