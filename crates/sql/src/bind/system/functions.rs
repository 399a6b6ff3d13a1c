//! Functions, settings and prepared statements; DuckDB's functions that describe the session.

use tessera_functions::macros::of_aggregates;
use tessera_functions::{WINDOW_FUNCTIONS, duckdb_name};

use super::objects::oid;
use super::{DATABASE, Described, INFORMATION_SCHEMA, OWNER_OID, SCHEMA, columns, row};
use crate::bind::user_macro::signature;
use crate::bind::{Binder, aggregate, table_function};
use crate::macro_definition::MacroBody;

/// A function, and how it is called.
struct CallableFunction {
    name: String,
    kind: &'static str,
    /// The parameters of a macro.
    parameters: Option<String>,
    parameter_count: Option<i64>,
    /// The body of a macro.
    definition: Option<String>,
}

/// The functions that describe the session in FROM.
pub(in crate::bind) const NAMES: [&str; 8] = [
    "duckdb_columns",
    "duckdb_databases",
    "duckdb_functions",
    "duckdb_schemas",
    "duckdb_settings",
    "duckdb_tables",
    "duckdb_variables",
    "duckdb_views",
];

impl Binder<'_> {
    /// Returns the rows of one of DuckDB's functions; `None` for other names.
    pub(super) fn described_function(&mut self, name: &str) -> Option<Described> {
        if !NAMES.contains(&name) {
            return None;
        }
        Some(match name {
            "duckdb_tables" => {
                let tables = self.objects().into_iter().filter(|object| object.view.is_none());
                let rows = tables.map(|object| {
                    row![
                        DATABASE,
                        SCHEMA,
                        &*object.name,
                        oid(&object.name),
                        false,
                        object.is_temporary,
                        false,
                        object.row_count.map(|rows| rows as i64),
                        object.columns.len() as i64,
                    ]
                });
                Described {
                    columns: columns(&[
                        ("database_name", 't'),
                        ("schema_name", 't'),
                        ("table_name", 't'),
                        ("table_oid", 'i'),
                        ("internal", 'b'),
                        ("temporary", 'b'),
                        ("has_primary_key", 'b'),
                        ("estimated_size", 'i'),
                        ("column_count", 'i'),
                    ]),
                    rows: rows.collect(),
                }
            }
            "duckdb_views" => {
                let rows = self.objects().into_iter().filter_map(|object| {
                    let text = object.view?;
                    let count = object.columns.len() as i64;
                    Some(row![
                        DATABASE,
                        SCHEMA,
                        &*object.name,
                        oid(&object.name),
                        false,
                        true,
                        count,
                        &*text,
                    ])
                });
                Described {
                    columns: columns(&[
                        ("database_name", 't'),
                        ("schema_name", 't'),
                        ("view_name", 't'),
                        ("view_oid", 'i'),
                        ("internal", 'b'),
                        ("temporary", 'b'),
                        ("column_count", 'i'),
                        ("sql", 't'),
                    ]),
                    rows: rows.collect(),
                }
            }
            "duckdb_columns" => self.described_columns(),
            "duckdb_settings" => {
                let settings = (self.environment.settings)();
                let rows = settings.iter().map(|setting| {
                    row![&*setting.name, &*setting.value, &*setting.meaning, "VARCHAR", "LOCAL"]
                });
                Described {
                    columns: columns(&[
                        ("name", 't'),
                        ("value", 't'),
                        ("description", 't'),
                        ("input_type", 't'),
                        ("scope", 't'),
                    ]),
                    rows: rows.collect(),
                }
            }
            "duckdb_functions" => {
                let rows = self.callable().into_iter().map(|one| {
                    row![
                        DATABASE,
                        SCHEMA,
                        &*one.name,
                        one.kind,
                        one.parameters.as_deref(),
                        one.definition.as_deref(),
                        one.definition.is_none(),
                    ]
                });
                Described {
                    columns: columns(&[
                        ("database_name", 't'),
                        ("schema_name", 't'),
                        ("function_name", 't'),
                        ("function_type", 't'),
                        ("parameters", 't'),
                        ("macro_definition", 't'),
                        ("internal", 'b'),
                    ]),
                    rows: rows.collect(),
                }
            }
            "duckdb_variables" => {
                let variables = self.environment.definitions.all_variables();
                let rows = variables.map(|(name, value)| {
                    let text = self.shown(value);
                    row![&**name, text.as_deref(), &*duckdb_name(&value.atom)]
                });
                Described {
                    columns: columns(&[("name", 't'), ("value", 't'), ("type", 't')]),
                    rows: rows.collect(),
                }
            }
            "duckdb_schemas" => Described {
                columns: columns(&[
                    ("oid", 'i'),
                    ("database_name", 't'),
                    ("schema_name", 't'),
                    ("internal", 'b'),
                ]),
                rows: [SCHEMA, INFORMATION_SCHEMA, super::CATALOG_SCHEMA]
                    .map(|schema| row![oid(schema), DATABASE, schema, schema != SCHEMA])
                    .to_vec(),
            },
            _ => Described {
                columns: columns(&[
                    ("database_name", 't'),
                    ("database_oid", 'i'),
                    ("internal", 'b'),
                    ("type", 't'),
                ]),
                rows: vec![row![DATABASE, oid(DATABASE), false, "tessera"]],
            },
        })
    }

    fn described_columns(&mut self) -> Described {
        let mut rows = Vec::new();
        for object in self.objects() {
            for (at, (name, atom, nullable)) in object.columns.iter().enumerate() {
                let digits = super::types::precision(atom);
                rows.push(row![
                    DATABASE,
                    SCHEMA,
                    &*object.name,
                    oid(&object.name),
                    &**name,
                    at as i64 + 1,
                    false,
                    None::<&str>,
                    *nullable,
                    &*duckdb_name(atom),
                    digits.map(|(precision, ..)| precision),
                    digits.and_then(|(_, scale, _)| scale),
                ]);
            }
        }
        Described {
            columns: columns(&[
                ("database_name", 't'),
                ("schema_name", 't'),
                ("table_name", 't'),
                ("table_oid", 'i'),
                ("column_name", 't'),
                ("column_index", 'i'),
                ("internal", 'b'),
                ("column_default", 't'),
                ("is_nullable", 'b'),
                ("data_type", 't'),
                ("numeric_precision", 'i'),
                ("numeric_scale", 'i'),
            ]),
            rows,
        }
    }

    pub(super) fn pg_settings(&self) -> Described {
        let settings = (self.environment.settings)();
        let rows = settings.iter().map(|setting| {
            row![
                &*setting.name,
                &*setting.value,
                None::<&str>,
                "Tessera",
                &*setting.meaning,
                "user",
                "string",
                "session",
            ]
        });
        Described {
            columns: columns(&[
                ("name", 't'),
                ("setting", 't'),
                ("unit", 't'),
                ("category", 't'),
                ("short_desc", 't'),
                ("context", 't'),
                ("vartype", 't'),
                ("source", 't'),
            ]),
            rows: rows.collect(),
        }
    }

    pub(super) fn pg_prepared_statements(&self) -> Described {
        let prepared = self.environment.definitions.all_prepared();
        let rows = prepared.map(|(name, prepared)| {
            let types = prepared.parameters.iter().map(|(name, atom)| match atom {
                Some(atom) => format!("${name} {atom}"),
                None => format!("${name}"),
            });
            row![&**name, &*types.collect::<Vec<_>>().join(", "), true]
        });
        Described {
            columns: columns(&[("name", 't'), ("parameter_types", 't'), ("from_sql", 'b')]),
            rows: rows.collect(),
        }
    }

    pub(super) fn pg_proc(&self, schema: i64, catalog: i64) -> Described {
        let rows = self.callable().into_iter().map(|one| {
            let kind = match one.kind {
                "aggregate" => "a",
                "window" => "w",
                _ => "f",
            };
            let is_set = matches!(one.kind, "table" | "table_macro");
            row![
                oid(&one.name),
                &*one.name,
                if one.definition.is_some() { schema } else { catalog },
                OWNER_OID,
                kind,
                is_set,
                one.parameter_count,
                one.definition.as_deref(),
            ]
        });
        Described {
            columns: columns(&[
                ("oid", 'i'),
                ("proname", 't'),
                ("pronamespace", 'i'),
                ("proowner", 'i'),
                ("prokind", 't'),
                ("proretset", 'b'),
                ("pronargs", 'i'),
                ("prosrc", 't'),
            ]),
            rows: rows.collect(),
        }
    }

    /// Returns all functions, sorted by name: those of Tessera, then macros.
    fn callable(&self) -> Vec<CallableFunction> {
        let files: Vec<&str> =
            self.catalog.file_functions().into_iter().map(|(name, _)| name).collect();
        let kind = |name: &str| match name {
            _ if WINDOW_FUNCTIONS.contains(&name) => "window",
            _ if files.contains(&name) || table_function::names().any(|known| known == name) => {
                "table"
            }
            _ if aggregate::names().any(|known| known == name)
                || of_aggregates().any(|known| known == name)
                || self.library().aggregate_udf(name).is_some() =>
            {
                "aggregate"
            }
            _ => "scalar",
        };
        let own = self.own_function_names().into_iter().map(|name| CallableFunction {
            kind: kind(&name),
            name,
            parameters: None,
            parameter_count: None,
            definition: None,
        });
        let mut all: Vec<CallableFunction> = own.collect();
        for (name, overloads) in self.environment.definitions.all_macros() {
            for one in overloads {
                let (kind, definition) = match &one.body {
                    MacroBody::Value(body) => ("macro", body.to_string()),
                    MacroBody::Table(query) => ("table_macro", query.to_string()),
                };
                all.push(CallableFunction {
                    name: name.clone(),
                    kind,
                    parameters: Some(signature(name, one)),
                    parameter_count: Some(one.parameters.len() as i64),
                    definition: Some(definition),
                });
            }
        }
        all
    }
}
