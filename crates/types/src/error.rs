//! The error every room can raise: a code for programs, a message for people.

use std::borrow::Cow;
use std::fmt;

use crate::redact;
use crate::sql_state::SqlState;

/// What kind of failure an [`Error`] is; stable, for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Code {
    /// The SQL or plan text cannot be parsed.
    Syntax,
    /// A name does not resolve, or types do not fit.
    Semantic,
    /// A construct that is understood but not offered.
    Unsupported,
    /// A value left its type's range.
    Overflow,
    /// Division or remainder by zero.
    DivisionByZero,
    /// A value that cannot be converted, or is otherwise wrong for what is asked of it.
    Data,
    /// A file or store could not be read or written.
    Io,
    /// The memory budget, or another named limit, is exhausted.
    Limit,
    /// The query was cancelled.
    Cancelled,
    /// Tessera's own mistake.
    Internal,
}

impl Code {
    /// All codes. Their order is part of no format.
    pub const ALL: [Code; 10] = [
        Code::Syntax,
        Code::Semantic,
        Code::Unsupported,
        Code::Overflow,
        Code::DivisionByZero,
        Code::Data,
        Code::Io,
        Code::Limit,
        Code::Cancelled,
        Code::Internal,
    ];

    /// The code that [`Code::as_str`] prints so.
    pub fn named(name: &str) -> Option<Code> {
        Code::ALL.into_iter().find(|code| code.as_str() == name)
    }

    /// The code as printed, in the manner of `division_by_zero`.
    pub fn as_str(self) -> &'static str {
        match self {
            Code::Syntax => "syntax",
            Code::Semantic => "semantic",
            Code::Unsupported => "unsupported",
            Code::Overflow => "overflow",
            Code::DivisionByZero => "division_by_zero",
            Code::Data => "data",
            Code::Io => "io",
            Code::Limit => "limit",
            Code::Cancelled => "cancelled",
            Code::Internal => "internal",
        }
    }
}

/// A place in a SQL or plan text: line and column, both from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Span {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

/// An error with a code, a message that says what to do, and the place in the text where there is
/// one.
#[derive(Debug, Clone)]
pub struct Error {
    inner: Box<Inner>,
}

#[derive(Debug, Clone)]
struct Inner {
    code: Code,
    /// Where it is more precise than what the code says.
    state: Option<SqlState>,
    message: String,
    span: Option<Span>,
    source: Option<std::sync::Arc<dyn std::error::Error + Send + Sync>>,
}

/// A result with Tessera's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error of the given kind. Secrets in addresses are hidden ([`redact`](crate::redact)).
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        let message = shown(message.into());
        Error { inner: Box::new(Inner { code, state: None, message, span: None, source: None }) }
    }

    /// Tessera's own mistake: an invariant that did not hold.
    pub fn internal(message: impl Into<String>) -> Self {
        Error::new(Code::Internal, message)
    }

    /// A construct that is not offered.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Error::new(Code::Unsupported, message)
    }

    /// A name or type error.
    pub fn semantic(message: impl Into<String>) -> Self {
        Error::new(Code::Semantic, message)
    }

    /// A value that is wrong for what is asked of it.
    pub fn data(message: impl Into<String>) -> Self {
        Error::new(Code::Data, message)
    }

    /// A file or store could not be read or written.
    pub fn io(message: impl Into<String>) -> Self {
        Error::new(Code::Io, message)
    }

    /// Gives the error a more precise SQLSTATE than its code's.
    pub fn with_state(mut self, state: SqlState) -> Self {
        self.inner.state = Some(state);
        self
    }

    /// Adds the place in the text, unless a narrower one is there already.
    pub fn at(mut self, span: Span) -> Self {
        self.inner.span.get_or_insert(span);
        self
    }

    /// Without a place: what it names is in another text.
    #[must_use]
    pub fn without_span(mut self) -> Self {
        self.inner.span = None;
        self
    }

    /// Adds the error beneath this one.
    pub fn caused_by(mut self, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        self.inner.source = Some(std::sync::Arc::new(source));
        self
    }

    /// Puts what was being done in front of the message: `context: message`.
    pub fn context(mut self, context: impl fmt::Display) -> Self {
        self.inner.message = shown(format!("{context}: {}", self.inner.message));
        self
    }

    /// The kind of failure.
    pub fn code(&self) -> Code {
        self.inner.code
    }

    /// The SQLSTATE: what PostgreSQL calls this failure.
    pub fn sql_state(&self) -> SqlState {
        self.inner.state.unwrap_or_else(|| self.inner.code.sql_state())
    }

    /// The message without code and place.
    pub fn message(&self) -> &str {
        &self.inner.message
    }

    /// The place in the text, where there is one.
    pub fn span(&self) -> Option<Span> {
        self.inner.span
    }
}

/// A message as it is shown.
fn shown(message: String) -> String {
    match redact(&message) {
        Cow::Owned(hidden) => hidden,
        Cow::Borrowed(_) => message,
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.inner.message)?;
        match self.inner.span {
            Some(span) => write!(f, " (line {}, column {})", span.line, span.column),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.inner
            .source
            .as_ref()
            .map(|source| source.as_ref() as &(dyn std::error::Error + 'static))
    }
}

impl From<arrow::error::ArrowError> for Error {
    fn from(error: arrow::error::ArrowError) -> Self {
        use arrow::error::ArrowError as A;
        let code = match &error {
            A::DivideByZero => Code::DivisionByZero,
            A::ArithmeticOverflow(_) => Code::Overflow,
            A::IoError(..) => Code::Io,
            A::MemoryError(_) => Code::Limit,
            A::NotYetImplemented(_) => Code::Unsupported,
            _ => Code::Data,
        };
        let message = match &error {
            A::DivideByZero => "division by zero".to_string(),
            A::ArithmeticOverflow(text)
            | A::CastError(text)
            | A::ParseError(text)
            | A::ComputeError(text)
            | A::InvalidArgumentError(text) => text.clone(),
            other => other.to_string(),
        };
        let made = Error::new(code, message);
        match &error {
            // A text that is no value; what it should have been is in the message only.
            A::ParseError(_) => made.with_state(SqlState::INVALID_TEXT_REPRESENTATION),
            _ => made,
        }
    }
}
