//! The error type of all crates: a code for programs, a message for people.

use std::borrow::Cow;
use std::fmt;

use crate::redact;
use crate::sql_state::SqlState;

/// The kind of an [`Error`]; stable, for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Code {
    /// The SQL or plan text cannot be parsed.
    Syntax,
    /// A name cannot be resolved, or types do not match.
    Semantic,
    /// A construct that is valid but not supported.
    Unsupported,
    /// A value is out of its type's range.
    Overflow,
    /// Division or remainder by zero.
    DivisionByZero,
    /// A value that cannot be converted, or is invalid for an operation.
    Data,
    /// A file or store could not be read or written.
    Io,
    /// The memory budget, or another named limit, is exhausted.
    Limit,
    /// The query was cancelled.
    Cancelled,
    /// A bug in Tessera.
    Internal,
}

impl Code {
    /// All codes. No format depends on their order.
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

    /// Returns the code that [`Code::as_str`] prints as `name`.
    pub fn from_name(name: &str) -> Option<Code> {
        Code::ALL.into_iter().find(|code| code.as_str() == name)
    }

    /// The printed name, such as `division_by_zero`.
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

impl Code {
    /// The meaning, as the reference page of errors has it.
    pub fn meaning(self) -> &'static str {
        match self {
            Code::Syntax => "The SQL or plan text cannot be parsed.",
            Code::Semantic => "A name cannot be resolved, or types do not match.",
            Code::Unsupported => {
                "A construct is valid but not supported ([limits](../guide/limits.md))."
            }
            Code::Overflow => "A value is out of its type's range.",
            Code::DivisionByZero => "Division or remainder by zero.",
            Code::Data => "A value cannot be converted, or a value or file is invalid.",
            Code::Io => "A file or store could not be read or written.",
            Code::Limit => "The memory budget, or another named limit, is exhausted.",
            Code::Cancelled => "Ctrl-C, a deadline or a dropped connection cancelled the query.",
            Code::Internal => {
                "A bug in Tessera. Please report it with the statement and `tessera --version`."
            }
        }
    }
}

/// A position in a SQL or plan text: line and column, both starting at 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Span {
    /// Line, starting at 1.
    pub line: u32,
    /// Column in characters, starting at 1.
    pub column: u32,
}

/// An error: a code, a message that says what to do, and the position in the text if there is one.
#[derive(Debug, Clone)]
pub struct Error {
    inner: Box<Inner>,
}

#[derive(Debug, Clone)]
struct Inner {
    code: Code,
    /// The SQLSTATE, if it is more precise than the code's.
    state: Option<SqlState>,
    message: String,
    span: Option<Span>,
    source: Option<std::sync::Arc<dyn std::error::Error + Send + Sync>>,
}

/// The end of the message of every internal error.
const REPORT: &str =
    "; this is a bug in Tessera: please report it with the statement and `tessera --version`";

/// A result with Tessera's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Creates an error. Secrets in URLs are hidden ([`redact`](crate::redact)).
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        let message = redacted(message.into());
        Error { inner: Box::new(Inner { code, state: None, message, span: None, source: None }) }
    }

    /// Creates an error for a bug in Tessera: a violated invariant. The message says so.
    pub fn internal(message: impl Into<String>) -> Self {
        let message = message.into();
        Error::new(Code::Internal, format!("{message}{REPORT}"))
    }

    /// Creates an error for a construct that is not supported.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Error::new(Code::Unsupported, message)
    }

    /// Creates a name or type error.
    pub fn semantic(message: impl Into<String>) -> Self {
        Error::new(Code::Semantic, message)
    }

    /// Creates an error for an invalid value.
    pub fn data(message: impl Into<String>) -> Self {
        Error::new(Code::Data, message)
    }

    /// Creates an error for a file or store that cannot be read or written.
    pub fn io(message: impl Into<String>) -> Self {
        Error::new(Code::Io, message)
    }

    /// Sets an SQLSTATE that is more precise than the code's.
    pub fn with_state(mut self, state: SqlState) -> Self {
        self.inner.state = Some(state);
        self
    }

    /// Sets the position in the text, unless a narrower one is already set.
    pub fn at(mut self, span: Span) -> Self {
        self.inner.span.get_or_insert(span);
        self
    }

    /// Removes the position, for an error with a position in another text.
    #[must_use]
    pub fn without_span(mut self) -> Self {
        self.inner.span = None;
        self
    }

    /// Sets the underlying cause.
    pub fn caused_by(mut self, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        self.inner.source = Some(std::sync::Arc::new(source));
        self
    }

    /// Prefixes the message with the failed action: `context: message`.
    pub fn context(mut self, context: impl fmt::Display) -> Self {
        self.inner.message = redacted(format!("{context}: {}", self.inner.message));
        self
    }

    /// The kind of the error.
    pub fn code(&self) -> Code {
        self.inner.code
    }

    /// The SQLSTATE that PostgreSQL reports for this error.
    pub fn sql_state(&self) -> SqlState {
        self.inner.state.unwrap_or_else(|| self.inner.code.sql_state())
    }

    /// The message, without code and position.
    pub fn message(&self) -> &str {
        &self.inner.message
    }

    /// The position in the text, if there is one.
    pub fn span(&self) -> Option<Span> {
        self.inner.span
    }
}

/// Hides the secrets in a message.
fn redacted(message: String) -> String {
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
        let converted = Error::new(code, message);
        match &error {
            // Arrow reports the expected type in the message only, so all types share this state.
            A::ParseError(_) => converted.with_state(SqlState::INVALID_TEXT_REPRESENTATION),
            _ => converted,
        }
    }
}
