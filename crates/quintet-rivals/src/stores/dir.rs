//! A directory in memory that goes away with the process, however that ends.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

/// A directory and the shell that waits for its owner's end: it then ends the server, if there is
/// one, and removes the directory.
#[derive(Debug)]
pub(super) struct Dir {
    path: PathBuf,
    keeper: Child,
}

/// Waits for the end of its input. The server is its child and belongs to a group that Ctrl-C does
/// not reach.
const KEEPER: &str = r#"dir=$1; shift; if [ $# -gt 0 ]; then "$@" >"$dir/log" 2>&1 & fi
read -r _; if [ $# -gt 0 ]; then kill -9 $! 2>/dev/null; wait; fi; rm -rf "$dir""#;

impl Dir {
    /// Makes a directory and starts `server` in it, if one is given: its arguments follow from the
    /// directory.
    pub(super) fn new(server: impl FnOnce(&Path) -> Vec<String>) -> io::Result<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let shm = Path::new("/dev/shm");
        let parent = if shm.is_dir() { shm.to_owned() } else { std::env::temp_dir() };
        // Relaxed: only a number nobody else has.
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("quintet-race-{}-{number}", std::process::id()));
        std::fs::create_dir(&path)?;
        let mut command = Command::new("sh");
        command.args(["-c", KEEPER, "sh"]).arg(&path).args(server(&path));
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        match command.spawn() {
            Ok(keeper) => Ok(Self { path, keeper }),
            Err(error) => {
                let _ = std::fs::remove_dir_all(&path);
                Err(error)
            }
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}
