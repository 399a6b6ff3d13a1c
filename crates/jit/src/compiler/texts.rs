//! Property tests: compiled operations on texts match a plain implementation of SQL.

use arrow::array::{Array, AsArray, StringViewArray, StringViewBuilder, UInt32Array};
use arrow::compute::take;
use inkwell::targets::FileType;
use tessera_codegen::{
    InputCode, InputPlace, LikeCode, MachineType, Op, RawInput, TextCode, ValueCode,
};
use tessera_context::interrupt::within;
use tessera_context::testing::TestContext;
use tessera_types::{Code, Error};

use super::random::{Random, compiled_piece, selected};
use super::*;
use crate::target::{Host, Processor};

const TEXTS: usize = 400;
const PIECES: usize = 150;
/// The machine type of a view.
const VIEW: MachineType = MachineType::Integer { bits: 128, signed: false };

/// Returns a text of few distinct characters, so that patterns often match or almost match; some
/// characters have two or three bytes.
fn text(random: &mut Random, most: usize) -> String {
    let length = random.below(most + 1);
    (0..length).map(|_| random.one(&['a', 'b', 'a', 'b', 'c', 'ä', 'ß', '語'])).collect()
}

fn array(random: &mut Random, has_nulls: bool) -> StringViewArray {
    let mut builder = StringViewBuilder::new().with_fixed_block_size(1 << 10);
    for _ in 0..TEXTS {
        let most = random.one(&[3, 8, 12, 20, 90]);
        match has_nulls && random.below(7) == 0 {
            true => builder.append_null(),
            false => builder.append_value(text(random, most)),
        }
    }
    builder.finish()
}

/// Matches a LIKE pattern by trying each position.
fn is_like(text: &str, pieces: &[&str]) -> bool {
    match pieces {
        [] => text.is_empty(),
        [last] => text == *last,
        [first, rest @ ..] => text.strip_prefix(first).is_some_and(|text| {
            text.char_indices()
                .map(|(at, _)| at)
                .chain([text.len()])
                .any(|at| is_like(&text[at..], rest))
        }),
    }
}

fn part(text: &str, skipped: u64, most: Option<u64>) -> String {
    text.chars().skip(skipped as usize).take(most.unwrap_or(u64::MAX) as usize).collect()
}

/// Returns the code of a text, and its value for each tuple.
fn texts(random: &mut Random, arrays: &[StringViewArray; 2]) -> (TextCode, Vec<Option<String>>) {
    let of = |array: &StringViewArray| array.iter().map(|text| text.map(str::to_string)).collect();
    match random.below(4) {
        0 => {
            let most = random.one(&[2, 12, 30]);
            let constant = match random.below(2) {
                0 => text(random, most),
                // A text of the input.
                _ => arrays[0].value(random.below(TEXTS)).to_string(),
            };
            (TextCode::Constant(constant.as_str().into()), vec![Some(constant); TEXTS])
        }
        1 => {
            let (code, of) = texts(random, arrays);
            let (skipped, most) =
                (random.below(4) as u64, random.one(&[None, Some(0), Some(1), Some(2), Some(15)]));
            let parts = of.iter().map(|text| text.as_ref().map(|text| part(text, skipped, most)));
            let parts = parts.collect();
            (TextCode::Substring { text: Box::new(code), skipped, most }, parts)
        }
        at => (TextCode::Input(at - 2), of(&arrays[at - 2])),
    }
}

/// Returns a condition, and its value for each tuple.
fn condition(random: &mut Random, arrays: &[StringViewArray; 2]) -> (Op, Vec<Option<bool>>) {
    let (one, of_one) = texts(random, arrays);
    if random.below(3) == 0 {
        let (other, of_other) = texts(random, arrays);
        let same = of_one.into_iter().zip(of_other).map(|(one, other)| Some(one? == other?));
        return (Op::TextEquals(Box::new([one, other])), same.collect());
    }
    let mut pieces: Vec<String> = (0..2 + random.below(3)).map(|_| text(random, 3)).collect();
    if random.below(3) == 0 {
        pieces[0].clear();
    }
    let code =
        |piece: &String| (!piece.is_empty()).then(|| TextCode::Constant(piece.as_str().into()));
    let (first, last) = (code(&pieces[0]), pieces.last().and_then(code));
    let middle = pieces[1..pieces.len() - 1].iter().filter_map(code).collect();
    let all: Vec<&str> = pieces.iter().map(String::as_str).collect();
    let like = of_one.into_iter().map(|text| text.map(|text| is_like(&text, &all))).collect();
    (Op::Like(Box::new(LikeCode { text: one, first, middle, last })), like)
}

fn input(array: &StringViewArray, buffers: &[*const u8]) -> RawInput {
    let validity = array.nulls().map_or(std::ptr::null(), |nulls| nulls.buffer().as_ptr());
    let input = RawInput::column(array.views().inner().as_ptr(), validity, (0, 0));
    RawInput { list: buffers.as_ptr().cast(), ..input }
}

#[test]
fn texts_are_compared_as_sql_does() {
    let at_hand = Processor::at_hand().unwrap();
    let (masked, arm) = (at_hand.at_level("x86-64-v2").unwrap(), Processor::arm());
    let hosts = [at_hand, &masked, &arm].map(|processor| Host::new(processor).unwrap());
    let mut random = Random(25);
    let (mut found, mut selective) = (0, 0);
    for _ in 0..PIECES {
        let arrays = [array(&mut random, false), array(&mut random, true)];
        let buffers = arrays.each_ref().map(|array| {
            array
                .data_buffers()
                .iter()
                .map(|buffer| buffer.as_ptr())
                .chain([std::ptr::null()])
                .collect::<Vec<_>>()
        });
        let raw = [input(&arrays[0], &buffers[0]), input(&arrays[1], &buffers[1])];
        let (one, of_one) = condition(&mut random, &arrays);
        let (other, of_other) = condition(&mut random, &arrays);
        let truth = |op| ValueCode { op, machine: MachineType::Boolean, nullable: true };
        let is_or = random.below(2) == 0;
        let both = vec![truth(one), truth(Op::Not(Box::new(truth(other))))];
        let predicate = truth(if is_or { Op::Or(both) } else { Op::And(both) });
        let expected: Vec<u32> = (0..TEXTS)
            .filter(|at| {
                let (one, other) = (of_one[*at] == Some(true), of_other[*at] == Some(false));
                if is_or { one || other } else { one && other }
            })
            .map(|at| at as u32)
            .collect();
        let views =
            |nullable| InputCode { place: InputPlace::Views, ..InputCode::column(VIEW, nullable) };
        let code = SelectCode { inputs: vec![views(false), views(true)], predicate };
        for host in &hosts[..2] {
            let piece = compiled_piece(host, Piece::of_select(code.clone()));
            assert_eq!(selected(&piece, &raw, TEXTS), Some(expected.clone()), "{code:?}");
        }
        let object = emit_piece(&hosts[2], &Piece::of_select(code).0, FileType::Object).unwrap();
        assert!(object.starts_with(b"\x7fELF"));
        found += expected.len();
        selective += usize::from(!expected.is_empty() && expected.len() < TEXTS);
    }
    assert!(
        found > 10 * PIECES && selective * 3 > PIECES,
        "{found} found, {selective} are selective"
    );
}

/// Tests patterns of various lengths at each position of texts around the vector length, with near
/// matches.
#[test]
fn a_piece_is_found_wherever_it_stands() {
    let host = Host::new(Processor::at_hand().unwrap()).unwrap();
    for length in [1, 2, 3, 16, 17, 33] {
        let piece: String = "xyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyz".chars().take(length).collect();
        let mut builder = StringViewBuilder::new();
        let mut rows = 0u32;
        for bytes in length..length + 70 {
            for place in 0..=bytes - length {
                let mut text = vec![piece.as_bytes()[0]; bytes];
                if length > 1 {
                    text[place..place + length].copy_from_slice(piece.as_bytes());
                } else {
                    text.fill(b'q');
                    text[place] = b'x';
                }
                builder.append_value(std::str::from_utf8(&text).unwrap());
                // A near match without the last byte.
                text[place + length - 1] = b'q';
                builder.append_value(std::str::from_utf8(&text).unwrap());
                rows += 2;
            }
        }
        let array = builder.finish();
        let buffers: Vec<*const u8> =
            array.data_buffers().iter().map(|buffer| buffer.as_ptr()).collect();
        let like = LikeCode {
            text: TextCode::Input(0),
            first: None,
            middle: vec![TextCode::Constant(piece.as_str().into())],
            last: None,
        };
        let predicate = ValueCode {
            op: Op::Like(Box::new(like)),
            machine: MachineType::Boolean,
            nullable: false,
        };
        let inputs = vec![InputCode { place: InputPlace::Views, ..InputCode::column(VIEW, false) }];
        let code = compiled_piece(&host, Piece::of_select(SelectCode { inputs, predicate }));
        let found = selected(&code, &[input(&array, &buffers)], rows as usize).unwrap();
        let expected: Vec<u32> =
            (0..rows).filter(|at| array.value(*at as usize).contains(&piece)).collect();
        assert_eq!(found, expected, "{piece}");
        assert!(expected.len() * 3 > rows as usize);
    }
}

/// A loop over long texts stops when its query is cancelled.
#[test]
fn loops_over_texts_end_with_the_query() {
    let host = Host::new(Processor::at_hand().unwrap()).unwrap();
    let (bytes, rows) = (16 << 20, 4_000);
    let one = StringViewArray::from_iter_values(["a".repeat(bytes)]);
    let array =
        take(&one, &UInt32Array::from(vec![0; rows]), None).unwrap().as_string_view().clone();
    let buffers: Vec<*const u8> =
        array.data_buffers().iter().map(|buffer| buffer.as_ptr()).collect();
    let text = || TextCode::Input(0);
    let like = LikeCode {
        text: text(),
        first: None,
        middle: vec![TextCode::Constant("ab".into())],
        last: None,
    };
    let part =
        TextCode::Substring { text: Box::new(text()), skipped: bytes as u64 - 2, most: None };
    let whole = TextCode::Substring { text: Box::new(text()), skipped: 0, most: Some(u64::MAX) };
    let ops = [
        Op::Like(Box::new(like)),
        Op::TextEquals(Box::new([part, text()])),
        Op::TextEquals(Box::new([whole, text()])),
    ];
    for op in ops {
        let shown = format!("{op:?}");
        let predicate = ValueCode { op, machine: MachineType::Boolean, nullable: false };
        let inputs = vec![InputCode { place: InputPlace::Views, ..InputCode::column(VIEW, false) }];
        let code = compiled_piece(&host, Piece::of_select(SelectCode { inputs, predicate }));
        let test = TestContext::new(1, 1);
        let context: Arc<dyn tessera_context::Context> = test.clone();
        let ended = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(20));
                test.cancelled.store(true, Ordering::SeqCst);
            });
            let started = std::time::Instant::now();
            let run = || within(&context, || selected(&code, &[input(&array, &buffers)], rows));
            let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).unwrap_err();
            assert_eq!(unwound.downcast_ref::<Error>().unwrap().code(), Code::Cancelled, "{shown}");
            started.elapsed()
        });
        assert!(ended >= Duration::from_millis(20), "{shown} did not run");
        assert!(ended < Duration::from_secs(2), "{shown}: {ended:?}");
    }
}
