//! Parameters of statements: `?`, `$1`, `$name`.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use sqlparser::ast::{Expr as Ast, Value, ValueWithSpan, Visit, VisitMut, Visitor, VisitorMut};
use sqlparser::tokenizer::Location;
use tessera_types::{Code, Error, Result, SqlState};

use crate::statement::{ParsedStatement, StatementKind};

impl ParsedStatement {
    /// The names of the statement's parameters: `1`, `2`, … in numeric order, then names. `?` are
    /// numbered in the order of the text.
    pub fn parameters(&self) -> Vec<String> {
        self.kind.parameters()
    }
}

/// Returns the names of the parameters of a statement.
fn names(kind: &StatementKind) -> Vec<String> {
    struct Names(BTreeSet<String>);
    impl Visitor for Names {
        type Break = ();

        fn pre_visit_expr(&mut self, expr: &Ast) -> ControlFlow<()> {
            if let Some(name) = placeholder(expr) {
                self.0.insert(parameter_name(name));
            }
            ControlFlow::Continue(())
        }
    }
    let mut found = Names(BTreeSet::new());
    let _ = kind.visit_expressions(&mut found);
    let mut names: Vec<String> = found.0.into_iter().collect();
    names.sort_by_key(|name| (name.parse::<u64>().unwrap_or(u64::MAX), name.clone()));
    let highest = names.iter().filter_map(|name| name.parse::<u64>().ok()).max().unwrap_or(0);
    // As in PostgreSQL, `$2` means that there is a `$1`.
    let given = names.iter().filter(|name| name.parse::<u64>().is_ok()).count() as u64;
    match highest <= POSITIONS_MAX && given < highest {
        true => {
            let named = names.into_iter().filter(|name| name.parse::<u64>().is_err());
            (1..=highest).map(|at| at.to_string()).chain(named).collect()
        }
        false => names,
    }
}

/// The highest position of a parameter, as in PostgreSQL.
const POSITIONS_MAX: u64 = 65_535;

/// Returns the text of a parameter.
fn placeholder(expr: &Ast) -> Option<&str> {
    match expr {
        Ast::Value(ValueWithSpan { value: Value::Placeholder(name), .. }) => Some(name),
        _ => None,
    }
}

/// Returns the name of a parameter without `$`, in lower case.
pub fn parameter_name(placeholder: &str) -> String {
    placeholder.trim_start_matches('$').to_lowercase()
}

/// Numbers the `?` of a statement in the order of the text.
///
/// # Errors
/// The statement has other parameters, too, or a position is out of range.
pub(crate) fn numbered(kind: &mut StatementKind) -> Result<()> {
    #[derive(Default)]
    struct Questions {
        /// Where the `?` are; sorted before they are numbered.
        places: Vec<Location>,
        others: BTreeSet<String>,
        numbering: bool,
    }
    impl VisitorMut for Questions {
        type Break = ();

        fn pre_visit_expr(&mut self, expr: &mut Ast) -> ControlFlow<()> {
            let Ast::Value(ValueWithSpan { value: Value::Placeholder(name), span }) = expr else {
                return ControlFlow::Continue(());
            };
            match (name.as_str(), self.numbering) {
                ("?", false) => self.places.push(span.start),
                ("?", true) => {
                    let before = self.places.binary_search(&span.start).unwrap_or_else(|at| at);
                    *name = format!("${}", before + 1);
                }
                (other, false) => {
                    self.others.insert(other.to_string());
                }
                (_, true) => {}
            }
            ControlFlow::Continue(())
        }
    }
    let mut questions = Questions::default();
    let _ = kind.visit_expressions_mut(&mut questions);
    let wrong = |message: String| Err(Error::new(Code::Syntax, message));
    for other in &questions.others {
        let digits = &other[1..];
        let is_number = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
        let position = digits.parse::<u64>().ok();
        if is_number && !position.is_some_and(|at| (1..=POSITIONS_MAX).contains(&at)) {
            return Err(Error::semantic(format!(
                "parameter {other} is out of range; positions are 1 to {POSITIONS_MAX}"
            ))
            .with_state(SqlState::UNDEFINED_PARAMETER));
        }
    }
    if let (false, Some(other)) = (questions.places.is_empty(), questions.others.first()) {
        return wrong(format!("syntax error: parameters ? and {other} in one statement"));
    }
    questions.places.sort_unstable();
    questions.places.dedup();
    questions.numbering = true;
    let _ = kind.visit_expressions_mut(&mut questions);
    Ok(())
}

impl StatementKind {
    /// The names of the statement's parameters, as [`ParsedStatement::parameters`] orders them.
    pub fn parameters(&self) -> Vec<String> {
        names(self)
    }

    /// Visits the expressions of the statement.
    fn visit_expressions<V: Visitor>(&self, visitor: &mut V) -> ControlFlow<V::Break> {
        match self {
            StatementKind::Sql(statement) => statement.visit(visitor),
            StatementKind::Copy { query, .. } | StatementKind::DescribeQuery(query) => {
                query.visit(visitor)
            }
            StatementKind::Explain { inner, .. } => inner.visit_expressions(visitor),
            StatementKind::CreateNamedColumns(create) => create.query.visit(visitor),
            StatementKind::Execute(execute) => execute.args.visit(visitor),
            StatementKind::SetVariable { value, .. } => value.visit(visitor),
            // What a prepared statement or a macro gets, it gets when it is called.
            _ => ControlFlow::Continue(()),
        }
    }

    fn visit_expressions_mut<V: VisitorMut>(&mut self, visitor: &mut V) -> ControlFlow<V::Break> {
        match self {
            StatementKind::Sql(statement) => VisitMut::visit(statement, visitor),
            StatementKind::Copy { query, .. } | StatementKind::DescribeQuery(query) => {
                VisitMut::visit(query, visitor)
            }
            StatementKind::Explain { inner, .. } => inner.visit_expressions_mut(visitor),
            StatementKind::CreateNamedColumns(create) => {
                VisitMut::visit(&mut create.query, visitor)
            }
            StatementKind::Prepare(prepare) => prepare.statement.visit_expressions_mut(visitor),
            StatementKind::Execute(execute) => VisitMut::visit(&mut execute.args, visitor),
            StatementKind::SetVariable { value, .. } => VisitMut::visit(value, visitor),
            _ => ControlFlow::Continue(()),
        }
    }
}
