//! The text form of plans, for people and for sending plans to other processes.
//!
//! `docs/reference/plan-language.md` describes the language. [`print()`] and [`parse()`] are
//! inverses: every plan prints to a text that parses back to an equal plan. [`explain`] prints the
//! same language with all derived types, so that its output can be saved, edited and run.
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
use crate::verify::VerifiedPlan;

pub use printer::{Note, print_expr};

/// The maximum nesting of parentheses, brackets and braces in a plan's text. Chains such as
/// `a + b + c` are limited by [`crate::typing::EXPR_DEPTH_MAX`] instead; lists such as
/// `a AND b AND c` are not limited.
pub const TEXT_DEPTH_MAX: usize = 256;

/// The stack of the parser. It is recursive up to [`TEXT_DEPTH_MAX`], and after an error an
/// expression of [`crate::typing::EXPR_DEPTH_MAX`] levels is dropped recursively.
const STACK_BYTES: usize = 16 << 20;

/// Returns the text form of a plan.
pub fn print(plan: &Plan) -> String {
    printer::plan(plan, None, &|_| None)
}

/// Returns the text form of a verified plan with the type of every node. Where the traits of a node
/// differ from those at the start of the plan, a comment names them. The text parses to the same
/// plan with [`crate::Node::expected`] filled in.
pub fn explain(plan: &Plan, verified: &VerifiedPlan) -> String {
    printer::plan(plan, Some(verified), &|_| None)
}

/// Returns the text form of a plan with the comments of `note` above the nodes.
pub fn annotate(plan: &Plan, note: Note<'_>) -> String {
    printer::plan(plan, None, note)
}

/// Parses the text form of a plan. Only the grammar is checked; see [`crate::verify()`].
///
/// # Errors
/// Reports the first syntax error with line and column, or nesting beyond [`TEXT_DEPTH_MAX`] or
/// [`crate::PLAN_DEPTH_MAX`].
pub fn parse(text: &str) -> Result<Plan> {
    stacker::grow(STACK_BYTES, || parser::parse(text))
}

#[cfg(test)]
mod tests;
