//! Matches keys of a listing with an address.

use glob::MatchOptions;
use tessera_types::{Error, Result};

use crate::location::Location;

/// A pattern of keys.
#[derive(Debug)]
pub(crate) struct Pattern {
    pattern: glob::Pattern,
    prefix: String,
}

/// As in a shell, and as for local files: `*` matches within one folder, and not a dot at the start
/// of a name.
const OPTIONS: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: true,
};

impl Pattern {
    /// Parses the key of a location as a pattern; `None` for a plain key.
    ///
    /// # Errors
    /// The pattern is malformed.
    pub(crate) fn new(location: &Location) -> Result<Option<Pattern>> {
        let key = &location.key;
        let Some(wildcard) = key.find(['*', '?', '[']) else { return Ok(None) };
        let pattern = glob::Pattern::new(key).map_err(|error| {
            Error::semantic(format!("the pattern '{}' is malformed: {error}", location.address()))
        })?;
        let prefix = key[..wildcard].rfind('/').map_or("", |slash| &key[..=slash]).to_string();
        Ok(Some(Pattern { pattern, prefix }))
    }

    /// The folder, with its slash, that contains all matches.
    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    pub(crate) fn matches(&self, key: &str) -> bool {
        self.pattern.matches_with(key, OPTIONS)
    }
}

/// Whether a key below a prefix is data. Names that start with `.` or `_` are hidden, temporary or
/// markers; a folder such as `_year=2024` is a partition.
pub(crate) fn is_data(below: &str) -> bool {
    let mut names = below.split('/').rev();
    let file = names.next().unwrap_or_default();
    let hidden = |name: &str| name.starts_with('.') || name.starts_with('_');
    !file.is_empty()
        && !hidden(file)
        && !file.ends_with(".tmp")
        && names.all(|folder| !hidden(folder) || (folder.starts_with('_') && folder.contains('=')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_of_keys() {
        let pattern = |address: &str| Pattern::new(&Location::parse(address).unwrap()).unwrap();
        assert!(pattern("s3://b/a/x.csv").is_none());
        let years = pattern("s3://b/t/year=*/x?.csv").unwrap();
        assert_eq!(years.prefix(), "t/");
        assert!(years.matches("t/year=2024/x1.csv") && !years.matches("t/year=2024/m=1/x1.csv"));
        assert!(pattern("s3://b/**/*.csv").unwrap().matches("a/b/c.csv"));
        let all = pattern("s3://b/t/**").unwrap();
        assert!(all.matches("t/x.csv") && all.matches("t/a/b/x.csv") && !all.matches("u/x.csv"));
        assert!(!all.matches("t/a/.x.csv"));
        assert!(!pattern("s3://b/*.csv").unwrap().matches(".c.csv"));
        assert!(Pattern::new(&Location::parse("s3://b/[").unwrap()).is_err());
    }

    #[test]
    fn marks_are_no_data() {
        for key in ["a.csv", "k=1/a.csv", "_k=1/a.csv"] {
            assert!(is_data(key), "{key}");
        }
        for key in ["_SUCCESS", ".a.csv", "a.tmp", "_temporary/0/a.csv", "folder/", ""] {
            assert!(!is_data(key), "{key}");
        }
    }
}
