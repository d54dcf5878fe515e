//! The snapshot checker: every guard shows exactly one version, no handle goes back, a publish is
//! one moment for all.

use super::super::*;
use quintet_testkit::model::Cell;
use quintet_testkit::snapshot::{
    Publish, SnapshotPlan, SnapshotReader, SnapshotUnderTest, SnapshotWriter, View, check, record,
};

struct Map<const FENCES: bool, const COPY: bool>;

type Pair = (Writer<u64, u64>, Handle);

#[derive(Clone)]
struct Handle(MapReader<u64, u64>);

impl<const FENCES: bool, const COPY: bool> SnapshotUnderTest for Map<FENCES, COPY> {
    type Writer = Writer<u64, u64>;
    type Reader = Handle;

    fn pair() -> Pair {
        let mut builder = TwinMap::builder();
        if FENCES {
            builder = builder.fences();
        }
        let stalled = if COPY { Stalled::Copy } else { Stalled::Wait };
        let (writer, reader) = builder.stalled(stalled).build().split();
        (writer, Handle(reader))
    }
}

impl SnapshotWriter for Writer<u64, u64> {
    fn publish(&mut self, changes: &[(u64, Cell)]) {
        let mut write = self.guard();
        for &(key, cell) in changes {
            match cell {
                Some(value) => write.insert(key, value),
                None => write.remove(&key),
            };
        }
        write.publish();
    }
}

impl SnapshotReader for Handle {
    fn with_guard(&mut self, show: &mut dyn FnMut(&dyn View)) {
        show(&self.0.pin());
    }
}

impl View for ReadGuard<'_, Version<u64, u64>> {
    fn get(&self, key: u64) -> Cell {
        (**self).get(&key).copied()
    }

    fn version(&self) -> Option<u64> {
        Some(self.version())
    }
}

fn stress<S: SnapshotUnderTest>() {
    for readers in [1, 3] {
        let plan = SnapshotPlan { readers, guards: 12_000, ..SnapshotPlan::default() };
        let report = check(&record::<S>(&plan), Publish::AtOnce);
        report.expect_pass("TwinMap");
        assert!(report.versions > 1, "{report}");
    }
}

#[test]
fn guards_show_one_version_each() {
    stress::<Map<false, false>>();
}

#[test]
fn guards_show_one_version_each_with_fences() {
    stress::<Map<true, false>>();
}

#[test]
fn guards_show_one_version_each_when_copies_are_left_behind() {
    stress::<Map<false, true>>();
}
