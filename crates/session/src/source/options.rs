//! Options of file formats in SQL statements.

use tessera_files::FileFormat;
use tessera_formats::{csv, json, parquet};
use tessera_optimizer::table::{FileOption, OptionValue};
use tessera_plan::{Params, Value};
use tessera_sql::parse_type;
use tessera_types::{Atom, Error, Field, Item, Result, Tuple, quote_name};

/// Whether options are for reading or for writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Read,
    Write,
}

/// The parsed options for reading.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ReadOptions {
    /// The parameters of the scan.
    pub(crate) params: Params,
    /// The option `columns`: names and types of all fields.
    pub(crate) columns: Option<Vec<Field>>,
    /// The options `types` and `all_varchar`.
    pub(crate) types: Types,
}

/// The column types from options.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) enum Types {
    /// All types are inferred.
    #[default]
    Inferred,
    /// The types of the first columns, in order.
    InOrder(Vec<Atom>),
    /// The types of named columns.
    Named(Vec<(String, Atom)>),
    /// All columns are text.
    Text,
}

impl Types {
    /// Returns `columns` with these types.
    ///
    /// # Errors
    /// A column does not exist, or there are more types than columns.
    pub(crate) fn apply(&self, columns: &Tuple, path: &str) -> Result<Tuple> {
        let mut fields = columns.fields().to_vec();
        match self {
            Types::Inferred => {}
            Types::Text => {
                fields.iter_mut().for_each(|field| field.item = Item::Atom(Atom::String))
            }
            Types::InOrder(types) if types.len() > fields.len() => {
                let (types, columns) = (types.len(), fields.len());
                return Err(Error::semantic(format!(
                    "option types has {types} types, but '{path}' has {columns} columns"
                )));
            }
            Types::InOrder(types) => {
                for (field, atom) in fields.iter_mut().zip(types) {
                    field.item = Item::Atom(atom.clone());
                }
            }
            Types::Named(types) => {
                for (name, atom) in types {
                    let place = fields.iter().position(|field| *field.name == **name);
                    let place = place.or_else(|| {
                        fields.iter().position(|field| field.name.eq_ignore_ascii_case(name))
                    });
                    let Some(place) = place else {
                        let known: Vec<&str> = fields.iter().map(|field| &*field.name).collect();
                        return Err(Error::semantic(format!(
                            "unknown column {name} in option types; '{path}' has {}",
                            known.join(", ")
                        )));
                    };
                    fields[place].item = Item::Atom(atom.clone());
                }
            }
        }
        Ok(Tuple::new(fields))
    }
}

/// Parses the options for reading.
///
/// # Errors
/// The format does not have the option, the option is repeated, or its value is invalid.
pub(crate) fn read_options(format: FileFormat, options: &[FileOption]) -> Result<ReadOptions> {
    let mut read = ReadOptions::default();
    let mut texts = Vec::new();
    for FileOption { name, value } in options {
        let lower = name.to_ascii_lowercase();
        let known = canonical_name(&lower);
        let allowed = match format {
            FileFormat::Csv | FileFormat::Tsv => TYPED.contains(&known),
            FileFormat::Json => known == "columns",
            FileFormat::Parquet | FileFormat::Ipc => false,
        };
        match (known, value) {
            ("columns", OptionValue::Named(pairs)) if allowed && read.columns.is_none() => {
                let named = named_types(pairs)?.into_iter();
                read.columns =
                    Some(named.map(|(name, atom)| Field::nullable(name, atom)).collect());
            }
            ("types", OptionValue::Named(pairs)) if allowed && read.types == Types::Inferred => {
                read.types = Types::Named(named_types(pairs)?);
            }
            ("types", OptionValue::List(types)) if allowed && read.types == Types::Inferred => {
                let types = types.iter().map(|text| parse_type(text));
                read.types = Types::InOrder(types.collect::<Result<_>>()?);
            }
            ("all_varchar", OptionValue::One(text)) if allowed && read.types == Types::Inferred => {
                match text.to_ascii_lowercase().as_str() {
                    "true" | "1" | "on" => read.types = Types::Text,
                    "false" | "0" | "off" => {}
                    _ => return Err(Error::semantic("option all_varchar must be true or false")),
                }
            }
            ("names", OptionValue::List(names))
                if allowed && read.params.get("names").is_none() =>
            {
                read.params.set("names", strings(names));
            }
            ("null", OptionValue::List(nulls)) if allowed && read.params.get("null").is_none() => {
                read.params.set("null", strings(nulls));
            }
            (_, OptionValue::One(text)) if !allowed || known == "null" => {
                texts.push((name.clone(), text.clone()));
            }
            _ if allowed => return Err(wrong_kind(known, &read)),
            _ => {
                let known = known_options(format, Direction::Read);
                return Err(match known.contains(&known_name(name).as_str()) {
                    true => Error::semantic(format!("option {name} must be a single literal")),
                    false => unknown(name, format, Direction::Read, known),
                });
            }
        }
    }
    for (name, value) in params_of_options(format, Direction::Read, &texts)?.iter() {
        if read.params.get(name).is_some() {
            return Err(twice(name));
        }
        read.params.set(name.clone(), value.clone());
    }
    if let (Some(columns), FileFormat::Csv | FileFormat::Tsv) = (&read.columns, format) {
        if read.types != Types::Inferred || read.params.get("names").is_some() {
            let message = "option columns gives names and types of all columns; remove names, types and all_varchar";
            return Err(Error::semantic(message));
        }
        let names = columns.iter().map(|field| Value::string(field.name.clone()));
        read.params.set("names", names.collect::<Vec<_>>());
    }
    Ok(read)
}

/// The options of CSV files whose value is a list, a map or a boolean.
const TYPED: [&str; 5] = ["columns", "types", "names", "all_varchar", "null"];

fn known_name(name: &str) -> String {
    canonical_name(&name.to_ascii_lowercase()).to_string()
}

fn strings(texts: &[String]) -> Vec<Value> {
    texts.iter().map(|text| Value::string(text.as_str())).collect()
}

fn named_types(pairs: &[(String, String)]) -> Result<Vec<(String, Atom)>> {
    let named = |(name, text): &(String, String)| {
        parse_type(text)
            .map(|atom| (name.clone(), atom))
            .map_err(|error| error.context(format!("column {}", quote_name(name))))
    };
    let types: Vec<(String, Atom)> = pairs.iter().map(named).collect::<Result<_>>()?;
    for (position, (name, _)) in types.iter().enumerate() {
        if types[..position].iter().any(|(before, _)| before == name) {
            return Err(Error::semantic(format!(
                "an option names column {} twice",
                quote_name(name)
            )));
        }
    }
    Ok(types)
}

fn wrong_kind(option: &str, read: &ReadOptions) -> Error {
    let given = match option {
        "columns" => read.columns.is_some(),
        "types" | "all_varchar" => read.types != Types::Inferred,
        other => read.params.get(other).is_some(),
    };
    match option {
        _ if given => twice(option),
        "columns" => Error::semantic(
            "option columns must be names with types, such as {'a': 'int', 'b': 'varchar'}",
        ),
        "types" => Error::semantic(
            "option types must be types by name, such as {'a': 'int'}, or in order, such as ['int', 'varchar']",
        ),
        "names" => Error::semantic("option names must be a list, such as ['a', 'b']"),
        other => Error::semantic(format!("option {other} cannot be a map of names")),
    }
}

fn twice(name: &str) -> Error {
    Error::semantic(format!("duplicate option {name}; remove one of them"))
}

/// Converts options to parameters of a scan or materialize sub-operator.
///
/// # Errors
/// The format does not have the option, or the option is repeated.
pub(crate) fn params_of_options(
    format: FileFormat,
    direction: Direction,
    options: &[(String, String)],
) -> Result<Params> {
    let known = known_options(format, direction);
    let mut params = Params::new();
    for (written, value) in options {
        let lower = written.to_ascii_lowercase();
        let name = canonical_name(&lower);
        if !known.contains(&name) {
            return Err(unknown(written, format, direction, known));
        }
        if params.get(name).is_some() {
            return Err(twice(name));
        }
        match (name, value.as_str()) {
            // DuckDB writes -1 for all rows.
            ("sample", "-1") => params.set(name, Value::string("all")),
            _ => params.set(name, Value::string(value.as_str())),
        }
    }
    if format == FileFormat::Tsv && params.get("delimiter").is_none() {
        params.set("delimiter", Value::string("\t"));
    }
    Ok(params)
}

fn known_options(format: FileFormat, direction: Direction) -> &'static [&'static str] {
    match (format, direction) {
        (FileFormat::Csv | FileFormat::Tsv, Direction::Read) => &csv::SCAN_OPTIONS,
        (FileFormat::Csv | FileFormat::Tsv, Direction::Write) => &csv::MATERIALIZE_OPTIONS,
        (FileFormat::Json, Direction::Read) => &json::SCAN_OPTIONS,
        (FileFormat::Parquet, Direction::Write) => &parquet::MATERIALIZE_OPTIONS,
        _ => &[],
    }
}

/// The canonical name of an option. Other systems use the aliases.
fn canonical_name(name: &str) -> &str {
    match name {
        "delim" | "sep" => "delimiter",
        "has_header" => "header",
        "nullstr" | "null_value" => "null",
        "sample_size" => "sample",
        "dtypes" | "column_types" => "types",
        "codec" => "compression",
        name => name,
    }
}

fn unknown(name: &str, format: FileFormat, direction: Direction, known: &[&str]) -> Error {
    let format = match format {
        FileFormat::Parquet => "Parquet",
        FileFormat::Csv | FileFormat::Tsv => "CSV",
        FileFormat::Json => "JSON",
        FileFormat::Ipc => "Arrow",
    };
    let doing = if direction == Direction::Read { "reading" } else { "writing" };
    let typed: &[&str] = match (doing, format) {
        ("reading", "CSV") => &TYPED[..4],
        ("reading", "JSON") => &TYPED[..1],
        _ => &[],
    };
    let expected = match [known, typed].concat() {
        known if known.is_empty() => "this format has no options".to_string(),
        known => format!("expected {}", known.join(", ")),
    };
    Error::semantic(format!("unknown option '{name}' of {doing} {format} files; {expected}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(format: FileFormat, options: &[(&str, &str)]) -> Result<Params> {
        let options: Vec<_> =
            options.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        params_of_options(format, Direction::Read, &options)
    }

    #[test]
    fn names_of_options() {
        let found = params(FileFormat::Csv, &[("delim", ";"), ("HEADER", "true")]).unwrap();
        assert_eq!(found.string("delimiter").unwrap().as_ref(), ";");
        assert!(found.get("header").is_some());
        let tabs = params(FileFormat::Tsv, &[]).unwrap();
        assert_eq!(tabs.string("delimiter").unwrap().as_ref(), "\t");
        let all = params(FileFormat::Json, &[("sample_size", "-1")]).unwrap();
        assert_eq!(all.string("sample").unwrap().as_ref(), "all");
        let refused = |format, options: &[(&str, &str)]| {
            params(format, options).unwrap_err().message().to_string()
        };
        let message = refused(FileFormat::Csv, &[("delimeter", ";")]);
        assert_eq!(
            message,
            "unknown option 'delimeter' of reading CSV files; expected header, delimiter, quote, \
             escape, null, sample, skip, comment, columns, types, names, all_varchar"
        );
        assert!(
            refused(FileFormat::Parquet, &[("header", "true")])
                .contains("this format has no options")
        );
        assert!(refused(FileFormat::Csv, &[("delim", ";"), ("sep", ",")]).contains("duplicate"));
    }
}
