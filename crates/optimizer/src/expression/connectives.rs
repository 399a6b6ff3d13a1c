//! Rules for AND, OR and NOT.

use tessera_plan::Expr;

use super::{RewriteResult, Simplifier, TypeContext, truth};

/// The maximum length of lists that are searched for repeated operands, which takes quadratic time.
const REPEATED_MAX: usize = 64;

impl<K: TypeContext> Simplifier<'_, K> {
    /// Returns the simplified negation of an expression.
    pub(super) fn negated(&self, inner: Expr) -> Expr {
        self.node(Expr::Not(Box::new(inner)))
    }

    pub(super) fn double_not(&self, expr: Expr) -> RewriteResult {
        match expr {
            Expr::Not(inner) => match *inner {
                Expr::Not(inner) => Ok(*inner),
                other => Err(Expr::Not(Box::new(other))),
            },
            other => Err(other),
        }
    }

    pub(super) fn push_not(&self, expr: Expr) -> RewriteResult {
        let Expr::Not(inner) = expr else { return Err(expr) };
        let negated =
            |list: Vec<Expr>| list.into_iter().map(|operand| self.negated(operand)).collect();
        match *inner {
            Expr::And(list) => Ok(Expr::Or(negated(list))),
            // Equalities of one value with constants are evaluated as a set lookup, also when
            // negated.
            Expr::Or(list) if !is_set(&list) => Ok(Expr::And(negated(list))),
            other => Err(Expr::Not(Box::new(other))),
        }
    }

    pub(super) fn flatten_connectives(&self, expr: Expr) -> RewriteResult {
        let (list, any) = connective(expr)?;
        let is_same =
            |operand: &Expr| matches!((operand, any), (Expr::And(_), false) | (Expr::Or(_), true));
        if list.len() > 1 && !list.iter().any(is_same) {
            return Err(connected(list, any));
        }
        let mut flat = Vec::with_capacity(list.len());
        for operand in list {
            match operand {
                Expr::And(inner) if !any => flat.extend(inner),
                Expr::Or(inner) if any => flat.extend(inner),
                other => flat.push(other),
            }
        }
        Ok(connected(flat, any))
    }

    pub(super) fn neutral_operands(&self, expr: Expr) -> RewriteResult {
        let (mut list, any) = connective(expr)?;
        let before = list.len();
        list.retain(|operand| truth(operand) != Some(Some(!any)));
        let is_less = list.len() < before;
        let rest = connected(list, any);
        if is_less { Ok(rest) } else { Err(rest) }
    }

    pub(super) fn deciding_operand(&self, expr: Expr) -> RewriteResult {
        let (mut list, any) = connective(expr)?;
        let Some(deciding) = list.iter().position(|operand| truth(operand) == Some(Some(any)))
        else {
            return Err(connected(list, any));
        };
        // Operands before it matter only if they can raise an error or prevent a later one from
        // raising it; those after it are never evaluated.
        let raising = list[..deciding].iter().rposition(|before| self.context.must_stay(before));
        let kept = raising.map_or(0, |last| last + 1);
        if kept == deciding && deciding + 1 == list.len() && kept > 0 {
            return Err(connected(list, any));
        }
        list.truncate(deciding + 1);
        list.drain(kept..deciding);
        Ok(connected(list, any))
    }

    pub(super) fn repeated_operands(&self, expr: Expr) -> RewriteResult {
        let (list, any) = connective(expr)?;
        let before = list.len();
        let mut kept: Vec<Expr> = Vec::with_capacity(before);
        for operand in list {
            let is_repeated = kept.len() < REPEATED_MAX
                && kept.contains(&operand)
                && !tessera_plan::rewrite::is_volatile(&operand, self.library);
            if !is_repeated {
                kept.push(operand);
            }
        }
        let is_less = kept.len() < before;
        let rest = connected(kept, any);
        if is_less { Ok(rest) } else { Err(rest) }
    }
}

/// Returns the operands of AND, or of OR with `true`; returns any other expression as an error.
fn connective(expr: Expr) -> Result<(Vec<Expr>, bool), Expr> {
    match expr {
        Expr::And(list) => Ok((list, false)),
        Expr::Or(list) => Ok((list, true)),
        other => Err(other),
    }
}

/// Connects operands by AND, or by OR with `any`; without operands, returns the neutral value.
fn connected(mut list: Vec<Expr>, any: bool) -> Expr {
    match (list.len(), any) {
        (0, _) => Expr::boolean(!any),
        (1, _) => list.remove(0),
        (_, false) => Expr::And(list),
        (_, true) => Expr::Or(list),
    }
}

/// Whether all are equalities of the same value with constants.
fn is_set(list: &[Expr]) -> bool {
    let value = |expr: &Expr| match expr {
        Expr::Call { function, args } if &**function == "eq" => match args.as_slice() {
            [value, Expr::Constant(..)] => Some(value.clone()),
            _ => None,
        },
        _ => None,
    };
    let Some(first) = list.first().and_then(value) else { return false };
    list.iter().all(|item| truth(item) == Some(None) || value(item).as_ref() == Some(&first))
}
