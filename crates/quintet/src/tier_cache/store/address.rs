//! Names of stores: what a user types, and what a segment records.

use super::{Discard, Store, StoreError};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

const FORMS: &str = "none, lmdb:PATH?size=8GiB, or redis://HOST:PORT[,HOST:PORT...]";
const LMDB_FORM: &str = "lmdb:PATH?size=8GiB&sync=meta";
const REDIS_FORM: &str =
    "redis://[USER:PASSWORD@]HOST:PORT[,HOST:PORT...][/DB][?prefix=P&timeout=1s&cluster=yes]";
const REDIS_PORT: u16 = 6379;
const ESCAPES: &str = "passwords and prefixes write : / ? @ & % as %XX";
/// How long a server may take to answer, unless the address says otherwise.
const TIMEOUT: Duration = Duration::from_secs(1);
/// What the keys in a server begin with, unless the address says otherwise.
const PREFIX: &str = "quintet:";

/// What a store on disk is sure of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum StoreSync {
    /// After power loss the store opens and may lack the newest batch (`sync=meta`).
    #[default]
    Meta,
    /// After power loss the store opens and lacks nothing that was acknowledged (`sync=full`).
    Full,
    /// Nothing is waited for: after power loss the store may not open and has to be removed
    /// (`sync=none`). The death of a process does no harm.
    None,
}

/// Who one is to a server. Shown nowhere, recorded nowhere.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Credentials {
    /// The user, where the server has several.
    pub user: Option<String>,
    /// The password.
    pub password: Option<String>,
}

impl Credentials {
    /// Those of the environment: `QUINTET_STORE_USER` and `QUINTET_STORE_PASSWORD`.
    pub fn from_env() -> Self {
        let of = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        Self { user: of("QUINTET_STORE_USER"), password: of("QUINTET_STORE_PASSWORD") }
    }

    fn is_empty(&self) -> bool {
        self.user.is_none() && self.password.is_none()
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(if self.is_empty() { "none" } else { "not shown" })
    }
}

/// The name of a store. Printed it has no credentials: so it can be recorded, and whoever opens it
/// brings their own.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum StoreAddress {
    /// [`Discard`]: `none`.
    None,
    /// A file of LMDB's: `lmdb:PATH?size=8GiB&sync=meta`.
    Lmdb {
        /// The directory that holds it, from the root.
        path: PathBuf,
        /// The most bytes of the file: what a store that is there was made with, or 1 GiB.
        size: Option<u64>,
        /// What it is sure of.
        sync: StoreSync,
    },
    /// One server, or the cluster that several nodes lead to: `redis://HOST:PORT[,HOST:PORT...]`,
    /// with `rediss` through TLS.
    Redis {
        /// Hosts and ports.
        nodes: Vec<(String, u16)>,
        /// The nodes belong to a cluster.
        cluster: bool,
        /// Speak through TLS.
        tls: bool,
        /// The number of the database.
        database: i64,
        /// What every key there begins with.
        prefix: String,
        /// How long it may take to answer.
        timeout: Duration,
        /// Who one is to it. Not printed.
        credentials: Credentials,
    },
}

impl StoreAddress {
    /// Opens the store. Credentials that the address lacks are those of the environment.
    pub fn open(&self) -> Result<Box<dyn Store>, StoreError> {
        match self {
            Self::None => Ok(Box::new(Discard::new())),
            #[cfg(all(feature = "lmdb", unix))]
            Self::Lmdb { path, size, sync } => Ok(Box::new(super::Lmdb::open(path, *size, *sync)?)),
            #[cfg(not(all(feature = "lmdb", unix)))]
            Self::Lmdb { .. } => Err(StoreError::NotBuilt("lmdb")),
            #[cfg(feature = "redis")]
            Self::Redis { .. } => Ok(Box::new(super::Redis::open(self)?)),
            #[cfg(not(feature = "redis"))]
            Self::Redis { .. } => Err(StoreError::NotBuilt("redis")),
        }
    }

    /// The credentials to use: its own, or the environment's.
    #[cfg(feature = "redis")]
    pub(super) fn credentials(&self) -> Credentials {
        match self {
            Self::Redis { credentials, .. } if !credentials.is_empty() => credentials.clone(),
            _ => Credentials::from_env(),
        }
    }
}

fn wrong<T>(why: impl fmt::Display, form: &str) -> Result<T, StoreError> {
    Err(StoreError::Address(format!("{why}; write {form}")))
}

impl FromStr for StoreAddress {
    type Err = StoreError;

    fn from_str(text: &str) -> Result<Self, StoreError> {
        if text == "none" {
            return Ok(Self::None);
        }
        match text.split_once(':') {
            Some(("lmdb", rest)) => lmdb(rest),
            Some(("redis" | "valkey", rest)) => redis(rest, false),
            Some(("rediss" | "valkeys", rest)) => redis(rest, true),
            Some((kind, _)) => wrong(format!("no store of the kind `{kind}`"), FORMS),
            None => wrong("no kind of store", FORMS),
        }
    }
}

/// Settings: names and values.
type Pairs<'t> = Vec<(&'t str, &'t str)>;

/// The part before `?`, and the settings behind it.
fn settings<'t>(text: &'t str, form: &str) -> Result<(&'t str, Pairs<'t>), StoreError> {
    let Some((front, behind)) = text.split_once('?') else { return Ok((text, Vec::new())) };
    let mut pairs = Vec::new();
    for setting in behind.split('&').filter(|setting| !setting.is_empty()) {
        match setting.split_once('=') {
            Some(pair) => pairs.push(pair),
            None => return wrong(format!("the setting `{setting}` has no value"), form),
        }
    }
    Ok((front, pairs))
}

fn lmdb(rest: &str) -> Result<StoreAddress, StoreError> {
    let (path, pairs) = settings(rest, LMDB_FORM)?;
    if path.is_empty() {
        return wrong("lmdb without a path", LMDB_FORM);
    }
    let path = match std::path::absolute(path) {
        Ok(path) => path,
        Err(error) => return wrong(format!("the path `{path}`: {error}"), LMDB_FORM),
    };
    let (mut size, mut sync) = (None, StoreSync::Meta);
    for (name, value) in pairs {
        match (name, value) {
            ("size", value) => match bytes_of(value) {
                Some(bytes) => size = Some(bytes),
                None => return wrong(format!("`{value}` is no size"), LMDB_FORM),
            },
            ("sync", "meta") => sync = StoreSync::Meta,
            ("sync", "full") => sync = StoreSync::Full,
            ("sync", "none") => sync = StoreSync::None,
            ("sync", value) => {
                return wrong(format!("sync is meta, full or none, not `{value}`"), LMDB_FORM);
            }
            (name, _) => return wrong(format!("lmdb has no setting `{name}`"), LMDB_FORM),
        }
    }
    Ok(StoreAddress::Lmdb { path, size, sync })
}

fn redis(rest: &str, tls: bool) -> Result<StoreAddress, StoreError> {
    let Some(rest) = rest.strip_prefix("//") else {
        return wrong("redis without `//`", REDIS_FORM);
    };
    let (credentials, rest) = match rest.rsplit_once('@') {
        // What is wrong with a password is told without it.
        Some((who, _)) if who.contains(['/', '?']) => return wrong(ESCAPES, REDIS_FORM),
        Some((who, rest)) => (credentials(who)?, rest),
        None => (Credentials::default(), rest),
    };
    let (front, pairs) = settings(rest, REDIS_FORM)?;
    let (hosts, database) = match front.split_once('/') {
        None | Some((_, "")) => (front.trim_end_matches('/'), 0),
        Some((hosts, number)) => match number.parse() {
            Ok(number) if (0..=65_535).contains(&number) => (hosts, number),
            _ => return wrong(format!("`{number}` is no number of a database"), REDIS_FORM),
        },
    };
    let nodes = hosts.split(',').map(node).collect::<Result<Vec<_>, _>>()?;
    let mut cluster = nodes.len() > 1;
    let (mut prefix, mut timeout) = (PREFIX.to_owned(), TIMEOUT);
    for (name, value) in pairs {
        match (name, value) {
            ("prefix", value) => match unescaped(value) {
                Some(value) => prefix = value,
                None => return wrong(ESCAPES, REDIS_FORM),
            },
            ("timeout", value) => match duration_of(value) {
                Some(time) => timeout = time,
                None => return wrong(format!("`{value}` is no time: 500ms, 2s"), REDIS_FORM),
            },
            ("cluster", "yes") => cluster = true,
            ("cluster", "no") if nodes.len() == 1 => cluster = false,
            (name, _) => {
                return wrong(format!("redis has no setting `{name}` of that value"), REDIS_FORM);
            }
        }
    }
    if cluster && database != 0 {
        return wrong("a cluster has database 0 only", REDIS_FORM);
    }
    Ok(StoreAddress::Redis { nodes, cluster, tls, database, prefix, timeout, credentials })
}

fn credentials(who: &str) -> Result<Credentials, StoreError> {
    let (user, password) = who.split_once(':').unwrap_or((who, ""));
    let part = |text: &str| match unescaped(text) {
        Some(text) => Ok(Some(text).filter(|text| !text.is_empty())),
        None => wrong(ESCAPES, REDIS_FORM),
    };
    Ok(Credentials { user: part(user)?, password: part(password)? })
}

fn unescaped(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digit = |byte: Option<u8>| (byte? as char).to_digit(16);
                (digit(rest.next())? * 16 + digit(rest.next())?) as u8
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

fn escaped(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:{}".contains(&byte);
    let letter = |byte: u8| match plain(byte) {
        true => (byte as char).to_string(),
        false => format!("%{byte:02x}"),
    };
    text.bytes().map(letter).collect()
}

fn node(text: &str) -> Result<(String, u16), StoreError> {
    let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, port)) => (host, port.strip_prefix(':')),
        None => match text.rsplit_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    if host.is_empty() {
        return wrong("a host is missing", REDIS_FORM);
    }
    match port.map_or(Ok(REDIS_PORT), str::parse) {
        Ok(port) if port != 0 => Ok((host.to_owned(), port)),
        _ => wrong(format!("`{}` is no port", port.unwrap_or_default()), REDIS_FORM),
    }
}

/// A number with an optional unit, of these.
fn with_unit(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let (_, factor) = units.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit))?;
    number.parse::<u64>().ok()?.checked_mul(*factor)
}

fn bytes_of(text: &str) -> Option<u64> {
    let units = [
        ("", 1),
        ("B", 1),
        ("KiB", 1 << 10),
        ("K", 1 << 10),
        ("MiB", 1 << 20),
        ("M", 1 << 20),
        ("GiB", 1 << 30),
        ("G", 1 << 30),
        ("TiB", 1 << 40),
        ("T", 1 << 40),
    ];
    with_unit(text, &units)
}

fn duration_of(text: &str) -> Option<Duration> {
    let ms = with_unit(text, &[("ms", 1), ("s", 1000)])?;
    (1..=600_000).contains(&ms).then_some(Duration::from_millis(ms))
}

impl fmt::Display for StoreAddress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => out.write_str("none"),
            Self::Lmdb { path, size, sync } => {
                write!(out, "lmdb:{}", path.display())?;
                let sync = match sync {
                    StoreSync::Meta => None,
                    StoreSync::Full => Some("sync=full"),
                    StoreSync::None => Some("sync=none"),
                };
                match (size, sync) {
                    (None, None) => Ok(()),
                    (Some(size), None) => write!(out, "?size={size}"),
                    (None, Some(sync)) => write!(out, "?{sync}"),
                    (Some(size), Some(sync)) => write!(out, "?size={size}&{sync}"),
                }
            }
            Self::Redis { nodes, cluster, tls, database, prefix, timeout, credentials: _ } => {
                out.write_str(if *tls { "rediss://" } else { "redis://" })?;
                for (at, (host, port)) in nodes.iter().enumerate() {
                    let comma = if at > 0 { "," } else { "" };
                    let is_v6 = host.contains(':');
                    let (left, right) = if is_v6 { ("[", "]") } else { ("", "") };
                    write!(out, "{comma}{left}{host}{right}:{port}")?;
                }
                let (prefix, timeout) = (escaped(prefix), timeout.as_millis());
                write!(out, "/{database}?prefix={prefix}&timeout={timeout}ms")?;
                if *cluster && nodes.len() == 1 { out.write_str("&cluster=yes") } else { Ok(()) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> StoreAddress {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn every_form_is_read_and_printed() {
        assert_eq!(parsed("none").to_string(), "none");
        assert_eq!(parsed("lmdb:/a/b").to_string(), "lmdb:/a/b");
        assert_eq!(parsed("lmdb:/a?size=8GiB").to_string(), "lmdb:/a?size=8589934592");
        assert_eq!(
            parsed("lmdb:/a?size=1m&sync=full").to_string(),
            "lmdb:/a?size=1048576&sync=full"
        );
        let shown = "redis://h:6379/0?prefix=quintet:&timeout=1000ms";
        assert_eq!(parsed("redis://h").to_string(), shown);
        assert_eq!(parsed("redis://h/").to_string(), shown);
        assert_eq!(parsed("valkey://h:6379").to_string(), shown);
        let cluster = parsed("rediss://a:1,[::1]:2,c?prefix=x:&timeout=250ms");
        assert_eq!(cluster.to_string(), "rediss://a:1,[::1]:2,c:6379/0?prefix=x:&timeout=250ms");
        assert!(matches!(cluster, StoreAddress::Redis { cluster: true, tls: true, .. }));
        assert!(matches!(
            parsed("redis://h?cluster=yes"),
            StoreAddress::Redis { cluster: true, .. }
        ));
        let again = [
            "lmdb:/a?sync=none",
            "redis://h?cluster=yes",
            "redis://h:1/3",
            "redis://h?prefix=a%40%26b",
        ];
        for text in again {
            assert_eq!(parsed(&parsed(text).to_string()), parsed(text), "{text}");
        }
    }

    #[test]
    fn a_relative_path_is_recorded_from_the_root() {
        let StoreAddress::Lmdb { path, .. } = parsed("lmdb:some/where") else { panic!("not lmdb") };
        assert!(path.is_absolute() && path.ends_with("some/where"));
    }

    #[test]
    fn credentials_are_understood_and_never_shown() {
        let address = parsed("redis://ada:p%40ss%2fword@h:1");
        let StoreAddress::Redis { credentials, nodes, .. } = &address else { panic!("not redis") };
        assert_eq!(credentials.password.as_deref(), Some("p@ss/word"));
        assert_eq!(credentials.user.as_deref(), Some("ada"));
        assert_eq!(nodes[0], ("h".to_owned(), 1));
        let shown = format!("{address} {address:?} {credentials:?}");
        assert!(!shown.contains("ss") || !shown.contains("ada"), "{shown}");
        assert!(!shown.contains("word"), "{shown}");
        let only = parsed("redis://:secret@h");
        let StoreAddress::Redis { credentials, .. } = only else { panic!("not redis") };
        assert_eq!((credentials.user, credentials.password.as_deref()), (None, Some("secret")));
    }

    #[test]
    fn what_is_wrong_is_told_with_advice() {
        let wrong = [
            ("", "no kind"),
            ("mysql://h", "no store of the kind `mysql`"),
            ("lmdb:", "without a path"),
            ("lmdb:/a?size=big", "`big` is no size"),
            ("lmdb:/a?sync=maybe", "meta, full or none"),
            ("lmdb:/a?colour=red", "no setting `colour`"),
            ("lmdb:/a?size", "has no value"),
            ("redis:h", "without `//`"),
            ("redis://", "a host is missing"),
            ("redis://h:0", "`0` is no port"),
            ("redis://h:99999", "is no port"),
            ("redis://a,,b", "a host is missing"),
            ("redis://h/x", "no number of a database"),
            ("redis://a,b/1", "database 0 only"),
            ("redis://h?timeout=0s", "is no time"),
            ("redis://u:%zz@h", "%XX"),
            ("redis://u:secret/key@h", "%XX"),
            ("redis://u:secret?key@h", "%XX"),
            ("redis://h?prefix=%4", "%XX"),
        ];
        for (text, what) in wrong {
            let error = text.parse::<StoreAddress>().unwrap_err().to_string();
            assert!(error.contains(what) && error.contains("; write "), "{text}: {error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
