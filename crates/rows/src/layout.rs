//! The layout of a tuple's row.

use std::sync::Arc;

use arrow::datatypes::DataType;

use tessera_types::{Item, Result, Tuple};
use tessera_vector::physical::Physical;

use super::packing::Packed;

/// The offset of a row's hash.
pub const HASH_OFFSET: usize = 0;
/// The offset of validity bits in a row with a hash: bit `i % 8` of byte `i / 8` is set when field
/// `i` is not NULL.
const VALIDITY_OFFSET: usize = 8;

/// The stored form of a field.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// A value in place.
    Value(Physical, DataType),
    /// A value in some bits of a word.
    Packed(Packed),
    /// A list, struct or map encoded as bytes, stored like a string: only in rows to be sent.
    Encoded(DataType),
    /// A collection: index of the side store and position in it, 32 bits each.
    Handle,
}

/// One field of a row.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldLayout {
    pub kind: Kind,
    pub offset: usize,
}

/// The layout of a tuple's row.
#[derive(Debug, Clone, PartialEq)]
pub struct RowLayout {
    tuple: Tuple,
    /// The layouts of the fields, in the order of the tuple.
    pub fields: Vec<FieldLayout>,
    states: Vec<usize>,
    stride_bytes: usize,
    /// Whether a row begins with its hash, and the offset of its validity bits, if it has any.
    hashed: bool,
    validity: Option<usize>,
}

impl FieldLayout {
    pub fn width_bytes(&self) -> usize {
        match &self.kind {
            Kind::Value(physical, _) => physical.width_bytes(),
            Kind::Packed(_) | Kind::Handle => 8,
            Kind::Encoded(_) => 16,
        }
    }

    /// Returns whether the field is a view of bytes, whose long ones are in a heap.
    pub fn in_heap(&self) -> bool {
        matches!(self.kind, Kind::Value(Physical::View, _) | Kind::Encoded(_))
    }

    /// Returns whether the field refers to a value in a side store.
    pub fn in_sides(&self) -> bool {
        matches!(self.kind, Kind::Value(Physical::Nested, _) | Kind::Handle)
    }
}

impl RowLayout {
    /// Returns the layout of `tuple`, with validity bits if some field can be NULL.
    ///
    /// # Errors
    /// An atom without plain form: an internal error.
    pub fn new(tuple: &Tuple) -> Result<Arc<RowLayout>> {
        RowLayout::with_states(tuple, &[])
    }

    /// Returns the layout of `tuple` for rows to be sent: without a hash, and with all values in
    /// the row or in a heap.
    ///
    /// # Errors
    /// As [`RowLayout::new`].
    pub fn bare(tuple: &Tuple) -> Result<Arc<RowLayout>> {
        RowLayout::starting(tuple, &[], (false, true))
    }

    /// Returns the layout of `tuple` without a hash: for rows that are never looked up.
    ///
    /// # Errors
    /// As [`RowLayout::new`].
    pub fn unhashed(tuple: &Tuple) -> Result<Arc<RowLayout>> {
        RowLayout::starting(tuple, &[], (false, false))
    }

    /// Returns the layout of `tuple`, followed by state fields of these widths in bytes, zero in a
    /// new row.
    ///
    /// # Errors
    /// As [`RowLayout::new`].
    pub fn with_states(tuple: &Tuple, state_widths: &[usize]) -> Result<Arc<RowLayout>> {
        RowLayout::starting(tuple, state_widths, (true, false))
    }

    fn starting(
        tuple: &Tuple,
        state_widths: &[usize],
        (hashed, encodes): (bool, bool),
    ) -> Result<Arc<RowLayout>> {
        let start = if hashed { VALIDITY_OFFSET } else { 0 };
        let validity = tuple.fields().iter().any(|field| field.nullable).then_some(start);
        let kinds = tuple
            .fields()
            .iter()
            .map(|field| match &field.item {
                Item::Atom(atom) => {
                    let data_type = atom.arrow();
                    Ok(match Physical::of(&data_type)? {
                        Physical::Nested if encodes => Kind::Encoded(data_type),
                        physical => Kind::Value(physical, data_type),
                    })
                }
                Item::Collection(_) => Ok(Kind::Handle),
            })
            .collect::<Result<Vec<_>>>()?;
        let mut fields: Vec<_> =
            kinds.into_iter().map(|kind| FieldLayout { kind, offset: 0 }).collect();
        let mut end = start + validity.map_or(0, |_| fields.len().div_ceil(8));
        // Narrow fields first: they fill the space beside the validity bits.
        for width in [0, 1, 2, 4, 8, 16] {
            for field in fields.iter_mut().filter(|field| field.width_bytes() == width) {
                end = end.next_multiple_of(width.clamp(1, 8));
                field.offset = end;
                end += width;
            }
        }
        let mut states = Vec::with_capacity(state_widths.len());
        for width in state_widths {
            end = end.next_multiple_of(width.next_power_of_two().clamp(1, 8));
            states.push(end);
            end += width;
        }
        Ok(Arc::new(RowLayout {
            tuple: tuple.clone(),
            fields,
            states,
            // A row without fields has one word, so that rows can be counted.
            stride_bytes: end.next_multiple_of(8).max(8),
            hashed,
            validity,
        }))
    }

    /// Returns the same layout with other offsets for its fields.
    pub(super) fn with_fields(&self, fields: Vec<FieldLayout>, stride_bytes: usize) -> RowLayout {
        RowLayout { fields, stride_bytes, ..self.clone() }
    }

    /// Returns whether every value is entirely in its row: none in a heap, in a side store, or in
    /// part of a word.
    pub(super) fn is_whole(&self) -> bool {
        let is_whole = |field: &FieldLayout| {
            matches!(&field.kind, Kind::Value(..)) && !field.in_heap() && !field.in_sides()
        };
        self.fields.iter().all(is_whole)
    }

    /// Returns the byte offsets, here and there, from which rows of this layout and of `other` are
    /// identical to their ends. Either may have a hash before them. `None` if they differ.
    pub fn alike(&self, other: &RowLayout) -> Option<(usize, usize)> {
        let start = |layout: &RowLayout| if layout.hashed { VALIDITY_OFFSET } else { 0 };
        let (own, others) = (start(self), start(other));
        let same = |(one, other): (&FieldLayout, &FieldLayout)| {
            one.kind == other.kind && one.offset - own == other.offset - others
        };
        let alike = self.fields.len() == other.fields.len()
            && self.fields.iter().zip(&other.fields).all(same)
            && self.validity.map(|at| at - own) == other.validity.map(|at| at - others)
            && self.states.is_empty()
            && other.states.is_empty()
            && self.stride_bytes - own == other.stride_bytes - others;
        alike.then_some((own, others))
    }

    /// Returns whether fields share words.
    pub(super) fn has_packed(&self) -> bool {
        self.fields.iter().any(|field| matches!(field.kind, Kind::Packed(_)))
    }

    /// The tuple type.
    pub fn tuple(&self) -> &Tuple {
        &self.tuple
    }

    /// Bytes from one row to the next: a multiple of 8.
    pub fn stride_bytes(&self) -> usize {
        self.stride_bytes
    }

    /// The offset of a field in its row.
    pub fn field_offset(&self, field: usize) -> usize {
        self.fields[field].offset
    }

    /// Returns whether a row begins with its hash.
    pub fn is_hashed(&self) -> bool {
        self.hashed
    }

    /// The offset of a row's validity bits; `None` if no field can be NULL.
    pub fn validity_offset(&self) -> Option<usize> {
        self.validity
    }

    /// Returns whether there are strings or bytes, whose long ones are in a heap.
    pub fn has_heap(&self) -> bool {
        self.fields.iter().any(FieldLayout::in_heap)
    }

    /// The offset of a state field in its row.
    pub fn state_offset(&self, state: usize) -> usize {
        self.states[state]
    }

    /// The offset of the states, after hash, validity and fields.
    pub fn states_start(&self) -> usize {
        self.states.first().copied().unwrap_or(self.stride_bytes)
    }
}
