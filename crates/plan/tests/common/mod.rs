//! A small catalog: the part of `docs/reference/sub-operators.md` that tests need.

#![allow(dead_code, reason = "each test file uses a part")]

use std::sync::Arc;

use tessera_plan::{
    Descriptor, Edge, Expr, Functions, Inputs, Locality, Node, OperatorCatalog, Order, Parallelism,
    Pushes, Role, Scope, Traits, traits_catalog, type_of,
};
use tessera_types::{Atom, Error, Field, Item, Result, Tuple};

#[derive(Debug)]
struct TestFunctions;

impl Functions for TestFunctions {
    fn scalar(&self, name: &str, args: &[(Atom, bool, &Expr)]) -> Result<(Atom, bool)> {
        let nullable = args.iter().any(|(_, nullable, _)| *nullable);
        let first = args.first().map(|(atom, ..)| atom.clone()).unwrap_or(Atom::Int64);
        if args.iter().any(|(atom, ..)| *atom != first) {
            return Err(Error::semantic(format!("{name} of different types")));
        }
        match name {
            "eq" | "not_eq" | "lt" | "lt_eq" | "gt" | "gt_eq" => Ok((Atom::Boolean, nullable)),
            "add" | "sub" | "mul" | "div" | "random" => Ok((first, nullable)),
            _ => Err(Error::semantic(format!("there is no function {name}"))),
        }
    }

    fn aggregate(
        &self,
        _name: &str,
        _args: &[(Atom, bool)],
        _distinct: bool,
    ) -> Result<(Atom, bool)> {
        Ok((Atom::Int64, true))
    }

    fn can_raise(&self, function: &str, _args: &[(Atom, bool, &Expr)]) -> bool {
        matches!(function, "add" | "sub" | "mul" | "div")
    }

    fn is_volatile(&self, function: &str) -> bool {
        function == "random"
    }
}

type Derive = fn(&Node, &Inputs<'_>) -> Result<Edge>;

#[derive(Debug)]
struct Toy {
    name: &'static str,
    parameters: &'static [&'static str],
    arity: (usize, usize),
    nested: Option<Traits>,
    role: Role,
    derive: Derive,
}

impl Descriptor for Toy {
    fn name(&self) -> &'static str {
        self.name
    }

    fn summary(&self) -> &'static str {
        "A sub-operator of the tests."
    }

    fn parameters(&self) -> &'static [&'static str] {
        self.parameters
    }

    fn arity(&self) -> (usize, usize) {
        self.arity
    }

    fn nested(&self) -> usize {
        usize::from(self.nested.is_some())
    }

    fn nested_input(&self, _node: &Node, inputs: &[Edge], _index: usize) -> Result<Edge> {
        Ok(Edge { traits: self.nested.unwrap_or(Traits::DRIVER), ..inputs[0].clone() })
    }

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        (self.derive)(node, inputs)
    }

    fn role(&self, _node: &Node) -> Role {
        self.role
    }

    fn pushes(&self) -> Pushes {
        if self.name.ends_with("_scan") { Pushes::SCAN } else { Pushes::NONE }
    }
}

fn predicate(expr: &Expr, tuple: &Tuple, inputs: &Inputs<'_>) -> Result<()> {
    let scope = Scope { tuple, parameters: inputs.parameters, functions: inputs.functions };
    tessera_plan::typing::check_predicate(expr, scope)
}

fn subset(tuple: &Tuple, names: &[Arc<str>]) -> Result<Vec<Field>> {
    names
        .iter()
        .map(|name| {
            tuple
                .field(name)
                .cloned()
                .ok_or_else(|| Error::semantic(format!("no field {name} in {tuple}")))
        })
        .collect()
}

fn exprs(node: &Node, tuple: &Tuple, inputs: &Inputs<'_>) -> Result<Tuple> {
    let scope = Scope { tuple, parameters: inputs.parameters, functions: inputs.functions };
    let field = |(name, expr): (Arc<str>, &Expr)| {
        if let Expr::Field(source) = expr
            && let Some(field) = tuple.field(source)
        {
            return Ok(field.renamed(name));
        }
        let (atom, nullable) = type_of(expr, scope)?;
        Ok(Field::new(name, atom).with_nullable(nullable))
    };
    Ok(Tuple::new(node.params.exprs("exprs")?.into_iter().map(field).collect::<Result<Vec<_>>>()?))
}

fn one(edge: &Edge, tuple: Tuple) -> Result<Edge> {
    if edge.traits.locality == Locality::Worker {
        return Err(Error::semantic("has an input with locality worker; insert an exchange"));
    }
    Ok(Edge {
        tuple,
        traits: Traits { parallelism: Parallelism::One, ..edge.traits },
        order: Order::None,
    })
}

const MANY: Traits =
    Traits { parallelism: Parallelism::Many, locality: Locality::Worker, ..Traits::DRIVER };

/// The sub-operators of the catalog, with the rules that these tests need.
pub(crate) fn catalog() -> OperatorCatalog {
    let mut catalog = OperatorCatalog::new(Arc::new(TestFunctions));
    traits_catalog::register(&mut catalog);
    let toy = |name, parameters, arity, nested, role, derive| Toy {
        name,
        parameters,
        arity,
        nested,
        role,
        derive,
    };
    for descriptor in [
        toy(
            "parquet_scan",
            &["paths", "columns", "fields", "filter"],
            (0, 0),
            None,
            Role::Source,
            |node, inputs| {
                let mut tuple = node.params.tuple("columns")?.clone();
                if let Some(filter) = node.params.expr_opt("filter")? {
                    predicate(filter, &tuple, inputs)?;
                }
                if node.params.get("fields").is_some() {
                    tuple = Tuple::new(subset(&tuple, &node.params.names("fields")?)?);
                }
                Ok(Edge { tuple, ..inputs.edges[0].clone() })
            },
        ),
        toy("parameter_lookup", &[], (0, 0), None, Role::Source, |_, inputs| {
            Ok(inputs.edges[0].clone())
        }),
        toy("filter", &["predicate"], (1, 1), None, Role::Stream(0), |node, inputs| {
            predicate(node.params.expr("predicate")?, &inputs.edges[0].tuple, inputs)?;
            Ok(inputs.edges[0].clone())
        }),
        toy("map", &["exprs"], (1, 1), None, Role::Stream(0), |node, inputs| {
            let edge = &inputs.edges[0];
            Ok(Edge { tuple: exprs(node, &edge.tuple, inputs)?, ..edge.clone() })
        }),
        toy("projection", &["fields"], (1, 1), None, Role::Stream(0), |node, inputs| {
            let edge = &inputs.edges[0];
            let fields = subset(&edge.tuple, &node.params.names("fields")?)?;
            Ok(Edge { tuple: Tuple::new(fields), ..edge.clone() })
        }),
        toy("union", &[], (1, usize::MAX), None, Role::Union, |_, inputs| {
            let first = &inputs.edges[0];
            match inputs.edges.iter().find(|edge| edge.tuple != first.tuple) {
                Some(other) => {
                    Err(Error::semantic(format!("{} against {}", first.tuple, other.tuple)))
                }
                None => Ok(inputs
                    .edges
                    .iter()
                    .max_by_key(|e| e.traits.parallelism == Parallelism::Many)
                    .unwrap_or(first)
                    .clone()),
            }
        }),
        toy("zip", &[], (2, usize::MAX), None, Role::Source, |_, inputs| {
            let fields = inputs.edges.iter().flat_map(|edge| edge.tuple.fields().to_vec());
            Ok(Edge { tuple: Tuple::new(fields.collect::<Vec<_>>()), ..inputs.edges[0].clone() })
        }),
        toy("sort", &["keys"], (1, 1), None, Role::Sink(0), |node, inputs| {
            let edge = &inputs.edges[0];
            let keys: Vec<_> =
                node.params.sort_keys("keys")?.into_iter().map(|key| key.field).collect();
            subset(&edge.tuple, &keys)?;
            one(edge, edge.tuple.clone())
        }),
        toy(
            "reduce_by_key",
            &["keys", "aggregates"],
            (1, 1),
            None,
            Role::Sink(0),
            |node, inputs| {
                let edge = &inputs.edges[0];
                let fields = subset(&edge.tuple, &node.params.names("keys")?)?;
                one(edge, Tuple::new(fields))
            },
        ),
        toy("reduce", &["aggregates"], (1, 1), None, Role::Sink(0), |_, inputs| {
            one(&inputs.edges[0], Tuple::empty())
        }),
        toy("build", &["keys"], (1, 1), None, Role::Sink(0), |node, inputs| {
            let edge = &inputs.edges[0];
            subset(&edge.tuple, &node.params.names("keys")?)?;
            one(
                edge,
                Tuple::new(vec![Field::collection("table", "hash_table", edge.tuple.clone())]),
            )
        }),
        toy(
            "probe",
            &["keys", "join", "residual"],
            (2, 2),
            None,
            Role::Stream(1),
            |node, inputs| {
                node.params.choice("join", &["inner"])?;
                let (table, edge) = (&inputs.edges[0], &inputs.edges[1]);
                subset(&edge.tuple, &node.params.names("keys")?)?;
                match table.tuple.fields().first().map(|field| &field.item) {
                    Some(Item::Collection(inside)) => {
                        Ok(Edge { tuple: edge.tuple.concat(&inside.tuple), ..edge.clone() })
                    }
                    _ => Err(Error::semantic("input 0 must be a hash table")),
                }
            },
        ),
        toy("nested_map", &[], (1, 1), Some(Traits::DRIVER), Role::Stream(0), |_, inputs| {
            Ok(Edge { tuple: inputs.nested[0].tuple.clone(), ..inputs.edges[0].clone() })
        }),
        toy("executor", &["platform"], (0, 1), Some(MANY), Role::Source, |_, inputs| {
            Ok(Edge { traits: inputs.edges[0].traits, ..inputs.nested[0].clone() })
        }),
        toy("exchange", &["keys", "heavy", "meets"], (1, 1), None, Role::Stream(0), |_, inputs| {
            let edge = inputs.edges[0].clone();
            Ok(Edge { traits: Traits { locality: Locality::All, ..edge.traits }, ..edge })
        }),
        toy("merge", &["keys"], (1, 1), None, Role::Stream(0), |_, inputs| {
            let edge = inputs.edges[0].clone();
            let traits =
                Traits { parallelism: Parallelism::One, locality: Locality::All, ..edge.traits };
            Ok(Edge { traits, ..edge })
        }),
    ] {
        catalog.register(Arc::new(descriptor));
    }
    catalog
}

/// Parses a plan.
pub(crate) fn plan(text: &str) -> tessera_plan::Plan {
    tessera_plan::text::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}
