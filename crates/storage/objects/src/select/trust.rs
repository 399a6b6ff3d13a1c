//! What each kind of store evaluates reliably, from its source code and tests against it.
//!
//! | | Parquet | CSV | JSON lines |
//! |---|---|---|---|
//! | Tessera endpoint | all but bytes, intervals, times, nested | the same | the same |
//! | MinIO | no decimals (their scale is ignored), no timestamps, no unsigned 64-bit | only without quotes (it cuts quoted line ends), and only if the first column is not text (it drops comments) | decimals up to 15 digits |
//! | others | nothing | nothing | nothing |
//!
//! MinIO computes with doubles, compares floats with a tolerance and has no three-valued logic. Its
//! results for predicates on floats, decimals and dates in text are treated as *supersets*, and the
//! engine filters the tuples again. NULL equals the empty string in its CSV, so nullable strings
//! are returned as JSON.

use tessera_formats::RecordFormat;
use tessera_types::{Atom, Field};

use super::request::Input;

/// The environment variable that overrides a store's name for itself: `minio`, `tessera` or `none`.
pub(crate) const SELECT_AS: &str = "TESSERA_SELECT_AS";

/// The largest integer up to which all integers are exact as doubles.
pub(crate) const EXACT_MAX: u64 = 1 << 53;
/// The most decimal digits that doubles distinguish.
pub(crate) const DOUBLE_DIGITS: u8 = 15;

/// The supported stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// The Tessera endpoint.
    Tessera,
    /// MinIO, with `MINIO_API_SELECT_PARQUET=on` for Parquet.
    Minio,
}

impl Dialect {
    /// Returns the store with this server name.
    pub(crate) fn of_server(name: &str) -> Option<Dialect> {
        let name = name.trim().to_ascii_lowercase();
        match name.split(['/', ' ']).next() {
            Some("tessera") => Some(Dialect::Tessera),
            Some("minio") => Some(Dialect::Minio),
            _ => None,
        }
    }

    /// Whether the store reads files of this format correctly; `columns` are those of the file.
    pub(crate) fn reads(self, input: &Input, columns: &[Field]) -> bool {
        match (self, input) {
            (Dialect::Minio, Input::Csv { quote, .. }) => {
                quote.is_none()
                    && columns.first().is_some_and(|first| first.atom() != Some(&Atom::String))
            }
            _ => true,
        }
    }

    /// Returns the output format that preserves these columns, if any. `is_small` returns whether
    /// all integers of a column are exact as doubles.
    pub(crate) fn output(
        self,
        input: &Input,
        fields: &[&Field],
        is_small: &dyn Fn(&str) -> bool,
    ) -> Option<RecordFormat> {
        let all =
            fields.iter().all(|field| field.atom().is_some_and(|atom| self.gives(input, atom)));
        if !all {
            return None;
        }
        match (self, input) {
            (_, Input::Json) => Some(RecordFormat::Json),
            (Dialect::Tessera, _) | (Dialect::Minio, Input::Csv { .. }) => Some(RecordFormat::Csv),
            (Dialect::Minio, Input::Parquet) => {
                let text_or_null =
                    |field: &&Field| field.nullable && field.atom() == Some(&Atom::String);
                if !fields.iter().any(text_or_null) {
                    return Some(RecordFormat::Csv);
                }
                let survives = |field: &&Field| match field.atom() {
                    // JSON cannot represent NaN.
                    Some(Atom::Float32 | Atom::Float64) => false,
                    Some(Atom::Int64) => is_small(&field.name),
                    _ => true,
                };
                fields.iter().all(survives).then_some(RecordFormat::Json)
            }
        }
    }

    /// Whether the store returns values of this type unchanged.
    fn gives(self, input: &Input, atom: &Atom) -> bool {
        let simple = atom.is_integer()
            || matches!(
                atom,
                Atom::Boolean | Atom::Float32 | Atom::Float64 | Atom::String | Atom::Date
            );
        match (self, input, atom) {
            (Dialect::Minio, Input::Parquet | Input::Json, Atom::UInt64) => false,
            (Dialect::Minio, Input::Parquet, _) => simple,
            (Dialect::Minio, Input::Json, Atom::Decimal(digits, _)) => *digits <= DOUBLE_DIGITS,
            (_, _, Atom::Decimal(..) | Atom::Timestamp(_, None)) => true,
            _ => simple,
        }
    }

    /// Whether the store's comparisons of this type are exact (`Some(true)`) or a superset; `None`
    /// if they are unreliable.
    pub(crate) fn compares(self, input: &Input, atom: &Atom) -> Option<bool> {
        let typed = *input == Input::Parquet;
        match (self, atom) {
            (_, Atom::String) => Some(true),
            (Dialect::Minio, Atom::UInt64) => None,
            (_, atom) if atom.is_integer() => Some(true),
            (Dialect::Tessera, Atom::Float32 | Atom::Float64) => Some(true),
            (Dialect::Minio, Atom::Float32 | Atom::Float64) => Some(false),
            (_, Atom::Date) => Some(typed),
            (_, Atom::Boolean) => typed.then_some(true),
            (Dialect::Tessera, Atom::Decimal(..)) if typed => Some(true),
            (Dialect::Minio, Atom::Decimal(..)) if typed => None,
            (_, Atom::Decimal(digits, _)) if *digits <= DOUBLE_DIGITS => Some(false),
            _ => None,
        }
    }

    /// Whether a comparison with NULL aborts the store's response, so that NULLs must be excluded.
    pub(crate) fn fails_on_nulls(self) -> bool {
        self == Dialect::Minio
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUOTED: Input = Input::Csv { header: true, delimiter: ',', quote: Some('"') };
    const PLAIN: Input = Input::Csv { header: true, delimiter: '|', quote: None };

    fn output(dialect: Dialect, input: &Input, fields: &[Field]) -> Option<RecordFormat> {
        dialect.output(input, &fields.iter().collect::<Vec<_>>(), &|name| name == "small")
    }

    #[test]
    fn stores_say_what_they_are() {
        assert_eq!(Dialect::of_server("MinIO"), Some(Dialect::Minio));
        assert_eq!(Dialect::of_server("MinIO/RELEASE.2025"), Some(Dialect::Minio));
        assert_eq!(Dialect::of_server("Tessera"), Some(Dialect::Tessera));
        for other in ["AmazonS3", "nginx", "none", ""] {
            assert_eq!(Dialect::of_server(other), None, "{other}");
        }
    }

    #[test]
    fn decimals_in_parquet_are_not_asked_of_minio() {
        let price = [Field::new("price", Atom::Decimal(15, 2))];
        assert_eq!(output(Dialect::Minio, &Input::Parquet, &price), None);
        assert_eq!(Dialect::Minio.compares(&Input::Parquet, &Atom::Decimal(15, 2)), None);
        assert_eq!(output(Dialect::Tessera, &Input::Parquet, &price), Some(RecordFormat::Csv));
        assert_eq!(output(Dialect::Minio, &PLAIN, &price), Some(RecordFormat::Csv));
        assert_eq!(output(Dialect::Minio, &Input::Json, &price), Some(RecordFormat::Json));
        assert_eq!(
            output(Dialect::Minio, &Input::Json, &[Field::new("x", Atom::Decimal(16, 2))]),
            None
        );
    }

    #[test]
    fn strings_that_may_be_null_come_as_json() {
        let text = Field::nullable("t", Atom::String);
        let number = |name: &str| Field::new(name, Atom::Int64);
        let minio = |fields: &[Field]| output(Dialect::Minio, &Input::Parquet, fields);
        assert_eq!(minio(&[number("n")]), Some(RecordFormat::Csv));
        assert_eq!(minio(&[number("small"), text.clone()]), Some(RecordFormat::Json));
        assert_eq!(minio(&[number("n"), text.clone()]), None, "it may be rounded");
        assert_eq!(minio(&[Field::new("f", Atom::Float64), text]), None, "it may be NaN");
    }

    #[test]
    fn minio_reads_only_plain_csv() {
        let (number, text) = (Field::new("n", Atom::Int64), Field::new("t", Atom::String));
        let fields = [number.clone(), text.clone()];
        assert!(Dialect::Minio.reads(&PLAIN, &fields) && !Dialect::Minio.reads(&QUOTED, &fields));
        assert!(
            !Dialect::Minio.reads(&PLAIN, &[text, number])
                && Dialect::Tessera.reads(&QUOTED, &fields)
        );
    }
}
