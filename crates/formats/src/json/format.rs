//! The format JSON, as the rooms above see it.

use tessera_operator::Registry;
use tessera_operator::format::{
    COMPRESSION, FirstRead, Format, FormatEntry, FormatOption, OptionKind, StartMatch, TEXT,
    TableDescription, TableFiles, WRITTEN_COMPRESSION,
};
use tessera_plan::Value;
use tessera_types::Result;

use super::write::ARRAY;
use super::{JsonMaterialize, JsonScan, infer, without_columns};
use crate::table::{SAMPLE, UNION_BY_NAME, sampled, take_union, text_start};
use crate::text::IGNORE_ERRORS;

/// JSON objects, in lines or in a list.
#[derive(Debug, Clone, Copy)]
pub struct Json;

static ENTRY: FormatEntry = FormatEntry {
    name: "json",
    label: "JSON",
    summary: "JSON objects: one per line, one after the other, or in a list.",
    extensions: &["json", "jsonl", "ndjson"],
    aliases: &[],
    functions: &["read_json", "read_json_auto"],
    scan: "json_scan",
    materialize: Some("json_materialize"),
    magic: &[],
    first_read: FirstRead { head: true, tail: false },
    declares_types: true,
    counts_rows: false,
    read_options: &[
        SAMPLE,
        UNION_BY_NAME,
        COMPRESSION,
        IGNORE_ERRORS,
        FormatOption {
            name: "columns",
            aliases: &[],
            help: "names and types of the columns to read",
            default: None,
            kind: OptionKind::Columns,
        },
    ],
    write_options: &[
        FormatOption {
            name: ARRAY,
            aliases: &[],
            help: "whether the objects are in one list",
            default: None,
            kind: TEXT,
        },
        WRITTEN_COMPRESSION,
    ],
};

impl Format for Json {
    fn entry(&self) -> &'static FormatEntry {
        &ENTRY
    }

    fn register(&self, registry: &mut Registry) {
        registry.register(JsonScan);
        registry.register(JsonMaterialize);
    }

    fn matches_start(&self, start: &[u8]) -> StartMatch {
        let Some(text) = text_start(start) else { return StartMatch::No };
        let mut characters = text
            .trim_start_matches('\u{feff}')
            .chars()
            .filter(|character| !character.is_whitespace());
        match (characters.next(), characters.next()) {
            (Some('{'), Some('"' | '}')) | (Some('['), Some('{' | ']')) => StartMatch::Certain,
            _ => StartMatch::No,
        }
    }

    fn describe(&self, files: &TableFiles<'_>) -> Result<TableDescription> {
        // Columns are by name in any case; the option has all files sampled.
        let mut options = files.params.clone();
        let is_union = take_union(&mut options)?;
        let (readers, statistics) = sampled(files, is_union)?;
        let (columns, mut params) = match infer(&readers, &options) {
            // Files without keys are valid if columns are declared.
            Ok((columns, _)) if columns.is_empty() && files.declared.is_none() => {
                return Err(without_columns(&files.paths[0]));
            }
            found => found?,
        };
        // Declared columns may appear only after the rows that inference reads.
        if let (Some(declared), Some(Value::List(keys))) = (files.declared, params.get("keys")) {
            let declared = declared.iter().map(|field| Value::string(field.name.clone()));
            let more = declared.filter(|name| !keys.contains(name)).collect::<Vec<_>>();
            let keys = keys.iter().cloned().chain(more).collect::<Vec<_>>();
            params.set("keys", keys);
        }
        Ok(TableDescription { columns, statistics, params })
    }
}
