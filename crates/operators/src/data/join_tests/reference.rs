//! Random rows, and a join that tries every pair.

use std::fmt::Write;

use tessera_context::testing::Numbers;
use tessera_state::join::JoinKind;

pub(super) type Row = Vec<Option<i64>>;

/// A generator of rows.
pub(super) struct Random(Numbers);

impl Random {
    pub(super) fn new(seed: u64) -> Random {
        Random(Numbers::new(seed))
    }

    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.0.below(bound)
    }

    /// Rows of three fields: two keys with few distinct values, and a value. About `nulls` in 10
    /// keys are NULL.
    pub(super) fn rows(&mut self, len: u64, distinct: u64, nulls: u64) -> Vec<Row> {
        let mut key = || (self.below(10) >= nulls).then(|| self.below(distinct) as i64);
        let mut rows: Vec<Row> = (0..len).map(|_| vec![key(), key(), None]).collect();
        for row in &mut rows {
            row[2] = (self.below(8) > 0).then(|| self.below(6) as i64);
        }
        rows
    }
}

pub(super) fn text(row: &[Option<i64>]) -> String {
    let mut out = String::new();
    for value in row {
        let value = value.map_or("NULL".to_string(), |value| value.to_string());
        write!(out, "{}{value}", if out.is_empty() { "" } else { " " }).unwrap();
    }
    out
}

pub(super) fn table_text(rows: &[Row]) -> String {
    rows.iter().map(|row| text(row)).collect::<Vec<_>>().join("|")
}

/// The tested keys: number of key fields, and their type.
pub(super) const KEYS: [(usize, &str); 5] =
    [(1, "int64"), (1, "int32"), (2, "int64"), (1, "string"), (2, "string")];

#[derive(Debug, Clone, Copy)]
pub(super) struct Case {
    pub(super) kind: JoinKind,
    pub(super) keys: usize,
    pub(super) residual: bool,
    pub(super) null_equal: bool,
    pub(super) null_aware: bool,
}

/// `Some(true)`: equal; `None`: unknown.
pub(super) fn keys_equal(l: &Row, r: &Row, case: Case) -> Option<bool> {
    let mut result = Some(true);
    for key in 0..case.keys {
        match (l[key], r[key]) {
            (Some(a), Some(b)) if a == b => {}
            (None, None) if case.null_equal => {}
            (Some(_), Some(_)) => return Some(false),
            _ => result = None,
        }
    }
    result
}

pub(super) fn residual_holds(l: &Row, r: &Row, case: Case) -> bool {
    !case.residual || matches!((l[2], r[2]), (Some(a), Some(b)) if a < b)
}

/// The result by SQL's rules; `None` if a `single` join finds a second match.
pub(super) fn reference(left: &[Row], right: &[Row], case: Case) -> Option<Vec<String>> {
    let matches =
        |l: &Row, r: &Row| keys_equal(l, r, case) == Some(true) && residual_holds(l, r, case);
    let nulls = vec![None; 3];
    let both = |l: &Row, r: &Row| text(&[l.clone(), r.clone()].concat());
    let mut out = Vec::new();
    for l in left {
        let found: Vec<&Row> = right.iter().filter(|r| matches(l, r)).collect();
        let unknown = case.null_aware
            && found.is_empty()
            && right.iter().any(|r| keys_equal(l, r, case).is_none() && residual_holds(l, r, case));
        match case.kind {
            JoinKind::Single if found.len() > 1 => return None,
            JoinKind::Semi if !found.is_empty() => out.push(text(l)),
            JoinKind::Anti if found.is_empty() && !unknown => out.push(text(l)),
            JoinKind::Mark => {
                let mark =
                    if unknown { "NULL".to_string() } else { (!found.is_empty()).to_string() };
                out.push(format!("{} {mark}", text(l)));
            }
            kind if kind.yields_pairs() => {
                out.extend(found.iter().map(|r| both(l, r)));
                if found.is_empty() && kind.keeps_stream() {
                    out.push(both(l, &nulls));
                }
            }
            _ => {}
        }
    }
    for r in right {
        let found = left.iter().any(|l| matches(l, r));
        match case.kind {
            JoinKind::Right | JoinKind::Full if !found => out.push(both(&nulls, r)),
            JoinKind::BuildSemi if found => out.push(text(r)),
            JoinKind::BuildAnti if !found => out.push(text(r)),
            _ => {}
        }
    }
    out.sort();
    Some(out)
}
