//! How the aggregates of a group are merged from those of its parts.

use tessera_plan::Expr;
use tessera_types::Atom;

use crate::logical::relation::{Call, Name};

/// A way to compute an aggregate from aggregates of parts of its tuples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Merging {
    /// The aggregates of each part.
    pub(crate) parts: &'static [Part],
    /// The aggregate that merges them; its arguments are the aggregates of the parts.
    pub(crate) merge: &'static str,
}

/// An aggregate of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    /// The function.
    pub(crate) function: &'static str,
    /// The position of its argument among those of the whole aggregate; `None` if it has them all.
    pub(crate) arg: Option<usize>,
}

impl Part {
    const COUNT: Part = Part::of("count");
    const SUM: Part = Part::of("sum");
    const MIN: Part = Part::of("min");
    const MAX: Part = Part::of("max");
    const ANY: Part = Part::of("any_value");
    const AND: Part = Part::of("bool_and");
    const OR: Part = Part::of("bool_or");
    const EVERY: Part = Part::of("every");
    const MERGED_COUNT: Part = Part::of("merge_count");
    const MERGED_SUM: Part = Part::of("merge_sum");
    const SUM_OF_AVERAGE: Part = Part { function: "merge_sum", arg: Some(0) };
    const COUNT_OF_AVERAGE: Part = Part { function: "merge_count", arg: Some(1) };

    /// A part with all arguments of the aggregate.
    const fn of(function: &'static str) -> Part {
        Part { function, arg: None }
    }
}

impl Merging {
    /// Returns how to merge a function that yields this type, if that is possible. DISTINCT
    /// arguments and ordered ones cannot be merged.
    pub(crate) fn of(function: &str, result: &Atom) -> Option<Merging> {
        let is_moment = matches!(result, Atom::Interval | Atom::Timestamp(..));
        let (parts, merge): (&[Part], _) = match function {
            "count" => (&[Part::COUNT], "merge_count"),
            "sum" if *result == Atom::Interval => (&[Part::SUM], "sum"),
            "sum" => (&[Part::SUM], "merge_sum"),
            "avg" | "mean" if !is_moment => (&[Part::SUM, Part::COUNT], "merge_avg"),
            "min" => (&[Part::MIN], "min"),
            "max" => (&[Part::MAX], "max"),
            "any_value" => (&[Part::ANY], "any_value"),
            "bool_and" => (&[Part::AND], "bool_and"),
            "bool_or" => (&[Part::OR], "bool_or"),
            "every" => (&[Part::EVERY], "every"),
            // Aggregates that merge already merge again.
            "merge_count" => (&[Part::MERGED_COUNT], "merge_count"),
            "merge_sum" => (&[Part::MERGED_SUM], "merge_sum"),
            "merge_avg" => (&[Part::SUM_OF_AVERAGE, Part::COUNT_OF_AVERAGE], "merge_avg"),
            _ => return None,
        };
        Some(Merging { parts, merge })
    }

    /// Returns how to merge a call with arguments of these types, if the result is the same for all
    /// ways to divide its tuples: the sum of floats depends on the order of additions.
    pub(crate) fn exact(call: &Call, args: &[Atom], result: &Atom) -> Option<Merging> {
        if call.distinct || !call.order_by.is_empty() || call.limit.is_some() {
            return None;
        }
        let merging = Merging::of(&call.function, result)?;
        let adds = merging.parts.iter().any(|part| matches!(part.function, "sum" | "merge_sum"));
        (!adds || !args.iter().any(Atom::is_float)).then_some(merging)
    }

    /// Returns the calls that compute the parts of a call.
    pub(crate) fn part_calls(self, call: &Call) -> impl Iterator<Item = Call> {
        self.parts.iter().map(|part| {
            let args = match part.arg {
                None => call.args.clone(),
                Some(position) => call.args.get(position).cloned().into_iter().collect(),
            };
            Call { function: part.function.into(), args, ..call.clone() }
        })
    }
}

/// Returns the call that merges these parts.
pub(crate) fn merging_call(function: &str, parts: &[Name]) -> Call {
    Call {
        function: function.into(),
        args: parts.iter().cloned().map(Expr::Field).collect(),
        distinct: false,
        filter: None,
        order_by: Vec::new(),
        limit: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_merged_in_any_division() {
        let call = |function: &str| merging_call(function, &["x".into(), "n".into()]);
        let exact = |function: &str, arg: Atom| {
            let call = call(function);
            let merging = Merging::exact(&call, &[arg], &Atom::Int64)?;
            let parts = merging.part_calls(&call);
            let shown = |part: Call| format!("{}({})", part.function, part.args.len());
            Some((parts.map(shown).collect::<Vec<_>>().join(" "), merging.merge))
        };
        assert_eq!(exact("sum", Atom::Int64), Some(("sum(2)".into(), "merge_sum")));
        assert_eq!(exact("avg", Atom::Int32), Some(("sum(2) count(2)".into(), "merge_avg")));
        let again = Some(("merge_sum(1) merge_count(1)".into(), "merge_avg"));
        assert_eq!(exact("merge_avg", Atom::Decimal(38, 2)), again);
        assert_eq!(exact("max", Atom::Float64), Some(("max(2)".into(), "max")));
        assert_eq!(exact("sum", Atom::Float64), None);
        assert_eq!(exact("stddev", Atom::Int64), None);
        let distinct = Call { distinct: true, ..call("sum") };
        assert_eq!(Merging::exact(&distinct, &[Atom::Int64], &Atom::Int64), None);
    }
}
