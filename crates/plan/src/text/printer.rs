//! The printer of plans, parameters and expressions.

use std::fmt::Write;

use tessera_types::Tuple;

use super::expression::{infix, name, name as key, precedence};
use super::literal;
use crate::edge::Traits;
use crate::expr::Expr;
use crate::graph::{Node, Plan};
use crate::value::Value;
use crate::verify::VerifiedPlan;

/// The maximum line length in characters; longer lines are broken where possible.
const LINE_CHARS_MAX: usize = 110;

/// Returns the comment for a node, if any. The path of a node is the position of the node that
/// holds the nested plan, the position of that plan in it, and so on; last its own position.
pub type Note<'a> = &'a dyn Fn(&[usize]) -> Option<String>;

/// The context of the plan that is printed.
#[derive(Clone, Copy)]
struct PrintContext<'a> {
    verified: Option<&'a VerifiedPlan>,
    start: Traits,
    indent: usize,
    /// The path of the plan, see [`Note`].
    path: &'a [usize],
    note: Note<'a>,
}

pub(super) fn plan(plan: &Plan, verified: Option<&VerifiedPlan>, note: Note<'_>) -> String {
    let mut out = String::new();
    body(
        &mut out,
        plan,
        PrintContext { verified, start: Traits::DRIVER, indent: 0, path: &[], note },
    );
    out.push('\n');
    out
}

fn body(out: &mut String, plan: &Plan, at: PrintContext<'_>) {
    out.push_str("plan ");
    let indent = at.indent;
    if !plan.parameters.is_empty() {
        tuple(out, &plan.parameters, indent);
        out.push(' ');
    }
    out.push_str("{\n");
    for (position, node) in plan.nodes.iter().enumerate() {
        print_node(out, position, node, PrintContext { indent: indent + 2, ..at });
    }
    let _ = write!(out, "{:indent$}  return %{}\n{:indent$}}}", "", plan.root.0, "");
}

fn print_node(out: &mut String, position: usize, node: &Node, at: PrintContext<'_>) {
    let indent = at.indent;
    let edge = at.verified.and_then(|verified| verified.edges.get(position));
    if let Some(edge) = edge
        && edge.traits != at.start
    {
        let _ = writeln!(out, "{:indent$}-- {}", "", edge.traits);
    }
    let path = [at.path, &[position]].concat();
    if let Some(note) = (at.note)(&path) {
        let _ = writeln!(out, "{:indent$}-- {note}", "");
    }
    let _ = write!(out, "{:indent$}%{position}", "");
    if let Some(expected) = edge.map(|edge| &edge.tuple).or(node.expected.as_ref()) {
        out.push_str(": ");
        tuple(out, expected, indent);
    }
    let inputs: Vec<String> = node.inputs.iter().map(|input| format!("%{}", input.0)).collect();
    let _ = write!(out, " = {}({})", key(&node.operator), inputs.join(", "));
    if !node.params.is_empty() {
        out.push(' ');
        let entries: Vec<_> = node.params.iter().map(|(name, value)| (&**name, value)).collect();
        let nested = if node.nested.is_empty() { 0 } else { " plan {".len() };
        record(out, &entries, indent, nested);
    }
    for (index, inner) in node.nested.iter().enumerate() {
        out.push(' ');
        let verified = at
            .verified
            .and_then(|verified| verified.nested.get(position))
            .and_then(|list| list.get(index));
        let start = verified.map_or(at.start, |inner| inner.start);
        let path = [&path[..], &[index]].concat();
        body(out, inner, PrintContext { verified, start, path: &path, ..at });
    }
    out.push('\n');
}

/// The length of the current line in characters.
fn column(out: &str) -> usize {
    out.rsplit('\n').next().unwrap_or("").chars().count()
}

fn fits(out: &str, text: &str, more: usize) -> bool {
    column(out) + text.chars().count() + more <= LINE_CHARS_MAX
}

/// Prints a tuple type, over several lines if one is too short.
fn tuple(out: &mut String, tuple: &Tuple, indent: usize) {
    let flat = tuple.to_string();
    if tuple.is_empty() || fits(out, &flat, 0) {
        out.push_str(&flat);
        return;
    }
    let _ = write!(out, "<\n{:indent$} ", "");
    for (position, field) in tuple.fields().iter().enumerate() {
        let comma = if position + 1 < tuple.len() { "," } else { "" };
        let text = format!(" {field}{comma}");
        if position > 0 && !fits(out, &text, 0) {
            let _ = write!(out, "\n{:indent$} ", "");
        }
        out.push_str(&text);
    }
    let _ = write!(out, "\n{:indent$}>", "");
}

/// Prints named values, one per line if they do not fit; `more` characters follow on the last line.
fn record(out: &mut String, entries: &[(&str, &Value)], indent: usize, more: usize) {
    let flat: Vec<String> =
        entries.iter().map(|(name, value)| format!("{} = {}", key(name), flat(value))).collect();
    let flat = format!("{{{}}}", flat.join(", "));
    if entries.is_empty() || fits(out, &flat, more) {
        out.push_str(&flat);
        return;
    }
    out.push_str("{\n");
    for (position, (name, value)) in entries.iter().enumerate() {
        let _ = write!(out, "{:indent$}  {} = ", "", key(name));
        broken(out, value, indent + 2);
        out.push_str(if position + 1 < entries.len() { ",\n" } else { "\n" });
    }
    let _ = write!(out, "{:indent$}}}", "");
}

fn broken(out: &mut String, value: &Value, indent: usize) {
    let text = flat(value);
    if fits(out, &text, 1) {
        out.push_str(&text);
        return;
    }
    match value {
        Value::Tuple(value) => tuple(out, value, indent),
        Value::Record(entries) => {
            let entries: Vec<_> = entries.iter().map(|(name, value)| (&**name, value)).collect();
            record(out, &entries, indent, 1);
        }
        Value::List(values) => {
            out.push_str("[\n");
            for (position, value) in values.iter().enumerate() {
                let _ = write!(out, "{:indent$}  ", "");
                broken(out, value, indent + 2);
                out.push_str(if position + 1 < values.len() { ",\n" } else { "\n" });
            }
            let _ = write!(out, "{:indent$}]", "");
        }
        Value::Expr(Expr::And(list)) if list.len() > 1 => {
            for (position, item) in list.iter().enumerate() {
                if position > 0 {
                    let _ = write!(out, "\n{:indent$}  AND ", "");
                }
                expr(out, item, precedence::AND + 1);
            }
        }
        _ => out.push_str(&text),
    }
}

/// Returns a value on one line.
fn flat(value: &Value) -> String {
    match value {
        Value::Boolean(flag) => flag.to_string(),
        Value::Integer(number) => number.to_string(),
        Value::Name(text) => format!(":{}", name(text)),
        Value::String(text) => literal::text(text),
        Value::Tuple(tuple) => tuple.to_string(),
        // A bare literal would be parsed as a plain value; its type makes it an expression.
        Value::Expr(Expr::Constant(value, atom)) => literal::constant(value, atom, false),
        Value::Expr(value) => print_expr(value),
        Value::List(values) => {
            format!("[{}]", values.iter().map(flat).collect::<Vec<_>>().join(", "))
        }
        Value::Record(entries) => {
            let entries =
                entries.iter().map(|(name, value)| format!("{} = {}", key(name), flat(value)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
    }
}

/// Returns the text form of an expression.
pub fn print_expr(value: &Expr) -> String {
    let mut out = String::new();
    expr(&mut out, value, 0);
    out
}

fn binding(expr: &Expr) -> u8 {
    match expr {
        Expr::Call { function, args } => match infix(function, args) {
            Some((_, binds)) => binds,
            None if is_negation(expr) => precedence::NEGATION,
            None => precedence::PRIMARY,
        },
        Expr::And(list) if list.len() > 1 => precedence::AND,
        Expr::Or(list) if list.len() > 1 => precedence::OR,
        Expr::Not(inner) if matches!(**inner, Expr::IsNull(_)) => precedence::COMPARISON,
        Expr::Not(_) => precedence::NOT,
        Expr::IsNull(_) => precedence::COMPARISON,
        _ => precedence::PRIMARY,
    }
}

fn is_negation(expr: &Expr) -> bool {
    matches!(expr, Expr::Call { function, args } if &**function == "neg" && args.len() == 1)
}

/// Prints an expression, in parentheses if it binds less tightly than `least`.
fn expr(out: &mut String, value: &Expr, least: u8) {
    let binds = binding(value);
    if binds < least {
        out.push('(');
        expr(out, value, 0);
        out.push(')');
        return;
    }
    match value {
        Expr::Field(field) => out.push_str(&name(field)),
        Expr::Parameter(parameter) => {
            let _ = write!(out, "${}", parameter_name(parameter));
        }
        Expr::Constant(value, atom) => out.push_str(&literal::constant(value, atom, true)),
        Expr::Call { function, args } if infix(function, args).is_some() => chain(out, value),
        Expr::Call { args, .. } if is_negation(value) => {
            out.push('-');
            // Two minus signs would start a comment, and a sign before digits would start a
            // literal.
            let simple = matches!(args[0], Expr::Field(_) | Expr::Parameter(_));
            if simple {
                expr(out, &args[0], 0);
            } else {
                out.push('(');
                expr(out, &args[0], 0);
                out.push(')');
            }
        }
        Expr::Call { function, args } => listed(out, &name(function), args),
        Expr::Cast { input, to, safe } => {
            out.push_str(if *safe { "TRY_CAST(" } else { "CAST(" });
            expr(out, input, 0);
            let _ = write!(out, " AS {to})");
        }
        Expr::Case { branches, otherwise } => {
            out.push_str("CASE ");
            for (condition, value) in branches {
                out.push_str("WHEN ");
                expr(out, condition, 0);
                out.push_str(" THEN ");
                expr(out, value, 0);
                out.push(' ');
            }
            if let Some(otherwise) = otherwise {
                out.push_str("ELSE ");
                expr(out, otherwise, 0);
                out.push(' ');
            }
            out.push_str("END");
        }
        Expr::And(list) if list.len() > 1 => connected(out, list, " AND ", precedence::AND + 1),
        Expr::Or(list) if list.len() > 1 => connected(out, list, " OR ", precedence::OR + 1),
        Expr::And(list) => listed(out, "AND", list),
        Expr::Or(list) => listed(out, "OR", list),
        Expr::Not(inner) => match &**inner {
            Expr::IsNull(operand) => {
                expr(out, operand, precedence::COMPARISON + 1);
                out.push_str(" IS NOT NULL");
            }
            inner => {
                out.push_str("NOT ");
                expr(out, inner, precedence::NOT);
            }
        },
        Expr::IsNull(operand) => {
            expr(out, operand, precedence::COMPARISON + 1);
            out.push_str(" IS NULL");
        }
        Expr::Coalesce(list) => listed(out, "COALESCE", list),
        Expr::Try(inner) => {
            out.push_str("TRY(");
            expr(out, inner, 0);
            out.push(')');
        }
        Expr::Lambda(lambda) => {
            let _ = write!(out, "LAMBDA({}, ", lambda.parameters);
            expr(out, &lambda.body, 0);
            out.push(')');
        }
    }
}

/// Returns the name after `$`, where no word is reserved.
fn parameter_name(name: &str) -> String {
    tessera_types::quote_name(name)
}

/// Prints `a + b + c`. A loop follows the left operands, because chains can be long.
fn chain(out: &mut String, value: &Expr) {
    let mut operators = Vec::new();
    let mut left = value;
    let mut least = 0;
    while let Expr::Call { function, args } = left
        && let Some((sign, binds)) = infix(function, args)
        && binds >= least
    {
        // Comparisons do not chain: their left operand binds more tightly.
        least = if binds == precedence::COMPARISON { binds + 1 } else { binds };
        operators.push((sign, binds, &args[1]));
        left = &args[0];
    }
    expr(out, left, least);
    for (sign, binds, right) in operators.into_iter().rev() {
        let _ = write!(out, " {sign} ");
        expr(out, right, binds + 1);
    }
}

fn connected(out: &mut String, list: &[Expr], word: &str, least: u8) {
    for (position, item) in list.iter().enumerate() {
        if position > 0 {
            out.push_str(word);
        }
        expr(out, item, least);
    }
}

fn listed(out: &mut String, head: &str, list: &[Expr]) {
    out.push_str(head);
    out.push('(');
    connected(out, list, ", ", 0);
    out.push(')');
}
