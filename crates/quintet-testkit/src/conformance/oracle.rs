//! Random operations of one thread against the model, shrunk on failure.

use super::adapter::{offered, reading};
use super::record::OpSource;
use super::{HandleUnderTest, TableUnderTest};
use crate::Rng;
use crate::model::{Kind, MapModel, Op};
use crate::stress::{SEED_VARIABLE, derive, seed_from_environment};

type Script = Vec<(u64, Op)>;

/// Keys at the edges of the word.
const EDGES: [u64; 8] =
    [0, 1, u64::MAX, u64::MAX - 1, 1 << 63, (1 << 63) - 1, 1 << 32, (1 << 32) - 1];

/// Random operations: every answer is the model's.
///
/// # Panics
/// With the shortest sequence found that gives a wrong answer.
pub fn oracle<T: TableUnderTest>(make: impl Fn(usize) -> T) {
    let seed = seed_from_environment();
    eprintln!("oracle: seed {seed:#x}");
    for case in 0..300 {
        let mut rng = Rng::with_seed(derive(seed, case));
        let capacity = [0, 1, 100][rng.usize(0..3)];
        let script = draw::<T>(&mut rng);
        let replay = |script: &[(u64, Op)]| replay(&make(capacity), script);
        if replay(&script).is_err() {
            let script = shrink(script, |script| replay(script).is_err());
            let wrong = replay(&script).expect_err("still wrong after shrinking");
            panic!(
                "capacity {capacity}, {wrong}\nafter {script:#x?}\n\
                 replay with {SEED_VARIABLE}={seed:#x}"
            );
        }
    }
}

/// Most sequences are short and on few keys; some are long, so that tables grow.
fn draw<T: TableUnderTest>(rng: &mut Rng) -> Script {
    let length = if rng.u32(0..8) == 0 { 4_000 } else { rng.usize(1..300) };
    let keys = [4, 64, 2_000][rng.usize(0..3)];
    let mut source = OpSource::new(0, T::OPS);
    let mut next = || {
        let key =
            if rng.u32(0..8) == 0 { EDGES[rng.usize(0..EDGES.len())] } else { rng.u64(0..keys) };
        let op = source.next(key, rng);
        let op = edge_value(op, rng);
        source.learn(key, op, crate::model::Ret::Unknown);
        (key, op)
    };
    (0..length).map(|_| next()).collect()
}

/// Now and then a value at the edge of the word.
fn edge_value(op: Op, rng: &mut Rng) -> Op {
    if rng.u32(0..8) > 0 {
        return op;
    }
    op.kind().with(EDGES[rng.usize(0..EDGES.len())], EDGES[rng.usize(0..EDGES.len())])
}

/// Runs a sequence, then reads every key it used; the first wrong answer is the error.
fn replay<T: TableUnderTest>(table: &T, script: &[(u64, Op)]) -> Result<(), String> {
    let mut model = MapModel::new();
    let mut handle = table.handle();
    for (at, &(key, op)) in script.iter().enumerate() {
        let ret = handle.apply(key, op);
        model.agree(key, op, ret).map_err(|wrong| format!("operation {at}: {wrong}"))?;
        if at % 16 == 0 {
            handle.quiet();
        }
    }
    if let Some(entries) = table.entries() {
        if entries != model.entries() {
            return Err(format!("{entries} entries, the model has {}", model.entries()));
        }
    }
    if offered::<T>(&[Kind::Get, Kind::Contains]).is_some() {
        for &(key, _) in script {
            let op = reading::<T>().with(0, 0);
            let ret = handle.apply(key, op);
            model.agree(key, op, ret).map_err(|wrong| format!("at the end: {wrong}"))?;
        }
    }
    Ok(())
}

/// Leaves out ever smaller parts as long as the sequence stays wrong.
fn shrink(mut script: Script, wrong: impl Fn(&[(u64, Op)]) -> bool) -> Script {
    let mut part = script.len() / 2;
    while part > 0 {
        let mut at = 0;
        while at < script.len() {
            let mut shorter = script.clone();
            shorter.drain(at..script.len().min(at + part));
            if wrong(&shorter) {
                script = shorter;
            } else {
                at += part;
            }
        }
        part /= 2;
    }
    script
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shrinking_keeps_what_matters() {
        let script: Script = (0..100).map(|key| (key, Op::Get)).collect();
        let wrong = |script: &[(u64, Op)]| {
            let has = |wanted| script.iter().any(|&(key, _)| key == wanted);
            has(17) && has(63)
        };
        let small = shrink(script, wrong);
        assert_eq!(small, [(17, Op::Get), (63, Op::Get)]);
    }
}
