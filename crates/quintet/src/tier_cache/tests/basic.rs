//! Words, placement rules, errors, and a long run against std.

use super::world::{World, add_tie, key};
use crate::tier_cache::*;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

#[test]
fn words_keep_every_bit() {
    for (hash, bucket) in [(1, 0), (0xffff_fffe, MAX_BUCKETS - 1), (0x8000_0000, 5)] {
        let input = InputHash::new(hash, bucket).unwrap();
        assert_eq!((input.hash(), input.bucket()), (hash, bucket));
        for slice in 0..2 {
            let token = input.augment(slice);
            assert_eq!(Token::new(token.word()), Ok(token));
            assert_eq!((token.input(), token.slice()), (input, slice));
        }
    }
    for back in 1..32 {
        let bits = Cbits::member(back);
        assert_eq!((bits.back(), bits.is_base()), (Some(back), false));
        assert_eq!(bits.members(), 0);
        assert_eq!(Cbits::ALONE.with(back).members(), 1 << back);
        assert_eq!(Cbits::ALONE.with(back).farthest(), back);
        assert_eq!(Cbits::ALONE.with(back).without(back), Cbits::ALONE);
    }
    assert_eq!((Cbits::ALONE.farthest(), Cbits(0).back(), Cbits::ALONE.back()), (0, None, None));
    let control = Control(41).locked_by(7);
    assert_eq!((control.owner(), control.released()), (Some(7), Control(42)));
    let word = RecordWord(9).prepared(3);
    assert_eq!((word.state(), word.generation()), (Some(RecordState::Prepared(3)), 9));
    assert_eq!(word.live().state(), Some(RecordState::Live));
    assert_eq!((word.freed().state(), word.freed().generation()), (Some(RecordState::Free), 10));
    assert_eq!(
        RecordWord((1 << 48) - 1).freed(),
        RecordWord(0),
        "the generation stays in its bits"
    );
}

/// Upstream: a sign-extended selector made every hash look augmented, and reserved keys were
/// accepted.
#[test]
fn reserved_keys_and_unaugmented_tokens_are_errors() {
    assert_eq!(InputHash::new(0, 1), Err(MapError::InvalidKey));
    assert_eq!(InputHash::new(u32::MAX, 1), Err(MapError::InvalidKey));
    let far = InputHash::new(1, MAX_BUCKETS);
    assert!(matches!(far, Err(MapError::InvalidBucket { .. })));
    assert_eq!(Token::new(key(7, 3).word()), Err(MapError::NotAugmented));
    assert_eq!(Token::new(0xffff_ffff_0000_0003), Err(MapError::NotAugmented));
    assert_eq!(Token::new(1 << 31), Err(MapError::InvalidKey));
    let world = World::small();
    let mut handle = world.handle(0);
    assert!(matches!(handle.add(key(7, 8), 1), Err(MapError::InvalidBucket { buckets: 8, .. })));
    assert!(matches!(handle.get(key(7, 8)), Err(MapError::InvalidBucket { .. })));
    assert_eq!(handle.update(key(7, 3), 1), Err(MapError::NotFound));
    assert_eq!(handle.remove(key(7, 3)), Err(MapError::NotFound));
    handle.add(key(7, 3), 1).unwrap();
    assert_eq!(handle.add(key(7, 3), 2), Err(MapError::Exists));
    for error in [MapError::InvalidKey, MapError::Busy, MapError::Full, MapError::Corrupt("x")] {
        assert!(error.to_string().len() > 10);
    }
}

#[test]
fn slices_take_turns_and_ties_follow_the_bit() {
    for tie in 0..2 {
        let world = World::small();
        let mut handle = world.handle(0);
        assert_eq!(add_tie(&mut handle, key(1, 2), tie, 1).unwrap().slice(), tie);
        assert_eq!(add_tie(&mut handle, key(2, 2), tie, 2).unwrap().slice(), 1 - tie);
        assert_eq!(add_tie(&mut handle, key(3, 2), tie, 3).unwrap().slice(), tie);
        // The newest is in the base, the displaced one in the nearest free cell.
        let memory = world.map(0).memory();
        let base = memory.cell(memory.at(tie, 2));
        assert_eq!((base.key, base.cbits.bits()), (3, 0b11));
        let member = memory.cell(memory.at(tie, 3));
        assert_eq!((member.key, member.cbits.back()), (1, Some(1)));
        assert_eq!(memory.tbits(tie, 2), 0b11);
        assert_eq!(memory.tbits(tie, 1), 0b110, "seen from the bucket before");
        assert_eq!(world.map(0).cell_state(tie, 3), CellState::Member);
        assert_eq!(world.map(0).check().unwrap().live, 3);
    }
}

/// In a full window the oldest leaves, wherever it lies: a member, or the base that was displaced.
#[test]
fn the_oldest_leaves_a_full_window() {
    for (ticks, oldest) in [
        ([10, 50, 60, 70], 1),
        ([50, 10, 60, 70], 3),
        ([50, 60, 10, 70], 5),
        ([50, 60, 70, 10], 7),
        // Equally old: the nearest.
        ([10, 10, 10, 70], 1),
    ] {
        let world = World::small();
        let mut handle = world.handle(0);
        // Slice 0 gets 1, 3, 5 and 7, slice 1 the others.
        for (tick, hash) in ticks.into_iter().zip([1, 3, 5, 7]) {
            handle.set_tick(tick);
            assert_eq!(add_tie(&mut handle, key(hash, 2), 0, 1).unwrap().slice(), 0);
            assert_eq!(add_tie(&mut handle, key(hash + 1, 2), 0, 1).unwrap().slice(), 1);
        }
        handle.set_tick(200);
        assert_eq!(add_tie(&mut handle, key(20, 2), 0, 1).unwrap().slice(), 0);
        let left: Vec<_> = world.left().iter().map(|left| left.input).collect();
        assert_eq!(left, [key(oldest, 2)], "{ticks:?}");
    }
}

/// Upstream: the search for a hole ended at offset 4, crop used the wrong bit, and offset 31 met
/// the member flag.
#[test]
fn a_bucket_fills_its_whole_window_and_empties_from_the_far_end() {
    let geometry = Geometry { buckets: 3, window: 32, records: 80, seats: 1 };
    let world = World::new(geometry);
    let mut handle = world.handle(0);
    // Bucket 2 is the last one: its window ends with the padding.
    for number in 1..=64 {
        handle.add(key(number, 2), number as u64).unwrap();
    }
    let memory = world.map(0).memory();
    for slice in 0..2 {
        assert_eq!(memory.cell(memory.at(slice, 2)).cbits.bits(), u32::MAX);
        assert_eq!(memory.tbits(slice, 2), u32::MAX);
    }
    for number in 1..=64 {
        assert_eq!(handle.get(key(number, 2)), Ok(Some(number as u64)));
    }
    for number in 1..=64 {
        handle.remove(key(number, 2)).unwrap();
        assert_eq!(world.map(0).check().unwrap().live, 64 - number);
        let farthest = |slice| memory.cell(memory.at(slice, 2)).cbits.bits();
        for bits in [farthest(0), farthest(1)] {
            assert_eq!(bits, bits & ((1u64 << bits.count_ones()) - 1) as u32, "compact");
        }
    }
    assert!(world.left().is_empty());
}

#[test]
fn the_three_stages_show_the_entry_before_the_bucket_is_released() {
    let world = World::small();
    let (mut first, mut second) = (world.handle(0), world.handle(1));
    let prepared = first.prepare(key(5, 1)).unwrap();
    assert_eq!(second.get(key(5, 1)), Ok(None), "prepare holds nothing");
    let committed = first.commit(prepared, 50).unwrap();
    let token = committed.token();
    assert_eq!(second.get(token), Ok(Some(50)), "a hit behind a held bucket");
    assert_eq!(second.get(key(6, 1)), Err(MapError::Busy), "a miss cannot be sure");
    assert_eq!(second.add(key(6, 1), 1), Err(MapError::Busy));
    assert_eq!(second.add(key(6, 2), 60).map(|token| token.input()), Ok(key(6, 2)));
    assert_eq!(world.map(1).cell_state(token.slice(), 1), CellState::BaseInOperation(0));
    assert_eq!(committed.complete(), token);
    assert_eq!(second.get(key(6, 1)), Ok(None));
    let batch = first.add_batch(&[(key(8, 1), 1), (key(9, 1), 2), (key(8, 1), 3)]);
    assert!(batch[0].is_ok() && batch[1].is_ok() && batch[2] == Err(MapError::Exists));
    drop((first, second));
    world.map(0).check().unwrap();
}

#[test]
fn a_forgotten_commit_ends_with_the_next_operation() {
    let world = World::small();
    let mut handle = world.handle(0);
    let prepared = handle.prepare(key(5, 1)).unwrap();
    std::mem::forget(handle.commit(prepared, 50).unwrap());
    assert!(world.map(0).check().unwrap_err().contains("I5"));
    handle.add(key(6, 1), 60).unwrap();
    world.map(0).check().unwrap();
    std::mem::forget(handle.commit(Prepared::with_tie(key(7, 1), 0), 50).unwrap());
    drop(handle);
    assert_eq!(world.map(0).check().unwrap().live, 3);
    assert_eq!(world.map(0).memory().seat(0).unwrap().owner(), Owner::NOBODY);
}

#[test]
fn no_record_is_an_error_and_leaves_nothing() {
    let world = World::new(Geometry { buckets: 8, window: 4, records: 2, seats: 2 });
    let mut handle = world.handle(0);
    handle.add(key(1, 1), 1).unwrap();
    handle.update(key(1, 1), 2).unwrap();
    handle.add(key(2, 1), 2).unwrap();
    assert_eq!(handle.add(key(3, 1), 3), Err(MapError::Full));
    assert_eq!(handle.update(key(1, 1), 3), Err(MapError::Full), "an update needs a second record");
    handle.remove(key(1, 1)).unwrap();
    handle.add(key(3, 1), 3).unwrap();
    assert_eq!(world.map(0).check().unwrap().live, 2);
    assert_eq!(world.map(1).handle().unwrap().seat(), 1);
}

#[test]
fn seats_run_out_and_come_back() {
    let world = World::small();
    let handles: Vec<_> = (0..4).map(|_| world.handle(0)).collect();
    assert_eq!(world.map(1).handle().err(), Some(MapError::NoSeat));
    drop(handles);
    assert!(world.map(1).handle().is_ok());
}

#[test]
fn an_unwinding_sink_leaves_a_usable_map() {
    let world = World::small();
    let map = world.map(0);
    let panics = |_: Left| panic!("sink");
    let map = Map::new(map.memory(), map.peers, &panics);
    let mut handle = map.handle().unwrap();
    let mut unwound = 0;
    for number in 1..30 {
        let added = catch_unwind(AssertUnwindSafe(|| handle.add(key(number, 1), 1)));
        unwound += added.is_err() as u32;
    }
    assert!(unwound > 10, "the window is full soon");
    assert_eq!(map.check().unwrap().live, 29 - unwound);
    handle.add(key(99, 5), 1).unwrap();
}

/// Random operations on few buckets against std's map, the sink accounting for every loss.
#[test]
fn agrees_with_std_over_many_operations() {
    for window in [2, 4, 32] {
        let geometry = Geometry { buckets: 12, window, records: 200, seats: 1 };
        let world = World::new(geometry);
        let mut handle = world.handle(0);
        let mut oracle: HashMap<InputHash, u64> = HashMap::new();
        let mut random = 0x1234_5678_9abc_def1_u64;
        let mut draw = move |below: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            (random >> 20) % below
        };
        let mut heard = 0;
        for step in 0..40_000u64 {
            handle.set_tick(step as u32);
            let input = key(1 + draw(12) as u32, draw(12) as u32);
            match draw(10) {
                0..6 => {
                    let added = handle.add(input, step);
                    assert_eq!(added.is_ok(), !oracle.contains_key(&input), "{added:?}");
                    oracle.entry(input).or_insert(step);
                }
                6 | 7 => {
                    let updated = handle.update(input, step);
                    assert_eq!(updated.is_ok(), oracle.contains_key(&input));
                    oracle.entry(input).and_modify(|value| *value = step);
                }
                8 => assert_eq!(handle.remove(input).is_ok(), oracle.remove(&input).is_some()),
                _ => assert_eq!(handle.get(input), Ok(oracle.get(&input).copied())),
            }
            for left in &world.left()[heard..] {
                assert_eq!(
                    oracle.remove(&left.input),
                    Some(left.value),
                    "left once, with its last value"
                );
                heard += 1;
            }
            if step % 1000 == 0 {
                assert_eq!(world.map(0).check().unwrap().live as usize, oracle.len());
                for (input, value) in &oracle {
                    assert_eq!(handle.get(*input), Ok(Some(*value)));
                    let (token, found) = handle.find(*input).unwrap().unwrap();
                    assert_eq!((handle.get(token), found), (Ok(Some(*value)), *value));
                }
            }
        }
        assert!(heard > 0, "windows overflow");
    }
}

#[test]
fn a_reader_takes_no_seat_and_waits_for_nobody() {
    let world = World::small();
    let mut handle = world.handle(0);
    let token = handle.add(key(4, 4), 44).unwrap();
    let mut reader = world.map(1).reader();
    reader.set_timeout(Duration::ZERO);
    let prepared = handle.prepare(key(5, 4)).unwrap();
    let committed = handle.commit(prepared, 55).unwrap();
    assert_eq!(reader.get(token), Ok(Some(44)));
    assert_eq!(reader.get(key(6, 4)), Err(MapError::Busy));
    drop(committed);
    assert_eq!(reader.get(key(6, 4)), Ok(None));
}
