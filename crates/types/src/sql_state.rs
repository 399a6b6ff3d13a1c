//! SQLSTATE: the five characters by which SQL's programs tell errors apart.

use std::fmt;

use crate::error::Code;

/// A SQLSTATE, as PostgreSQL gives it for the same failure.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SqlState([u8; 5]);

macro_rules! states {
    ($($(#[$doc:meta])* $name:ident = $state:literal;)*) => {
        impl SqlState {
            $($(#[$doc])* pub const $name: SqlState = SqlState(*$state);)*
        }
    };
}

states! {
    /// The system could not read or write.
    IO_ERROR = b"58030";
    /// A construct that is not offered.
    FEATURE_NOT_SUPPORTED = b"0A000";
    /// A subquery gave more rows than its place can hold.
    CARDINALITY_VIOLATION = b"21000";
    /// A value that is wrong in a way that has no state of its own.
    DATA_EXCEPTION = b"22000";
    /// A text longer than its type.
    STRING_DATA_RIGHT_TRUNCATION = b"22001";
    /// A number beyond its type.
    NUMERIC_VALUE_OUT_OF_RANGE = b"22003";
    /// A text that is no date, time or interval.
    INVALID_DATETIME_FORMAT = b"22007";
    /// A date, time or interval beyond its type or the calendar.
    DATETIME_FIELD_OVERFLOW = b"22008";
    /// An offset of a time zone that is too large.
    INVALID_TIME_ZONE_DISPLACEMENT = b"22009";
    /// A NULL where there must be a value.
    NULL_VALUE_NOT_ALLOWED = b"22004";
    /// A character that the other encoding does not have.
    UNTRANSLATABLE_CHARACTER = b"22P05";
    /// An index outside of what it counts.
    ARRAY_SUBSCRIPT_ERROR = b"2202E";
    /// An interval beyond its type.
    INTERVAL_FIELD_OVERFLOW = b"22015";
    /// A substring of negative length.
    SUBSTRING_ERROR = b"22011";
    /// Division or remainder by zero.
    DIVISION_BY_ZERO = b"22012";
    /// A logarithm of what is not positive.
    INVALID_ARGUMENT_FOR_LOGARITHM = b"2201E";
    /// A histogram without buckets or width.
    INVALID_ARGUMENT_FOR_WIDTH_BUCKET = b"2201G";
    /// A power without a real value.
    INVALID_ARGUMENT_FOR_POWER = b"2201F";
    /// A regular expression that cannot be read.
    INVALID_REGULAR_EXPRESSION = b"2201B";
    /// A negative LIMIT.
    INVALID_ROW_COUNT_IN_LIMIT = b"2201W";
    /// A negative OFFSET.
    INVALID_ROW_COUNT_IN_OFFSET = b"2201X";
    /// An escape of more than one character.
    INVALID_ESCAPE_CHARACTER = b"22019";
    /// A character that the encoding does not have.
    CHARACTER_NOT_IN_REPERTOIRE = b"22021";
    /// A parameter out of what its function takes.
    INVALID_PARAMETER_VALUE = b"22023";
    /// An escape that stands where it means nothing.
    INVALID_USE_OF_ESCAPE = b"2200C";
    /// A pattern that ends in its escape.
    INVALID_ESCAPE_SEQUENCE = b"22025";
    /// A text that is no value of the type.
    INVALID_TEXT_REPRESENTATION = b"22P02";
    /// What a name or type stands for is wrong in a way that has no state of its own.
    ACCESS_RULE_VIOLATION = b"42000";
    /// The text cannot be parsed.
    SYNTAX_ERROR = b"42601";
    /// A name that fits two columns.
    AMBIGUOUS_COLUMN = b"42702";
    /// A column that is not there.
    UNDEFINED_COLUMN = b"42703";
    /// A type that is not there.
    UNDEFINED_OBJECT = b"42704";
    /// A function or operator that is not the only one to fit.
    AMBIGUOUS_FUNCTION = b"42725";
    /// A name given twice.
    DUPLICATE_OBJECT = b"42710";
    /// Two tables of one name in FROM.
    DUPLICATE_ALIAS = b"42712";
    /// A column that is neither grouped nor aggregated.
    GROUPING_ERROR = b"42803";
    /// Types that do not fit.
    DATATYPE_MISMATCH = b"42804";
    /// The object is of another kind.
    WRONG_OBJECT_TYPE = b"42809";
    /// There is no such conversion.
    CANNOT_COERCE = b"42846";
    /// No function of this name takes these arguments.
    UNDEFINED_FUNCTION = b"42883";
    /// A table that is not there.
    UNDEFINED_TABLE = b"42P01";
    /// A table or view that is there already.
    DUPLICATE_TABLE = b"42P07";
    /// A column where none can be named.
    INVALID_COLUMN_REFERENCE = b"42P10";
    /// A recursion of a form that is not allowed.
    INVALID_RECURSION = b"42P19";
    /// The memory budget is exhausted.
    OUT_OF_MEMORY = b"53200";
    /// A value beyond a limit of the program.
    PROGRAM_LIMIT_EXCEEDED = b"54000";
    /// A statement with too deep a nesting.
    STATEMENT_TOO_COMPLEX = b"54001";
    /// Something that one user at a time may have.
    OBJECT_IN_USE = b"55006";
    /// The statement was cancelled.
    QUERY_CANCELED = b"57014";
    /// A fault of the system itself.
    INTERNAL_ERROR = b"XX000";
}

impl SqlState {
    /// The state that a text names: five capitals or digits.
    pub fn named(text: &str) -> Option<SqlState> {
        let state: [u8; 5] = text.as_bytes().try_into().ok()?;
        state
            .iter()
            .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit())
            .then_some(SqlState(state))
    }

    /// Its five characters.
    pub fn as_str(&self) -> &str {
        // All states are ASCII.
        std::str::from_utf8(&self.0).unwrap_or("XX000")
    }
}

impl Code {
    /// The state of an error that has none of its own.
    pub fn sql_state(self) -> SqlState {
        match self {
            Code::Syntax => SqlState::SYNTAX_ERROR,
            Code::Semantic => SqlState::ACCESS_RULE_VIOLATION,
            Code::Unsupported => SqlState::FEATURE_NOT_SUPPORTED,
            Code::Overflow => SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
            Code::DivisionByZero => SqlState::DIVISION_BY_ZERO,
            Code::Data => SqlState::DATA_EXCEPTION,
            Code::Io => SqlState::IO_ERROR,
            Code::Limit => SqlState::OUT_OF_MEMORY,
            Code::Cancelled => SqlState::QUERY_CANCELED,
            Code::Internal => SqlState::INTERNAL_ERROR,
        }
    }
}

impl fmt::Display for SqlState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for SqlState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SqlState({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    #[test]
    fn an_error_has_its_codes_state_unless_it_has_one_of_its_own() {
        for code in Code::ALL {
            assert_eq!(Error::new(code, "x").sql_state(), code.sql_state());
            assert_eq!(SqlState::named(code.sql_state().as_str()), Some(code.sql_state()));
        }
        let error = Error::data("x").with_state(SqlState::INVALID_TEXT_REPRESENTATION).context("y");
        assert_eq!(error.sql_state().as_str(), "22P02");
        assert_eq!(
            (SqlState::named("22p02"), SqlState::named("22P0"), SqlState::named("22P02 ")),
            (None, None, None)
        );
    }
}
