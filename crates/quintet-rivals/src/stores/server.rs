//! A server on a socket of its own, and the connection to it.

use super::dir::Dir;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// How long a server may take to listen, or to answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// A server: ours, or that of the process that told us its socket.
#[derive(Debug)]
pub(super) struct Server {
    _dir: Option<Dir>,
    pub(super) socket: PathBuf,
}

impl Server {
    /// Starts `program` and waits until it listens.
    pub(super) fn start(
        program: &str,
        arguments: impl FnOnce(&Path) -> Vec<String>,
    ) -> Result<Self, String> {
        if Command::new(program).arg("--version").output().is_err() {
            return Err(format!("{program} is not installed"));
        }
        let command = |dir: &Path| {
            let mut command = vec![program.to_owned()];
            command.extend(arguments(&dir.join("socket")));
            command
        };
        let dir = Dir::new(command).map_err(|error| format!("{program}: {error}"))?;
        let socket = dir.path().join("socket");
        let start = Instant::now();
        while UnixStream::connect(&socket).is_err() {
            if start.elapsed() > PATIENCE {
                return Err(format!("{program} does not listen"));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(Self { _dir: Some(dir), socket })
    }

    pub(super) fn of(path: &str) -> Option<Self> {
        let socket = PathBuf::from(path);
        socket.exists().then_some(Self { _dir: None, socket })
    }

    pub(super) fn connect(&self) -> Option<Line> {
        let stream = UnixStream::connect(&self.socket).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        Some(Line { stream, out: Vec::new(), input: vec![0; 1 << 16], from: 0, to: 0 })
    }
}

/// A connection: what is to be sent, and what has come and not been read.
#[derive(Debug)]
pub(super) struct Line {
    stream: UnixStream,
    /// To be sent by the next `send`.
    pub(super) out: Vec<u8>,
    input: Vec<u8>,
    from: usize,
    to: usize,
}

impl Line {
    /// Sends everything that is to be sent.
    pub(super) fn send(&mut self) -> io::Result<()> {
        self.stream.write_all(&self.out)?;
        self.out.clear();
        Ok(())
    }

    /// Waits for more.
    fn fill(&mut self) -> io::Result<()> {
        if self.from == self.to {
            (self.from, self.to) = (0, 0);
        }
        if self.to == self.input.len() {
            self.input.copy_within(self.from.., 0);
            (self.from, self.to) = (0, self.to - self.from);
            if self.to == self.input.len() {
                self.input.resize(self.to * 2, 0);
            }
        }
        match self.stream.read(&mut self.input[self.to..])? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            count => {
                self.to += count;
                Ok(())
            }
        }
    }

    /// The next line, without its end.
    pub(super) fn line(&mut self) -> io::Result<&[u8]> {
        let mut looked = 0;
        loop {
            let waiting = &self.input[self.from + looked..self.to];
            if let Some(at) = waiting.iter().position(|byte| *byte == b'\n') {
                let (from, end) = (self.from, self.from + looked + at);
                self.from = end + 1;
                return Ok(self.input[from..end].trim_ascii_end());
            }
            looked = self.to - self.from;
            self.fill()?;
        }
    }

    /// The next `count` bytes; the end of their line is passed over.
    pub(super) fn bytes(&mut self, count: usize) -> io::Result<&[u8]> {
        while self.to - self.from < count + 2 {
            self.fill()?;
        }
        let from = self.from;
        self.from += count + 2;
        Ok(&self.input[from..from + count])
    }
}

/// The number that a text begins with after `skip` bytes.
pub(super) fn number(text: &[u8], skip: usize) -> io::Result<usize> {
    let digits = text.get(skip..).unwrap_or_default();
    let digits = std::str::from_utf8(digits).unwrap_or_default();
    digits.parse().map_err(|_| io::ErrorKind::InvalidData.into())
}
