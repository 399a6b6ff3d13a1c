//! Times with time zone: conversions in the session's time zone, and where they become text.

use tessera_types::{Atom, Result};

use super::Binder;
use super::bit_strings::TEXT_OF_NESTED;
use super::table_function::list_of;
use super::typed::TypedExpr;

impl Binder<'_> {
    /// Converts times with time zone to text for a function that makes text of its arguments, and
    /// times of day to them where they are compared.
    pub(super) fn times_taken(&self, name: &str, args: Vec<TypedExpr>) -> Result<Vec<TypedExpr>> {
        if name == "overlaps" && args.iter().any(|arg| arg.atom == Atom::TimeTz) {
            return self.times_with_zone(args);
        }
        if name == "concat_op" || TEXT_OF_NESTED.contains(&name) {
            return self.replaced(args, Atom::without_timetz);
        }
        Ok(args)
    }

    /// Converts texts and times of day to times with time zone; those without a zone are in the
    /// session's. Returns `None` where a cast does it.
    pub(super) fn in_zone_of_session(
        &self,
        value: &TypedExpr,
        to: &Atom,
        safe: bool,
    ) -> Result<Option<TypedExpr>> {
        if &*self.zone == "UTC" || !to.has_timetz() {
            return Ok(None);
        }
        Ok(match (&value.atom, to) {
            (Atom::String | Atom::Time(_), Atom::TimeTz) => {
                let today = self.function_call("current_date", Vec::new())?;
                let zone = TypedExpr::text(&self.zone);
                let safe = TypedExpr::boolean(tessera_plan::Expr::boolean(safe));
                Some(self.call("timetz_in", vec![value.clone().known(), zone, today, safe])?)
            }
            (Atom::String, Atom::List(_)) => {
                let texts = self.cast_to(value.clone().known(), &to.without_timetz(), safe)?;
                Some(self.cast_to(texts, to, safe)?)
            }
            (Atom::List(from), Atom::List(slot)) if from.atom != slot.atom => {
                let each = |item| self.cast_to(item, &slot.atom, safe);
                let list = self.transformed(value.clone(), &from.atom, each)?;
                Some(TypedExpr::new(list, list_of(slot.atom.clone())))
            }
            _ => None,
        })
    }

    /// Converts the times of day among arguments to times with time zone.
    fn times_with_zone(&self, args: Vec<TypedExpr>) -> Result<Vec<TypedExpr>> {
        let convert = |arg: TypedExpr| match arg.atom {
            Atom::Time(_) => self.cast_to(arg, &Atom::TimeTz, false),
            _ => Ok(arg),
        };
        args.into_iter().map(convert).collect()
    }

    /// Calls `timezone` of a zone and a time of day, which has the offset of now.
    pub(super) fn time_at_zone(&self, args: Vec<TypedExpr>) -> Result<TypedExpr> {
        let mut args = self.times_with_zone(args)?;
        args.push(self.function_call("now", Vec::new())?);
        self.call("timetz_at", args)
    }
}
