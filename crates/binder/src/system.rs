//! The relations that describe the session, of `information_schema` and `pg_catalog`: which names
//! they have, and what they show (`tessera_system_catalog` makes the rows).

use tessera_functions::WINDOW_FUNCTIONS;
use tessera_functions::macros::of_aggregates;
use tessera_optimizer::logical::relation::Relation;
use tessera_parser::MacroBody;
use tessera_plan::{Expr, Scalar};
use tessera_system_catalog::{
    CallableFunction, Contents, Described, Object, PreparedParameters, SettingValue, Variable, oid,
};
use tessera_types::{Atom, Error, Field, Result, SqlState, Tuple, did_you_mean};

use super::scope::OutputColumn;
use super::typed::TypedExpr;
use super::user_macro::signature;
use super::{Binder, BoundQuery, Constant, aggregate, table_function};

impl Binder<'_> {
    /// Binds a relation that describes the session; `None` for other names.
    pub(super) fn system_relation(&mut self, name: &[&str]) -> Result<Option<BoundQuery>> {
        let described = tessera_system_catalog::relation(name, self)?;
        Ok(described.map(|Described { columns, rows }| self.constant_rows(columns, rows)))
    }

    /// Binds a function of FROM that describes the session; `None` for other names.
    pub(super) fn system_function(&mut self, name: &str) -> Result<Option<BoundQuery>> {
        let described = tessera_system_catalog::function(name, self);
        Ok(described.map(|Described { columns, rows }| self.constant_rows(columns, rows)))
    }

    /// Returns rows of constants as a relation.
    pub(super) fn constant_rows(
        &mut self,
        columns: Vec<(&'static str, Atom)>,
        rows: Vec<Vec<Scalar>>,
    ) -> BoundQuery {
        let column = |(name, atom): (&'static str, Atom)| OutputColumn {
            name: name.into(),
            field: self.fields.fresh(name, atom.clone()),
            atom,
            literal: None,
        };
        let columns: Vec<OutputColumn> = columns.into_iter().map(column).collect();
        let value =
            |(value, column): (Scalar, &OutputColumn)| Expr::Constant(value, column.atom.clone());
        let rows = rows
            .into_iter()
            .map(|row| row.into_iter().zip(&columns).map(value).collect())
            .collect();
        let field =
            |output: &OutputColumn| Field::nullable(output.field.clone(), output.atom.clone());
        let tuple = Tuple::new(columns.iter().map(field).collect::<Vec<_>>());
        BoundQuery { relation: Relation::Values { tuple, rows }, columns }
    }

    /// Binds `'name'::regclass`: the identifier of a table or view.
    pub(super) fn relation_oid(&self, name: &str) -> Result<TypedExpr> {
        let plain = name.rsplit('.').next().unwrap_or(name).trim().trim_matches('"');
        let known = self.catalog.table_kinds();
        let found = known
            .iter()
            .find(|(table, _)| table == plain)
            .or_else(|| known.iter().find(|(table, _)| table.eq_ignore_ascii_case(plain)));
        match found {
            Some((table, _)) => Ok(TypedExpr::int64(oid(table))),
            None => {
                let hint = did_you_mean(plain, known.iter().map(|(name, _)| name.as_str()));
                Err(Error::semantic(format!("unknown table '{name}'{hint}"))
                    .with_state(SqlState::UNDEFINED_TABLE))
            }
        }
    }
}

impl Contents for Binder<'_> {
    fn has_table(&self, name: &str) -> Result<bool> {
        Ok(self.catalog.table(&[name])?.is_some())
    }

    fn objects(&mut self) -> Vec<Object> {
        let mut objects = Vec::new();
        for (name, kind) in self.catalog.table_kinds() {
            let is_temporary = kind == "temporary table";
            if let Ok(Some(text)) = self.catalog.view(&[&name]) {
                let bound = self.view(&text).map(|bound| bound.columns).unwrap_or_default();
                let columns =
                    bound.into_iter().map(|column| (column.name, column.atom, true)).collect();
                let view = Some(text);
                objects.push(Object { name, is_temporary, view, columns, row_count: None });
                continue;
            }
            let table = self.catalog.table(&[&name]).ok().flatten();
            let fields = table.iter().flat_map(|table| table.tuple.fields());
            let columns = fields
                .filter_map(|field| {
                    Some((field.name.clone(), field.atom()?.clone(), field.nullable))
                })
                .collect();
            let row_count = table.as_ref().and_then(|table| table.statistics.rows);
            objects.push(Object { name, is_temporary, view: None, columns, row_count });
        }
        objects
    }

    fn functions(&self) -> Vec<CallableFunction> {
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

    fn settings(&self) -> Vec<SettingValue> {
        (self.environment.settings)()
    }

    fn variables(&self) -> Vec<Variable> {
        let variables = self.environment.definitions.all_variables();
        let described = |(name, value): (&String, &Constant)| Variable {
            name: name.clone(),
            value: self.shown(value),
            atom: value.atom.clone(),
        };
        variables.map(described).collect()
    }

    fn prepared_statements(&self) -> Vec<(String, PreparedParameters)> {
        let all = self.environment.definitions.all_prepared();
        all.map(|(name, prepared)| (name.clone(), prepared.parameters.clone())).collect()
    }
}
