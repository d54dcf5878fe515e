//! Caches as a whole.

use super::args::{CreateArgs, EvictArgs, FlushArgs, LsArgs, NameArgs, RemoveArgs};
use super::place::{MEMORY, Note, PREFIX, attach, builder, forget, known_space, names, noted};
use super::place::{others, place, printable, refused, unopened};
use super::units::size;
use crate::fail::{Exit, Fail};
use crate::ui::{Tone, count, paint, say};
use quintet::cache::{Access, CacheBuilder, OpenError, Place, SegmentError, TierCache};
use serde_json::json;
use std::io::{self, IsTerminal};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Makes a cache.
pub(super) fn create(args: &CreateArgs) -> Result<Exit, Fail> {
    let name = &args.name;
    if name.contains('/') {
        let what = format!("{name:?} cannot name a new cache");
        let advice = "give a plain name, and the file by --path";
        return Err(Fail::misuse(what, "a name has no slash", advice));
    }
    let place = match (&args.path, noted(name)) {
        (None, None) => Place::Name(name.clone()),
        (None, Some(path)) => Place::Path(path),
        (Some(path), _) => Place::Path(std::path::absolute(path).unwrap_or_else(|_| path.clone())),
    };
    let mut builder = builder().capacity(usize::try_from(args.capacity).unwrap_or(usize::MAX));
    if let Some(mode) = args.mode {
        builder = builder.access(Access { mode, ..Access::default() });
    }
    if let Some(handles) = args.handles {
        builder = builder.handles(handles).processes(args.processes.unwrap_or(handles));
    }
    if let Some(processes) = args.processes {
        builder = builder.processes(processes);
    }
    if args.any_size {
        builder = builder.any_size();
    }
    if let Some(most) = args.max_value {
        builder = builder.max_value(usize::try_from(most).unwrap_or(usize::MAX));
    }
    if let Some(block) = args.block {
        builder = builder.block(usize::try_from(block).unwrap_or(usize::MAX));
    }
    if let Some(most) = args.namespaces {
        builder = builder.namespaces(most);
    }
    if args.checksums {
        builder = builder.checksums();
    }
    if args.no_evict {
        builder = builder.no_evict();
    }
    if let Some(tiers) = args.tiers {
        builder = builder.tiers(tiers);
    }
    if args.promote {
        builder = builder.promote();
    }
    if let Some(policy) = args.policy {
        builder = builder.policy(policy);
    }
    if args.quotas {
        builder = builder.quotas();
    }
    if let Some(store) = &args.store {
        builder = builder.store(store).map_err(|error| {
            let what = format!("cannot create {name:?} with that store");
            Fail::misuse(
                what,
                error.to_string(),
                "give --store none, lmdb:PATH or redis://HOST:PORT",
            )
        })?;
    }
    type Choice = (bool, fn(CacheBuilder) -> CacheBuilder);
    let choices: [Choice; 4] = [
        (args.adopt_store, CacheBuilder::adopt_store),
        (args.keep_found, CacheBuilder::keep_found),
        (args.keep_absent, CacheBuilder::keep_absent),
        (args.drop_when_behind, CacheBuilder::drop_when_behind),
    ];
    for (_, choose) in choices.into_iter().filter(|(chosen, _)| *chosen) {
        builder = choose(builder);
    }
    // Written before there is a cache: what cannot be noted is not made.
    let note = match (&args.path, &place) {
        (Some(_), Place::Path(path)) => Some(Note::prepare(name, path)?),
        _ => None,
    };
    let made = match args.if_absent {
        true => builder.create_or_attach(&place),
        false => builder.create(&place),
    };
    made.map_err(|error| uncreated(args, &error))?;
    note.map_or(Ok(()), Note::keep)?;
    Ok(Exit::Fine)
}

fn uncreated(args: &CreateArgs, error: &OpenError) -> Fail {
    match error {
        OpenError::Map(error) => {
            let text = error.to_string();
            let why = text.split_once(": ").map_or(text.as_str(), |(_, why)| why);
            let what = format!("cannot create {:?} with {}", args.name, size(args.capacity));
            Fail::misuse(what, why, "change --capacity, --max-value or --block")
        }
        OpenError::Segment(SegmentError::Permission(path)) => Fail::misuse(
            format!("cannot create {:?}", args.name),
            format!("{}: permission denied", path.display()),
            "give a --path FILE in a directory you may write to",
        ),
        OpenError::Segment(SegmentError::ReadOnlyFileSystem(path)) => Fail::misuse(
            format!("cannot create {:?}", args.name),
            format!("{} lies on a file system that may only be read", path.display()),
            "give a --path FILE on another one",
        ),
        OpenError::Segment(SegmentError::Mismatch { field: field @ "mode", expected, found }) => {
            differs(args, format!("{field} is {found:04o}, not {expected:04o}"))
        }
        OpenError::Segment(SegmentError::Mismatch { field, expected, found }) => {
            differs(args, format!("{field} is {found}, not {expected}"))
        }
        OpenError::Segment(SegmentError::NotFound(path)) => Fail::misuse(
            format!("cannot create {:?}", args.name),
            format!("the directory of {} does not exist", path.display()),
            "make the directory first, or give another --path FILE",
        ),
        error => unopened(&args.name, error),
    }
}

fn differs(args: &CreateArgs, why: String) -> Fail {
    let what = format!("there is another cache {:?}", args.name);
    Fail::misuse(what, why, "take it as it is with --any-size, or quintet cache remove it first")
}

/// Removes a cache's name, and what is noted under it.
pub(super) fn remove(args: &RemoveArgs) -> Result<Exit, Fail> {
    if !args.yes && io::stdin().is_terminal() && !agrees(&args.name) {
        return Ok(Exit::No);
    }
    let removed = TierCache::unlink(&place(&args.name));
    if let Err(OpenError::Segment(SegmentError::NotFound(_))) | Ok(()) = removed {
        forget(&args.name);
    }
    removed.map_err(|error| unopened(&args.name, &error))?;
    Ok(Exit::Fine)
}

/// Asks whether a cache may go.
fn agrees(name: &str) -> bool {
    // One that cannot be read, of an older version for example, can be removed all the same.
    let content = match TierCache::attach_read_only(&place(name)) {
        Ok(cache) => format!(" with {} entries", count(cache.len())),
        Err(_) => String::new(),
    };
    eprint!("remove {name:?}{content}? [y/N] ");
    let mut answer = String::new();
    let read = io::stdin().read_line(&mut answer);
    read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes")
}

/// Who made a cache's file, and how many seconds ago.
fn origin(place: &Place) -> Option<(String, u64)> {
    let path = match place {
        Place::Name(name) => Path::new(MEMORY).join(format!("{PREFIX}{name}")),
        Place::Path(path) => path.clone(),
    };
    let file = std::fs::metadata(path).ok()?;
    let born = file.created().or_else(|_| file.modified()).ok()?;
    let age = born.elapsed().map_or(0, |age| age.as_secs());
    let uid = file.uid().to_string();
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let named = |line: &str| {
        let mut parts = line.split(':');
        let name = parts.next()?;
        (parts.nth(1)? == uid).then(|| name.to_owned())
    };
    Some((users.lines().find_map(named).unwrap_or(uid), age))
}

/// An age for people.
fn age(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7200 => format!("{}m", seconds / 60),
        7200..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// Repairs and verifies.
pub(super) fn check(args: &NameArgs) -> Result<Exit, Fail> {
    let cache = attach(&args.name)?;
    let before = cache.stats();
    let swept = cache.recover().map_err(|error| refused(&args.name, "repair", &error))?;
    let mut report = cache.check();
    // Whoever writes meanwhile may be seen in the middle of it; damage stays.
    for _ in 0..20 {
        if report.is_ok() || others(&cache).is_empty() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
        report = cache.check();
    }
    let others = others(&cache).len();
    let recovered = cache.stats().recoveries - before.recoveries;
    if args.json {
        let found = report.as_ref().ok();
        let object = json!({
            "cache": args.name,
            "ok": report.is_ok(),
            "problem": report.as_ref().err(),
            "entries": found.map(|found| found.entries),
            "further_blocks": found.map(|found| found.further),
            "free_blocks": found.map(|found| found.free),
            "recovered_operations": recovered,
            "recovered_blocks": swept.orphans + swept.hidden,
            "other_processes": others,
        });
        say(&object.to_string());
        return Ok(if report.is_ok() { Exit::Fine } else { Exit::No });
    }
    match report {
        Ok(report) => {
            say(&format!(
                "{} {}: {} entries",
                paint("ok", Tone::Good),
                args.name,
                count(report.entries)
            ));
            say(&format!(
                "repaired: {recovered} operations of dead processes, {} of their blocks",
                swept.orphans + swept.hidden
            ));
            Ok(Exit::Fine)
        }
        Err(problem) if others > 0 => Err(Fail::misuse(
            format!("{} cannot be judged while others write", args.name),
            format!("{others} other processes are attached; seen last: {problem}"),
            "stop their writing and check again",
        )),
        Err(problem) => Err(Fail::no(
            format!("{} is damaged", args.name),
            problem,
            format!("quintet cache remove {0}, then create it again", args.name),
        )),
    }
}

/// Puts entries out.
pub(super) fn evict(args: &EvictArgs) -> Result<Exit, Fail> {
    let cache = attach(&args.name)?;
    let fail = |error| refused(&args.name, "evict from", &error);
    let mut handle = cache.handle().map_err(fail)?;
    let (expired, evicted) = match (args.unused, args.count) {
        (Some(time), count) => {
            let gone = handle.evict_unused(time, count.unwrap_or(usize::MAX));
            (0, gone.map_err(fail)?.len())
        }
        (None, Some(count)) => (0, handle.evict_oldest(count).map_err(fail)?.len()),
        (None, None) => {
            let (mut expired, mut evicted) = (0, 0);
            // A round is short; one that finds nothing is the last.
            loop {
                let done = handle.maintain().map_err(fail)?;
                expired += done.expired;
                evicted += done.evicted;
                if done.expired == 0 && done.evicted == 0 {
                    break (expired, evicted);
                }
            }
        }
    };
    match args.json {
        true => {
            say(&json!({"cache": args.name, "expired": expired, "evicted": evicted}).to_string())
        }
        false => say(&format!("{evicted} evicted, {expired} expired ones removed")),
    }
    Ok(Exit::Fine)
}

/// Empties a namespace, or all of them.
pub(super) fn flush(args: &FlushArgs) -> Result<Exit, Fail> {
    let cache = attach(&args.name)?;
    let done = match args.namespace.as_deref() {
        None => cache.clear(),
        Some(name) if args.remove => match cache.remove_namespace(name) {
            Ok(false) => return Ok(Exit::No),
            removed => removed.map(|_| ()),
        },
        name => match known_space(&cache, name) {
            Some(space) => cache.clear_namespace(space),
            None => return Ok(Exit::No),
        },
    };
    done.map_err(|error| refused(&args.name, "flush", &error))?;
    Ok(Exit::Fine)
}

/// Lists the caches.
pub(super) fn ls(args: &LsArgs) -> Result<Exit, Fail> {
    let mut rows = Vec::new();
    for name in names() {
        let place = place(&name);
        match TierCache::builder().any_owner().attach_read_only(&place) {
            Ok(cache) => rows.push((name, Some(cache), String::new())),
            // Something else of ours.
            Err(OpenError::Segment(SegmentError::Mismatch { field: "kind", .. })) => {}
            Err(OpenError::Segment(SegmentError::Foreign(_) | SegmentError::Name(_))) => {}
            Err(OpenError::Segment(SegmentError::NotAFile { .. })) => {}
            Err(error) => rows.push((name, None, error.to_string())),
        }
    }
    if !args.json && !rows.is_empty() {
        let head = format!(
            "{:<24}{:<12}{:>6}{:>12}{:>14}{:>7}{:>11}",
            "NAME", "OWNER", "AGE", "SIZE", "ENTRIES", "LOAD", "PROCESSES"
        );
        say(&paint(&head, Tone::Bold));
    }
    for (name, cache, why) in &rows {
        let Some(cache) = cache else {
            match args.json {
                true => say(&json!({"cache": name, "problem": why}).to_string()),
                false => {
                    let (name, why) = (printable(name), printable(why));
                    say(&format!("{name:<24} {}", paint(&why, Tone::Bad)));
                }
            }
            continue;
        };
        let (stats, processes) = (cache.stats(), others(cache).len());
        let path = noted(name).map(|path| path.display().to_string());
        let (owner, seconds) = origin(&place(name)).unwrap_or_default();
        if args.json {
            let object = json!({
                "cache": name,
                "path": path,
                "owner": owner,
                "age_s": seconds,
                "bytes": stats.segment_bytes,
                "entries": stats.entries,
                "load": stats.load(),
                "processes": processes,
            });
            say(&object.to_string());
        } else {
            let name = printable(name);
            say(&format!(
                "{name:<24}{owner:<12}{:>6}{:>12}{:>14}{:>6.0}%{processes:>11}{}",
                age(seconds),
                size(stats.segment_bytes),
                count(stats.entries),
                stats.load() * 100.0,
                path.map(|path| format!("  {}", printable(&path))).unwrap_or_default(),
            ));
        }
    }
    Ok(Exit::Fine)
}
