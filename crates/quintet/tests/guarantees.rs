//! The page of guarantees: what its table says of `Send` and `Sync` is what the compiler says.
#![cfg(not(any(quintet_loom, quintet_shuttle)))]

use quintet::{copy_map, hash_map, item_set, seen_set, twin_map, word_map};

/// Whether a type has a bound, as a value: the constant of its own wins over that of the trait.
macro_rules! has {
    ($type:ty: $bound:path) => {{
        #[allow(dead_code)]
        trait Otherwise {
            const HAS: bool = false;
        }
        impl<T: ?Sized> Otherwise for T {}
        struct Asked<T: ?Sized>(std::marker::PhantomData<T>);
        #[allow(dead_code)]
        impl<T: ?Sized + $bound> Asked<T> {
            const HAS: bool = true;
        }
        <Asked<$type>>::HAS
    }};
}

macro_rules! rows {
    ($($name:literal: $type:ty,)*) => {
        vec![$(($name, has!($type: Send), has!($type: Sync)),)*]
    };
}

fn in_code() -> Vec<(&'static str, bool, bool)> {
    type Boxed = Box<(u64, u64)>;
    #[allow(unused_mut)] // the cache may be left out
    let mut rows = rows! {
        "`hash_map::Ref`": hash_map::Ref<'static, u64, u64>,
        "`hash_map::Pin`": hash_map::Pin<'static, u64, u64>,
        "`hash_map::Handle`": hash_map::Handle<'static, u64, u64>,
        "`hash_map::QuietHandle`": hash_map::QuietHandle<'static, u64, u64>,
        "`hash_map::Refs`": hash_map::Refs<'static, u64, u64>,
        "`hash_map::Retired`": hash_map::Retired<u64, u64>,
        "`item_set::Ref`": item_set::Ref<'static, Boxed>,
        "`item_set::Pin`": item_set::Pin<'static, Boxed>,
        "`item_set::Handle`": item_set::Handle<'static, Boxed>,
        "`item_set::QuietHandle`": item_set::QuietHandle<'static, Boxed>,
        "`item_set::Refs`": item_set::Refs<'static, Boxed>,
        "`word_map::Pin`": word_map::Pin<'static, u64, u64>,
        "`word_map::Handle`": word_map::Handle<'static, u64, u64>,
        "`word_map::Iter`": word_map::Iter<'static, u64, u64>,
        "`copy_map::Pin`": copy_map::Pin<'static, u64, u64>,
        "`copy_map::Handle`": copy_map::Handle<'static, u64, u64>,
        "`copy_map::Iter`": copy_map::Iter<'static, u64, u64>,
        "`twin_map::Ref`": twin_map::Ref<'static, u64>,
        "`twin_map::ReadGuard`": twin_map::ReadGuard<'static, twin_map::Version<u64, u64>>,
        "`twin_map::OwnedGuard`": twin_map::OwnedGuard<twin_map::Version<u64, u64>>,
        "`twin_map::Reader`": twin_map::MapReader<u64, u64>,
        "`twin_map::Writer`": twin_map::Writer<u64, u64>,
        "`seen_set::Handle`": seen_set::Handle<'static, u64>,
    };
    #[cfg(feature = "shm")]
    rows.extend(rows! {
        "`cache::Handle`": quintet::cache::Handle<'static>,
        "`cache::OwnedHandle`": quintet::cache::OwnedHandle,
    });
    rows
}

#[test]
fn the_page_and_the_compiler_agree() {
    let page = include_str!("../docs/guarantees.md");
    let mut wrong = Vec::new();
    for (name, send, sync) in in_code() {
        let row = page.lines().find(|line| line.starts_with(&format!("| {name} |")));
        let row = row.unwrap_or_else(|| panic!("no row of {name}"));
        let cells: Vec<_> = row.split('|').map(str::trim).collect();
        let said = |yes: bool| if yes { "yes" } else { "no" };
        if (cells[2], cells[3]) != (said(send), said(sync)) {
            wrong.push(format!("{name}: Send {}, Sync {}", said(send), said(sync)));
        }
    }
    assert!(wrong.is_empty(), "the compiler says: {wrong:#?}");
    let named = page.lines().filter(|line| line.starts_with("| `") && line.contains("::")).count();
    assert!(named >= in_code().len(), "every row is of a type");
}
