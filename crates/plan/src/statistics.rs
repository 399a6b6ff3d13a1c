//! Statistics of tables, for estimates.

use crate::scalar::Scalar;

/// Statistics of a table. They affect plans, never results.
#[derive(Debug, Clone, Default)]
pub struct Statistics {
    /// The number of rows.
    pub rows: Option<f64>,
    /// One entry per column of the table, or empty.
    pub columns: Vec<ColumnStatistics>,
}

/// Statistics of a column. They affect plans, never results.
#[derive(Debug, Clone, Default)]
pub struct ColumnStatistics {
    /// A lower bound of the values.
    pub min: Option<Scalar>,
    /// An upper bound of the values.
    pub max: Option<Scalar>,
    /// The fraction of NULLs, 0 to 1.
    pub null_fraction: Option<f64>,
    /// The number of distinct values.
    pub distinct: Option<f64>,
}
