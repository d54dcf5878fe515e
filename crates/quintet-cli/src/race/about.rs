//! What a file of results says about itself: where, when, with what, and how undisturbed it was
//! made.

use serde::{Deserialize, Serialize};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// The first line of a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Header {
    /// The facts.
    pub(crate) about: About,
}

/// The facts. What the system does not tell is empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the fields are the columns of the JSON line")]
#[serde(default)]
pub(crate) struct About {
    pub(crate) machine: String,
    pub(crate) cores: usize,
    pub(crate) memory_gib: u64,
    pub(crate) kernel: String,
    pub(crate) huge_pages: String,
    pub(crate) compiler: String,
    pub(crate) commit: String,
    /// Whether the sources were those of the commit.
    pub(crate) clean: bool,
    pub(crate) date: String,
    pub(crate) seconds: u64,
    /// The share of the cores' time that others used, or the host of a virtual machine withheld.
    pub(crate) busy_share: f64,
    /// False if Ctrl-C ended it: only what was finished is in the file.
    pub(crate) finished: bool,
}

/// Starts with a race and knows its facts at its end.
pub(crate) struct Journal {
    began: Instant,
    date: String,
    ticks: Ticks,
}

/// Clock ticks since the machine was started.
#[derive(Clone, Copy, Default)]
struct Ticks {
    /// Of all cores.
    all: u64,
    /// In which a core was not idle, or withheld.
    busy: u64,
    /// In which this process and its children ran.
    own: u64,
}

impl Journal {
    /// A race begins.
    pub(crate) fn start() -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { began: Instant::now(), date: date(now.as_secs()), ticks: Ticks::now() }
    }

    /// It is over; the first line of its file.
    pub(crate) fn header(&self, finished: bool) -> Header {
        let about = About {
            machine: machine(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_gib: memory_gib(),
            kernel: format!(
                "{} {}",
                read("/proc/sys/kernel/ostype"),
                read("/proc/sys/kernel/osrelease")
            ),
            huge_pages: chosen(&read("/sys/kernel/mm/transparent_hugepage/enabled")).to_owned(),
            compiler: env!("QUINTET_COMPILER").to_owned(),
            commit: env!("QUINTET_COMMIT").to_owned(),
            clean: env!("QUINTET_CLEAN").parse().unwrap_or(false),
            date: self.date.clone(),
            seconds: self.began.elapsed().as_secs(),
            busy_share: Ticks::now().busy_share(self.ticks),
            finished,
        };
        Header { about }
    }
}

impl Ticks {
    fn now() -> Self {
        let (all, busy) = machine_ticks(&read("/proc/stat"));
        Self { all, busy, own: own_ticks(&read("/proc/self/stat")) }
    }

    /// The share of others, to three digits.
    fn busy_share(self, before: Ticks) -> f64 {
        let own = self.own.saturating_sub(before.own);
        let others = self.busy.saturating_sub(before.busy).saturating_sub(own);
        let all = self.all.saturating_sub(before.all).max(1);
        (others as f64 / all as f64 * 1e3).round() / 1e3
    }
}

fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

/// All ticks of the line of all cores, and those that are neither idle nor waiting for a device.
fn machine_ticks(stat: &str) -> (u64, u64) {
    let line = stat.strip_prefix("cpu ").unwrap_or_default().lines().next().unwrap_or_default();
    let ticks: Vec<u64> = line.split_whitespace().filter_map(|n| n.parse().ok()).take(8).collect();
    let all = ticks.iter().sum();
    let idle: u64 = ticks.iter().skip(3).take(2).sum();
    (all, all - idle)
}

/// The ticks of a process and of the children it has waited for. Its name, in parentheses, may hold
/// anything.
fn own_ticks(stat: &str) -> u64 {
    let rest = stat.rsplit(')').next().unwrap_or_default();
    rest.split_whitespace().skip(11).take(4).filter_map(|n| n.parse::<u64>().ok()).sum()
}

/// The processor's name and its second- and third-level caches.
fn machine() -> String {
    let text = read("/proc/cpuinfo");
    let model = text.lines().find_map(|line| line.strip_prefix("model name"));
    let model = model.and_then(|line| line.split(':').nth(1)).unwrap_or(std::env::consts::ARCH);
    let cache = |index: u32| read(&format!("/sys/devices/system/cpu/cpu0/cache/index{index}/size"));
    match (cache(2), cache(3)) {
        (second, third) if second.is_empty() || third.is_empty() => model.trim().to_owned(),
        (second, third) => format!("{}, L2 {second}, L3 {third}", model.trim()),
    }
}

fn memory_gib() -> u64 {
    let text = read("/proc/meminfo");
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0).div_ceil(1 << 20)
}

/// The word in brackets.
fn chosen(text: &str) -> &str {
    text.split('[').nth(1).and_then(|rest| rest.split(']').next()).unwrap_or_default()
}

/// The day and minute of so many seconds after the start of 1970, in UTC.
fn date(seconds: u64) -> String {
    let (mut days, minutes) = (seconds / 86_400, seconds % 86_400 / 60);
    let leap = |year: u64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let mut year = 1970;
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let february = 28 + u64::from(leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    format!("{year}-{month:02}-{:02}T{:02}:{:02}Z", days + 1, minutes / 60, minutes % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(date(0), "1970-01-01T00:00Z");
        assert_eq!(date(951_782_400), "2000-02-29T00:00Z");
        assert_eq!(date(1_735_689_599), "2024-12-31T23:59Z");
        assert_eq!(date(1_798_761_599), "2026-12-31T23:59Z");
    }

    #[test]
    fn others_are_busy_with_what_is_not_our_own() {
        let stat = "cpu  10 0 20 60 10 0 0 5 99 99\ncpu0 1 1\n";
        assert_eq!(machine_ticks(stat), (105, 35));
        assert_eq!(own_ticks("7 (a ) b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 99"), 11 + 12 + 13 + 14);
        let before = Ticks { all: 100, busy: 50, own: 30 };
        let after = Ticks { all: 300, busy: 200, own: 130 };
        assert_eq!(after.busy_share(before), 0.25);
        assert_eq!(before.busy_share(after), 0.0);
        assert_eq!((machine_ticks(""), own_ticks("")), ((0, 0), 0));
    }

    #[test]
    fn the_chosen_word_is_in_brackets() {
        assert_eq!(chosen("always [madvise] never"), "madvise");
        assert_eq!(chosen(""), "");
    }
}
