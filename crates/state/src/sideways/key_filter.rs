//! Runtime filters of join keys: the keys of a build, for scans further up the stream of its probe.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray, StringViewArray};
use arrow::compute::{max, max_string_view, min, min_string_view};
use arrow::datatypes::DataType;
use arrow::downcast_primitive_array;

use tessera_context::Run;
use tessera_operator::describe;
use tessera_plan::{Expr, Node, Scalar, Value};
use tessera_rows::Collected;
use tessera_types::{Atom, Error, Field, Result, Tuple};
use tessera_values::scalar::{array_value, compare, scalar_to_array};
use tessera_vector::Column;
use tessera_vector::hash::hash_columns;

use super::bloom::Bloom;
use super::exact::Exact;

/// The field with the filter; NULL if the keys are unknown.
pub(super) const FILTER_FIELD: &str = "filter";
/// Tuples that are tested before deciding whether the filter pays off.
const TRIAL_ROWS: u64 = 32_768;
/// The filter is turned off if more than this percentage of tuples passes.
const PASSED_PERCENT_MAX: u64 = 70;
/// A filter that passes less than this percentage is selective.
const FEW_PERCENT: u64 = 30;

/// A filter of the keys of one or several builds.
#[derive(Debug)]
pub struct KeyFilter {
    keys: Keys,
    /// By key: its type, and the least and greatest value if known.
    bounds: Vec<(Atom, Option<(Scalar, Scalar)>)>,
    tested: AtomicU64,
    passed: AtomicU64,
    off: AtomicBool,
    applied: AtomicBool,
}

/// The set of keys.
#[derive(Debug)]
enum Keys {
    Bloom(Bloom),
    /// A set of a single integer key.
    Exact(Exact),
}

impl Keys {
    fn from_bytes(bytes: &[u8]) -> Result<Keys> {
        Ok(match Exact::from_bytes(bytes)? {
            Some(exact) => Keys::Exact(exact),
            None => Keys::Bloom(Bloom::from_bytes(bytes)?),
        })
    }

    fn is_empty(&self) -> bool {
        matches!(self, Keys::Bloom(bloom) if bloom.is_empty())
    }

    fn memory_bytes(&self) -> usize {
        match self {
            Keys::Bloom(bloom) => bloom.memory_bytes(),
            Keys::Exact(exact) => exact.memory_bytes(),
        }
    }

    /// Returns the union of the keys, which are of these types.
    fn merged(self, other: Keys, atoms: &[Atom]) -> Keys {
        if let (Keys::Exact(one), Keys::Exact(other)) = (&self, &other)
            && let Some(both) = one.merged(other)
        {
            return Keys::Exact(both);
        }
        let bloom = |keys| match keys {
            Keys::Bloom(bloom) => bloom,
            Keys::Exact(exact) => {
                exact.to_bloom(&atoms.first().map_or(DataType::Null, Atom::arrow))
            }
        };
        let mut both = bloom(self);
        both.merge(&bloom(other));
        Keys::Bloom(both)
    }
}

/// A scan's subscription to a filter.
#[derive(Debug, Clone)]
pub struct FilterSubscription {
    /// The name of the filter.
    pub name: Arc<str>,
    /// The columns that are its keys.
    pub keys: Arc<[usize]>,
    /// Their names.
    pub names: Arc<[Arc<str>]>,
}

impl FilterSubscription {
    /// Parses the parameter `filters` of a node over these columns: `[{of = :name, keys = [a, b]},
    /// …]`.
    ///
    /// # Errors
    /// The parameter is malformed, or names an unknown column.
    pub fn list(node: &Node, columns: &Tuple) -> Result<Vec<FilterSubscription>> {
        let wrong =
            || Error::semantic("parameter filters must be [{of = :name, keys = [a, b]}, …]");
        let list = match node.params.get("filters") {
            None => return Ok(Vec::new()),
            Some(Value::List(list)) => list,
            Some(_) => return Err(wrong()),
        };
        let filter = |value: &Value| {
            let Value::Record(entries) = value else { return Err(wrong()) };
            let [(of, Value::Name(name)), (keys, Value::List(fields))] = &entries[..] else {
                return Err(wrong());
            };
            if (&**of, &**keys) != ("of", "keys") {
                return Err(wrong());
            }
            let field = |value: &Value| match value {
                Value::Expr(Expr::Field(field)) => Ok(field.clone()),
                _ => Err(wrong()),
            };
            let names = fields.iter().map(field).collect::<Result<Vec<_>>>()?;
            let keys = describe::keys(columns, &names, "key")?;
            Ok(FilterSubscription { name: name.clone(), keys: keys.into(), names: names.into() })
        };
        list.iter().map(filter).collect()
    }
}

/// A published filter that a scan has received.
#[derive(Debug)]
pub struct ReceivedFilter {
    /// The name of the filter.
    pub name: Arc<str>,
    /// The filter.
    pub filter: Arc<KeyFilter>,
    /// The columns that are its keys.
    pub keys: Arc<[usize]>,
    /// Their names.
    pub names: Arc<[Arc<str>]>,
}

impl ReceivedFilter {
    /// Returns the subscribed filters that have been published by now, for a scan of these columns;
    /// the scan must then drop the tuples that do not pass.
    pub fn published(
        filters: &[FilterSubscription],
        columns: &Tuple,
        run: &Run,
    ) -> Vec<ReceivedFilter> {
        let received = filters.iter().filter_map(|of| {
            let filter = run.board.find::<KeyFilter>(&of.name)?;
            filter.fits(columns, &of.keys).then(|| {
                filter.set_applied();
                ReceivedFilter {
                    name: of.name.clone(),
                    filter,
                    keys: of.keys.clone(),
                    names: of.names.clone(),
                }
            })
        });
        received.collect()
    }
}

/// The tuple type that carries a filter of these keys.
pub fn filter_tuple<'a>(keys: impl Iterator<Item = &'a Field>) -> Tuple {
    let mut fields = vec![Field::new(FILTER_FIELD, Atom::Bytes).with_nullable(true)];
    for key in keys {
        fields.push(key.renamed(format!("least_{}", key.name)).with_nullable(true));
        fields.push(key.renamed(format!("greatest_{}", key.name)).with_nullable(true));
    }
    Tuple::new(fields)
}

/// Returns the types of the keys of such a tuple.
///
/// # Errors
/// The tuple does not carry a filter.
pub fn filter_keys(tuple: &Tuple) -> Result<Vec<Atom>> {
    let wrong =
        || Error::semantic(format!("{tuple} is not a key filter; use the output of a key_filter"));
    let fields = tuple.fields();
    let is_filter =
        fields.first().is_some_and(|f| &*f.name == FILTER_FIELD && f.atom() == Some(&Atom::Bytes));
    if !is_filter || fields.len().is_multiple_of(2) {
        return Err(wrong());
    }
    fields[1..].chunks(2).map(|pair| pair[0].atom().cloned().ok_or_else(wrong)).collect()
}

impl KeyFilter {
    /// Merges all filters of a side; `None` if the keys are unknown.
    ///
    /// # Errors
    /// A tuple does not carry a filter.
    pub fn of_side(side: &Collected, keys: &[Atom]) -> Result<Option<KeyFilter>> {
        let mut known: Option<Keys> = None;
        let mut bounds: Vec<Option<(Scalar, Scalar)>> = Vec::new();
        for chunk in side.chunks() {
            let chunk = chunk?;
            let columns = (0..1 + 2 * keys.len()).map(|at| chunk.column(at)?.plain());
            let columns = columns.collect::<Result<Vec<_>>>()?;
            for row in 0..chunk.rows() {
                if columns[0].is_null(row) {
                    return Ok(None);
                }
                let next = Keys::from_bytes(columns[0].as_binary_view().value(row))?;
                if next.is_empty() {
                    known.get_or_insert(next);
                    continue;
                }
                let of_key = |key: usize| -> Result<Option<(Scalar, Scalar)>> {
                    let (least, greatest) = (&columns[1 + 2 * key], &columns[2 + 2 * key]);
                    if least.is_null(row) || greatest.is_null(row) {
                        return Ok(None);
                    }
                    Ok(Some((array_value(least, row)?, array_value(greatest, row)?)))
                };
                let of_keys = (0..keys.len()).map(of_key).collect::<Result<Vec<_>>>()?;
                match known.take() {
                    Some(before) if !before.is_empty() => {
                        known = Some(before.merged(next, keys));
                        for (known, more) in bounds.iter_mut().zip(of_keys) {
                            *known = known.take().zip(more).and_then(|(a, b)| widest(a, b));
                        }
                    }
                    _ => (known, bounds) = (Some(next), of_keys),
                }
            }
        }
        bounds.resize(keys.len(), None);
        Ok(known.map(|known| KeyFilter {
            keys: known,
            bounds: keys.iter().cloned().zip(bounds).collect(),
            tested: AtomicU64::new(0),
            passed: AtomicU64::new(0),
            off: AtomicBool::new(false),
            applied: AtomicBool::new(false),
        }))
    }

    /// Returns whether testing tuples still pays off.
    pub fn is_on(&self) -> bool {
        !self.off.load(Ordering::Relaxed)
    }

    /// Returns whether few tuples are known to pass.
    pub fn passes_few(&self) -> bool {
        let (tested, passed) =
            (self.tested.load(Ordering::Relaxed), self.passed.load(Ordering::Relaxed));
        tested >= TRIAL_ROWS && passed * 100 < tested * FEW_PERCENT
    }

    /// Records that a scan applies the filter, so that other operators need not.
    pub fn set_applied(&self) {
        self.applied.store(true, Ordering::Relaxed);
    }

    /// Returns whether a scan applies the filter.
    pub fn is_applied(&self) -> bool {
        self.applied.load(Ordering::Relaxed)
    }

    /// Returns whether its keys have the types of these columns.
    pub fn fits(&self, columns: &Tuple, keys: &[usize]) -> bool {
        let atoms = keys.iter().map(|key| columns.fields()[*key].atom());
        atoms.eq(self.bounds.iter().map(|(atom, _)| Some(atom)))
    }

    /// Bytes of memory.
    pub fn memory_bytes(&self) -> usize {
        self.keys.memory_bytes()
    }

    /// Returns a predicate that every tuple with such keys satisfies, for pruning by statistics;
    /// `fields` are the names of the keys.
    pub fn wanted(&self, fields: &[Arc<str>]) -> Option<Expr> {
        if self.keys.is_empty() {
            return Some(Expr::boolean(false));
        }
        let mut all = Vec::new();
        for ((atom, bounds), field) in self.bounds.iter().zip(fields) {
            let Some((least, greatest)) = bounds else { continue };
            let compared = |function: &str, value: &Scalar| {
                let value = Expr::Constant(value.clone(), atom.clone());
                Expr::call(function, vec![Expr::Field(field.clone()), value])
            };
            all.extend([compared("gt_eq", least), compared("lt_eq", greatest)]);
        }
        (!all.is_empty()).then(|| Expr::all(all))
    }

    /// Returns the positions of tuples that may have such keys, ascending, and counts them.
    /// `hashes` is scratch space.
    ///
    /// # Errors
    /// A column has an unexpected type.
    pub fn select(&self, keys: &[Column], rows: usize, hashes: &mut Vec<u64>) -> Result<Vec<u32>> {
        let positions = self.matched(keys, rows, hashes)?;
        self.count(rows as u64, positions.len() as u64);
        Ok(positions)
    }

    /// Like [`KeyFilter::select`], but does not count: each value may stand for several tuples. The
    /// caller calls [`KeyFilter::count`].
    ///
    /// # Errors
    /// A column has an unexpected type.
    pub fn matched(&self, keys: &[Column], rows: usize, hashes: &mut Vec<u64>) -> Result<Vec<u32>> {
        match &self.keys {
            Keys::Exact(exact) => match keys {
                [key] => exact.select(&key.plain()?),
                _ => None,
            }
            .ok_or_else(|| Error::internal("a filter with keys of other types")),
            Keys::Bloom(bloom) => {
                hash_columns(keys, rows, hashes)?;
                Ok(bloom.select(&hashes[..rows]))
            }
        }
    }

    /// Counts tuples that were tested and those that passed; turns the filter off where it does not
    /// pay off.
    pub fn count(&self, tested: u64, passed: u64) {
        let tested = self.tested.fetch_add(tested, Ordering::Relaxed) + tested;
        let passed = self.passed.fetch_add(passed, Ordering::Relaxed) + passed;
        if tested >= TRIAL_ROWS && passed * 100 > tested * PASSED_PERCENT_MAX {
            self.off.store(true, Ordering::Relaxed);
        }
    }
}

fn widest(a: (Scalar, Scalar), b: (Scalar, Scalar)) -> Option<(Scalar, Scalar)> {
    let least = if compare(&a.0, &b.0)?.is_le() { a.0 } else { b.0 };
    let greatest = if compare(&a.1, &b.1)?.is_ge() { a.1 } else { b.1 };
    Some((least, greatest))
}

/// Computes the least and the greatest of many values, unless statistics have no order for their
/// type.
#[derive(Debug)]
pub struct Extremes {
    known: bool,
    ends: Option<(Scalar, Scalar)>,
    leaves_nulls: bool,
}

impl Extremes {
    /// Creates the bounds of no values.
    pub fn new(atom: &Atom) -> Extremes {
        // Floats are left out: NaN and the two zeros complicate their bounds, and joins by floats
        // are rare.
        let known = atom.is_integer()
            || matches!(
                atom,
                Atom::Decimal(..)
                    | Atom::Date
                    | Atom::Time(_)
                    | Atom::TimeTz
                    | Atom::Timestamp(..)
                    | Atom::String
                    | Atom::Bits
                    | Atom::Uuid
            );
        Extremes { known, ends: None, leaves_nulls: false }
    }

    /// Like [`Extremes::new`], but ignores NULLs.
    pub fn leaving_nulls(atom: &Atom) -> Extremes {
        Extremes { leaves_nulls: true, ..Extremes::new(atom) }
    }

    /// Returns whether adding more values is useful.
    pub fn is_known(&self) -> bool {
        self.known
    }

    /// Adds plain values. Unless NULLs are ignored, a NULL makes the bounds unknown.
    pub fn add(&mut self, values: &ArrayRef) -> Result<()> {
        if !self.known {
            return Ok(());
        }
        let nulls = values.null_count();
        let ends = if nulls > 0 && !self.leaves_nulls { None } else { ends(values) };
        let Some((least, greatest)) = ends else {
            self.known = values.is_empty() || self.leaves_nulls && nulls == values.len();
            return Ok(());
        };
        let more = (array_value(&least, 0)?, array_value(&greatest, 0)?);
        self.ends = match self.ends.take() {
            Some(known) => widest(known, more),
            None => Some(more),
        };
        self.known = self.ends.is_some();
        Ok(())
    }

    /// Returns the least and the greatest value, if known.
    pub fn known(self) -> Option<(Scalar, Scalar)> {
        self.ends.filter(|_| self.known)
    }

    /// Returns an array of one value for each bound.
    ///
    /// # Errors
    /// The values are not of this type.
    pub fn finish(self, atom: &Atom) -> Result<[ArrayRef; 2]> {
        let (least, greatest) = self.known().unwrap_or((Scalar::Null, Scalar::Null));
        Ok([scalar_to_array(&least, atom)?, scalar_to_array(&greatest, atom)?])
    }
}

fn ends(values: &ArrayRef) -> Option<(ArrayRef, ArrayRef)> {
    fn of<T: ArrowPrimitiveType>(values: &PrimitiveArray<T>) -> Option<(ArrayRef, ArrayRef)>
    where
        T::Native: PartialOrd,
    {
        let one = |value: T::Native| -> ArrayRef {
            Arc::new(
                PrimitiveArray::<T>::from_value(value, 1)
                    .with_data_type(values.data_type().clone()),
            )
        };
        Some((one(min(values)?), one(max(values)?)))
    }
    downcast_primitive_array!(
        values => of(values),
        DataType::Utf8View => {
            let values = values.as_string_view();
            let one = |value: &str| -> ArrayRef { Arc::new(StringViewArray::from_iter_values([value])) };
            Some((one(min_string_view(values)?), one(max_string_view(values)?)))
        }
        _ => None,
    )
}

#[cfg(test)]
mod tests {
    use arrow::array::{BinaryViewArray, Int64Array, new_null_array};

    use tessera_vector::Chunk;

    use super::*;

    fn side(keys: std::ops::Range<i64>) -> Chunk {
        let mut bloom = Bloom::new(Bloom::blocks_for((keys.end - keys.start) as usize));
        let array: ArrayRef = Arc::new(Int64Array::from_iter_values(keys));
        let mut hashes = Vec::new();
        hash_columns(&[Column::new(array.clone())], array.len(), &mut hashes).unwrap();
        hashes.iter().for_each(|hash| bloom.add(*hash));
        let mut extremes = Extremes::new(&Atom::Int64);
        extremes.add(&array).unwrap();
        let [least, greatest] = extremes.finish(&Atom::Int64).unwrap();
        let filter: ArrayRef = Arc::new(BinaryViewArray::from_iter([Some(bloom.to_bytes())]));
        Chunk::from_arrays(vec![filter, least, greatest])
    }

    fn filter(chunks: Vec<Chunk>) -> KeyFilter {
        KeyFilter::of_side(&Collected::new(chunks), &[Atom::Int64]).unwrap().unwrap()
    }

    fn column(keys: std::ops::Range<i64>) -> [Column; 1] {
        [Column::new(Arc::new(Int64Array::from_iter_values(keys)))]
    }

    #[test]
    fn it_ends_where_too_few_are_dropped() {
        let mut hashes = Vec::new();
        let filter = filter(vec![side(0..1_000)]);
        for _ in 0..40 {
            assert_eq!(filter.select(&column(0..900), 900, &mut hashes).unwrap().len(), 900);
        }
        assert!(!filter.is_on());
        let filter = self::filter(vec![side(0..10)]);
        for _ in 0..40 {
            filter.select(&column(0..1_000), 1_000, &mut hashes).unwrap();
        }
        assert!(filter.is_on());
    }

    #[test]
    fn ends_are_those_of_all_parts() {
        let wanted = |chunks| filter(chunks).wanted(&["a".into()]);
        let compared =
            |function, value| Expr::call(function, vec![Expr::field("a"), Expr::int64(value)]);
        let both = wanted(vec![side(5..9), side(2..3), side(0..0)]);
        assert_eq!(both, Some(Expr::all(vec![compared("gt_eq", 2), compared("lt_eq", 8)])));
        assert_eq!(wanted(vec![side(0..0)]), Some(Expr::boolean(false)));
        let mut unknown = side(5..9).stored().to_vec();
        unknown[1] = Column::new(new_null_array(&DataType::Int64, 1));
        assert_eq!(wanted(vec![side(5..9), Chunk::new(unknown, 1)]), None);
    }
}
