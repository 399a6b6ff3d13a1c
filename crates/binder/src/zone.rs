//! The session's time zone in types: every timestamp with time zone that SQL reads has it.
//!
//! A plan names the zone in its types, so that workers, constants and compiled code need no
//! setting.

use std::sync::Arc;

use sqlparser::ast::DataType;
use tessera_types::{Atom, Result, Slot, TimeUnit};

use super::typed::TypedExpr;
use super::{Binder, BoundQuery};
use tessera_parser::atom_of_type;

impl Binder<'_> {
    /// Returns a type with the session's zone in place of others.
    pub(super) fn localized(&self, atom: &Atom) -> Atom {
        let slot = |slot: &Slot| Slot { atom: self.localized(&slot.atom), ..slot.clone() };
        match atom {
            Atom::Timestamp(unit, Some(_)) => Atom::Timestamp(*unit, Some(self.zone.clone())),
            Atom::List(item) => Atom::List(Box::new(slot(item))),
            Atom::Map(key, value) => Atom::Map(Box::new(slot(key)), Box::new(slot(value))),
            Atom::Struct(slots) => {
                Atom::Struct(slots.iter().map(|(name, of)| (name.clone(), slot(of))).collect())
            }
            other => other.clone(),
        }
    }

    /// Returns a SQL type in the session's zone.
    pub(crate) fn local_type(&self, data_type: &DataType) -> Result<Atom> {
        let types = |name: &str| self.environment.definitions.named_type(name).cloned();
        atom_of_type(data_type, &types).map(|atom| self.localized(&atom))
    }

    /// Gives a value the session's zone.
    pub(super) fn in_session_zone(&self, value: TypedExpr) -> Result<TypedExpr> {
        let atom = self.localized(&value.atom);
        if atom == value.atom { Ok(value) } else { self.cast_to(value, &atom, false) }
    }

    /// Gives the columns of a table the session's zone.
    pub(super) fn scan_in_session_zone(&mut self, scan: BoundQuery) -> Result<BoundQuery> {
        let atoms = scan.columns.iter().map(|column| self.localized(&column.atom)).collect();
        self.retyped_columns(scan, atoms)
    }

    /// Converts arguments that a function reads in the session's zone: dates that PostgreSQL takes
    /// as timestamps with time zone, and texts without an offset.
    pub(super) fn zoned_arguments(
        &self,
        name: &str,
        mut args: Vec<TypedExpr>,
    ) -> Result<Vec<TypedExpr>> {
        let is_plain = |arg: &TypedExpr| matches!(arg.atom, Atom::Timestamp(_, None));
        let is_date = |arg: &TypedExpr| arg.atom == Atom::Date;
        let dates = match (name, args.len()) {
            ("date_trunc" | "datetrunc" | "timezone", 2..) => 1..2,
            ("date_bin", 2) => 1..2,
            ("date_bin", 3) if !args.iter().any(is_plain) => 1..3,
            ("generate_series", 3) if !args.iter().any(is_plain) => 0..2,
            ("to_char", 2) => 0..1,
            ("to_timestamp", 2) if &*self.zone != "UTC" => {
                args.push(TypedExpr::text(&self.zone));
                0..0
            }
            _ => 0..0,
        };
        let zoned = Atom::Timestamp(TimeUnit::Microsecond, Some(Arc::clone(&self.zone)));
        let convert = |(at, arg): (usize, TypedExpr)| match dates.contains(&at) && is_date(&arg) {
            true => self.cast_to(arg, &zoned, false),
            false => Ok(arg),
        };
        args.into_iter().enumerate().map(convert).collect()
    }
}
