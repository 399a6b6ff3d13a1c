//! The values that parameters of statements get, and the types that they need.

use std::cell::RefCell;
use std::collections::BTreeMap;

use tessera_plan::{Expr, Scalar};
use tessera_types::{Atom, Error, Result, SqlState};

/// A value that a parameter gets or a variable holds.
#[derive(Debug, Clone, PartialEq)]
pub struct Constant {
    pub(crate) expr: Expr,
    pub(crate) atom: Atom,
    /// Whether it takes its type from its context, as a string literal does.
    pub(crate) is_untyped: bool,
}

impl Constant {
    /// A value of a type.
    ///
    /// # Errors
    /// The type does not have this value.
    pub fn new(value: Scalar, atom: Atom) -> Result<Constant> {
        match value.fits(&atom) {
            true => {
                Ok(Constant { expr: Expr::Constant(value, atom.clone()), atom, is_untyped: false })
            }
            false => Err(Error::internal(format!("{value:?} is not a value of type {atom}"))),
        }
    }

    /// A text that takes its type from its context: beside a date, it is a date.
    pub fn untyped(text: &str) -> Constant {
        Constant { expr: Expr::string(text), atom: Atom::String, is_untyped: true }
    }

    /// NULL, which takes its type from its context.
    pub fn null() -> Constant {
        Constant { expr: Expr::null(Atom::Null), atom: Atom::Null, is_untyped: false }
    }
}

impl From<i64> for Constant {
    /// An integer of 32 bits if it fits, as a number in a statement is.
    fn from(value: i64) -> Constant {
        let atom = if i32::try_from(value).is_ok() { Atom::Int32 } else { Atom::Int64 };
        let expr = Expr::Constant(Scalar::Integer(value.into()), atom.clone());
        Constant { expr, atom, is_untyped: false }
    }
}

impl From<f64> for Constant {
    fn from(value: f64) -> Constant {
        let expr = Expr::Constant(Scalar::Float(value), Atom::Float64);
        Constant { expr, atom: Atom::Float64, is_untyped: false }
    }
}

impl From<bool> for Constant {
    fn from(value: bool) -> Constant {
        Constant { expr: Expr::boolean(value), atom: Atom::Boolean, is_untyped: false }
    }
}

impl From<&str> for Constant {
    fn from(text: &str) -> Constant {
        Constant::untyped(text)
    }
}

/// The values of the parameters of one statement, by name; `1` is the name of `$1`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Parameters {
    values: BTreeMap<String, Constant>,
}

impl Parameters {
    /// Values for `$1`, `$2`, …, or for `?` in their order.
    pub fn positional(values: impl IntoIterator<Item = Constant>) -> Parameters {
        let numbered = values.into_iter().enumerate();
        Parameters { values: numbered.map(|(at, value)| ((at + 1).to_string(), value)).collect() }
    }

    /// Values for `$name`, in any case.
    pub fn named<N: AsRef<str>>(values: impl IntoIterator<Item = (N, Constant)>) -> Parameters {
        let named = values.into_iter().map(|(name, value)| (name.as_ref().to_lowercase(), value));
        Parameters { values: named.collect() }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Constant> {
        self.values.get(name)
    }

    /// Checks that there is a value for each of these parameters, and no other value.
    ///
    /// # Errors
    /// A value is missing or surplus.
    pub fn check(&self, names: &[String], of: &str) -> Result<()> {
        let wrong =
            |message: String| Err(Error::semantic(message).with_state(SqlState::SYNTAX_ERROR));
        if let Some(missing) = names.iter().find(|name| !self.values.contains_key(*name)) {
            return wrong(format!("parameter ${missing} of {of} has no value"));
        }
        match self.values.keys().find(|name| !names.contains(name)) {
            Some(surplus) => {
                let known = match names {
                    [] => "it has no parameters".to_string(),
                    _ => format!("its parameters are ${}", names.join(", $")),
                };
                wrong(format!("{of} has no parameter ${surplus}; {known}"))
            }
            None => Ok(()),
        }
    }
}

/// Returns the error for a parameter that has no value.
pub(crate) fn without_value(name: &str) -> Error {
    let message = format!(
        "parameter ${name} has no value; give the statement values, or PREPARE and EXECUTE it"
    );
    Error::semantic(message).with_state(SqlState::UNDEFINED_PARAMETER)
}

/// The types of the parameters of a statement that is being prepared, as far as they are known.
#[derive(Debug, Default)]
pub struct Inference {
    types: RefCell<BTreeMap<String, Option<Atom>>>,
    /// Whether the statement cannot be bound without the values of its parameters.
    pub needs_values: std::cell::Cell<bool>,
}

impl Inference {
    /// Declares the types of `$1`, `$2`, ….
    pub fn declared(types: Vec<Atom>) -> Inference {
        let numbered = types.into_iter().enumerate();
        let types = numbered.map(|(at, atom)| ((at + 1).to_string(), Some(atom))).collect();
        Inference { types: RefCell::new(types), ..Inference::default() }
    }

    /// Returns the type of a parameter if it is known.
    pub(crate) fn type_of(&self, name: &str) -> Option<Atom> {
        self.types.borrow_mut().entry(name.to_string()).or_default().clone()
    }

    /// Records the type that the context of a parameter requires. The first one counts.
    pub(crate) fn record(&self, name: &str, atom: &Atom) {
        self.types.borrow_mut().entry(name.to_string()).or_default().get_or_insert(atom.clone());
    }

    /// Returns all types. As in PostgreSQL, a parameter that may have any type is a text.
    ///
    /// # Errors
    /// The type of a parameter is open.
    pub fn into_types(self, names: &[String]) -> Result<BTreeMap<String, Option<Atom>>> {
        let needs_values = self.needs_values.get();
        let mut types = self.types.into_inner();
        for name in names.iter().filter(|_| !needs_values) {
            let entry = types.get_mut(name).ok_or_else(|| undetermined(name))?;
            entry.get_or_insert(Atom::String);
        }
        Ok(types)
    }
}

/// Returns the error for a parameter whose type its context leaves open.
pub(crate) fn undetermined(name: &str) -> Error {
    let message = format!("the type of parameter ${name} is unknown; cast it, as in ${name}::int");
    Error::semantic(message).with_state(SqlState::INDETERMINATE_DATATYPE)
}
