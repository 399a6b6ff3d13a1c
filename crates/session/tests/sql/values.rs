//! Values as PostgreSQL prints them; booleans as `true` and `false`.

use std::fmt::Write;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{
    DataType, Float32Type, Float64Type, IntervalMonthDayNano, IntervalMonthDayNanoType,
};
use tessera_formats::display::ColumnText;
use tessera_session::QueryResult;

/// How the values of a column are compared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Kind {
    Whole,
    Float,
    Decimal,
    Text,
}

/// Rows as a record holds them.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) kinds: Vec<Kind>,
    pub(super) rows: Vec<Vec<String>>,
}

impl Answer {
    /// A letter a column.
    pub(super) fn letters(&self) -> String {
        let letter = |kind: &Kind| match kind {
            Kind::Whole => 'I',
            Kind::Float | Kind::Decimal => 'R',
            Kind::Text => 'T',
        };
        self.kinds.iter().map(letter).collect()
    }
}

impl Answer {
    /// Whether the columns have these types. A sum of whole numbers is a decimal without digits
    /// after its point in Tessera and `bigint` or `numeric` in PostgreSQL; `extract` is the other
    /// way round: both say I or R there.
    pub(super) fn has_types(&self, letters: &str) -> bool {
        letters.len() == self.kinds.len()
            && self.kinds.iter().zip(letters.chars()).all(|(kind, letter)| match kind {
                Kind::Whole | Kind::Decimal => letter != 'T',
                Kind::Float => letter == 'R',
                Kind::Text => letter == 'T',
            })
    }
}

/// The rows of a query.
pub(super) fn answer(result: &QueryResult) -> Result<Answer, String> {
    let kind = |data_type: &DataType| match data_type {
        data_type if data_type.is_integer() => Kind::Whole,
        data_type if data_type.is_floating() => Kind::Float,
        data_type if data_type.is_decimal() => Kind::Decimal,
        _ => Kind::Text,
    };
    let kinds = result.schema().fields().iter().map(|field| kind(field.data_type())).collect();
    let mut rows = Vec::new();
    for batch in result.batches() {
        let batch = batch.map_err(|error| error.to_string())?;
        for row in 0..batch.num_rows() {
            let shown =
                |column| Ok(value(column, row)?.map_or("NULL".to_string(), |text| visible(&text)));
            rows.push(batch.columns().iter().map(shown).collect::<Result<_, String>>()?);
        }
    }
    Ok(Answer { kinds, rows })
}

/// A text as a record holds it: no blank, line end or control character is lost.
fn visible(text: &str) -> String {
    if text.is_empty() {
        return "(empty)".to_string();
    }
    let mut shown = String::new();
    for (at, character) in text.char_indices() {
        let lost = at == 0 || at + 1 == text.len() || text[..at].ends_with(' ');
        match character {
            ' ' if lost => shown.push('␣'),
            '\n' => shown.push_str("\\n"),
            '\t' => shown.push_str("\\t"),
            '\r' => shown.push_str("\\r"),
            '\0'..='\x1f' | '\x7f' => {
                let _ = write!(shown, "\\x{:02x}", character as u32);
            }
            other => shown.push(other),
        }
    }
    shown
}

/// A value's text; nothing for NULL.
fn value(array: &ArrayRef, row: usize) -> Result<Option<String>, String> {
    if array.is_null(row) || *array.data_type() == DataType::Null {
        return Ok(None);
    }
    Ok(Some(match array.data_type() {
        DataType::Float64 => float(array.as_primitive::<Float64Type>().value(row)),
        DataType::Float32 => {
            let value = array.as_primitive::<Float32Type>().value(row);
            if value.is_finite() { value.to_string() } else { float(value.into()) }
        }
        DataType::Interval(_) => {
            interval(array.as_primitive::<IntervalMonthDayNanoType>().value(row))
        }
        DataType::Timestamp(..) | DataType::Time64(_) | DataType::Time32(_) => {
            moment(&plain(array, row)?)
        }
        DataType::List(_) => {
            let values = array.as_list::<i32>().value(row);
            let items =
                (0..values.len()).map(|at| item(&values, at)).collect::<Result<Vec<_>, _>>()?;
            format!("{{{}}}", items.join(","))
        }
        DataType::Struct(_) => {
            let columns = array.as_struct().columns();
            let members =
                columns.iter().map(|column| member(column, row)).collect::<Result<Vec<_>, _>>()?;
            format!("({})", members.join(","))
        }
        DataType::Map(..) => {
            let values = array.as_map().value(row);
            let values = values.column(1);
            let members =
                (0..values.len()).map(|at| member(values, at)).collect::<Result<Vec<_>, _>>()?;
            format!("({})", members.join(","))
        }
        _ => plain(array, row)?,
    }))
}

fn plain(array: &ArrayRef, row: usize) -> Result<String, String> {
    let mut text = String::new();
    let texts = ColumnText::new(array).map_err(|error| error.to_string())?;
    texts.append(row, &mut text).map_err(|error| error.to_string())?;
    Ok(text)
}

fn float(value: f64) -> String {
    match value {
        value if value.is_nan() => "NaN".to_string(),
        f64::INFINITY => "Infinity".to_string(),
        f64::NEG_INFINITY => "-Infinity".to_string(),
        value => value.to_string(),
    }
}

/// A time without the zeros at the end of its fraction; `+00` for the zone.
fn moment(text: &str) -> String {
    let (text, era) = match text.strip_suffix(" BC") {
        Some(text) => (text, " BC"),
        None => (text, ""),
    };
    let offset = text.len().checked_sub(6).filter(|at| text[*at..].starts_with(['+', '-']));
    let (text, zone) = match offset {
        Some(at) => (&text[..at], text[at..].trim_end_matches(":00")),
        None => (text, ""),
    };
    let text =
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text };
    format!("{text}{zone}{era}")
}

/// `1 year 2 mons -3 days +04:05:06.5`: after a negative part, a positive one has its sign.
fn interval(value: IntervalMonthDayNano) -> String {
    let mut text = String::new();
    let mut negative_before = false;
    for (number, unit) in
        [(value.months / 12, "year"), (value.months % 12, "mon"), (value.days, "day")]
    {
        if number != 0 {
            let blank = if text.is_empty() { "" } else { " " };
            let sign = if negative_before && number > 0 { "+" } else { "" };
            let plural = if number == 1 { "" } else { "s" };
            let _ = write!(text, "{blank}{sign}{number} {unit}{plural}");
            negative_before = number < 0;
        }
    }
    if value.nanoseconds != 0 || text.is_empty() {
        let micros = value.nanoseconds.unsigned_abs() / 1000;
        let seconds = micros / 1_000_000;
        let sign = match value.nanoseconds {
            ..0 => "-",
            _ if negative_before => "+",
            _ => "",
        };
        let blank = if text.is_empty() { "" } else { " " };
        let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
        let _ = write!(
            text,
            "{blank}{sign}{hours:02}:{minutes:02}:{:02}.{:06}",
            seconds % 60,
            micros % 1_000_000
        );
        return moment(&text);
    }
    text
}

/// A value in an array.
fn item(array: &ArrayRef, row: usize) -> Result<String, String> {
    let Some(text) = nested(array, row)? else { return Ok("NULL".to_string()) };
    let special = |c: char| c.is_whitespace() || "{}\",\\".contains(c);
    let plain = matches!(array.data_type(), DataType::List(_))
        || !(text.is_empty() || text.eq_ignore_ascii_case("null") || text.contains(special));
    let escaped = || format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
    Ok(if plain { text } else { escaped() })
}

/// A value in a row.
fn member(array: &ArrayRef, row: usize) -> Result<String, String> {
    let Some(text) = nested(array, row)? else { return Ok(String::new()) };
    let special = |c: char| c.is_whitespace() || "()\",\\".contains(c);
    let escaped = || format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\"\""));
    Ok(if text.is_empty() || text.contains(special) { escaped() } else { text })
}

/// Within other values booleans are one letter.
fn nested(array: &ArrayRef, row: usize) -> Result<Option<String>, String> {
    let text = value(array, row)?;
    let letter = |text: String| text[..1].to_string();
    Ok(if *array.data_type() == DataType::Boolean { text.map(letter) } else { text })
}

#[test]
fn values_look_like_those_of_postgresql() {
    let of =
        |months, days, nanoseconds| interval(IntervalMonthDayNano::new(months, days, nanoseconds));
    assert_eq!(of(14, 3, 14_706_500_000_000), "1 year 2 mons 3 days 04:05:06.5");
    assert_eq!(of(-1, 2, 0), "-1 mons +2 days");
    assert_eq!(of(0, -1, 3_600_000_000_000), "-1 days +01:00:00");
    assert_eq!(of(0, 0, 0), "00:00:00");
    assert_eq!(moment("2024-01-01 10:20:30.500+00:00"), "2024-01-01 10:20:30.5+00");
    assert_eq!(moment("2024-01-01 10:20:00-05:30"), "2024-01-01 10:20:00-05:30");
    assert_eq!(visible(" a  b \n"), "␣a ␣b \\n");
}
