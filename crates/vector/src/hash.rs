//! The hash function of tuples: 64 bits, all of good quality.
//!
//! Partitioning uses the top bits, hash tables use the top bits for slots and the bottom bits for
//! tags, and exchanges use any bits. All share this function, so a tuple is hashed only once.
//! Compiled code and other platforms follow the definition in `docs/reference/layout.md`, byte by
//! byte.
//!
//! Each value contributes a 64-bit *word*. Words are folded from left to right into a state that
//! starts as [`SEED`]: `state = fold(state ^ word, MULTIPLIER)`, where `fold(a, b)` is the upper
//! half of the 128-bit product of `a` and `b`, XORed with the lower half. NULL has its own word.
//! Values that are equal in SQL have equal words: `-0.0` and `0.0`, all NaNs, and intervals of the
//! same length. Both sides of a comparison have the same type.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::buffer::ScalarBuffer;
use arrow::datatypes::{Int32Type, UInt32Type};

use tessera_types::{Error, Result};

use crate::chunk::{Chunk, HashFields};
use crate::column::Column;
use crate::physical::{
    Physical, canonical32, canonical64, interval_length, interval_values, raw_values,
};

/// The initial state.
pub const SEED: u64 = 0x243f_6a88_85a3_08d3;
/// The multiplier of the state: of 60,000 random odd numbers, the one with the best worst case. For
/// 4,096 multiples of any power of two, any 12 bits of the hash take at least 2,444 values (random
/// hashes take 2,589, the golden ratio 1,552).
pub const MULTIPLIER: u64 = 0xb3e2_9bff_af0f_8729;
/// The word of NULL.
pub const NULL_WORD: u64 = 0xc2b2_ae3d_27d4_eb4f;

/// XORed into the upper half of a 128-bit value.
pub const WIDE: u64 = 0x8ebc_6af0_9c88_c6e3;

const BYTES_A: u64 = 0xa076_1d64_78bd_642f;
const BYTES_B: u64 = 0xe703_7ed1_a0b4_28db;

/// The upper half of the 128-bit product, XORed with the lower half.
#[inline(always)]
pub fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product >> 64) as u64 ^ product as u64
}

/// Returns the state after adding the word of one more value.
#[inline(always)]
pub fn combine(state: u64, word: u64) -> u64 {
    fold(state ^ word, MULTIPLIER)
}

/// The word of a 128-bit value.
#[inline(always)]
pub fn word_of_wide(value: u128) -> u64 {
    value as u64 ^ fold((value >> 64) as u64 ^ WIDE, MULTIPLIER)
}

/// The word of a string or bytes.
#[inline]
pub fn word_of_bytes(bytes: &[u8]) -> u64 {
    if bytes.len() <= 12 {
        let mut view = [0u8; 16];
        view[..4].copy_from_slice(&(bytes.len() as u32).to_le_bytes());
        view[4..4 + bytes.len()].copy_from_slice(bytes);
        return word_of_short(u128::from_le_bytes(view));
    }
    let mut state = BYTES_A;
    let mut rest = bytes;
    while rest.len() > 16 {
        state = fold(read64(rest) ^ BYTES_B, read64(&rest[8..]) ^ state);
        rest = &rest[16..];
    }
    // The last 16 bytes; for 13 to 15 bytes, the first and last 8. They overlap the loop's input.
    let low = read64(&bytes[bytes.len().saturating_sub(16)..]);
    let high = read64(&bytes[bytes.len() - 8..]);
    fold(low ^ BYTES_B, high ^ state) ^ bytes.len() as u64
}

/// The word of a string of at most 12 bytes, from its 16-byte view.
#[inline(always)]
pub fn word_of_short(view: u128) -> u64 {
    fold(view as u64 ^ BYTES_A, (view >> 64) as u64 ^ BYTES_B)
}

#[inline(always)]
fn read64(bytes: &[u8]) -> u64 {
    let mut word = [0u8; 8];
    word.copy_from_slice(&bytes[..8]);
    u64::from_le_bytes(word)
}

/// Returns the words of all stored tuples if the key is one 64-bit field without NULLs. Callers
/// then compute each hash on the fly with [`hash_of_word`] instead of storing it.
pub fn words_of_key(chunk: &Chunk, fields: &[usize]) -> Option<ScalarBuffer<u64>> {
    let ([field], None) = (fields, hasher(chunk)) else { return None };
    let Column::Plain(array) = &chunk.stored()[*field] else { return None };
    let is_word =
        matches!(Physical::of(array.data_type()), Ok(Physical::Bits64)) && array.null_count() == 0;
    is_word.then(|| raw_values(array))
}

fn hasher(chunk: &Chunk) -> Option<&dyn HashFields> {
    chunk.lazy_tuples().and_then(|tuples| tuples.hasher())
}

/// The hash of a tuple with a single word.
#[inline(always)]
pub fn hash_of_word(word: u64) -> u64 {
    combine(SEED, word)
}

/// Hashes all stored tuples of a chunk by these fields into `out`, replacing its contents.
///
/// # Errors
/// As [`hash_columns`].
pub fn hash_fields(chunk: &Chunk, fields: &[usize], out: &mut Vec<u64>) -> Result<()> {
    if let Some(hasher) = hasher(chunk) {
        return hasher.hash(fields, out);
    }
    let columns: Vec<Column> = fields.iter().map(|field| chunk.stored()[*field].clone()).collect();
    hash_columns(&columns, chunk.rows_stored(), out)
}

/// Hashes tuples, given as columns of `rows` values each, into `out`, replacing its contents.
///
/// Dictionary values are hashed once each if that is less work; a constant is hashed once.
///
/// # Errors
/// A column holds collections, or an array is not in plain form.
pub fn hash_columns(columns: &[Column], rows: usize, out: &mut Vec<u64>) -> Result<()> {
    out.clear();
    out.resize(rows, SEED);
    for column in columns {
        fold_column(column, out)?;
    }
    Ok(())
}

/// Folds the words of a column into the states of the tuples.
pub fn fold_column(column: &Column, states: &mut [u64]) -> Result<()> {
    if column.len() != states.len() {
        return Err(Error::internal("columns of different lengths were hashed together"));
    }
    match column {
        Column::Plain(array) => words(array, Fold(states)),
        Column::Constant(value, _) => {
            let word = words_of(value)?.first().copied().unwrap_or(NULL_WORD);
            states.iter_mut().for_each(|state| *state = combine(*state, word));
            Ok(())
        }
        Column::Dictionary(array) => {
            let dictionary = array.as_any_dictionary();
            if dictionary.values().len() > array.len() {
                return words(&column.plain()?, Fold(states));
            }
            let value_words = words_of(dictionary.values())?;
            let nulls = dictionary.keys().nulls();
            let word = |row: usize, key: usize| match nulls {
                Some(nulls) if nulls.is_null(row) => NULL_WORD,
                _ => value_words.get(key).copied().unwrap_or(NULL_WORD),
            };
            if let Some(array) = array.as_dictionary_opt::<Int32Type>() {
                let keys = array.keys().values();
                for (row, (state, key)) in states.iter_mut().zip(keys.iter()).enumerate() {
                    *state = combine(*state, word(row, *key as usize));
                }
                Ok(())
            } else if let Some(array) = array.as_dictionary_opt::<UInt32Type>() {
                let keys = array.keys().values();
                for (row, (state, key)) in states.iter_mut().zip(keys.iter()).enumerate() {
                    *state = combine(*state, word(row, *key as usize));
                }
                Ok(())
            } else {
                words(&column.plain()?, Fold(states))
            }
        }
        Column::Handles(_) => Err(Error::internal("a column of collections was hashed")),
    }
}

/// Returns the word of each value.
pub fn words_of(array: &ArrayRef) -> Result<Vec<u64>> {
    let mut out = Vec::with_capacity(array.len());
    words(array, Collect(&mut out))?;
    Ok(out)
}

/// A consumer of words in order. Each type's loop is compiled with its consumer inlined.
trait Consumer {
    fn consume(self, words: impl Iterator<Item = u64>);
}

struct Fold<'a>(&'a mut [u64]);
struct Collect<'a>(&'a mut Vec<u64>);

impl Consumer for Fold<'_> {
    fn consume(self, words: impl Iterator<Item = u64>) {
        self.0.iter_mut().zip(words).for_each(|(state, word)| *state = combine(*state, word));
    }
}

impl Consumer for Collect<'_> {
    fn consume(self, words: impl Iterator<Item = u64>) {
        self.0.extend(words);
    }
}

fn with_nulls(array: &ArrayRef, words: impl Iterator<Item = u64>, consumer: impl Consumer) {
    match array.nulls().filter(|nulls| nulls.null_count() > 0) {
        None => consumer.consume(words),
        Some(nulls) => consumer.consume(
            words.zip(nulls.iter()).map(|(word, valid)| if valid { word } else { NULL_WORD }),
        ),
    }
}

fn words(array: &ArrayRef, consumer: impl Consumer) -> Result<()> {
    match Physical::of(array.data_type())? {
        Physical::Null => consumer.consume(std::iter::repeat_n(NULL_WORD, array.len())),
        Physical::Boolean => {
            let values = array.as_boolean().values();
            with_nulls(array, values.iter().map(u64::from), consumer);
        }
        Physical::Bits8 => {
            let values = raw_values::<u8>(array);
            with_nulls(array, values.iter().map(|v| u64::from(*v)), consumer);
        }
        Physical::Bits16 => {
            let values = raw_values::<u16>(array);
            with_nulls(array, values.iter().map(|v| u64::from(*v)), consumer);
        }
        Physical::Bits32 => {
            let values = raw_values::<u32>(array);
            with_nulls(array, values.iter().map(|v| u64::from(*v)), consumer);
        }
        Physical::Bits64 => {
            let values = raw_values::<u64>(array);
            with_nulls(array, values.iter().copied(), consumer);
        }
        Physical::Bits128 => {
            let values = raw_values::<i128>(array);
            with_nulls(array, values.iter().map(|v| word_of_wide(*v as u128)), consumer);
        }
        Physical::Float32 => {
            let values = raw_values::<u32>(array);
            with_nulls(array, values.iter().map(|v| u64::from(canonical32(*v))), consumer);
        }
        Physical::Float64 => {
            let values = raw_values::<u64>(array);
            with_nulls(array, values.iter().map(|v| canonical64(*v)), consumer);
        }
        Physical::Interval => {
            let values = interval_values(array)?;
            with_nulls(
                array,
                values.iter().map(|v| word_of_wide(interval_length(*v) as u128)),
                consumer,
            );
        }
        Physical::View => view_words(array, consumer),
        Physical::Nested => {
            let values = nested_words(array)?;
            with_nulls(array, values.into_iter(), consumer);
        }
    }
    Ok(())
}

fn view_words(array: &ArrayRef, consumer: impl Consumer) {
    let (views, buffers) = match array.as_string_view_opt() {
        Some(strings) => (strings.views(), strings.data_buffers()),
        None => {
            let bytes = array.as_binary_view();
            (bytes.views(), bytes.data_buffers())
        }
    };
    let word = |view: &u128| {
        let len = *view as u32 as usize;
        if len <= 12 {
            return word_of_short(*view);
        }
        let (buffer, offset) = ((*view >> 64) as u32 as usize, (*view >> 96) as u32 as usize);
        // The view of a NULL may point anywhere; its word is not used.
        let bytes = buffers.get(buffer).and_then(|buffer| buffer.get(offset..offset + len));
        bytes.map_or(NULL_WORD, word_of_bytes)
    };
    with_nulls(array, views.iter().map(word), consumer);
}

/// Words of lists, structs and maps: the words of their parts folded in order, for lists and maps
/// after the length.
fn nested_words(array: &ArrayRef) -> Result<Vec<u64>> {
    let list = |offsets: &[i32], words: &[u64]| -> Vec<u64> {
        let word = |pair: &[i32]| {
            let items = words.get(pair[0] as usize..pair[1] as usize).unwrap_or_default();
            items
                .iter()
                .fold(combine(SEED, items.len() as u64), |state, word| combine(state, *word))
        };
        offsets.windows(2).map(word).collect()
    };
    if let Some(array) = array.as_list_opt::<i32>() {
        return Ok(list(array.offsets(), &words_of(array.values())?));
    }
    if let Some(array) = array.as_map_opt() {
        let entries: ArrayRef = std::sync::Arc::new(array.entries().clone());
        return Ok(list(array.offsets(), &words_of(&entries)?));
    }
    let Some(array) = array.as_struct_opt() else {
        return Err(Error::internal(format!(
            "a nested column of Arrow type {}",
            array.data_type()
        )));
    };
    let mut states = vec![SEED; array.len()];
    for column in array.columns() {
        words(column, Fold(&mut states))?;
    }
    Ok(states)
}
