//! Property tests: compiled code writes the same hashes, rows and groups as the vectorized tier and
//! `docs/reference/layout.md`.

use arrow::array::{ArrayRef, make_array};
use arrow::buffer::Buffer;
use arrow::datatypes::DataType;
use tessera_codegen::{FieldCode, InputCode, MachineType, RawGroups, RawInput};
use tessera_vector::Column;
use tessera_vector::hash::hash_columns;

use super::random::{MACHINES, ROWS, Random, compiled_piece, input};
use super::*;
use crate::target::{Host, Processor};

/// Returns an Arrow type with a plain encoding of values of a machine type.
fn data_type(machine: MachineType) -> DataType {
    match machine {
        MachineType::Boolean => DataType::Boolean,
        MachineType::Float32 => DataType::Float32,
        MachineType::Float64 => DataType::Float64,
        MachineType::Integer { bits: 8, signed: true } => DataType::Int8,
        MachineType::Integer { bits: 16, signed: true } => DataType::Int16,
        MachineType::Integer { bits: 32, signed: true } => DataType::Int32,
        MachineType::Integer { bits: 64, signed: true } => DataType::Int64,
        MachineType::Integer { bits: 8, .. } => DataType::UInt8,
        MachineType::Integer { bits: 16, .. } => DataType::UInt16,
        MachineType::Integer { bits: 32, .. } => DataType::UInt32,
        MachineType::Integer { bits: 64, .. } => DataType::UInt64,
        MachineType::Integer { .. } => DataType::Decimal128(38, 0),
    }
}

/// Returns the same values as an Arrow array.
fn array(machine: MachineType, values: &[u64], validity: Option<&[u8]>) -> ArrayRef {
    let offset = if machine == MachineType::Boolean { 3 } else { 0 };
    let mut bytes = Buffer::from_slice_ref(values);
    if offset > 0 {
        // Booleans begin in the middle of a byte; an array has a single offset for values and
        // validity.
        let bits = (0..ROWS).map(|at| bytes[(at + offset) / 8] >> ((at + offset) % 8) & 1 == 1);
        bytes = arrow::buffer::BooleanBuffer::from_iter(bits).into_inner();
    }
    let mut data = arrow::array::ArrayData::builder(data_type(machine)).len(ROWS).add_buffer(bytes);
    data = data.null_bit_buffer(validity.map(Buffer::from_slice_ref));
    make_array(data.align_buffers(true).build().unwrap())
}

/// Returns the bytes of a value; `None` if it is NULL.
fn value(machine: MachineType, column: &Column, at: usize) -> Option<Vec<u8>> {
    let array = column.plain().unwrap();
    let (width, data) = (machine.bytes(), array.to_data());
    array.is_valid(at).then(|| match machine {
        MachineType::Boolean => {
            let bit = data.offset() + at;
            vec![data.buffers()[0][bit / 8] >> (bit % 8) & 1]
        }
        _ => data.buffers()[0][at * width..][..width].to_vec(),
    })
}

/// Bytes of the hash in a row.
const HASH_BYTES: usize = 8;

#[test]
fn hashes_rows_and_groups_are_those_of_the_layout() {
    let hosts = [
        Processor::at_hand().unwrap().clone(),
        Processor::at_hand().unwrap().at_level("x86-64-v2").unwrap(),
    ];
    let mut random = Random(1_125);
    let mut nulls_seen = 0;
    for round in 0..30 {
        let columns = MACHINES.map(|machine| random.values(machine));
        let validity: Vec<u8> = (0..ROWS / 8 + 1).map(|_| random.below(256) as u8 | 0x45).collect();
        let inputs = columns.each_ref().map(|values| input(values, &validity));
        // A random selection and order of the inputs.
        let chosen: Vec<usize> =
            (0..1 + random.below(6)).map(|_| random.below(MACHINES.len())).collect();
        let is_nullable = |at: usize| at % 2 == 1;
        let code = |at: &usize| InputCode::column(MACHINES[*at], is_nullable(*at));
        let codes: Vec<InputCode> = chosen.iter().map(code).collect();
        let raw: Vec<RawInput> = chosen.iter().map(|at| inputs[*at]).collect();
        let arrays: Vec<Column> = chosen
            .iter()
            .map(|at| {
                Column::Plain(array(
                    MACHINES[*at],
                    &columns[*at],
                    is_nullable(*at).then_some(&validity),
                ))
            })
            .collect();
        let mut expected = Vec::new();
        hash_columns(&arrays, ROWS, &mut expected).unwrap();
        let positions: Vec<u32> = (0..ROWS as u32).filter(|at| at % 3 != round % 3).collect();
        for processor in &hosts {
            let host = Host::new(processor).unwrap();
            let hash = compiled_piece(
                &host,
                (Piece::Hash(HashCode { keys: codes.clone() }), RuntimeConstants::default()),
            );
            let (mut all, mut some) = (vec![0; ROWS], vec![7; ROWS]);
            // SAFETY: the inputs have values and validity for all positions, and there is room for
            // all hashes.
            unsafe {
                assert!(HashKeys::run(&hash, &raw, std::ptr::null(), ROWS, all.as_mut_ptr()));
                assert!(HashKeys::run(
                    &hash,
                    &raw,
                    positions.as_ptr(),
                    positions.len(),
                    some.as_mut_ptr()
                ));
            }
            assert_eq!(all, expected, "{codes:?}");
            for at in 0..ROWS {
                assert_eq!(
                    some[at],
                    if positions.contains(&(at as u32)) { expected[at] } else { 7 }
                );
            }
            nulls_seen += rows_are_right(&host, &codes, (&raw, &arrays), &positions);
            groups_are_right(&host, &codes, (&raw, &arrays), &expected);
        }
    }
    assert!(nulls_seen > 1_000, "{nulls_seen}");
}

/// Checks written rows: all fields after the hash and two bytes of validity. Returns the number of
/// NULLs.
fn rows_are_right(
    host: &Host<'_>,
    codes: &[InputCode],
    (raw, arrays): (&[RawInput], &[Column]),
    positions: &[u32],
) -> usize {
    const VALIDITY: usize = 2;
    let mut end = HASH_BYTES + VALIDITY;
    let fields: Vec<FieldCode> = codes
        .iter()
        .enumerate()
        .map(|(number, code)| {
            let width = code.machine.bytes();
            let offset = end.next_multiple_of(width.min(8));
            end = offset + width;
            // Every second of sixteen fields.
            FieldCode { number: number * 2, offset }
        })
        .collect();
    let stride = end.next_multiple_of(8);
    let validity = Some((HASH_BYTES, VALIDITY));
    let code = WriteCode { inputs: codes.to_vec(), fields: fields.clone(), validity, stride };
    let write = compiled_piece(host, (Piece::Write(code), RuntimeConstants::default()));
    let mut rows = vec![0x55u8; stride * (positions.len() + 1)];
    let mut nulls = [0u64];
    // SAFETY: the inputs have values and validity for all positions, and there is room for all rows
    // and for the NULL bits of sixteen fields.
    let done = unsafe {
        WriteRows::run(
            &write,
            raw,
            positions.as_ptr(),
            positions.len(),
            rows.as_mut_ptr(),
            nulls.as_mut_ptr(),
        )
    };
    assert!(done);
    assert!(
        rows[stride * positions.len()..].iter().all(|byte| *byte == 0x55),
        "extra rows are unchanged"
    );
    let (mut expected_nulls, mut count) = (0, 0);
    for (position, row) in positions.iter().zip(rows.chunks(stride)) {
        assert_eq!(row[..HASH_BYTES], [0x55; HASH_BYTES], "the hash is not written");
        let mut bits = u16::MAX;
        for ((field, code), column) in fields.iter().zip(codes).zip(arrays) {
            let Some(value) = value(code.machine, column, *position as usize) else {
                bits &= !(1 << field.number);
                expected_nulls |= 1 << field.number;
                count += 1;
                continue;
            };
            assert_eq!(row[field.offset..][..value.len()], value, "{code:?}");
        }
        assert_eq!(row[HASH_BYTES..][..VALIDITY], bits.to_le_bytes());
    }
    assert_eq!(nulls[0], expected_nulls);
    count
}

/// Checks grouping of tuples that occur once or twice, in a table that already has groups, against
/// a plain map.
fn groups_are_right(
    host: &Host<'_>,
    codes: &[InputCode],
    (raw, arrays): (&[RawInput], &[Column]),
    hashes: &[u64],
) {
    const STATES: usize = 3;
    const SLOTS: usize = 1 << 10;
    let (mut offsets, mut end) = (Vec::new(), 2);
    for code in codes {
        offsets.push(end);
        end += code.machine.bytes().div_ceil(8);
    }
    let stride = end + STATES;
    let key = |at: u32| {
        let words = codes.iter().zip(arrays).map(|(code, column)| {
            let bytes = value(code.machine, column, at as usize)?;
            let mut word = [0; 16];
            word[..bytes.len()].copy_from_slice(&bytes);
            Some(match code.machine {
                MachineType::Float32 => {
                    canonical(f32::from_le_bytes(word[..4].try_into().unwrap()).into())
                }
                MachineType::Float64 => {
                    canonical(f64::from_le_bytes(word[..8].try_into().unwrap()))
                }
                _ => u128::from_le_bytes(word),
            })
        });
        words.collect::<Vec<_>>()
    };
    let find = compiled_piece(
        host,
        (
            Piece::Group(GroupCode { keys: codes.to_vec(), offsets, stride }),
            RuntimeConstants::default(),
        ),
    );
    let (mut slots, mut records) = (vec![0u64; SLOTS], vec![0x55u64; stride * ROWS]);
    // The first bits of the hashes are already used; the following ones select slots.
    let (slots_at, rotation) = (slots.as_mut_ptr(), 6);
    let shift = u64::from(64 - SLOTS.trailing_zeros());
    let mask = SLOTS as u64 - 1;
    let mut table = RawGroups {
        slots: slots_at,
        mask,
        rotation,
        shift,
        records: records.as_mut_ptr(),
        groups: 0,
    };
    let mut expected = std::collections::HashMap::new();
    let some: Vec<u32> =
        (0..ROWS as u32).filter(|at| at % 5 != 0).flat_map(|at| [at, at / 2]).collect();
    let all: Vec<u32> = (0..ROWS as u32).collect();
    for (rows, positions) in [(&some, some.as_ptr()), (&all, std::ptr::null())] {
        let mut groups = vec![u32::MAX; rows.len()];
        // SAFETY: the inputs have values and validity for all positions, and the table and the
        // output have room for all tuples.
        assert!(unsafe {
            FindGroups::run(&find, raw, positions, rows.len(), &mut table, groups.as_mut_ptr())
        });
        for (at, group) in rows.iter().zip(groups) {
            let next = expected.len() as u32;
            assert_eq!(group, *expected.entry(key(*at)).or_insert(next), "{codes:?} at {at}");
            let record = &records[group as usize * stride..][..stride];
            assert_eq!(record[0], hashes[*at as usize]);
            assert_eq!(record[stride - STATES..], [0; STATES], "states begin with zeros");
        }
    }
    assert_eq!(table.groups, expected.len() as u64);
    assert!(
        records[stride * expected.len()..].iter().all(|word| *word == 0x55),
        "extra records are unchanged"
    );
}

/// Maps equal values to one number: all NaNs, and both zeros.
fn canonical(number: f64) -> u128 {
    let number = if number.is_nan() { f64::NAN } else { number + 0.0 };
    number.to_bits().into()
}
