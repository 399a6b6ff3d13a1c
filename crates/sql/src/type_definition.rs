//! Planning of `CREATE TYPE`.

use std::sync::Arc;

use sqlparser::ast::Query;
use tessera_binder::PlanContext;
use tessera_parser::{CreateType as Parsed, TypeBody, parse_type};
use tessera_types::{Atom, EnumType, Error, Result, SqlState};

use crate::statement::Statement;

/// `CREATE TYPE name AS …`.
#[derive(Debug, Clone)]
pub struct CreateType {
    /// The name.
    pub name: String,
    /// What it stands for.
    pub atom: Atom,
    /// Whether to replace an existing one.
    pub or_replace: bool,
    /// Whether to do nothing if one exists.
    pub if_not_exists: bool,
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
    let labeled = |labels| EnumType::new(name, labels).map(|labels| Atom::Enum(Arc::new(labels)));
    let atom = match body {
        TypeBody::Labels(labels) => {
            labeled(labels.iter().map(|label| label.as_str().into()).collect())?
        }
        TypeBody::LabelsOf(query) => labeled(labels_of(name, query, context)?)?,
        TypeBody::Type(data_type) => context.type_of(data_type)?,
    };
    let (name, or_replace, if_not_exists) = (name.clone(), *or_replace, *if_not_exists);
    Ok(Statement::CreateType(Box::new(CreateType { name, atom, or_replace, if_not_exists })))
}

/// Runs a query for the labels of an enum.
fn labels_of(name: &str, query: &Query, context: &PlanContext<'_>) -> Result<Vec<Arc<str>>> {
    let Some(texts) = context.texts_of(query)? else {
        return Err(Error::semantic(format!(
            "cannot create type {name}: its query must have one column of text"
        ))
        .with_state(SqlState::DATATYPE_MISMATCH));
    };
    let label = |text: Option<Arc<str>>| {
        text.ok_or_else(|| {
            Error::data(format!("a label of enum {name} is NULL; remove it with WHERE"))
        })
    };
    texts.into_iter().map(label).collect()
}
