//! The text form of plans: what people read and write, and what travels to another process.
//!
//! The language is described in `docs/plan-language.md`. [`print()`] and [`parse()`] are inverse to
//! each other: every plan prints to a text that parses back to an equal plan. [`explain`] prints
//! the same language with every derived type filled in, so that its output can be saved, changed by
//! hand and run.
//!
//! ```
//! use tessera_plan::text;
//! let plan = text::parse("
//!     plan {
//!       %lines = csv_scan() {
//!         paths = ['lines.csv'], columns = <quantity: int64, price: decimal(15,2)?>
//!       }
//!       %few = filter(%lines) {predicate = quantity < 24 AND price IS NOT NULL}
//!       return %few
//!     }").unwrap();
//! assert_eq!(text::parse(&text::print(&plan)).unwrap(), plan);
//! ```

mod expression;
mod lexer;
mod literal;
mod parser;
mod printer;

use tessera_types::Result;

use crate::graph::Plan;
use crate::verify::Verified;

pub use printer::{Note, print_expr};

/// The deepest nesting of parentheses, brackets and braces in a plan's text. (Chains such as `a + b
/// + c` and lists such as `a AND b AND c` do not nest; they are bounded by
/// [`crate::typing::EXPR_DEPTH_MAX`] and by nothing.)
pub const TEXT_DEPTH_MAX: usize = 256;

/// The text form of a plan.
pub fn print(plan: &Plan) -> String {
    printer::plan(plan, None, &|_| None)
}

/// The text form of a verified plan, with the type of every node and, where they differ from those
/// the plan starts with, its traits as a comment. It parses to the same plan with
/// [`crate::Node::expected`] filled in.
pub fn explain(plan: &Plan, verified: &Verified) -> String {
    printer::plan(plan, Some(verified), &|_| None)
}

/// The text form of a plan, with a comment above the nodes of which there is something to say.
pub fn annotate(plan: &Plan, note: Note<'_>) -> String {
    printer::plan(plan, None, note)
}

/// Reads the text form of a plan. Nothing but the grammar is checked; see [`crate::verify()`].
///
/// # Errors
/// The first place that does not follow the grammar, with its line and column; nesting beyond
/// [`TEXT_DEPTH_MAX`] or [`crate::PLAN_DEPTH_MAX`].
pub fn parse(text: &str) -> Result<Plan> {
    parser::parse(text)
}

#[cfg(test)]
mod tests;
