//! Redis servers of the tests: on loopback, on free ports, gone with the test.

use crate::dir::Dir;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// True if there is a server to start; says so where there is none.
pub(crate) fn there_is_redis() -> bool {
    let runs = Command::new("redis-server").arg("--version").output();
    let there = runs.is_ok_and(|ran| ran.status.success());
    if !there {
        println!("skipped: no redis-server here (apt-get install redis-server)");
    }
    there
}

/// A port that is free, and that no connection is given for its own end: whoever asks for a server
/// that was killed would be connected with itself in time, and keep the server from its port.
fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let (first, ports) = (20_000, 12_000);
    loop {
        let at = std::process::id().wrapping_mul(31) + NEXT.fetch_add(1, Ordering::Relaxed);
        let port = first + (at % ports) as u16;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// A server.
pub(crate) struct Server {
    pub(crate) port: u16,
    arguments: Vec<String>,
    process: Option<Child>,
    dir: Dir,
}

impl Server {
    pub(crate) fn start(name: &str, further: &[&str]) -> Self {
        // Somebody else may take the port in between: then another is tried.
        for attempt in 0..10 {
            let port = free_port();
            let dir = Dir::new(&format!("{name}-{attempt}"));
            let fixed = ["--bind", "127.0.0.1", "--daemonize", "no", "--port"];
            let mut arguments: Vec<String> = fixed.map(str::to_owned).to_vec();
            arguments.push(port.to_string());
            arguments.extend(["--dir".to_owned(), dir.path().display().to_string()]);
            arguments.extend(further.iter().map(|word| word.to_string()));
            let mut server = Self { port, arguments, process: None, dir };
            if server.run() {
                return server;
            }
        }
        panic!("redis-server does not start");
    }

    /// One that has on its disk what it acknowledged. `None`, and a line, where there is no server.
    pub(crate) fn durable(name: &str) -> Option<Self> {
        let durable = ["--save", "", "--appendonly", "yes", "--appendfsync", "always"];
        there_is_redis().then(|| Self::start(name, &durable))
    }

    /// From its next start on it has this setting.
    pub(crate) fn with(&mut self, name: &str, value: &str) {
        self.arguments.extend([name.to_owned(), value.to_owned()]);
    }

    /// Kills it and starts it again.
    pub(crate) fn restart(&mut self) {
        self.kill();
        assert!(self.run(), "the server starts again");
    }

    /// Starts it, also again; false if it ends at once.
    pub(crate) fn run(&mut self) -> bool {
        let log = std::fs::File::create(self.dir.path().join("log")).unwrap();
        let mut command = Command::new("redis-server");
        command.args(&self.arguments).stdin(Stdio::null()).stdout(log).stderr(Stdio::null());
        let mut process = command.spawn().unwrap();
        let since = Instant::now();
        while since.elapsed() < Duration::from_secs(20) {
            if TcpStream::connect(("127.0.0.1", self.port)).is_ok() {
                self.process = Some(process);
                return true;
            }
            if process.try_wait().unwrap().is_some() {
                return false;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = process.kill();
        let _ = process.wait();
        false
    }

    /// Kills it (SIGKILL).
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    /// Sends it a signal: it stops, or goes on.
    pub(crate) fn signal(&self, signal: i32) {
        let id = self.process.as_ref().unwrap().id() as i32;
        // SAFETY: a signal to a child of this test that has not been waited for.
        assert_eq!(unsafe { libc::kill(id, signal) }, 0);
    }

    pub(crate) fn address(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Three servers that are one cluster. `None` where the tool that joins them is missing.
pub(crate) fn cluster(name: &str) -> Option<Vec<Server>> {
    let nodes: Vec<_> = (0..3)
        .map(|node| {
            let bus = free_port().to_string();
            let further = ["--save", "", "--cluster-enabled", "yes", "--cluster-port", &bus];
            Server::start(&format!("{name}-node{node}"), &further)
        })
        .collect();
    let mut join = Command::new("redis-cli");
    join.args(["--cluster", "create"]);
    join.args(nodes.iter().map(|node| format!("127.0.0.1:{}", node.port)));
    join.args(["--cluster-replicas", "0", "--cluster-yes"]).stdin(Stdio::null());
    let Ok(joined) = join.output() else {
        println!("skipped: no redis-cli here (apt-get install redis-tools)");
        return None;
    };
    assert!(joined.status.success(), "{}", String::from_utf8_lossy(&joined.stdout));
    let since = Instant::now();
    let ready = |node: &Server| {
        let mut ask = Command::new("redis-cli");
        ask.args(["-p", &node.port.to_string(), "cluster", "info"]);
        ask.output()
            .is_ok_and(|told| String::from_utf8_lossy(&told.stdout).contains("cluster_state:ok"))
    };
    while !nodes.iter().all(ready) {
        assert!(since.elapsed() < Duration::from_secs(60), "the cluster does not come together");
        std::thread::sleep(Duration::from_millis(50));
    }
    Some(nodes)
}

pub(crate) fn cluster_address(nodes: &[Server]) -> String {
    let hosts: Vec<_> = nodes.iter().map(|node| format!("127.0.0.1:{}", node.port)).collect();
    format!("redis://{}", hosts.join(","))
}
