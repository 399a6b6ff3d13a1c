//! The execution tier: which code is compiled, and when.

use std::fmt;
use std::str::FromStr;

use tessera_types::{Error, Result, suggest};

/// The execution tier of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tier {
    /// Vectorized kernels only; nothing is compiled.
    Vectorized,
    /// All code that can be compiled is compiled before the query starts.
    Compiled,
    /// Starts vectorized; code that processes many tuples is compiled in the background.
    #[default]
    Auto,
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Tier::Vectorized => "vectorized",
            Tier::Compiled => "compiled",
            Tier::Auto => "auto",
        })
    }
}

impl FromStr for Tier {
    type Err = Error;

    fn from_str(text: &str) -> Result<Tier> {
        let all = [Tier::Vectorized, Tier::Compiled, Tier::Auto];
        let named = |tier: &Tier| tier.to_string().eq_ignore_ascii_case(text);
        all.into_iter().find(named).ok_or_else(|| {
            let hint = suggest(text, "expected", &all.map(|tier| tier.to_string()));
            Error::semantic(format!("unknown tier '{text}'{hint}"))
        })
    }
}
