//! A live screen; one frame where standard input or output is no terminal.

use super::args::TopArgs;
use super::place::{look, others};
use super::units::size;
use crate::fail::{Exit, Fail};
use crate::ui::{Tone, count, paint, say};
use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers, poll, read};
use crossterm::terminal::{DisableLineWrap, EnableLineWrap};
use crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen};
use crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use crossterm::{cursor, execute, terminal};
use quintet::cache::{Attached, CacheStats, TierCache, TierStats};
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// The shortest and the longest bar, and what stands beside it.
const BAR: (usize, usize) = (8, 40);
const BESIDE_BAR: usize = 40;

/// Watches a cache.
pub(super) fn run(args: &TopArgs) -> Result<Exit, Fail> {
    let cache = look(&args.name)?;
    let first = Glance::new(&cache);
    if !(io::stdout().is_terminal() && io::stdin().is_terminal()) {
        // Rates need two looks.
        std::thread::sleep(args.every.min(Duration::from_secs(1)));
        if cache.is_removed() {
            return Err(removed(&args.name));
        }
        frame(&args.name, &first, &Glance::new(&cache)).iter().for_each(|line| say(line));
        return Ok(Exit::Fine);
    }
    let screen = Screen::open();
    let screen = screen.map_err(|error| Fail::misuse("no screen", error.to_string(), ""))?;
    let watched = watch(args, &cache, first);
    drop(screen);
    match watched {
        Ok(Some(exit)) => Ok(exit),
        Ok(None) => Err(removed(&args.name)),
        Err(error) => Err(Fail::misuse("the screen failed", error.to_string(), "")),
    }
}

fn removed(name: &str) -> Fail {
    let why = "its name is gone: only processes that have it go on";
    Fail::no(format!("{name} was removed"), why, "create it again, or watch another")
}

/// The terminal in raw mode on its other screen, until dropped.
struct Screen;

impl Screen {
    fn open() -> io::Result<Self> {
        enable_raw_mode()?;
        let screen = Self;
        execute!(io::stdout(), EnterAlternateScreen, cursor::Hide, DisableLineWrap)?;
        Ok(screen)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = execute!(io::stdout(), EnableLineWrap, cursor::Show, LeaveAlternateScreen);
        let _ = disable_raw_mode();
    }
}

/// Until a key ends it, or (`None`) the cache is removed.
fn watch(args: &TopArgs, cache: &TierCache, mut before: Glance) -> io::Result<Option<Exit>> {
    let mut now = Glance::new(cache);
    loop {
        draw(&frame(&args.name, &before, &now))?;
        let next = Instant::now() + args.every;
        while let Some(left) = next.checked_duration_since(Instant::now()) {
            if !poll(left)? {
                break;
            }
            match read()? {
                Event::Key(key) if is_interrupt(&key) => return Ok(Some(Exit::Interrupted)),
                Event::Key(key) if matches!(key.code, KeyCode::Char('q') | KeyCode::Esc) => {
                    return Ok(Some(Exit::Fine));
                }
                // Drawn anew in its new size.
                Event::Resize(..) => draw(&frame(&args.name, &before, &now))?,
                _ => {}
            }
        }
        if cache.is_removed() {
            return Ok(None);
        }
        before = std::mem::replace(&mut now, Glance::new(cache));
    }
}

/// In raw mode Ctrl-C is a key.
fn is_interrupt(key: &KeyEvent) -> bool {
    key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL)
}

fn draw(lines: &[String]) -> io::Result<()> {
    let (_, height) = terminal::size()?;
    let mut out = io::stdout().lock();
    execute!(out, cursor::MoveTo(0, 0), terminal::Clear(terminal::ClearType::All))?;
    // What is too long or too many for the screen is cut off; nothing may make it scroll.
    let lines: Vec<_> = lines.iter().take(usize::from(height)).map(String::as_str).collect();
    write!(out, "{}", lines.join("\r\n"))?;
    out.flush()
}

/// A cache at one moment.
struct Glance {
    at: Instant,
    stats: CacheStats,
    processes: Vec<Attached>,
    tiers: Vec<TierStats>,
}

impl Glance {
    fn new(cache: &TierCache) -> Self {
        let (stats, processes) = (cache.stats(), others(cache));
        Self { at: Instant::now(), stats, processes, tiers: super::stat::tiers(cache) }
    }
}

fn frame(name: &str, before: &Glance, now: &Glance) -> Vec<String> {
    let (old, new) = (&before.stats, &now.stats);
    let seconds = (now.at - before.at).as_secs_f64().max(1e-3);
    let rate = |old: u64, new: u64| per_second(new.saturating_sub(old) as f64 / seconds);
    let lookups = (new.hits + new.misses).saturating_sub(old.hits + old.misses);
    let recent = match lookups {
        0 => "no lookups".to_owned(),
        all => {
            let share = new.hits.saturating_sub(old.hits) as f64 / all as f64;
            format!("{} {:5.1} %", bar(share), share * 100.0)
        }
    };
    let used = new.used_blocks * new.block_bytes;
    let seats = new.seats as f64 / new.max_seats.max(1) as f64;
    let mut lines = vec![
        format!(
            "{}   {} entries, {}",
            paint(name, Tone::Bold),
            count(new.entries),
            size(new.segment_bytes)
        ),
        String::new(),
        format!("hit ratio  {recent}   ever {:.1} %", new.hit_ratio() * 100.0),
        format!("load       {} {:5.1} %   {}", bar(new.load()), new.load() * 100.0, size(used)),
        format!(
            "handles    {} {:5.1} %   {} of {}",
            bar(seats),
            seats * 100.0,
            new.seats,
            new.max_seats
        ),
        String::new(),
        format!("{:<12}{:>12}   {:>16}", "", "per second", "ever"),
    ];
    for (label, old, new) in [
        ("hits", old.hits, new.hits),
        ("misses", old.misses, new.misses),
        ("sets", old.sets, new.sets),
        ("removes", old.removes, new.removes),
        ("evicted", old.evicted, new.evicted),
        ("  window", old.forced, new.forced),
        ("  expired", old.expired, new.expired),
        ("refused", old.refused, new.refused),
        ("recoveries", old.recoveries, new.recoveries),
    ] {
        lines.push(format!("{label:<12}{:>12}   {:>16}", rate(old, new), count(new)));
    }
    if !now.tiers.is_empty() {
        lines.push(String::new());
        lines.extend(super::stat::tier_lines(&now.tiers));
    }
    lines.push(String::new());
    lines.extend(super::stat::process_lines(&now.processes));
    lines.push(String::new());
    lines.push(paint("q ends", Tone::Dim));
    lines
}

fn bar(share: f64) -> String {
    let width = terminal::size().map_or(80, |(width, _)| usize::from(width));
    let length = width.saturating_sub(BESIDE_BAR).clamp(BAR.0, BAR.1);
    let full = (share.clamp(0.0, 1.0) * length as f64).round() as usize;
    format!("{}{}", "█".repeat(full), "░".repeat(length - full))
}

fn per_second(rate: f64) -> String {
    match rate {
        rate if rate >= 1e6 => format!("{:.2} M", rate / 1e6),
        rate if rate >= 1e4 => format!("{:.1} k", rate / 1e3),
        rate => format!("{rate:.0}"),
    }
}
