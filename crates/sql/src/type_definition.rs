//! Planning of `CREATE TYPE`.

use std::sync::Arc;

use tessera_binder::{PlanContext, PlannedQuery};
use tessera_parser::{CreateType as Parsed, TypeBody, parse_type};
use tessera_types::{Atom, EnumType, Error, Result, SqlState};

use crate::statement::Statement;

/// `CREATE TYPE name AS …`.
#[derive(Debug, Clone)]
pub struct CreateType {
    /// The name.
    pub name: String,
    /// What it stands for.
    pub definition: TypeDefinition,
    /// Whether to replace an existing one.
    pub or_replace: bool,
    /// Whether to do nothing if one exists.
    pub if_not_exists: bool,
}

/// What a type of the user stands for.
#[derive(Debug, Clone)]
pub enum TypeDefinition {
    /// A type.
    Known(Atom),
    /// An enum whose labels are the values of a query of one column, in its order.
    LabelsOf(Box<PlannedQuery>),
}

/// Plans `CREATE TYPE`.
pub(crate) fn create(create: &Parsed, context: &PlanContext<'_>) -> Result<Statement> {
    let Parsed { name, body, or_replace, if_not_exists } = create;
    if parse_type(name).is_ok() {
        return Err(Error::semantic(format!(
            "cannot create type {name}: it is a type of Tessera; choose another name"
        ))
        .with_state(SqlState::DUPLICATE_OBJECT));
    }
    let definition = match body {
        TypeBody::Labels(labels) => {
            let labels = labels.iter().map(|label| label.as_str().into()).collect();
            TypeDefinition::Known(Atom::Enum(Arc::new(EnumType::new(name, labels)?)))
        }
        TypeBody::LabelsOf(query) => {
            let query = context.query(query)?;
            match query.tuple.fields() {
                [field] if field.atom() == Some(&Atom::String) => {}
                _ => {
                    return Err(Error::semantic(format!(
                        "cannot create type {name}: its query must have one column of text"
                    ))
                    .with_state(SqlState::DATATYPE_MISMATCH));
                }
            }
            TypeDefinition::LabelsOf(Box::new(query))
        }
        TypeBody::Type(data_type) => TypeDefinition::Known(context.type_of(data_type)?),
    };
    let (or_replace, if_not_exists) = (*or_replace, *if_not_exists);
    let name = name.clone();
    Ok(Statement::CreateType(Box::new(CreateType { name, definition, or_replace, if_not_exists })))
}
