//! Redis over a unix socket, without persistence: its protocol spoken directly, one request at a
//! time or sixteen in a pipeline.

use super::server::{Line, Server, number};
use super::{Key, Store, StoreLocal};
use crate::Label;
use std::io::{self, Write};
use std::path::Path;

/// A Redis server; `BATCH` requests are sent before the first answer is read.
#[derive(Debug)]
pub struct Redis<const BATCH: usize>(Server);

fn arguments(socket: &Path) -> Vec<String> {
    let socket = socket.display().to_string();
    let fixed = ["--port", "0", "--save", "", "--appendonly", "no", "--unixsocket"];
    fixed.into_iter().map(str::to_owned).chain([socket]).collect()
}

impl<const BATCH: usize> Store for Redis<BATCH> {
    const LABEL: Label =
        Label { name: if BATCH == 1 { "redis" } else { "redis (16 at a time)" }, version: None };
    const BATCH: usize = BATCH;
    type Local<'a> = RedisLocal;

    fn create(_: usize, _: usize) -> Result<Self, String> {
        Server::start("redis-server", arguments).map(Self)
    }
    fn path(&self) -> Option<String> {
        Some(self.0.socket.display().to_string())
    }
    fn attach(path: &str) -> Option<Self> {
        Server::of(path).map(Self)
    }
    fn local(&self) -> Option<RedisLocal> {
        self.0.connect().map(RedisLocal)
    }
}

/// A connection.
#[derive(Debug)]
pub struct RedisLocal(Line);

impl RedisLocal {
    fn try_get(
        &mut self,
        keys: &[Key],
        mut show: impl FnMut(usize, Option<&[u8]>),
    ) -> io::Result<()> {
        for key in keys {
            self.0.out.extend_from_slice(b"*2\r\n$3\r\nGET\r\n$16\r\n");
            self.0.out.extend_from_slice(key);
            self.0.out.extend_from_slice(b"\r\n");
        }
        self.0.send()?;
        for at in 0..keys.len() {
            match self.0.line()? {
                b"$-1" => show(at, None),
                head if head.starts_with(b"$") => {
                    let length = number(head, 1)?;
                    show(at, Some(self.0.bytes(length)?));
                }
                _ => return Err(io::ErrorKind::InvalidData.into()),
            }
        }
        Ok(())
    }

    fn try_set<'v>(
        &mut self,
        keys: &[Key],
        mut value: impl FnMut(usize) -> &'v [u8],
    ) -> io::Result<bool> {
        for (at, key) in keys.iter().enumerate() {
            let value = value(at);
            self.0.out.extend_from_slice(b"*3\r\n$3\r\nSET\r\n$16\r\n");
            self.0.out.extend_from_slice(key);
            write!(self.0.out, "\r\n${}\r\n", value.len())?;
            self.0.out.extend_from_slice(value);
            self.0.out.extend_from_slice(b"\r\n");
        }
        self.0.send()?;
        let mut all = true;
        for _ in keys {
            all &= self.0.line()? == b"+OK";
        }
        Ok(all)
    }
}

impl StoreLocal for RedisLocal {
    fn get(&mut self, keys: &[Key], show: impl FnMut(usize, Option<&[u8]>)) -> bool {
        self.try_get(keys, show).is_ok()
    }
    fn set<'v>(&mut self, keys: &[Key], value: impl FnMut(usize) -> &'v [u8]) -> bool {
        self.try_set(keys, value).unwrap_or(false)
    }
}
