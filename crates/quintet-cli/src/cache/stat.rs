//! Counters and sizes, for people, programs and Prometheus.

use super::args::StatArgs;
use super::place::{look, others};
use super::units::size;
use crate::fail::{Exit, Fail};
use crate::ui::{Tone, count, paint, say};
use quintet::cache::{
    Attached, CacheStats, NamespaceStats, Policy, StoreState, TierCache, TierStats,
};
use serde_json::{Value, json};
use std::fmt::Write;

/// A figure: its name, whether it only grows, what it is, and its value.
type Figure = (&'static str, bool, &'static str, f64);

/// Prints them.
pub(super) fn run(args: &StatArgs) -> Result<Exit, Fail> {
    let cache = look(&args.name)?;
    let seen = Seen {
        name: &args.name,
        stats: cache.stats(),
        processes: others(&cache),
        spaces: spaces(&cache),
        tiers: tiers(&cache),
        policy: cache.policy(),
        suspects: cache.suspects(),
        store: cache.store_state(),
    };
    match (args.json, args.prometheus) {
        (true, _) => say(&object(&seen).to_string()),
        (_, true) => say(exposition(&seen).trim_end()),
        _ => say(page(&seen).trim_end()),
    }
    Ok(Exit::Fine)
}

/// A cache at one moment.
struct Seen<'s> {
    name: &'s str,
    stats: CacheStats,
    processes: Vec<Attached>,
    spaces: Vec<NamespaceStats>,
    tiers: Vec<TierStats>,
    policy: Policy,
    suspects: u64,
    store: Option<StoreState>,
}

/// What each tier holds, if there are several.
pub(super) fn tiers(cache: &TierCache) -> Vec<TierStats> {
    if cache.tiers() > 1 { cache.tier_stats() } else { Vec::new() }
}

/// How long the entries of a tier were not used: from the newest to the oldest.
fn unused(tier: &TierStats) -> String {
    let time = |time: Option<std::time::Duration>| {
        time.map_or("?".to_owned(), |time| format!("{} s", time.as_secs()))
    };
    if tier.entries == 0 {
        return "-".to_owned();
    }
    format!("{} to {}", time(tier.newest), time(tier.oldest))
}

/// A line for each tier, under a head.
pub(super) fn tier_lines(tiers: &[TierStats]) -> Vec<String> {
    let head = format!(
        "{:<6}{:>14}{:>12}{:>16}{:>16}   {}",
        "TIER", "ENTRIES", "BYTES", "HITS", "MOVED DOWN", "UNUSED FOR"
    );
    let row = |(number, tier): (usize, &TierStats)| {
        let (entries, bytes) = (count(tier.entries), size(tier.bytes));
        let (hits, demoted) = (count(tier.hits), count(tier.demoted));
        format!("{number:<6}{entries:>14}{bytes:>12}{hits:>16}{demoted:>16}   {}", unused(tier))
    };
    let rows = tiers.iter().enumerate().map(row);
    if tiers.is_empty() {
        return Vec::new();
    }
    std::iter::once(paint(&head, Tone::Bold)).chain(rows).collect()
}

/// A line for each process, under a head.
pub(super) fn process_lines(processes: &[Attached]) -> Vec<String> {
    let head = format!(
        "{:>8}{:>9}{:>14}{:>12}{:>12}{:>12}{:>12}  {:<9}  PROCESS",
        "PID", "HANDLES", "HITS", "MISSES", "INSERTS", "EVICTED", "STORED", "ROLES"
    );
    let row = |process: &Attached| {
        // Elsewhere the number is somebody else's here.
        let title = match process.here {
            true => std::fs::read_to_string(format!("/proc/{}/comm", process.pid)),
            false => Ok("in another pid namespace".to_owned()),
        };
        let title = title.unwrap_or_default();
        let roles = match process.roles.is_empty() {
            true => "-".to_owned(),
            false => process.roles.to_string(),
        };
        let holds = process.holds.map_or(String::new(), |holds| {
            format!(", has {} entries, {}", count(holds.entries), size(holds.bytes))
        });
        let [hits, misses, inserts, evicted] =
            [process.hits, process.misses, process.inserts, process.evicted].map(count);
        let stored = size(process.stored_bytes);
        format!(
            "{:>8}{:>9}{hits:>14}{misses:>12}{inserts:>12}{evicted:>12}{stored:>12}  {roles:<9}  {}{holds}",
            process.pid,
            process.handles,
            title.trim_end()
        )
    };
    std::iter::once(paint(&head, Tone::Bold)).chain(processes.iter().map(row)).collect()
}

/// What each namespace holds, if there are any with a name.
fn spaces(cache: &TierCache) -> Vec<NamespaceStats> {
    if cache.namespaces().len() > 1 { cache.namespace_stats() } else { Vec::new() }
}

fn figures(stats: &CacheStats, processes: &[Attached]) -> Vec<Figure> {
    vec![
        ("hits", true, "Lookups that found their key", stats.hits as f64),
        ("misses", true, "Lookups that did not", stats.misses as f64),
        ("hit_ratio", false, "Hits per lookup since the cache was created", stats.hit_ratio()),
        ("sets", true, "Values stored", stats.sets as f64),
        ("removes", true, "Keys removed", stats.removes as f64),
        ("evictions_lru", true, "Entries evicted as the policy chose them", stats.evicted as f64),
        ("evictions_window", true, "Entries evicted from a full window", stats.forced as f64),
        ("evictions_expired", true, "Entries removed after their time", stats.expired as f64),
        ("delivered", true, "Evicted entries that a sink accepted", stats.delivered as f64),
        ("sink_errors", true, "Evicted entries that a sink refused", stats.sink_errors as f64),
        ("computed", true, "Values computed by get_or_compute", stats.computed as f64),
        ("refused", true, "Sets refused for lack of room", stats.refused as f64),
        (
            "recoveries",
            true,
            "Operations of dead processes completed or undone",
            stats.recoveries as f64,
        ),
        ("recovered_blocks", true, "Blocks of dead processes found", stats.orphans as f64),
        ("sweeps", true, "Searches for such blocks", stats.sweeps as f64),
        ("store_hits", true, "Lookups that the store answered", stats.store_hits as f64),
        (
            "store_misses",
            true,
            "Lookups that the store could not answer",
            stats.store_misses as f64,
        ),
        ("store_writes", true, "Records put into the store", stats.store_writes as f64),
        ("store_queue", false, "Entries on their way to the store", stats.store_queue as f64),
        ("store_errors", true, "Operations of the store that failed", stats.store_errors as f64),
        ("store_drops", true, "Entries dropped instead of stored", stats.store_drops as f64),
        (
            "store_refused",
            true,
            "Values of the store that were too old",
            stats.store_refused as f64,
        ),
        ("entries", false, "Entries", stats.entries as f64),
        ("load", false, "Blocks in use per block", stats.load()),
        (
            "used_bytes",
            false,
            "Bytes of blocks in use",
            (stats.used_blocks * stats.block_bytes) as f64,
        ),
        ("block_bytes", false, "Bytes of a block", stats.block_bytes as f64),
        ("blocks", false, "Blocks", stats.blocks as f64),
        ("bytes", false, "Bytes of the cache, all told", stats.segment_bytes as f64),
        ("max_value_bytes", false, "The longest value", stats.max_value as f64),
        ("handles", false, "Handles in use", stats.seats as f64),
        ("max_handles", false, "Handles there can be", stats.max_seats as f64),
        ("processes", false, "Attached processes", processes.len() as f64),
    ]
}

/// One object, `pids` included.
fn object(seen: &Seen<'_>) -> Value {
    let Seen { name, stats, processes, spaces, tiers, policy, suspects, store } = seen;
    let mut object = serde_json::Map::new();
    object.insert("cache".to_owned(), (*name).into());
    for (figure, _, _, value) in figures(stats, processes) {
        let whole = value.fract() == 0.0 && !matches!(figure, "hit_ratio" | "load");
        let value = if whole { json!(value as u64) } else { json!(value) };
        object.insert(figure.to_owned(), value);
    }
    let pids: Vec<u32> = processes.iter().map(|process| process.pid).collect();
    object.insert("policy".to_owned(), policy.name().into());
    object.insert("pids".to_owned(), pids.into());
    object.insert("suspects".to_owned(), (*suspects).into());
    let process = |it: &Attached| {
        json!({"pid": it.pid, "here": it.here, "handles": it.handles, "hits": it.hits,
               "misses": it.misses, "inserts": it.inserts, "removes": it.removes,
               "evicted": it.evicted, "demoted": it.demoted, "delivered": it.delivered,
               "stored_bytes": it.stored_bytes, "roles": it.roles.to_string(),
               "held_entries": it.holds.map(|holds| holds.entries),
               "held_bytes": it.holds.map(|holds| holds.bytes),
               "suspected": it.holds.map(|holds| holds.suspected)})
    };
    object.insert("members".to_owned(), processes.iter().map(process).collect());
    let space = |space: &NamespaceStats| {
        let NamespaceStats { name, entries, bytes, hits, quota, holds, .. } = space;
        json!({"namespace": name, "entries": entries, "bytes": bytes, "hits": hits,
               "quota_entries": quota.entries, "quota_bytes": quota.bytes,
               "quota_inserts_per_second": quota.inserts_per_second,
               "held_entries": holds.map(|holds| holds.entries),
               "suspected": holds.map(|holds| holds.suspected)})
    };
    if let Some(StoreState { address, closed, last_error, left_alone, .. }) = store {
        let state = json!({"address": address, "closed": closed, "last_error": last_error,
                           "left_alone": left_alone});
        object.insert("store".to_owned(), state);
    }
    object.insert("namespaces".to_owned(), spaces.iter().map(space).collect());
    let tier = |tier: &TierStats| {
        let TierStats { entries, bytes, hits, demoted, oldest, newest, .. } = tier;
        let [oldest, newest] = [oldest, newest].map(|time| time.map(|time| time.as_secs()));
        json!({"entries": entries, "bytes": bytes, "hits": hits, "demoted": demoted,
               "oldest_seconds": oldest, "newest_seconds": newest})
    };
    object.insert("tiers".to_owned(), tiers.iter().map(tier).collect());
    Value::Object(object)
}

/// The text format of Prometheus, version 0.0.4.
fn exposition(seen: &Seen<'_>) -> String {
    let Seen { name, stats, processes, spaces, tiers, policy, .. } = seen;
    let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let label = quoted(name);
    let mut text = String::new();
    for (figure, grows, about, value) in figures(stats, processes) {
        let (suffix, kind) = if grows { ("_total", "counter") } else { ("", "gauge") };
        let metric = format!("quintet_cache_{figure}{suffix}");
        // Writing to a string cannot fail.
        let _ = writeln!(text, "# HELP {metric} {about}.\n# TYPE {metric} {kind}");
        let _ = writeln!(text, "{metric}{{cache=\"{label}\"}} {value}");
    }
    let metric = "quintet_cache_policy";
    let _ = writeln!(text, "# HELP {metric} Which entry leaves.\n# TYPE {metric} gauge");
    let _ = writeln!(text, "{metric}{{cache=\"{label}\",policy=\"{policy}\"}} 1");
    type Part = (&'static str, &'static str, &'static str, fn(&NamespaceStats) -> u64);
    let parts: [Part; 3] = [
        ("entries", "gauge", "Entries of a namespace", |space| space.entries),
        ("bytes", "gauge", "Bytes of the blocks of a namespace", |space| space.bytes),
        ("hits_total", "counter", "Lookups in a namespace that found their key", |space| {
            space.hits
        }),
    ];
    for (part, kind, about, value) in parts.into_iter().filter(|_| !spaces.is_empty()) {
        let metric = format!("quintet_cache_namespace_{part}");
        let _ = writeln!(text, "# HELP {metric} {about}.\n# TYPE {metric} {kind}");
        for space in spaces {
            let (namespace, value) = (quoted(&space.name), value(space));
            let labels = format!("cache=\"{label}\",namespace=\"{namespace}\"");
            let _ = writeln!(text, "{metric}{{{labels}}} {value}");
        }
    }
    type Figure = (&'static str, &'static str, &'static str, fn(&TierStats) -> u64);
    let figures: [Figure; 4] = [
        ("entries", "gauge", "Entries of a tier", |tier| tier.entries),
        ("bytes", "gauge", "Bytes of the blocks of a tier", |tier| tier.bytes),
        ("hits_total", "counter", "Lookups that found their key in a tier", |tier| tier.hits),
        ("demoted_total", "counter", "Entries that moved to the next tier", |tier| tier.demoted),
    ];
    for (figure, kind, about, value) in figures.into_iter().filter(|_| !tiers.is_empty()) {
        let metric = format!("quintet_cache_tier_{figure}");
        let _ = writeln!(text, "# HELP {metric} {about}.\n# TYPE {metric} {kind}");
        for (number, tier) in tiers.iter().enumerate() {
            let value = value(tier);
            let _ = writeln!(text, "{metric}{{cache=\"{label}\",tier=\"{number}\"}} {value}");
        }
    }
    text
}

/// What is to be known of a store.
fn store_rows(state: &StoreState, stats: &CacheStats) -> Vec<(&'static str, String)> {
    let mut rows = vec![
        ("store", state.address.clone()),
        (
            "store hits",
            format!("{}, {} misses", count(stats.store_hits), count(stats.store_misses)),
        ),
        (
            "store writes",
            format!("{}, {} under way", count(stats.store_writes), count(stats.store_queue)),
        ),
        (
            "store errors",
            format!(
                "{}, {} entries dropped, {} values too old",
                count(stats.store_errors),
                count(stats.store_drops),
                count(stats.store_refused)
            ),
        ),
    ];
    rows.extend(state.closed.clone().map(|why| ("store closed", why)));
    rows.extend(state.last_error.clone().map(|why| ("last error", why)));
    rows
}

/// A page for people.
fn page(seen: &Seen<'_>) -> String {
    let Seen { name, stats, processes, spaces, tiers, policy, suspects, store } = seen;
    let used = stats.used_blocks * stats.block_bytes;
    let pids: Vec<String> = processes.iter().map(|process| process.pid.to_string()).collect();
    let rows = [
        ("entries", count(stats.entries)),
        (
            "load",
            format!(
                "{:.1} %, {} in use of {}",
                stats.load() * 100.0,
                size(used),
                size(stats.segment_bytes)
            ),
        ),
        ("longest value", size(stats.max_value)),
        ("policy", policy.to_string()),
        ("hits", count(stats.hits)),
        ("misses", count(stats.misses)),
        ("hit ratio", format!("{:.1} %", stats.hit_ratio() * 100.0)),
        ("sets", count(stats.sets)),
        ("removes", count(stats.removes)),
        (
            "evictions",
            format!(
                "{} by the policy, {} from full windows, {} expired",
                count(stats.evicted),
                count(stats.forced),
                count(stats.expired)
            ),
        ),
        ("refused sets", count(stats.refused)),
        (
            "recoveries",
            format!("{} operations, {} blocks", count(stats.recoveries), count(stats.orphans)),
        ),
        ("handles", format!("{} of {}", stats.seats, stats.max_seats)),
        ("processes", format!("{} {}", processes.len(), pids.join(" ")).trim_end().to_owned()),
    ];
    let mut text = paint(name, Tone::Bold) + "\n";
    for (label, value) in rows {
        let _ = writeln!(text, "{label:<15}{value}");
    }
    for (label, value) in store.iter().flat_map(|state| store_rows(state, stats)) {
        let _ = writeln!(text, "{label:<15}{value}");
    }
    if *suspects > 0 {
        let _ =
            writeln!(text, "{:<15}{} entries beyond their quotas", "suspects", count(*suspects));
    }
    let members = if processes.is_empty() { Vec::new() } else { process_lines(processes) };
    for lines in [tier_lines(tiers), members] {
        if !lines.is_empty() {
            let _ = writeln!(text, "\n{}", lines.join("\n"));
        }
    }
    if !spaces.is_empty() {
        let head = format!("{:<24}{:>14}{:>12}{:>14}", "NAMESPACE", "ENTRIES", "BYTES", "HITS");
        let _ = writeln!(text, "\n{}", paint(&head, Tone::Bold));
    }
    for space in spaces {
        let name = if space.name.is_empty() { "(unnamed)" } else { &space.name };
        let (entries, bytes, hits) = (count(space.entries), size(space.bytes), count(space.hits));
        let _ = writeln!(text, "{:<24}{entries:>14}{bytes:>12}{hits:>14}", name.escape_debug());
    }
    text
}
