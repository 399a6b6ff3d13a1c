//! Which expressions can raise: they stay behind the predicates that were written before them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tessera_ops::expression::Library;
use tessera_plan::{Expr, Functions, Scope};
use tessera_types::{Atom, Field, Tuple};

use crate::relation::Name;

<<<<<<< HEAD
/// Functions that give a value or NULL for every argument of the right type.
const SAFE: [&str; 43] = [
    "eq",
    "not_eq",
    "lt",
    "lt_eq",
    "gt",
    "gt_eq",
    "is_distinct",
    "is_not_distinct",
    "like",
    "ilike",
    "lower",
    "upper",
    "trim",
    "btrim",
    "ltrim",
    "rtrim",
    "length",
    "character_length",
    "octet_length",
    "bit_length",
    "starts_with",
    "ends_with",
    "contains",
    "strpos",
    "concat",
    "concat_op",
    "date_part",
    "date_trunc",
    "substr",
    "left",
    "right",
    "reverse",
    "nullif",
    "greatest",
    "least",
    "isnan",
    "iszero",
    "array_length",
    "cardinality",
    "md5",
    "ascii",
    "signum",
    "get_field",
];

/// Whether evaluating the expression can be an error for some tuple, given the types of the fields.
pub(crate) fn can_raise(expr: &Expr, atoms: &HashMap<Name, Atom>) -> bool {
    let own = match expr {
        Expr::Call { function, args } => match &**function {
            "substr" => !matches!(args.get(2), None | Some(Expr::Constant(Scalar::Integer(0..), _))),
            // A constant pattern was looked at when the query was planned.
            "like" | "ilike" => !matches!(args.get(1), Some(Expr::Constant(..))),
            "date_part" | "date_trunc" => !matches!(args.first(), Some(Expr::Constant(..))),
            name => !SAFE.contains(&name),
        },
        Expr::Cast { safe: false, input, to } => !atom_of(input, atoms).is_some_and(|from| widens(from, to)),
        _ => false,
    };
    own || expr.children().into_iter().any(|child| can_raise(child, atoms))
}

fn atom_of<'a>(expr: &'a Expr, atoms: &'a HashMap<Name, Atom>) -> Option<&'a Atom> {
    match expr {
        Expr::Field(name) | Expr::Parameter(name) => atoms.get(name),
        Expr::Constant(_, atom) | Expr::Cast { to: atom, .. } => Some(atom),
        Expr::Coalesce(list) => list.first().and_then(|first| atom_of(first, atoms)),
        _ => None,
    }
}

/// Whether every value of one type is one of the other.
fn widens(from: &Atom, to: &Atom) -> bool {
    let digits = |atom: &Atom| match atom {
        Atom::Int8 | Atom::UInt8 => Some((3, 0)),
        Atom::Int16 | Atom::UInt16 => Some((5, 0)),
        Atom::Int32 | Atom::UInt32 => Some((10, 0)),
        Atom::Int64 => Some((19, 0)),
        Atom::UInt64 => Some((20, 0)),
        Atom::Decimal(precision, scale) => Some((i16::from(*precision), i16::from(*scale))),
        _ => None,
    };
    match (from, to) {
        (_, Atom::String) | (Atom::Null, _) => true,
        (a, b) if a == b => true,
        (a, Atom::Float64) => a.is_numeric(),
        (a, Atom::Decimal(precision, scale)) => digits(a).is_some_and(|(from_precision, from_scale)| {
            let (precision, scale) = (i16::from(*precision), i16::from(*scale));
            scale >= from_scale && precision - scale >= from_precision - from_scale
        }),
        (a, b) if a.is_integer() && b.is_integer() => {
            let (narrow, wide) = (a.width_bytes().unwrap_or(8), b.width_bytes().unwrap_or(0));
            narrow < wide && (b.is_signed_integer() || a.is_unsigned_integer())
        }
        (
            Atom::Date,
            Atom::Timestamp(TimeUnit::Second | TimeUnit::Millisecond | TimeUnit::Microsecond, _),
        ) => true,
        _ => false,
=======
/// The types of all fields of a query, and the functions its expressions call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Types<'a> {
    pub(crate) library: &'a Arc<Library>,
    pub(crate) atoms: &'a HashMap<Name, Atom>,
}

impl Types<'_> {
    /// Whether the expression must stay where it is: evaluating it can be an error for some tuple, or it gives another
    /// value each time.
    pub(crate) fn stays(self, expr: &Expr) -> bool {
        let mut names = HashSet::new();
        let mut volatile = false;
        expr.walk(&mut |expr| match expr {
            Expr::Field(name) | Expr::Parameter(name) => {
                names.insert(name.clone());
            }
            Expr::Call { function, .. } => volatile |= self.library.is_volatile(function),
            _ => {}
        });
        let fields = names.into_iter().filter_map(|name| {
            let atom = self.atoms.get(&name)?.clone();
            Some(Field::nullable(name, atom))
        });
        let tuple = Tuple::new(fields.collect::<Vec<_>>());
        volatile
            || tessera_plan::pass::can_raise(
                expr,
                Scope { tuple: &tuple, parameters: &tuple, functions: &**self.library },
            )
>>>>>>> e21c546 (SQL: predicates that can raise asked of the library; dialect page; tests of plans; the front end lightly optimised)
    }
}
