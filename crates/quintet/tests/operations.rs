//! The page "operations by table" against the tables: what it says is there compiles, and what it
//! says is not there is not.

use quintet::{Compute, CopyMap, HashMap, HashSet, ItemSet, SeenPrints, SeenSet, TwinMap, WordMap};
use std::collections::BTreeSet;
use std::sync::Arc;

type Maps = HashMap<u64, u64>;
type Sets = HashSet<u64>;
type Words = WordMap<u64, u64>;
type Copies = CopyMap<u64, u64>;
type Items = ItemSet<Box<(u64, u64)>>;
type Twins = TwinMap<u64, u64>;
type Seen = SeenSet<u64>;

/// What a name gives that the table has not.
struct Missing;

/// Operations that a table has, each called once in code that never runs.
macro_rules! has {
    ($table:ident: $type:ty; $($name:ident $(($($argument:expr),*))?),+ $(,)?) => {{
        $( let _: fn(&Arc<$type>) = |$table| { let _ = has!(@call $table, $type, $name $(($($argument),*))?); }; )+
        vec![$(stringify!($name)),+]
    }};
    (@call $table:ident, $type:ty, $name:ident ($($argument:expr),*)) => { $table.$name($($argument),*) };
    (@call $table:ident, $type:ty, $name:ident) => {{ let _ = $table; <$type>::$name() }};
}

/// Operations that a table has not: if it had one, that would be called, and gives something else.
macro_rules! has_not {
    ($type:ty; $($name:ident),* $(,)?) => {{
        $( {
            #[allow(dead_code)]
            trait Absent {
                fn $name(&self) -> Missing {
                    Missing
                }
            }
            impl Absent for $type {}
            let _: fn(&$type) -> Missing = |table| table.$name();
        } )*
        vec![$(stringify!($name)),*]
    }};
}

/// Operations that each table has, and such that it has not.
fn in_code() -> Vec<(&'static str, Vec<&'static str>, Vec<&'static str>)> {
    let map = has!(map: Maps; get(&1), contains_key(&1), insert(1, 2), insert_new(1, 2), get_or_insert(1, 2),
        get_or_insert_with(1, || 2), update(&1, |v| *v), update_or_insert(1, |v| *v, 2), update_or_insert_with(1, |v| *v, || 2),
        compute(1, |_| Compute::Keep), compare_exchange(&1, &2, 3), remove(&1), remove_if(&1, |_| true), retain(|_, _| true),
        clear(), drain(), get_many(&[1], &mut [None]), contains_many([&1], &mut [false]), insert_many([(1, 2)]), remove_many([&1]), iter(), keys(), values(),
        len(), is_empty(), capacity(), reserve(1), try_reserve(1), shrink_to_fit(), memory_bytes(), stats(), flush(),
        fallible(), handle(), pin(), quiet_handle(), owned_handle(), builder);
    let map_not = has_not!(Maps; contains);
    let set = has!(set: Sets; get(&1), contains(&1), insert(1), insert_new(1), get_or_insert(1),
        get_or_insert_with(&1, || 1), remove(&1), remove_if(&1, |_| true), retain(|_| true), clear(), drain(),
        get_many(&[1], &mut [None]), contains_many([&1], &mut [false]), insert_many([1]), remove_many([&1]), iter(), len(), is_empty(), capacity(),
        reserve(1), try_reserve(1), shrink_to_fit(), memory_bytes(), stats(), flush(), fallible(), handle(), pin(),
        quiet_handle(), owned_handle(), builder);
    let set_not = has_not!(Sets; contains_key, update, update_or_insert, update_or_insert_with, compute, compare_exchange,
        keys, values);
    let word = has!(map: Words; get(1), contains_key(1), insert(1, 2), insert_new(1, 2), get_or_insert(1, 2),
        get_or_insert_with(1, || 2), update(1, |v| v), update_or_insert(1, |v| v, 2), update_or_insert_with(1, |v| v, || 2),
        compute(1, |_| Compute::Keep), compare_exchange(1, 2, 3), remove(1), remove_if(1, |_| true), retain(|_, _| true),
        clear(), drain(), get_many(&[1], &mut [None]), contains_many(&[1], &mut [false]), insert_many([(1, 2)]), remove_many([1]), iter(), keys(), values(),
        len(), is_empty(), capacity(), reserve(1), try_reserve(1), shrink_to_fit(), memory_bytes(), stats(), flush(),
        fallible(), handle(), pin(), owned_handle(), builder);
    let word_not = has_not!(Words; contains, quiet_handle);
    let copy = has!(map: Copies; get(&1), contains_key(&1), insert(1, 2), insert_new(1, 2), get_or_insert(1, 2),
        get_or_insert_with(1, || 2), update(&1, |v| v), update_or_insert(1, |v| v, 2), update_or_insert_with(1, |v| v, || 2),
        compute(1, |_| Compute::Keep), compare_exchange(&1, 2, 3), remove(&1), remove_if(&1, |_| true), retain(|_, _| true),
        clear(), drain(), get_many(&[1], &mut [None]), contains_many(&[1], &mut [false]), insert_many([(1, 2)]), remove_many([1]), iter(), keys(), values(),
        len(), is_empty(), capacity(), reserve(1), try_reserve(1), shrink_to_fit(), memory_bytes(), stats(), flush(),
        fallible(), handle(), pin(), owned_handle(), builder);
    let copy_not = has_not!(Copies; contains, quiet_handle);
    let item = has!(set: Items; get(&1), contains(&1), insert((1, 2)), insert_new((1, 2)), get_or_insert((1, 2)),
        get_or_insert_with(&1, || (1, 2)), update(&1, |i| (1, i.1)), update_or_insert(|i| (1, i.1), (1, 2)),
        update_or_insert_with(&1, |i| (1, i.1), || (1, 2)), compute(&1, |_| Compute::Keep), compare_exchange(&(1, 2), (1, 3)),
        remove(&1), remove_if(&1, |_| true), retain(|_| true), clear(), drain(), get_many(&[1], &mut [None]),
        contains_many([&1], &mut [false]), insert_many([(1, 2)]), remove_many([&1]), iter(), len(), is_empty(), capacity(), reserve(1),
        try_reserve(1), shrink_to_fit(), memory_bytes(), stats(), flush(), fallible(), handle(), pin(), quiet_handle(),
        owned_handle(), builder);
    let item_not = has_not!(Items; contains_key, keys, values);
    let twin = has!(map: Twins; get(&1), contains_key(&1), insert(1, 2), insert_new(1, 2), get_or_insert(1, 2),
        get_or_insert_with(1, || 2), update(&1, |v| *v), update_or_insert(1, |v| *v, 2), update_or_insert_with(1, |v| *v, || 2),
        compute(1, |_| Compute::Keep), remove(&1), remove_if(&1, |_| true), retain(|_, _| true), clear(),
        insert_many([(1, 2)]), remove_many([&1]), iter(), keys(), values(), len(), is_empty(), capacity(), reserve(1),
        try_reserve(1), shrink_to_fit(), memory_bytes(), stats(), handle(), pin(), owned_handle(), builder);
    let twin_not = has_not!(Twins; contains, compare_exchange, drain, get_many, contains_many, flush, fallible, quiet_handle);
    let seen = has!(set: Seen; get(set.insert(1).id()), contains(&1), insert(1), contains_many([&1], &mut [false]), insert_many([1]), iter(),
        len(), is_empty(), capacity(), reserve(1), try_reserve(1), memory_bytes(), stats(), fallible(), handle(),
        owned_handle(), builder);
    let seen_not = has_not!(Seen; contains_key, insert_new, get_or_insert, get_or_insert_with, update, update_or_insert,
        update_or_insert_with, compute, compare_exchange, remove, remove_if, retain, clear, drain, get_many, remove_many,
        keys, values, shrink_to_fit, flush, pin, quiet_handle);
    vec![
        ("`HashMap`", map, map_not),
        ("`HashSet`", set, set_not),
        ("`WordMap`", word, word_not),
        ("`CopyMap`", copy, copy_not),
        ("`ItemSet`", item, item_not),
        ("`TwinMap`", twin, twin_not),
        ("`SeenSet`", seen, seen_not),
        #[cfg(all(feature = "shm", not(quintet_private), target_os = "linux", not(miri)))]
        tier(),
    ]
}

/// The cache that processes share, where there is one.
#[cfg(all(feature = "shm", not(quintet_private), target_os = "linux", not(miri)))]
fn tier() -> (&'static str, Vec<&'static str>, Vec<&'static str>) {
    use quintet::TierCache;
    let has = has!(cache: TierCache; get("k"), contains_key("k"), insert("k", "v"), insert_new("k", "v", None),
        compare_exchange("k", 1, "v", None), remove("k"), clear(), get_many(&["k"]), insert_many(&[("k", "v")], None),
        remove_many(&["k"]), len(), is_empty(), memory_bytes(), stats(), handle(), owned_handle(), builder);
    let has_not = has_not!(TierCache; contains, get_or_insert, get_or_insert_with, update, update_or_insert,
        update_or_insert_with, compute, remove_if, retain, drain, contains_many, iter, keys, values, capacity, reserve,
        try_reserve, shrink_to_fit, flush, fallible, pin, quiet_handle);
    ("`TierCache`", has, has_not)
}

/// The rows of the page's table of operations, cell by cell.
fn rows() -> Vec<Vec<&'static str>> {
    let page = include_str!("../docs/operations.md");
    let table = page.split("# Operations").nth(1).expect("the chapter").split("\n# ").next();
    let lines = table.expect("its text").lines().filter(|line| line.starts_with("| "));
    let cells = |line: &'static str| line.trim_matches('|').split('|').map(str::trim).collect();
    lines.map(cells).collect()
}

#[test]
fn the_page_and_the_tables_agree() {
    let rows = rows();
    let (head, rows) = rows.split_first().expect("a head");
    let rows: Vec<_> = rows.iter().filter(|row| !row[0].starts_with('-')).collect();
    assert!(rows.len() > 30);
    for (table, present, absent) in in_code() {
        let column = head.iter().position(|name| *name == table).expect("a column of its own");
        let named = |mark: &str| -> BTreeSet<&str> {
            let marked = rows.iter().filter(|row| row[column] == mark);
            marked.map(|row| row[0].trim_matches('`')).collect()
        };
        assert_eq!(named("x"), present.into_iter().collect(), "{table} has");
        assert_eq!(named(""), absent.into_iter().collect(), "{table} has not");
    }
}

#[test]
fn the_page_names_what_fingerprints_have() {
    let present = has!(set: SeenPrints; contains(&1), insert(&1), contains_many([&1], &mut [false]), insert_many([1]), len(),
        is_empty(), capacity(), reserve(1), try_reserve(1), memory_bytes(), stats(), fallible(), handle(), owned_handle(),
        builder);
    has_not!(SeenPrints; get, contains_key, insert_new, remove, retain, clear, drain, get_many, remove_many, iter, keys,
        values, shrink_to_fit, flush, pin, quiet_handle);
    let page = include_str!("../docs/operations.md");
    let from = page.find("A `SeenPrints`").expect("its paragraph");
    let paragraph = page[from..].split("\n\n").next().expect("its end");
    let named: BTreeSet<_> = paragraph.split('`').skip(3).step_by(2).collect();
    assert_eq!(named, present.into_iter().collect());
}
