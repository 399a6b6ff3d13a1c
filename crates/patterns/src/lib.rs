//! Patterns of texts: LIKE, SIMILAR TO and regular expressions as PostgreSQL has them, whose search
//! in a long text can be cancelled.

#![forbid(unsafe_code)]

pub mod like;
pub mod pieces;
pub mod regex_search;
pub mod regexes;
pub mod similar;
