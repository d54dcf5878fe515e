//! The terminal: colour, progress, numbers.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, IsTerminal, Write};
use std::sync::OnceLock;
use std::time::Duration;

/// Whether standard output may be coloured: a terminal, and no `NO_COLOR`.
fn colour() -> bool {
    static COLOUR: OnceLock<bool> = OnceLock::new();
    *COLOUR.get_or_init(|| {
        io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
    })
}

/// How a piece of text stands out.
#[derive(Clone, Copy)]
pub(crate) enum Tone {
    /// A heading.
    Bold,
    /// An aside.
    Dim,
    /// Our own table, or good news.
    Good,
    /// Bad news.
    Bad,
}

/// `text` in `tone`, or as it is where colour is not wanted.
pub(crate) fn paint(text: &str, tone: Tone) -> String {
    if !colour() {
        return text.to_owned();
    }
    let code = match tone {
        Tone::Bold => "1",
        Tone::Dim => "2",
        Tone::Good => "32",
        Tone::Bad => "31",
    };
    format!("\x1b[{code}m{text}\x1b[0m")
}

/// Writes a line to standard output; a reader that has gone away is no error of ours.
pub(crate) fn say(line: &str) {
    let _ = writeln!(io::stdout(), "{line}");
}

/// Shows the cursor that a progress bar may have hidden.
pub(crate) fn show_cursor() {
    if io::stderr().is_terminal() {
        let _ = io::stderr().write_all(b"\x1b[?25h\n");
    }
}

/// A progress bar on standard error; silent where that is no terminal.
pub(crate) fn progress(length: u64) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{bar:24} {pos}/{len} {elapsed} {wide_msg}");
    bar.set_style(style.expect("the template is constant and well formed"));
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// A count in words that fit a column: `10^6`, `12,345`.
pub(crate) fn count(n: u64) -> String {
    let zeros = n.checked_ilog10().unwrap_or(0);
    if zeros >= 4 && n == 10u64.pow(zeros) {
        return format!("10^{zeros}");
    }
    let digits = n.to_string();
    let groups: Vec<&str> = (0..digits.len())
        .rev()
        .step_by(3)
        .map(|end| &digits[end.saturating_sub(2)..=end])
        .collect();
    groups.into_iter().rev().collect::<Vec<_>>().join(",")
}

/// A duration in nanoseconds with a fitting unit.
pub(crate) fn nanoseconds(ns: u64) -> String {
    match ns {
        0..10_000 => format!("{ns} ns"),
        10_000..10_000_000 => format!("{:.1} µs", ns as f64 / 1e3),
        _ => format!("{:.1} ms", ns as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_times_read_well() {
        assert_eq!(count(7), "7");
        assert_eq!(count(1_000), "1,000");
        assert_eq!(count(1_000_000), "10^6");
        assert_eq!(count(16_777_216), "16,777,216");
        assert_eq!(nanoseconds(950), "950 ns");
        assert_eq!(nanoseconds(25_300), "25.3 µs");
        assert_eq!(nanoseconds(26_000_000), "26.0 ms");
    }
}
