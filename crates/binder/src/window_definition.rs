//! Windows: PARTITION BY, ORDER BY and the frame, in OVER and in the WINDOW clause.

use sqlparser::ast::{
    Expr as Ast, Ident, Interval, NamedWindowDefinition, NamedWindowExpr, OrderByExpr, Select,
    Spanned, Value, ValueWithSpan, WindowFrame, WindowFrameBound, WindowFrameExclude,
    WindowFrameUnits, WindowSpec,
};
use tessera_optimizer::logical::relation::Key;
use tessera_optimizer::logical::window::{Bound, Exclude, Frame, Unit};
use tessera_plan::Expr;
use tessera_types::{Atom, Error, Result, SqlState};

use super::order::direction;
use super::scope::Scope;
use super::steps::Step;
use super::typed::TypedExpr;
use super::{Binder, Place, normalized, refuse, with_span};

/// A bound window. Its expressions are not simplified, since they may be rewritten over groups.
#[derive(Debug, Clone)]
pub(crate) struct WindowDefinition {
    pub(super) partition: Vec<Expr>,
    pub(super) order: Vec<Key>,
    pub(super) frame: Frame,
    /// Whether the frame was written.
    has_frame: bool,
}

impl WindowDefinition {
    /// Returns mutable references to all expressions.
    pub(super) fn exprs_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        let order = self.order.iter_mut().map(|key| &mut key.expr);
        self.partition.iter_mut().chain(order).chain(self.frame.exprs_mut())
    }
}

/// A bound of a frame whose offset is bound.
enum Offset {
    None(Bound),
    Preceding(TypedExpr),
    Following(TypedExpr),
}

impl Binder<'_> {
    /// Binds the WINDOW clause, and collects its windows.
    pub(super) fn named_windows(
        &mut self,
        select: &Select,
        scope: &Scope<'_>,
        steps: &mut Vec<Step>,
    ) -> Result<()> {
        let Some(windows) = scope.windows else { return Ok(()) };
        let scope = scope.without_windows();
        for NamedWindowDefinition(name, written) in &select.named_window {
            let called = normalized(name);
            if windows.borrow().named.iter().any(|(known, _)| *known == called) {
                let message = format!("window {} is defined twice", name.value);
                return Err(with_span(windowing(message), name.span));
            }
            let NamedWindowExpr::WindowSpec(spec) = written else {
                let error =
                    Error::unsupported("a window with the name of another is not supported");
                return Err(with_span(error, name.span));
            };
            let named = windows.borrow().named.clone();
            let clause = "a window definition";
            let place = &mut Place { scope: &scope, steps, clause, unnests: None };
            let definition = self
                .window_definition(spec, &named, true, place)
                .map_err(|error| with_span(error, name.span))?;
            windows.borrow_mut().named.push((called, definition));
        }
        Ok(())
    }

    /// Binds a window. With `is_named`, it stands in the WINDOW clause. It may add an order and a
    /// frame to one of `named`.
    pub(super) fn window_definition(
        &mut self,
        spec: &WindowSpec,
        named: &[(String, WindowDefinition)],
        is_named: bool,
        place: &mut Place<'_, '_>,
    ) -> Result<WindowDefinition> {
        let WindowSpec { window_name, partition_by, order_by, window_frame } = spec;
        let base = match window_name {
            None => None,
            Some(name) => {
                let called = normalized(name);
                let found = named.iter().find(|(known, _)| *known == called);
                Some((name, &found.ok_or_else(|| unknown_window(name))?.1))
            }
        };
        let mut partition = Vec::with_capacity(partition_by.len());
        for expr in partition_by {
            let value = self.expr(expr, place)?;
            let value = self.once(value.known(), place)?;
            partition.push(self.partition_key(value)?.expr);
        }
        let (mut order, mut first) = (Vec::with_capacity(order_by.len()), None);
        for OrderByExpr { expr, options, with_fill } in order_by {
            refuse(with_fill.is_some(), "WITH FILL", expr)?;
            let value = self.expr(expr, place)?;
            let value = self.once(value.known(), place)?;
            let (value, _) = self.sort_key(value)?;
            let (descending, nulls_first) = direction(options);
            order.push(Key { expr: value.expr.clone(), descending, nulls_first });
            first.get_or_insert(value);
        }
        if let Some((name, base)) = base {
            check_override(name, base, (!partition.is_empty(), !order.is_empty()))?;
            if base.has_frame {
                let is_plain = !is_named && order.is_empty() && window_frame.is_none();
                let hint = if is_plain { "; write OVER without parentheses" } else { "" };
                let message =
                    format!("window {} has a frame and cannot be copied{hint}", name.value);
                return Err(with_span(windowing(message), name.span));
            }
            partition = base.partition.clone();
            if order.is_empty() {
                order = base.order.clone();
                if let Some(key) = order.first() {
                    first = Some(TypedExpr::new(key.expr.clone(), self.fields.atom_of(&key.expr)?));
                }
            }
        }
        let frame = match window_frame {
            Some(written) => self.frame(written, &order, first, place)?,
            None if order.is_empty() => Frame::whole(),
            None => Frame { unit: Unit::Range, end: Bound::CurrentRow, ..Frame::whole() },
        };
        Ok(WindowDefinition { partition, order, frame, has_frame: window_frame.is_some() })
    }

    /// Binds a frame over a window with this order; `first` is the first key.
    fn frame(
        &mut self,
        written: &WindowFrame,
        order: &[Key],
        first: Option<TypedExpr>,
        place: &mut Place<'_, '_>,
    ) -> Result<Frame> {
        let WindowFrame { units, start_bound, end_bound, exclude } = written;
        let exclude = exclude.map_or(Exclude::NoOthers, |exclude| match exclude {
            WindowFrameExclude::CurrentRow => Exclude::CurrentRow,
            WindowFrameExclude::Group => Exclude::Group,
            WindowFrameExclude::Ties => Exclude::Ties,
            WindowFrameExclude::NoOthers => Exclude::NoOthers,
        });
        let end_bound = end_bound.as_ref().unwrap_or(&WindowFrameBound::CurrentRow);
        check_bounds(start_bound, end_bound)?;
        let unit = match units {
            WindowFrameUnits::Rows => Unit::Rows,
            WindowFrameUnits::Range => Unit::Range,
            WindowFrameUnits::Groups => Unit::Groups,
        };
        if unit == Unit::Groups && order.is_empty() {
            return Err(windowing("a frame in GROUPS needs an ORDER BY".to_string()));
        }
        let has_offset = [start_bound, end_bound].into_iter().any(|bound| offset(bound).is_some());
        if unit == Unit::Range && has_offset && order.len() != 1 {
            let message = "a frame in RANGE with an offset needs exactly one key of ORDER BY";
            return Err(windowing(message.to_string()));
        }
        let start = self.bound(start_bound, unit, place)?;
        let end = self.bound(end_bound, unit, place)?;
        if let (Unit::Range, true, Some(key), [written]) = (unit, has_offset, first, order) {
            let (key, start, end) = self.limits(key, written.descending, start, end)?;
            return Ok(Frame { unit, start, end, exclude, key: Some(key) });
        }
        let plain = |offset: Offset| match offset {
            // Without an order all tuples are peers.
            Offset::None(Bound::CurrentRow) if unit == Unit::Range && order.is_empty() => None,
            Offset::None(bound) => Some(bound),
            Offset::Preceding(count) => Some(Bound::Preceding(count.expr)),
            Offset::Following(count) => Some(Bound::Following(count.expr)),
        };
        let start = plain(start).unwrap_or(Bound::UnboundedPreceding);
        let end = plain(end).unwrap_or(Bound::UnboundedFollowing);
        Ok(Frame { unit, start, end, exclude, key: None })
    }

    /// Binds a bound; an offset of ROWS and GROUPS is a whole number.
    fn bound(
        &mut self,
        written: &WindowFrameBound,
        unit: Unit,
        place: &mut Place<'_, '_>,
    ) -> Result<Offset> {
        let (expr, is_before) = match written {
            WindowFrameBound::CurrentRow => return Ok(Offset::None(Bound::CurrentRow)),
            WindowFrameBound::Preceding(None) => {
                return Ok(Offset::None(Bound::UnboundedPreceding));
            }
            WindowFrameBound::Following(None) => {
                return Ok(Offset::None(Bound::UnboundedFollowing));
            }
            WindowFrameBound::Preceding(Some(expr)) => (&**expr, true),
            WindowFrameBound::Following(Some(expr)) => (&**expr, false),
        };
        let clause = std::mem::replace(&mut place.clause, "a window frame");
        let value = match text_of(expr) {
            Some(text) => TypedExpr::unknown(text),
            None => self.expr(expr, place)?,
        };
        place.clause = clause;
        let value = match unit {
            Unit::Range => value,
            Unit::Rows | Unit::Groups => {
                if !(value.atom.is_numeric() || value.unknown || value.is_null()) {
                    let unit = if unit == Unit::Rows { "ROWS" } else { "GROUPS" };
                    let message =
                        format!("the offset of {unit} must be a number, not {}", value.atom);
                    let error = Error::semantic(message).with_state(SqlState::DATATYPE_MISMATCH);
                    return Err(with_span(error, expr.span()));
                }
                self.cast_to(value, &Atom::Int64, false)?
            }
        };
        Ok(if is_before { Offset::Preceding(value) } else { Offset::Following(value) })
    }

    /// Returns the key of a frame in RANGE and its bounds, all of one type.
    fn limits(
        &self,
        key: TypedExpr,
        descending: bool,
        start: Offset,
        end: Offset,
    ) -> Result<(Expr, Bound, Bound)> {
        let mut keys = Vec::new();
        let mut limit = |offset: Offset| {
            let (offset, is_before) = match offset {
                Offset::None(bound) => return Ok((Some(bound), None)),
                Offset::Preceding(offset) => (offset, true),
                Offset::Following(offset) => (offset, false),
            };
            // In descending order, larger keys precede.
            let (key, limit) = self.range_limit(&key, offset, is_before == descending)?;
            keys.push(key);
            Ok::<_, Error>((None, Some(limit)))
        };
        let bounds = [limit(start)?, limit(end)?];
        let values: Vec<&TypedExpr> =
            keys.iter().chain(bounds.iter().filter_map(|(_, limit)| limit.as_ref())).collect();
        let atom = self.common(&values, "a frame in RANGE")?;
        let Some(key) = keys.pop() else {
            return Err(Error::internal("a frame in RANGE without an offset"));
        };
        let [start, end] = bounds.map(|(bound, limit)| match (bound, limit) {
            (Some(bound), _) => Ok(bound),
            (None, Some(limit)) => Ok(Bound::Limit(self.cast_to(limit, &atom, false)?.expr)),
            (None, None) => Err(Error::internal("a bound of a frame without a limit")),
        });
        Ok((self.cast_to(key, &atom, false)?.expr, start?, end?))
    }
}

/// Checks that a window may add to its base what it has: keys of PARTITION BY and of ORDER BY.
fn check_override(
    name: &Ident,
    base: &WindowDefinition,
    (partitions, orders): (bool, bool),
) -> Result<()> {
    let overridden = match () {
        () if partitions => "PARTITION BY",
        () if orders && !base.order.is_empty() => "ORDER BY",
        () => return Ok(()),
    };
    let message = format!("{overridden} of window {} cannot be overridden", name.value);
    Err(with_span(windowing(message), name.span))
}

/// Checks that the end of a frame does not precede its start by the kinds of the bounds.
fn check_bounds(start: &WindowFrameBound, end: &WindowFrameBound) -> Result<()> {
    use WindowFrameBound::{CurrentRow, Following, Preceding};
    let message = match (start, end) {
        (Following(None), _) => "a frame cannot start at UNBOUNDED FOLLOWING",
        (_, Preceding(None)) => "a frame cannot end at UNBOUNDED PRECEDING",
        (CurrentRow, Preceding(Some(_))) => {
            "a frame that starts at the current row cannot end before it"
        }
        (Following(Some(_)), Preceding(Some(_)) | CurrentRow) => {
            "a frame that starts after the current row cannot end at or before it"
        }
        _ => return Ok(()),
    };
    Err(windowing(message.to_string()))
}

/// Returns the offset of a bound.
fn offset(bound: &WindowFrameBound) -> Option<&Ast> {
    match bound {
        WindowFrameBound::Preceding(offset) | WindowFrameBound::Following(offset) => {
            offset.as_deref()
        }
        WindowFrameBound::CurrentRow => None,
    }
}

/// Returns the text of an offset that is a literal; the parser takes it for an interval.
fn text_of(offset: &Ast) -> Option<&str> {
    let Ast::Interval(Interval { value, leading_field: None, last_field: None, .. }) = offset
    else {
        return None;
    };
    match &**value {
        Ast::Value(ValueWithSpan { value: Value::SingleQuotedString(text), .. }) => Some(text),
        _ => None,
    }
}

/// Returns the error for an unknown window.
pub(super) fn unknown_window(name: &Ident) -> Error {
    let message = format!("unknown window '{}'; define it in the WINDOW clause", name.value);
    with_span(Error::semantic(message).with_state(SqlState::UNDEFINED_OBJECT), name.span)
}

fn windowing(message: String) -> Error {
    Error::semantic(message).with_state(SqlState::WINDOWING_ERROR)
}
