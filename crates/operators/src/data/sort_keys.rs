//! Sort keys as comparable bytes, for `sort`, `top_k` and `merge`.

use arrow::array::ArrayRef;
use arrow::compute::SortOptions;
use arrow::datatypes::DataType;
use arrow::row::{RowConverter, Rows, SortField};

use tessera_operator::describe::sort_keys;
use tessera_plan::{Node, SortKey};
use tessera_types::{Atom, Error, Result, Tuple};
use tessera_values::canonical::canonical_values;
use tessera_vector::Chunk;

use super::key_decoder::KeyDecoder;

/// Encodes sort keys as bytes that compare in SQL order: strings by their bytes, NaN above all
/// numbers and equal to itself, -0 equal to 0, intervals by length with months of 30 days, NULLs
/// and directions by the parameters of each key.
#[derive(Debug)]
pub(crate) struct KeyEncoder {
    keys: Vec<(usize, SortKey)>,
    converter: RowConverter,
    /// The length of every key, if all have the same.
    fixed_bytes: Option<usize>,
    decoders: Vec<KeyDecoder>,
}

/// Returns the keys of a node; checks that their values can be ordered.
pub(crate) fn checked_keys(node: &Node, tuple: &Tuple) -> Result<Vec<SortKey>> {
    let keys = sort_keys(node, tuple)?;
    sort_fields(tuple, &keys)?;
    Ok(keys.into_iter().map(|(_, key)| key).collect())
}

fn sort_fields(tuple: &Tuple, keys: &[(usize, SortKey)]) -> Result<Vec<SortField>> {
    let field = |(index, key): &(usize, SortKey)| {
        let field = &tuple.fields()[*index];
        let atom =
            field.atom().ok_or_else(|| Error::internal("a sort key that is a collection"))?;
        let options = SortOptions { descending: key.descending, nulls_first: key.nulls_first };
        let form = match atom {
            Atom::Interval => DataType::Decimal128(38, 0),
            _ => atom.arrow(),
        };
        let sorted = SortField::new_with_options(form, options);
        if matches!(atom, Atom::Map(..))
            || !RowConverter::supports_fields(std::slice::from_ref(&sorted))
        {
            return Err(Error::semantic(format!(
                "values of field {field} have no order; sort by another field"
            )));
        }
        Ok(sorted)
    };
    keys.iter().map(field).collect()
}

impl KeyEncoder {
    /// Creates an encoder for the parameter `keys` of a node.
    pub(crate) fn new(node: &Node, tuple: &Tuple) -> Result<Self> {
        KeyEncoder::leading(node, tuple, usize::MAX)
    }

    /// Creates an encoder for the first `count` keys of the parameter `keys` of a node.
    pub(crate) fn leading(node: &Node, tuple: &Tuple, count: usize) -> Result<Self> {
        let mut keys = sort_keys(node, tuple)?;
        keys.truncate(count);
        KeyEncoder::of_keys(keys, tuple)
    }

    /// Creates an encoder for keys, each with the position of its field.
    pub(crate) fn of_keys(keys: Vec<(usize, SortKey)>, tuple: &Tuple) -> Result<Self> {
        let converter = RowConverter::new(sort_fields(tuple, &keys)?)?;
        let mut fixed_bytes = Some(0);
        let mut decoders = Vec::new();
        for (index, key) in &keys {
            let atom = tuple.fields()[*index].atom();
            if let (Some(offset), Some(atom)) = (fixed_bytes, atom) {
                decoders.extend(KeyDecoder::new(*index, offset, atom, key.descending));
            }
            let width = match atom {
                Some(Atom::String | Atom::Bytes | Atom::Bits | Atom::Uuid | Atom::Null) | None => {
                    None
                }
                Some(Atom::Interval) => Some(16),
                Some(atom) => atom.width_bytes(),
            };
            // A validity byte precedes each value.
            fixed_bytes = fixed_bytes.zip(width).map(|(sum, width)| sum + 1 + width);
        }
        Ok(KeyEncoder { keys, converter, fixed_bytes, decoders })
    }

    /// The length of every key, if all have the same.
    pub(crate) fn fixed_bytes(&self) -> Option<usize> {
        self.fixed_bytes
    }

    /// Returns a decoder of a field, if its values can be read from keys.
    pub(crate) fn decoder(&self, field: usize) -> Option<&KeyDecoder> {
        self.decoders.iter().find(|decoder| decoder.field == field)
    }

    /// Copies keys.
    pub(crate) fn selected(&self, keys: &Rows, rows: &[u32]) -> Rows {
        let bytes = rows.iter().map(|row| keys.row(*row as usize).data().len()).sum();
        let mut copy = self.converter.empty_rows(rows.len(), bytes);
        rows.iter().for_each(|row| copy.push(keys.row(*row as usize)));
        copy
    }

    /// The first key's field.
    pub(crate) fn first_field(&self) -> usize {
        self.keys[0].0
    }

    /// The first key's direction and position of NULLs.
    pub(crate) fn first(&self) -> &SortKey {
        &self.keys[0].1
    }

    /// The first key's values, normalized as for encoding.
    pub(crate) fn first_values(&self, chunk: &Chunk) -> Result<ArrayRef> {
        canonical_values(chunk.column(self.keys[0].0)?.plain()?)
    }

    /// Encodes the keys of the selected tuples.
    pub(crate) fn encode(&self, chunk: &Chunk) -> Result<Rows> {
        let columns =
            self.keys.iter().map(|(index, _)| canonical_values(chunk.column(*index)?.plain()?));
        Ok(self.converter.convert_columns(&columns.collect::<Result<Vec<_>>>()?)?)
    }
}
