//! Parameters of a node.

use std::sync::Arc;

use tessera_types::{Error, Result, Tuple};

use crate::edge::SortKey;
use crate::expr::Expr;

/// The value of a parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// `true` or `false`.
    Boolean(bool),
    /// An integer.
    Integer(i64),
    /// A name from a fixed set, such as a join kind; `:inner` in the text form.
    Name(Arc<str>),
    /// A string in single quotes.
    String(Arc<str>),
    /// A tuple type.
    Tuple(Tuple),
    /// An expression.
    Expr(Expr),
    /// Values in brackets.
    List(Vec<Value>),
    /// Named values in braces, in order: `{a = 1, b = 'x'}`.
    Record(Vec<(Arc<str>, Value)>),
}

/// Named parameters in the order they were written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Params {
    entries: Vec<(Arc<str>, Value)>,
}

macro_rules! from {
    ($($type:ty => $variant:ident),*) => {
        $(impl From<$type> for Value {
            fn from(value: $type) -> Self {
                Value::$variant(value.into())
            }
        })*
    };
}

from!(bool => Boolean, i64 => Integer, Tuple => Tuple, Expr => Expr, Vec<Value> => List, Vec<(Arc<str>, Value)> => Record);

impl Value {
    /// A name from a fixed set.
    pub fn name(name: impl Into<Arc<str>>) -> Value {
        Value::Name(name.into())
    }

    /// A string.
    pub fn string(text: impl Into<Arc<str>>) -> Value {
        Value::String(text.into())
    }

    /// Named expressions, the form that Map and ReduceByKey take.
    pub fn exprs(exprs: impl IntoIterator<Item = (Arc<str>, Expr)>) -> Value {
        Value::Record(exprs.into_iter().map(|(name, expr)| (name, Value::Expr(expr))).collect())
    }

    /// Field names, the form that Projection takes.
    pub fn names<S: AsRef<str>>(names: impl IntoIterator<Item = S>) -> Value {
        Value::List(names.into_iter().map(|name| Value::Expr(Expr::field(name.as_ref()))).collect())
    }
}

impl Params {
    /// Creates an empty list of parameters.
    pub fn new() -> Self {
        Params::default()
    }

    /// Returns the parameters with `name` set to `value`.
    pub fn with(mut self, name: impl Into<Arc<str>>, value: impl Into<Value>) -> Self {
        self.set(name, value);
        self
    }

    /// Sets a parameter.
    pub fn set(&mut self, name: impl Into<Arc<str>>, value: impl Into<Value>) {
        let (name, value) = (name.into(), value.into());
        match self.entries.iter_mut().find(|(existing, _)| *existing == name) {
            Some(entry) => entry.1 = value,
            None => self.entries.push((name, value)),
        }
    }

    /// Removes a parameter, if present.
    pub fn remove(&mut self, name: &str) {
        self.entries.retain(|(existing, _)| &**existing != name);
    }

    /// Removes a parameter and returns its value, if present.
    pub fn take(&mut self, name: &str) -> Option<Value> {
        let place = self.entries.iter().position(|(existing, _)| &**existing == name)?;
        Some(self.entries.remove(place).1)
    }

    /// Returns the value of a parameter, if present.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.entries.iter().find(|(existing, _)| &**existing == name).map(|(_, value)| value)
    }

    /// Iterates over names and values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &Value)> {
        self.entries.iter().map(|(name, value)| (name, value))
    }

    /// Iterates over the values, for rewriting.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut Value> {
        self.entries.iter_mut().map(|(_, value)| value)
    }

    /// Whether there are no parameters.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn required(&self, name: &str) -> Result<&Value> {
        self.get(name).ok_or_else(|| Error::semantic(format!("parameter {name} is missing")))
    }

    /// An expression parameter.
    pub fn expr(&self, name: &str) -> Result<&Expr> {
        match self.required(name)? {
            Value::Expr(expr) => Ok(expr),
            _ => Err(invalid_parameter(name, "an expression")),
        }
    }

    /// An expression parameter that may be absent.
    pub fn expr_opt(&self, name: &str) -> Result<Option<&Expr>> {
        if self.get(name).is_some() { self.expr(name).map(Some) } else { Ok(None) }
    }

    /// Named expressions: `{a = x + 1, b = y}`.
    pub fn exprs(&self, name: &str) -> Result<Vec<(Arc<str>, &Expr)>> {
        let Value::Record(entries) = self.required(name)? else {
            return Err(invalid_parameter(
                name,
                "named expressions in braces (a constant with its type: 1::int64)",
            ));
        };
        entries
            .iter()
            .map(|(field, value)| match value {
                Value::Expr(expr) => Ok((field.clone(), expr)),
                _ => Err(invalid_parameter(
                    name,
                    "named expressions in braces (a constant with its type: 1::int64)",
                )),
            })
            .collect()
    }

    /// Field names in brackets: `[a, b]`.
    pub fn names(&self, name: &str) -> Result<Vec<Arc<str>>> {
        let Value::List(values) = self.required(name)? else {
            return Err(invalid_parameter(name, "field names in brackets"));
        };
        values
            .iter()
            .map(|value| match value {
                Value::Expr(Expr::Field(field)) => Ok(field.clone()),
                _ => Err(invalid_parameter(name, "field names in brackets")),
            })
            .collect()
    }

    /// Field names; empty if the parameter is absent.
    pub fn names_opt(&self, name: &str) -> Result<Vec<Arc<str>>> {
        if self.get(name).is_some() { self.names(name) } else { Ok(Vec::new()) }
    }

    /// Strings in brackets.
    pub fn strings(&self, name: &str) -> Result<Vec<Arc<str>>> {
        let Value::List(values) = self.required(name)? else {
            return Err(invalid_parameter(name, "strings in brackets"));
        };
        values
            .iter()
            .map(|value| match value {
                Value::String(text) => Ok(text.clone()),
                _ => Err(invalid_parameter(name, "strings in brackets")),
            })
            .collect()
    }

    /// A string parameter.
    pub fn string(&self, name: &str) -> Result<&Arc<str>> {
        match self.required(name)? {
            Value::String(text) => Ok(text),
            _ => Err(invalid_parameter(name, "a string")),
        }
    }

    /// A name parameter: an existing field (`field`), or a name from a fixed set or of a new field
    /// (`:name`).
    pub fn name(&self, name: &str) -> Result<&Arc<str>> {
        match self.required(name)? {
            Value::Name(found) | Value::Expr(Expr::Field(found)) => Ok(found),
            _ => Err(invalid_parameter(name, "a name")),
        }
    }

    /// A tuple type.
    pub fn tuple(&self, name: &str) -> Result<&Tuple> {
        match self.required(name)? {
            Value::Tuple(tuple) => Ok(tuple),
            _ => Err(invalid_parameter(name, "a tuple type")),
        }
    }

    /// An integer parameter that may be absent.
    pub fn integer_opt(&self, name: &str) -> Result<Option<i64>> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Integer(number)) => Ok(Some(*number)),
            Some(_) => Err(invalid_parameter(name, "an integer")),
        }
    }

    /// An integer.
    pub fn integer(&self, name: &str) -> Result<i64> {
        self.integer_opt(name)?
            .ok_or_else(|| Error::semantic(format!("parameter {name} is missing")))
    }

    /// A boolean, false when absent.
    pub fn flag(&self, name: &str) -> Result<bool> {
        match self.get(name) {
            None => Ok(false),
            Some(Value::Boolean(flag)) => Ok(*flag),
            Some(_) => Err(invalid_parameter(name, "true or false")),
        }
    }

    /// Sort keys: `[{field = a, descending = true, nulls_first = false}, …]`.
    pub fn sort_keys(&self, name: &str) -> Result<Vec<SortKey>> {
        let Value::List(values) = self.required(name)? else {
            return Err(invalid_parameter(name, "sort keys in brackets"));
        };
        values.iter().map(|value| SortKey::from_value(name, value)).collect()
    }

    /// One of a fixed set of names.
    pub fn choice<'a>(&self, name: &str, choices: &[&'a str]) -> Result<&'a str> {
        let found = match self.required(name)? {
            Value::Name(found) => choices.iter().find(|choice| **choice == &**found),
            _ => None,
        };
        found
            .copied()
            .ok_or_else(|| invalid_parameter(name, &format!("one of :{}", choices.join(", :"))))
    }
}

impl SortKey {
    /// Parses a sort key from an element of the parameter `name`.
    ///
    /// # Errors
    /// The value is not a sort key.
    pub fn from_value(name: &str, value: &Value) -> Result<SortKey> {
        let bad = || {
            invalid_parameter(
                name,
                "sort keys: {field = a, descending = true, nulls_first = false}",
            )
        };
        let Value::Record(entries) = value else { return Err(bad()) };
        let mut key = SortKey { field: "".into(), descending: false, nulls_first: false };
        // A column may have an empty name, so it cannot mark a missing one.
        let mut is_named = false;
        for (entry, value) in entries {
            match (&**entry, value) {
                ("field", Value::Expr(Expr::Field(field))) => {
                    is_named = true;
                    key.field = field.clone();
                }
                ("descending", Value::Boolean(flag)) => key.descending = *flag,
                ("nulls_first", Value::Boolean(flag)) => key.nulls_first = *flag,
                _ => return Err(bad()),
            }
        }
        if is_named { Ok(key) } else { Err(bad()) }
    }

    /// Returns the key as a parameter value.
    pub fn to_value(&self) -> Value {
        let mut entries = vec![(Arc::from("field"), Value::Expr(Expr::Field(self.field.clone())))];
        if self.descending {
            entries.push((Arc::from("descending"), Value::Boolean(true)));
        }
        if self.nulls_first {
            entries.push((Arc::from("nulls_first"), Value::Boolean(true)));
        }
        Value::Record(entries)
    }
}

fn invalid_parameter(name: &str, what: &str) -> Error {
    Error::semantic(format!("parameter {name} must be {what}"))
}
