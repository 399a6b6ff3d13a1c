//! What functions such as `glob` say about files, known when a statement is planned.

use tessera_types::Atom;

use crate::scalar::Scalar;

/// The rows of a function about files.
#[derive(Debug, Clone, PartialEq)]
pub struct FileFacts {
    /// The names and types of the columns.
    pub columns: Vec<(&'static str, Atom)>,
    /// The rows; a value for each column.
    pub rows: Vec<Vec<Scalar>>,
}
