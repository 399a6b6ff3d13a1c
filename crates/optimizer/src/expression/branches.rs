//! Rules for CASE and coalesce that remove unreachable branches.

use tessera_plan::Expr;

use super::{RewriteResult, Simplifier, TypeContext, is_null, truth};

impl<K: TypeContext> Simplifier<'_, K> {
    pub(super) fn dead_branches(&self, expr: Expr) -> RewriteResult {
        let Expr::Case { branches, mut otherwise } = expr else { return Err(expr) };
        let atom = branches.first().and_then(|(_, value)| self.context.atom(value));
        let decided = branches.iter().any(|(condition, _)| truth(condition).is_some());
        let Some(atom) = atom.filter(|_| decided) else {
            return Err(Expr::Case { branches, otherwise });
        };
        let mut kept = Vec::with_capacity(branches.len());
        for (condition, value) in branches {
            match truth(&condition) {
                Some(Some(true)) => {
                    otherwise = Some(Box::new(value));
                    break;
                }
                Some(_) => {}
                None => kept.push((condition, value)),
            }
        }
        Ok(match (kept.is_empty(), otherwise) {
            (false, otherwise) => Expr::Case { branches: kept, otherwise },
            (true, Some(otherwise)) => *otherwise,
            (true, None) => Expr::null(atom),
        })
    }

    pub(super) fn coalesce_values(&self, expr: Expr) -> RewriteResult {
        let Expr::Coalesce(list) = expr else { return Err(expr) };
        let is_value = |operand: &Expr| matches!(operand, Expr::Constant(..)) && !is_null(operand);
        let last = list.len().saturating_sub(1);
        let needless = |(position, operand): (usize, &Expr)| {
            matches!(operand, Expr::Coalesce(_))
                || is_null(operand)
                || is_value(operand) && position < last
        };
        let applies = list.len() == 1 || list.iter().enumerate().any(needless);
        let atom = list.first().and_then(|first| self.context.atom(first));
        let Some(atom) = atom.filter(|_| applies) else { return Err(Expr::Coalesce(list)) };
        let mut flat = Vec::with_capacity(list.len());
        for operand in list {
            match operand {
                Expr::Coalesce(inner) => flat.extend(inner),
                other => flat.push(other),
            }
        }
        flat.retain(|operand| !is_null(operand));
        if let Some(value) = flat.iter().position(is_value) {
            flat.truncate(value + 1);
        }
        Ok(match flat.len() {
            0 => Expr::null(atom),
            1 => flat.remove(0),
            _ => Expr::Coalesce(flat),
        })
    }
}
