//! Relations to sub-operators.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tessera_plan::{Expr, Functions, Node, NodeId, Params, Plan, Scope, SortKey, Value, type_of};
use tessera_types::{Atom, Error, Field, Result, Tuple};

use crate::catalog::Table;
use crate::estimate::profile;
use crate::raise::Types;
use crate::relation::{Aggregate, Call, Join, Key, Kind, Name, Relation, covered};

/// A node that has been made, and what it yields.
#[derive(Debug, Clone)]
struct Made {
    id: NodeId,
    tuple: Tuple,
}

/// A plan in the making: the top one, or a nested one.
#[derive(Debug)]
struct Level {
    parameters: Tuple,
    nodes: Vec<Node>,
}

/// Makes plans of relations.
#[derive(Debug)]
pub(crate) struct Lowering<'a> {
    types: Types<'a>,
    /// Numbers for names that no query can write.
    fresh: usize,
}

impl<'a> Lowering<'a> {
    pub(crate) fn new(types: Types<'a>) -> Self {
        Lowering { types, fresh: 0 }
    }

    /// The plan that yields these fields of a relation, in this order, under these names.
    pub(crate) fn query(&mut self, relation: &Relation, output: &[(Name, Name)]) -> Result<(Plan, Tuple)> {
        let mut level = Level { parameters: Tuple::empty(), nodes: Vec::new() };
        let needed: HashSet<Name> = output.iter().map(|(_, field)| field.clone()).collect();
        let made = self.lower(relation, &needed, &mut level)?;
        let unchanged = output.len() == made.tuple.len()
            && output
                .iter()
                .zip(made.tuple.fields())
                .all(|((name, field), made)| name == field && *field == made.name);
        let made = if unchanged {
            made
        } else if output.iter().all(|(name, field)| name == field) {
            self.project(&mut level, made, output.iter().map(|(name, _)| name.clone()).collect())?
        } else {
            let exprs =
                output.iter().map(|(name, field)| (name.clone(), Expr::Field(field.clone()))).collect();
            self.map(&mut level, made, exprs)?
        };
        let Level { parameters, nodes } = level;
        Ok((Plan { parameters, nodes, root: made.id }, made.tuple))
    }

    fn name(&mut self, base: &str) -> Name {
        self.fresh += 1;
        Arc::from(format!("{base}${}", self.fresh))
    }

    fn lower(&mut self, relation: &Relation, needed: &HashSet<Name>, level: &mut Level) -> Result<Made> {
        match relation {
            Relation::Scan { table, columns, predicates } => {
                self.scan(table, columns, predicates, needed, level)
            }
            Relation::Values { tuple, rows } => {
                let rows = rows
                    .iter()
                    .map(|row| Value::List(row.iter().cloned().map(Value::Expr).collect()))
                    .collect::<Vec<_>>();
                let params = Params::new().with("columns", tuple.clone()).with("rows", rows);
                Ok(add(level, "values", &[], params, tuple.clone()))
            }
            Relation::Filter { input, predicates } => {
                let made = self.lower(input, &with_fields(needed, predicates), level)?;
                Ok(filter(level, made, predicates))
            }
            Relation::Map { input, exprs } => {
                let wanted: Vec<(Name, Expr)> =
                    exprs.iter().filter(|(name, _)| needed.contains(name)).cloned().collect();
                let below = fields_of(wanted.iter().map(|(_, expr)| expr));
                let made = self.lower(input, &below, level)?;
                if wanted.iter().all(|(name, expr)| matches!(expr, Expr::Field(field) if field == name)) {
                    return Ok(made);
                }
                self.map(level, made, wanted)
            }
            Relation::Join(join) if join.correlated => self.correlated(join, needed, level),
            Relation::Join(join) => self.join(join, needed, level),
            Relation::Aggregate(aggregate) => self.aggregate(aggregate, needed, level),
            Relation::Sort { input, keys, offset, limit } => {
                self.sort(input, keys, *offset, *limit, needed, level)
            }
            Relation::Limit { input, offset, limit } => {
                let made = self.lower(input, needed, level)?;
                let mut params = Params::new();
                if let Some(limit) = limit {
                    params.set("limit", as_integer(*limit)?);
                }
                if *offset > 0 {
                    params.set("offset", as_integer(*offset)?);
                }
                let tuple = made.tuple.clone();
                Ok(add(level, "limit", &[made.id], params, tuple))
            }
            Relation::Union { inputs, names } => self.union(inputs, names, needed, level),
            Relation::Unnest { input, lists, outer } => self.unnest(input, lists, *outer, needed, level),
        }
    }

    fn scan(
        &mut self,
        table: &Arc<Table>,
        columns: &[(Name, usize)],
        predicates: &[Expr],
        needed: &HashSet<Name>,
        level: &mut Level,
    ) -> Result<Made> {
        let read = with_fields(needed, predicates);
        let mut fields = Vec::new();
        let mut renames: Vec<(Name, Expr)> = Vec::new();
        let mut stored: HashMap<Name, Name> = HashMap::new();
        for (name, index) in columns {
            let Some(field) = table.tuple.fields().get(*index).filter(|_| read.contains(name)) else {
                continue;
            };
            stored.insert(name.clone(), field.name.clone());
            renames.push((name.clone(), Expr::Field(field.name.clone())));
            fields.push(field.clone());
        }
        let tuple = Tuple::new(fields);
        let mut params = table.params.clone();
        params.set("columns", tuple.clone());
        // The scan tests what it can by itself; what may raise stays behind what stands before it.
        let (inside, outside): (Vec<Expr>, Vec<Expr>) = predicates
            .iter()
            .cloned()
            .partition(|predicate| table.filters && crate::relation::parameters(predicate).is_empty());
        if !inside.is_empty() {
            let mut predicate = Expr::all(inside);
            crate::relation::substitute(&mut predicate, &|name| {
                stored.get(name).map(|stored| Expr::Field(stored.clone()))
            });
            params.set("filter", predicate);
        }
        let mut made = add(level, &table.operator, &[], params, tuple);
        if renames.iter().any(|(name, expr)| !matches!(expr, Expr::Field(field) if field == name)) {
            let kept = outside.is_empty();
            renames.retain(|(name, _)| !kept || needed.contains(name));
            made = self.map(level, made, renames)?;
        }
        if !outside.is_empty() {
            made = filter(level, made, &outside);
        }
        self.prune(level, made, needed)
    }

    /// A projection to what is needed, where there is more.
    fn prune(&mut self, level: &mut Level, made: Made, needed: &HashSet<Name>) -> Result<Made> {
        if made.tuple.fields().iter().all(|field| needed.contains(&field.name)) {
            return Ok(made);
        }
        let names = made.tuple.fields().iter().map(|field| field.name.clone());
        let names = names.filter(|name| needed.contains(name)).collect();
        self.project(level, made, names)
    }

    fn project(&mut self, level: &mut Level, made: Made, names: Vec<Name>) -> Result<Made> {
        let fields =
            names.iter().map(|name| field(&made.tuple, name).cloned()).collect::<Result<Vec<_>>>()?;
        let params = Params::new().with("fields", Value::names(&names));
        Ok(add(level, "projection", &[made.id], params, Tuple::new(fields)))
    }

    fn map(&mut self, level: &mut Level, made: Made, exprs: Vec<(Name, Expr)>) -> Result<Made> {
        let mut fields = Vec::with_capacity(exprs.len());
        for (name, expr) in &exprs {
            fields.push(match expr {
                Expr::Field(from) => field(&made.tuple, from)?.renamed(name.clone()),
                expr => {
                    let (atom, nullable) = self.type_of(expr, &made.tuple, level)?;
                    Field::new(name.clone(), atom).with_nullable(nullable)
                }
            });
        }
        let params = Params::new().with("exprs", Value::exprs(exprs));
        Ok(add(level, "map", &[made.id], params, Tuple::new(fields)))
    }

    fn type_of(&self, expr: &Expr, tuple: &Tuple, level: &Level) -> Result<(Atom, bool)> {
        type_of(expr, Scope { tuple, parameters: &level.parameters, functions: &**self.types.library })
    }

    /// The tuples of `made` with one more field for each expression that is no field yet; the fields' names.
    fn with_computed(
        &mut self,
        level: &mut Level,
        made: Made,
        exprs: &[Expr],
        base: &str,
    ) -> Result<(Made, Vec<Name>)> {
        let mut names = Vec::with_capacity(exprs.len());
        let mut computed: Vec<(Name, Expr)> = Vec::new();
        for expr in exprs {
            names.push(match expr {
                Expr::Field(name) => name.clone(),
                expr => match computed.iter().find(|(_, known)| known == expr) {
                    Some((name, _)) => name.clone(),
                    None => {
                        let name = self.name(base);
                        computed.push((name.clone(), expr.clone()));
                        name
                    }
                },
            });
        }
        if computed.is_empty() {
            return Ok((made, names));
        }
        let mut all = Expr::identity(&made.tuple);
        all.extend(computed);
        Ok((self.map(level, made, all)?, names))
    }

    fn join(&mut self, join: &Join, needed: &HashSet<Name>, level: &mut Level) -> Result<Made> {
        let (left_names, right_names): (HashSet<Name>, HashSet<Name>) =
            (join.left.names().into_iter().collect(), join.right.names().into_iter().collect());
        let keyed = Keyed::new(join, &left_names, &right_names, self.types);
        let read = with_fields(needed, &join.conditions);
        let only = |names: &HashSet<Name>| read.intersection(names).cloned().collect::<HashSet<Name>>();
        if keyed.left.is_empty() {
            return self.unkeyed_join(join, &only(&left_names), &only(&right_names), needed, level);
        }
        // Beyond the keys only what the output or the residual reads goes through.
        let mut kept = with_fields(needed, &keyed.residual);
        kept.extend(fields_of(keyed.left.iter().chain(&keyed.right)));
        let left = self.lower(&join.left, &only(&left_names), level)?;
        let left = self.prune(level, left, &kept)?;
        let right = self.lower(&join.right, &only(&right_names), level)?;
        let right = self.prune(level, right, &kept)?;
        let flip = keyed.flips(join);
        let (left, left_keys) = self.with_computed(level, left, &keyed.left, "key")?;
        let (right, right_keys) = self.with_computed(level, right, &keyed.right, "key")?;
        let (build, build_keys, stream, stream_keys) =
            if flip { (left, left_keys, right, right_keys) } else { (right, right_keys, left, left_keys) };
        let mut params = Params::new().with("keys", Value::names(&build_keys));
        if keyed.null_equal {
            params.set("null_equal", true);
        }
        let table = Tuple::new(vec![Field::collection("table", "hash_table", build.tuple.clone())]);
        let built = add(level, "build", &[build.id], params, table);
        let name = match (join.kind, flip) {
            (Kind::Inner, _) => "inner",
            (Kind::Left, false) => "left",
            (Kind::Left, true) => "right",
            (Kind::Full, _) => "full",
            (Kind::Semi, false) => "semi",
            (Kind::Semi, true) => "build_semi",
            (Kind::Anti, false) => "anti",
            (Kind::Anti, true) => "build_anti",
            (Kind::Mark, _) => "mark",
            (Kind::Single, _) => "single",
        };
        let mut params =
            Params::new().with("keys", Value::names(&stream_keys)).with("join", Value::name(name));
        if !keyed.residual.is_empty() {
            params.set("residual", Expr::all(keyed.residual.clone()));
        }
        set_mark(&mut params, join);
        let tuple = joined_tuple(name, &stream.tuple, &build.tuple, join);
        let made = add(level, "probe", &[built.id, stream.id], params, tuple);
        self.prune(level, made, needed)
    }

    fn unkeyed_join(
        &mut self,
        join: &Join,
        left_needed: &HashSet<Name>,
        right_needed: &HashSet<Name>,
        needed: &HashSet<Name>,
        level: &mut Level,
    ) -> Result<Made> {
        let left = self.lower(&join.left, left_needed, level)?;
        let left = self.prune(level, left, left_needed)?;
        let right = self.lower(&join.right, right_needed, level)?;
        let right = self.prune(level, right, right_needed)?;
        if join.kind == Kind::Inner {
            // The smaller one is the side.
            let flip = profile(&join.left).rows < profile(&join.right).rows;
            let (side, stream) = if flip { (left, right) } else { (right, left) };
            if join.conditions.is_empty() {
                let tuple = side.tuple.concat(&stream.tuple);
                return Ok(add(level, "cartesian_product", &[side.id, stream.id], Params::new(), tuple));
            }
            let made = nested_loop(level, &side, &stream, "inner", join);
            return self.prune(level, made, needed);
        }
        let name = match join.kind {
            Kind::Inner => "inner",
            Kind::Left => "left",
            Kind::Full => "full",
            Kind::Semi => "semi",
            Kind::Anti => "anti",
            Kind::Mark => "mark",
            Kind::Single => "single",
        };
        let made = nested_loop(level, &right, &left, name, join);
        self.prune(level, made, needed)
    }

    /// A right side that reads fields of the left: a nested plan, run for every tuple of the left.
    fn correlated(&mut self, join: &Join, needed: &HashSet<Name>, level: &mut Level) -> Result<Made> {
        let left_names: HashSet<Name> = join.left.names().into_iter().collect();
        let right_names: HashSet<Name> = join.right.names().into_iter().collect();
        let read = with_fields(needed, &join.conditions);
        let wanted = join.right.parameters();
        let mut left_needed: HashSet<Name> = read.intersection(&left_names).cloned().collect();
        left_needed.extend(wanted.intersection(&left_names).cloned());
        let mut left = self.lower(&join.left, &left_needed, level)?;
        left = self.prune(level, left, &left_needed)?;
        // Parameters of this plan that the nested one reads too travel as fields.
        let mut passed: Vec<Name> = wanted.into_iter().filter(|name| !left_names.contains(name)).collect();
        passed.sort();
        if !passed.is_empty() {
            let mut exprs = Expr::identity(&left.tuple);
            exprs.extend(passed.into_iter().map(|name| (name.clone(), Expr::Parameter(name))));
            left = self.map(level, left, exprs)?;
        }
        let mut inner = Level { parameters: left.tuple.clone(), nodes: Vec::new() };
        let outer = add(&mut inner, "parameter_lookup", &[], Params::new(), left.tuple.clone());
        let right_needed: HashSet<Name> = read.intersection(&right_names).cloned().collect();
        let right = self.lower(&join.right, &right_needed, &mut inner)?;
        let right = self.prune(&mut inner, right, &right_needed)?;
        let name = match join.kind {
            Kind::Inner => "inner",
            Kind::Left => "left",
            Kind::Semi => "semi",
            Kind::Anti => "anti",
            Kind::Mark => "mark",
            Kind::Single => "single",
            Kind::Full => {
                return Err(Error::unsupported("LATERAL on the right of a FULL join is not supported"));
            }
        };
        let joined = nested_loop(&mut inner, &right, &outer, name, join);
        if matches!(join.kind, Kind::Mark | Kind::Single) {
            let tuple = joined.tuple.clone();
            let nested = Plan { parameters: inner.parameters, nodes: inner.nodes, root: joined.id };
            let made = add_nested(level, "nested_map", &[left.id], Params::new(), vec![nested], tuple);
            return self.prune(level, made, needed);
        }
        let rows = Tuple::new(vec![Field::collection("data", "rows", joined.tuple.clone())]);
        let kept = add(&mut inner, "rows_materialize", &[joined.id], Params::new(), rows.clone());
        let nested = Plan { parameters: inner.parameters, nodes: inner.nodes, root: kept.id };
        let made = add_nested(level, "nested_map", &[left.id], Params::new(), vec![nested], rows);
        let params = Params::new().with("field", Expr::field("data"));
        let made = add(level, "rows_scan", &[made.id], params, joined.tuple);
        self.prune(level, made, needed)
    }

    fn aggregate(
        &mut self,
        aggregate: &Aggregate,
        needed: &HashSet<Name>,
        level: &mut Level,
    ) -> Result<Made> {
        let calls: Vec<&(Name, Call)> =
            aggregate.calls.iter().filter(|(name, _)| needed.contains(name)).collect();
        let mut read: Vec<&Expr> = aggregate.keys.iter().map(|(_, expr)| expr).collect();
        for (_, call) in &calls {
            read.extend(&call.args);
            read.extend(&call.filter);
            read.extend(call.order_by.iter().map(|key| &key.expr));
        }
        let made = self.lower(&aggregate.input, &fields_of(read.into_iter()), level)?;
        // Orders of ordered aggregates are by fields.
        let order: Vec<Expr> =
            calls.iter().flat_map(|(_, call)| call.order_by.iter().map(|key| key.expr.clone())).collect();
        let (made, order) = self.with_computed(level, made, &order, "order")?;
        let mut order = order.into_iter();
        let calls: Vec<(Name, Call)> = calls
            .into_iter()
            .map(|(name, call)| {
                let mut call = call.clone();
                for key in &mut call.order_by {
                    if let Some(field) = order.next() {
                        key.expr = Expr::Field(field);
                    }
                }
                (name.clone(), call)
            })
            .collect();
        match &aggregate.sets {
            None => {
                let plain = aggregate
                    .keys
                    .iter()
                    .all(|(name, expr)| matches!(expr, Expr::Field(field) if field == name));
                let made = if plain {
                    made
                } else {
                    let mut exprs: Vec<(Name, Expr)> = aggregate.keys.clone();
                    for (name, expr) in Expr::identity(&made.tuple) {
                        if !exprs.iter().any(|(known, _)| *known == name) {
                            exprs.push((name, expr));
                        }
                    }
                    self.map(level, made, exprs)?
                };
                let keys: Vec<Name> = aggregate.keys.iter().map(|(name, _)| name.clone()).collect();
                let made = self.group(level, &made, &keys, &calls)?;
                self.prune(level, made, needed)
            }
            Some(sets) => self.grouping_sets(aggregate, sets, &calls, made, level),
        }
    }

    fn group(
        &mut self,
        level: &mut Level,
        input: &Made,
        keys: &[Name],
        calls: &[(Name, Call)],
    ) -> Result<Made> {
        let mut fields =
            keys.iter().map(|name| field(&input.tuple, name).cloned()).collect::<Result<Vec<_>>>()?;
        let mut entries: Vec<(Name, Value)> = Vec::new();
        for (name, call) in calls {
            let args = call
                .args
                .iter()
                .map(|arg| self.type_of(arg, &input.tuple, level))
                .collect::<Result<Vec<_>>>()?;
            let (atom, nullable) = self.types.library.aggregate(&call.function, &args, call.distinct)?;
            fields.push(Field::new(name.clone(), atom).with_nullable(nullable));
            entries.push((name.clone(), call_value(call)?));
        }
        let tuple = Tuple::new(fields);
        if keys.is_empty() {
            let params = Params::new().with("aggregates", entries);
            return Ok(add(level, "reduce", &[input.id], params, tuple));
        }
        let mut params = Params::new().with("keys", Value::names(keys));
        if !entries.is_empty() {
            params.set("aggregates", entries);
        }
        Ok(add(level, "reduce_by_key", &[input.id], params, tuple))
    }

    /// One grouping per set over the same input, one after the other; keys that are not part of a grouping are NULL.
    fn grouping_sets(
        &mut self,
        aggregate: &Aggregate,
        sets: &[Vec<usize>],
        calls: &[(Name, Call)],
        input: Made,
        level: &mut Level,
    ) -> Result<Made> {
        let key_exprs: Vec<Expr> = aggregate.keys.iter().map(|(_, expr)| expr.clone()).collect();
        let (input, key_fields) = self.with_computed(level, input, &key_exprs, "key")?;
        let mut inputs = Vec::with_capacity(sets.len());
        let mut fields: Option<Vec<Field>> = None;
        let mut repeated: HashMap<&[usize], i128> = HashMap::new();
        for set in sets {
            let mut keys: Vec<Name> = Vec::new();
            for &position in set {
                if !keys.contains(&key_fields[position]) {
                    keys.push(key_fields[position].clone());
                }
            }
            let grouped = self.group(level, &input, &keys, calls)?;
            let mut exprs: Vec<(Name, Expr)> = Vec::new();
            let mut bits: i128 = 0;
            for (position, (name, _)) in aggregate.keys.iter().enumerate() {
                let part = set.contains(&position);
                bits = bits << 1 | i128::from(!part);
                let atom = self.types.atoms.get(name).cloned().unwrap_or(Atom::Null);
                let value = if part { Expr::Field(key_fields[position].clone()) } else { Expr::null(atom) };
                exprs.push((name.clone(), value));
            }
            // The same grouping twice gives its groups twice; the bits above tell them apart, as the planner expects.
            let times = repeated.entry(set).or_insert(-1);
            *times += 1;
            bits |= *times << aggregate.keys.len();
            if let Some((name, atom)) = &aggregate.grouping {
                exprs.push((name.clone(), Expr::Constant(tessera_plan::Scalar::Integer(bits), atom.clone())));
            }
            exprs.extend(calls.iter().map(|(name, _)| (name.clone(), Expr::Field(name.clone()))));
            let mapped = self.map(level, grouped, exprs)?;
            fields = Some(merge_nullable(fields, mapped.tuple.fields()));
            inputs.push(mapped.id);
        }
        let tuple = Tuple::new(fields.unwrap_or_default());
        Ok(add(level, "union", &inputs, Params::new(), tuple))
    }

    fn sort(
        &mut self,
        input: &Relation,
        keys: &[Key],
        offset: u64,
        limit: Option<u64>,
        needed: &HashSet<Name>,
        level: &mut Level,
    ) -> Result<Made> {
        let exprs: Vec<Expr> = keys.iter().map(|key| key.expr.clone()).collect();
        let made = self.lower(input, &with_fields(needed, &exprs), level)?;
        let (made, names) = self.with_computed(level, made, &exprs, "order")?;
        let mut kept = needed.clone();
        kept.extend(names.iter().cloned());
        let made = self.prune(level, made, &kept)?;
        let mut sort_keys: Vec<SortKey> = Vec::new();
        for (key, name) in keys.iter().zip(names) {
            if !sort_keys.iter().any(|known| known.field == name) {
                sort_keys.push(SortKey {
                    field: name,
                    descending: key.descending,
                    nulls_first: key.nulls_first,
                });
            }
        }
        let values: Vec<Value> = sort_keys.iter().map(SortKey::to_value).collect();
        let mut params = Params::new().with("keys", values);
        let tuple = made.tuple.clone();
        let made = match limit {
            _ if sort_keys.is_empty() => {
                let mut params = Params::new();
                if let Some(limit) = limit {
                    params.set("limit", as_integer(limit)?);
                }
                if offset > 0 {
                    params.set("offset", as_integer(offset)?);
                }
                if params.is_empty() { made } else { add(level, "limit", &[made.id], params, tuple) }
            }
            Some(limit) => {
                params.set("limit", as_integer(limit)?);
                if offset > 0 {
                    params.set("offset", as_integer(offset)?);
                }
                add(level, "top_k", &[made.id], params, tuple)
            }
            None => add(level, "sort", &[made.id], params, tuple),
        };
        self.prune(level, made, needed)
    }

    fn union(
        &mut self,
        inputs: &[(Relation, Vec<Name>)],
        names: &[Name],
        needed: &HashSet<Name>,
        level: &mut Level,
    ) -> Result<Made> {
        let mut ids = Vec::with_capacity(inputs.len());
        let mut fields: Option<Vec<Field>> = None;
        for (input, given) in inputs {
            let pairs: Vec<(&Name, &Name)> =
                names.iter().zip(given).filter(|(name, _)| needed.contains(*name)).collect();
            let below = pairs.iter().map(|(_, from)| (*from).clone()).collect();
            let made = self.lower(input, &below, level)?;
            let exprs =
                pairs.into_iter().map(|(name, from)| (name.clone(), Expr::Field(from.clone()))).collect();
            let made = self.map(level, made, exprs)?;
            fields = Some(merge_nullable(fields, made.tuple.fields()));
            ids.push(made.id);
        }
        Ok(add(level, "union", &ids, Params::new(), Tuple::new(fields.unwrap_or_default())))
    }

    fn unnest(
        &mut self,
        input: &Relation,
        lists: &[(Name, Name)],
        outer: bool,
        needed: &HashSet<Name>,
        level: &mut Level,
    ) -> Result<Made> {
        let mut below = needed.clone();
        below.extend(lists.iter().map(|(list, _)| list.clone()));
        let made = self.lower(input, &below, level)?;
        let made = self.prune(level, made, &below)?;
        let fields = made
            .tuple
            .fields()
            .iter()
            .map(|field| match field.atom() {
                Some(Atom::List(slot)) if lists.iter().any(|(list, _)| *list == field.name) => {
                    Field::nullable(field.name.clone(), slot.atom.clone())
                }
                _ => field.clone(),
            })
            .collect::<Vec<_>>();
        let names: Vec<&Name> = lists.iter().map(|(list, _)| list).collect();
        let mut params = Params::new().with("fields", Value::names(names));
        if outer {
            params.set("outer", true);
        }
        let made = add(level, "unnest", &[made.id], params, Tuple::new(fields));
        let exprs = made
            .tuple
            .fields()
            .iter()
            .map(|field| match lists.iter().find(|(list, _)| *list == field.name) {
                Some((list, element)) => (element.clone(), Expr::Field(list.clone())),
                None => (field.name.clone(), Expr::Field(field.name.clone())),
            })
            .collect();
        self.map(level, made, exprs)
    }
}

/// The conditions of a join as keys and the rest.
#[derive(Debug, Default)]
struct Keyed {
    left: Vec<Expr>,
    right: Vec<Expr>,
    residual: Vec<Expr>,
    null_equal: bool,
}

impl Keyed {
    fn new(join: &Join, left_names: &HashSet<Name>, right_names: &HashSet<Name>, types: Types<'_>) -> Keyed {
        let plain = join
            .conditions
            .iter()
            .any(|condition| pair(condition, left_names, right_names, "eq", join.null_aware).is_some());
        let function = if plain { "eq" } else { "is_not_distinct" };
        let mut keyed = Keyed { null_equal: !plain, ..Keyed::default() };
        for (position, condition) in join.conditions.iter().enumerate() {
            match pair(condition, left_names, right_names, function, join.null_aware) {
                // A key is computed for every tuple; one that can raise is, only where nothing stands before it.
                Some((left, right)) if position == 0 || !(types.stays(&left) || types.stays(&right)) => {
                    keyed.left.push(left);
                    keyed.right.push(right);
                }
                _ => keyed.residual.push(condition.clone()),
            }
        }
        keyed
    }

    /// Whether the left side is built and the right one streams.
    fn flips(&self, join: &Join) -> bool {
        match join.kind {
            Kind::Mark | Kind::Single => false,
            Kind::Anti if join.null_aware => false,
            _ => profile(&join.left).rows < profile(&join.right).rows,
        }
    }
}

/// The sides of an equality between the left and the right; `constants` allows one of them to read no field.
fn pair(
    condition: &Expr,
    left_names: &HashSet<Name>,
    right_names: &HashSet<Name>,
    wanted: &str,
    constants: bool,
) -> Option<(Expr, Expr)> {
    let Expr::Call { function, args } = condition else { return None };
    let ([a, b], true) = (args.as_slice(), &**function == wanted) else { return None };
    let fields = a.fields().len().min(b.fields().len());
    if fields == 0 && !(constants && a.fields().len() + b.fields().len() > 0) {
        return None;
    }
    if covered(a, left_names) && covered(b, right_names) {
        Some((a.clone(), b.clone()))
    } else if covered(b, left_names) && covered(a, right_names) {
        Some((b.clone(), a.clone()))
    } else {
        None
    }
}

fn nested_loop(level: &mut Level, side: &Made, stream: &Made, name: &str, join: &Join) -> Made {
    let mut params = Params::new().with("join", Value::name(name));
    params.set("predicate", Expr::all(join.conditions.clone()));
    set_mark(&mut params, join);
    // The operator takes the meaning of NULL from the mark's own parameter.
    let tuple = joined_tuple(name, &stream.tuple, &side.tuple, join);
    add(level, "nested_loop", &[side.id, stream.id], params, tuple)
}

fn set_mark(params: &mut Params, join: &Join) {
    if let Some(mark) = &join.mark {
        params.set("mark", Value::string(mark.clone()));
    }
    if join.null_aware {
        params.set("null_aware", true);
    }
}

fn joined_tuple(name: &str, stream: &Tuple, build: &Tuple, join: &Join) -> Tuple {
    let nullable = |tuple: &Tuple| {
        Tuple::new(tuple.fields().iter().map(|field| field.with_nullable(true)).collect::<Vec<_>>())
    };
    match name {
        "semi" | "anti" => stream.clone(),
        "build_semi" | "build_anti" => build.clone(),
        "mark" => {
            let mut fields = stream.fields().to_vec();
            if let Some(mark) = &join.mark {
                fields.push(Field::new(mark.clone(), Atom::Boolean).with_nullable(join.null_aware));
            }
            Tuple::new(fields)
        }
        "left" | "single" => stream.concat(&nullable(build)),
        "right" => nullable(stream).concat(build),
        "full" => nullable(stream).concat(&nullable(build)),
        _ => stream.concat(build),
    }
}

fn filter(level: &mut Level, made: Made, predicates: &[Expr]) -> Made {
    let params = Params::new().with("predicate", Expr::all(predicates.to_vec()));
    let tuple = made.tuple.clone();
    add(level, "filter", &[made.id], params, tuple)
}

fn add(level: &mut Level, operator: &str, inputs: &[NodeId], params: Params, tuple: Tuple) -> Made {
    add_nested(level, operator, inputs, params, Vec::new(), tuple)
}

fn add_nested(
    level: &mut Level,
    operator: &str,
    inputs: &[NodeId],
    params: Params,
    nested: Vec<Plan>,
    tuple: Tuple,
) -> Made {
    let node = Node { operator: operator.into(), inputs: inputs.to_vec(), params, nested, expected: None };
    level.nodes.push(node);
    Made { id: NodeId(level.nodes.len() as u32 - 1), tuple }
}

fn field<'t>(tuple: &'t Tuple, name: &str) -> Result<&'t Field> {
    tuple.field(name).ok_or_else(|| Error::internal(format!("field {name} was lost on the way to {tuple}")))
}

fn fields_of<'e>(exprs: impl Iterator<Item = &'e Expr>) -> HashSet<Name> {
    exprs.flat_map(Expr::fields).collect()
}

fn with_fields(needed: &HashSet<Name>, exprs: &[Expr]) -> HashSet<Name> {
    let mut all = needed.clone();
    all.extend(fields_of(exprs.iter()));
    all
}

fn merge_nullable(known: Option<Vec<Field>>, fields: &[Field]) -> Vec<Field> {
    match known {
        None => fields.to_vec(),
        Some(known) => known
            .iter()
            .zip(fields)
            .map(|(known, field)| known.with_nullable(known.nullable || field.nullable))
            .collect(),
    }
}

fn as_integer(count: u64) -> Result<i64> {
    i64::try_from(count).map_err(|_| Error::semantic(format!("{count} is too large for LIMIT or OFFSET")))
}

fn call_value(call: &Call) -> Result<Value> {
    let mut entries: Vec<(Name, Value)> = vec![
        ("function".into(), Value::name(call.function.clone())),
        ("args".into(), Value::List(call.args.iter().cloned().map(Value::Expr).collect())),
    ];
    if call.distinct {
        entries.push(("distinct".into(), Value::Boolean(true)));
    }
    if let Some(filter) = &call.filter {
        entries.push(("filter".into(), Value::Expr(filter.clone())));
    }
    if !call.order_by.is_empty() {
        let mut keys = Vec::new();
        for key in &call.order_by {
            let Expr::Field(field) = &key.expr else {
                return Err(Error::internal("an aggregate's order is no field"));
            };
            let key =
                SortKey { field: field.clone(), descending: key.descending, nulls_first: key.nulls_first };
            keys.push(key.to_value());
        }
        entries.push(("order_by".into(), Value::List(keys)));
    }
    Ok(Value::Record(entries))
}
