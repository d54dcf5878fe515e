//! Operations as lines of text, by which processes hand their logs to whoever judges them.
//!
//! `THREAD KEY KIND VALUE EXPECTED INVOKED [RETURNED RET...]`; without the last two the operation
//! never returned.

use super::Operation;
use crate::model::{Kind, Op, Ret};

const KINDS: [(&str, Kind); 13] = [
    ("get", Kind::Get),
    ("contains", Kind::Contains),
    ("put", Kind::Put),
    ("insert", Kind::Insert),
    ("insert-new", Kind::InsertNew),
    ("get-or-insert", Kind::GetOrInsert),
    ("replace", Kind::Replace),
    ("remove", Kind::Remove),
    ("delete", Kind::Delete),
    ("exchange", Kind::CompareExchange),
    ("fetch-add", Kind::FetchAdd),
    ("add-if-present", Kind::AddIfPresent),
    ("set-insert", Kind::SetInsert),
];

/// Value and expected value.
fn arguments(op: Op) -> (u64, u64) {
    match op {
        Op::Get | Op::Contains | Op::Remove | Op::Delete | Op::SetInsert => (0, 0),
        Op::Put(value)
        | Op::Insert(value)
        | Op::InsertNew(value)
        | Op::GetOrInsert(value)
        | Op::Replace(value)
        | Op::FetchAdd(value)
        | Op::AddIfPresent(value) => (value, 0),
        Op::CompareExchange { expected, new } => (new, expected),
    }
}

fn cell(value: Option<u64>) -> String {
    value.map_or("none".to_owned(), |value| value.to_string())
}

fn ret_text(ret: Ret) -> String {
    match ret {
        Ret::Done => "done".to_owned(),
        Ret::Value(value) => format!("value {}", cell(value)),
        Ret::Flag(flag) => format!("flag {}", flag as u8),
        Ret::Exchanged(Ok(old)) => format!("exchanged {old}"),
        Ret::Exchanged(Err(now)) => format!("kept {}", cell(now)),
        Ret::Inserted(id) => format!("inserted {id}"),
        Ret::Existing(id) => format!("existing {id}"),
        Ret::Refused => "refused".to_owned(),
        Ret::Unknown => "unknown".to_owned(),
    }
}

fn ret_of<'t>(mut words: impl Iterator<Item = &'t str>) -> Option<Ret> {
    let name = words.next()?;
    let word = words.next().unwrap_or("0");
    let number = || word.parse().ok();
    let cell = || if word == "none" { Some(None) } else { Some(Some(number()?)) };
    Some(match name {
        "done" => Ret::Done,
        "value" => Ret::Value(cell()?),
        "flag" => Ret::Flag(word == "1"),
        "exchanged" => Ret::Exchanged(Ok(number()?)),
        "kept" => Ret::Exchanged(Err(cell()?)),
        "inserted" => Ret::Inserted(number()?),
        "existing" => Ret::Existing(number()?),
        "refused" => Ret::Refused,
        "unknown" => Ret::Unknown,
        _ => return None,
    })
}

impl Operation {
    /// One line, without its end.
    pub fn to_text(&self) -> String {
        let kind = KINDS.iter().find(|(_, kind)| *kind == self.op.kind());
        let (name, (value, expected)) = (kind.map_or("?", |(name, _)| name), arguments(self.op));
        let begun =
            format!("{} {} {name} {value} {expected} {}", self.thread, self.key, self.invoked);
        match self.returned {
            u64::MAX => begun,
            returned => format!("{begun} {returned} {}", ret_text(self.ret)),
        }
    }

    /// Reads such a line. One that ends after the first stamp never returned.
    pub fn from_text(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let thread = words.next()?.parse().ok()?;
        let number = |words: &mut std::str::Split<'_, char>| words.next()?.parse::<u64>().ok();
        let key = number(&mut words)?;
        let name = words.next()?;
        let (_, kind) = KINDS.iter().find(|(known, _)| *known == name)?;
        let (value, expected) = (number(&mut words)?, number(&mut words)?);
        let (invoked, op) = (number(&mut words)?, kind.with(value, expected));
        let (returned, ret) = match number(&mut words) {
            None => (u64::MAX, Ret::Unknown),
            Some(returned) => (returned, ret_of(words)?),
        };
        Some(Self { key, op, ret, thread, invoked, returned })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_back() {
        let rets = [
            Ret::Done,
            Ret::Value(None),
            Ret::Value(Some(7)),
            Ret::Flag(true),
            Ret::Flag(false),
            Ret::Exchanged(Ok(3)),
            Ret::Exchanged(Err(None)),
            Ret::Exchanged(Err(Some(4))),
            Ret::Inserted(5),
            Ret::Existing(6),
            Ret::Refused,
            Ret::Unknown,
        ];
        for (_, kind) in KINDS {
            for ret in rets {
                let op = kind.with(8, 9);
                let there = Operation { key: 1, op, ret, thread: 2, invoked: 3, returned: 4 };
                assert_eq!(Operation::from_text(&there.to_text()), Some(there));
                let begun = Operation { ret: Ret::Unknown, returned: u64::MAX, ..there };
                assert_eq!(Operation::from_text(&begun.to_text()), Some(begun));
            }
        }
        assert_eq!(Operation::from_text("1 2 jump 0 0 5"), None);
    }
}
