//! SQLSTATE: five-character error codes for SQL clients.

use std::fmt;

use crate::error::Code;

/// An SQLSTATE, equal to PostgreSQL's for the same error.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SqlState([u8; 5]);

macro_rules! states {
    ($($(#[doc = $doc:literal])+ $name:ident = $state:literal;)*) => {
        impl SqlState {
            $($(#[doc = $doc])+ pub const $name: SqlState = SqlState(*$state);)*

            /// All states, each with its meaning.
            pub const ALL: &[(SqlState, &str)] =
                &[$((SqlState::$name, concat!($($doc),+))),*];
        }
    };
}

states! {
    /// The operating system failed to read or write.
    IO_ERROR = b"58030";
    /// The construct is not supported.
    FEATURE_NOT_SUPPORTED = b"0A000";
    /// A subquery returned more rows than its context allows.
    CARDINALITY_VIOLATION = b"21000";
    /// A value is invalid, for a reason without a state of its own.
    DATA_EXCEPTION = b"22000";
    /// A string is longer than its type allows.
    STRING_DATA_RIGHT_TRUNCATION = b"22001";
    /// Bit strings have different lengths.
    STRING_DATA_LENGTH_MISMATCH = b"22026";
    /// A number is out of its type's range.
    NUMERIC_VALUE_OUT_OF_RANGE = b"22003";
    /// A string is not a valid date, time or interval.
    INVALID_DATETIME_FORMAT = b"22007";
    /// A date, time or interval is out of range of its type or the calendar.
    DATETIME_FIELD_OVERFLOW = b"22008";
    /// The offset of a time zone is too large.
    INVALID_TIME_ZONE_DISPLACEMENT = b"22009";
    /// NULL is not allowed here.
    NULL_VALUE_NOT_ALLOWED = b"22004";
    /// The target encoding cannot represent a character.
    UNTRANSLATABLE_CHARACTER = b"22P05";
    /// An index is out of bounds.
    ARRAY_SUBSCRIPT_ERROR = b"2202E";
    /// An interval is out of range.
    INTERVAL_FIELD_OVERFLOW = b"22015";
    /// The length of a substring is negative.
    SUBSTRING_ERROR = b"22011";
    /// Division or remainder by zero.
    DIVISION_BY_ZERO = b"22012";
    /// The argument of a logarithm is not positive.
    INVALID_ARGUMENT_FOR_LOGARITHM = b"2201E";
    /// The offset of a window frame is NULL or negative.
    INVALID_FRAME_OFFSET = b"22013";
    /// The number of buckets of ntile is not positive.
    INVALID_ARGUMENT_FOR_NTILE = b"22014";
    /// The position of nth_value is not positive.
    INVALID_ARGUMENT_FOR_NTH_VALUE = b"22016";
    /// A histogram has no buckets or no width.
    INVALID_ARGUMENT_FOR_WIDTH_BUCKET = b"2201G";
    /// A power has no real value.
    INVALID_ARGUMENT_FOR_POWER = b"2201F";
    /// A regular expression cannot be parsed.
    INVALID_REGULAR_EXPRESSION = b"2201B";
    /// LIMIT is negative.
    INVALID_ROW_COUNT_IN_LIMIT = b"2201W";
    /// OFFSET is negative.
    INVALID_ROW_COUNT_IN_OFFSET = b"2201X";
    /// The size of a sample is out of range.
    INVALID_TABLESAMPLE_ARGUMENT = b"2202H";
    /// The seed of a sample is NULL.
    INVALID_TABLESAMPLE_REPEAT = b"2202G";
    /// An escape has more than one character.
    INVALID_ESCAPE_CHARACTER = b"22019";
    /// A character is not valid in the encoding.
    CHARACTER_NOT_IN_REPERTOIRE = b"22021";
    /// An argument is out of the range that its function accepts.
    INVALID_PARAMETER_VALUE = b"22023";
    /// An escape is used where it is not allowed.
    INVALID_USE_OF_ESCAPE = b"2200C";
    /// A pattern ends with its escape character.
    INVALID_ESCAPE_SEQUENCE = b"22025";
    /// A string is not a valid value of the type.
    INVALID_TEXT_REPRESENTATION = b"22P02";
    /// Values that must differ are equal.
    UNIQUE_VIOLATION = b"23505";
    /// An object is not in the state that an operation needs.
    OBJECT_NOT_IN_PREREQUISITE_STATE = b"55000";
    /// A name or type is invalid, for a reason without a state of its own.
    ACCESS_RULE_VIOLATION = b"42000";
    /// The text cannot be parsed.
    SYNTAX_ERROR = b"42601";
    /// A name matches two columns.
    AMBIGUOUS_COLUMN = b"42702";
    /// A column does not exist.
    UNDEFINED_COLUMN = b"42703";
    /// A type does not exist.
    UNDEFINED_OBJECT = b"42704";
    /// Several functions or operators match.
    AMBIGUOUS_FUNCTION = b"42725";
    /// A name is used twice.
    DUPLICATE_OBJECT = b"42710";
    /// Two tables in FROM have the same name.
    DUPLICATE_ALIAS = b"42712";
    /// A column is neither grouped nor aggregated.
    GROUPING_ERROR = b"42803";
    /// Types do not match.
    DATATYPE_MISMATCH = b"42804";
    /// The object has the wrong kind.
    WRONG_OBJECT_TYPE = b"42809";
    /// The types cannot be converted.
    CANNOT_COERCE = b"42846";
    /// No function of this name accepts these arguments.
    UNDEFINED_FUNCTION = b"42883";
    /// A table does not exist.
    UNDEFINED_TABLE = b"42P01";
    /// A parameter has no value.
    UNDEFINED_PARAMETER = b"42P02";
    /// The context of a parameter leaves its type open.
    INDETERMINATE_DATATYPE = b"42P18";
    /// A prepared statement of this name exists.
    DUPLICATE_PREPARED_STATEMENT = b"42P05";
    /// A function with these arguments exists.
    DUPLICATE_FUNCTION = b"42723";
    /// Two explicit collations differ.
    COLLATION_MISMATCH = b"42P21";
    /// Collations of columns differ, so that none is the one of a comparison.
    INDETERMINATE_COLLATION = b"42P22";
    /// The definition of a function is invalid.
    INVALID_FUNCTION_DEFINITION = b"42P13";
    /// A prepared statement does not exist.
    INVALID_SQL_STATEMENT_NAME = b"26000";
    /// A table or view already exists.
    DUPLICATE_TABLE = b"42P07";
    /// A column reference is not allowed here.
    INVALID_COLUMN_REFERENCE = b"42P10";
    /// A window has an invalid form, or a window function stands where none is allowed.
    WINDOWING_ERROR = b"42P20";
    /// A recursive query has an invalid form.
    INVALID_RECURSION = b"42P19";
    /// The memory budget is exhausted.
    OUT_OF_MEMORY = b"53200";
    /// A value exceeds a limit of the program.
    PROGRAM_LIMIT_EXCEEDED = b"54000";
    /// A statement is nested too deeply.
    STATEMENT_TOO_COMPLEX = b"54001";
    /// The object is in use by another session.
    OBJECT_IN_USE = b"55006";
    /// The statement was cancelled.
    QUERY_CANCELED = b"57014";
    /// A bug in Tessera.
    INTERNAL_ERROR = b"XX000";
}

impl SqlState {
    /// Parses a state: five uppercase letters or digits.
    pub fn from_name(text: &str) -> Option<SqlState> {
        let state: [u8; 5] = text.as_bytes().try_into().ok()?;
        state
            .iter()
            .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit())
            .then_some(SqlState(state))
    }

    /// The five characters.
    pub fn as_str(&self) -> &str {
        // All states are ASCII.
        std::str::from_utf8(&self.0).unwrap_or("XX000")
    }
}

impl Code {
    /// The state of an error without a more precise one.
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
    fn each_state_has_one_name_and_a_meaning() {
        let mut states: Vec<&str> = SqlState::ALL.iter().map(|(state, _)| state.as_str()).collect();
        states.sort_unstable();
        let count = states.len();
        states.dedup();
        assert_eq!(states.len(), count, "a state is listed twice");
        for (state, meaning) in SqlState::ALL {
            assert!(meaning.trim().ends_with('.'), "{state}: {meaning}");
            assert_eq!(SqlState::from_name(state.as_str()), Some(*state));
        }
        for code in Code::ALL {
            assert!(SqlState::ALL.iter().any(|(state, _)| *state == code.sql_state()));
        }
    }

    #[test]
    fn an_error_has_its_codes_state_unless_it_has_one_of_its_own() {
        for code in Code::ALL {
            assert_eq!(Error::new(code, "x").sql_state(), code.sql_state());
            assert_eq!(SqlState::from_name(code.sql_state().as_str()), Some(code.sql_state()));
        }
        let error = Error::data("x").with_state(SqlState::INVALID_TEXT_REPRESENTATION).context("y");
        assert_eq!(error.sql_state().as_str(), "22P02");
        assert_eq!(
            (
                SqlState::from_name("22p02"),
                SqlState::from_name("22P0"),
                SqlState::from_name("22P02 ")
            ),
            (None, None, None)
        );
    }

    /// The marks around the generated part of the page.
    const BEGIN: &str = "<!-- begin: made by the test errors_page_is_not_stale -->\n";
    const END: &str = "<!-- end -->\n";

    /// Set `TESSERA_WRITE_REFERENCE` to write the page.
    #[test]
    fn errors_page_is_not_stale() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/errors.md");
        let page = std::fs::read_to_string(path).unwrap();
        let (before, rest) = page.split_once(BEGIN).expect("the page has a place for the tables");
        let (_, after) = rest.split_once(END).expect("the tables have an end");
        let made = format!("{before}{BEGIN}{}{END}{after}", tables());
        if std::env::var_os("TESSERA_WRITE_REFERENCE").is_some() {
            std::fs::write(path, made).unwrap();
            return;
        }
        let differs = made.lines().zip(page.lines()).find(|(new, old)| new != old);
        assert!(made == page, "{path}: {differs:?}; set TESSERA_WRITE_REFERENCE=1 to write it");
    }

    fn tables() -> String {
        let mut text = String::from(
            "## Kinds\n\n\
             In Rust, `Error::code` gives the kind and `Error::sql_state` the SQLSTATE. An error\n\
             without a more precise state has that of its kind.\n\n\
             | kind | SQLSTATE | meaning |\n|---|---|---|\n",
        );
        for code in Code::ALL {
            let (kind, state) = (code.as_str(), code.sql_state());
            text.push_str(&format!("| `{kind}` | {state} | {} |\n", code.meaning()));
        }
        text.push_str(
            "\n## States\n\n\
             States are PostgreSQL's where PostgreSQL has the same failure.\n\n\
             | state | meaning |\n|---|---|\n",
        );
        let mut states = SqlState::ALL.to_vec();
        states.sort_by_key(|(state, _)| state.0);
        for (state, meaning) in states {
            text.push_str(&format!("| {state} | {} |\n", meaning.trim()));
        }
        text
    }
}
