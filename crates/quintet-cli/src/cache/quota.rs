//! What namespaces and processes are held to.

use super::args::QuotaArgs;
use super::place::{attach, look, printable, refused};
use super::units::size;
use crate::fail::{Exit, Fail};
use crate::ui::{Tone, count, paint, say};
use quintet::cache::{Quota, TierCache};
use serde_json::json;

/// Sets a quota, or prints them all.
pub(super) fn run(args: &QuotaArgs) -> Result<Exit, Fail> {
    let asked = (args.entries, args.bytes, args.inserts);
    if asked == (None, None, None) && !args.none {
        return show(args);
    }
    let cache = attach(&args.name)?;
    let mut quota = Quota::default();
    (quota.entries, quota.bytes, quota.inserts_per_second) = asked;
    let set = match args.each_process {
        true => cache.set_process_quota(quota),
        false => {
            let space = cache.namespace(args.namespace.as_deref().unwrap_or_default());
            space.and_then(|space| cache.set_quota(space, quota))
        }
    };
    set.map_err(|error| refused(&args.name, "set a quota of", &error))?;
    Ok(Exit::Fine)
}

/// Whose quota, what it is, and what they have within it.
type Line = (Option<String>, Quota, Option<quintet::cache::Holding>);

fn lines(cache: &TierCache) -> Vec<Line> {
    let spaces = cache.namespace_stats().into_iter();
    let mut lines: Vec<Line> =
        spaces.map(|space| (Some(space.name), space.quota, space.holds)).collect();
    lines.push((None, cache.process_quota(), None));
    lines
}

fn show(args: &QuotaArgs) -> Result<Exit, Fail> {
    let cache = look(&args.name)?;
    let wanted = |whose: &Option<String>| match (args.each_process, &args.namespace) {
        (true, _) => whose.is_none(),
        (_, Some(name)) => whose.as_ref() == Some(name),
        _ => true,
    };
    let lines = lines(&cache).into_iter().filter(|(whose, ..)| wanted(whose));
    if !args.json {
        let head = ["ENTRIES", "BYTES", "INSERTS/S", "HAS", "IN BYTES", "SUSPECTED"];
        let [entries, bytes, inserts, has, in_bytes, suspected] = head;
        let head = format!(
            "{:<24}{entries:>12}{bytes:>12}{inserts:>12}{has:>12}{in_bytes:>12}{suspected:>12}",
            "WHOSE"
        );
        say(&paint(&head, Tone::Bold));
    }
    for (whose, quota, holds) in lines {
        if args.json {
            say(&json!({
                "namespace": whose, "each_process": whose.is_none(), "entries": quota.entries,
                "bytes": quota.bytes, "inserts_per_second": quota.inserts_per_second,
                "held_entries": holds.map(|holds| holds.entries),
                "held_bytes": holds.map(|holds| holds.bytes),
                "suspected": holds.map(|holds| holds.suspected),
            })
            .to_string());
            continue;
        }
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let whose = match whose.as_deref() {
            None => "(each process)".to_owned(),
            Some("") => "(unnamed)".to_owned(),
            Some(name) => printable(name),
        };
        let entries = or_dash(quota.entries.map(count));
        let bytes = or_dash(quota.bytes.map(size));
        let inserts = or_dash(quota.inserts_per_second.map(|most| count(most.into())));
        let has = or_dash(holds.map(|holds| count(holds.entries)));
        let in_bytes = or_dash(holds.map(|holds| size(holds.bytes)));
        let suspected = or_dash(holds.map(|holds| count(holds.suspected)));
        say(&format!(
            "{whose:<24}{entries:>12}{bytes:>12}{inserts:>12}{has:>12}{in_bytes:>12}{suspected:>12}"
        ));
    }
    Ok(Exit::Fine)
}
