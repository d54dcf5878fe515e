//! Memory: one table per child process, resident growth after the allocator gave back what it can.
//!
//! Unsafe is allowed here because glibc's statistics have no safe form.
#![allow(unsafe_code)]

use super::family::{Role, Table};
use super::ground::trim;
use super::plan::Stage;
use super::record::Record;
use super::stats::ratio;
use crate::fail::Fail;
use serde::{Deserialize, Serialize};
use std::process::Command;

/// What a process weighs.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Weight {
    /// Bytes in memory.
    resident: u64,
    /// Bytes that the allocator has handed out.
    allocated: u64,
    /// Bytes of address space.
    mapped: u64,
}

impl Weight {
    /// The calling process, trimmed.
    fn now() -> Self {
        trim();
        Self { resident: resident(), allocated: allocated(), mapped: status("VmSize:") }
    }

    fn since(self, before: Weight) -> Weight {
        Weight {
            resident: self.resident.saturating_sub(before.resident),
            allocated: self.allocated.saturating_sub(before.allocated),
            mapped: self.mapped.saturating_sub(before.mapped),
        }
    }
}

/// Weighs a table in this process: filled, and emptied again. The answer is one line of JSON.
pub(crate) fn weigh(table: &Table, keys: u64) -> Option<String> {
    let mut weights = Vec::new();
    let before = Weight::now();
    (table.weigh?)(keys, &mut || weights.push(Weight::now().since(before)));
    Some(serde_json::to_string(&weights).expect("plain numbers"))
}

/// Weighs every table of a stage, each in a child process.
pub(crate) fn weigh_stage(stage: &Stage<'_>, tables: &[Table]) -> Result<Vec<Record>, Fail> {
    let mut weighed = Vec::new();
    for table in tables.iter().filter(|table| table.weigh.is_some()) {
        weighed.push((table, weigh_in_child(stage, table)?));
    }
    let mut records = Vec::new();
    for workload in stage.turns.iter().flatten() {
        let place = usize::from(workload.name.ends_with("after-remove"));
        let per_entry = |bytes: u64| bytes as f64 / stage.keys as f64;
        // A table from which nothing is removed steps on the scale once.
        let weight = |weights: &[Weight]| weights.get(place).copied();
        let of = |weight: Weight| per_entry(weight.resident);
        let rivals = weighed.iter().filter(|(table, _)| table.role == Role::Rival);
        let best = rivals.filter_map(|(_, weights)| weight(weights)).map(of).min_by(f64::total_cmp);
        for (table, weights) in &weighed {
            let Some(weight) = weight(weights) else { continue };
            let ours = (table.role == Role::Ours).then_some(best).flatten();
            let paired = ours.and_then(|best| ratio(&[of(weight)], &[best], false));
            records.push(Record {
                family: stage.family.name.to_owned(),
                workload: workload.name.to_owned(),
                measure: workload.measure,
                table: table.label.name.to_owned(),
                version: table.label.version.map(str::to_owned),
                threads: 1,
                processes: Some(1),
                keys: stage.keys,
                rounds: 1,
                bytes_per_entry: Some(of(weight)),
                beside: Some((per_entry(weight.allocated), per_entry(weight.mapped))),
                ratio_to_best_rival: paired.map(|ratio| ratio.median),
                ratio_low: paired.map(|ratio| ratio.low),
                ratio_high: paired.map(|ratio| ratio.high),
                limit: table.role == Role::Limit,
                ..Record::default()
            });
        }
    }
    Ok(records)
}

fn weigh_in_child(stage: &Stage<'_>, table: &Table) -> Result<Vec<Weight>, Fail> {
    let refuse = |why: String| {
        let what = format!("cannot weigh {} in a process of its own", table.label.name);
        Fail::misuse(
            what,
            why,
            "allow the command to start itself, or leave memory out: --workload",
        )
    };
    let exe = std::env::current_exe().map_err(|error| refuse(error.to_string()))?;
    let mut child = Command::new(exe);
    child.args(["weigh", stage.family.name, table.label.name, &stage.keys.to_string()]);
    let output = child.output().map_err(|error| refuse(error.to_string()))?;
    if !output.status.success() {
        return Err(refuse(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
    }
    let weights: Vec<Weight> =
        serde_json::from_slice(&output.stdout).map_err(|error| refuse(error.to_string()))?;
    (!weights.is_empty()).then_some(weights).ok_or_else(|| refuse("no weight".to_owned()))
}

/// Whether memory can be measured here.
pub(crate) fn can_weigh() -> bool {
    status("VmRSS:") > 0
}

/// Bytes in memory: the exact sum where the kernel gives it, else its estimate.
fn resident() -> u64 {
    let rollup = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap_or_default();
    field(&rollup, "Rss:").unwrap_or_else(|| status("VmRSS:"))
}

fn status(name: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    field(&text, name).unwrap_or(0)
}

/// The bytes after `name` in lines such as `VmRSS:   1234 kB`.
fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    line[name.len()..].split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib * 1024)
}

/// Bytes handed out by the allocator: in its arenas and mapped for large blocks.
fn allocated() -> u64 {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: takes no pointers and returns plain numbers.
        let info = unsafe { libc::mallinfo2() };
        (info.uordblks + info.hblkhd) as u64
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_and_scaled() {
        let text = "Name:\tx\nVmRSS:\t    2048 kB\nVmSize:\t 4096 kB\n";
        assert_eq!(field(text, "VmRSS:"), Some(2048 * 1024));
        assert_eq!(field(text, "VmData:"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_touched_block_is_weighed() {
        // Alone in a process: what other tests allocate meanwhile would be weighed too.
        const ALONE: &str = "QUINTET_WEIGHED_ALONE";
        if std::env::var_os(ALONE).is_none() {
            let mut child = Command::new(std::env::current_exe().unwrap());
            child.args(["--exact", "race::scale::tests::a_touched_block_is_weighed"]);
            let output = child.env(ALONE, "1").output().unwrap();
            let told = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(output.status.success() && told.contains("1 passed"), "{told}");
            return;
        }
        let before = Weight::now();
        let block = std::hint::black_box(vec![1u8; 64 << 20]);
        let grown = Weight::now().since(before);
        drop(block);
        assert!((60 << 20..70 << 20).contains(&grown.resident), "{grown:?}");
        assert!(Weight::now().since(before).resident < 8 << 20);
    }
}
