//! Sampled tuples of a relation, and what they say of predicates, joins and groups.
//!
//! A component is a sample of a relation made of one or more tables: each of its rows names a row
//! of each table's sample. Joining two components joins what was sampled (as in Leis et al.,
//! Cardinality Estimation Done Right: Index-Based Join Sampling, 2017, with samples in the place of
//! indexes), so that what is correlated within a table or along a key stays so. Where one side is
//! sampled whole, as most dimensions are, the pairs found are a fair share of all; where both are
//! parts of tables whose rows all had the same chance, too, if enough were found.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::ArrayRef;
use tessera_plan::Expr;
use tessera_types::Field;
use tessera_vector::hash::{SEED, combine};

use crate::logical::relation::{Kind, Name};
use crate::sample::{NO_ROW, NO_WORD, Sample, distinct, numbers, select};

/// The most rows of a joined component: of more, a part is kept. Joining costs some 20 ns a row.
const ROWS_MAX: usize = 2_000;

/// What is kept with all components of a thread may have so many bytes: ordering many joins makes
/// thousands of components, and what is not kept is made again.
const KEPT_BYTES_MAX: usize = 16 << 20;

thread_local! {
    static KEPT_BYTES: Cell<usize> = const { Cell::new(0) };
}

/// Sampled tuples of a relation.
#[derive(Debug)]
pub(super) struct Component {
    parts: Vec<Part>,
    /// How many there are.
    pub rows: usize,
    /// All tuples of the relation are there.
    pub whole: bool,
    /// Every tuple of the relation had the same chance to be there.
    pub even: bool,
    /// Of how many tables it was made.
    tables: usize,
    number: u64,
    /// Bytes of what is kept below, and of the rows.
    bytes: Cell<usize>,
    words: RefCell<HashMap<Name, Option<Rc<Vec<u64>>>>>,
    indexes: RefCell<HashMap<Vec<Name>, Rc<Index>>>,
    /// Join ordering joins the same two again and again, within ever larger sets of units.
    joins: RefCell<HashMap<JoinOf, Rc<Joined>>>,
    /// What was made of it alone: the same is asked before and after joins were ordered.
    made: RefCell<Vec<(Step, Option<Rc<Component>>)>>,
}

impl Drop for Component {
    fn drop(&mut self) {
        KEPT_BYTES.set(KEPT_BYTES.get().saturating_sub(self.bytes.get()));
    }
}

/// How a component is made of another.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Filtered(Expr),
    Renamed(Vec<(Name, Name)>),
    Groups(Vec<(Name, Name)>),
}

/// A join that was asked for: with which component, how, and on which fields.
#[derive(Debug, PartialEq, Eq, Hash)]
struct JoinOf {
    right: u64,
    kind: Kind,
    keys: Vec<(Name, Name)>,
}

/// No two components have the same number.
static NEXT_NUMBER: AtomicU64 = AtomicU64::new(0);

/// A table in a component.
#[derive(Debug, Clone)]
struct Part {
    sample: Arc<Sample>,
    columns: Vec<(Name, usize)>,
    rows: Rc<Vec<u32>>,
}

/// Slots of an index for each of its rows, at least: what has no match is mostly told at the first.
const SLOTS_PER_ROW: usize = 4;

/// The rows of each key: an open-addressing table, since keys are hashes already.
#[derive(Debug)]
struct Index {
    /// The key in each slot, by its number; [`FREE`] where there is none.
    slots: Vec<u32>,
    shift: u32,
    keys: Vec<Key>,
    rows: Vec<u32>,
}

/// No key.
const FREE: u32 = u32::MAX;

/// A key, where its rows begin, and how many there are.
#[derive(Debug, Clone, Copy)]
struct Key {
    word: u64,
    start: u32,
    count: u32,
}

impl Index {
    fn new(words: &[u64]) -> Index {
        let bits = (words.len() * SLOTS_PER_ROW).next_power_of_two().max(SLOTS_PER_ROW).ilog2();
        let mut index = Index {
            slots: vec![FREE; 1 << bits],
            shift: 64 - bits,
            keys: Vec::new(),
            rows: Vec::new(),
        };
        let mut numbers = Vec::with_capacity(words.len());
        for word in words {
            numbers.push(if *word == NO_WORD { FREE } else { index.number(*word) });
        }
        let mut next = 0;
        for key in &mut index.keys {
            (key.start, next) = (next, next + key.count);
            key.count = 0;
        }
        index.rows = vec![0; next as usize];
        for (number, row) in numbers.into_iter().zip(0..).filter(|(number, _)| *number != FREE) {
            let key = &mut index.keys[number as usize];
            index.rows[(key.start + key.count) as usize] = row;
            key.count += 1;
        }
        index
    }

    fn bytes(&self) -> usize {
        self.slots.len() * size_of::<u32>()
            + self.keys.len() * size_of::<Key>()
            + self.rows.len() * size_of::<u32>()
    }

    /// The slot of a key, or the free one where it would be.
    fn place(&self, word: u64) -> usize {
        let mut place = (word >> self.shift) as usize;
        while self.slots[place] != FREE && self.keys[self.slots[place] as usize].word != word {
            place = (place + 1) & (self.slots.len() - 1);
        }
        place
    }

    /// The number of a key, which one more row has.
    fn number(&mut self, word: u64) -> u32 {
        let place = self.place(word);
        if self.slots[place] == FREE {
            self.slots[place] = self.keys.len() as u32;
            self.keys.push(Key { word, start: 0, count: 0 });
        }
        let number = self.slots[place];
        self.keys[number as usize].count += 1;
        number
    }

    /// Where a key's rows begin, and how many there are.
    fn get(&self, word: u64) -> (u32, u32) {
        let number = if word == NO_WORD { FREE } else { self.slots[self.place(word)] };
        self.keys.get(number as usize).map_or((0, 0), |key| (key.start, key.count))
    }

    /// Where the rows of each key begin, and how many there are, in the order in which keys came.
    fn each(&self) -> impl Iterator<Item = (u32, u32)> {
        self.keys.iter().map(|key| (key.start, key.count))
    }
}

/// What the values of an expression are like.
pub(super) struct Moments {
    pub(super) mean: f64,
    pub(super) variance: f64,
}

/// What joining two components has found.
#[derive(Debug)]
pub(super) struct Joined {
    /// Pairs that match.
    pub pairs: f64,
    /// Rows of the left one that have a match.
    pub matched: f64,
    pub component: Rc<Component>,
}

impl Component {
    /// The rows of a table's sample, if there is one.
    pub(super) fn of(sample: &Arc<Sample>, columns: &[(Name, usize)]) -> Option<Component> {
        let size = sample.size()?;
        let rows = (0..size.rows as u32).collect();
        let part = Part { sample: sample.clone(), columns: columns.to_vec(), rows: Rc::new(rows) };
        Some(Component::new(vec![part], size.rows, (size.whole(), size.even), 1))
    }

    fn new(parts: Vec<Part>, rows: usize, (whole, even): (bool, bool), tables: usize) -> Component {
        Component {
            parts,
            rows,
            whole,
            even,
            tables,
            bytes: Cell::new(0),
            number: NEXT_NUMBER.fetch_add(1, Ordering::Relaxed),
            words: RefCell::default(),
            indexes: RefCell::default(),
            joins: RefCell::default(),
            made: RefCell::default(),
        }
    }

    /// Whether it has values of a field.
    pub(super) fn has(&self, name: &Name) -> bool {
        self.part(name).is_some_and(|(part, column)| part.sample.values(column).is_some())
    }

    fn part(&self, name: &Name) -> Option<(&Part, usize)> {
        self.parts.iter().find_map(|part| {
            let (_, column) = part.columns.iter().find(|(known, _)| known == name)?;
            Some((part, *column))
        })
    }

    /// What a step makes of it, unless that is known.
    fn made(&self, step: Step, make: impl FnOnce() -> Option<Component>) -> Option<Rc<Component>> {
        if let Some((_, known)) = self.made.borrow().iter().find(|(known, _)| *known == step) {
            return known.clone();
        }
        let made = make().map(Rc::new);
        self.made.borrow_mut().push((step, made.clone()));
        made
    }

    /// The same rows, with these fields under these names, `(new, old)`.
    pub(super) fn renamed(&self, names: &[(Name, Name)]) -> Option<Rc<Component>> {
        self.made(Step::Renamed(names.to_vec()), || Some(self.with_names(names)))
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
        Component::new(parts, self.rows, (self.whole, self.even), self.tables)
    }

    /// The same rows with these fields alone; nothing where it has none of them.
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

    /// Whether there is room to keep so many bytes, which are kept then until the component is
    /// gone.
    fn keeps(&self, bytes: usize) -> bool {
        let kept = KEPT_BYTES.get() + bytes;
        let fits = kept <= KEPT_BYTES_MAX;
        if fits {
            KEPT_BYTES.set(kept);
            self.bytes.set(self.bytes.get() + bytes);
        }
        fits
    }

    /// Bytes of the rows of its tables.
    fn row_bytes(&self) -> usize {
        self.rows * self.parts.len() * size_of::<u32>()
    }

    /// A hash of each value of a field.
    fn words(&self, name: &Name) -> Option<Rc<Vec<u64>>> {
        if let Some(known) = self.words.borrow().get(name) {
            return known.clone();
        }
        let words = self.part(name).and_then(|(part, column)| {
            let values = part.sample.values(column)?;
            let word = |row: &u32| values.words.get(*row as usize).copied().unwrap_or(NO_WORD);
            Some(Rc::new(part.rows.iter().map(word).collect::<Vec<_>>()))
        });
        if self.keeps(self.rows * size_of::<u64>()) {
            self.words.borrow_mut().insert(name.clone(), words.clone());
        }
        words
    }

    /// A hash of the values of several fields; of none where one is NULL.
    fn keys(&self, names: &[Name]) -> Option<Rc<Vec<u64>>> {
        let [first, others @ ..] = names else { return None };
        let first = self.words(first)?;
        if others.is_empty() {
            return Some(first);
        }
        let mut keys = first.as_ref().clone();
        for name in others {
            for (key, word) in keys.iter_mut().zip(self.words(name)?.iter()) {
                let known = *key != NO_WORD && *word != NO_WORD;
                *key = if known { combine(combine(SEED, *key), *word) } else { NO_WORD };
            }
        }
        Some(Rc::new(keys))
    }

    fn index(&self, names: &[Name]) -> Option<Rc<Index>> {
        if let Some(known) = self.indexes.borrow().get(names) {
            return Some(known.clone());
        }
        let words = self.keys(names)?;
        let index = Rc::new(Index::new(&words));
        if self.keeps(index.bytes()) {
            self.indexes.borrow_mut().insert(names.to_vec(), index.clone());
        }
        Some(index)
    }

    /// The rows at these positions, [`NO_ROW`] for a row of NULLs.
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

    /// The values of the fields that an expression reads; nothing where it reads none or others.
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

    /// The rows that satisfy a predicate; nothing where it cannot be evaluated here.
    pub(super) fn filtered(&self, predicate: &Expr) -> Option<Rc<Component>> {
        self.made(Step::Filtered(predicate.clone()), || {
            let kept =
                select(predicate, self.read(predicate)?, self.parts.first()?.sample.library())?;
            Some(Component::new(self.at(&kept), kept.len(), (self.whole, self.even), self.tables))
        })
    }

    /// Mean and variance of a number's values; nothing where they are none or unknown.
    pub(super) fn moments(&self, expr: &Expr) -> Option<Moments> {
        let values = numbers(expr, self.read(expr)?, self.parts.first()?.sample.library())?;
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
        (count > 0.0 && variance.is_finite()).then_some(Moments { mean, variance })
    }

    /// How many ordered pairs of different rows have equal values in these fields.
    pub(super) fn pairs(&self, names: &[Name]) -> Option<f64> {
        let counts =
            self.index(names)?.each().map(|(_, count)| f64::from(count)).collect::<Vec<_>>();
        Some(counts.iter().map(|count| count * (count - 1.0)).sum())
    }

    /// A row for each group by these fields, under new names, `(new, old)`. Of larger groups there
    /// are more than of small ones, unless all are there; and then conditions on aggregates may
    /// leave out some, so that they count as a part.
    pub(super) fn groups(&self, keys: &[(Name, Name)]) -> Option<Rc<Component>> {
        self.made(Step::Groups(keys.to_vec()), || {
            let names: Vec<Name> = keys.iter().map(|(_, old)| old.clone()).collect();
            let index = self.index(&names)?;
            let firsts = index.each().map(|(start, _)| index.rows.get(start as usize).copied());
            let firsts = firsts.collect::<Option<Vec<u32>>>()?;
            let groups =
                Component::new(self.at(&firsts), firsts.len(), (false, self.whole), self.tables);
            Some(groups.with_names(keys))
        })
    }

    /// How many distinct values these fields have together among `rows` tuples of which these are
    /// some.
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

    /// The distinct values of a field that were counted in its table, of which no row has been left
    /// out.
    fn counted(&self, names: &[Name]) -> Option<f64> {
        let ([name], 1) = (names, self.tables) else { return None };
        let (part, column) = self.part(name)?;
        let values = part.sample.values(column)?;
        (values.counted && Some(self.rows) == part.sample.size().map(|size| size.rows))
            .then_some(values.distinct)
    }

    /// The rows joined with those of another component where fields of either are equal.
    pub(super) fn joined(
        &self,
        right: &Component,
        kind: Kind,
        keys: &[(Name, Name)],
    ) -> Option<Rc<Joined>> {
        let asked = JoinOf { right: right.number, kind, keys: keys.to_vec() };
        if let Some(known) = self.joins.borrow().get(&asked) {
            return Some(known.clone());
        }
        let joined = Rc::new(self.join(right, kind, keys)?);
        if self.keeps(joined.component.row_bytes()) {
            self.joins.borrow_mut().insert(asked, joined.clone());
        }
        Some(joined)
    }

    fn join(&self, right: &Component, kind: Kind, keys: &[(Name, Name)]) -> Option<Joined> {
        let (own, others): (Vec<Name>, Vec<Name>) = keys.iter().cloned().unzip();
        let (words, index) = (self.keys(&own)?, right.index(&others)?);
        let found: Vec<(u32, u32)> = words.iter().map(|word| index.get(*word)).collect();
        let pairs: usize = found.iter().map(|(_, count)| *count as usize).sum();
        let matched = found.iter().filter(|(_, count)| *count > 0).count();
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
                let all = pairs + if outer { words.len() - matched } else { 0 };
                let every = all.div_ceil(ROWS_MAX).max(1);
                // Of all pairs, and rows that have none, every so many-th.
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
            Component::new(parts, lefts.len(), (whole, self.even && right.even), tables);
        Some(Joined { pairs: pairs as f64, matched: matched as f64, component: Rc::new(component) })
    }
}
