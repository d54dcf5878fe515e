//! Writers of a test: processes that say what they do, are killed at random together with the
//! store, and are judged by what they said.
//!
//! A writer says each line by one write to a file of its own. So whoever looks at the store and
//! then reads the files knows all that was said before the look, however busy the machine is.

use crate::dir::Dir;
use quintet_testkit::crash::{Child, task};
use std::fs::File;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

pub(crate) const WRITERS: u64 = 2;
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// How often a test kills: `QUINTET_KILLS`, or 40 times.
fn kills() -> u64 {
    std::env::var("QUINTET_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(40)
}

/// Numbers that look random.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }
}

/// What a writer was started for.
pub(crate) struct Orders {
    pub(crate) writer: u64,
    pub(crate) words: Vec<String>,
    said: File,
}

impl Orders {
    /// `None` if this process is no writer.
    pub(crate) fn of_this_process() -> Option<Self> {
        let task = task()?;
        let mut words = task.split(' ').map(str::to_owned);
        let writer = words.next().unwrap().parse().unwrap();
        let said = File::options().append(true).open(words.next().unwrap()).unwrap();
        Some(Self { writer, words: words.collect(), said })
    }

    pub(crate) fn say(&mut self, line: &str) {
        self.said.write_all(format!("{line}\n").as_bytes()).unwrap();
    }
}

/// Whoever hears what the writers say, and judges by it what is found.
pub(crate) trait Witness {
    /// A writer said this.
    fn hear(&mut self, line: &str);
    /// The next writer with this number is told these words.
    fn orders(&mut self, writer: u64) -> String;
    /// Looks at what is there. Before that it heard everything; after that it hears the crew again.
    fn look(&mut self, crew: &mut Crew, random: &mut Random);
    /// Lines heard.
    fn heard(&self) -> u64;
}

struct Writer {
    child: Child,
    path: PathBuf,
    said: File,
    /// The beginning of a line.
    rest: Vec<u8>,
}

/// The writers.
pub(crate) struct Crew {
    test: &'static str,
    dir: Dir,
    started: u64,
    writers: Vec<Writer>,
}

impl Crew {
    /// `test` is what the writers run.
    pub(crate) fn new(name: &str, test: &'static str, witness: &mut impl Witness) -> Self {
        let dir = Dir::new(&format!("{name}-said"));
        let mut crew = Self { test, dir, started: 0, writers: Vec::new() };
        for writer in 0..WRITERS {
            let started = crew.start(writer, &witness.orders(writer));
            crew.writers.push(started);
        }
        crew
    }

    fn start(&mut self, writer: u64, orders: &str) -> Writer {
        self.started += 1;
        let path = self.dir.path().join(self.started.to_string());
        File::create(&path).unwrap();
        let said = File::open(&path).unwrap();
        let task = format!("{writer} {} {orders}", path.display());
        let child = Child::of_test(self.test, &task).unwrap();
        Writer { child, path, said, rest: Vec::new() }
    }

    /// Reads all that was said up to now.
    pub(crate) fn hear(&mut self, witness: &mut impl Witness) {
        self.writers.iter_mut().for_each(|writer| writer.hear(witness));
    }

    fn kill(&mut self, writer: u64, witness: &mut impl Witness) {
        let writer = &mut self.writers[writer as usize];
        let ended = writer.child.wait(Duration::ZERO).unwrap();
        assert!(ended.is_none(), "a writer ended by itself: {ended:?}");
        writer.child.kill().unwrap();
        writer.hear(witness);
        std::fs::remove_file(&writer.path).unwrap();
    }

    /// Kills a writer, and another takes its place.
    fn replace(&mut self, writer: u64, witness: &mut impl Witness) {
        self.kill(writer, witness);
        let orders = witness.orders(writer);
        self.writers[writer as usize] = self.start(writer, &orders);
    }

    /// Kills writers, the store (by `kill`, which starts it again) or both, at random. Returns how
    /// many kills there were, and how many of the store.
    pub(crate) fn survive(
        &mut self,
        witness: &mut impl Witness,
        mut kill: Option<&mut dyn FnMut()>,
    ) -> (u64, u64) {
        let (mut random, mut done, mut stores) = (Random(0x9e37_79b9_7f4a_7c15), 0, 0);
        while done < kills() {
            let until = Instant::now() + Duration::from_micros(random.next() % 60_000);
            let heard = witness.heard();
            while Instant::now() < until || witness.heard() == heard {
                self.hear(witness);
                witness.look(self, &mut random);
                assert!(Instant::now() < until + PATIENCE, "nobody stores anything");
            }
            let lot = random.next() % 4;
            match &mut kill {
                Some(kill) if lot >= 2 => {
                    kill();
                    stores += 1;
                    done += 1;
                }
                _ if lot == 2 => {
                    self.replace(0, witness);
                    done += 1;
                }
                _ => {}
            }
            if lot != 2 {
                self.replace(lot % WRITERS, witness);
                done += 1;
            }
        }
        (0..WRITERS).for_each(|writer| self.kill(writer, witness));
        self.writers.clear();
        (done + WRITERS, stores)
    }
}

impl Writer {
    fn hear(&mut self, witness: &mut impl Witness) {
        // Not to the end: the writer goes on meanwhile.
        let length = self.said.metadata().unwrap().len();
        let mut rest = std::mem::take(&mut self.rest);
        let at = std::io::Seek::stream_position(&mut self.said).unwrap();
        (&mut self.said).take(length - at).read_to_end(&mut rest).unwrap();
        let whole = rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        self.rest = rest.split_off(whole);
        String::from_utf8(rest).unwrap().lines().for_each(|line| witness.hear(line));
    }
}
