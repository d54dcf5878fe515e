//! memcached over a unix socket: its text protocol spoken directly, one request at a time or
//! sixteen keys together.

use super::server::{Line, Server, number};
use super::{Key, Store, StoreLocal};
use crate::Label;
use std::io::{self, Write};

/// A memcached server; `BATCH` keys are asked for by one request.
#[derive(Debug)]
pub struct Memcached<const BATCH: usize>(Server);

impl<const BATCH: usize> Store for Memcached<BATCH> {
    const LABEL: Label = Label {
        name: if BATCH == 1 { "memcached" } else { "memcached (16 at a time)" },
        version: None,
    };
    const BATCH: usize = BATCH;
    type Local<'a> = MemcachedLocal;

    fn create(entries: usize, value: usize) -> Result<Self, String> {
        // An item has a head of about 60 bytes, and its slab class may be a quarter too large.
        let megabytes = entries * (value + 100) * 3 / 2 / (1 << 20) + 64;
        Server::start("memcached", |socket| {
            let socket = socket.display().to_string();
            let megabytes = megabytes.to_string();
            // Started by root it does not run as root unless told so.
            let fixed = ["-u", "root", "-s", &socket, "-m", &megabytes];
            // Its items are shorter than 1 MiB unless it is told otherwise.
            let long: &[&str] = if value < 1 << 19 { &[] } else { &["-I", "8m"] };
            fixed.iter().chain(long).map(|word| (*word).to_owned()).collect()
        })
        .map(Self)
    }
    fn path(&self) -> Option<String> {
        Some(self.0.socket.display().to_string())
    }
    fn attach(path: &str) -> Option<Self> {
        Server::of(path).map(Self)
    }
    fn local(&self) -> Option<MemcachedLocal> {
        self.0.connect().map(MemcachedLocal)
    }
}

/// A connection.
#[derive(Debug)]
pub struct MemcachedLocal(Line);

impl MemcachedLocal {
    /// Answers come in the order of the keys; an absent one has none.
    fn try_get(
        &mut self,
        keys: &[Key],
        mut show: impl FnMut(usize, Option<&[u8]>),
    ) -> io::Result<()> {
        self.0.out.extend_from_slice(b"get");
        for key in keys {
            self.0.out.push(b' ');
            self.0.out.extend_from_slice(key);
        }
        self.0.out.extend_from_slice(b"\r\n");
        self.0.send()?;
        let mut next = 0;
        loop {
            let head = self.0.line()?;
            if head == b"END" {
                (next..keys.len()).for_each(|at| show(at, None));
                return Ok(());
            }
            // VALUE <key> <flags> <length>
            let mut words = head.split(|byte| *byte == b' ').skip(1);
            let key = words.next().unwrap_or_default();
            let length = number(words.nth(1).unwrap_or_default(), 0)?;
            while next < keys.len() && key != keys[next] {
                show(next, None);
                next += 1;
            }
            if next == keys.len() {
                return Err(io::ErrorKind::InvalidData.into());
            }
            show(next, Some(self.0.bytes(length)?));
            next += 1;
        }
    }

    fn try_set<'v>(
        &mut self,
        keys: &[Key],
        mut value: impl FnMut(usize) -> &'v [u8],
    ) -> io::Result<bool> {
        for (at, key) in keys.iter().enumerate() {
            let value = value(at);
            self.0.out.extend_from_slice(b"set ");
            self.0.out.extend_from_slice(key);
            write!(self.0.out, " 0 0 {}\r\n", value.len())?;
            self.0.out.extend_from_slice(value);
            self.0.out.extend_from_slice(b"\r\n");
        }
        self.0.send()?;
        let mut all = true;
        for _ in keys {
            all &= self.0.line()? == b"STORED";
        }
        Ok(all)
    }
}

impl StoreLocal for MemcachedLocal {
    fn get(&mut self, keys: &[Key], show: impl FnMut(usize, Option<&[u8]>)) -> bool {
        self.try_get(keys, show).is_ok()
    }
    fn set<'v>(&mut self, keys: &[Key], value: impl FnMut(usize) -> &'v [u8]) -> bool {
        self.try_set(keys, value).unwrap_or(false)
    }
}
