//! Casts, including casts to types with a length or a precision.

use std::sync::Arc;

use sqlparser::ast::{Array, CastKind, CharacterLength, DataType, Expr as Ast};
use tessera_parser::element_type;
use tessera_plan::{Expr, Lambda};
use tessera_types::{Atom, Error, Field, Result, TimeUnit, Tuple};

use super::literal::units;
use super::typed::TypedExpr;
use super::{Binder, Place, bit_strings, unsupported_at};

impl Binder<'_> {
    pub(super) fn cast(
        &mut self,
        kind: &CastKind,
        inner: &Ast,
        data_type: &DataType,
        place: &mut Place<'_, '_>,
    ) -> Result<TypedExpr> {
        let safe = match kind {
            CastKind::Cast | CastKind::DoubleColon => false,
            CastKind::TryCast | CastKind::SafeCast => true,
        };
        let value = match (inner, safe) {
            (Ast::Array(array), false) => {
                self.array_as(array, &self.local_type(data_type)?, place)?
            }
            _ => self.expr(inner, place)?,
        };
        self.cast_as(value, data_type, safe)
    }

    /// Casts `ARRAY[…]` item by item, so that the items need no common type first.
    fn array_as(
        &mut self,
        array: &Array,
        to: &Atom,
        place: &mut Place<'_, '_>,
    ) -> Result<TypedExpr> {
        let is_list = |item: &Ast| matches!(item, Ast::Array(_));
        let element = match to {
            Atom::List(slot) => &slot.atom,
            _ => return self.array(array, place),
        };
        if array.elem.is_empty()
            || array.elem.iter().any(is_list) != matches!(element, Atom::List(_))
        {
            return self.array(array, place);
        }
        let mut items = Vec::with_capacity(array.elem.len());
        for item in &array.elem {
            let value = match item {
                Ast::Array(inner) => self.array_as(inner, element, place)?,
                _ => self.expr(item, place)?,
            };
            items.push(self.cast_to(value, element, false)?);
        }
        self.list_of(items)
    }

    /// Casts a value to a SQL type.
    pub(super) fn cast_as(
        &self,
        value: TypedExpr,
        data_type: &DataType,
        safe: bool,
    ) -> Result<TypedExpr> {
        if let (DataType::Regclass, Some(name)) = (data_type, value.literal())
            && name.bytes().any(|byte| !byte.is_ascii_digit())
        {
            return self.relation_oid(name);
        }
        let atom = self.local_type(data_type)?;
        if let Some(moment) = value.literal().and_then(|word| self.date_word(word, &atom)) {
            return moment;
        }
        match data_type {
            DataType::Varchar(Some(length))
            | DataType::Nvarchar(Some(length))
            | DataType::CharacterVarying(Some(length))
            | DataType::CharVarying(Some(length)) => match characters(length) {
                Some(length) => {
                    let text = self.cast_to(value, &atom, safe)?;
                    self.call("cut_text", vec![text, length])
                }
                None => self.cast_to(value, &atom, safe),
            },
            DataType::Char(length) | DataType::Character(length) => {
                let length = length.as_ref().map_or(Some(TypedExpr::int64(1)), characters);
                let text = self.cast_to(value, &atom, safe)?;
                match length {
                    Some(length) => self.call("cut_character", vec![text, length]),
                    None => Ok(text),
                }
            }
            DataType::Bit(length) => self.as_bits(value, length.unwrap_or(1), safe),
            DataType::BitVarying(Some(length)) | DataType::VarBit(Some(length)) => {
                self.as_varying_bits(value, *length, safe)
            }
            DataType::Timestamp(Some(digits @ 0..=6), _) => {
                let moment = self.cast_to(value, &atom, safe)?;
                self.call("round_moment", vec![moment, TypedExpr::int32(*digits as i32)])
            }
            DataType::Time(Some(digits @ 0..=6), _) => {
                let time = self.cast_to(value, &atom, safe)?;
                self.call("round_time", vec![time, TypedExpr::int32(*digits as i32)])
            }
            DataType::Interval { fields, precision } if fields.is_some() || precision.is_some() => {
                let (largest, smallest) = fields.as_ref().map_or(("", ""), units);
                let (value, read) = match value.unknown {
                    true => (value.known(), true),
                    false => (self.cast_to(value, &atom, safe)?, false),
                };
                self.interval_in(value, largest, smallest, *precision, read)
            }
            DataType::Array(_) if has_length(data_type) => {
                let list = self.cast_to(value, &atom, safe)?;
                self.elements_as(list, data_type, safe)
            }
            // A cast literal counts as typed.
            _ if value.unknown && atom == Atom::String => {
                let expr = Expr::Cast { input: Box::new(value.expr), to: atom.clone(), safe };
                Ok(TypedExpr::new(expr, atom))
            }
            _ => self.cast_to(value, &atom, safe),
        }
    }

    /// Casts the elements of a list, which have the type already, to its length or precision.
    fn elements_as(&self, list: TypedExpr, list_type: &DataType, safe: bool) -> Result<TypedExpr> {
        let (Atom::List(slot), Some(data_type)) = (&list.atom, element_type(list_type)) else {
            return Err(Error::internal("a cast to a list gave no list"));
        };
        let each = |item| self.cast_as(item, data_type, safe);
        Ok(TypedExpr::new(self.transformed(list.clone(), &slot.atom, each)?, list.atom))
    }

    /// Applies a conversion to the elements of a list.
    pub(super) fn transformed(
        &self,
        list: TypedExpr,
        of: &Atom,
        each: impl Fn(TypedExpr) -> Result<TypedExpr>,
    ) -> Result<Expr> {
        let element: Arc<str> = "element".into();
        let body = each(TypedExpr::new(Expr::Field(element.clone()), of.clone()))?.expr;
        let parameters = Tuple::new(vec![
            Field::nullable(element, of.clone()),
            Field::nullable("position", Atom::Int64),
        ]);
        let lambda = Expr::Lambda(Arc::new(Lambda { parameters, body }));
        Ok(Expr::call("list_transform", vec![list.expr, lambda]))
    }

    /// Casts a special date word, such as `'today'::date`, to a value of the statement's time.
    fn date_word(&self, word: &str, to: &Atom) -> Option<Result<TypedExpr>> {
        let days = match word.trim().to_ascii_lowercase().as_str() {
            "now" => None,
            "today" => Some(0),
            "yesterday" => Some(-1),
            "tomorrow" => Some(1),
            _ => return None,
        };
        let clock = |function: &str| {
            let expr = self.clock(function)?;
            let atom = self.fields.atom_of(&expr).ok()?;
            Some(TypedExpr::new(expr, atom))
        };
        let day = |days: i64| {
            let today = clock("current_date")?;
            Some(self.arithmetic("add", today, TypedExpr::int64(days)))
        };
        Some(match (to, days) {
            (Atom::Date, days) => day(days.unwrap_or(0))?,
            (Atom::Timestamp(TimeUnit::Microsecond, None), None) => Ok(clock("localtimestamp")?),
            (Atom::Timestamp(TimeUnit::Microsecond, Some(_)), None) => Ok(clock("now")?),
            (Atom::Timestamp(..), Some(days)) => {
                day(days)?.and_then(|day| self.cast_to(day, to, false))
            }
            (Atom::Time(TimeUnit::Microsecond), None) => Ok(clock("localtime")?),
            (Atom::TimeTz, None) => Ok(clock("current_time")?),
            _ => return None,
        })
    }

    /// Rejects the unsupported forms of CAST.
    pub(super) fn refuse_cast(&self, array: bool, format: bool, inner: &Ast) -> Result<()> {
        match (array, format) {
            (true, _) => Err(unsupported_at("CAST … ARRAY", inner)),
            (_, true) => Err(unsupported_at("CAST … FORMAT", inner)),
            _ => Ok(()),
        }
    }
}

/// Whether a type has a length or a precision that its values must be cut or rounded to.
fn has_length(data_type: &DataType) -> bool {
    match data_type {
        DataType::Varchar(length)
        | DataType::Nvarchar(length)
        | DataType::CharacterVarying(length)
        | DataType::CharVarying(length) => length.as_ref().and_then(characters).is_some(),
        DataType::Char(_) | DataType::Character(_) => true,
        DataType::Timestamp(digits, _) | DataType::Time(digits, _) => digits.is_some(),
        DataType::Interval { fields, precision } => fields.is_some() || precision.is_some(),
        other => bit_strings::has_length(other) || element_type(other).is_some_and(has_length),
    }
}

fn characters(length: &CharacterLength) -> Option<TypedExpr> {
    match length {
        CharacterLength::IntegerLength { length, .. } => {
            Some(TypedExpr::int64(i64::try_from(*length).unwrap_or(i64::MAX)))
        }
        CharacterLength::Max => None,
    }
}
