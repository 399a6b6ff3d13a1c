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
    /// A whole number.
    Integer(i64),
    /// A name from a fixed set, such as a join kind; `:inner` in the text form.
    Name(Arc<str>),
    /// Text in single quotes.
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

/// Named parameters, in order of writing.
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

    /// Text.
    pub fn string(text: impl Into<Arc<str>>) -> Value {
        Value::String(text.into())
    }

    /// Named expressions, as Map and ReduceByKey take them.
    pub fn exprs(exprs: impl IntoIterator<Item = (Arc<str>, Expr)>) -> Value {
        Value::Record(exprs.into_iter().map(|(name, expr)| (name, Value::Expr(expr))).collect())
    }

    /// Field names, as Projection takes them.
    pub fn names<S: AsRef<str>>(names: impl IntoIterator<Item = S>) -> Value {
        Value::List(names.into_iter().map(|name| Value::Expr(Expr::field(name.as_ref()))).collect())
    }
}

impl Params {
    /// No parameters.
    pub fn new() -> Self {
        Params::default()
    }

    /// The same parameters and one more (or another value for one that is there).
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

    /// Takes a parameter away, where given.
    pub fn remove(&mut self, name: &str) {
        self.entries.retain(|(existing, _)| &**existing != name);
    }

    /// Takes a parameter's value away, where given.
    pub fn take(&mut self, name: &str) -> Option<Value> {
        let place = self.entries.iter().position(|(existing, _)| &**existing == name)?;
        Some(self.entries.remove(place).1)
    }

    /// A parameter, where given.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.entries.iter().find(|(existing, _)| &**existing == name).map(|(_, value)| value)
    }

    /// Name and value of each, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &Value)> {
        self.entries.iter().map(|(name, value)| (name, value))
    }

    /// Value of each, for rewriting.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut Value> {
        self.entries.iter_mut().map(|(_, value)| value)
    }

    /// Whether there are none.
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
            _ => Err(wrong(name, "an expression")),
        }
    }

    /// An expression parameter that may be absent.
    pub fn expr_opt(&self, name: &str) -> Result<Option<&Expr>> {
        if self.get(name).is_some() { self.expr(name).map(Some) } else { Ok(None) }
    }

    /// Named expressions: `{a = x + 1, b = y}`.
    pub fn exprs(&self, name: &str) -> Result<Vec<(Arc<str>, &Expr)>> {
        let Value::Record(entries) = self.required(name)? else {
            return Err(wrong(
                name,
                "named expressions in braces (a constant with its type: 1::int64)",
            ));
        };
        entries
            .iter()
            .map(|(field, value)| match value {
                Value::Expr(expr) => Ok((field.clone(), expr)),
                _ => Err(wrong(
                    name,
                    "named expressions in braces (a constant with its type: 1::int64)",
                )),
            })
            .collect()
    }

    /// Field names in brackets: `[a, b]`.
    pub fn names(&self, name: &str) -> Result<Vec<Arc<str>>> {
        let Value::List(values) = self.required(name)? else {
            return Err(wrong(name, "field names in brackets"));
        };
        values
            .iter()
            .map(|value| match value {
                Value::Expr(Expr::Field(field)) => Ok(field.clone()),
                _ => Err(wrong(name, "field names in brackets")),
            })
            .collect()
    }

    /// Field names that may be absent (then none).
    pub fn names_opt(&self, name: &str) -> Result<Vec<Arc<str>>> {
        if self.get(name).is_some() { self.names(name) } else { Ok(Vec::new()) }
    }

    /// Texts in brackets.
    pub fn strings(&self, name: &str) -> Result<Vec<Arc<str>>> {
        let Value::List(values) = self.required(name)? else {
            return Err(wrong(name, "strings in brackets"));
        };
        values
            .iter()
            .map(|value| match value {
                Value::String(text) => Ok(text.clone()),
                _ => Err(wrong(name, "strings in brackets")),
            })
            .collect()
    }

    /// A text.
    pub fn string(&self, name: &str) -> Result<&Arc<str>> {
        match self.required(name)? {
            Value::String(text) => Ok(text),
            _ => Err(wrong(name, "a string")),
        }
    }

    /// A name: of a field that is there (`field`) or one from a fixed set or yet to be (`:name`).
    pub fn name(&self, name: &str) -> Result<&Arc<str>> {
        match self.required(name)? {
            Value::Name(found) | Value::Expr(Expr::Field(found)) => Ok(found),
            _ => Err(wrong(name, "a name")),
        }
    }

    /// A tuple type.
    pub fn tuple(&self, name: &str) -> Result<&Tuple> {
        match self.required(name)? {
            Value::Tuple(tuple) => Ok(tuple),
            _ => Err(wrong(name, "a tuple type")),
        }
    }

    /// A whole number that may be absent.
    pub fn integer_opt(&self, name: &str) -> Result<Option<i64>> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Integer(number)) => Ok(Some(*number)),
            Some(_) => Err(wrong(name, "a whole number")),
        }
    }

    /// A whole number.
    pub fn integer(&self, name: &str) -> Result<i64> {
        self.integer_opt(name)?
            .ok_or_else(|| Error::semantic(format!("parameter {name} is missing")))
    }

    /// A boolean, false when absent.
    pub fn flag(&self, name: &str) -> Result<bool> {
        match self.get(name) {
            None => Ok(false),
            Some(Value::Boolean(flag)) => Ok(*flag),
            Some(_) => Err(wrong(name, "true or false")),
        }
    }

    /// Sort keys: `[{field = a, descending = true, nulls_first = false}, …]`.
    pub fn sort_keys(&self, name: &str) -> Result<Vec<SortKey>> {
        let Value::List(values) = self.required(name)? else {
            return Err(wrong(name, "sort keys in brackets"));
        };
        values.iter().map(|value| SortKey::from_value(name, value)).collect()
    }

    /// One of a fixed set of names.
    pub fn choice<'a>(&self, name: &str, choices: &[&'a str]) -> Result<&'a str> {
        let found = match self.required(name)? {
            Value::Name(found) => choices.iter().find(|choice| **choice == &**found),
            _ => None,
        };
        found.copied().ok_or_else(|| wrong(name, &format!("one of :{}", choices.join(", :"))))
    }
}

impl SortKey {
    /// The key that a parameter's value is; `name` is the parameter's.
    ///
    /// # Errors
    /// It is none.
    pub fn from_value(name: &str, value: &Value) -> Result<SortKey> {
        let bad = || wrong(name, "sort keys: {field = a, descending = true, nulls_first = false}");
        let Value::Record(entries) = value else { return Err(bad()) };
        let mut key = SortKey { field: "".into(), descending: false, nulls_first: false };
        // A column may well have the empty name.
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

    /// The key as a parameter's value.
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

fn wrong(name: &str, what: &str) -> Error {
    Error::semantic(format!("parameter {name} must be {what}"))
}
