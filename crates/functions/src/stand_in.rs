//! Result types of DataFusion's functions over bit strings, which are texts to it.
//!
//! Where a function gives its arguments or parts of them, as `array_append` does, the types are
//! computed once more with another type of text in place of bit strings.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion_common::ScalarValue;
use datafusion_expr::type_coercion::functions::fields_with_udf;
use datafusion_expr::{ReturnFieldArgs, ScalarUDF};
use tessera_types::{Atom, Result, Slot};

use super::foreign::{constant, foreign_type};
use tessera_values::types::Arg;

/// Returns the result type of a call, whose Arrow type is that of `atom`, with bit strings where
/// they come from the arguments.
pub(crate) fn with_bits(udf: &ScalarUDF, args: &[Arg<'_>], atom: Atom) -> Atom {
    match args.iter().all(|arg| arg.atom.without_bits() == *arg.atom) {
        true => atom,
        false => typed(udf, args).unwrap_or(atom),
    }
}

fn typed(udf: &ScalarUDF, args: &[Arg<'_>]) -> Option<Atom> {
    let field = |index: usize, arg: &Arg<'_>| -> FieldRef {
        let stand_in = foreign_type(&stand_in(arg.atom));
        Arc::new(Field::new(format!("a{index}"), stand_in, arg.nullable))
    };
    let given: Vec<FieldRef> =
        args.iter().enumerate().map(|(index, arg)| field(index, arg)).collect();
    let fields = fields_with_udf(&given, udf).ok()?;
    let constants = args.iter().zip(&fields);
    let constants = constants.map(|(arg, field)| constant(arg.expr, field.data_type()));
    let constants = constants.collect::<Result<Vec<_>>>().ok()?;
    let constants: Vec<Option<&ScalarValue>> = constants.iter().map(Option::as_ref).collect();
    let call = ReturnFieldArgs { arg_fields: &fields, scalar_arguments: &constants };
    of_stand_in(udf.return_field_from_args(call).ok()?.data_type())
}

/// The type of Arrow that stands for bit strings where only types are computed; no other value has
/// it.
const STAND_IN: DataType = DataType::LargeUtf8;

/// Returns the Arrow type with the stand-in in place of bit strings.
fn stand_in(atom: &Atom) -> DataType {
    let slot = |name: &str, slot: &Slot| -> FieldRef {
        Arc::new(Field::new(name, stand_in(&slot.atom), slot.nullable))
    };
    match atom {
        Atom::Bits => STAND_IN,
        Atom::List(element) => DataType::List(slot("item", element)),
        Atom::Struct(slots) => {
            DataType::Struct(slots.iter().map(|(name, of)| slot(name, of)).collect())
        }
        Atom::Map(key, value) => {
            let key = Slot { nullable: false, ..(**key).clone() };
            let entries = DataType::Struct(vec![slot("key", &key), slot("value", value)].into());
            DataType::Map(Arc::new(Field::new("entries", entries, false)), false)
        }
        other => other.arrow(),
    }
}

/// Returns the type of values with the stand-in.
fn of_stand_in(data_type: &DataType) -> Option<Atom> {
    let slot = |field: &FieldRef| -> Option<Slot> {
        Some(Slot { atom: of_stand_in(field.data_type())?, nullable: field.is_nullable() })
    };
    Some(match data_type {
        DataType::LargeUtf8 => Atom::Bits,
        DataType::List(field) | DataType::LargeList(field) | DataType::FixedSizeList(field, _) => {
            Atom::List(Box::new(slot(field)?))
        }
        DataType::Struct(fields) => {
            let slots =
                fields.iter().map(|field| Some((field.name().as_str().into(), slot(field)?)));
            Atom::Struct(slots.collect::<Option<_>>()?)
        }
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(fields) => match fields.as_ref() {
                [key, value] => Atom::Map(
                    Box::new(Slot { nullable: false, ..slot(key)? }),
                    Box::new(slot(value)?),
                ),
                _ => return None,
            },
            _ => return None,
        },
        other => Atom::from_arrow(other).ok()?,
    })
}
