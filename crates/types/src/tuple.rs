//! Tuple types, their fields, and collections of tuples.

use std::fmt;
use std::sync::Arc;

use arrow_schema::{Field as ArrowField, Schema};

use crate::atom::Atom;
use crate::error::{Error, Result};
use crate::parse::quote_name;

/// The physical format of a [`Collection`], by name: `rows`, `batch`, `hash_table`, `paths`, ….
pub type Format = Arc<str>;

/// Makes field names unique: appends a number to a name that occurred before.
///
/// ```
/// assert_eq!(tessera_types::unique_names(["a", "b", "a", "a"]), ["a", "b", "a_1", "a_2"]);
/// ```
pub fn unique_names<S: Into<String>>(names: impl IntoIterator<Item = S>) -> Vec<String> {
    let mut taken = std::collections::HashSet::new();
    let unique = names.into_iter().map(|wanted| {
        let wanted = wanted.into();
        let mut name = wanted.clone();
        let mut number = 1;
        while !taken.insert(name.clone()) {
            name = format!("{wanted}_{number}");
            number += 1;
        }
        name
    });
    unique.collect()
}

/// Tuples of one type in one physical format.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Collection {
    /// The physical format, which only its own scan and materialize sub-operators know (rule R2).
    pub format: Format,
    /// The type of the tuples inside.
    pub tuple: Tuple,
}

/// The type of a field: an atom, or a collection of tuples.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Item {
    /// A scalar.
    Atom(Atom),
    /// A collection produced by a sub-operator; a handle at run time.
    Collection(Collection),
}

/// A named item of a tuple.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Field {
    /// The name, unique within its tuple.
    pub name: Arc<str>,
    /// The type of the field.
    pub item: Item,
    /// Whether the value may be NULL (never for collections).
    pub nullable: bool,
}

/// A tuple type: named items, in order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Tuple {
    fields: Arc<[Field]>,
}

impl Collection {
    /// Creates the type of a collection of `tuple` in `format`.
    pub fn new(format: impl Into<Format>, tuple: Tuple) -> Self {
        Collection { format: format.into(), tuple }
    }
}

impl Field {
    /// Creates a field that is never NULL.
    pub fn new(name: impl Into<Arc<str>>, atom: Atom) -> Self {
        Field { name: name.into(), item: Item::Atom(atom), nullable: false }
    }

    /// Creates a field that may be NULL.
    pub fn nullable(name: impl Into<Arc<str>>, atom: Atom) -> Self {
        Field { name: name.into(), item: Item::Atom(atom), nullable: true }
    }

    /// Creates a field that holds a collection.
    pub fn collection(name: impl Into<Arc<str>>, format: impl Into<Format>, tuple: Tuple) -> Self {
        Field {
            name: name.into(),
            item: Item::Collection(Collection::new(format, tuple)),
            nullable: false,
        }
    }

    /// Returns the field under another name.
    pub fn renamed(&self, name: impl Into<Arc<str>>) -> Self {
        Field { name: name.into(), ..self.clone() }
    }

    /// Returns the field with this nullability.
    pub fn with_nullable(&self, nullable: bool) -> Self {
        Field { nullable, ..self.clone() }
    }

    /// The atom of the field; `None` for a collection.
    pub fn atom(&self) -> Option<&Atom> {
        match &self.item {
            Item::Atom(atom) => Some(atom),
            Item::Collection(_) => None,
        }
    }
}

impl Tuple {
    /// Creates a tuple type. [`Tuple::check`] checks that names are unique.
    pub fn new(fields: impl Into<Arc<[Field]>>) -> Self {
        Tuple { fields: fields.into() }
    }

    /// The tuple without fields: the input of a plan that has none.
    pub fn empty() -> Self {
        Tuple::new(Vec::new())
    }

    /// The fields, in order.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// The number of fields.
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// Whether there are no fields.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Returns the position of the field `name`.
    pub fn index_of(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| &*field.name == name)
    }

    /// Returns the field `name`.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| &*field.name == name)
    }

    /// Returns a tuple of these fields followed by those of `other`.
    pub fn concat(&self, other: &Tuple) -> Tuple {
        Tuple::new(self.fields.iter().chain(other.fields.iter()).cloned().collect::<Vec<_>>())
    }

    /// Checks that field names are unique.
    pub fn check(&self) -> Result<()> {
        let mut names = std::collections::HashSet::new();
        match self.fields.iter().find(|field| !names.insert(&field.name)) {
            Some(field) => Err(Error::semantic(format!(
                "duplicate field {} in {self}; rename one of them",
                quote_name(&field.name)
            ))),
            None => Ok(()),
        }
    }

    /// Returns the Arrow schema with plain types.
    ///
    /// # Errors
    /// A field holds a collection, which has no Arrow type.
    pub fn arrow_schema(&self) -> Result<Schema> {
        let field = |field: &Field| match &field.item {
            Item::Atom(atom) => Ok(ArrowField::new(&*field.name, atom.arrow(), field.nullable)),
            Item::Collection(collection) => Err(Error::semantic(format!(
                "field {} holds a collection ({}) and cannot leave the engine; scan it first",
                quote_name(&field.name),
                collection.format
            ))),
        };
        Ok(Schema::new(self.fields.iter().map(field).collect::<Result<Vec<_>>>()?))
    }

    /// Returns the tuple type of an Arrow schema.
    ///
    /// # Errors
    /// See [`Atom::from_arrow`]; the message names the field.
    pub fn from_arrow_schema(schema: &Schema) -> Result<Tuple> {
        let field = |field: &Arc<ArrowField>| {
            let atom = Atom::of_field(field)
                .map_err(|error| error.context(format!("field {}", quote_name(field.name()))))?;
            Ok(Field {
                name: Arc::from(field.name().as_str()),
                item: Item::Atom(atom),
                nullable: field.is_nullable(),
            })
        };
        Ok(Tuple::new(schema.fields().iter().map(field).collect::<Result<Vec<_>>>()?))
    }
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Item::Atom(atom) => atom.fmt(f),
            Item::Collection(collection) => write!(f, "{}{}", collection.format, collection.tuple),
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = if self.nullable { "?" } else { "" };
        write!(f, "{}: {}{mark}", quote_name(&self.name), self.item)
    }
}

impl fmt::Display for Tuple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<")?;
        for (i, field) in self.fields.iter().enumerate() {
            let comma = if i > 0 { ", " } else { "" };
            write!(f, "{comma}{field}")?;
        }
        f.write_str(">")
    }
}

impl<'a> IntoIterator for &'a Tuple {
    type Item = &'a Field;
    type IntoIter = std::slice::Iter<'a, Field>;

    fn into_iter(self) -> Self::IntoIter {
        self.fields.iter()
    }
}
