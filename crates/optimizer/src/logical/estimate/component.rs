//! Samples of relations, used to estimate predicates, joins and groups.
//!
//! A component is a sample of a relation over one or more tables: each row refers to a row of each
//! table's sample. The join of two components joins the samples (as in Leis et al., Cardinality
//! Estimation Done Right: Index-Based Join Sampling, 2017, with samples instead of indexes), which
//! preserves correlations within a table and along keys. If one side is sampled completely, as most
//! dimensions are, the matches are a uniform sample of all matches. If both sides are uniform
//! samples of parts, they are too, provided that enough were found.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::ArrayRef;
use tessera_plan::Expr;
use tessera_types::Field;
use tessera_vector::hash::{SEED, combine};

use super::index::Index;
use crate::logical::relation::{Kind, Name};
use crate::sample::{NO_ROW, NULL_HASH, Sample, distinct, numbers, select};

/// The maximum number of rows of a joined component; larger ones are thinned out. Joining takes
/// about 20 ns per row.
const ROWS_MAX: usize = 2_000;

/// The maximum number of rows of a table's component after its predicates (more than `ANALYZE`
/// samples), and the number that is kept of a larger one. Joining a large table's whole sample
/// thousands of times would take seconds.
const TABLE_ROWS_MAX: usize = 25_000;
const TABLE_ROWS_KEPT: usize = 8_000;

/// The limit of cached bytes for all components of a thread. Join ordering creates thousands of
/// components; what does not fit is recomputed.
const CACHED_BYTES_MAX: usize = 16 << 20;

thread_local! {
    static CACHED_BYTES: Cell<usize> = const { Cell::new(0) };
}

/// A sample of a relation.
#[derive(Debug)]
pub(super) struct Component {
    parts: Vec<Part>,
    /// The number of sampled tuples.
    pub rows: usize,
    /// Whether the sample has all tuples of the relation.
    pub whole: bool,
    /// Whether every tuple of the relation had the same chance to be sampled.
    pub uniform: bool,
    /// The number of tables in the sampled relation.
    tables: usize,
    number: u64,
    /// The bytes of the caches below, and of the rows.
    bytes: Cell<usize>,
    hashes: RefCell<HashMap<Name, Option<Rc<Vec<u64>>>>>,
    indexes: RefCell<HashMap<Vec<Name>, Rc<Index>>>,
    /// Join ordering joins the same two components repeatedly, within ever larger sets of units.
    joins: RefCell<HashMap<JoinKey, Rc<JoinSample>>>,
    /// Components derived from this one; asked for before and after joins are ordered.
    derived: RefCell<Vec<(Derivation, Option<Rc<Component>>)>>,
}

impl Drop for Component {
    fn drop(&mut self) {
        CACHED_BYTES.set(CACHED_BYTES.get().saturating_sub(self.bytes.get()));
    }
}

/// The derivation of a component from another one.
#[derive(Debug, PartialEq, Eq)]
enum Derivation {
    Filtered(Expr),
    Renamed(Vec<(Name, Name)>),
    Groups(Vec<(Name, Name)>),
    Thinned,
}

/// The key of a cached join: the other component, the kind and the compared fields.
#[derive(Debug, PartialEq, Eq, Hash)]
struct JoinKey {
    right: u64,
    kind: Kind,
    keys: Vec<(Name, Name)>,
}

/// The source of unique component numbers.
static NEXT_NUMBER: AtomicU64 = AtomicU64::new(0);

/// A table in a component.
#[derive(Debug, Clone)]
pub(super) struct Part {
    pub(super) sample: Arc<Sample>,
    columns: Vec<(Name, usize)>,
    pub(super) rows: Rc<Vec<u32>>,
}

/// Mean and variance of an expression.
pub(super) struct Moments {
    pub(super) mean: f64,
    pub(super) variance: f64,
}

/// The result of joining two components.
#[derive(Debug)]
pub(super) struct JoinSample {
    /// The number of matching pairs.
    pub pairs: f64,
    /// The number of left rows with a match.
    pub matched: f64,
    /// The number of different keys that matched.
    pub keys: f64,
    pub component: Rc<Component>,
}

impl Component {
    /// Returns the component of a table's sample; `None` if the sample is not loaded.
    pub(super) fn of(sample: &Arc<Sample>, columns: &[(Name, usize)]) -> Option<Component> {
        let size = sample.size()?;
        let rows = (0..size.rows as u32).collect();
        let part = Part { sample: sample.clone(), columns: columns.to_vec(), rows: Rc::new(rows) };
        Some(Component::new(vec![part], size.rows, (size.whole(), size.uniform), 1))
    }

    fn new(
        parts: Vec<Part>,
        rows: usize,
        (whole, uniform): (bool, bool),
        tables: usize,
    ) -> Component {
        Component {
            parts,
            rows,
            whole,
            uniform,
            tables,
            bytes: Cell::new(0),
            number: NEXT_NUMBER.fetch_add(1, Ordering::Relaxed),
            hashes: RefCell::default(),
            indexes: RefCell::default(),
            joins: RefCell::default(),
            derived: RefCell::default(),
        }
    }

    /// Whether the values of a field were sampled.
    pub(super) fn has(&self, name: &Name) -> bool {
        self.part(name).is_some_and(|(part, column)| part.sample.values(column).is_some())
    }

    pub(super) fn part(&self, name: &Name) -> Option<(&Part, usize)> {
        self.parts.iter().find_map(|part| {
            let (_, column) = part.columns.iter().find(|(known, _)| known == name)?;
            Some((part, *column))
        })
    }

    /// Returns the component of a derivation, cached or computed.
    fn derived(
        &self,
        step: Derivation,
        make: impl FnOnce() -> Option<Component>,
    ) -> Option<Rc<Component>> {
        if let Some((_, known)) = self.derived.borrow().iter().find(|(known, _)| *known == step) {
            return known.clone();
        }
        let derived = make().map(Rc::new);
        self.derived.borrow_mut().push((step, derived.clone()));
        derived
    }

    /// Renames fields, `(new, old)`.
    pub(super) fn renamed(&self, names: &[(Name, Name)]) -> Option<Rc<Component>> {
        self.derived(Derivation::Renamed(names.to_vec()), || Some(self.with_names(names)))
    }

    fn with_names(&self, names: &[(Name, Name)]) -> Component {
        let part = |part: &Part| {
            let new = names.iter().filter_map(|(new, old)| {
                let (_, column) = part.columns.iter().find(|(known, _)| known == old)?;
                Some((new.clone(), *column))
            });
            Part { columns: new.collect(), ..part.clone() }
        };
        let parts = self.parts.iter().map(part).filter(|part| !part.columns.is_empty()).collect();
        Component::new(parts, self.rows, (self.whole, self.uniform), self.tables)
    }

    /// Reduces the component to these fields; `None` if it has none of them.
    pub(super) fn only(self: &Rc<Self>, needed: &HashSet<Name>) -> Option<Rc<Component>> {
        let names = self.parts.iter().flat_map(|part| &part.columns).map(|(name, _)| name);
        let (kept, left_out): (Vec<&Name>, Vec<&Name>) =
            names.partition(|name| needed.contains(*name));
        match (kept.is_empty(), left_out.is_empty()) {
            (true, _) => None,
            (_, true) => Some(self.clone()),
            _ => self.renamed(
                &kept.into_iter().map(|name| (name.clone(), name.clone())).collect::<Vec<_>>(),
            ),
        }
    }

    /// Reserves bytes of the thread's cache until the component is dropped; `false` if they do not
    /// fit.
    fn reserve_cache(&self, bytes: usize) -> bool {
        let kept = CACHED_BYTES.get() + bytes;
        let fits = kept <= CACHED_BYTES_MAX;
        if fits {
            CACHED_BYTES.set(kept);
            self.bytes.set(self.bytes.get() + bytes);
        }
        fits
    }

    /// The bytes of the row numbers.
    fn row_bytes(&self) -> usize {
        self.rows * self.parts.len() * size_of::<u32>()
    }

    /// Returns the hashes of a field's values.
    fn hashes(&self, name: &Name) -> Option<Rc<Vec<u64>>> {
        if let Some(known) = self.hashes.borrow().get(name) {
            return known.clone();
        }
        let hashes = self.part(name).and_then(|(part, column)| {
            let values = part.sample.values(column)?;
            let hash = |row: &u32| values.hashes.get(*row as usize).copied().unwrap_or(NULL_HASH);
            Some(Rc::new(part.rows.iter().map(hash).collect::<Vec<_>>()))
        });
        if self.reserve_cache(self.rows * size_of::<u64>()) {
            self.hashes.borrow_mut().insert(name.clone(), hashes.clone());
        }
        hashes
    }

    /// Returns the combined hashes of several fields; [`NULL_HASH`] where one of them is NULL.
    fn keys(&self, names: &[Name]) -> Option<Rc<Vec<u64>>> {
        let [first, others @ ..] = names else { return None };
        let first = self.hashes(first)?;
        if others.is_empty() {
            return Some(first);
        }
        let mut keys = first.as_ref().clone();
        for name in others {
            for (key, hash) in keys.iter_mut().zip(self.hashes(name)?.iter()) {
                let known = *key != NULL_HASH && *hash != NULL_HASH;
                *key = if known { combine(combine(SEED, *key), *hash) } else { NULL_HASH };
            }
        }
        Some(Rc::new(keys))
    }

    pub(super) fn index(&self, names: &[Name]) -> Option<Rc<Index>> {
        if let Some(known) = self.indexes.borrow().get(names) {
            return Some(known.clone());
        }
        let hashes = self.keys(names)?;
        let index = Rc::new(Index::new(&hashes));
        if self.reserve_cache(index.bytes()) {
            self.indexes.borrow_mut().insert(names.to_vec(), index.clone());
        }
        Some(index)
    }

    /// Returns the rows at these positions; [`NO_ROW`] for a row of NULLs.
    fn at(&self, positions: &[u32]) -> Vec<Part> {
        let row = |part: &Part, position: &u32| {
            part.rows.get(*position as usize).copied().unwrap_or(NO_ROW)
        };
        let part = |part: &Part| Part {
            rows: Rc::new(positions.iter().map(|position| row(part, position)).collect()),
            ..part.clone()
        };
        self.parts.iter().map(part).collect()
    }

    /// Returns the fields that an expression reads; `None` if it reads no fields or any other
    /// values.
    fn read(&self, expr: &Expr) -> Option<Vec<(Field, ArrayRef)>> {
        let fields = expr.fields();
        if fields.is_empty() || !crate::logical::relation::parameters(expr).is_empty() {
            return None;
        }
        let column = |name: &Name| {
            let (part, column) = self.part(name)?;
            part.sample.field(column, name, &part.rows)
        };
        fields.iter().map(column).collect()
    }

    /// Filters by a predicate; `None` if it cannot be evaluated here.
    pub(super) fn filtered(&self, predicate: &Expr) -> Option<Rc<Component>> {
        self.derived(Derivation::Filtered(predicate.clone()), || {
            let kept =
                select(predicate, self.read(predicate)?, self.parts.first()?.sample.library())?;
            Some(Component::new(
                self.at(&kept),
                kept.len(),
                (self.whole, self.uniform),
                self.tables,
            ))
        })
    }

    /// Returns evenly spaced rows of a table's component, if it has too many.
    pub(super) fn thinned(self: &Rc<Self>) -> Rc<Component> {
        if self.rows <= TABLE_ROWS_MAX {
            return self.clone();
        }
        let thinned = self.derived(Derivation::Thinned, || {
            let every = self.rows.div_ceil(TABLE_ROWS_KEPT);
            let kept: Vec<u32> = (0..self.rows as u32).step_by(every).collect();
            Some(Component::new(self.at(&kept), kept.len(), (false, self.uniform), self.tables))
        });
        thinned.unwrap_or_else(|| self.clone())
    }

    /// Returns the mean and variance of a numeric expression; `None` if it cannot be evaluated.
    pub(super) fn moments(&self, expr: &Expr) -> Option<Moments> {
        let values = numbers(expr, self.read(expr)?, self.parts.first()?.sample.library())?;
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
        (count > 0.0 && variance.is_finite()).then_some(Moments { mean, variance })
    }

    /// Returns the number of ordered pairs of different rows with equal values in these fields.
    pub(super) fn pairs(&self, names: &[Name]) -> Option<f64> {
        let counts =
            self.index(names)?.each().map(|(_, count)| f64::from(count)).collect::<Vec<_>>();
        Some(counts.iter().map(|count| count * (count - 1.0)).sum())
    }

    /// Returns one row per group of these fields, renamed `(new, old)`. Unless the sample is
    /// complete, large groups are overrepresented. The result never counts as complete, because
    /// conditions on aggregates may still remove groups.
    pub(super) fn groups(&self, keys: &[(Name, Name)]) -> Option<Rc<Component>> {
        self.derived(Derivation::Groups(keys.to_vec()), || {
            let names: Vec<Name> = keys.iter().map(|(_, old)| old.clone()).collect();
            let index = self.index(&names)?;
            let firsts = index.each().map(|(start, _)| index.rows.get(start as usize).copied());
            let firsts = firsts.collect::<Option<Vec<u32>>>()?;
            let groups =
                Component::new(self.at(&firsts), firsts.len(), (false, self.whole), self.tables);
            Some(groups.with_names(keys))
        })
    }

    /// Estimates the number of distinct combinations of these fields among `rows` tuples of which
    /// this is a sample.
    pub(super) fn distinct(&self, names: &[Name], rows: f64) -> Option<f64> {
        if self.rows == 0 {
            return None;
        }
        let index = self.index(names)?;
        let found = index.keys.len() as f64;
        if self.whole {
            return Some(found.max(1.0));
        }
        if let Some(counted) = self.counted(names) {
            return Some(counted.min(rows.max(1.0)));
        }
        let once = index.each().filter(|(_, count)| *count == 1).count() as f64;
        Some(distinct(found, once, self.rows as f64, rows))
    }

    /// Returns the counted number of distinct values of a field, if no row of its table was
    /// removed.
    fn counted(&self, names: &[Name]) -> Option<f64> {
        let ([name], 1) = (names, self.tables) else { return None };
        let (part, column) = self.part(name)?;
        let values = part.sample.values(column)?;
        (values.counted && Some(self.rows) == part.sample.size().map(|size| size.rows))
            .then_some(values.distinct)
    }

    /// Joins with another component on equal fields.
    pub(super) fn joined(
        &self,
        right: &Component,
        kind: Kind,
        keys: &[(Name, Name)],
    ) -> Option<Rc<JoinSample>> {
        let key = JoinKey { right: right.number, kind, keys: keys.to_vec() };
        if let Some(known) = self.joins.borrow().get(&key) {
            return Some(known.clone());
        }
        let joined = Rc::new(self.join(right, kind, keys)?);
        if self.reserve_cache(joined.component.row_bytes()) {
            self.joins.borrow_mut().insert(key, joined.clone());
        }
        Some(joined)
    }

    fn join(&self, right: &Component, kind: Kind, on: &[(Name, Name)]) -> Option<JoinSample> {
        let (own, others): (Vec<Name>, Vec<Name>) = on.iter().cloned().unzip();
        let (hashes, index) = (self.keys(&own)?, right.index(&others)?);
        let found: Vec<(u32, u32)> = hashes.iter().map(|hash| index.get(*hash)).collect();
        let pairs: usize = found.iter().map(|(_, count)| *count as usize).sum();
        let matched = found.iter().filter(|(_, count)| *count > 0).count();
        let mut seen = vec![false; index.rows.len()];
        for (start, _) in found.iter().filter(|(_, count)| *count > 0) {
            seen[*start as usize] = true;
        }
        let keys = seen.into_iter().filter(|seen| *seen).count() as f64;
        let (mut lefts, mut rights) = (Vec::new(), Vec::new());
        let every = match kind {
            Kind::Semi | Kind::Anti => {
                let keeps = |count: u32| (count > 0) == (kind == Kind::Semi);
                let kept = found.iter().zip(0..).filter(|((_, count), _)| keeps(*count));
                lefts.extend(kept.map(|(_, row)| row));
                1
            }
            _ => {
                let outer = kind == Kind::Left;
                let all = pairs + if outer { hashes.len() - matched } else { 0 };
                let every = all.div_ceil(ROWS_MAX).max(1);
                // Keep every n-th of all pairs and unmatched rows.
                let mut skipped = 0;
                for ((start, count), row) in found.iter().zip(0..) {
                    let alone = *count == 0 && outer;
                    let count = if alone { 1 } else { *count as usize };
                    while skipped < count {
                        lefts.push(row);
                        rights.push(if alone {
                            NO_ROW
                        } else {
                            index.rows[*start as usize + skipped]
                        });
                        skipped += every;
                    }
                    skipped -= count;
                }
                every
            }
        };
        let mut parts = self.at(&lefts);
        if !matches!(kind, Kind::Semi | Kind::Anti) {
            parts.extend(right.at(&rights));
        }
        let whole = self.whole && right.whole && every == 1;
        let tables = match kind {
            Kind::Semi | Kind::Anti => self.tables,
            _ => self.tables + right.tables,
        };
        let component =
            Component::new(parts, lefts.len(), (whole, self.uniform && right.uniform), tables);
        Some(JoinSample {
            pairs: pairs as f64,
            matched: matched as f64,
            keys,
            component: Rc::new(component),
        })
    }
}
