//! UUIDs in Arrow and Parquet files, which store their 16 bytes.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, FixedSizeBinaryBuilder};
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema};
use parquet::basic::LogicalType;
use parquet::errors::ParquetError;
use parquet::schema::types::{SchemaDescriptor, Type, TypePtr};
use tessera_types::{
    Atom, EXTENSION_TYPE_NAME_KEY, Error, Result, Slot, Tuple, UUID_BYTES, UUID_EXTENSION,
};
use tessera_values::uuid::parse;

/// The type of stored UUIDs.
pub(crate) const STORED: DataType = DataType::FixedSizeBinary(UUID_BYTES);

/// Returns a field of 16 bytes as one of UUIDs, which has the extension type of Arrow.
pub(crate) fn as_uuid(field: &Field) -> Field {
    let mut metadata = field.metadata().clone();
    metadata.insert(EXTENSION_TYPE_NAME_KEY.to_string(), UUID_EXTENSION.to_string());
    field.clone().with_metadata(metadata)
}

/// The schema of a written file: the plain one, with the bytes of UUIDs.
///
/// # Errors
/// A field holds a collection.
pub(crate) fn written_schema(tuple: &Tuple) -> Result<Arc<Schema>> {
    let plain = tuple.arrow_schema()?;
    let fields = plain.fields().iter().zip(tuple.fields());
    let fields = fields.map(|(field, of)| of.atom().map_or(field.clone(), |of| stored(field, of)));
    Ok(Arc::new(Schema::new(fields.collect::<Fields>())))
}

fn stored(field: &FieldRef, atom: &Atom) -> FieldRef {
    let all = |fields: &Fields, atoms: &mut dyn Iterator<Item = &Slot>| -> Fields {
        fields.iter().zip(atoms).map(|(field, slot)| stored(field, &slot.atom)).collect()
    };
    let data_type = match (atom, field.data_type()) {
        _ if !atom.has_uuids() => return field.clone(),
        (Atom::Uuid, _) => {
            return Arc::new(as_uuid(&field.as_ref().clone().with_data_type(STORED)));
        }
        (Atom::List(slot), DataType::List(item)) => DataType::List(stored(item, &slot.atom)),
        (Atom::Struct(slots), DataType::Struct(fields)) => {
            DataType::Struct(all(fields, &mut slots.iter().map(|(_, slot)| slot)))
        }
        (Atom::Map(key, value), DataType::Map(entries, ordered)) => match entries.data_type() {
            DataType::Struct(fields) => {
                let fields = all(fields, &mut [&**key, &**value].into_iter());
                let entries = entries.as_ref().clone().with_data_type(DataType::Struct(fields));
                DataType::Map(Arc::new(entries), *ordered)
            }
            _ => return field.clone(),
        },
        _ => return field.clone(),
    };
    Arc::new(field.as_ref().clone().with_data_type(data_type))
}

/// Returns the bytes of UUIDs.
///
/// # Errors
/// The values are not UUIDs.
pub(crate) fn stored_values(uuids: &ArrayRef) -> Result<ArrayRef> {
    let wrong = || Error::internal("a value of a column of UUIDs is none");
    let texts = uuids.as_string_view_opt().ok_or_else(wrong)?;
    let mut bytes = FixedSizeBinaryBuilder::with_capacity(texts.len(), UUID_BYTES);
    for text in texts {
        match text {
            Some(text) => bytes.append_value(parse(text).ok_or_else(wrong)?)?,
            None => bytes.append_null(),
        }
    }
    Ok(Arc::new(bytes.finish()))
}

/// Gives the leaves of a Parquet schema the logical type of UUIDs, where those of the Arrow schema
/// have the extension type.
///
/// # Errors
/// The schema is malformed.
pub(crate) fn with_logical_types(
    types: &SchemaDescriptor,
    schema: &Schema,
) -> Result<SchemaDescriptor, ParquetError> {
    let mut leaves = Vec::new();
    schema.fields().iter().for_each(|field| add_leaves(field, &mut leaves));
    let root = logical(&types.root_schema_ptr(), &mut leaves.into_iter())?;
    Ok(SchemaDescriptor::new(root))
}

/// Adds for each leaf of a field whether it has UUIDs.
fn add_leaves(field: &Field, leaves: &mut Vec<bool>) {
    match field.data_type() {
        DataType::List(item) | DataType::Map(item, _) => add_leaves(item, leaves),
        DataType::Struct(fields) => fields.iter().for_each(|field| add_leaves(field, leaves)),
        _ => leaves.push(field.extension_type_name() == Some(UUID_EXTENSION)),
    }
}

fn logical(
    stored: &TypePtr,
    leaves: &mut dyn Iterator<Item = bool>,
) -> Result<TypePtr, ParquetError> {
    let info = stored.get_basic_info();
    let id = info.has_id().then(|| info.id());
    let changed = match &**stored {
        Type::PrimitiveType { physical_type, type_length, .. } => {
            if leaves.next() != Some(true) {
                return Ok(stored.clone());
            }
            Type::primitive_type_builder(info.name(), *physical_type)
                .with_repetition(info.repetition())
                .with_length(*type_length)
                .with_logical_type(Some(LogicalType::Uuid))
                .with_id(id)
                .build()?
        }
        Type::GroupType { fields, .. } => {
            let fields = fields.iter().map(|field| logical(field, leaves));
            let mut group = Type::group_type_builder(info.name())
                .with_fields(fields.collect::<Result<_, _>>()?)
                .with_converted_type(info.converted_type())
                .with_logical_type(info.logical_type_ref().cloned())
                .with_id(id);
            if info.has_repetition() {
                group = group.with_repetition(info.repetition());
            }
            group.build()?
        }
    };
    Ok(Arc::new(changed))
}
