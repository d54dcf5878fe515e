//! Redis: one server, or a cluster. Valkey speaks the same.
//!
//! A record is a string under the prefix and its key: version, expiry, kind, value (`line`). A
//! lookup is a `GET`. A put is a small script for each record, many in one pipeline.
//!
//! **S1.** The script runs at the server, where nothing comes between: it compares the deadline
//! with the server's clock, the first eight bytes of what is there with the version, and stores. So
//! neither a request that was under way when its sender died nor one that is sent again brings back
//! what is over.
//! **S2.** Deadline and expiry are moments of the wall clock, compared with the server's: the two
//! clocks must agree to within the time a put is given.
//! **S3.** Connections are lent for one operation. One that failed is closed, and those that are
//! idle with it: the operation is tried once more on a fresh one. After a failure of that the store
//! is left alone for a while, twice as long each time.
//! **S4.** Credentials are in the connection's settings only. No error and no printed form holds
//! them.

use super::counts::{Counts, Tally};
use super::line::{self, Line};
use super::{Found, Record, Store, StoreAddress, StoreError, StoreStats, expiry_ms, wall_ms};
use crate::sync::constant::Mutex;
use redis::cluster::{ClusterClient, ClusterConnection, cluster_pipe};
use redis::{
    Cmd, ConnectionAddr, ConnectionInfo, IntoConnectionInfo, RedisConnectionInfo, RedisError,
    RedisResult,
};
use std::fmt;
use std::time::{Duration, Instant, SystemTime};

/// S1. Answers 1 if it stored, 0 if something newer is there, -1 if it came too late.
const PUT: &str = "\
local time = redis.call('TIME')
if tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000) >= tonumber(ARGV[1]) then return -1 end
local old = redis.call('GETRANGE', KEYS[1], 0, 7)
if #old == 8 then
  local oldHigh, oldLow = struct.unpack('>I4I4', old)
  local high, low = struct.unpack('>I4I4', ARGV[3])
  if oldHigh > high or (oldHigh == high and oldLow > low) then return 0 end
end
if ARGV[2] == '0' then redis.call('SET', KEYS[1], ARGV[3])
else redis.call('SET', KEYS[1], ARGV[3], 'PXAT', ARGV[2]) end
return 1";

/// Requests of one pipeline, and about how many bytes.
const PIPELINE: usize = 256;
const PIPELINE_BYTES: usize = 1 << 20;
/// Connections kept for the next operation.
const IDLE: usize = 8;
/// The first pause after a failure, and the longest (S3).
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// A server takes no longer strings.
const LONGEST: usize = 512 << 20;

enum Client {
    One(redis::Client),
    Cluster(ClusterClient),
}

enum Link {
    One(redis::Connection),
    Cluster(Box<ClusterConnection>),
}

impl Link {
    /// Sends these at once and reads their answers.
    fn ask<T: redis::FromRedisValue>(&mut self, requests: &[Cmd]) -> RedisResult<Vec<T>> {
        match self {
            Self::One(connection) => {
                let mut pipe = redis::pipe();
                requests.iter().for_each(|request| _ = pipe.add_command(request.clone()));
                pipe.query(connection)
            }
            Self::Cluster(connection) => {
                let mut pipe = cluster_pipe();
                requests.iter().for_each(|request| _ = pipe.add_command(request.clone()));
                pipe.query(connection)
            }
        }
    }
}

/// How the store has answered lately (S3).
#[derive(Debug, Default)]
struct Health {
    failures: u32,
    alone_until: Option<Instant>,
}

/// A store in a server, or in a cluster of them.
pub struct Redis {
    client: Client,
    address: StoreAddress,
    prefix: String,
    timeout: Duration,
    put: String,
    idle: Mutex<Vec<Link>>,
    health: Mutex<Health>,
    process: u32,
    counts: Counts,
}

impl fmt::Debug for Redis {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = out.debug_struct("Redis");
        out.field("address", &format_args!("{}", self.address)).finish_non_exhaustive()
    }
}

/// S4: the text of an error as the server or the system gave it.
fn told(error: &RedisError) -> StoreError {
    let text = error.to_string();
    let ours = error.is_io_error() || error.is_timeout() || error.is_connection_dropped();
    let says = |words: &[&str]| words.iter().any(|word| text.to_ascii_uppercase().contains(word));
    // A server that starts, a cluster that looks for itself: these pass.
    if ours
        || error.is_connection_refusal()
        || says(&["LOADING", "CLUSTERDOWN", "TRYAGAIN", "MASTERDOWN"])
    {
        return StoreError::Unavailable(text);
    }
    if says(&["MOVED"]) {
        return StoreError::Refused(
            "the server belongs to a cluster; name several nodes, or say cluster=yes".into(),
        );
    }
    StoreError::Refused(text)
}

/// A server that started anew has forgotten the script.
fn lacks_script(error: &RedisError) -> bool {
    error.to_string().to_ascii_uppercase().contains("NOSCRIPT")
}

impl Redis {
    /// Opens the store and asks for a first answer, so that what is wrong is told at once.
    pub fn open(address: &StoreAddress) -> Result<Self, StoreError> {
        let StoreAddress::Redis { prefix, timeout, .. } = address else {
            return Err(StoreError::Address(format!("{address} is not redis")));
        };
        let opened = Self {
            client: client(address)?,
            address: address.clone(),
            prefix: prefix.clone(),
            timeout: *timeout,
            put: redis::Script::new(PUT).get_hash().to_owned(),
            idle: Mutex::new(Vec::new()),
            health: Mutex::new(Health::default()),
            process: std::process::id(),
            counts: Counts::default(),
        };
        opened.get(&[b""])?;
        Ok(opened)
    }

    fn connect(&self) -> RedisResult<Link> {
        self.counts.add(Tally::Connections, 1);
        match &self.client {
            Client::One(client) => {
                let connection = client.get_connection_with_timeout(self.timeout)?;
                connection.set_read_timeout(Some(self.timeout))?;
                connection.set_write_timeout(Some(self.timeout))?;
                Ok(Link::One(connection))
            }
            Client::Cluster(client) => Ok(Link::Cluster(Box::new(client.get_connection()?))),
        }
    }

    /// S3.
    fn ask<T: redis::FromRedisValue>(&self, requests: &[Cmd]) -> RedisResult<Vec<T>> {
        let lent = self.idle.lock().pop();
        let fresh = lent.is_none();
        let mut link = match lent {
            Some(link) => link,
            None => self.connect()?,
        };
        let mut answer = link.ask(requests);
        if !fresh && answer.as_ref().is_err_and(|error: &RedisError| error.is_io_error()) {
            self.idle.lock().clear();
            link = self.connect()?;
            answer = link.ask(requests);
        }
        if answer.is_ok() {
            let mut idle = self.idle.lock();
            if idle.len() < IDLE {
                idle.push(link);
            }
        }
        answer
    }

    /// The same, unless the store is being left alone, with what follows from the answer.
    fn run<T: redis::FromRedisValue>(
        &self,
        requests: impl Fn() -> Vec<Cmd>,
        otherwise: Option<&dyn Fn() -> Vec<Cmd>>,
    ) -> Result<Vec<T>, StoreError> {
        if std::process::id() != self.process {
            return Err(StoreError::Forked);
        }
        if let Some(until) = self.health.lock().alone_until {
            if Instant::now() < until {
                return Err(StoreError::Unavailable(
                    "it failed, and is left alone for a while".into(),
                ));
            }
        }
        let mut answer = self.ask(&requests());
        if let (Err(error), Some(otherwise)) = (&answer, otherwise) {
            if lacks_script(error) {
                answer = self.ask(&otherwise());
            }
        }
        let told = answer.map_err(|error| told(&error));
        let mut health = self.health.lock();
        match &told {
            Err(StoreError::Unavailable(_)) => {
                let pause = FIRST_PAUSE * 2u32.pow(health.failures.min(16));
                health.failures += 1;
                health.alone_until = Some(Instant::now() + pause.min(LONGEST_PAUSE));
            }
            _ => *health = Health::default(),
        }
        told
    }

    fn key(&self, key: &[u8]) -> Vec<u8> {
        [self.prefix.as_bytes(), key].concat()
    }

    fn put_some(&self, batch: &[Record<'_>], until: u64) -> Result<usize, StoreError> {
        let request = |name: &str, script: &str, record: &Record<'_>| {
            let mut bytes = Vec::new();
            line::write(&mut bytes, record, false);
            let mut request = redis::cmd(name);
            request.arg(script).arg(1).arg(self.key(record.key));
            request.arg(until).arg(expiry_ms(record.expiry)).arg(bytes);
            request
        };
        let of = |name: &'static str, script: &'static str| {
            move || batch.iter().map(|record| request(name, script, record)).collect::<Vec<_>>()
        };
        let by_name = || batch.iter().map(|record| request("EVALSHA", &self.put, record)).collect();
        let answers: Vec<i64> = self.run(by_name, Some(&of("EVAL", PUT)))?;
        let taken = answers.iter().filter(|answer| **answer == 1).count();
        self.counts.add(Tally::Puts, taken);
        self.counts.add(Tally::Older, answers.iter().filter(|answer| **answer == 0).count());
        if answers.contains(&-1) { Err(StoreError::Late) } else { Ok(taken) }
    }

    fn put_all(&self, batch: &[Record<'_>], until: SystemTime) -> Result<usize, StoreError> {
        let size = |record: &Record<'_>| {
            self.prefix.len()
                + record.key.len()
                + line::HEADER
                + record.value.map_or(0, <[u8]>::len)
        };
        if batch.iter().any(|record| size(record) > LONGEST) {
            return Err(StoreError::TooLarge { max: LONGEST - line::HEADER - self.prefix.len() });
        }
        let until = wall_ms(until);
        let mut taken = 0;
        let mut rest = batch;
        while !rest.is_empty() {
            let mut bytes = 0;
            let fits = rest.iter().take(PIPELINE).take_while(|record| {
                bytes += size(record);
                bytes <= PIPELINE_BYTES
            });
            let (some, later) = rest.split_at(fits.count().max(1));
            taken += self.put_some(some, until)?;
            rest = later;
        }
        Ok(taken)
    }

    fn get_all(&self, keys: &[&[u8]]) -> Result<Vec<Option<Found>>, StoreError> {
        let now = wall_ms(SystemTime::now());
        let mut found = Vec::with_capacity(keys.len());
        for some in keys.chunks(PIPELINE) {
            let get = |key: &&[u8]| {
                let mut get = redis::cmd("GET");
                get.arg(self.key(key));
                get
            };
            let answers: Vec<Option<Vec<u8>>> =
                self.run(|| some.iter().map(get).collect(), None)?;
            let lines = some.iter().zip(&answers).map(|(key, bytes)| {
                bytes.as_deref().and_then(Line::of).and_then(|line| line.found(key, now))
            });
            found.extend(lines);
        }
        self.counts.add(Tally::Gets, keys.len());
        self.counts.add(Tally::Hits, found.iter().flatten().count());
        Ok(found)
    }
}

/// What a client needs to know (S4).
fn client(address: &StoreAddress) -> Result<Client, StoreError> {
    let StoreAddress::Redis { nodes, cluster, tls, database, timeout, .. } = address else {
        return Err(StoreError::Address(format!("{address} is not redis")));
    };
    if *tls && !cfg!(feature = "redis-tls") {
        return Err(StoreError::NotBuilt("redis-tls"));
    }
    let credentials = address.credentials();
    let settings = || {
        let mut settings = RedisConnectionInfo::default().set_db(*database);
        if let Some(user) = &credentials.user {
            settings = settings.set_username(user);
        }
        if let Some(password) = &credentials.password {
            settings = settings.set_password(password);
        }
        settings
    };
    let node = |(host, port): &(String, u16)| -> RedisResult<ConnectionInfo> {
        let (host, port) = (host.clone(), *port);
        let place = match tls {
            false => ConnectionAddr::Tcp(host, port),
            true => ConnectionAddr::TcpTls { host, port, insecure: false, tls_params: None },
        };
        Ok(place.into_connection_info()?.set_redis_settings(settings()))
    };
    let made = || match cluster {
        false => Ok(Client::One(redis::Client::open(node(&nodes[0])?)?)),
        true => {
            let nodes = nodes.iter().map(node).collect::<RedisResult<Vec<_>>>()?;
            let client = ClusterClient::builder(nodes).retries(2);
            let client = client.connection_timeout(*timeout).response_timeout(*timeout);
            Ok(Client::Cluster(client.build()?))
        }
    };
    made().map_err(|error: RedisError| told(&error))
}

impl Store for Redis {
    fn put_until(&self, batch: &[Record<'_>], until: SystemTime) -> Result<usize, StoreError> {
        self.counts.noting(self.put_all(batch, until))
    }

    fn get(&self, keys: &[&[u8]]) -> Result<Vec<Option<Found>>, StoreError> {
        self.counts.noting(self.get_all(keys))
    }

    /// What a server is sure of is set there (`appendfsync`): there is nothing to ask for.
    fn sync(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn newest(&self) -> Result<Option<u64>, StoreError> {
        Ok(None)
    }

    fn stats(&self) -> StoreStats {
        self.counts.stats()
    }
}
