//! Tests each expression rule alone: random expressions have the same values with and without the
//! rule, for rows of every type.
//!
//! A rule never adds an error, and only two rules remove one. The expressions are generated for the
//! rule; a test fails if the rule changes fewer than [`CHANGES`] of them. `TESSERA_RULE_CHANGES`
//! overrides this number.

mod generate;

use arrow::compute::concat;
use tessera_functions::is_written_null;
use tessera_plan::rule::{Level, RULES};
use tessera_plan::{Rule, Rules, Scope, type_of};

use super::*;
use crate::expression::{Simplifier, TypeContext};
use generate::{Random, pool, shape};

/// The number of expressions that a rule must change.
const CHANGES: usize = 1_000;
/// On average, at least one of this many expressions must change.
const ATTEMPTS_PER_CHANGE: usize = 20;
/// The number of rows per batch, and of expressions evaluated on the same batch.
const ROWS: usize = 16;
const EXPRESSIONS_PER_ROWS: usize = 50;

/// The types of fields; each has two fields.
const TYPES: [&str; 23] = [
    "boolean",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint32",
    "uint64",
    "float32",
    "float64",
    "decimal(10,2)",
    "decimal(12,3)",
    "decimal(38,4)",
    "string",
    "bytes",
    "date",
    "time(us)",
    "timestamp(us)",
    "timestamp(us, \"+00:00\")",
    "interval",
    "duration(us)",
    "list<int32?>",
    "struct<a: int32?, b: string?>",
];

/// The types of expressions over the fields.
struct Fields {
    tuple: Tuple,
    atoms: Vec<Atom>,
    library: Arc<Library>,
}

impl TypeContext for &Fields {
    fn atom(&self, expr: &Expr) -> Option<Atom> {
        self.atom_of(expr)
    }

    fn must_stay(&self, expr: &Expr) -> bool {
        tessera_plan::rewrite::is_volatile(expr, &*self.library)
            || tessera_plan::rewrite::can_raise(expr, self.scope())
    }
}

impl Fields {
    fn new() -> Fields {
        let atoms: Vec<Atom> = TYPES
            .iter()
            .map(|name| name.parse().unwrap_or_else(|error| panic!("{name}: {error}")))
            .collect();
        let fields = atoms.iter().enumerate().flat_map(|(number, atom)| {
            [0, 1].map(|copy| {
                tessera_types::Field::nullable(format!("f{number}_{copy}"), atom.clone())
            })
        });
        Fields { tuple: Tuple::new(fields.collect::<Vec<_>>()), atoms, library: library() }
    }

    fn scope(&self) -> Scope<'_> {
        Scope { tuple: &self.tuple, parameters: &self.tuple, functions: &*self.library }
    }

    fn atom_of(&self, expr: &Expr) -> Option<Atom> {
        type_of(expr, self.scope()).ok().map(|(atom, _)| atom)
    }

    /// Returns the type of an expression that can be evaluated; unsupported casts have one too.
    fn bound_atom(&self, expr: &Expr) -> Option<Atom> {
        BoundExpr::new(expr, &self.tuple, &Tuple::empty(), &self.library)
            .ok()
            .map(|bound| bound.atom().0.clone())
    }

    fn field(&self, atom: &Atom, random: &mut Random) -> Option<Expr> {
        let number = self.atoms.iter().position(|known| known == atom)?;
        Some(Expr::field(format!("f{number}_{}", random.below(2))))
    }

    /// Returns columns of random values, a third of them NULL.
    fn rows(&self, random: &mut Random) -> Vec<ArrayRef> {
        let column = |atom: &Atom, random: &mut Random| {
            let pool = pool(atom);
            let value = |random: &mut Random| match random.below(3) {
                0 => Scalar::Null,
                _ => random.pick(&pool).clone(),
            };
            let values: Vec<ArrayRef> =
                (0..ROWS).map(|_| scalar_to_array(&value(random), atom).unwrap()).collect();
            concat(&values.iter().map(|value| &**value).collect::<Vec<_>>()).unwrap()
        };
        let twice = self.atoms.iter().flat_map(|atom| [atom, atom]);
        twice.map(|atom| column(atom, random)).collect()
    }

    fn values(&self, expr: &Expr, columns: &[ArrayRef]) -> Result<Vec<Scalar>> {
        let bound = BoundExpr::new(expr, &self.tuple, &Tuple::empty(), &self.library)?;
        Ok(values(&bound.evaluate(&Chunk::from_arrays(columns.to_vec()), &run())?))
    }

    /// Describes where two expressions differ; with `drops`, the second may have fewer errors.
    fn difference(
        &self,
        [written, simple]: [&Expr; 2],
        columns: &[ArrayRef],
        drops: bool,
    ) -> Option<String> {
        let (before, after) = (self.values(written, columns), self.values(simple, columns));
        if let (Ok(before), Ok(after)) = (&before, &after) {
            return (before != after).then(|| format!("{before:?} became {after:?}"));
        }
        for row in 0..ROWS {
            let row: Vec<ArrayRef> = columns.iter().map(|column| column.slice(row, 1)).collect();
            let before = self.values(written, &row);
            match (&before, self.values(simple, &row)) {
                (Ok(before), Ok(after)) if after == *before => {}
                (Err(_), Err(_)) => {}
                (Err(_), Ok(_)) if drops => {}
                (_, after) => return Some(format!("{before:?} became {after:?} on {row:?}")),
            }
        }
        None
    }

    fn volatile_calls(&self, expr: &Expr) -> usize {
        let mut count = 0;
        expr.walk(&mut |expr| {
            count +=
                usize::from(matches!(expr, Expr::Call { function, .. } if &**function == "random"));
        });
        count
    }
}

fn changes_wanted() -> usize {
    let wanted = std::env::var("TESSERA_RULE_CHANGES").ok();
    wanted.map_or(CHANGES, |wanted| wanted.parse().expect("TESSERA_RULE_CHANGES is a number"))
}

/// Whether a rule may remove an operand that could be evaluated otherwise.
fn drops_operands(rule: Rule) -> bool {
    matches!(
        rule,
        Rule::StrictNull | Rule::DecidingOperand | Rule::DeadBranches | Rule::CoalesceValues
    )
}

/// Whether a rule removes errors: of operands beside a NULL, or of dates without a timestamp.
fn drops_errors(rule: Rule) -> bool {
    matches!(rule, Rule::StrictNull | Rule::DateComparison)
}

/// Whether an operand is beside a literal NULL, where no error is raised: the rule may have found
/// the NULL.
fn has_written_null(expr: &Expr) -> bool {
    let mut found = false;
    expr.walk(&mut |expr| {
        if let Expr::Call { function, args } = expr {
            found |= is_written_null(function, args);
        }
    });
    found
}

fn holds(rule: Rule) {
    let fields = Fields::new();
    let mut random = Random::new(rule as u64 + 1);
    let simplifier = Simplifier::new(&fields.library, &fields).with_rules(Rules::NONE.with(rule));
    let (wanted, mut changed, mut attempts) = (changes_wanted(), 0, 0);
    let mut columns = fields.rows(&mut random);
    while changed < wanted {
        attempts += 1;
        assert!(
            attempts <= wanted * ATTEMPTS_PER_CHANGE,
            "{rule:?} changed {changed} of {attempts} only"
        );
        if attempts % EXPRESSIONS_PER_ROWS == 0 {
            columns = fields.rows(&mut random);
        }
        let written = shape(rule, &fields, &mut random);
        let Some(atom) = fields.bound_atom(&written) else { continue };
        let simple = simplifier.tree(written.clone());
        if simple == written {
            continue;
        }
        changed += 1;
        let show = || {
            let print = tessera_plan::text::print_expr;
            format!("{rule:?}: {} as {}", print(&written), print(&simple))
        };
        assert_eq!(fields.atom_of(&simple), Some(atom), "{}", show());
        let (before, after) = (fields.volatile_calls(&written), fields.volatile_calls(&simple));
        assert!(after == before || drops_operands(rule) && after < before, "{}", show());
        let drops = drops_errors(rule) || has_written_null(&simple);
        if let Some(difference) = fields.difference([&written, &simple], &columns, drops) {
            panic!("{}: {difference}", show());
        }
    }
}

macro_rules! rules {
    ($($test:ident $rule:ident)*) => {
        $(#[test]
        fn $test() {
            holds(Rule::$rule);
        })*

        const TESTED: &[Rule] = &[$(Rule::$rule),*];
    };
}

rules! {
    fold_constants FoldConstants
    same_type_cast SameTypeCast
    strict_null StrictNull
    flip_comparison FlipComparison
    distinct_from_null DistinctFromNull
    boolean_equality BooleanEquality
    unwrap_cast UnwrapCast
    date_comparison DateComparison
    like_without_wildcards LikeWithoutWildcards
    double_not DoubleNot
    negate_comparison NegateComparison
    push_not PushNot
    flatten_connectives FlattenConnectives
    neutral_operands NeutralOperands
    deciding_operand DecidingOperand
    repeated_operands RepeatedOperands
    dead_branches DeadBranches
    coalesce_values CoalesceValues
}

#[test]
fn every_rule_of_expressions_has_a_test() {
    let of_expressions = RULES.iter().filter(|entry| entry.level == Level::Expression);
    assert_eq!(of_expressions.map(|entry| entry.rule).collect::<Vec<_>>(), TESTED);
}

#[test]
fn all_rules_together() {
    let fields = Fields::new();
    let mut random = Random::new(0);
    let simplifier = Simplifier::new(&fields.library, &fields);
    for _ in 0..changes_wanted() {
        let columns = fields.rows(&mut random);
        let written = shape(*random.pick(TESTED), &fields, &mut random);
        let Some(atom) = fields.bound_atom(&written) else { continue };
        let simple = simplifier.tree(written.clone());
        let print = tessera_plan::text::print_expr;
        let show = || format!("{} as {}", print(&written), print(&simple));
        assert_eq!(fields.atom_of(&simple), Some(atom), "{}", show());
        if let Some(difference) = fields.difference([&written, &simple], &columns, true) {
            panic!("{}: {difference}", show());
        }
    }
}
