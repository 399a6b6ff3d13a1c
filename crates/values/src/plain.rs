//! Converts Arrow arrays of any form to the plain form of a type.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, IntervalMonthDayNanoArray, ListArray, MapArray, PrimitiveArray,
    StructArray,
};
use arrow::compute::{CastOptions, cast_with_options, take};
use arrow::datatypes::{
    DataType, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, DecimalType, FieldRef,
    Fields, IntervalMonthDayNano, IntervalUnit,
};
use tessera_types::{Atom, Error, Result, UUID_BYTES};

use crate::hidden_values::without_hidden_items;
use crate::uuid;

/// The size of an interval in Parquet: months, days and milliseconds, each an unsigned 32-bit
/// integer.
pub const PARQUET_INTERVAL_BYTES: i32 = 12;

/// Converts an array to the plain form of a type, for scans and results of DataFusion functions.
///
/// # Errors
/// A value does not fit, such as a 256-bit decimal of more than 38 digits or text that is not
/// UTF-8.
pub fn to_plain(array: ArrayRef, atom: &Atom) -> Result<ArrayRef> {
    to_form(array.clone(), &atom.arrow())
        .map_err(|error| error.context(format!("converting {} to {atom}", array.data_type())))
}

/// Casts an array to another Arrow type; returns it unchanged if it has that type.
///
/// Dictionaries are decoded here, because Arrow's casts ignore NULLs among dictionary values.
///
/// # Errors
/// A value does not fit.
pub fn to_form(array: ArrayRef, data_type: &DataType) -> Result<ArrayRef> {
    if array.data_type() == data_type {
        return Ok(array);
    }
    match (array.data_type(), data_type) {
        (DataType::Dictionary(..), DataType::Dictionary(..)) => cast(&array, data_type),
        (DataType::Dictionary(..), _) => {
            let dictionary = array.as_any_dictionary();
            let values = to_form(dictionary.values().clone(), data_type)?;
            Ok(take(&values, dictionary.keys(), None)?)
        }
        (DataType::RunEndEncoded(_, values), _) if values.data_type() != data_type => {
            to_form(cast(&array, values.data_type())?, data_type)
        }
        (DataType::Struct(from), DataType::Struct(to)) if same_names(from, to) => {
            let array = array.as_struct();
            let columns = array.columns().iter().zip(to);
            let columns = columns.map(|(column, field)| to_form(column.clone(), field.data_type()));
            let columns = columns.collect::<Result<Vec<_>>>()?;
            Ok(Arc::new(StructArray::try_new_with_length(
                to.clone(),
                columns,
                array.nulls().cloned(),
                array.len(),
            )?))
        }
        (DataType::Map(..), DataType::Map(entries, ordered)) => {
            map_to_form(&array, entries, *ordered)
        }
        (DataType::List(_), DataType::List(item)) => {
            let lists = match item.is_nullable() {
                true => array.clone(),
                // Hidden items of NULL lists may be NULL even if the item type is not nullable.
                false => without_hidden_items(&array, array.as_list::<i32>().offsets())?,
            };
            let (_, offsets, values, nulls) = lists.as_list::<i32>().clone().into_parts();
            let values = to_form(values, item.data_type())?;
            Ok(Arc::new(ListArray::try_new(item.clone(), offsets, values, nulls)?))
        }
        (
            DataType::LargeList(item)
            | DataType::FixedSizeList(item, _)
            | DataType::ListView(item)
            | DataType::LargeListView(item),
            DataType::List(_),
        ) => {
            let nullable = Arc::new(item.as_ref().clone().with_nullable(true));
            to_form(cast(&array, &DataType::List(nullable))?, data_type)
        }
        (
            DataType::FixedSizeBinary(PARQUET_INTERVAL_BYTES),
            DataType::Interval(IntervalUnit::MonthDayNano),
        ) => parquet_intervals(&array),
        // Other byte arrays are never converted to strings.
        (DataType::FixedSizeBinary(UUID_BYTES), DataType::Utf8View) => {
            uuid::from_fixed_bytes(&array)
        }
        (from, to) if is_decimal(from) && is_decimal(to) => {
            cast(&sound_decimals(&array)?, data_type)
        }
        _ => cast(&array, data_type),
    }
}

fn cast(array: &ArrayRef, data_type: &DataType) -> Result<ArrayRef> {
    let options = CastOptions { safe: false, ..Default::default() };
    cast_with_options(array, data_type, &options).map_err(Error::from)
}

fn is_decimal(data_type: &DataType) -> bool {
    use DataType::{Decimal32, Decimal64, Decimal128, Decimal256};
    matches!(data_type, Decimal32(..) | Decimal64(..) | Decimal128(..) | Decimal256(..))
}

/// Checks that no decimal exceeds its precision and replaces values behind NULLs by zero. Arrow's
/// casts panic on such values, which a file may contain.
fn sound_decimals(array: &ArrayRef) -> Result<ArrayRef> {
    match array.data_type() {
        DataType::Decimal32(precision, _) => sound::<Decimal32Type>(array, *precision),
        DataType::Decimal64(precision, _) => sound::<Decimal64Type>(array, *precision),
        DataType::Decimal128(precision, _) => sound::<Decimal128Type>(array, *precision),
        DataType::Decimal256(precision, _) => sound::<Decimal256Type>(array, *precision),
        _ => Ok(array.clone()),
    }
}

fn sound<T: DecimalType>(array: &ArrayRef, precision: u8) -> Result<ArrayRef> {
    let decimals = array.as_primitive::<T>();
    if decimals.validate_decimal_precision(precision).is_err() {
        return Err(Error::data(format!(
            "a decimal has more than {precision} digits, the precision of its type"
        )));
    }
    if decimals.null_count() == 0 {
        return Ok(array.clone());
    }
    let values = decimals.iter().map(Option::unwrap_or_default).collect::<Vec<_>>();
    let zeroed = PrimitiveArray::<T>::try_new(values.into(), decimals.nulls().cloned())?;
    Ok(Arc::new(zeroed.with_data_type(array.data_type().clone())))
}

fn same_names(from: &Fields, to: &Fields) -> bool {
    from.len() == to.len() && from.iter().zip(to).all(|(from, to)| from.name() == to.name())
}

/// Converts the entries of a map; the names of keys and values are ignored.
fn map_to_form(array: &ArrayRef, entries: &FieldRef, ordered: bool) -> Result<ArrayRef> {
    let (_, offsets, from, nulls, _) = array.as_map().clone().into_parts();
    let DataType::Struct(fields) = entries.data_type() else {
        return Err(Error::internal("a map has no entries field"));
    };
    let columns = from.columns().iter().zip(fields);
    let columns = columns.map(|(column, field)| to_form(column.clone(), field.data_type()));
    let columns = columns.collect::<Result<Vec<_>>>()?;
    let from = StructArray::try_new(fields.clone(), columns, from.nulls().cloned())?;
    Ok(Arc::new(MapArray::try_new(entries.clone(), offsets, from, nulls, ordered)?))
}

fn parquet_intervals(array: &ArrayRef) -> Result<ArrayRef> {
    let array = array.as_fixed_size_binary();
    let part = |bytes: &[u8], at: usize| {
        let bytes = bytes.get(at..).and_then(|rest| rest.first_chunk::<4>());
        bytes
            .map(|bytes| u32::from_le_bytes(*bytes))
            .ok_or_else(|| Error::data("an interval has fewer than 12 bytes"))
    };
    let whole = |number: u32| {
        i32::try_from(number).map_err(|_| {
            Error::data(format!("an interval of {number} months or days is out of range"))
        })
    };
    let interval = |bytes: &[u8]| -> Result<IntervalMonthDayNano> {
        let (months, days) = (whole(part(bytes, 0)?)?, whole(part(bytes, 4)?)?);
        Ok(IntervalMonthDayNano::new(months, days, i64::from(part(bytes, 8)?) * 1_000_000))
    };
    let intervals = array.iter().map(|bytes| bytes.map(interval).transpose());
    Ok(Arc::new(intervals.collect::<Result<IntervalMonthDayNanoArray>>()?))
}

#[cfg(test)]
mod tests {
    use arrow::array::{
        DictionaryArray, FixedSizeBinaryArray, Int8Array, Int64Array, StringArray, UInt16Array,
    };
    use arrow::buffer::{NullBuffer, OffsetBuffer};
    use arrow::datatypes::{Field, Int8Type, UInt16Type};

    use super::*;

    fn texts(array: &ArrayRef) -> Vec<Option<String>> {
        array.as_string_view().iter().map(|text| text.map(str::to_string)).collect()
    }

    fn some(texts: &[Option<&str>]) -> Vec<Option<String>> {
        texts.iter().map(|text| text.map(str::to_string)).collect()
    }

    /// Keys 0, 1, NULL, 0 of a dictionary with the values 'a' and NULL.
    fn dictionary() -> ArrayRef {
        let values: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None]));
        let keys = Int8Array::from(vec![Some(0), Some(1), None, Some(0)]);
        Arc::new(DictionaryArray::<Int8Type>::try_new(keys, values).unwrap())
    }

    #[test]
    fn a_null_among_a_dictionarys_values_is_null() {
        let plain = to_plain(dictionary(), &Atom::String).unwrap();
        let expected = some(&[Some("a"), None, None, Some("a")]);
        assert_eq!(texts(&plain), expected);
        // A dictionary of dictionaries.
        let keys = UInt16Array::from(vec![Some(3), Some(1), None]);
        let outer = DictionaryArray::<UInt16Type>::try_new(keys, dictionary()).unwrap();
        let plain = to_plain(Arc::new(outer), &Atom::String).unwrap();
        assert_eq!(texts(&plain), some(&[Some("a"), None, None]));
    }

    #[test]
    fn nulls_of_dictionaries_inside_lists_structs_and_maps() {
        let expected = some(&[Some("a"), None, None, Some("a")]);
        let dictionary = dictionary();
        let item = Arc::new(Field::new("x", dictionary.data_type().clone(), true));
        let lists = ListArray::try_new(
            item.clone(),
            OffsetBuffer::from_lengths([3, 0, 1]),
            dictionary.clone(),
            None,
        );
        let atom: Atom = Atom::from_arrow(lists.as_ref().unwrap().data_type()).unwrap();
        let plain = to_plain(Arc::new(lists.unwrap()), &atom).unwrap();
        assert_eq!(texts(plain.as_list::<i32>().values()), expected);

        let fields = Fields::from(vec![item]);
        let nulls = Some(NullBuffer::from(vec![true, true, true, false]));
        let structs = StructArray::try_new(fields, vec![dictionary.clone()], nulls).unwrap();
        let atom = Atom::from_arrow(structs.data_type()).unwrap();
        let plain = to_plain(Arc::new(structs), &atom).unwrap();
        assert_eq!(texts(plain.as_struct().column(0)), expected);
        assert!(plain.is_null(3) && plain.is_valid(0));

        let keys: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3, 4]));
        let fields = Fields::from(vec![
            Field::new("k", DataType::Int64, false),
            Field::new("v", dictionary.data_type().clone(), true),
        ]);
        let entries = StructArray::try_new(fields.clone(), vec![keys, dictionary], None).unwrap();
        let field = Arc::new(Field::new("e", DataType::Struct(fields), false));
        let map = MapArray::try_new(field, OffsetBuffer::from_lengths([4]), entries, None, false)
            .unwrap();
        let atom = Atom::from_arrow(map.data_type()).unwrap();
        let plain = to_plain(Arc::new(map), &atom).unwrap();
        assert_eq!(texts(plain.as_map().values()), expected);
    }

    #[test]
    fn decimals_of_more_digits_than_their_type_has() {
        let decimals = |nulls: Vec<bool>| -> ArrayRef {
            let values = vec![1_i128, i128::MAX, 999];
            let array =
                PrimitiveArray::<Decimal128Type>::new(values.into(), Some(NullBuffer::from(nulls)));
            Arc::new(array.with_precision_and_scale(3, 1).unwrap())
        };
        let plain = to_plain(decimals(vec![true, false, true]), &Atom::Decimal(3, 1)).unwrap();
        let plain = plain.as_primitive::<Decimal64Type>();
        assert_eq!(plain.iter().collect::<Vec<_>>(), [Some(1), None, Some(999)]);
        let error = to_plain(decimals(vec![true, true, true]), &Atom::Decimal(3, 1)).unwrap_err();
        assert!(error.message().contains("more than 3 digits"), "{error}");
    }

    #[test]
    fn dictionaries_of_structs() {
        let dictionary = dictionary();
        let fields = Fields::from(vec![Field::new("x", dictionary.data_type().clone(), true)]);
        let nulls = Some(NullBuffer::from(vec![true, false, true, true]));
        let values: ArrayRef =
            Arc::new(StructArray::try_new(fields, vec![dictionary], nulls).unwrap());
        let keys = Int8Array::from(vec![Some(1), Some(0), Some(2), None]);
        let array: ArrayRef = Arc::new(DictionaryArray::<Int8Type>::try_new(keys, values).unwrap());
        let atom = Atom::from_arrow(array.data_type()).unwrap();
        let plain = to_plain(array, &atom).unwrap();
        let nulls: Vec<bool> = (0..4).map(|row| plain.is_null(row)).collect();
        assert_eq!(nulls, [true, false, false, true]);
        let inner = plain.as_struct().column(0);
        assert!(inner.is_valid(1) && inner.is_null(2));
    }

    #[test]
    fn intervals_of_parquet_keep_their_months() {
        let bytes = |months: u32, days: u32, milliseconds: u32| {
            [months, days, milliseconds].map(u32::to_le_bytes).concat()
        };
        let values = [Some(bytes(13, 2, 1_500)), None, Some(bytes(0, 0, u32::MAX))];
        let array: ArrayRef = Arc::new(
            FixedSizeBinaryArray::try_from_sparse_iter_with_size(values.into_iter(), 12).unwrap(),
        );
        let plain = to_plain(array, &Atom::Interval).unwrap();
        let plain = plain.as_primitive::<arrow::datatypes::IntervalMonthDayNanoType>();
        assert_eq!(plain.value(0), IntervalMonthDayNano::new(13, 2, 1_500_000_000));
        assert!(plain.is_null(1));
        assert_eq!(plain.value(2), IntervalMonthDayNano::new(0, 0, 4_294_967_295_000_000));
        let far = [Some(bytes(1 << 31, 0, 0))];
        let array: ArrayRef = Arc::new(
            FixedSizeBinaryArray::try_from_sparse_iter_with_size(far.into_iter(), 12).unwrap(),
        );
        assert!(to_plain(array, &Atom::Interval).is_err());
    }
}
