//! Hive-style partitions: folders named `name=value` are columns.

use std::sync::Arc;

use tessera_plan::{Expr, Scalar, Value};
use tessera_text::calendar::{civil, day_number};
use tessera_types::{Atom, Error, Field, Result};

/// The value in a folder's name that represents NULL.
pub const HIVE_NULL: &str = "__HIVE_DEFAULT_PARTITION__";

/// The columns encoded in the folder names of a table's files.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Partitions {
    /// The name and type of each column, outermost folder first.
    pub fields: Vec<Field>,
    /// For each path, the value of each column.
    pub values: Vec<Vec<Scalar>>,
}

impl Partitions {
    /// Reads the `name=value` folders of `paths`. A type is `int64` or `date` if all values are,
    /// otherwise `string`; with `as_text`, it is always `string`.
    ///
    /// # Errors
    /// The paths have different partition columns.
    pub fn discover(paths: &[String], as_text: bool) -> Result<Partitions> {
        let keys: Vec<Vec<(String, Option<String>)>> =
            paths.iter().map(|path| folders(path)).collect();
        let Some(first) = keys.first() else { return Ok(Partitions::default()) };
        let mut fields = Vec::with_capacity(first.len());
        let mut values = vec![Vec::with_capacity(first.len()); paths.len()];
        for (path, other) in paths.iter().zip(&keys) {
            if !first.iter().map(|(name, _)| name).eq(other.iter().map(|(name, _)| name)) {
                return Err(Error::data(format!(
                    "the files of one table have different partition folders: {} in '{}', {} in '{path}'",
                    describe(first),
                    paths[0],
                    describe(other)
                )));
            }
        }
        for (position, (name, _)) in first.iter().enumerate() {
            let texts: Vec<Option<&str>> = keys
                .iter()
                .map(|folders| folders.get(position).and_then(|(_, value)| value.as_deref()))
                .collect();
            let atom = if as_text { Atom::String } else { common_type(&texts) };
            for (row, text) in values.iter_mut().zip(&texts) {
                row.push(text.map_or(Scalar::Null, |text| scalar(text, &atom)));
            }
            let nullable = texts.iter().any(Option::is_none);
            fields.push(
                Field { name: Arc::from(name.as_str()), ..Field::nullable("", atom) }
                    .with_nullable(nullable),
            );
        }
        Ok(Partitions { fields, values })
    }

    /// The `partitions` parameter of a scan: a record of constants for each path.
    pub fn to_value(&self) -> Value {
        let record = |row: &Vec<Scalar>| {
            let constants = self.fields.iter().zip(row).map(|(field, scalar)| {
                let atom = field.atom().cloned().unwrap_or(Atom::Null);
                (field.name.clone(), Expr::Constant(scalar.clone(), atom))
            });
            Value::exprs(constants.collect::<Vec<_>>())
        };
        Value::List(self.values.iter().map(record).collect())
    }
}

/// Returns the name and value of each `name=value` folder in a path, without the file's own name.
fn folders(path: &str) -> Vec<(String, Option<String>)> {
    let Some((folder, _)) = path.rsplit_once('/') else { return Vec::new() };
    folder
        .split('/')
        .filter_map(|part| part.split_once('='))
        .filter(|(name, _)| !name.is_empty())
        .map(|(name, value)| (decode(name), (value != HIVE_NULL).then(|| decode(value))))
        .collect()
}

fn describe(folders: &[(String, Option<String>)]) -> String {
    match folders {
        [] => "none".to_string(),
        _ => folders.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", "),
    }
}

fn common_type(texts: &[Option<&str>]) -> Atom {
    let all = |parses: &dyn Fn(&str) -> bool| {
        texts.iter().any(Option::is_some) && texts.iter().flatten().all(|text| parses(text))
    };
    if all(&|text| integer(text).is_some()) {
        Atom::Int64
    } else if all(&|text| days(text).is_some()) {
        Atom::Date
    } else {
        Atom::String
    }
}

fn scalar(text: &str, atom: &Atom) -> Scalar {
    let value = match atom {
        Atom::Int64 => integer(text).map(|value| Scalar::Integer(value.into())),
        Atom::Date => days(text).map(|value| Scalar::Integer(value.into())),
        _ => None,
    };
    value.unwrap_or_else(|| Scalar::String(text.into()))
}

/// Only spellings that print back identically are integers: `007` is text.
fn integer(text: &str) -> Option<i64> {
    text.parse::<i64>().ok().filter(|value| value.to_string() == text)
}

/// Converts `YYYY-MM-DD` to days since 1970-01-01.
fn days(text: &str) -> Option<i32> {
    let bytes = text.as_bytes();
    if bytes.len() != 10 || bytes[4] != b'-' || bytes[7] != b'-' {
        return None;
    }
    let number = |range: std::ops::Range<usize>| {
        let digits = bytes.get(range)?;
        digits
            .iter()
            .all(u8::is_ascii_digit)
            .then(|| digits.iter().fold(0i64, |n, d| n * 10 + i64::from(d - b'0')))
    };
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let days = day_number(year, month, day);
    let exists = civil(days) == (year, month, day);
    i32::try_from(days).ok().filter(|_| exists)
}

/// Decodes percent-encoding; invalid sequences stay unchanged.
fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut position = 0;
    while let Some(&byte) = bytes.get(position) {
        let hex =
            |offset: usize| bytes.get(position + offset).and_then(|b| (*b as char).to_digit(16));
        match (byte, hex(1), hex(2)) {
            (b'%', Some(high), Some(low)) => {
                out.push((high * 16 + low) as u8);
                position += 3;
            }
            _ => {
                out.push(byte);
                position += 1;
            }
        }
    }
    String::from_utf8(out).unwrap_or_else(|_| text.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn discover(paths: &[&str]) -> Result<Partitions> {
        Partitions::discover(&paths.iter().map(ToString::to_string).collect::<Vec<_>>(), false)
    }

    #[test]
    fn types_hold_for_all_paths() {
        let found =
            discover(&["t/y=2024/d=2024-02-29/c=a%2Fb/1.csv", "t/y=7/d=1969-12-31/c=x/1.csv"])
                .unwrap();
        let types: Vec<_> =
            found.fields.iter().map(|field| field.atom().unwrap().clone()).collect();
        assert_eq!(types, [Atom::Int64, Atom::Date, Atom::String]);
        assert_eq!(
            found.values[0],
            [Scalar::Integer(2024), Scalar::Integer(19_782), Scalar::String("a/b".into())]
        );
        assert_eq!(found.values[1][1], Scalar::Integer(-1));
    }

    #[test]
    fn one_odd_value_makes_text() {
        let found = discover(&["t/y=1/a", "t/y=01/a", "t/y=x/a"]).unwrap();
        assert_eq!(found.fields[0].atom(), Some(&Atom::String));
        assert_eq!(found.values[1], [Scalar::String("01".into())]);
    }

    #[test]
    fn hive_null_and_impossible_dates() {
        let found = discover(&["t/k=__HIVE_DEFAULT_PARTITION__/a", "t/k=3/a"]).unwrap();
        assert!(found.fields[0].nullable);
        assert_eq!(found.values, [[Scalar::Null], [Scalar::Integer(3)]]);
        assert_eq!(discover(&["t/d=2023-02-29/a"]).unwrap().fields[0].atom(), Some(&Atom::String));
    }

    #[test]
    fn disagreeing_folders_are_an_error() {
        let error = discover(&["t/a=1/f", "t/b=1/f"]).unwrap_err().to_string();
        assert!(error.contains("a in 't/a=1/f', b in 't/b=1/f'"), "{error}");
    }
}
