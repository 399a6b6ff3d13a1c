//! Nodes of the logical plan.

use std::sync::Arc;

use datafusion_expr::expr::{AggregateFunction, GroupingSet};
use datafusion_expr::utils::grouping_set_to_exprlist;
use datafusion_expr::{Distinct, DistinctOn, Expr as Logical, LogicalPlan, SortExpr};
use tessera_plan::{Expr, Functions, Scalar};
use tessera_types::{Atom, Error, Field, Result, SqlState, Tuple};

use super::join::holds_subquery;
use super::{Converted, Converter, Scope};
use crate::context::{Recursion, Source, WorkTable};
use crate::error::from_datafusion;
use crate::relation::{Aggregate, Call, Key, Name, Relation};

impl Converter<'_> {
    pub(super) fn node(&mut self, plan: &LogicalPlan, outer: Option<&Scope<'_>>) -> Result<Converted> {
        match plan {
            LogicalPlan::Projection(node) => self.projection(&node.expr, &node.input, outer),
            LogicalPlan::Filter(node) => {
                let Converted { relation, names } = self.node(&node.input, outer)?;
                let scope = Scope { schema: node.input.schema(), names: &names, outer };
                let relation = self.filter(&node.predicate, scope, relation)?;
                Ok(Converted { relation, names })
            }
            LogicalPlan::Aggregate(node) => self.aggregate_once(plan, node, outer),
            LogicalPlan::Join(node) => self.join(node, outer),
            LogicalPlan::Sort(node) => self.sort(node, outer),
            LogicalPlan::Limit(node) => self.limit(node, outer),
            LogicalPlan::Union(node) => self.union(node, outer),
            LogicalPlan::Distinct(Distinct::All(input)) => {
                let converted = self.node(input, outer)?;
                Ok(distinct(converted))
            }
            LogicalPlan::Distinct(Distinct::On(node)) => self.distinct_on(node, outer),
            LogicalPlan::SubqueryAlias(node) => self.node(&node.input, outer),
            LogicalPlan::Subquery(node) => self.node(&node.subquery, outer),
            LogicalPlan::TableScan(node) => self.scan(node, outer),
            LogicalPlan::EmptyRelation(node) => {
                let mut fields = Vec::new();
                for field in node.schema.fields() {
                    let atom = Atom::from_arrow(field.data_type())?;
                    fields.push(Field::nullable(self.fresh(field.name(), atom.clone()), atom));
                }
                let names = fields.iter().map(|field| field.name.clone()).collect();
                let row = fields.iter().filter_map(|field| field.atom().map(|atom| Expr::null(atom.clone())));
                let rows = if node.produce_one_row { vec![row.collect()] } else { Vec::new() };
                Ok(Converted { relation: Relation::Values { tuple: Tuple::new(fields), rows }, names })
            }
            LogicalPlan::Values(node) => self.values(node, outer),
            LogicalPlan::Unnest(node) => self.unnest(node, outer),
            LogicalPlan::Window(node) => {
                let name = node.window_expr.first().map(|expr| expr.to_string()).unwrap_or_default();
                Err(Error::unsupported(format!("the window function {name} is not supported")))
            }
            other => Err(Error::unsupported(format!("{} is not supported in a query", other.display()))),
        }
    }

    fn scan(&mut self, node: &datafusion_expr::TableScan, outer: Option<&Scope<'_>>) -> Result<Converted> {
        if let Some(recursion) = node.source.downcast_ref::<Recursion>() {
            return self.recursive(recursion, outer);
        }
        if node.source.is::<WorkTable>() {
            return self.work_table(node.table_name.table());
        }
        let Some(source) = node.source.downcast_ref::<Source>() else {
            return Err(Error::unsupported(format!("the table {} is not supported", node.table_name)));
        };
        let table = source.table.clone();
        let mut columns = Vec::new();
        for field in node.projected_schema.fields() {
            let index = table.tuple.index_of(field.name()).ok_or_else(|| {
                Error::internal(format!("column {} left table {}", field.name(), table.name))
            })?;
            let atom = table.tuple.fields()[index]
                .atom()
                .ok_or_else(|| Error::internal(format!("column {} is a collection", field.name())))?;
            columns.push((self.fresh_column(node.table_name.table(), field.name(), atom.clone()), index));
        }
        let names = columns.iter().map(|(name, _)| name.clone()).collect();
        Ok(Converted { relation: Relation::Scan { table, columns, predicates: Vec::new() }, names })
    }

    fn projection(
        &mut self,
        exprs: &[Logical],
        input: &LogicalPlan,
        outer: Option<&Scope<'_>>,
    ) -> Result<Converted> {
        let Converted { mut relation, names } = self.node(input, outer)?;
        let scope = Scope { schema: input.schema(), names: &names, outer };
        let names = self.computed(exprs, scope, &mut relation, Vec::new())?;
        Ok(Converted { relation, names })
    }

    /// Puts expressions over a relation, beside fields of it that are kept; their names.
    fn computed(
        &mut self,
        exprs: &[Logical],
        scope: Scope<'_>,
        relation: &mut Relation,
        kept: Vec<Name>,
    ) -> Result<Vec<Name>> {
        let mut computed: Vec<(Name, Expr)> = Vec::new();
        let mut output = Vec::with_capacity(exprs.len());
        for expr in exprs {
            let value = self.expr(expr, scope, relation)?;
            if let Expr::Field(name) = value {
                output.push(name);
                continue;
            }
            // The same expression under two names is computed once.
            if let Some((name, _)) = computed.iter().find(|(_, known)| *known == value)
                && !self.types().volatile(&value)
            {
                output.push(name.clone());
                continue;
            }
            let atom = self.atom_of(&value)?;
            let name = self.fresh(&readable(&expr.qualified_name().1), atom);
            output.push(name.clone());
            computed.push((name, value));
        }
        if computed.is_empty() {
            return Ok(output);
        }
        let mut fields: Vec<(Name, Expr)> = Vec::new();
        for name in output.iter().chain(&kept) {
            if fields.iter().any(|(known, _)| known == name) {
                continue;
            }
            let value = match computed.iter().find(|(known, _)| known == name) {
                Some((_, value)) => value.clone(),
                None => Expr::Field(name.clone()),
            };
            fields.push((name.clone(), value));
        }
        let input = std::mem::replace(relation, Relation::nothing());
        *relation = Relation::Map { input: Box::new(input), exprs: fields };
        Ok(output)
    }

    fn sort(&mut self, node: &datafusion_expr::Sort, outer: Option<&Scope<'_>>) -> Result<Converted> {
        let (mut relation, names, keys);
        match &*node.input {
            // A subquery among the keys may read columns that are not selected.
            LogicalPlan::Projection(selected) if node.expr.iter().any(|key| holds_subquery(&key.expr)) => {
                let below = self.node(&selected.input, outer)?;
                let below_scope = Scope { schema: selected.input.schema(), names: &below.names, outer };
                relation = below.relation;
                let kept = relation.names();
                names = self.computed(&selected.expr, below_scope, &mut relation, kept)?;
                let scope = Scope { schema: node.input.schema(), names: &names, outer: Some(&below_scope) };
                keys = self.keys(&node.expr, scope, &mut relation)?;
            }
            input => {
                Converted { relation, names } = self.node(input, outer)?;
                let scope = Scope { schema: input.schema(), names: &names, outer };
                keys = self.keys(&node.expr, scope, &mut relation)?;
            }
        }
        let limit = node.fetch.map(|fetch| fetch as u64);
        let relation = Relation::Sort { input: Box::new(relation), keys, offset: 0, limit };
        Ok(Converted { relation, names })
    }

    pub(super) fn keys(
        &mut self,
        exprs: &[SortExpr],
        scope: Scope<'_>,
        input: &mut Relation,
    ) -> Result<Vec<Key>> {
        let mut keys = Vec::with_capacity(exprs.len());
        for key in exprs {
            let expr = self.expr(&key.expr, scope, input)?;
            if matches!(expr, Expr::Constant(..)) {
                continue;
            }
            keys.push(Key { expr, descending: !key.asc, nulls_first: key.nulls_first });
        }
        Ok(keys)
    }

    fn limit(&mut self, node: &datafusion_expr::Limit, outer: Option<&Scope<'_>>) -> Result<Converted> {
        let offset = self.count(node.skip.as_deref(), "OFFSET")?.unwrap_or(0);
        let limit = self.count(node.fetch.as_deref(), "LIMIT")?;
        let Converted { relation, names } = self.node(&node.input, outer)?;
        let relation = match relation {
            Relation::Sort { input, keys, offset: 0, limit: None } if limit.is_some() => {
                Relation::Sort { input, keys, offset, limit }
            }
            other => Relation::Limit { input: Box::new(other), offset, limit },
        };
        Ok(Converted { relation, names })
    }

    /// A number of rows; none for NULL.
    fn count(&mut self, expr: Option<&Logical>, what: &str) -> Result<Option<u64>> {
        let Some(expr) = expr else { return Ok(None) };
        let empty = datafusion_common::DFSchema::empty();
        let scope = Scope { schema: &empty, names: &[], outer: None };
        match self.expr(expr, scope, &mut Relation::nothing())? {
            Expr::Constant(Scalar::Null, _) => Ok(None),
            Expr::Constant(Scalar::Integer(number), atom) if atom.is_integer() => {
                u64::try_from(number).map(Some).map_err(|_| {
                    let state = match what {
                        "LIMIT" => SqlState::INVALID_ROW_COUNT_IN_LIMIT,
                        _ => SqlState::INVALID_ROW_COUNT_IN_OFFSET,
                    };
                    Error::semantic(format!("{what} must not be negative, it is {number}")).with_state(state)
                })
            }
            Expr::Constant(..) => Err(Error::semantic(format!("{what} must be a whole number"))),
            _ => Err(Error::unsupported(format!("{what} that is no constant ({expr}) is not supported"))),
        }
    }

    fn union(&mut self, node: &datafusion_expr::Union, outer: Option<&Scope<'_>>) -> Result<Converted> {
        let mut names = Vec::new();
        let mut atoms = Vec::new();
        for field in node.schema.fields() {
            let atom = Atom::from_arrow(field.data_type())?;
            names.push(self.fresh(field.name(), atom.clone()));
            atoms.push(atom);
        }
        let mut inputs: Vec<(Relation, Vec<Name>)> = Vec::new();
        for input in &node.inputs {
            let Converted { relation, names: given } = self.node(input, outer)?;
            // A chain of UNION ALLs is one union.
            match relation {
                Relation::Union { inputs: inner, names: inner_names } if inner_names == given => {
                    inputs.extend(inner);
                }
                other => inputs.push((other, given)),
            }
        }
        let inputs = inputs
            .into_iter()
            .map(|(relation, given)| self.as_types(relation, given, &atoms))
            .collect::<Result<Vec<_>>>()?;
        Ok(Converted { relation: Relation::Union { inputs, names: names.clone() }, names })
    }

    /// Casts fields to these types where theirs differ.
    pub(super) fn as_types(
        &mut self,
        relation: Relation,
        given: Vec<Name>,
        atoms: &[Atom],
    ) -> Result<(Relation, Vec<Name>)> {
        let differs = |name: &Name, atom: &Atom| self.atoms.get(name) != Some(atom);
        if !given.iter().zip(atoms).any(|(name, atom)| differs(name, atom)) {
            return Ok((relation, given));
        }
        let mut exprs: Vec<(Name, Expr)> = Vec::new();
        let mut output = Vec::new();
        for (name, atom) in given.into_iter().zip(atoms) {
            let field = Expr::Field(name.clone());
            if self.atoms.get(&name) == Some(atom) {
                if !exprs.iter().any(|(known, _)| *known == name) {
                    exprs.push((name.clone(), field));
                }
                output.push(name);
            } else {
                let null = self.atoms.get(&name) == Some(&Atom::Null);
                let value = if null { Expr::null(atom.clone()) } else { field.cast(atom.clone()) };
                let cast = self.fresh(&name, atom.clone());
                exprs.push((cast.clone(), value));
                output.push(cast);
            }
        }
        Ok((Relation::Map { input: Box::new(relation), exprs }, output))
    }

    fn values(&mut self, node: &datafusion_expr::Values, outer: Option<&Scope<'_>>) -> Result<Converted> {
        let mut fields = Vec::new();
        for field in node.schema.fields() {
            let atom = Atom::from_arrow(field.data_type())?;
            fields.push(Field::nullable(self.fresh(field.name(), atom.clone()), atom));
        }
        let names: Vec<Name> = fields.iter().map(|field| field.name.clone()).collect();
        let empty = Arc::new(datafusion_common::DFSchema::empty());
        let scope = Scope { schema: &empty, names: &[], outer };
        let mut nothing = Relation::Values { tuple: Tuple::empty(), rows: vec![Vec::new()] };
        let mut rows = Vec::with_capacity(node.values.len());
        let mut constant = true;
        for row in &node.values {
            let mut values = Vec::with_capacity(row.len());
            for (value, field) in row.iter().zip(&fields) {
                let value = self.expr(value, scope, &mut nothing)?;
                let wanted = field.atom().cloned().unwrap_or(Atom::Null);
                let value = match value {
                    Expr::Constant(tessera_plan::Scalar::Null, _) => Expr::null(wanted),
                    value if self.atom_of(&value)? == wanted => value,
                    value => self.simple(value.cast(wanted)),
                };
                constant &= matches!(value, Expr::Constant(..));
                values.push(value);
            }
            rows.push(values);
        }
        if constant {
            return Ok(Converted { relation: Relation::Values { tuple: Tuple::new(fields), rows }, names });
        }
        // Rows that are no constants are computed from one tuple each.
        let mut inputs = Vec::new();
        for row in rows {
            let exprs = row
                .into_iter()
                .zip(&fields)
                .map(|(value, field)| {
                    let atom = field.atom().cloned().unwrap_or(Atom::Null);
                    (self.fresh(&field.name, atom), value)
                })
                .collect::<Vec<_>>();
            let given = exprs.iter().map(|(name, _)| name.clone()).collect();
            inputs.push((Relation::Map { input: Box::new(nothing.clone()), exprs }, given));
        }
        Ok(Converted { relation: Relation::Union { inputs, names: names.clone() }, names })
    }

    fn unnest(&mut self, node: &datafusion_expr::Unnest, outer: Option<&Scope<'_>>) -> Result<Converted> {
        let Converted { mut relation, names } = self.node(&node.input, outer)?;
        if !node.struct_type_columns.is_empty() {
            return self.unnest_struct(node, relation, names);
        }
        let mut lists: Vec<(Name, Name)> = Vec::new();
        let mut copies: Vec<(Name, Expr)> = Vec::new();
        let mut output = Vec::new();
        let mut elements = node.list_type_columns.iter();
        for (position, &from) in node.dependency_indices.iter().enumerate() {
            let name = names
                .get(from)
                .ok_or_else(|| Error::internal("unnest of a column that is not there"))?
                .clone();
            if !node.list_type_columns.iter().any(|(index, _)| *index == from) {
                output.push(name);
                continue;
            }
            if let Some((_, unnested)) = elements.next()
                && unnested.depth > 1
            {
                return Err(Error::unsupported(
                    "unnesting lists of lists at once is not supported; unnest twice",
                ));
            }
            let field = node.schema.field(position);
            // The planner's type may be stale where the list is an outer query's.
            let atom = match self.atoms.get(&name) {
                Some(Atom::List(slot)) => slot.atom.clone(),
                _ => Atom::from_arrow(field.data_type())?,
            };
            let element = self.fresh(field.name(), atom);
            // A list that is unnested twice, or also read as it is, is copied first.
            let list = if lists.iter().any(|(known, _)| *known == name) || used_twice(node, from) {
                let atom = self.atoms.get(&name).cloned().unwrap_or(Atom::Null);
                let copy = self.fresh(&name, atom);
                copies.push((copy.clone(), Expr::Field(name)));
                copy
            } else {
                name
            };
            lists.push((list, element.clone()));
            output.push(element);
        }
        if !copies.is_empty() {
            let mut exprs: Vec<(Name, Expr)> =
                relation.names().into_iter().map(|name| (name.clone(), Expr::Field(name))).collect();
            exprs.extend(copies);
            relation = Relation::Map { input: Box::new(relation), exprs };
        }
        let outer = false;
        Ok(Converted {
            relation: Relation::Unnest { input: Box::new(relation), lists, outer },
            names: output,
        })
    }

    /// The slots of structs as fields.
    fn unnest_struct(
        &mut self,
        node: &datafusion_expr::Unnest,
        relation: Relation,
        names: Vec<Name>,
    ) -> Result<Converted> {
        if !node.list_type_columns.is_empty() {
            return Err(Error::unsupported("unnesting lists and structs in one SELECT is not supported"));
        }
        let mut exprs: Vec<(Name, Expr)> = Vec::new();
        let mut output = Vec::new();
        let mut slot = 0;
        let mut last = None;
        for (position, &from) in node.dependency_indices.iter().enumerate() {
            let name = names
                .get(from)
                .ok_or_else(|| Error::internal("unnest of a column that is not there"))?
                .clone();
            if !node.struct_type_columns.contains(&from) {
                exprs.push((name.clone(), Expr::Field(name.clone())));
                output.push(name);
                continue;
            }
            slot = if last == Some(from) { slot + 1 } else { 0 };
            last = Some(from);
            let Some(Atom::Struct(slots)) = self.atoms.get(&name) else {
                return Err(Error::internal("unnest of what is no struct"));
            };
            let Some((key, _)) = slots.get(slot) else {
                return Err(Error::internal("unnest of a slot that is not there"));
            };
            let value = Expr::call("get_field", vec![Expr::Field(name.clone()), Expr::string(key)]);
            let field = node.schema.field(position);
            let element = self.fresh(field.name(), Atom::from_arrow(field.data_type())?);
            exprs.push((element.clone(), value));
            output.push(element);
        }
        Ok(Converted { relation: Relation::Map { input: Box::new(relation), exprs }, names: output })
    }

    /// A grouping; one written twice (a common table expression read twice) has the same fields inside, so that the plan's
    /// `share_common` can see that it is one.
    fn aggregate_once(
        &mut self,
        plan: &LogicalPlan,
        node: &datafusion_expr::Aggregate,
        outer: Option<&Scope<'_>>,
    ) -> Result<Converted> {
        // In the step of a recursion it may hang on the run.
        if !self.open.is_empty() {
            return self.aggregate(node, outer);
        }
        if let Some((_, known)) = self.groupings.iter().find(|(known, _)| known == plan) {
            let Converted { relation, names } = known.clone();
            let mut exprs = Vec::with_capacity(names.len());
            for name in names {
                let value = Expr::Field(name.clone());
                let atom = self.atom_of(&value)?;
                exprs.push((self.fresh(&name, atom), value));
            }
            let names = exprs.iter().map(|(name, _)| name.clone()).collect();
            return Ok(Converted { relation: Relation::Map { input: Box::new(relation), exprs }, names });
        }
        let converted = self.aggregate(node, outer)?;
        if converted.relation.parameters().is_empty() {
            self.groupings.push((plan.clone(), converted.clone()));
        }
        Ok(converted)
    }

    fn aggregate(
        &mut self,
        node: &datafusion_expr::Aggregate,
        outer: Option<&Scope<'_>>,
    ) -> Result<Converted> {
        let Converted { mut relation, names } = self.node(&node.input, outer)?;
        let scope = Scope { schema: node.input.schema(), names: &names, outer };
        let grouped = matches!(node.group_expr.as_slice(), [Logical::GroupingSet(_)]);
        let group_exprs: Vec<Logical> = if grouped {
            grouping_set_to_exprlist(&node.group_expr)
                .map_err(from_datafusion)?
                .into_iter()
                .cloned()
                .collect()
        } else {
            node.group_expr.clone()
        };
        let mut keys: Vec<(Name, Expr)> = Vec::new();
        let mut output = Vec::new();
        // An expression that is grouped by twice stands once in the schema.
        let once = node.schema.fields().len() < group_exprs.len() + node.aggr_expr.len();
        for (position, expr) in group_exprs.iter().enumerate() {
            if once && !grouped && group_exprs[..position].contains(expr) {
                continue;
            }
            let value = self.expr(expr, scope, &mut relation)?;
            let known = keys.iter().find(|(_, known)| *known == value).map(|(name, _)| name.clone());
            let name = match (&value, known) {
                (_, Some(name)) if !grouped => {
                    output.push(name);
                    continue;
                }
                (Expr::Field(name), None) if !grouped => name.clone(),
                _ => {
                    let atom = self.atom_of(&value)?;
                    self.fresh(&expr.qualified_name().1, atom)
                }
            };
            output.push(name.clone());
            keys.push((name, value));
        }
        let (sets, grouping) = if grouped {
            let sets = grouping_sets(&node.group_expr, &group_exprs)?;
            let field = node.schema.field(group_exprs.len());
            let atom = Atom::from_arrow(field.data_type())?;
            let name = self.fresh("grouping_id", atom.clone());
            output.push(name.clone());
            (Some(sets), Some((name, atom)))
        } else {
            (None, None)
        };
        let mut calls: Vec<(Name, Call)> = Vec::new();
        for expr in &node.aggr_expr {
            let call = self.call(expr, scope, &mut relation)?;
            let atom = self.call_atom(&call)?;
            let name = self.fresh(&readable(&expr.qualified_name().1), atom);
            output.push(name.clone());
            calls.push((name, call));
        }
        let aggregate = Aggregate { input: relation, keys, sets, grouping, calls };
        Ok(Converted { relation: Relation::Aggregate(Box::new(aggregate)), names: output })
    }

    fn call(&mut self, expr: &Logical, scope: Scope<'_>, input: &mut Relation) -> Result<Call> {
        let expr = match expr {
            Logical::Alias(alias) => &*alias.expr,
            other => other,
        };
        let Logical::AggregateFunction(AggregateFunction { func, params }) = expr else {
            return Err(Error::internal(format!("{expr} is no aggregate")));
        };
        if params.null_treatment == Some(datafusion_expr::expr::NullTreatment::IgnoreNulls) {
            return Err(Error::unsupported(format!("IGNORE NULLS of {} is not supported", func.name())));
        }
        let mut args = Vec::with_capacity(params.args.len());
        for arg in &params.args {
            args.push(self.expr(arg, scope, input)?);
        }
        // count(*) comes as count(1).
        if func.name() == "count"
            && !params.distinct
            && args.iter().all(|arg| matches!(arg, Expr::Constant(value, _) if !value.is_null()))
        {
            args.clear();
        }
        let filter = params.filter.as_ref().map(|filter| self.expr(filter, scope, input)).transpose()?;
        let order_by = self.keys(&params.order_by, scope, input)?;
        Ok(Call { function: func.name().into(), args, distinct: params.distinct, filter, order_by })
    }

    pub(super) fn call_atom(&self, call: &Call) -> Result<Atom> {
        let args = call.args.iter().map(|arg| Ok((self.atom_of(arg)?, true))).collect::<Result<Vec<_>>>()?;
        Ok(self.library.aggregate(&call.function, &args, call.distinct)?.0)
    }

    /// The first tuple of each group: `first_value` of every column, in the order asked for.
    fn distinct_on(&mut self, node: &DistinctOn, outer: Option<&Scope<'_>>) -> Result<Converted> {
        let Converted { mut relation, names } = self.node(&node.input, outer)?;
        let scope = Scope { schema: node.input.schema(), names: &names, outer };
        let mut keys = Vec::new();
        for expr in &node.on_expr {
            let value = self.expr(expr, scope, &mut relation)?;
            let atom = self.atom_of(&value)?;
            keys.push((self.fresh(&expr.qualified_name().1, atom), value));
        }
        // What stands as a key is not made again: a subquery, or a volatile value, would be another
        // one.
        let key_of = |expr: &Logical| {
            let at = node.on_expr.iter().position(|key| key.clone().unalias() == expr.clone().unalias())?;
            keys.get(at).map(|(_, value)| value.clone())
        };
        let mut order_by = Vec::new();
        for sort in node.sort_expr.iter().flatten() {
            match key_of(&sort.expr) {
                Some(Expr::Constant(..)) => {}
                Some(expr) => {
                    order_by.push(Key { expr, descending: !sort.asc, nulls_first: sort.nulls_first });
                }
                None => order_by.extend(self.keys(std::slice::from_ref(sort), scope, &mut relation)?),
            }
        }
        let mut calls = Vec::new();
        for expr in &node.select_expr {
            let value = match key_of(expr) {
                Some(value) => value,
                None => self.expr(expr, scope, &mut relation)?,
            };
            let atom = self.atom_of(&value)?;
            let name = self.fresh(&expr.qualified_name().1, atom);
            let call = Call {
                function: "first_value".into(),
                args: vec![value],
                distinct: false,
                filter: None,
                order_by: order_by.clone(),
            };
            calls.push((name, call));
        }
        let names = calls.iter().map(|(name, _)| name.clone()).collect();
        let sorted: Vec<Key> = order_by
            .iter()
            .map_while(|key| {
                let (name, _) = keys.iter().find(|(_, value)| *value == key.expr)?;
                Some(Key { expr: Expr::Field(name.clone()), ..key.clone() })
            })
            .collect();
        let aggregate = Aggregate { input: relation, keys, sets: None, grouping: None, calls };
        let mut relation = Relation::Aggregate(Box::new(aggregate));
        if !sorted.is_empty() {
            relation = Relation::Sort { input: Box::new(relation), keys: sorted, offset: 0, limit: None };
        }
        Ok(Converted { relation, names })
    }
}

/// Whether a column is both unnested and kept, or unnested more than once.
fn used_twice(node: &datafusion_expr::Unnest, from: usize) -> bool {
    node.dependency_indices.iter().filter(|&&index| index == from).count() > 1
}

/// Groups by all columns.
fn distinct(converted: Converted) -> Converted {
    let Converted { relation, names } = converted;
    let mut keys: Vec<(Name, Expr)> = Vec::new();
    for name in &names {
        if !keys.iter().any(|(known, _)| known == name) {
            keys.push((name.clone(), Expr::Field(name.clone())));
        }
    }
    let aggregate = Aggregate { input: relation, keys, sets: None, grouping: None, calls: Vec::new() };
    Converted { relation: Relation::Aggregate(Box::new(aggregate)), names }
}

/// Positions, among all key expressions, of the keys of each grouping.
fn grouping_sets(group_expr: &[Logical], all: &[Logical]) -> Result<Vec<Vec<usize>>> {
    let position = |expr: &Logical| {
        all.iter()
            .position(|known| known == expr)
            .ok_or_else(|| Error::internal(format!("grouping by {expr}")))
    };
    let [Logical::GroupingSet(set)] = group_expr else { return Err(Error::internal("no grouping sets")) };
    match set {
        GroupingSet::GroupingSets(sets) => {
            sets.iter().map(|set| set.iter().map(position).collect()).collect()
        }
        GroupingSet::Rollup(exprs) => {
            let positions = exprs.iter().map(position).collect::<Result<Vec<_>>>()?;
            Ok((0..=positions.len()).rev().map(|len| positions[..len].to_vec()).collect())
        }
        GroupingSet::Cube(exprs) => {
            let positions = exprs.iter().map(position).collect::<Result<Vec<_>>>()?;
            if positions.len() > 16 {
                return Err(Error::new(tessera_types::Code::Limit, "CUBE of more than 16 expressions"));
            }
            let subsets = (0..1_u32 << positions.len()).rev();
            let chosen = |bits: u32| {
                positions
                    .iter()
                    .enumerate()
                    .filter(move |(i, _)| bits >> i & 1 == 1)
                    .map(|(_, p)| *p)
                    .collect()
            };
            Ok(subsets.map(chosen).collect())
        }
    }
}

/// A name of an aggregate's result without the planner's types of literals: `sum(Int32(1))` is `sum(1)`.
fn readable(name: &str) -> String {
    let mut out = name.to_string();
    for prefix in ["Int32(", "Int64(", "Boolean(", "Float64(", "Decimal128("] {
        while let Some(start) = out.find(prefix) {
            let inner = start + prefix.len();
            let Some(len) = out[inner..].find(')') else { return out };
            let value = out[inner..inner + len].split(',').next().unwrap_or_default().to_string();
            out.replace_range(start..inner + len + 1, &value);
        }
    }
    out
}
