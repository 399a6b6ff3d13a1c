//! Membership in a set of constants. The binder turns a disjunction of equalities into it.

use std::hash::Hash;
use std::sync::{Arc, OnceLock};

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use hashbrown::HashSet;

use tessera_codegen::{Op, TextCode, ValueCode};
use tessera_context::interrupt::Every;
use tessera_types::{Atom, Result};

use tessera_values::kernel::{Argument, Kernel, argument, single, truth, unexpected};
use tessera_values::with_whole_number;

/// The minimum number of constants for a set; fewer are compared one by one.
pub(crate) const SET_MIN: usize = 3;

/// Up to this many numbers are compared in a branch-free loop rather than hashed.
const LINEAR_MAX: usize = 16;

/// Creates the kernel for types with bitwise equality; `None` for others (floats, intervals,
/// nested).
pub(crate) fn in_set(atom: &Atom, constants: &[&ArrayRef]) -> Option<InSet> {
    let valid = || constants.iter().filter(|constant| constant.is_valid(0));
    macro_rules! numbers {
        ($type:ty) => {
            Set::Numbers(
                valid()
                    .map(|constant| {
                        constant.as_primitive_opt::<$type>().map(|array| array.value(0) as i128)
                    })
                    .collect::<Option<Vec<_>>>()?,
            )
        };
    }
    let set = match atom {
        text if text.is_stored_as_text() => {
            let text = |constant: &&ArrayRef| {
                Some(constant.as_string_view_opt()?.value(0).as_bytes().into())
            };
            Set::Texts(valid().map(text).collect::<Option<_>>()?)
        }
        whole_number => with_whole_number!(whole_number, numbers, return None),
    };
    let null = constants.iter().any(|constant| constant.is_null(0));
    Some(InSet { atom: atom.clone(), set, null })
}

/// Like [`in_set`], for the items of a constant list of any length; the first call hashes them.
pub(crate) fn in_items(atom: &Atom, items: &ArrayRef) -> Option<InSet> {
    macro_rules! numbers {
        ($type:ty) => {{
            items.as_primitive_opt::<$type>()?;
            Set::NumberList(LazyHashSet::of(items))
        }};
    }
    let set = match atom {
        text if text.is_stored_as_text() => {
            let texts = items.as_string_view_opt()?;
            match items.len() <= LINEAR_MAX {
                true => {
                    Set::Texts(texts.iter().flatten().map(|text| text.as_bytes().into()).collect())
                }
                false => Set::TextList(LazyHashSet::of(items)),
            }
        }
        whole_number => with_whole_number!(whole_number, numbers, return None),
    };
    Some(InSet { atom: atom.clone(), set, null: items.null_count() > 0 })
}

/// The items of a possibly long list, as a set. A statement binds its expressions several times and
/// evaluates few of them, so the first call builds the set.
#[derive(Debug)]
struct LazyHashSet<T> {
    items: ArrayRef,
    set: OnceLock<HashSet<T>>,
}

impl<T: Eq + Hash> LazyHashSet<T> {
    fn of(items: &ArrayRef) -> Self {
        LazyHashSet { items: items.clone(), set: OnceLock::new() }
    }

    /// Returns the set; `each` enumerates the values of the items.
    fn set(&self, each: impl FnOnce(&ArrayRef, &mut dyn FnMut(T))) -> &HashSet<T> {
        self.set.get_or_init(|| {
            let (mut set, every) = (HashSet::with_capacity(self.items.len()), Every::default());
            each(&self.items, &mut |value| {
                every.pass();
                set.insert(value);
            });
            set
        })
    }
}

fn texts_found(input: &Argument, texts: &HashSet<Box<[u8]>>) -> Result<BooleanBuffer> {
    let array = input.array.as_string_view_opt().ok_or_else(|| unexpected(&input.array))?;
    Ok(BooleanBuffer::collect_bool(array.len(), |row| texts.contains(array.value(row).as_bytes())))
}

/// Tests whether a value is in a set.
#[derive(Debug)]
pub(crate) struct InSet {
    atom: Atom,
    set: Set,
    /// Whether NULL is among the constants: a value that is not found then gives NULL.
    null: bool,
}

#[derive(Debug)]
enum Set {
    Numbers(Vec<i128>),
    Texts(HashSet<Box<[u8]>>),
    /// Integers of a list, which may be long and is not compiled.
    NumberList(LazyHashSet<i128>),
    /// Strings of such a list.
    TextList(LazyHashSet<Box<[u8]>>),
}

impl Kernel for InSet {
    fn call(&self, args: &[Argument], rows: usize) -> Result<ArrayRef> {
        let input = argument(args, 0)?;
        let found = match &self.set {
            Set::Texts(texts) => texts_found(input, texts)?,
            Set::TextList(list) => {
                let texts = list.set(|items, give| {
                    let texts = items.as_string_view().iter().flatten();
                    texts.for_each(|text| give(text.as_bytes().into()));
                });
                texts_found(input, texts)?
            }
            Set::NumberList(list) => {
                macro_rules! run {
                    ($type:ty) => {{
                        let numbers = list.set(|items, give| {
                            let numbers = items.as_primitive::<$type>().iter().flatten();
                            numbers.for_each(|number| give(number as i128));
                        });
                        let values = input.primitive::<$type>()?.values();
                        BooleanBuffer::collect_bool(values.len(), |row| {
                            numbers.contains(&(values[row] as i128))
                        })
                    }};
                }
                with_whole_number!(&self.atom, run, return Err(unexpected(&input.array)))
            }
            Set::Numbers(numbers) => {
                macro_rules! run {
                    ($type:ty) => {{
                        type N = <$type as arrow::array::ArrowPrimitiveType>::Native;
                        let numbers: Vec<N> = numbers.iter().map(|&number| number as N).collect();
                        find(input.primitive::<$type>()?.values(), &numbers)
                    }};
                }
                with_whole_number!(&self.atom, run, return Err(unexpected(&input.array)))
            }
        };
        let mut nulls = input.array.logical_nulls();
        if self.null {
            nulls = NullBuffer::union(nulls.as_ref(), Some(&NullBuffer::new(found.clone())));
        }
        let array: ArrayRef = Arc::new(BooleanArray::new(found, nulls));
        Argument { array, constant: input.constant }.full(rows)
    }

    fn code(&self, args: Vec<ValueCode>, _atom: &Atom) -> Option<Op> {
        match &self.set {
            Set::Numbers(numbers) => {
                let value: Box<ValueCode> = single(args)?;
                let number = |number: &i128| ValueCode {
                    op: Op::Integer(*number),
                    nullable: false,
                    ..*value
                };
                Some(Op::InList {
                    numbers: numbers.iter().map(number).collect(),
                    value,
                    null: self.null,
                })
            }
            Set::Texts(_) | Set::NumberList(_) | Set::TextList(_) => None,
        }
    }

    fn code_of_texts(&self, texts: Vec<TextCode>) -> Option<Op> {
        let ([text], Set::Texts(set), false) = (&texts[..], &self.set, self.null) else {
            return None;
        };
        if set.len() > LINEAR_MAX {
            return None;
        }
        // Sort the constants, so that equal sets give equal code.
        let mut constants = set
            .iter()
            .map(|bytes| std::str::from_utf8(bytes))
            .collect::<Result<Vec<_>, _>>()
            .ok()?;
        constants.sort_by_key(|constant| (constant.len(), *constant));
        let same = |constant: &str| {
            Op::TextEquals(Box::new([text.clone(), TextCode::Constant(constant.into())]))
        };
        Some(Op::Or(constants.into_iter().map(|constant| truth(same(constant))).collect()))
    }
}

fn find<N: Copy + Eq + Hash>(values: &[N], numbers: &[N]) -> BooleanBuffer {
    if numbers.len() <= LINEAR_MAX {
        let any = |value: N| numbers.iter().fold(false, |found, &number| found | (number == value));
        return BooleanBuffer::collect_bool(values.len(), |row| any(values[row]));
    }
    let set: HashSet<N> = numbers.iter().copied().collect();
    BooleanBuffer::collect_bool(values.len(), |row| set.contains(&values[row]))
}
