//! Child processes that are killed, stopped, and judged afterwards.
//!
//! A child is another run of the same program, told by an environment variable what to do
//! ([`task`]). It reports by lines on its standard output, one write each, so that whatever it
//! reported before it was killed is there; it hears its parent by lines on its standard input,
//! which ends when the parent does.
//!
//! | Room | Holds |
//! |---|---|
//! | this page | [`Child`]: spawn, kill, stop, continue, wait with a limit |
//! | [`ledger`] | [`Ledger`](ledger::Ledger): what a table must hold after its writers were killed |

pub mod ledger;

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

const TASK: &str = "QUINTET_CHILD";
/// Lines of a child begin with this, since the test harness prints as well.
const MARK: &str = "\u{1}";

/// What this process was spawned to do, if it is a child.
pub fn task() -> Option<String> {
    std::env::var(TASK).ok()
}

/// Reports one line to the parent, by one write. If nobody is there to read it, the process ends:
/// who works until it is killed would never end otherwise.
pub fn report(line: &str) {
    let line = format!("\n{MARK}{line}\n");
    let mut out = io::stdout().lock();
    if out.write_all(line.as_bytes()).and_then(|()| out.flush()).is_err() {
        std::process::exit(0);
    }
}

/// A child process.
#[derive(Debug)]
pub struct Child {
    process: std::process::Child,
    lines: Receiver<String>,
}

impl Child {
    /// Runs the test `name` of this test program in another process, with `task`.
    pub fn of_test(name: &str, task: &str) -> io::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args([name, "--exact", "--nocapture", "--test-threads=1"]);
        Self::of(command, task)
    }

    /// Runs `command` with `task`.
    pub fn of(mut command: Command, task: &str) -> io::Result<Self> {
        command.env(TASK, task).stdout(Stdio::piped()).stdin(Stdio::piped());
        let mut process = command.spawn()?;
        let (sender, lines) = channel();
        if let Some(out) = process.stdout.take() {
            std::thread::spawn(move || {
                let mut out = BufReader::new(out);
                let mut bytes = Vec::new();
                while matches!(out.read_until(b'\n', &mut bytes), Ok(count) if count > 0) {
                    let text = String::from_utf8_lossy(&bytes).into_owned();
                    bytes.clear();
                    if let Some((_, line)) = text.trim_end().split_once(MARK) {
                        if sender.send(line.to_owned()).is_err() {
                            return;
                        }
                    }
                }
            });
        }
        Ok(Self { process, lines })
    }

    /// The operating system's number.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Says a line to the child, which reads it from its standard input. A child that is gone does
    /// not hear it.
    pub fn tell(&mut self, line: &str) {
        if let Some(input) = &mut self.process.stdin {
            let _ = input.write_all(format!("{line}\n").as_bytes());
            let _ = input.flush();
        }
    }

    /// The next reported line, `None` at the end or after `limit`.
    pub fn line(&self, limit: Duration) -> Option<String> {
        self.lines.recv_timeout(limit).ok()
    }

    /// Everything reported until the child's end.
    pub fn rest(&self) -> Vec<String> {
        self.lines.iter().collect()
    }

    /// Kills the child (SIGKILL) and collects its status.
    pub fn kill(&mut self) -> io::Result<ExitStatus> {
        self.process.kill()?;
        self.process.wait()
    }

    /// Kills the child but leaves it a zombie, until it is waited for.
    pub fn kill_only(&mut self) -> io::Result<()> {
        self.process.kill()
    }

    /// The status, `None` if the child has not ended after `limit`.
    pub fn wait(&mut self, limit: Duration) -> io::Result<Option<ExitStatus>> {
        let start = Instant::now();
        loop {
            if let Some(status) = self.process.try_wait()? {
                return Ok(Some(status));
            }
            if start.elapsed() > limit {
                return Ok(None);
            }
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    /// Stops the child where it is (SIGSTOP).
    #[cfg(unix)]
    pub fn stop(&self) {
        self.signal(libc::SIGSTOP);
    }

    /// Lets a stopped child go on (SIGCONT).
    #[cfg(unix)]
    pub fn resume(&self) {
        self.signal(libc::SIGCONT);
    }

    #[cfg(unix)]
    #[allow(unsafe_code)]
    fn signal(&self, number: i32) {
        // SAFETY: a signal to our own child, which has not been waited for, so that the number is
        // still its.
        unsafe { libc::kill(self.process.id() as i32, number) };
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
