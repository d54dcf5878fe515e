//! Conditional stores, times to live, many keys at once, and whole caches as JSON lines.

use super::args::{CasArgs, DumpArgs, KeyArgs, LoadArgs, MgetArgs, MsetArgs, SetArgs, TouchArgs};
use super::keys::{bytes_of, json, readable, reading, value_of, writing};
use super::place::{attach, attach_for_gets, known_space, look, refused};
use crate::fail::{Exit, Fail};
use crate::ui::say;
use quintet::cache::{Handle, Reader, TierCache};
use serde_json::Value;
use std::collections::HashMap;
use std::ffi::OsString;
use std::io::{self, BufRead, Write};
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

fn answer(yes: bool) -> Exit {
    if yes { Exit::Fine } else { Exit::No }
}

/// Stores a value if the key is absent.
pub(super) fn add(args: &SetArgs) -> Result<Exit, Fail> {
    let cache = attach(&args.name)?;
    let value = value_of(&args.value, &cache)?;
    let add = |mut handle: Handle<'_>| handle.insert_new(args.key.as_bytes(), value, args.ttl);
    let added = writing(&cache, args.space.namespace.as_deref()).and_then(add);
    added.map(answer).map_err(|error| refused(&args.name, "store in", &error))
}

/// Gives a key another time to live.
pub(super) fn touch(args: &TouchArgs) -> Result<Exit, Fail> {
    let cache = attach(&args.name)?;
    let touch = |mut handle: Handle<'_>| handle.touch(args.key.as_bytes(), args.ttl);
    let touched = existing(&cache, args.space.namespace.as_deref(), touch);
    let touched = touched.map_err(|error| refused(&args.name, "write to", &error))?;
    Ok(answer(touched == Some(true)))
}

/// Runs an operation in a namespace, if that is there.
fn existing<R>(
    cache: &TierCache,
    namespace: Option<&str>,
    run: impl FnOnce(Handle<'_>) -> Result<R, quintet::cache::CacheError>,
) -> Result<Option<R>, quintet::cache::CacheError> {
    let Some(space) = known_space(cache, namespace) else { return Ok(None) };
    let mut handle = cache.handle()?;
    handle.set_namespace(space);
    run(handle).map(Some)
}

/// Prints how long a key will live.
pub(super) fn ttl(args: &KeyArgs) -> Result<Exit, Fail> {
    let cache = attach_for_gets(&args.name)?;
    let Some(space) = known_space(&cache, args.space.namespace.as_deref()) else {
        return Ok(Exit::No);
    };
    let key = args.key.as_bytes();
    let left = reading(&cache, space, |handle| handle.ttl(key), |reader| reader.ttl(key));
    match left.map_err(|error| refused(&args.name, "read", &error))? {
        None => return Ok(Exit::No),
        Some(None) => say("never"),
        Some(Some(left)) => say(&format!("{}ms", left.as_millis())),
    }
    Ok(Exit::Fine)
}

/// Replaces a value if it is what was expected.
pub(super) fn cas(args: &CasArgs) -> Result<Exit, Fail> {
    let cache = attach(&args.name)?;
    let (key, old) = (args.key.as_bytes(), args.old.as_bytes());
    let new = value_of(&args.new, &cache)?;
    let exchange = |mut handle: Handle<'_>| match handle.get_versioned(key)? {
        Some((value, version)) if value == old => {
            handle.compare_exchange(key, version, new, args.ttl)
        }
        _ => Ok(false),
    };
    let done = existing(&cache, args.space.namespace.as_deref(), exchange);
    let done = done.map_err(|error| refused(&args.name, "store in", &error))?;
    Ok(answer(done == Some(true)))
}

/// Prints the values of many keys.
pub(super) fn mget(args: &MgetArgs) -> Result<Exit, Fail> {
    let cache = attach_for_gets(&args.name)?;
    let keys: Vec<&[u8]> = args.keys.iter().map(|key| key.as_bytes()).collect();
    let values = match known_space(&cache, args.space.namespace.as_deref()) {
        Some(space) => {
            let read = |reader: Reader<'_>| reader.get_many(&keys);
            reading(&cache, space, |handle| handle.get_many(&keys), read)
                .map_err(|error| refused(&args.name, "read", &error))?
        }
        None => vec![None; keys.len()],
    };
    let mut out = io::BufWriter::new(io::stdout().lock());
    for (key, value) in keys.iter().zip(&values) {
        let line = match (value, args.json) {
            (Some(value), true) => json(None, key, value, None),
            (Some(value), false) => format!("{}\t{}", readable(key), readable(value)),
            (None, _) => continue,
        };
        if writeln!(out, "{line}").is_err() {
            break;
        }
    }
    let _ = out.flush();
    Ok(answer(values.iter().all(Option::is_some)))
}

/// Stores many values.
pub(super) fn mset(args: &MsetArgs) -> Result<Exit, Fail> {
    if args.pairs.len() % 2 != 0 {
        let what = format!("cannot store in {}", args.name);
        return Err(Fail::misuse(
            what,
            "the last key has no value",
            "give KEY VALUE KEY VALUE ...",
        ));
    }
    let cache = attach(&args.name)?;
    let pairs = args
        .pairs
        .chunks_exact(2)
        .map(|pair: &[OsString]| (pair[0].as_bytes(), pair[1].as_bytes()));
    let pairs: Vec<_> = pairs.collect();
    let store = |mut handle: Handle<'_>| handle.insert_many(&pairs, args.ttl);
    let stored = writing(&cache, args.space.namespace.as_deref()).and_then(store);
    stored.map(|_| Exit::Fine).map_err(|error| refused(&args.name, "store in", &error))
}

/// Prints every entry, as `load` reads it.
pub(super) fn dump(args: &DumpArgs) -> Result<Exit, Fail> {
    let cache = look(&args.name)?;
    let names: HashMap<_, _> =
        cache.namespaces().into_iter().map(|(name, space)| (space, name)).collect();
    let mut out = io::BufWriter::new(io::stdout().lock());
    for entry in cache.scan() {
        let entry = entry.map_err(|error| refused(&args.name, "dump", &error))?;
        let name = names.get(&entry.namespace).map(String::as_str);
        if writeln!(out, "{}", json(name, &entry.key, &entry.value, entry.ttl)).is_err() {
            break;
        }
    }
    let _ = out.flush();
    Ok(Exit::Fine)
}

/// Stores what `dump` or `scan --json` printed.
pub(super) fn load(args: &LoadArgs) -> Result<Exit, Fail> {
    let cache = attach(&args.name)?;
    let fail = |error| refused(&args.name, "load into", &error);
    let mut handle = cache.handle().map_err(fail)?;
    let unreadable = |number: usize, why: String| {
        let what = format!("cannot load line {number}; those before it are stored");
        Fail::misuse(
            what,
            why,
            r#"give lines like {"key": "user:1", "value": "Ada", "ttl_ms": 60000}"#,
        )
    };
    let mut loaded = 0;
    for (at, line) in io::stdin().lock().lines().enumerate() {
        let line = line.map_err(|error| unreadable(at + 1, error.to_string()))?;
        if line.trim().is_empty() {
            continue;
        }
        let entry = parsed(&line).map_err(|why| unreadable(at + 1, why))?;
        let namespace = entry.namespace.as_deref().unwrap_or_default();
        handle.set_namespace(cache.namespace(namespace).map_err(fail)?);
        handle.insert_for(&entry.key, &entry.value, entry.ttl).map_err(fail)?;
        loaded += 1;
    }
    say(&format!("{loaded} loaded"));
    Ok(Exit::Fine)
}

/// A line of JSON.
struct Line {
    namespace: Option<String>,
    key: Vec<u8>,
    value: Vec<u8>,
    ttl: Option<Duration>,
}

fn parsed(line: &str) -> Result<Line, String> {
    let object: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
    let namespace = match &object["namespace"] {
        Value::Null => None,
        Value::String(name) => Some(name.clone()),
        _ => return Err("the namespace is no text".to_owned()),
    };
    let ttl = match &object["ttl_ms"] {
        Value::Null => None,
        ms => Some(ms.as_u64().ok_or("ttl_ms is no whole number")?),
    };
    let (key, value) = (bytes_of(&object, "key")?, bytes_of(&object, "value")?);
    Ok(Line { namespace, key, value, ttl: ttl.map(Duration::from_millis) })
}
