//! Output files that are whole or absent: written beside their target, renamed at the end.
//!
//! 1. A file that cannot be written is reported before any work starts.
//! 2. The target is touched only by the final rename.
//! 3. Whatever ends the command early removes the unfinished file. Ctrl-C ends it, unless the work
//!    has chosen to keep what is finished.

use crate::fail::{Exit, Fail};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Mutex, PoisonError};

/// Files that Ctrl-C must remove.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn unfinished() -> std::sync::MutexGuard<'static, Vec<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What Ctrl-C does.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
#[cfg_attr(not(feature = "race"), allow(dead_code, reason = "only a race keeps or ignores"))]
pub(crate) enum OnInterrupt {
    /// Ends the process with 130.
    End,
    /// Asks the work to stop and to keep what is finished; a second one ends the process.
    Keep,
    /// Nothing: a parent that hears it too decides.
    Ignore,
}

static ON_INTERRUPT: AtomicU8 = AtomicU8::new(OnInterrupt::End as u8);
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Listens to Ctrl-C; what it does is [`OnInterrupt::End`] until another is chosen.
pub(crate) fn listen_to_interrupts() {
    // Without the handler Ctrl-C still ends the process; only an unfinished file would stay.
    let _ = ctrlc::set_handler(|| {
        // Relaxed: nothing else is handed over by these words.
        let again = INTERRUPTED.swap(true, Ordering::Relaxed);
        let chosen = ON_INTERRUPT.load(Ordering::Relaxed);
        if chosen == OnInterrupt::End as u8 || again && chosen == OnInterrupt::Keep as u8 {
            end(Exit::Interrupted);
        }
    });
}

/// Chooses what Ctrl-C does from now on.
#[cfg(feature = "race")]
pub(crate) fn on_interrupt(chosen: OnInterrupt) {
    ON_INTERRUPT.store(chosen as u8, Ordering::Relaxed);
}

/// Whether Ctrl-C was heard.
#[cfg(feature = "race")]
pub(crate) fn is_interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// Ends the process at once: removes unfinished files and shows the cursor again.
pub(crate) fn end(exit: Exit) -> ! {
    let files = unfinished();
    for file in files.iter() {
        let _ = fs::remove_file(file);
    }
    crate::ui::show_cursor();
    std::process::exit(i32::from(exit.code()));
}

/// Where results go: a file, or standard output for `-`.
pub(crate) enum Output {
    /// Standard output.
    Stdout,
    /// A file that does not exist under its own name yet.
    File(Pending),
}

/// A file under its temporary name.
pub(crate) struct Pending {
    writer: BufWriter<File>,
    temporary: PathBuf,
    target: PathBuf,
}

impl Output {
    /// Opens the output for `path`, or says why it cannot be written.
    pub(crate) fn open(path: &Path) -> Result<Output, Fail> {
        if path == Path::new("-") {
            return Ok(Output::Stdout);
        }
        let refuse = |why: String| {
            let what = format!("cannot write {}", path.display());
            Fail::misuse(what, why, "give a file in a directory you may write to, or - for stdout")
        };
        let Some(name) = path.file_name().filter(|_| !path.is_dir()) else {
            return Err(refuse("it is a directory".to_owned()));
        };
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{}.tmp", std::process::id()));
        let temporary = path.with_file_name(hidden);
        // A target that exists and refuses writing would be replaced by the rename; respect it.
        if path.exists() {
            OpenOptions::new().append(true).open(path).map_err(|e| refuse(e.to_string()))?;
        }
        let file = File::create(&temporary).map_err(|e| refuse(e.to_string()))?;
        unfinished().push(temporary.clone());
        let writer = BufWriter::new(file);
        Ok(Output::File(Pending { writer, temporary, target: path.to_owned() }))
    }

    /// Writes the text and puts the file into its place.
    pub(crate) fn finish(self, text: &str) -> Result<(), Fail> {
        let (result, name) = match self {
            Output::Stdout => {
                let mut stdout = io::stdout().lock();
                let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
                (written, "standard output".to_owned())
            }
            Output::File(mut pending) => {
                let name = pending.target.display().to_string();
                let written = pending.writer.write_all(text.as_bytes());
                let written = written.and_then(|()| pending.writer.flush());
                (written.and_then(|()| fs::rename(&pending.temporary, &pending.target)), name)
            }
        };
        match result {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Fail::misuse(
                format!("cannot write {name}"),
                error.to_string(),
                "make room or choose another place, then run again",
            )),
            _ => Ok(()),
        }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        // After the rename there is nothing left to remove.
        let _ = fs::remove_file(&self.temporary);
        unfinished().retain(|file| *file != self.temporary);
    }
}
