//! The schema of a Parquet file: as tuples, and as the Arrow reader is told to read it.
//!
//! The Arrow reader is told other types than it would choose where its own lose something:
//! intervals are read as their bytes (it would drop the months), strings as views (which have no
//! bound on the bytes of a column), enums as the strings that they are, UUIDs as their bytes (which
//! become texts later), and old timestamps of 96 bits in microseconds, which hold every year. A
//! column whose type it does not know is no reason to refuse the others.

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

use tessera_functions::plain::UUID_BYTES;
use tessera_types::Tuple;

use crate::file::{readable_tuple, with_types};

/// How the columns of a file are read.
#[derive(Debug)]
pub(super) struct Readable {
    /// What the Arrow reader is told.
    pub(super) arrow: ArrowReaderMetadata,
    /// The root columns.
    pub(super) tuple: Tuple,
    /// Why root columns cannot be read, where that is so.
    pub(super) unreadable: HashMap<usize, String>,
}

impl Readable {
    /// Of a file. Errors are texts: the caller names the file.
    pub(super) fn of(parquet: &Arc<ParquetMetaData>) -> Result<Readable, String> {
        let file = parquet.file_metadata();
        let (descriptor, hints) = (file.schema_descr(), file.key_value_metadata());
        let mut unreadable = HashMap::new();
        let (types, hinted) = match parquet_to_arrow_schema(descriptor, hints) {
            Ok(types) => (types, true),
            // The Arrow schema that a writer may leave is a hint, which may be wrong.
            Err(_) => match parquet_to_arrow_schema(descriptor, None) {
                Ok(types) => (types, false),
                Err(_) => (one_by_one(descriptor, &mut unreadable)?, false),
            },
        };
        let is_arrow = |hint: &KeyValue| hint.key == ARROW_SCHEMA_META_KEY;
        let knows_unit = hinted && hints.is_some_and(|hints| hints.iter().any(is_arrow));
        let types = with_meanings(&types, descriptor, knows_unit);
        let seen = with_texts_of_uuids(&types, descriptor);
        for (root, field) in types.fields().iter().enumerate() {
            if let Err(error) = tessera_types::Atom::from_arrow(field.data_type()) {
                unreadable.insert(root, error.message().to_string());
            }
        }
        let told = match told_schema(descriptor, &unreadable) {
            Some(root) => Arc::new(with_schema(parquet, root, hinted)),
            None if hinted => parquet.clone(),
            None => Arc::new(with_schema(parquet, descriptor.root_schema_ptr(), false)),
        };
        let text = |error: parquet::errors::ParquetError| error.to_string();
        let plain =
            ArrowReaderMetadata::try_new(told.clone(), ArrowReaderOptions::new()).map_err(text)?;
        let meanings = with_meanings(plain.schema(), descriptor, knows_unit);
        let views = Schema::new(meanings.fields().iter().map(with_views).collect::<Fields>());
        let options = ArrowReaderOptions::new().with_schema(Arc::new(views));
        let arrow = ArrowReaderMetadata::try_new(told, options).unwrap_or(plain);
        Ok(Readable { arrow, tuple: readable_tuple(&seen), unreadable })
    }
}

/// The Arrow types of the root columns, each by itself; one that has none stands as a union, which
/// nothing reads.
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

/// The types with those leaves changed that the Arrow reader takes for less than they are: enums
/// for bytes, and timestamps of 96 bits for nanoseconds, where no Arrow schema says in what they
/// were counted.
fn with_meanings(types: &Schema, descriptor: &SchemaDescriptor, knows_unit: bool) -> Schema {
    with_leaves(types, descriptor, &|leaf, data_type| meaning(leaf, data_type, knows_unit))
}

/// The types as statements see them: a UUID is a text.
fn with_texts_of_uuids(types: &Schema, descriptor: &SchemaDescriptor) -> Schema {
    with_leaves(types, descriptor, &|leaf, data_type| {
        let is_uuid = leaf.get_basic_info().logical_type_ref() == Some(&LogicalType::Uuid);
        (is_uuid && *data_type == DataType::FixedSizeBinary(UUID_BYTES)).then_some(DataType::Utf8)
    })
}

/// The types with others for some leaves.
fn with_leaves(
    types: &Schema,
    descriptor: &SchemaDescriptor,
    other: &dyn Fn(&Type, &DataType) -> Option<DataType>,
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

/// A field with other types for some of its leaves, which come in order.
fn with_leaf(
    field: &FieldRef,
    leaves: &mut dyn Iterator<Item = TypePtr>,
    other: &dyn Fn(&Type, &DataType) -> Option<DataType>,
) -> FieldRef {
    let mut inner = |field: &FieldRef| with_leaf(field, leaves, other);
    let data_type = match field.data_type() {
        DataType::List(item) => DataType::List(inner(item)),
        DataType::LargeList(item) => DataType::LargeList(inner(item)),
        DataType::FixedSizeList(item, size) => DataType::FixedSizeList(inner(item), *size),
        DataType::Map(entries, ordered) => DataType::Map(inner(entries), *ordered),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(inner).collect()),
        plain => match leaves.next().and_then(|leaf| other(&leaf, plain)) {
            Some(data_type) => data_type,
            None => return field.clone(),
        },
    };
    Arc::new(field.as_ref().clone().with_data_type(data_type))
}

/// What a leaf that is read as `data_type` is, where that is more.
fn meaning(leaf: &Type, data_type: &DataType, knows_unit: bool) -> Option<DataType> {
    match data_type {
        DataType::Binary if is_enum(leaf) => Some(DataType::Utf8),
        DataType::Timestamp(TimeUnit::Nanosecond, None)
            if !knows_unit && leaf.get_physical_type() == PhysicalType::INT96 =>
        {
            Some(DataType::Timestamp(TimeUnit::Microsecond, None))
        }
        // An Arrow schema that says otherwise is wrong: it would be believed.
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

/// The root of the schema that the Arrow reader is told; nothing where that is the file's own.
fn told_schema(
    descriptor: &SchemaDescriptor,
    unreadable: &HashMap<usize, String>,
) -> Option<TypePtr> {
    let root = descriptor.root_schema();
    let mut changed = false;
    let mut fields = Vec::with_capacity(root.get_fields().len());
    for (position, field) in root.get_fields().iter().enumerate() {
        let told = told_type(field, unreadable.contains_key(&position));
        changed |= told.is_some();
        fields.push(told.unwrap_or_else(|| field.clone()));
    }
    let root = Type::group_type_builder(root.name()).with_fields(fields).build();
    root.ok().filter(|_| changed).map(Arc::new)
}

/// The type of a column as it is told, where that is another: without what is said of its meaning
/// where that is an interval's, or where `bare`; a string where it is an enum.
fn told_type(column: &TypePtr, bare: bool) -> Option<TypePtr> {
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
            let told = Type::primitive_type_builder(column.name(), *physical_type)
                .with_repetition(repetition)
                .with_length(*type_length)
                .with_converted_type(meaning)
                .with_id(id);
            told.build().ok().map(Arc::new)
        }
        Type::GroupType { fields, .. } => {
            let told: Vec<Option<TypePtr>> =
                fields.iter().map(|field| told_type(field, bare)).collect();
            if told.iter().all(Option::is_none) && !bare {
                return None;
            }
            let fields =
                told.into_iter().zip(fields).map(|(told, field)| told.unwrap_or(field.clone()));
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

/// The same file with another schema of the same leaves.
fn with_schema(parquet: &ParquetMetaData, root: TypePtr, hinted: bool) -> ParquetMetaData {
    let file = parquet.file_metadata();
    let hints: Option<Vec<KeyValue>> = file.key_value_metadata().filter(|_| hinted).cloned();
    let told = FileMetaData::new(
        file.version(),
        file.num_rows(),
        file.created_by().map(str::to_string),
        hints,
        Arc::new(SchemaDescriptor::new(root)),
        file.column_orders().cloned(),
    );
    ParquetMetaDataBuilder::new(told)
        .set_row_groups(parquet.row_groups().to_vec())
        .set_column_index(parquet.column_index().cloned())
        .set_offset_index(parquet.offset_index().cloned())
        .build()
}

/// The field with strings and bytes as views.
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
