//! Notes by which compiler and from which commit the command is built, for the files that a race
//! writes.

use std::path::Path;
use std::process::Command;

/// What is built: of these a change makes the tree unclean.
const SOURCES: [&str; 3] = ["crates", "Cargo.toml", "Cargo.lock"];

fn main() {
    let compiler = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    note("QUINTET_COMPILER", said(Command::new(compiler).arg("--version")));
    note("QUINTET_COMMIT", git(&["rev-parse", "--short=10", "HEAD"]));
    let root = git(&["rev-parse", "--show-toplevel"]).unwrap_or_default();
    let mut status = Command::new("git");
    status.current_dir(if root.is_empty() { "." } else { &root });
    let changes = said(status.args(["status", "--porcelain", "--"]).args(SOURCES));
    note("QUINTET_CLEAN", changes.map(|changes| changes.is_empty().to_string()));
    // The commit changes with the log of HEAD, the state of the tree with the sources.
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"]);
    let sources = SOURCES.iter().map(|source| format!("{root}/{source}"));
    for place in log.into_iter().chain(sources).chain(["build.rs".to_owned()]) {
        if Path::new(&place).exists() {
            println!("cargo::rerun-if-changed={place}");
        }
    }
}

/// Hands a text to the command; nothing where it is not known, as in a published crate.
fn note(name: &str, text: Option<String>) {
    println!("cargo::rustc-env={name}={}", text.unwrap_or_default());
}

fn git(args: &[&str]) -> Option<String> {
    said(Command::new("git").args(args))
}

fn said(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
