//! What a table must hold after its writers were killed.
//!
//! Every key has one writer. A writer reports an operation before it begins (`begin`), and its
//! answer after (`end`); entries that the table gave up on its own account are reported as `left`.
//! Values are never used twice, so a departure names its entry. An operation that began and did not
//! end has happened or has not: the key then has two possible states, until an answer decides.

use std::collections::{HashMap, HashSet};

/// One operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// Add a key with a value.
    Add(u64),
    /// Replace the value.
    Update(u64),
    /// Add the key or replace its value.
    Set(u64),
    /// Remove the key.
    Remove,
    /// Look the key up.
    Get,
}

/// The answer to an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// It took effect.
    Done,
    /// It had none: the key was there (add), or was not (update, remove).
    Refused,
    /// What a lookup saw.
    Saw(Option<u64>),
    /// It gave up, without effect.
    Busy,
}

/// The book of all keys.
#[derive(Debug, Default)]
pub struct Ledger {
    /// Possible states of each key.
    states: HashMap<u64, Vec<Option<u64>>>,
    open: HashMap<u64, Entry>,
    left: HashSet<(u64, u64)>,
    /// Keys seen absent without an operation, and the values one of which must have left. A
    /// departure may be reported later than its effect is seen, so this is judged at the end.
    demanded: Vec<(u64, Vec<u64>)>,
}

impl Ledger {
    /// Reads a reported line; false if it is not one of ours.
    pub fn read(&mut self, line: &str) -> Result<bool, String> {
        let words: Vec<_> = line.split(' ').collect();
        let number =
            |at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
        match words[0] {
            "add" => self.begin(number(1), Entry::Add(number(2))),
            "set" => self.begin(number(1), Entry::Set(number(2))),
            "update" => self.begin(number(1), Entry::Update(number(2))),
            "remove" => self.begin(number(1), Entry::Remove),
            "get" => self.begin(number(1), Entry::Get),
            "done" => self.end(number(1), Answer::Done)?,
            "refused" => self.end(number(1), Answer::Refused)?,
            "saw" => self.end(number(1), Answer::Saw(Some(number(2))))?,
            "missed" => self.end(number(1), Answer::Saw(None))?,
            "busy" => self.end(number(1), Answer::Busy)?,
            "left" => self.left(number(1), number(2)),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The table gave an entry up.
    pub fn left(&mut self, key: u64, value: u64) {
        self.left.insert((key, value));
    }

    /// An operation begins. One that began before and never ended may have happened.
    pub fn begin(&mut self, key: u64, entry: Entry) {
        self.settle(key);
        self.open.insert(key, entry);
    }

    fn states(&mut self, key: u64) -> Vec<Option<u64>> {
        self.states.get(&key).cloned().unwrap_or_else(|| vec![None])
    }

    /// The writer of `key` is dead: its open operation has happened or has not.
    pub fn settle(&mut self, key: u64) {
        let Some(entry) = self.open.remove(&key) else { return };
        let mut states = self.states(key);
        let present = states.iter().any(Option::is_some);
        match entry {
            // If the key was there, it may have left just before.
            Entry::Add(value) | Entry::Set(value) => states.push(Some(value)),
            Entry::Update(value) if present => states.push(Some(value)),
            Entry::Remove if present => states.push(None),
            _ => {}
        }
        self.states.insert(key, states);
    }

    /// Settles every key.
    pub fn settle_all(&mut self) {
        let open: Vec<_> = self.open.keys().copied().collect();
        open.into_iter().for_each(|key| self.settle(key));
    }

    /// An operation ended.
    pub fn end(&mut self, key: u64, answer: Answer) -> Result<(), String> {
        let Some(entry) = self.open.remove(&key) else {
            return Err(format!("key {key}: {answer:?} without an operation"));
        };
        let states = self.states(key);
        let values: Vec<_> = states.iter().copied().flatten().collect();
        let wrong =
            || Err(format!("key {key}: {entry:?} answered {answer:?}, possible were {states:?}"));
        let next = match (entry, answer) {
            (_, Answer::Busy) => states.clone(),
            (Entry::Get, Answer::Saw(Some(value))) => {
                if !values.contains(&value) {
                    return wrong();
                }
                vec![Some(value)]
            }
            // Absent by an operation, or one of the possible values has left: `close` demands the
            // report.
            (Entry::Get, Answer::Saw(None))
            | (Entry::Update(_) | Entry::Remove, Answer::Refused) => {
                self.absent(key, &states);
                vec![None]
            }
            (Entry::Add(value), Answer::Done) => {
                self.absent(key, &states);
                vec![Some(value)]
            }
            (Entry::Set(value), Answer::Done) => vec![Some(value)],
            (Entry::Add(_), Answer::Refused) if !values.is_empty() => {
                values.iter().copied().map(Some).collect()
            }
            (Entry::Update(value), Answer::Done) if !values.is_empty() => vec![Some(value)],
            (Entry::Remove, Answer::Done) if !values.is_empty() => vec![None],
            _ => return wrong(),
        };
        self.states.insert(key, next);
        Ok(())
    }

    /// Notes that a key was seen absent: if no operation explains it, one of its values must have
    /// left.
    fn absent(&mut self, key: u64, states: &[Option<u64>]) {
        if !states.contains(&None) {
            self.demanded.push((key, states.iter().copied().flatten().collect()));
        }
    }

    /// Compares the book with what the table holds in the end. Returns the keys that are there.
    pub fn close(&mut self, mut look: impl FnMut(u64) -> Option<u64>) -> Result<usize, String> {
        self.settle_all();
        let mut present = 0;
        let keys: Vec<_> = self.states.keys().copied().collect();
        for key in keys {
            let states = self.states(key);
            match look(key) {
                Some(value) if states.contains(&Some(value)) => present += 1,
                Some(value) => {
                    return Err(format!("key {key} holds {value}, possible were {states:?}"));
                }
                None => self.absent(key, &states),
            }
        }
        for (key, values) in &self.demanded {
            if !values.iter().any(|value| self.left.contains(&(*key, *value))) {
                return Err(format!("key {key} lost: none of {values:?} was removed or has left"));
            }
        }
        Ok(present)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn book(lines: &[&str]) -> Result<Ledger, String> {
        let mut ledger = Ledger::default();
        for line in lines {
            assert!(ledger.read(line)?);
        }
        Ok(ledger)
    }

    #[test]
    fn an_open_operation_may_have_happened() {
        for end in [None, Some(5)] {
            assert_eq!(book(&["add 1 5"]).unwrap().close(|_| end), Ok(end.is_some() as usize));
        }
        assert!(book(&["add 1 5"]).unwrap().close(|_| Some(6)).is_err());
    }

    #[test]
    fn an_acknowledged_add_must_be_there_or_have_left() {
        assert!(book(&["add 1 5", "done 1"]).unwrap().close(|_| None).is_err());
        assert_eq!(book(&["add 1 5", "done 1", "left 1 5"]).unwrap().close(|_| None), Ok(0));
        assert_eq!(book(&["add 1 5", "done 1"]).unwrap().close(|_| Some(5)), Ok(1));
    }

    #[test]
    fn a_removed_key_must_not_return() {
        let lines = ["add 1 5", "done 1", "remove 1", "done 1"];
        assert!(book(&lines).unwrap().close(|_| Some(5)).is_err());
        assert_eq!(book(&lines).unwrap().close(|_| None), Ok(0));
    }

    #[test]
    fn a_set_takes_effect_whatever_was_there() {
        for lines in [&["set 1 6", "done 1"][..], &["add 1 5", "done 1", "set 1 6", "done 1"]] {
            assert_eq!(book(lines).unwrap().close(|_| Some(6)), Ok(1));
            assert!(book(lines).unwrap().close(|_| Some(5)).is_err());
            assert!(book(lines).unwrap().close(|_| None).is_err());
        }
        for end in [Some(5), Some(6)] {
            let lines = ["add 1 5", "done 1", "set 1 6"];
            assert_eq!(book(&lines).unwrap().close(|_| end), Ok(1));
        }
        assert!(book(&["set 1 6", "refused 1"]).is_err());
    }

    #[test]
    fn answers_must_fit() {
        assert!(book(&["remove 1", "done 1"]).is_err());
        assert!(book(&["add 1 5", "done 1", "get 1", "saw 1 6"]).is_err());
        assert!(book(&["add 1 5", "refused 1"]).is_err());
        assert!(
            book(&["add 1 5", "done 1", "get 1", "missed 1"]).unwrap().close(|_| None).is_err()
        );
        assert!(book(&["done 1"]).is_err());
    }
}
