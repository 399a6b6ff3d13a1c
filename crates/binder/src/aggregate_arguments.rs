//! The arguments of aggregate functions: the types that a function takes.

use tessera_plan::{Expr, Scalar};
use tessera_types::{Atom, Error, Result, SqlState, TimeUnit};

use super::Binder;
use super::typed::TypedExpr;
use tessera_overloads::Kind;

impl Binder<'_> {
    /// Rewrites `median` of values other than numbers.
    pub(super) fn as_percentile(
        &self,
        name: String,
        mut values: Vec<TypedExpr>,
    ) -> Result<(String, Vec<TypedExpr>)> {
        let function = match (name.as_str(), values.as_slice()) {
            ("median", [value]) => match &value.atom {
                Atom::Date | Atom::Timestamp(..) | Atom::Time(_) | Atom::Interval => {
                    "percentile_cont"
                }
                atom if atom.is_numeric() || value.is_null() => return Ok((name, values)),
                _ => "percentile_disc",
            },
            _ => return Ok((name, values)),
        };
        let half = TypedExpr::new(Expr::Constant(Scalar::Float(0.5), Atom::Float64), Atom::Float64);
        values.push(half);
        Ok((function.to_string(), values))
    }

    /// Converts arguments to the types that the function takes.
    pub(super) fn call_arguments(
        &self,
        name: &str,
        args: Vec<TypedExpr>,
    ) -> Result<Vec<TypedExpr>> {
        let types = args.iter().map(|arg| arg.atom.to_string()).collect::<Vec<_>>().join(", ");
        let wrong = |hint: &str| {
            let message = format!("aggregate function {name} does not take ({types}); {hint}");
            Err(Error::semantic(message).with_state(SqlState::UNDEFINED_FUNCTION))
        };
        match name {
            "count" => match args.as_slice() {
                [] => Ok(args),
                // A non-NULL constant counts every tuple.
                [only] if matches!(&only.expr, Expr::Constant(value, _) if !value.is_null()) => {
                    Ok(Vec::new())
                }
                [_] => Ok(args.into_iter().map(TypedExpr::known).collect()),
                _ => wrong("it takes one value"),
            },
            "sum" | "avg" | "var_samp" | "var_pop" | "stddev" | "stddev_pop" => {
                match args.as_slice() {
                    [one] if one.is_null() => self.cast_all(args, &Atom::Int64),
                    [one] if one.unknown => self.arguments_typed(name, Kind::Aggregate, args),
                    [one] if matches!(one.atom, Atom::Duration(_)) => {
                        self.cast_all(args, &Atom::Interval)
                    }
                    [one] if one.atom == Atom::Boolean && name == "sum" => {
                        self.cast_all(args, &Atom::Int32)
                    }
                    [one] if matches!(one.atom, Atom::Time(_)) && matches!(name, "sum" | "avg") => {
                        self.cast_all(args, &Atom::Interval)
                    }
                    [one] if name == "avg" && moment_of(&one.atom).is_some() => {
                        let to = moment_of(&one.atom).unwrap_or(Atom::Null);
                        self.cast_all(args, &to)
                    }
                    [one]
                        if one.atom.is_numeric()
                            || (one.atom == Atom::Interval && matches!(name, "sum" | "avg")) =>
                    {
                        Ok(args)
                    }
                    [_] => wrong("cast it to a number"),
                    _ => wrong("it takes one value"),
                }
            }
            "percentile_cont" | "percentile_disc" | "mode" => {
                self.ordered_set_arguments(name, args)
            }
            "fsum" | "favg" | "product" | "mad" | "skewness" | "kurtosis" | "kurtosis_pop" => {
                match args.as_slice() {
                    [one] if one.atom.is_numeric() || one.is_null() || one.unknown => {
                        self.cast_all(args, &Atom::Float64)
                    }
                    [_] => wrong("cast it to a number"),
                    _ => wrong("it takes one value"),
                }
            }
            "histogram" | "entropy" | "approx_top_k" => {
                let mut args = args.into_iter();
                let Some(value) = args.next() else { return wrong("it takes a value") };
                let mut all = vec![match value.is_null() {
                    true => self.cast_to(value, &Atom::Int32, false)?,
                    false => value.known(),
                }];
                for count in args {
                    all.push(self.cast_to(count, &Atom::Int64, false)?);
                }
                match all.len() {
                    1 if name != "approx_top_k" => Ok(all),
                    2 if name == "approx_top_k" => Ok(all),
                    _ if name == "approx_top_k" => wrong("it takes a value and a count"),
                    _ => wrong("it takes one value"),
                }
            }
            "bit_and" | "bit_or" | "bit_xor" if matches!(args.as_slice(), [one] if one.is_null()) => {
                self.cast_all(args, &Atom::Int64)
            }
            "bitstring_agg" => self.bit_set_arguments(args),
            "string_agg" => match args.as_slice() {
                [value] => {
                    let is_bytes = value.atom == Atom::Bytes;
                    let atom = if is_bytes { Atom::Bytes } else { Atom::String };
                    let mut args = args.clone();
                    args.push(TypedExpr::unknown(","));
                    self.cast_all(args, &atom)
                }
                [value, _] if value.atom == Atom::Bytes => self.cast_all(args, &Atom::Bytes),
                [_, _] => self.cast_all(args, &Atom::String),
                _ => wrong("it takes a text and a separator"),
            },
            "bool_and" | "bool_or" if matches!(args.as_slice(), [one] if one.unknown || one.is_null()) => {
                self.cast_all(args, &Atom::Boolean)
            }
            _ if args.iter().any(|arg| arg.unknown) => {
                self.arguments_typed(name, Kind::Aggregate, args)
            }
            _ => Ok(args),
        }
    }

    /// Makes an aggregate that compares texts compare them in their collation; returns the function
    /// to call.
    pub(super) fn collated_call(
        &self,
        name: String,
        values: &mut [TypedExpr],
        keys: &mut Vec<(TypedExpr, bool, bool)>,
        distinct: &mut bool,
    ) -> Result<String> {
        let Some(first) = values.first_mut() else { return Ok(name) };
        let Some(collation) = self.text_collation(first)? else { return Ok(name) };
        match &*name {
            "min" | "max" => {
                let descending = name == "max";
                let key = self.order_key(first.clone(), &collation)?;
                // Of equal texts, the first by its bytes is the result.
                *keys = vec![(key, descending, false), (first.clone(), false, false)];
                *distinct = false;
                Ok("first_value".to_string())
            }
            "count" if *distinct => {
                *first = self.equal_key(first.clone(), &collation)?;
                Ok(name)
            }
            "approx_distinct" | "entropy" => self.refuse_joined(&name, values).map(|()| name),
            "approx_top_k" | "histogram" | "mode" | "percentile_disc" => {
                self.refuse_collation(&name, values).map(|()| name)
            }
            _ if *distinct && collation.joins_texts() => {
                self.refuse_collation(&format!("{name}(DISTINCT …)"), values).map(|()| name)
            }
            _ => Ok(name),
        }
    }

    fn cast_all(&self, args: Vec<TypedExpr>, atom: &Atom) -> Result<Vec<TypedExpr>> {
        args.into_iter().map(|arg| self.cast_to(arg, atom, false)).collect()
    }

    /// Converts the value and the fractions of an ordered-set aggregate.
    fn ordered_set_arguments(&self, name: &str, args: Vec<TypedExpr>) -> Result<Vec<TypedExpr>> {
        let types = args.iter().map(|arg| arg.atom.to_string()).collect::<Vec<_>>().join(", ");
        let wrong = |hint: &str| {
            let message = format!("aggregate function {name} does not take ({types}); {hint}");
            Err(Error::semantic(message).with_state(SqlState::UNDEFINED_FUNCTION))
        };
        let count = if name == "mode" { 1 } else { 2 };
        if args.len() != count {
            return wrong("write it as f(…) WITHIN GROUP (ORDER BY value)");
        }
        let mut args = args.into_iter();
        let Some(value) = args.next() else { return wrong("it takes a value") };
        let value = match (name, &value.atom) {
            ("percentile_cont", atom)
                if atom.is_numeric() || *atom == Atom::Null || value.unknown =>
            {
                self.cast_to(value, &Atom::Float64, false)?
            }
            ("percentile_cont", atom) if moment_of(atom).is_some() => {
                let to = moment_of(&value.atom).unwrap_or(Atom::Null);
                self.cast_to(value, &to, false)?
            }
            ("percentile_cont", Atom::Interval) => value,
            ("percentile_cont", _) => return wrong("cast the value to double precision"),
            (_, Atom::Null) => self.cast_to(value, &Atom::Int32, false)?,
            _ => value.known(),
        };
        let mut all = vec![value];
        if let Some(fraction) = args.next() {
            let to = match &fraction.atom {
                Atom::List(slot) if slot.atom.is_numeric() || slot.atom == Atom::Null => {
                    super::table_function::list_of(Atom::Float64)
                }
                atom if atom.is_numeric() || *atom == Atom::Null || fraction.unknown => {
                    Atom::Float64
                }
                _ => return wrong("the fraction must be a number or a list of numbers"),
            };
            all.push(self.cast_to(fraction, &to, false)?);
        }
        Ok(all)
    }
}

/// The type in which dates, times and timestamps are averaged; `None` for other types.
fn moment_of(atom: &Atom) -> Option<Atom> {
    Some(match atom {
        Atom::Date => Atom::Timestamp(TimeUnit::Microsecond, None),
        Atom::Timestamp(_, zone) => Atom::Timestamp(TimeUnit::Microsecond, zone.clone()),
        Atom::Time(_) => Atom::Time(TimeUnit::Microsecond),
        _ => return None,
    })
}
