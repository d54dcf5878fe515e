//! Reclamation: `section`, `retire`, `stalled`, `seats`.

use crate::race::crew::{Lap, crew, for_a_while, joint_rate, wrong};
use crate::race::family::{Bench, Heat, Role, Sample, Table, Wrong};
use crate::race::stint::Stint;
use quintet_rivals::Label;
use quintet_rivals::reclaim::{Domain, Item, Local};
use std::collections::VecDeque;
use std::hint::black_box;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::time::{Duration, Instant};

/// Operations between two quiet points.
const BATCH: u64 = 256;
/// Items that each thread keeps alive before it retires the oldest.
const ALIVE: usize = 16;

impl Table {
    /// A domain. This line is all that a domain needs to take part.
    pub(crate) fn domain<D: Domain>(role: Role) -> Table {
        Table { label: D::LABEL, role, start: start::<D>, weigh: None }
    }
}

fn start<D: Domain>(stage: &str, _: u64) -> Option<Box<dyn Bench>> {
    match stage {
        "section" => Some(Box::new(Sections { domain: D::new(), shared: AtomicU64::new(1) })),
        "retire" => Some(Box::new(Retiring::<D>(PhantomData))),
        "seats" if D::HAS_SEATS => Some(Box::new(Seats::<D>(PhantomData))),
        _ => None,
    }
}

/// Enters, loads a shared word, leaves.
struct Sections<D> {
    domain: D,
    shared: AtomicU64,
}

impl<D: Domain> Bench for Sections<D> {
    fn round(&mut self, heat: &Heat, stint: Stint) -> Result<Sample, Wrong> {
        let laps = crew(heat.threads, |_, gate| {
            let mut local = self.domain.local();
            for_a_while(stint, gate, || {
                let mut wrong = 0;
                for _ in 0..BATCH {
                    let found = local.section(|| black_box(&self.shared).load(Ordering::Acquire));
                    wrong += u64::from(found != 1);
                }
                local.quiet();
                (BATCH, wrong)
            })
        });
        Wrong::unless_zero(wrong(&laps), heat.workload.name)?;
        Ok(joint_rate(&laps))
    }
}

/// Makes items, keeps some alive, retires the oldest; with a sleeping reader in `stalled`.
struct Retiring<D>(PhantomData<D>);

/// Items made and freed by all domains of this process; each round looks at the difference.
static FREED: AtomicU64 = AtomicU64::new(0);

/// One thread's items.
struct Items<L> {
    local: L,
    alive: VecDeque<Box<Item>>,
    retired: u64,
}

impl<L: Local> Items<L> {
    fn new(local: L) -> Self {
        Self { local, alive: VecDeque::with_capacity(ALIVE + 1), retired: 0 }
    }

    #[inline(always)]
    fn step(&mut self) {
        self.alive.push_back(Item::new(&FREED, self.local.birth()));
        if self.alive.len() > ALIVE {
            let oldest = self.alive.pop_front().expect("more than none");
            self.local.retire(oldest);
            self.retired += 1;
        }
    }
}

impl<D: Domain> Retiring<D> {
    /// Retires for a while; at the end of the domain everything must be free.
    fn retire(heat: &Heat, stint: Stint) -> Result<Sample, Wrong> {
        let domain = D::new();
        let before = FREED.load(Ordering::Relaxed);
        let done: Vec<(Lap, u64)> = crew(heat.threads, |_, gate| {
            let mut items = Items::new(domain.local());
            let lap = for_a_while(stint, gate, || {
                (0..BATCH).for_each(|_| items.step());
                items.local.quiet();
                (BATCH, 0)
            });
            (lap, items.retired + items.alive.len() as u64)
        });
        drop(domain);
        let freed = FREED.load(Ordering::Relaxed) - before;
        let made: u64 = done.iter().map(|(_, made)| made).sum();
        let laps: Vec<Lap> = done.into_iter().map(|(lap, _)| lap).collect();
        match made == freed {
            true => Ok(joint_rate(&laps)),
            false => Err(Wrong(format!("{freed} of {made} items were freed"))),
        }
    }

    /// Retires a fixed number of items while a reader sleeps inside a section, and counts what is
    /// held back beyond what was alive.
    fn stalled(heat: &Heat) -> Sample {
        let domain = D::new();
        let before = FREED.load(Ordering::Relaxed);
        let (asleep, awake) = (AtomicBool::new(false), AtomicBool::new(false));
        let each = heat.keys / heat.threads as u64;
        std::thread::scope(|scope| {
            scope.spawn(|| sleep_inside(&mut domain.local(), &asleep, &awake));
            while !asleep.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
            let start = Instant::now();
            let retired: u64 = crew(heat.threads, |_, gate| {
                let mut items = Items::new(domain.local());
                gate.wait();
                for number in 0..each {
                    items.step();
                    if number % BATCH == 0 {
                        items.local.quiet();
                    }
                }
                items.local.flush();
                items.retired
            })
            .into_iter()
            .sum();
            let busy = start.elapsed().as_secs_f64();
            // The items still alive were freed by their owners, not by the domain.
            let alive = (ALIVE * heat.threads) as u64;
            let freed = FREED.load(Ordering::Relaxed) - before - alive.min(each);
            awake.store(true, Ordering::Release);
            let held = retired.saturating_sub(freed) * size_of::<Item>() as u64;
            Sample {
                mops: retired as f64 / busy / 1e6,
                operations: retired,
                bytes: Some(held as f64 / retired.max(1) as f64),
                ..Sample::default()
            }
        })
    }
}

/// Falls asleep inside a read section until it is woken.
fn sleep_inside(local: &mut impl Local, asleep: &AtomicBool, awake: &AtomicBool) {
    local.section(|| {
        asleep.store(true, Ordering::Release);
        while !awake.load(Ordering::Acquire) {
            std::thread::sleep(Duration::from_millis(1));
        }
    });
}

impl<D: Domain> Bench for Retiring<D> {
    fn round(&mut self, heat: &Heat, stint: Stint) -> Result<Sample, Wrong> {
        match heat.workload.name {
            "retire" => Self::retire(heat, stint),
            "stalled" => Ok(Self::stalled(heat)),
            other => unreachable!("{other} retires nothing"),
        }
    }
}

/// Makes what a thread holds and drops it, beside others or after them.
struct Seats<D>(PhantomData<D>);

impl<D: Domain> Bench for Seats<D> {
    fn round(&mut self, heat: &Heat, stint: Stint) -> Result<Sample, Wrong> {
        let (others, stay) = match heat.workload.name {
            "seats" => (0, true),
            "seats-10" => (10, true),
            "seats-10k" => (10_000, true),
            "seats-left" => (10_000, false),
            other => unreachable!("{other} makes no handles"),
        };
        let domain = D::new();
        let laps = crew(heat.threads, |_, gate| {
            let mut beside: Vec<_> = (0..others / heat.threads).map(|_| domain.local()).collect();
            if !stay {
                beside.clear();
            }
            for_a_while(stint, gate, || {
                (0..BATCH).for_each(|_| drop(black_box(domain.local())));
                (BATCH, 0)
            })
        });
        Wrong::unless_zero(wrong(&laps), heat.workload.name)?;
        Ok(joint_rate(&laps))
    }
}

/// Yardsticks that protect nobody: the load alone, and the load behind a sequentially consistent
/// fence if `FENCED`. They take part in `section` only.
pub(crate) struct Bare<const FENCED: bool>;

impl<const FENCED: bool> Domain for Bare<FENCED> {
    const LABEL: Label =
        Label { name: if FENCED { "fence (SeqCst)" } else { "load alone" }, version: None };
    type Local<'a> = Self;

    fn new() -> Self {
        Self
    }
    fn local(&self) -> Self {
        Self
    }
}

impl<const FENCED: bool> Local for Bare<FENCED> {
    #[inline(always)]
    fn section<R>(&mut self, mut f: impl FnMut() -> R) -> R {
        if FENCED {
            fence(Ordering::SeqCst);
        }
        f()
    }
    fn retire(&mut self, item: Box<Item>) {
        drop(item);
    }
    fn flush(&mut self) {}
}

impl<const FENCED: bool> Bare<FENCED> {
    /// The yardstick as a table.
    pub(crate) fn table() -> Table {
        let start = |stage: &str, keys| match stage {
            "section" => start::<Self>(stage, keys),
            _ => None,
        };
        Table { start, ..Table::domain::<Self>(Role::Limit) }
    }
}
