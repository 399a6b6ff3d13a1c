//! Columns that the paths of files have: the path itself and `name=value` folders.

use std::sync::Arc;

use arrow::array::{ArrayRef, StringViewArray};
use tessera_files::Partitions;
use tessera_operator::format::PathOptions;
use tessera_plan::Scalar;
use tessera_types::{Atom, Error, Field, Item, Result, Tuple, did_you_mean, quote_name};
use tessera_values::cast::{cast, check_cast};
use tessera_values::scalar::array_value;

use super::Source;

/// Returns the columns that the paths of a source have, each with its value for each path.
///
/// # Errors
/// The paths have different folders, an option names a missing one or gives it a type that its
/// values do not have, or the column of paths has the name of another column.
pub(super) fn of(source: &Source, columns: &Tuple) -> Result<Partitions> {
    let PathOptions { filename, hive_partitioning, hive_types, .. } = &source.of_paths;
    let mut found = match hive_partitioning.unwrap_or(true) {
        true => partitions(source)?,
        false => Partitions { fields: Vec::new(), values: vec![Vec::new(); source.paths.len()] },
    };
    for (name, atom) in hive_types {
        retype(&mut found, name, atom, source)?;
    }
    let Some(filename) = filename else { return Ok(found) };
    let is_taken = |field: &Field| field.name.eq_ignore_ascii_case(filename);
    if columns.fields().iter().chain(&found.fields).any(is_taken) {
        return Err(Error::semantic(format!(
            "option filename adds a column {name}, but table {} has one; give the column another name, as in \
             filename = 'path'",
            source.name,
            name = quote_name(filename)
        )));
    }
    found.fields.insert(0, Field::new(filename.clone(), Atom::String));
    for (values, path) in found.values.iter_mut().zip(&source.paths) {
        values.insert(0, Scalar::String(path.as_str().into()));
    }
    Ok(found)
}

/// Reads the `name=value` folders: all of them if an option asks for them, otherwise those below
/// the root.
fn partitions(source: &Source) -> Result<Partitions> {
    let PathOptions { hive_partitioning, hive_types, hive_text, .. } = &source.of_paths;
    let whole = *hive_partitioning == Some(true) || !hive_types.is_empty();
    let part = |path: &String| match whole {
        true => path.clone(),
        false => path.strip_prefix(&source.root).unwrap_or(path).to_string(),
    };
    let paths = source.paths.iter().map(part).collect::<Vec<_>>();
    let mut found = Partitions::discover(&paths, false)
        .map_err(|error| error.context(format!("table {}", source.name)))?;
    let is_typed = |field: &Field| hive_types.iter().any(|(name, _)| is_same(name, &field.name));
    if *hive_text || found.fields.iter().any(is_typed) {
        let texts = Partitions::discover(&paths, true)?;
        let places =
            (0..found.fields.len()).filter(|&at| *hive_text || is_typed(&found.fields[at]));
        for place in places.collect::<Vec<_>>() {
            found.fields[place] = texts.fields[place].clone();
            for (values, texts) in found.values.iter_mut().zip(&texts.values) {
                values[place] = texts[place].clone();
            }
        }
    }
    Ok(found)
}

fn is_same(left: &str, right: &str) -> bool {
    left.eq_ignore_ascii_case(right)
}

/// Gives a column of texts another type.
fn retype(found: &mut Partitions, name: &str, atom: &Atom, source: &Source) -> Result<()> {
    let Some(place) = found.fields.iter().position(|field| is_same(name, &field.name)) else {
        let known: Vec<&str> = found.fields.iter().map(|field| &*field.name).collect();
        return Err(Error::semantic(format!(
            "option hive_types: the paths of table {} have no folder {name}=…{}",
            source.name,
            did_you_mean(name, known)
        )));
    };
    check_cast(&Atom::String, atom).map_err(|error| {
        error.context(format!("option hive_types, column {}", quote_name(name)))
    })?;
    found.fields[place].item = Item::Atom(atom.clone());
    for (values, path) in found.values.iter_mut().zip(&source.paths) {
        let Scalar::String(text) = &values[place] else { continue };
        let array: ArrayRef = Arc::new(StringViewArray::from_iter_values([&**text]));
        let value = cast(&array, &Atom::String, atom, false);
        let value = value.and_then(|array| array_value(&*array, 0)).map_err(|error| {
            error.context(format!("the folder {}=… of '{path}'", quote_name(name)))
        })?;
        values[place] = value;
    }
    Ok(())
}
