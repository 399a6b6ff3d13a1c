//! Enums: types whose values are labels.

use std::collections::HashSet;
use std::sync::Arc;

use crate::error::{Code, Error, Result};
use crate::sql_state::SqlState;

/// A type whose values are labels. Its plain form has their places in the list.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EnumType {
    name: Arc<str>,
    labels: Arc<[Arc<str>]>,
}

/// The maximum number of labels of an enum.
pub const ENUM_LABELS_MAX: usize = u16::MAX as usize;

impl EnumType {
    /// Creates a type.
    ///
    /// # Errors
    /// There are too many labels, or two that are equal.
    pub fn new(name: &str, labels: Vec<Arc<str>>) -> Result<EnumType> {
        if labels.len() > ENUM_LABELS_MAX {
            return Err(Error::new(
                Code::Limit,
                format!(
                    "enum {name} has {} labels, above the limit of {ENUM_LABELS_MAX}; store them as text",
                    labels.len()
                ),
            ));
        }
        let mut seen = HashSet::new();
        match labels.iter().find(|label| !seen.insert(&***label)) {
            Some(label) => Err(Error::semantic(format!(
                "two labels of enum {name} are '{label}'; remove one of them"
            ))
            .with_state(SqlState::UNIQUE_VIOLATION)),
            None => Ok(EnumType { name: name.into(), labels: labels.into() }),
        }
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The labels, in their order.
    pub fn labels(&self) -> &[Arc<str>] {
        &self.labels
    }
}
