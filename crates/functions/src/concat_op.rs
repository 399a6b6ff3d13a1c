//! `concat_op`, the operator `||`: NULL if either operand is NULL.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryViewBuilder, StringViewBuilder};
use tessera_context::interrupt::{EveryBytes, SPAN_BYTES, spans};
use tessera_types::{Atom, Result};

use tessera_patterns::pieces::text_pieces;
use tessera_values::append::append;
use tessera_values::kernel::{Argument, Kernel, argument, unexpected};
use tessera_values::types::{Arg, ResolvedCall, expect_arguments, wrong_arguments};

/// Resolves `||` of texts and bytes. That of lists is `array_concat` and the like, which are not
/// strict.
pub(crate) fn resolve(args: &[Arg<'_>]) -> Result<ResolvedCall> {
    expect_arguments("concat_op", args, 2)?;
    let kind = |atom: &Atom| args.iter().any(|arg| arg.atom == atom);
    if args.iter().any(|arg| matches!(arg.atom, Atom::List(_) | Atom::Struct(_) | Atom::Map(..))) {
        return Err(wrong_arguments("concat_op", args, "cast them to strings"));
    }
    let bytes = kind(&Atom::Bytes) && !kind(&Atom::String);
    let atom = if bytes { Atom::Bytes } else { Atom::String };
    Ok(ResolvedCall::strict(atom.clone(), args, vec![atom.clone(); 2], Concat { bytes })
        .costing(10))
}

#[derive(Debug)]
struct Concat {
    bytes: bool,
}

impl Kernel for Concat {
    fn call(&self, args: &[Argument], rows: usize) -> Result<ArrayRef> {
        let (left, right) = (argument(args, 0)?, argument(args, 1)?);
        macro_rules! concat {
            ($builder:ident, $cast:ident, $buffer:expr, $push:ident, $pieces:expr, $append:expr) => {{
                let l = left.array.$cast().ok_or_else(|| unexpected(&left.array))?;
                let r = right.array.$cast().ok_or_else(|| unexpected(&right.array))?;
                let mut builder = $builder::with_capacity(rows);
                let (mut buffer, every) = ($buffer, EveryBytes::default());
                for row in 0..rows {
                    let (a, b) = (left.at(row), right.at(row));
                    if l.is_null(a) || r.is_null(b) {
                        builder.append_null();
                        continue;
                    }
                    buffer.clear();
                    buffer.reserve(l.value(a).len() + r.value(b).len());
                    for piece in $pieces(l.value(a)).chain($pieces(r.value(b))) {
                        every.pass(piece.len());
                        buffer.$push(piece);
                    }
                    match buffer.len() > SPAN_BYTES {
                        true => $append(&mut builder, std::mem::take(&mut buffer)),
                        false => builder.append_value(&buffer),
                    }
                }
                Ok(Arc::new(builder.finish()))
            }};
        }
        match self.bytes {
            false => {
                concat!(
                    StringViewBuilder,
                    as_string_view_opt,
                    String::new(),
                    push_str,
                    text_pieces,
                    append
                )
            }
            true => concat!(
                BinaryViewBuilder,
                as_binary_view_opt,
                Vec::new(),
                extend_from_slice,
                spans,
                BinaryViewBuilder::append_value
            ),
        }
    }
}
