//! The options of `quintet cache`.

use super::units::{bytes, lifetime, mode};
use clap::{Args, Subcommand};
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
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Make a cache
    Create(CreateArgs),
    /// Store a value
    Set(SetArgs),
    /// Print a value: its bytes and nothing else; exit code 1 if the key is absent
    Get(KeyArgs),
    /// Remove a key; exit code 1 if it was absent
    Del(KeyArgs),
    /// Add to a decimal number and print the sum
    Incr(IncrArgs),
    /// List the keys; stops nobody
    Scan(ScanArgs),
    /// Print counters and sizes
    Stat(StatArgs),
    /// Watch a cache: rates, hit ratio, load, attached processes (q ends it)
    Top(TopArgs),
    /// Repair what killed processes left, then verify everything; exit code 1 if something is wrong
    Check(NameArgs),
    /// Put out the least recently used entries
    Evict(EvictArgs),
    /// Empty a namespace, or the whole cache, at once
    Flush(FlushArgs),
    /// Remove a cache; processes that use it go on undisturbed
    Remove(RemoveArgs),
    /// List the caches
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
    /// Bytes of a block, a power of two from 128 to 4096: entries take whole blocks, and long values are faster in longer ones [default: 128]
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub(crate) block: Option<u64>,
    /// Who may use it, as of chmod: every user needs to read and write
    #[arg(long, value_parser = mode, default_value = "0600")]
    pub(crate) mode: u32,
    /// Be content with a cache of this name that is there, whatever its sizes
    #[arg(long)]
    pub(crate) if_absent: bool,
    /// Keep it in this file, which outlives a restart of the machine
    #[arg(long, value_name = "FILE")]
    pub(crate) path: Option<PathBuf>,
    /// Namespaces there can be, up to 65535 [default: as many as fit in capacity/64, at 128 bytes each]
    #[arg(long, value_name = "N")]
    pub(crate) namespaces: Option<u32>,
    /// Never evict: a set that finds no room fails
    #[arg(long)]
    pub(crate) no_evict: bool,
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
    pub(crate) key: OsString,
    /// The value; - reads it from standard input
    #[arg(allow_negative_numbers = true)]
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
    pub(crate) key: OsString,
    #[command(flatten)]
    pub(crate) space: SpaceArgs,
}

/// Options of `cache incr`.
#[derive(Debug, Args)]
pub(crate) struct IncrArgs {
    /// The cache
    pub(crate) name: String,
    /// The key
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
    /// How many at most [default: those that have expired, and as many as a reserve of free room needs; with --unused, all]
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
}

/// Options of `cache ls`.
#[derive(Debug, Args)]
pub(crate) struct LsArgs {
    /// One JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
}
