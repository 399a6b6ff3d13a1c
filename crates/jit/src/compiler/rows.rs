//! Hashes, rows and groups that compiled code writes are those of the vectorised tier and of
//! `docs/layout.md`.

use arrow::array::{ArrayRef, make_array};
use arrow::buffer::Buffer;
use arrow::datatypes::DataType;
use tessera_codegen::{FieldCode, InputCode};
use tessera_vector::Column;
use tessera_vector::hash::hash_columns;

use super::random::{MACHINES, ROWS, Random, input, made};
use super::*;

/// A type whose plain form has values of a machine type.
fn data_type(machine: Machine) -> DataType {
    match machine {
        Machine::Boolean => DataType::Boolean,
        Machine::Float32 => DataType::Float32,
        Machine::Float64 => DataType::Float64,
        Machine::Integer { bits: 8, signed: true } => DataType::Int8,
        Machine::Integer { bits: 16, signed: true } => DataType::Int16,
        Machine::Integer { bits: 32, signed: true } => DataType::Int32,
        Machine::Integer { bits: 64, signed: true } => DataType::Int64,
        Machine::Integer { bits: 8, .. } => DataType::UInt8,
        Machine::Integer { bits: 16, .. } => DataType::UInt16,
        Machine::Integer { bits: 32, .. } => DataType::UInt32,
        Machine::Integer { bits: 64, .. } => DataType::UInt64,
        Machine::Integer { .. } => DataType::Decimal128(38, 0),
    }
}

/// The same values as an array.
fn array(machine: Machine, values: &[u64], validity: Option<&[u8]>) -> ArrayRef {
    let offset = if machine == Machine::Boolean { 3 } else { 0 };
    let mut bytes = Buffer::from_slice_ref(values);
    if offset > 0 {
        // Booleans begin in the middle of a byte; an array has one beginning for values and
        // validity.
        let bits = (0..ROWS).map(|at| bytes[(at + offset) / 8] >> ((at + offset) % 8) & 1 == 1);
        bytes = arrow::buffer::BooleanBuffer::from_iter(bits).into_inner();
    }
    let mut data = arrow::array::ArrayData::builder(data_type(machine)).len(ROWS).add_buffer(bytes);
    data = data.null_bit_buffer(validity.map(Buffer::from_slice_ref));
    make_array(data.align_buffers(true).build().unwrap())
}

/// The bytes of one value; none where it is NULL.
fn value(machine: Machine, column: &Column, at: usize) -> Option<Vec<u8>> {
    let array = column.plain().unwrap();
    let (width, data) = (machine.bytes(), array.to_data());
    array.is_valid(at).then(|| match machine {
        Machine::Boolean => {
            let bit = data.offset() + at;
            vec![data.buffers()[0][bit / 8] >> (bit % 8) & 1]
        }
        _ => data.buffers()[0][at * width..][..width].to_vec(),
    })
}

/// The least number of bytes before the end of a row that its hash takes.
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
        // Some of the inputs, in any order.
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
            let hash =
                made(&host, (Piece::Hash(HashCode { keys: codes.clone() }), Given::default()));
            let (mut all, mut some) = (vec![0; ROWS], vec![7; ROWS]);
            // SAFETY: inputs with values and validity for all positions, and room for a hash of
            // each.
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

/// Writes all fields behind a hash's place and two bytes of validity, and reads them again; gives
/// how many were NULL.
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
            // Of sixteen fields, every second.
            FieldCode { number: number * 2, offset }
        })
        .collect();
    let stride = end.next_multiple_of(8);
    let validity = Some((HASH_BYTES, VALIDITY));
    let code = WriteCode { inputs: codes.to_vec(), fields: fields.clone(), validity, stride };
    let write = made(host, (Piece::Write(code), Given::default()));
    let mut rows = vec![0x55u8; stride * (positions.len() + 1)];
    let mut nulls = [0u64];
    // SAFETY: inputs with values and validity for all positions, room for as many rows, and bits
    // for sixteen fields.
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
    assert!(rows[stride * positions.len()..].iter().all(|byte| *byte == 0x55), "no row more");
    let (mut expected_nulls, mut count) = (0, 0);
    for (position, row) in positions.iter().zip(rows.chunks(stride)) {
        assert_eq!(row[..HASH_BYTES], [0x55; HASH_BYTES], "nobody gave a hash");
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

/// Groups tuples that come once or twice, of a table in which some are from before; all numbers of
/// groups are those of a plain map.
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
                Machine::Float32 => {
                    canonical(f32::from_le_bytes(word[..4].try_into().unwrap()).into())
                }
                Machine::Float64 => canonical(f64::from_le_bytes(word[..8].try_into().unwrap())),
                _ => u128::from_le_bytes(word),
            })
        });
        words.collect::<Vec<_>>()
    };
    let find = made(
        host,
        (Piece::Group(GroupCode { keys: codes.to_vec(), offsets, stride }), Given::default()),
    );
    let (mut slots, mut records) = (vec![0u64; SLOTS], vec![0x55u64; stride * ROWS]);
    // Hashes of which a few bits have been used; slots are chosen by the others.
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
        // SAFETY: inputs with values and validity for all positions, a table with room for all
        // tuples, and a number for each.
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
    assert!(records[stride * expected.len()..].iter().all(|word| *word == 0x55), "no record more");
}

/// One number for all that are equal: those that are not numbers, and both zeros.
fn canonical(number: f64) -> u128 {
    let number = if number.is_nan() { f64::NAN } else { number + 0.0 };
    number.to_bits().into()
}
