//! Functions, settings and prepared statements; DuckDB's functions that describe the session.

use tessera_functions::duckdb_name;

use super::objects::oid;
use super::{Contents, DATABASE, Described, INFORMATION_SCHEMA, OWNER_OID, SCHEMA, columns, row};

/// The functions that describe the session in FROM.
pub const FUNCTIONS: [&str; 8] = [
    "duckdb_columns",
    "duckdb_databases",
    "duckdb_functions",
    "duckdb_schemas",
    "duckdb_settings",
    "duckdb_tables",
    "duckdb_variables",
    "duckdb_views",
];

impl dyn Contents + '_ {
    /// Returns the rows of one of DuckDB's functions; `None` for other names.
    pub(super) fn described_function(&mut self, name: &str) -> Option<Described> {
        if !FUNCTIONS.contains(&name) {
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
                let settings = self.settings();
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
                let rows = self.functions().into_iter().map(|one| {
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
                let rows = self.variables().into_iter().map(|variable| {
                    row![&*variable.name, variable.value.as_deref(), &*duckdb_name(&variable.atom)]
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
        let settings = self.settings();
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
        let rows = self.prepared_statements().into_iter().map(|(name, parameters)| {
            let types = parameters.iter().map(|(name, atom)| match atom {
                Some(atom) => format!("${name} {atom}"),
                None => format!("${name}"),
            });
            row![&*name, &*types.collect::<Vec<_>>().join(", "), true]
        });
        Described {
            columns: columns(&[("name", 't'), ("parameter_types", 't'), ("from_sql", 'b')]),
            rows: rows.collect(),
        }
    }

    pub(super) fn pg_proc(&self, schema: i64, catalog: i64) -> Described {
        let rows = self.functions().into_iter().map(|one| {
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
}
