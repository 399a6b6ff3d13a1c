//! Bit strings: their literals, the casts to `bit(n)` and `bit varying(n)`, and the functions for
//! which they are texts.

use sqlparser::ast::DataType;
use tessera_plan::{Expr, Scalar};
use tessera_types::{Atom, Error, Result, SqlState};
use tessera_values::bits::{from_hexadecimal, parse};

use super::Binder;
use super::typed::TypedExpr;

/// Functions that take bit strings, and operators that refuse them; for other functions they become
/// text.
const SCALARS: [&str; 45] = [
    "add",
    "array_repeat",
    "bit_and",
    "bit_count",
    "bit_length",
    "bit_not",
    "bit_or",
    "bit_position",
    "bit_xor",
    "bits_of",
    "bitstring",
    "char_length",
    "character_length",
    "concat_op",
    "cut_bits",
    "div",
    "fit_bits",
    "get_bit",
    "greatest",
    "hash",
    "least",
    "len",
    "length",
    "list_repeat",
    "make_array",
    "make_list",
    "mod",
    "mul",
    "named_struct",
    "neg",
    "nullif",
    "octet_length",
    "overlay",
    "pg_typeof",
    "power",
    "row",
    "set_bit",
    "shift_left",
    "shift_right",
    "strpos",
    "struct",
    "sub",
    "substr",
    "substring",
    "typeof",
];

/// Functions that make text of lists, structs and maps; others take those with bit strings.
pub(super) const TEXT_OF_NESTED: [&str; 8] = [
    "array_join",
    "array_to_string",
    "concat",
    "concat_ws",
    "format",
    "list_join",
    "list_to_string",
    "printf",
];

impl Binder<'_> {
    /// Converts bit strings to text for a scalar function that does not take them.
    pub(super) fn bits_as_text(&self, name: &str, args: Vec<TypedExpr>) -> Result<Vec<TypedExpr>> {
        let in_nested = args.iter().any(|arg| arg.atom.is_nested() && arg.atom.has_bits());
        if SCALARS.contains(&name) || in_nested && !TEXT_OF_NESTED.contains(&name) {
            return Ok(args);
        }
        self.replaced(args, Atom::without_bits)
    }

    /// Casts a value to `bit(length)`, which cuts bits or appends zeros; a whole number gives its
    /// last bits.
    pub(super) fn as_bits(&self, value: TypedExpr, length: u64, safe: bool) -> Result<TypedExpr> {
        let length = TypedExpr::int64(i64::try_from(length).unwrap_or(i64::MAX));
        if matches!(value.atom, Atom::Int32 | Atom::Int64) {
            return self.call("bits_of", vec![value, length]);
        }
        let bits = self.cast_to(value, &Atom::Bits, safe)?;
        self.call("fit_bits", vec![bits, length])
    }

    /// Casts a value to `bit varying(length)`, which cuts bits.
    pub(super) fn as_varying_bits(
        &self,
        value: TypedExpr,
        length: u64,
        safe: bool,
    ) -> Result<TypedExpr> {
        let bits = self.cast_to(value, &Atom::Bits, safe)?;
        let length = TypedExpr::int64(i64::try_from(length).unwrap_or(i64::MAX));
        self.call("cut_bits", vec![bits, length])
    }

    /// Converts the arguments of `bitstring_agg`.
    pub(super) fn bit_set_arguments(&self, args: Vec<TypedExpr>) -> Result<Vec<TypedExpr>> {
        let fits = |arg: &TypedExpr| arg.atom.is_integer() || arg.is_null() || arg.unknown;
        if args.len() != 3 || !args.iter().all(fits) {
            let types = args.iter().map(|arg| arg.atom.to_string()).collect::<Vec<_>>().join(", ");
            let message = format!(
                "aggregate function bitstring_agg does not take ({types}); it takes a whole number and the least and the \
                 greatest of all"
            );
            return Err(Error::semantic(message).with_state(SqlState::UNDEFINED_FUNCTION));
        }
        args.into_iter().map(|arg| self.cast_to(arg, &Atom::Int64, false)).collect()
    }
}

/// Whether a type of bit strings has a length.
pub(super) fn has_length(data_type: &DataType) -> bool {
    match data_type {
        DataType::Bit(_) => true,
        DataType::BitVarying(length) | DataType::VarBit(length) => length.is_some(),
        _ => false,
    }
}

/// Returns the value of `B'101'`.
pub(super) fn binary_literal(digits: &str) -> Result<TypedExpr> {
    Ok(literal(&parse(&format!("b{digits}"))?))
}

/// Returns the value of `X'1F'`.
pub(super) fn hexadecimal_literal(digits: &str) -> Result<TypedExpr> {
    Ok(literal(&from_hexadecimal(digits)?))
}

fn literal(digits: &str) -> TypedExpr {
    TypedExpr::new(Expr::Constant(Scalar::String(digits.into()), Atom::Bits), Atom::Bits)
}
