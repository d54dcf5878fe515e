//! The options of `quintet cache`.

use super::units::{bytes, lifetime, mode, policy};
use clap::{Args, Subcommand};
use quintet::cache::Policy;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Options of `cache`.
#[derive(Debug, Args)]
#[command(
    after_help = "A cache lies in memory that processes share, under its name, until it is removed or the machine \
restarts. No server runs.\n\nExample:\n  quintet cache create sessions --capacity 64MiB --if-absent\n  \
quintet cache set sessions user:1 Ada --ttl 10m\n  quintet cache get sessions user:1\n  quintet cache top sessions\n\n\
A NAME with a slash is the path of a cache's file."
)]
pub(crate) struct CacheArgs {
    /// What to do.
    #[command(subcommand)]
    pub(crate) verb: Verb,
    /// Use a cache that another user made: whoever made it can change what is in it
    #[arg(long, global = true)]
    pub(crate) any_owner: bool,
    /// With --any-owner: open the store that such a cache names, too
    #[arg(long, global = true)]
    pub(crate) any_store: bool,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Make a cache
    #[command(
        after_help = "Example:\n  quintet cache create sessions --capacity 64MiB --if-absent"
    )]
    Create(CreateArgs),
    /// Store a value
    #[command(after_help = "Example:\n  quintet cache set sessions user:1 Ada --ttl 10m")]
    Set(SetArgs),
    /// Store a value if the key is absent; exit code 1 if it is there
    #[command(after_help = "Example:\n  quintet cache add sessions lock $$ --ttl 30s")]
    Add(SetArgs),
    /// Replace a value if it is the one expected; exit code 1 if it is not
    #[command(after_help = "Example:\n  quintet cache cas sessions state idle busy")]
    Cas(CasArgs),
    /// Print a value: its bytes and nothing else; exit code 1 if the key is absent
    #[command(after_help = "Example:\n  quintet cache get sessions user:1")]
    Get(KeyArgs),
    /// Remove a key; exit code 1 if it was absent
    #[command(after_help = "Example:\n  quintet cache del sessions user:1")]
    Del(KeyArgs),
    /// Give a key another time to live; exit code 1 if it is absent
    #[command(after_help = "Example:\n  quintet cache touch sessions user:1 --ttl 10m")]
    Touch(TouchArgs),
    /// Print how long a key will live, or never; exit code 1 if it is absent
    #[command(after_help = "Example:\n  quintet cache ttl sessions user:1")]
    Ttl(KeyArgs),
    /// Add to a decimal number and print the sum
    #[command(after_help = "Example:\n  quintet cache incr sessions visits 1 --initial 0")]
    Incr(IncrArgs),
    /// Print many values, a line each: the key, a tab, the value; exit code 1 if one is absent
    #[command(after_help = "Example:\n  quintet cache mget sessions user:1 user:2")]
    Mget(MgetArgs),
    /// Store many values
    #[command(after_help = "Example:\n  quintet cache mset sessions user:1 Ada user:2 Grace")]
    Mset(MsetArgs),
    /// List the keys; stops nobody
    #[command(after_help = "Example:\n  quintet cache scan sessions --prefix user: --values")]
    Scan(ScanArgs),
    /// Print every entry as a line of JSON, for load
    #[command(after_help = "Example:\n  quintet cache dump sessions > sessions.jsonl")]
    Dump(DumpArgs),
    /// Store the entries of standard input, a line of JSON each
    #[command(after_help = "Example:\n  quintet cache load sessions < sessions.jsonl")]
    Load(LoadArgs),
    /// Print counters and sizes
    #[command(after_help = "Example:\n  quintet cache stat sessions --json")]
    Stat(StatArgs),
    /// Watch a cache: rates, hit ratio, load, attached processes (q ends it)
    #[command(after_help = "Example:\n  quintet cache top sessions --every 500ms")]
    Top(TopArgs),
    /// Repair what killed processes left, then verify everything; exit code 1 if something is wrong
    #[command(after_help = "Example:\n  quintet cache check sessions")]
    Check(NameArgs),
    /// Put out the least recently used entries
    #[command(after_help = "Example:\n  quintet cache evict sessions --unused 1h")]
    Evict(EvictArgs),
    /// Hold a namespace, or each process, to a quota; print what they are held to
    #[command(
        after_help = "What is beyond a quota leaves first, as soon as somebody needs the room; nothing is refused.\n\n\
Examples:\n  quintet cache create sessions --capacity 64MiB --quotas\n  \
quintet cache quota sessions --namespace guests --entries 10000\n  \
quintet cache quota sessions --each-process --inserts 500 --bytes 8MiB\n  quintet cache quota sessions"
    )]
    Quota(QuotaArgs),
    /// Empty a namespace, or the whole cache, at once
    #[command(after_help = "Example:\n  quintet cache flush sessions --namespace drafts")]
    Flush(FlushArgs),
    /// Remove a cache; processes that use it go on undisturbed
    #[command(after_help = "Example:\n  quintet cache remove sessions --yes")]
    Remove(RemoveArgs),
    /// List the caches
    #[command(after_help = "Example:\n  quintet cache ls")]
    Ls(LsArgs),
}

/// Options of `cache create`.
#[derive(Debug, Args)]
pub(crate) struct CreateArgs {
    /// Its name: no slash
    pub(crate) name: String,
    /// Bytes of memory, all told, for example 64MiB
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub(crate) capacity: u64,
    /// The longest value [default: the smaller of 1 MiB and capacity/64]
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub(crate) max_value: Option<u64>,
    /// Bytes of a block, a power of two from 128 to 4096: entries take whole blocks, and long
    /// values are faster in longer ones [default: 128, more for a longest value above 1 MiB]
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub(crate) block: Option<u64>,
    /// Who may use it, as of chmod: every user needs to read and write [default: 0600]
    #[arg(long, value_parser = mode)]
    pub(crate) mode: Option<u32>,
    /// Handles that can write at once, in all processes [default: a 32nd of the capacity, up to
    /// 4096]
    #[arg(long, value_name = "N")]
    pub(crate) handles: Option<u32>,
    /// Processes that can write at once [default: as many as handles]
    #[arg(long, value_name = "N")]
    pub(crate) processes: Option<u32>,
    /// Be content with a cache of this name that is there, if it is what these options ask for
    #[arg(long)]
    pub(crate) if_absent: bool,
    /// With --if-absent: whatever its sizes and mode
    #[arg(long, requires = "if_absent")]
    pub(crate) any_size: bool,
    /// Keep it in this file, which outlives a restart of the machine
    #[arg(long, value_name = "FILE")]
    pub(crate) path: Option<PathBuf>,
    /// Namespaces there can be, up to 65535 [default: as many as fit in capacity/64, at 128 bytes
    /// each]
    #[arg(long, value_name = "N")]
    pub(crate) namespaces: Option<u32>,
    /// Give every entry a sum, which every lookup verifies
    #[arg(long)]
    pub(crate) checksums: bool,
    /// Never evict: a set that finds no room fails
    #[arg(long)]
    pub(crate) no_evict: bool,
    /// Tiers by age, 1 to 4: the oldest entries of a full one move to the next, and leave from the
    /// last [default: 1]
    #[arg(long, value_name = "N")]
    pub(crate) tiers: Option<u32>,
    /// Who leaves when room is needed: lru, s3fifo or sieve [default: lru]
    #[arg(long, value_name = "POLICY", value_parser = policy)]
    pub(crate) policy: Option<Policy>,
    /// With --tiers: what is used in an older tier moves to the first
    #[arg(long, requires = "tiers")]
    pub(crate) promote: bool,
    /// Keep accounts, so that namespaces and processes can be held to quotas (see cache quota)
    #[arg(long)]
    pub(crate) quotas: bool,
    /// Where entries go that leave, and are looked for then: none, lmdb:PATH?size=8GiB, or
    /// redis://HOST:PORT[,HOST:PORT...]. Credentials are taken from the address or
    /// QUINTET_STORE_USER and QUINTET_STORE_PASSWORD, and never recorded [default: none]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) store: Option<String>,
    /// With --store: find what earlier caches, and other machines, left there
    #[arg(long, requires = "store")]
    pub(crate) adopt_store: bool,
    /// With --store: keep in memory what is found there
    #[arg(long, requires = "store")]
    pub(crate) keep_found: bool,
    /// With --store: keep in memory that a key is not there either
    #[arg(long, requires = "store")]
    pub(crate) keep_absent: bool,
    /// With --store: where that does not keep up, drop entries instead of waiting
    #[arg(long, requires = "store")]
    pub(crate) drop_when_behind: bool,
}

/// Options of `cache quota`.
#[derive(Debug, Args)]
pub(crate) struct QuotaArgs {
    /// The cache
    pub(crate) name: String,
    /// Whose quota: this namespace's [default: the one without a name]
    #[arg(long, value_name = "NS")]
    pub(crate) namespace: Option<String>,
    /// Whose quota: that of every process, the same for each
    #[arg(long, conflicts_with = "namespace")]
    pub(crate) each_process: bool,
    /// The most entries
    #[arg(long, value_name = "N")]
    pub(crate) entries: Option<u64>,
    /// The most bytes, in whole blocks
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub(crate) bytes: Option<u64>,
    /// The most inserts in a second
    #[arg(long, value_name = "N")]
    pub(crate) inserts: Option<u32>,
    /// Lift the quota
    #[arg(long, conflicts_with_all = ["entries", "bytes", "inserts"])]
    pub(crate) none: bool,
    /// One JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
}

/// Whose keys are meant.
#[derive(Debug, Args)]
pub(crate) struct SpaceArgs {
    /// The namespace of the key [default: the one without a name]
    #[arg(long, value_name = "NS")]
    pub(crate) namespace: Option<String>,
}

/// Options of `cache set`.
#[derive(Debug, Args)]
pub(crate) struct SetArgs {
    /// The cache
    pub(crate) name: String,
    /// The key
    #[arg(allow_hyphen_values = true)]
    pub(crate) key: OsString,
    /// The value; - reads it from standard input
    #[arg(allow_hyphen_values = true)]
    pub(crate) value: OsString,
    /// How long it lives, for example 10s, 500ms, 2h [default: for ever]
    #[arg(long, value_name = "TIME", value_parser = lifetime)]
    pub(crate) ttl: Option<Duration>,
    #[command(flatten)]
    pub(crate) space: SpaceArgs,
}

/// A cache and a key.
#[derive(Debug, Args)]
pub(crate) struct KeyArgs {
    /// The cache
    pub(crate) name: String,
    /// The key
    #[arg(allow_hyphen_values = true)]
    pub(crate) key: OsString,
    #[command(flatten)]
    pub(crate) space: SpaceArgs,
}

/// Options of `cache touch`.
#[derive(Debug, Args)]
pub(crate) struct TouchArgs {
    /// The cache
    pub(crate) name: String,
    /// The key
    #[arg(allow_hyphen_values = true)]
    pub(crate) key: OsString,
    /// How long it lives from now on [default: for ever]
    #[arg(long, value_name = "TIME", value_parser = lifetime)]
    pub(crate) ttl: Option<Duration>,
    #[command(flatten)]
    pub(crate) space: SpaceArgs,
}

/// Options of `cache cas`.
#[derive(Debug, Args)]
pub(crate) struct CasArgs {
    /// The cache
    pub(crate) name: String,
    /// The key
    #[arg(allow_hyphen_values = true)]
    pub(crate) key: OsString,
    /// The value that is expected
    #[arg(allow_hyphen_values = true)]
    pub(crate) old: OsString,
    /// The value that replaces it; - reads it from standard input
    #[arg(allow_hyphen_values = true)]
    pub(crate) new: OsString,
    /// How long it lives [default: for ever]
    #[arg(long, value_name = "TIME", value_parser = lifetime)]
    pub(crate) ttl: Option<Duration>,
    #[command(flatten)]
    pub(crate) space: SpaceArgs,
}

/// Options of `cache mget`.
#[derive(Debug, Args)]
pub(crate) struct MgetArgs {
    /// The cache
    pub(crate) name: String,
    /// The keys; behind -- if one begins with a hyphen
    #[arg(required = true, allow_negative_numbers = true)]
    pub(crate) keys: Vec<OsString>,
    /// One JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) space: SpaceArgs,
}

/// Options of `cache mset`.
#[derive(Debug, Args)]
pub(crate) struct MsetArgs {
    /// The cache
    pub(crate) name: String,
    /// Keys, each with its value behind it; behind -- if one begins with a hyphen
    #[arg(required = true, allow_negative_numbers = true, value_name = "KEY VALUE")]
    pub(crate) pairs: Vec<OsString>,
    /// How long they live [default: for ever]
    #[arg(long, value_name = "TIME", value_parser = lifetime)]
    pub(crate) ttl: Option<Duration>,
    #[command(flatten)]
    pub(crate) space: SpaceArgs,
}

/// Options of `cache dump`.
#[derive(Debug, Args)]
pub(crate) struct DumpArgs {
    /// The cache
    pub(crate) name: String,
}

/// Options of `cache load`.
#[derive(Debug, Args)]
pub(crate) struct LoadArgs {
    /// The cache
    pub(crate) name: String,
}

/// Options of `cache incr`.
#[derive(Debug, Args)]
pub(crate) struct IncrArgs {
    /// The cache
    pub(crate) name: String,
    /// The key
    #[arg(allow_hyphen_values = true)]
    pub(crate) key: OsString,
    /// What to add
    #[arg(default_value_t = 1, allow_negative_numbers = true)]
    pub(crate) by: i64,
    /// What an absent key counts as
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true)]
    pub(crate) initial: i64,
    /// How long a key lives that was absent [default: for ever]
    #[arg(long, value_name = "TIME", value_parser = lifetime)]
    pub(crate) ttl: Option<Duration>,
    #[command(flatten)]
    pub(crate) space: SpaceArgs,
}

/// Options of `cache scan`.
#[derive(Debug, Args)]
pub(crate) struct ScanArgs {
    /// The cache
    pub(crate) name: String,
    /// Only keys that begin so
    #[arg(long, value_name = "TEXT")]
    pub(crate) prefix: Option<OsString>,
    /// Print values as well, after a tab
    #[arg(long)]
    pub(crate) values: bool,
    /// Stop after so many
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
    /// One JSON object per line, with value, time to live and namespace
    #[arg(long)]
    pub(crate) json: bool,
    /// The keys of every namespace
    #[arg(long, conflicts_with = "namespace")]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) space: SpaceArgs,
}

/// Options of `cache stat`.
#[derive(Debug, Args)]
pub(crate) struct StatArgs {
    /// The cache
    pub(crate) name: String,
    /// One JSON object
    #[arg(long, conflicts_with = "prometheus")]
    pub(crate) json: bool,
    /// The text format of Prometheus
    #[arg(long)]
    pub(crate) prometheus: bool,
}

/// Options of `cache top`.
#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    /// The cache
    pub(crate) name: String,
    /// How often to look
    #[arg(long, value_name = "TIME", value_parser = lifetime, default_value = "1s")]
    pub(crate) every: Duration,
}

/// A cache.
#[derive(Debug, Args)]
pub(crate) struct NameArgs {
    /// The cache
    pub(crate) name: String,
    /// One JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Options of `cache evict`.
#[derive(Debug, Args)]
pub(crate) struct EvictArgs {
    /// The cache
    pub(crate) name: String,
    /// How many at most [default: those that have expired, and as many as a reserve of free room
    /// needs; with --unused, all]
    #[arg(long, value_name = "N")]
    pub(crate) count: Option<usize>,
    /// Only entries that were not used for so long, for example 10m; known up to 16 s or a seventh
    #[arg(long, value_name = "TIME", value_parser = lifetime)]
    pub(crate) unused: Option<Duration>,
    /// One JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Options of `cache flush`.
#[derive(Debug, Args)]
pub(crate) struct FlushArgs {
    /// The cache
    pub(crate) name: String,
    /// Only this namespace [default: every one]
    #[arg(long, value_name = "NS")]
    pub(crate) namespace: Option<String>,
    /// Remove the namespace as well, so that another one can take its place
    #[arg(long, requires = "namespace")]
    pub(crate) remove: bool,
}

/// Options of `cache remove`.
#[derive(Debug, Args)]
pub(crate) struct RemoveArgs {
    /// The cache
    pub(crate) name: String,
    /// Do not ask, on a terminal either
    #[arg(long, short)]
    pub(crate) yes: bool,
}

/// Options of `cache ls`.
#[derive(Debug, Args)]
pub(crate) struct LsArgs {
    /// One JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
}
