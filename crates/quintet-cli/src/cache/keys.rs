//! Single keys, and all of them.

use super::args::{IncrArgs, KeyArgs, ScanArgs, SetArgs};
use super::place::{attach, attach_for_gets, known_space, look, refused};
use crate::fail::{Exit, Fail};
use crate::ui::say;
use quintet::cache::{CacheError, Handle, Namespace, Reader, ScannedEntry, TierCache};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

/// Stores a value.
pub(super) fn set(args: &SetArgs) -> Result<Exit, Fail> {
    let cache = attach(&args.name)?;
    let value = value_of(&args.value, &cache)?;
    let fail = |error| refused(&args.name, "write to", &error);
    let mut handle = writing(&cache, args.space.namespace.as_deref()).map_err(fail)?;
    let done = handle.insert_for(args.key.as_bytes(), value, args.ttl);
    done.map_err(|error| refused(&args.name, "store in", &error))?;
    Ok(Exit::Fine)
}

/// A value as it was given; - is standard input.
pub(super) fn value_of(given: &OsStr, cache: &TierCache) -> Result<Vec<u8>, Fail> {
    match given.as_bytes() {
        b"-" => from_stdin(cache.max_value()),
        value => Ok(value.to_owned()),
    }
}

/// A handle in a namespace, which is made if there is none.
pub(super) fn writing<'c>(
    cache: &'c TierCache,
    namespace: Option<&str>,
) -> Result<Handle<'c>, CacheError> {
    let mut handle = cache.handle()?;
    handle.set_namespace(cache.namespace(namespace.unwrap_or_default())?);
    Ok(handle)
}

/// Everything on standard input, or one byte more than `most`.
fn from_stdin(most: usize) -> Result<Vec<u8>, Fail> {
    let mut value = Vec::new();
    let read = io::stdin().lock().take(most as u64 + 1).read_to_end(&mut value);
    read.map_err(|error| {
        Fail::misuse("cannot read the value", error.to_string(), "give it as an argument instead")
    })?;
    Ok(value)
}

/// Reads in a namespace: on a handle, or without one where there is none to be had.
pub(super) fn reading<R>(
    cache: &TierCache,
    space: Namespace,
    seated: impl FnOnce(&mut Handle<'_>) -> Result<R, CacheError>,
    seatless: impl FnOnce(Reader<'_>) -> Result<R, CacheError>,
) -> Result<R, CacheError> {
    match cache.handle() {
        Ok(mut handle) => {
            handle.set_namespace(space);
            seated(&mut handle)
        }
        Err(CacheError::ReadOnly | CacheError::NoSeat | CacheError::Unjoined(_)) => {
            let mut reader = cache.reader();
            reader.set_namespace(space);
            seatless(reader)
        }
        Err(error) => Err(error),
    }
}

/// Prints a value.
pub(super) fn get(args: &KeyArgs) -> Result<Exit, Fail> {
    let (key, namespace) = (args.key.as_bytes(), args.space.namespace.as_deref());
    let cache = attach_for_gets(&args.name)?;
    let Some(space) = known_space(&cache, namespace) else { return Ok(Exit::No) };
    let found = reading(&cache, space, |handle| handle.get(key), |reader| reader.get(key));
    match found.map_err(|error| refused(&args.name, "read", &error))? {
        None => Ok(Exit::No),
        Some(value) => {
            let mut out = io::stdout().lock();
            let written = out.write_all(&value).and_then(|()| out.flush());
            match written {
                // A reader that has seen enough is no error of ours.
                Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                    Err(Fail::misuse("cannot write the value", error.to_string(), ""))
                }
                _ => Ok(Exit::Fine),
            }
        }
    }
}

/// Removes a key.
pub(super) fn del(args: &KeyArgs) -> Result<Exit, Fail> {
    let cache = attach(&args.name)?;
    let Some(space) = known_space(&cache, args.space.namespace.as_deref()) else {
        return Ok(Exit::No);
    };
    let removed = cache.handle().and_then(|mut handle| {
        handle.set_namespace(space);
        handle.remove(args.key.as_bytes())
    });
    let removed = removed.map_err(|error| refused(&args.name, "remove from", &error))?;
    Ok(if removed { Exit::Fine } else { Exit::No })
}

/// Adds to a number.
pub(super) fn incr(args: &IncrArgs) -> Result<Exit, Fail> {
    let cache = attach(&args.name)?;
    let add = |mut handle: Handle<'_>| {
        handle.incr(args.key.as_bytes(), args.by, Some(args.initial), args.ttl)
    };
    let sum = writing(&cache, args.space.namespace.as_deref()).and_then(add);
    let sum = sum.map_err(|error| refused(&args.name, "count in", &error))?;
    say(&sum.unwrap_or(args.initial).to_string());
    Ok(Exit::Fine)
}

/// Lists keys.
pub(super) fn scan(args: &ScanArgs) -> Result<Exit, Fail> {
    let cache = look(&args.name)?;
    let prefix = args.prefix.as_deref().map(OsStrExt::as_bytes).unwrap_or_default();
    let names: HashMap<_, _> =
        cache.namespaces().into_iter().map(|(name, space)| (space, name)).collect();
    let wanted = known_space(&cache, args.space.namespace.as_deref());
    let begins = |entry: &Result<ScannedEntry, CacheError>| {
        entry.as_ref().map_or(true, |entry| {
            entry.key.starts_with(prefix) && (args.all || Some(entry.namespace) == wanted)
        })
    };
    let entries = cache.scan().filter(begins).take(args.limit.unwrap_or(usize::MAX));
    let mut out = io::BufWriter::new(io::stdout().lock());
    for entry in entries {
        let entry = entry.map_err(|error| refused(&args.name, "scan", &error))?;
        let line = match (args.json, args.values) {
            (true, _) => {
                let name = names.get(&entry.namespace).map(String::as_str);
                json(name, &entry.key, &entry.value, entry.ttl)
            }
            (false, false) => readable(&entry.key),
            (false, true) => format!("{}\t{}", readable(&entry.key), readable(&entry.value)),
        };
        // A reader that has seen enough is no error of ours.
        if writeln!(out, "{line}").is_err() {
            break;
        }
    }
    let _ = out.flush();
    Ok(Exit::Fine)
}

/// Text as it is, all else escaped: one line in any case.
pub(super) fn readable(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains(char::is_control) => text.to_owned(),
        _ => bytes.escape_ascii().to_string(),
    }
}

/// One object; bytes that are no text go under another name, in hexadecimal digits.
pub(super) fn json(
    namespace: Option<&str>,
    key: &[u8],
    value: &[u8],
    ttl: Option<Duration>,
) -> String {
    let mut object = Map::new();
    if let Some(name) = namespace.filter(|name| !name.is_empty()) {
        object.insert("namespace".to_owned(), name.into());
    }
    for (name, bytes) in [("key", key), ("value", value)] {
        match std::str::from_utf8(bytes) {
            Ok(text) => object.insert(name.to_owned(), text.into()),
            Err(_) => {
                let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                object.insert(format!("{name}_hex"), digits.into())
            }
        };
    }
    if let Some(ttl) = ttl {
        object.insert("ttl_ms".to_owned(), (ttl.as_millis() as u64).into());
    }
    Value::Object(object).to_string()
}

/// The bytes that such an object has under a name.
pub(super) fn bytes_of(object: &Value, name: &str) -> Result<Vec<u8>, String> {
    if let Some(text) = object[name].as_str() {
        return Ok(text.as_bytes().to_vec());
    }
    let digits = object[format!("{name}_hex")].as_str();
    let digits = digits.ok_or_else(|| format!("no {name}, or it is no text"))?.as_bytes();
    let wrong = || format!("{name}_hex is no hexadecimal number of bytes");
    let byte = |pair: &[u8]| {
        let text = std::str::from_utf8(pair).ok().filter(|pair| pair.len() == 2);
        text.and_then(|pair| u8::from_str_radix(pair, 16).ok()).ok_or_else(wrong)
    };
    digits.chunks(2).map(byte).collect()
}
