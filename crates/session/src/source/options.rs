//! Options of file formats in SQL statements.

use tessera_operator::format::{
    ColumnTypes, Format, FormatEntry, FormatOption, OptionKind, PATH_OPTIONS, ReadOptions,
    set_defaults,
};
use tessera_optimizer::table::{FileOption, OptionValue};
use tessera_parser::parse_type;
use tessera_plan::{Params, Value};
use tessera_types::{Atom, Error, Field, Item, Result, Tuple, quote_name};

/// Returns `columns` with the types from options.
///
/// # Errors
/// A column does not exist, or there are more types than columns.
pub(crate) fn with_types(types: &ColumnTypes, columns: &Tuple, path: &str) -> Result<Tuple> {
    let mut fields = columns.fields().to_vec();
    match types {
        ColumnTypes::Inferred => {}
        ColumnTypes::Text => {
            fields.iter_mut().for_each(|field| field.item = Item::Atom(Atom::String));
        }
        ColumnTypes::InOrder(types) if types.len() > fields.len() => {
            let (types, columns) = (types.len(), fields.len());
            return Err(Error::semantic(format!(
                "option types has {types} types, but '{path}' has {columns} columns"
            )));
        }
        ColumnTypes::InOrder(types) => {
            for (field, atom) in fields.iter_mut().zip(types) {
                field.item = Item::Atom(atom.clone());
            }
        }
        ColumnTypes::Named(types) => {
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

/// Parses the options of reading files.
///
/// # Errors
/// The format does not have the option, the option is repeated, or its value is invalid.
pub(crate) fn read_options(format: &dyn Format, options: &[FileOption]) -> Result<ReadOptions> {
    let entry = format.entry();
    let mut read = ReadOptions::default();
    for FileOption { name, value } in options {
        if let Some(option) = find(&PATH_OPTIONS, name) {
            path_option(&mut read, option, value)?;
            continue;
        }
        let option = find(entry.read_options, name)
            .ok_or_else(|| unknown(name, entry, "reading", entry.read_options, &PATH_OPTIONS))?;
        read_option(&mut read, option, value)?;
    }
    set_defaults(&mut read.params, entry.read_options);
    if !read.paths.hive_types.is_empty() && read.paths.hive_partitioning == Some(false) {
        return Err(Error::semantic(
            "option hive_types gives types to columns that hive_partitioning = false leaves out; remove one of them",
        ));
    }
    format.check_options(&mut read)?;
    Ok(read)
}

fn read_option(read: &mut ReadOptions, option: &FormatOption, value: &OptionValue) -> Result<()> {
    let name = option.name;
    let is_given = match option.kind {
        OptionKind::Columns => read.columns.is_some(),
        OptionKind::Types | OptionKind::AllText => read.types != ColumnTypes::Inferred,
        _ => read.params.get(name).is_some(),
    };
    if is_given {
        return Err(twice(name));
    }
    match (option.kind, value) {
        (OptionKind::Literal(parse), OptionValue::One(text)) => read.params.set(name, parse(text)?),
        (OptionKind::Strings, OptionValue::One(text)) => {
            read.params.set(name, Value::string(text.as_str()));
        }
        (OptionKind::Strings | OptionKind::Names, OptionValue::List(texts)) => {
            read.params.set(name, strings(texts));
        }
        (OptionKind::Columns, OptionValue::Named(pairs)) => {
            let named = named_types(pairs)?.into_iter();
            read.columns = Some(named.map(|(name, atom)| Field::nullable(name, atom)).collect());
        }
        (OptionKind::Types, OptionValue::Named(pairs)) => {
            read.types = ColumnTypes::Named(named_types(pairs)?);
        }
        (OptionKind::Types, OptionValue::List(types)) => {
            let types = types.iter().map(|text| parse_type(text));
            read.types = ColumnTypes::InOrder(types.collect::<Result<_>>()?);
        }
        (OptionKind::AllText, OptionValue::One(text)) => {
            if flag(name, text)? {
                read.types = ColumnTypes::Text;
            }
        }
        (kind, _) => return Err(wrong_kind(name, kind)),
    }
    Ok(())
}

/// Parses an option that is true or false.
///
/// # Errors
/// The text is neither.
pub(crate) fn flag(name: &str, text: &str) -> Result<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" | "on" => Ok(true),
        "false" | "0" | "off" => Ok(false),
        _ => Err(Error::semantic(format!("option {name} must be true or false"))),
    }
}

/// Parses an option that every format has.
fn path_option(read: &mut ReadOptions, option: &FormatOption, value: &OptionValue) -> Result<()> {
    let (name, paths) = (option.name, &mut read.paths);
    if let ("hive_types", OptionValue::Named(pairs)) = (name, value) {
        paths.hive_types = named_types(pairs)?;
        return Ok(());
    }
    let (OptionValue::One(text), false) = (value, name == "hive_types") else {
        return Err(wrong_kind(name, option.kind));
    };
    match name {
        "filename" => {
            paths.filename = match flag(name, text) {
                Ok(is_wanted) => is_wanted.then(|| name.into()),
                Err(_) if !text.is_empty() => Some(text.as_str().into()),
                Err(error) => return Err(error),
            };
        }
        "hive_partitioning" if text.eq_ignore_ascii_case("auto") => paths.hive_partitioning = None,
        "hive_partitioning" => paths.hive_partitioning = Some(flag(name, text)?),
        "hive_types_autocast" => paths.hive_text = !flag(name, text)?,
        _ => return Err(wrong_kind(name, option.kind)),
    }
    Ok(())
}

/// Returns the option with this name.
fn find<'a>(options: &'a [FormatOption], name: &str) -> Option<&'a FormatOption> {
    options.iter().find(|option| option.has_name(name))
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

fn wrong_kind(option: &str, kind: OptionKind) -> Error {
    let expected = match kind {
        OptionKind::Literal(_) => "must be a single literal",
        OptionKind::Strings => "cannot be a map of names",
        OptionKind::Names => "must be a list, such as ['a', 'b']",
        OptionKind::Columns => "must be names with types, such as {'a': 'int', 'b': 'varchar'}",
        OptionKind::Types => {
            "must be types by name, such as {'a': 'int'}, or in order, such as ['int', 'varchar']"
        }
        OptionKind::AllText => "must be true or false",
    };
    Error::semantic(format!("option {option} {expected}"))
}

fn twice(name: &str) -> Error {
    Error::semantic(format!("duplicate option {name}; remove one of them"))
}

/// Parses the options of writing files: parameters of the materialize sub-operator.
///
/// # Errors
/// The format does not have the option, or the option is repeated.
pub(crate) fn write_options(entry: &FormatEntry, options: &[(String, String)]) -> Result<Params> {
    let mut written = ReadOptions::default();
    for (name, value) in options {
        let option = find(entry.write_options, name)
            .ok_or_else(|| unknown(name, entry, "writing", entry.write_options, &[]))?;
        read_option(&mut written, option, &OptionValue::One(value.clone()))?;
    }
    set_defaults(&mut written.params, entry.write_options);
    Ok(written.params)
}

fn unknown(
    name: &str,
    entry: &FormatEntry,
    doing: &str,
    known: &[FormatOption],
    common: &[FormatOption],
) -> Error {
    let names: Vec<&str> = known.iter().chain(common).map(|option| option.name).collect();
    let expected = match names.is_empty() {
        true => "this format has no options".to_string(),
        false => format!("expected {}", names.join(", ")),
    };
    let format = entry.label;
    Error::semantic(format!("unknown option '{name}' of {doing} {format} files; {expected}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(format: &str, options: &[(&str, &str)]) -> Result<Params> {
        let registry = tessera_testing::standard_registry();
        let option = |(name, value): &(&str, &str)| FileOption {
            name: name.to_string(),
            value: OptionValue::One(value.to_string()),
        };
        let options = options.iter().map(option).collect::<Vec<_>>();
        Ok(read_options(&**registry.formats().named(format).unwrap(), &options)?.params)
    }

    #[test]
    fn names_of_options() {
        let found = params("csv", &[("delim", ";"), ("HEADER", "true")]).unwrap();
        assert_eq!(found.string("delimiter").unwrap().as_ref(), ";");
        assert!(found.get("header").is_some());
        let tabs = params("tsv", &[]).unwrap();
        assert_eq!(tabs.string("delimiter").unwrap().as_ref(), "\t");
        let all = params("json", &[("sample_size", "-1")]).unwrap();
        assert_eq!(all.string("sample").unwrap().as_ref(), "all");
        let refused = |format, options: &[(&str, &str)]| {
            params(format, options).unwrap_err().message().to_string()
        };
        let message = refused("csv", &[("delimeter", ";")]);
        assert_eq!(
            message,
            "unknown option 'delimeter' of reading CSV files; expected header, delimiter, quote, \
             escape, null, sample, skip, comment, columns, types, names, all_varchar, \
             union_by_name, compression, max_line_size, ignore_errors, store_rejects, \
             rejects_scan, rejects_table, rejects_limit, filename, hive_partitioning, hive_types, \
             hive_types_autocast"
        );
        assert!(refused("text", &[("header", "true")]).contains("filename, hive_"));
        assert!(refused("csv", &[("delim", ";"), ("sep", ",")]).contains("duplicate"));
        assert!(refused("text", &[("delim", ";")]).contains("reading text files"));
    }
}
