//! The schema of a Parquet file: as tuples, and as the schema passed to the Arrow reader.
//!
//! The Arrow reader is passed other types than its own choice where that would lose information:
//! intervals are read as bytes (the reader would drop the months), strings as views (which do not
//! limit the bytes of a column), enums as strings, UUIDs as bytes (converted later), and
//! old 96-bit timestamps in microseconds, which can represent every year. A column of an unknown
//! type does not prevent reading the others.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{
    DataType, Field, FieldRef, Fields, Schema, TimeUnit, UnionFields, UnionMode,
};
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::arrow::{
    ARROW_SCHEMA_META_KEY, ProjectionMask, parquet_to_arrow_schema,
    parquet_to_arrow_schema_by_columns,
};
use parquet::basic::{
    ConvertedType, LogicalType, Repetition, TimeUnit as UnitOfFile, Type as PhysicalType,
};
use parquet::file::metadata::{FileMetaData, KeyValue, ParquetMetaData, ParquetMetaDataBuilder};
use parquet::schema::types::{SchemaDescriptor, Type, TypePtr};

use tessera_types::Tuple;

use crate::file::uuids::{STORED, as_uuid};
use crate::file::{readable_tuple, with_types};

/// How the columns of a file are read.
#[derive(Debug)]
pub(super) struct ReadSchema {
    /// The metadata passed to the Arrow reader.
    pub(super) arrow: ArrowReaderMetadata,
    /// The root columns.
    pub(super) tuple: Tuple,
    /// The reasons why root columns are unreadable.
    pub(super) unreadable: HashMap<usize, String>,
}

impl ReadSchema {
    /// Derives the types of a file. Errors are texts; the caller adds the file.
    pub(super) fn of(parquet: &Arc<ParquetMetaData>) -> Result<ReadSchema, String> {
        let file = parquet.file_metadata();
        let (descriptor, hints) = (file.schema_descr(), file.key_value_metadata());
        let mut unreadable = HashMap::new();
        let (types, hinted) = match parquet_to_arrow_schema(descriptor, hints) {
            Ok(types) => (types, true),
            // The Arrow schema that a writer may embed is a hint, which may be wrong.
            Err(_) => match parquet_to_arrow_schema(descriptor, None) {
                Ok(types) => (types, false),
                Err(_) => (one_by_one(descriptor, &mut unreadable)?, false),
            },
        };
        let is_arrow = |hint: &KeyValue| hint.key == ARROW_SCHEMA_META_KEY;
        let knows_unit = hinted && hints.is_some_and(|hints| hints.iter().any(is_arrow));
        let types = with_meanings(&types, descriptor, knows_unit);
        let seen = with_uuids(&types, descriptor);
        for (root, field) in types.fields().iter().enumerate() {
            if let Err(error) = tessera_types::Atom::from_arrow(field.data_type()) {
                unreadable.insert(root, error.message().to_string());
            }
        }
        let stored = match reader_schema(descriptor, &unreadable) {
            Some(root) => Arc::new(with_schema(parquet, root, hinted)),
            None if hinted => parquet.clone(),
            None => Arc::new(with_schema(parquet, descriptor.root_schema_ptr(), false)),
        };
        let text = |error: parquet::errors::ParquetError| error.to_string();
        let plain = ArrowReaderMetadata::try_new(stored.clone(), ArrowReaderOptions::new())
            .map_err(text)?;
        let meanings = with_meanings(plain.schema(), descriptor, knows_unit);
        let views = Schema::new(meanings.fields().iter().map(with_views).collect::<Fields>());
        let options = ArrowReaderOptions::new().with_schema(Arc::new(views));
        let arrow = ArrowReaderMetadata::try_new(stored, options).unwrap_or(plain);
        Ok(ReadSchema { arrow, tuple: readable_tuple(&seen), unreadable })
    }
}

/// Returns the Arrow types of the root columns, each converted by itself. A column without one
/// becomes a union, which is never read.
fn one_by_one(
    descriptor: &SchemaDescriptor,
    unreadable: &mut HashMap<usize, String>,
) -> Result<Schema, String> {
    let roots = descriptor.root_schema().get_fields();
    let fields = roots.iter().enumerate().map(|(root, column)| {
        let mask = ProjectionMask::roots(descriptor, [root]);
        match parquet_to_arrow_schema_by_columns(descriptor, mask, None) {
            Ok(schema) if schema.fields().len() == 1 => schema.field(0).clone(),
            other => {
                let reason =
                    other.err().map_or("it has no values".to_string(), |error| error.to_string());
                unreadable.insert(root, reason);
                let none = DataType::Union(UnionFields::empty(), UnionMode::Sparse);
                Field::new(column.name(), none, true)
            }
        }
    });
    Ok(Schema::new(fields.collect::<Vec<_>>()))
}

/// Restores the types of leaves that the Arrow reader does not recognize: enums (bytes), and 96-bit
/// timestamps (nanoseconds) if no embedded Arrow schema has their unit.
fn with_meanings(types: &Schema, descriptor: &SchemaDescriptor, knows_unit: bool) -> Schema {
    with_leaves(types, descriptor, &|leaf, field| {
        let meaning = meaning(leaf, field.data_type(), knows_unit)?;
        Some(field.as_ref().clone().with_data_type(meaning))
    })
}

/// Gives UUIDs the extension type of Arrow.
fn with_uuids(types: &Schema, descriptor: &SchemaDescriptor) -> Schema {
    with_leaves(types, descriptor, &|leaf, field| {
        let is_uuid = leaf.get_basic_info().logical_type_ref() == Some(&LogicalType::Uuid)
            && *field.data_type() == STORED;
        is_uuid.then(|| as_uuid(field))
    })
}

/// Replaces the fields of leaves for which `other` returns one.
fn with_leaves(
    types: &Schema,
    descriptor: &SchemaDescriptor,
    other: &dyn Fn(&Type, &FieldRef) -> Option<Field>,
) -> Schema {
    let mut leaves = vec![Vec::new(); types.fields().len()];
    for leaf in 0..descriptor.num_columns() {
        if let Some(leaves) = leaves.get_mut(descriptor.get_column_root_idx(leaf)) {
            leaves.push(descriptor.column(leaf).self_type_ptr());
        }
    }
    let fields = types.fields().iter().zip(leaves);
    let fields = fields.map(|(field, leaves)| with_leaf(field, &mut leaves.into_iter(), other));
    Schema::new(fields.collect::<Fields>())
}

/// Like [`with_leaves`], for one field; `leaves` are its leaves in order.
fn with_leaf(
    field: &FieldRef,
    leaves: &mut dyn Iterator<Item = TypePtr>,
    other: &dyn Fn(&Type, &FieldRef) -> Option<Field>,
) -> FieldRef {
    let mut inner = |field: &FieldRef| with_leaf(field, leaves, other);
    let data_type = match field.data_type() {
        DataType::List(item) => DataType::List(inner(item)),
        DataType::LargeList(item) => DataType::LargeList(inner(item)),
        // The reader would allocate any length that the embedded Arrow schema claims.
        DataType::FixedSizeList(item, _) => DataType::List(inner(item)),
        DataType::Map(entries, ordered) => DataType::Map(inner(entries), *ordered),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(inner).collect()),
        _ => {
            let other = leaves.next().and_then(|leaf| other(&leaf, field));
            return other.map_or_else(|| field.clone(), Arc::new);
        }
    };
    Arc::new(field.as_ref().clone().with_data_type(data_type))
}

/// Returns the type of a leaf that is read as `data_type`, if it is more specific.
fn meaning(leaf: &Type, data_type: &DataType, knows_unit: bool) -> Option<DataType> {
    match data_type {
        DataType::Binary if is_enum(leaf) => Some(DataType::Utf8),
        DataType::Timestamp(TimeUnit::Nanosecond, None)
            if !knows_unit && leaf.get_physical_type() == PhysicalType::INT96 =>
        {
            Some(DataType::Timestamp(TimeUnit::Microsecond, None))
        }
        // A conflicting embedded Arrow schema is wrong, but the reader would use it.
        DataType::Timestamp(_, zone) if counts_nanoseconds(leaf) => {
            Some(DataType::Timestamp(TimeUnit::Nanosecond, zone.clone()))
        }
        _ => None,
    }
}

fn counts_nanoseconds(leaf: &Type) -> bool {
    match leaf.get_basic_info().logical_type_ref() {
        Some(LogicalType::Timestamp(timestamp)) => timestamp.unit == UnitOfFile::NANOS,
        _ => false,
    }
}

fn is_enum(leaf: &Type) -> bool {
    let info = leaf.get_basic_info();
    info.converted_type() == ConvertedType::ENUM
        || info.logical_type_ref() == Some(&LogicalType::Enum)
}

/// Returns the root of the schema passed to the Arrow reader; `None` if it is the file's own.
fn reader_schema(
    descriptor: &SchemaDescriptor,
    unreadable: &HashMap<usize, String>,
) -> Option<TypePtr> {
    let root = descriptor.root_schema();
    let mut changed = false;
    let mut fields = Vec::with_capacity(root.get_fields().len());
    for (position, field) in root.get_fields().iter().enumerate() {
        let stored = reader_type(field, unreadable.contains_key(&position));
        changed |= stored.is_some();
        fields.push(stored.unwrap_or_else(|| field.clone()));
    }
    let root = Type::group_type_builder(root.name()).with_fields(fields).build();
    root.ok().filter(|_| changed).map(Arc::new)
}

/// Returns the type of a column passed to the Arrow reader, if it differs: without the logical type
/// for an interval or if `bare`, a string for an enum.
fn reader_type(column: &TypePtr, bare: bool) -> Option<TypePtr> {
    let info = column.get_basic_info();
    let id = info.has_id().then(|| info.id());
    let repetition = if info.has_repetition() { info.repetition() } else { Repetition::REQUIRED };
    match &**column {
        Type::PrimitiveType { physical_type, type_length, .. } => {
            let annotated =
                info.converted_type() != ConvertedType::NONE || info.logical_type_ref().is_some();
            let interval = info.converted_type() == ConvertedType::INTERVAL;
            let string = is_enum(column) && *physical_type == PhysicalType::BYTE_ARRAY && !bare;
            if !(interval || string || bare && annotated) {
                return None;
            }
            let meaning = if string { ConvertedType::UTF8 } else { ConvertedType::NONE };
            let stored = Type::primitive_type_builder(column.name(), *physical_type)
                .with_repetition(repetition)
                .with_length(*type_length)
                .with_converted_type(meaning)
                .with_id(id);
            stored.build().ok().map(Arc::new)
        }
        Type::GroupType { fields, .. } => {
            let stored: Vec<Option<TypePtr>> =
                fields.iter().map(|field| reader_type(field, bare)).collect();
            if stored.iter().all(Option::is_none) && !bare {
                return None;
            }
            let fields = stored
                .into_iter()
                .zip(fields)
                .map(|(stored, field)| stored.unwrap_or(field.clone()));
            let mut group = Type::group_type_builder(column.name())
                .with_repetition(repetition)
                .with_fields(fields.collect())
                .with_id(id);
            if !bare {
                group = group
                    .with_converted_type(info.converted_type())
                    .with_logical_type(info.logical_type_ref().cloned());
            }
            group.build().ok().map(Arc::new)
        }
    }
}

/// Replaces the schema of a file by one with the same leaves.
fn with_schema(parquet: &ParquetMetaData, root: TypePtr, hinted: bool) -> ParquetMetaData {
    let file = parquet.file_metadata();
    let hints: Option<Vec<KeyValue>> = file.key_value_metadata().filter(|_| hinted).cloned();
    let stored = FileMetaData::new(
        file.version(),
        file.num_rows(),
        file.created_by().map(str::to_string),
        hints,
        Arc::new(SchemaDescriptor::new(root)),
        file.column_orders().cloned(),
    );
    ParquetMetaDataBuilder::new(stored)
        .set_row_groups(parquet.row_groups().to_vec())
        .set_column_index(parquet.column_index().cloned())
        .set_offset_index(parquet.offset_index().cloned())
        .build()
}

/// Replaces strings and bytes by views.
fn with_views(field: &FieldRef) -> FieldRef {
    let view = |data_type: &DataType| match data_type {
        DataType::Utf8 | DataType::LargeUtf8 => Some(DataType::Utf8View),
        DataType::Binary | DataType::LargeBinary => Some(DataType::BinaryView),
        _ => None,
    };
    with_types(field, &|field| match field.data_type() {
        DataType::Dictionary(_, values) => view(values),
        data_type => view(data_type),
    })
}
