//! Schemas, tables, views and columns.

use tessera_plan::Scalar;
use tessera_types::Atom;

use super::types::{TYPES, modifier, pg_type, precision};
use super::{
    CATALOG_SCHEMA, Contents, DATABASE, Described, INFORMATION_SCHEMA, OWNER, OWNER_OID, SCHEMA,
    columns, row,
};

/// The identifiers of the schemas.
const CATALOG_OID: i64 = 11;
const SCHEMA_OID: i64 = 2200;
const INFORMATION_OID: i64 = 13_000;
const DATABASE_OID: i64 = 5;

/// Relations of `pg_catalog` that are always empty, and their columns.
const EMPTY: [(&str, &[(&str, char)]); 12] = [
    (
        "pg_index",
        &[
            ("indexrelid", 'i'),
            ("indrelid", 'i'),
            ("indisunique", 'b'),
            ("indisprimary", 'b'),
            ("indkey", 't'),
            ("indisvalid", 'b'),
        ],
    ),
    (
        "pg_constraint",
        &[
            ("oid", 'i'),
            ("conname", 't'),
            ("connamespace", 'i'),
            ("contype", 't'),
            ("conrelid", 'i'),
            ("confrelid", 'i'),
            ("conindid", 'i'),
            ("conkey", 't'),
            ("confkey", 't'),
        ],
    ),
    ("pg_attrdef", &[("oid", 'i'), ("adrelid", 'i'), ("adnum", 'i'), ("adbin", 't')]),
    (
        "pg_description",
        &[("objoid", 'i'), ("classoid", 'i'), ("objsubid", 'i'), ("description", 't')],
    ),
    ("pg_inherits", &[("inhrelid", 'i'), ("inhparent", 'i'), ("inhseqno", 'i')]),
    ("pg_enum", &[("oid", 'i'), ("enumtypid", 'i'), ("enumsortorder", 'i'), ("enumlabel", 't')]),
    ("pg_extension", &[("oid", 'i'), ("extname", 't'), ("extversion", 't')]),
    ("pg_trigger", &[("oid", 'i'), ("tgrelid", 'i'), ("tgname", 't'), ("tgisinternal", 'b')]),
    ("pg_policy", &[("oid", 'i'), ("polname", 't'), ("polrelid", 'i')]),
    (
        "pg_indexes",
        &[("schemaname", 't'), ("tablename", 't'), ("indexname", 't'), ("indexdef", 't')],
    ),
    ("pg_matviews", &[("schemaname", 't'), ("matviewname", 't'), ("definition", 't')]),
    ("pg_collation", &[("oid", 'i'), ("collname", 't'), ("collnamespace", 'i')]),
];

/// Returns the identifier of a name: the same as long as the name is.
pub fn oid(name: &str) -> i64 {
    const FIRST_OF_USERS: u32 = 16_384;
    // FNV-1a, whose values never change.
    let hash = name
        .bytes()
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    i64::from(FIRST_OF_USERS + hash % (i32::MAX as u32 - FIRST_OF_USERS))
}

impl dyn Contents + '_ {
    pub(super) fn information_schema(&mut self, relation: &str) -> Option<Described> {
        Some(match relation {
            "schemata" => Described {
                columns: columns(&[
                    ("catalog_name", 't'),
                    ("schema_name", 't'),
                    ("schema_owner", 't'),
                ]),
                rows: [SCHEMA, INFORMATION_SCHEMA, CATALOG_SCHEMA]
                    .map(|schema| row![DATABASE, schema, OWNER])
                    .to_vec(),
            },
            "tables" => {
                let rows = self.objects().into_iter().map(|object| {
                    let kind = match (&object.view, object.is_temporary) {
                        (Some(_), _) => "VIEW",
                        (None, true) => "LOCAL TEMPORARY",
                        (None, false) => "BASE TABLE",
                    };
                    row![DATABASE, SCHEMA, &*object.name, kind, "NO"]
                });
                Described {
                    columns: columns(&[
                        ("table_catalog", 't'),
                        ("table_schema", 't'),
                        ("table_name", 't'),
                        ("table_type", 't'),
                        ("is_insertable_into", 't'),
                    ]),
                    rows: rows.collect(),
                }
            }
            "columns" => self.information_columns(),
            "views" => {
                let rows = self.objects().into_iter().filter_map(|object| {
                    let text = object.view?;
                    Some(row![DATABASE, SCHEMA, &*object.name, &*text, "NONE", "NO"])
                });
                Described {
                    columns: columns(&[
                        ("table_catalog", 't'),
                        ("table_schema", 't'),
                        ("table_name", 't'),
                        ("view_definition", 't'),
                        ("check_option", 't'),
                        ("is_updatable", 't'),
                    ]),
                    rows: rows.collect(),
                }
            }
            "table_constraints" | "key_column_usage" => Described {
                columns: columns(&[
                    ("constraint_catalog", 't'),
                    ("constraint_schema", 't'),
                    ("constraint_name", 't'),
                    ("table_catalog", 't'),
                    ("table_schema", 't'),
                    ("table_name", 't'),
                    (
                        if relation == "key_column_usage" {
                            "column_name"
                        } else {
                            "constraint_type"
                        },
                        't',
                    ),
                ]),
                rows: Vec::new(),
            },
            _ => return None,
        })
    }

    fn information_columns(&mut self) -> Described {
        let mut rows = Vec::new();
        for object in self.objects() {
            for (at, (name, atom, nullable)) in object.columns.iter().enumerate() {
                let (pg, is_list) = pg_type(atom);
                let digits = precision(atom);
                let udt = if is_list { format!("_{}", pg.name) } else { pg.name.to_string() };
                let is_moment = matches!(atom, Atom::Time(_) | Atom::TimeTz | Atom::Timestamp(..));
                rows.push(row![
                    DATABASE,
                    SCHEMA,
                    &*object.name,
                    &**name,
                    at as i64 + 1,
                    None::<&str>,
                    if *nullable { "YES" } else { "NO" },
                    if is_list { "ARRAY" } else { pg.shown },
                    None::<i64>,
                    digits.map(|(precision, ..)| precision),
                    digits.map(|(.., base)| base),
                    digits.and_then(|(_, scale, _)| scale),
                    is_moment.then_some(6_i64),
                    DATABASE,
                    CATALOG_SCHEMA,
                    &*udt,
                ]);
            }
        }
        Described {
            columns: columns(&[
                ("table_catalog", 't'),
                ("table_schema", 't'),
                ("table_name", 't'),
                ("column_name", 't'),
                ("ordinal_position", 'i'),
                ("column_default", 't'),
                ("is_nullable", 't'),
                ("data_type", 't'),
                ("character_maximum_length", 'i'),
                ("numeric_precision", 'i'),
                ("numeric_precision_radix", 'i'),
                ("numeric_scale", 'i'),
                ("datetime_precision", 'i'),
                ("udt_catalog", 't'),
                ("udt_schema", 't'),
                ("udt_name", 't'),
            ]),
            rows,
        }
    }

    pub(super) fn pg_catalog(&mut self, relation: &str) -> Option<Described> {
        if let Some((_, names)) = EMPTY.iter().find(|(name, _)| *name == relation) {
            return Some(Described { columns: columns(names), rows: Vec::new() });
        }
        Some(match relation {
            "pg_namespace" => Described {
                columns: columns(&[("oid", 'i'), ("nspname", 't'), ("nspowner", 'i')]),
                rows: vec![
                    row![CATALOG_OID, CATALOG_SCHEMA, OWNER_OID],
                    row![SCHEMA_OID, SCHEMA, OWNER_OID],
                    row![INFORMATION_OID, INFORMATION_SCHEMA, OWNER_OID],
                ],
            },
            "pg_database" => Described {
                columns: columns(&[
                    ("oid", 'i'),
                    ("datname", 't'),
                    ("datdba", 'i'),
                    ("encoding", 'i'),
                    ("datcollate", 't'),
                    ("datctype", 't'),
                    ("datistemplate", 'b'),
                    ("datallowconn", 'b'),
                ]),
                rows: vec![row![DATABASE_OID, DATABASE, OWNER_OID, 6_i64, "C", "C", false, true]],
            },
            "pg_roles" => Described {
                columns: columns(&[
                    ("oid", 'i'),
                    ("rolname", 't'),
                    ("rolsuper", 'b'),
                    ("rolcanlogin", 'b'),
                ]),
                rows: vec![row![OWNER_OID, OWNER, true, true]],
            },
            "pg_am" => Described {
                columns: columns(&[("oid", 'i'), ("amname", 't'), ("amtype", 't')]),
                rows: vec![row![2_i64, "heap", "t"]],
            },
            "pg_class" => self.pg_class(),
            "pg_attribute" => self.pg_attribute(),
            "pg_type" => pg_types(),
            "pg_tables" => {
                let tables = self.objects().into_iter().filter(|object| object.view.is_none());
                let rows = tables.map(|object| {
                    row![SCHEMA, &*object.name, OWNER, None::<&str>, false, false, false, false]
                });
                Described {
                    columns: columns(&[
                        ("schemaname", 't'),
                        ("tablename", 't'),
                        ("tableowner", 't'),
                        ("tablespace", 't'),
                        ("hasindexes", 'b'),
                        ("hasrules", 'b'),
                        ("hastriggers", 'b'),
                        ("rowsecurity", 'b'),
                    ]),
                    rows: rows.collect(),
                }
            }
            "pg_views" => {
                let rows = self
                    .objects()
                    .into_iter()
                    .filter_map(|object| Some(row![SCHEMA, &*object.name, OWNER, &*object.view?]));
                Described {
                    columns: columns(&[
                        ("schemaname", 't'),
                        ("viewname", 't'),
                        ("viewowner", 't'),
                        ("definition", 't'),
                    ]),
                    rows: rows.collect(),
                }
            }
            "pg_settings" => self.pg_settings(),
            "pg_prepared_statements" => self.pg_prepared_statements(),
            "pg_proc" => self.pg_proc(SCHEMA_OID, CATALOG_OID),
            _ => return None,
        })
    }

    fn pg_class(&mut self) -> Described {
        let rows = self.objects().into_iter().map(|object| {
            row![
                oid(&object.name),
                &*object.name,
                SCHEMA_OID,
                0_i64,
                0_i64,
                OWNER_OID,
                if object.view.is_some() { 0_i64 } else { 2_i64 },
                0_i64,
                0_i64,
                0_i64,
                object.row_count.map_or(-1, |rows| rows as i64),
                0_i64,
                false,
                false,
                if object.is_temporary { "t" } else { "p" },
                if object.view.is_some() { "v" } else { "r" },
                object.columns.len() as i64,
                0_i64,
                object.view.is_some(),
                false,
                false,
                false,
                false,
                false,
                "d",
                None::<&str>,
            ]
        });
        Described {
            columns: columns(&[
                ("oid", 'i'),
                ("relname", 't'),
                ("relnamespace", 'i'),
                ("reltype", 'i'),
                ("reloftype", 'i'),
                ("relowner", 'i'),
                ("relam", 'i'),
                ("relfilenode", 'i'),
                ("reltablespace", 'i'),
                ("relpages", 'i'),
                ("reltuples", 'i'),
                ("reltoastrelid", 'i'),
                ("relhasindex", 'b'),
                ("relisshared", 'b'),
                ("relpersistence", 't'),
                ("relkind", 't'),
                ("relnatts", 'i'),
                ("relchecks", 'i'),
                ("relhasrules", 'b'),
                ("relhastriggers", 'b'),
                ("relhassubclass", 'b'),
                ("relrowsecurity", 'b'),
                ("relforcerowsecurity", 'b'),
                ("relispartition", 'b'),
                ("relreplident", 't'),
                ("reloptions", 't'),
            ]),
            rows: rows.collect(),
        }
    }

    fn pg_attribute(&mut self) -> Described {
        let mut rows = Vec::new();
        for object in self.objects() {
            for (at, (name, atom, nullable)) in object.columns.iter().enumerate() {
                let (pg, is_list) = pg_type(atom);
                rows.push(row![
                    oid(&object.name),
                    &**name,
                    if is_list { pg.list_oid } else { pg.oid },
                    if is_list { -1 } else { pg.size },
                    at as i64 + 1,
                    i64::from(is_list),
                    modifier(atom),
                    !nullable,
                    false,
                    false,
                    "",
                    "",
                    0_i64,
                ]);
            }
        }
        Described {
            columns: columns(&[
                ("attrelid", 'i'),
                ("attname", 't'),
                ("atttypid", 'i'),
                ("attlen", 'i'),
                ("attnum", 'i'),
                ("attndims", 'i'),
                ("atttypmod", 'i'),
                ("attnotnull", 'b'),
                ("atthasdef", 'b'),
                ("attisdropped", 'b'),
                ("attidentity", 't'),
                ("attgenerated", 't'),
                ("attcollation", 'i'),
            ]),
            rows,
        }
    }
}

fn pg_types() -> Described {
    let plain = TYPES.iter().map(|pg| {
        let kind = if pg.category == "P" { "p" } else { "b" };
        row![
            pg.oid,
            pg.name,
            CATALOG_OID,
            OWNER_OID,
            pg.size,
            kind,
            pg.category,
            0_i64,
            pg.list_oid,
            0_i64,
            0_i64,
            -1_i64,
            false,
            0_i64,
        ]
    });
    let lists = TYPES.iter().map(|pg| {
        let name = format!("_{}", pg.name);
        row![
            pg.list_oid,
            &*name,
            CATALOG_OID,
            OWNER_OID,
            -1_i64,
            "b",
            "A",
            pg.oid,
            0_i64,
            0_i64,
            0_i64,
            -1_i64,
            false,
            0_i64,
        ]
    });
    let rows: Vec<Vec<Scalar>> = plain.chain(lists).collect();
    Described {
        columns: columns(&[
            ("oid", 'i'),
            ("typname", 't'),
            ("typnamespace", 'i'),
            ("typowner", 'i'),
            ("typlen", 'i'),
            ("typtype", 't'),
            ("typcategory", 't'),
            ("typelem", 'i'),
            ("typarray", 'i'),
            ("typrelid", 'i'),
            ("typbasetype", 'i'),
            ("typtypmod", 'i'),
            ("typnotnull", 'b'),
            ("typcollation", 'i'),
        ]),
        rows,
    }
}
