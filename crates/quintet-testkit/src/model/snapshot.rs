//! A map that is published version by version.

use std::collections::BTreeMap;

use super::Cell;

/// Every published version of a map. Version 0 is empty.
#[derive(Clone, Debug, Default)]
pub struct SnapshotModel {
    /// For every key that ever changed: from which version on it holds what, ascending.
    timelines: BTreeMap<u64, Vec<(u64, Cell)>>,
    version: u64,
}

impl SnapshotModel {
    /// Only the empty version 0.
    pub fn new() -> Self {
        Self::default()
    }

    /// Publishes the newest version with changes applied in order; returns its number.
    pub fn publish(&mut self, changes: &[(u64, Cell)]) -> u64 {
        self.version += 1;
        for &(key, cell) in changes {
            let timeline = self.timelines.entry(key).or_default();
            match timeline.last_mut() {
                Some(last) if last.0 == self.version => last.1 = cell,
                _ => timeline.push((self.version, cell)),
            }
        }
        self.version
    }

    /// The newest version.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// What a key holds in a version.
    pub fn get(&self, version: u64, key: u64) -> Cell {
        let timeline = self.timelines.get(&key)?;
        let later = timeline.partition_point(|&(from, _)| from <= version);
        later.checked_sub(1).and_then(|at| timeline[at].1)
    }

    /// The first version from `from` on in which every key holds what `seen` says.
    pub fn first_match(&self, from: u64, seen: &[(u64, Cell)]) -> Option<u64> {
        let mut version = from;
        let mut agreed = 0;
        for &(key, cell) in seen.iter().cycle() {
            if agreed == seen.len() {
                break;
            }
            let next = self.first_holding(version, key, cell)?;
            agreed = if next == version { agreed + 1 } else { 1 };
            version = next;
        }
        (version <= self.version).then_some(version)
    }

    /// The first version from `from` on in which `key` holds `cell`.
    fn first_holding(&self, from: u64, key: u64, cell: Cell) -> Option<u64> {
        if self.get(from, key) == cell {
            return Some(from);
        }
        let timeline = self.timelines.get(&key)?;
        let later = timeline.partition_point(|&(start, _)| start <= from);
        timeline[later..].iter().find(|&&(_, held)| held == cell).map(|&(start, _)| start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn three_versions() -> SnapshotModel {
        let mut model = SnapshotModel::new();
        model.publish(&[(1, Some(10)), (2, Some(20))]);
        model.publish(&[(1, Some(11))]);
        model.publish(&[(1, Some(10)), (2, None)]);
        model
    }

    #[test]
    fn remembers_every_version() {
        let model = three_versions();
        let of = |key| [0, 1, 2, 3].map(|version| model.get(version, key));
        assert_eq!(of(1), [None, Some(10), Some(11), Some(10)]);
        assert_eq!(of(2), [None, Some(20), Some(20), None]);
        assert_eq!(of(3), [None; 4]);
    }

    #[test]
    fn finds_the_one_version_that_explains_a_view() {
        let model = three_versions();
        assert_eq!(model.first_match(0, &[(1, Some(10)), (2, Some(20))]), Some(1));
        assert_eq!(model.first_match(0, &[(1, Some(10)), (2, None)]), Some(3));
        assert_eq!(model.first_match(2, &[(1, Some(10))]), Some(3));
        assert_eq!(model.first_match(0, &[]), Some(0));
        assert_eq!(model.first_match(0, &[(9, None)]), Some(0));
    }

    #[test]
    fn a_mixture_of_versions_is_no_version() {
        let model = three_versions();
        assert_eq!(model.first_match(0, &[(1, Some(11)), (2, None)]), None);
        assert_eq!(model.first_match(0, &[(3, Some(1))]), None);
    }
}
