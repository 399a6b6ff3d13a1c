//! `date_part` of dates, for the parts a date is made of; other parts and types are DataFusion's.

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Date32Type, Int32Type};
use tessera_plan::{Expr, Scalar};
use tessera_types::{Atom, Error, Result};

use super::datetime::civil;
use super::kernel::{Argument, Kernel, unary};
use super::types::{Arg, Resolved};

#[derive(Debug, Clone, Copy)]
enum Part {
    Year,
    Quarter,
    Month,
    Day,
}

/// Types the call, if it is one of these.
pub(crate) fn resolve(args: &[Arg<'_>]) -> Option<Resolved> {
    let [Arg { expr: Expr::Constant(Scalar::String(part), _), .. }, Arg { atom: Atom::Date, .. }] = args
    else {
        return None;
    };
    let part = match part.to_ascii_lowercase().as_str() {
        "year" => Part::Year,
        "quarter" => Part::Quarter,
        "month" => Part::Month,
        "day" => Part::Day,
        _ => return None,
    };
    let casts = vec![Atom::String, Atom::Date];
    Some(Resolved::strict(Atom::Int32, args, casts, DatePart { part }).costing(4))
}

#[derive(Debug)]
struct DatePart {
    part: Part,
}

impl Kernel for DatePart {
    fn call(&self, args: &[Argument], rows: usize) -> Result<ArrayRef> {
        let dates = args.get(1).cloned().ok_or_else(|| Error::internal("date_part without a date"))?;
        let dates = Argument { array: dates.full(rows)?, constant: false };
        let op = |day: i32| {
            let (year, month, date) = civil(day.into());
            let part = match self.part {
                Part::Year => year,
                Part::Quarter => (month + 2) / 3,
                Part::Month => month,
                Part::Day => date,
            };
            (part as i32, false)
        };
        unary::<Date32Type, Int32Type>(&[dates], DataType::Int32, op, |_| Error::internal("a part of a date"))
    }
}
