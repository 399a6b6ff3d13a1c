//! Texts of numbers and bytes as DuckDB writes them: hexadecimal, binary, base64 and SHA-1.

use tessera_context::interrupt::Every;
use tessera_types::{Atom, Result, SqlState};

use super::bytes::{from_base64, to_base64};
use tessera_values::rowwise::{InputValue, OutputValue, fault, signature, strict};
use tessera_values::types::{Arg, ResolvedCall, expect_arguments, wrong_arguments};

/// Resolves one of the functions.
pub(super) fn resolve(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    match name {
        "hex" => digits(name, args, 4, true),
        "bin" | "to_binary" => digits(name, args, 1, true),
        "to_bin" => digits(name, args, 1, false),
        "to_oct" => digits(name, args, 3, false),
        "unhex" | "from_hex" => {
            let casts = signature(name, args, &[Atom::String])?;
            Ok(strict(Atom::Bytes, args, casts, |arguments| {
                of_hexadecimal(arguments[0].text()).map(OutputValue::Bytes)
            }))
        }
        "to_base64" | "base64" => {
            let casts = signature(name, args, &[Atom::Bytes])?;
            Ok(strict(Atom::String, args, casts, |arguments| {
                Ok(OutputValue::Text(to_base64(arguments[0].bytes()).replace('\n', "")))
            }))
        }
        "from_base64" => {
            let casts = signature(name, args, &[Atom::String])?;
            Ok(strict(Atom::Bytes, args, casts, |arguments| {
                let text = arguments[0].text();
                from_base64(text).map(OutputValue::Bytes).ok_or_else(|| {
                    let message = format!("invalid base64 data in '{text}'");
                    fault(message, SqlState::INVALID_PARAMETER_VALUE)
                })
            }))
        }
        _ => {
            expect_arguments(name, args, 1)?;
            let cast = match args[0].atom {
                Atom::Bytes => Atom::Bytes,
                Atom::String | Atom::Null => Atom::String,
                _ => return Err(wrong_arguments(name, args, "it takes a text or bytes")),
            };
            Ok(strict(Atom::String, args, vec![cast], |arguments| {
                let digest = sha1(arguments[0].bytes());
                Ok(OutputValue::Text(digest.iter().map(|byte| format!("{byte:02x}")).collect()))
            }))
        }
    }
}

/// The digits of a whole number, or (if `texts`) of the bytes of a text; a digit has `bits` bits.
/// A negative number is written as the unsigned number with the same 64 bits.
fn digits(name: &str, args: &[Arg<'_>], bits: u32, texts: bool) -> Result<ResolvedCall> {
    expect_arguments(name, args, 1)?;
    let is_narrow = matches!(args[0].atom, Atom::Int8 | Atom::Int16 | Atom::Int32) && !texts;
    let cast = match args[0].atom {
        atom if atom.is_integer() && *atom != Atom::UInt64 => Atom::Int64,
        Atom::Null => Atom::Int64,
        atom @ (Atom::String | Atom::Bytes) if texts => atom.clone(),
        _ if texts => {
            return Err(wrong_arguments(name, args, "it takes a text, bytes or a whole number"));
        }
        _ => return Err(wrong_arguments(name, args, "it takes a whole number")),
    };
    Ok(strict(Atom::String, args, vec![cast], move |arguments| {
        let every = Every::default();
        Ok(OutputValue::Text(match arguments[0] {
            // PostgreSQL's functions of `integer` write 32 bits.
            InputValue::Whole(number) if is_narrow => of_number(number as u32 as u64, bits),
            InputValue::Whole(number) => of_number(number as u64, bits),
            value => {
                let byte = |byte: &u8| {
                    every.pass();
                    match bits {
                        4 => format!("{byte:02X}"),
                        _ => format!("{byte:08b}"),
                    }
                };
                value.bytes().iter().map(byte).collect()
            }
        }))
    }))
}

fn of_number(number: u64, bits: u32) -> String {
    match bits {
        4 => format!("{number:X}"),
        3 => format!("{number:o}"),
        _ => format!("{number:b}"),
    }
}

/// Bytes of hexadecimal digits; of an odd number of digits, the first one is a byte of its own.
fn of_hexadecimal(text: &str) -> Result<Vec<u8>> {
    let every = Every::default();
    let digits = text.chars().map(|digit| {
        every.pass();
        digit.to_digit(16).map(|digit| digit as u8).ok_or_else(|| {
            let message = format!("invalid hexadecimal digit '{digit}'");
            fault(message, SqlState::INVALID_PARAMETER_VALUE)
        })
    });
    let mut digits = digits.collect::<Result<Vec<u8>>>()?;
    if digits.len() % 2 == 1 {
        digits.insert(0, 0);
    }
    Ok(digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

/// The SHA-1 digest (RFC 3174).
fn sha1(bytes: &[u8]) -> [u8; 20] {
    let mut state = [0x6745_2301u32, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];
    let (blocks, every) = (bytes.chunks_exact(64), Every::default());
    let mut last = blocks.remainder().to_vec();
    for block in blocks {
        every.pass();
        add_block(&mut state, block);
    }
    last.push(0x80);
    while last.len() % 64 != 56 {
        last.push(0);
    }
    last.extend((bytes.len() as u64 * 8).to_be_bytes());
    last.chunks_exact(64).for_each(|block| add_block(&mut state, block));
    let mut digest = [0; 20];
    for (part, word) in digest.chunks_exact_mut(4).zip(state) {
        part.copy_from_slice(&word.to_be_bytes());
    }
    digest
}

fn add_block(state: &mut [u32; 5], block: &[u8]) {
    let mut words = [0u32; 80];
    for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
        *word = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    }
    for at in 16..80 {
        words[at] =
            (words[at - 3] ^ words[at - 8] ^ words[at - 14] ^ words[at - 16]).rotate_left(1);
    }
    let [mut a, mut b, mut c, mut d, mut e] = *state;
    for (at, word) in words.iter().enumerate() {
        let (mixed, constant) = match at {
            0..20 => ((b & c) | (!b & d), 0x5a82_7999u32),
            20..40 => (b ^ c ^ d, 0x6ed9_eba1),
            40..60 => ((b & c) | (b & d) | (c & d), 0x8f1b_bcdc),
            _ => (b ^ c ^ d, 0xca62_c1d6),
        };
        let next = a
            .rotate_left(5)
            .wrapping_add(mixed)
            .wrapping_add(e)
            .wrapping_add(constant)
            .wrapping_add(*word);
        (e, d, c, b, a) = (d, c, b.rotate_left(30), a, next);
    }
    for (word, more) in state.iter_mut().zip([a, b, c, d, e]) {
        *word = word.wrapping_add(more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_rfc_3174() {
        let text =
            |bytes: &[u8]| sha1(bytes).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        assert_eq!(text(b"abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
        assert_eq!(text(b""), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
        let long = b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
        assert_eq!(text(long), "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
        assert_eq!(text(&[b'a'; 1_000_000]), "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
    }

    #[test]
    fn odd_digits_begin_with_one() {
        assert_eq!(of_hexadecimal("4").unwrap(), [4]);
        assert_eq!(of_hexadecimal("0aFf").unwrap(), [10, 255]);
        assert!(of_hexadecimal("zz").is_err());
    }
}
