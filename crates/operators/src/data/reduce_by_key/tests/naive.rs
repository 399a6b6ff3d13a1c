//! Tables of all types, and naive implementations of the aggregates over them.

use tessera_context::testing::Numbers;

use super::*;

struct Random(Numbers);

impl Random {
    fn next(&mut self, below: u64) -> u64 {
        self.0.below(below)
    }

    fn maybe<T>(&mut self, value: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.next(6) == 0 { None } else { Some(value(self)) }
    }
}

/// A table of keys and values of many types, with about `keys` distinct keys.
pub(super) fn table(rows: usize, keys: u64, seed: u64) -> RecordBatch {
    let mut random = Random(Numbers::new(seed));
    let mut many = |make: &mut dyn FnMut(&mut Random)| (0..rows).for_each(|_| make(&mut random));
    macro_rules! column {
        ($array:ty, $make:expr) => {{
            let mut values = Vec::new();
            many(&mut |random: &mut Random| values.push(random.maybe($make)));
            Arc::new(values.into_iter().collect::<$array>()) as ArrayRef
        }};
    }
    let zeros = [0.0, -0.0, f64::NAN, -f64::NAN, 1.5];
    let text = |n: u64| match n % 3 {
        0 => format!("s{n}"),
        1 => format!("a string of more than twelve bytes {n}"),
        _ => String::new(),
    };
    let interval = |n: u64| match n % 3 {
        0 => IntervalMonthDayNano::new(1, 0, 0),
        1 => IntervalMonthDayNano::new(0, 30, 0),
        _ => IntervalMonthDayNano::new(0, 0, 5),
    };
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("ki", column!(Int64Array, |r| r.next(keys) as i64 - 3)),
        ("ks", column!(StringViewArray, |r| text(r.next(keys)))),
        ("kf", column!(Float64Array, |r| zeros[r.next(5) as usize])),
        ("kb", column!(BooleanArray, |r| r.next(2) == 0)),
        ("kd", {
            let values =
                column!(Decimal128Array, |r| r.next(3) as i128 * 10_000_000_000_000_000_000_000);
            compute::cast(&values, &DataType::Decimal128(38, 10)).unwrap()
        }),
        ("kv", column!(IntervalMonthDayNanoArray, |r| interval(r.next(3)))),
        ("vi", column!(Int32Array, |r| r.next(2000) as i32 - 1000)),
        ("vl", column!(Int64Array, |r| r.next(1 << 40) as i64 - (1 << 39))),
        ("vd", {
            let values = column!(Decimal64Array, |r| r.next(1_000_000) as i64 - 500_000);
            Arc::new(
                values
                    .as_primitive::<arrow::datatypes::Decimal64Type>()
                    .clone()
                    .with_data_type(DataType::Decimal64(15, 2)),
            )
        }),
        ("vw", column!(Decimal128Array, |r| r.next(1 << 50) as i128 * 1_000_000_007)),
        ("vf", column!(Float64Array, |r| r.next(1000) as f64 / 8.0 - 60.0)),
        ("vs", column!(StringViewArray, |r| text(r.next(50)))),
        ("vb", column!(BooleanArray, |r| r.next(4) == 0)),
        ("vt", column!(Date32Array, |r| r.next(20_000) as i32)),
        ("n", Arc::new(Int64Array::from_iter_values(0..rows as i64))),
    ];
    let fields: Vec<Field> = columns
        .iter()
        .map(|(name, array)| Field::new(*name, array.data_type().clone(), *name != "n"))
        .collect();
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap()
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum V {
    Null,
    I(i128),
    F(f64),
    S(String),
}

pub(super) fn values(array: &ArrayRef) -> Vec<V> {
    let plain = match array.data_type() {
        DataType::Dictionary(_, value) => compute::cast(array, value).unwrap(),
        _ => array.clone(),
    };
    let value = |row: usize| match plain.data_type() {
        _ if plain.is_null(row) => V::Null,
        DataType::Int32 => V::I(plain.as_primitive::<Int32Type>().value(row).into()),
        DataType::Date32 => {
            V::I(plain.as_primitive::<arrow::datatypes::Date32Type>().value(row).into())
        }
        DataType::Int64 => {
            V::I(plain.as_primitive::<arrow::datatypes::Int64Type>().value(row).into())
        }
        DataType::Decimal64(..) => {
            V::I(plain.as_primitive::<arrow::datatypes::Decimal64Type>().value(row).into())
        }
        DataType::Decimal128(..) => {
            V::I(plain.as_primitive::<arrow::datatypes::Decimal128Type>().value(row))
        }
        DataType::Float64 => V::F(plain.as_primitive::<arrow::datatypes::Float64Type>().value(row)),
        DataType::Boolean => V::I(plain.as_boolean().value(row).into()),
        DataType::Utf8View => V::S(plain.as_string_view().value(row).to_string()),
        DataType::Interval(_) => {
            let interval =
                plain.as_primitive::<arrow::datatypes::IntervalMonthDayNanoType>().value(row);
            V::I(tessera_vector::physical::interval_length(interval))
        }
        _ => V::S(arrow::util::display::array_value_to_string(&plain, row).unwrap()),
    };
    (0..plain.len()).map(value).collect()
}

/// A key as text: equal keys have equal texts.
pub(super) fn key(value: &V) -> String {
    match value {
        V::F(f) if f.is_nan() => "nan".into(),
        V::F(f) => format!("{:?}", f + 0.0),
        other => format!("{other:?}"),
    }
}

/// The result of a function over these values; the function ignores NULLs.
fn expected(function: &str, values: &[V], scale: i32) -> V {
    let values: Vec<&V> = values.iter().filter(|v| **v != V::Null).collect();
    let count = values.len();
    let floats: Vec<f64> = values
        .iter()
        .map(|v| match v {
            V::I(i) => *i as f64 / 10f64.powi(scale),
            V::F(f) => *f,
            _ => 0.0,
        })
        .collect();
    let whole: i128 = values.iter().map(|v| if let V::I(i) = v { *i } else { 0 }).sum();
    let order = |a: &V, b: &V| match (a, b) {
        (V::I(a), V::I(b)) => a.cmp(b),
        (V::F(a), V::F(b)) => a.partial_cmp(b).unwrap(),
        (V::S(a), V::S(b)) => a.cmp(b),
        _ => panic!("mixed values"),
    };
    let mean = floats.iter().sum::<f64>() / count as f64;
    let squares = floats.iter().map(|f| (f - mean) * (f - mean)).sum::<f64>();
    let over = |least: usize, value: f64| if count < least { V::Null } else { V::F(value) };
    match function {
        "count" => V::I(count as i128),
        _ if count == 0 => V::Null,
        "sum" if matches!(values[0], V::I(_)) => V::I(whole),
        "sum" => V::F(floats.iter().sum()),
        "avg" => V::F(mean),
        "min" | "bool_and" => {
            values.iter().min_by(|a, b| order(a, b)).map(|v| (*v).clone()).unwrap()
        }
        "max" | "bool_or" => {
            values.iter().max_by(|a, b| order(a, b)).map(|v| (*v).clone()).unwrap()
        }
        "var_samp" => over(2, squares / (count as f64 - 1.0)),
        "var_pop" => over(1, squares / count as f64),
        "stddev" => over(2, (squares / (count as f64 - 1.0)).sqrt()),
        "stddev_pop" => over(1, (squares / count as f64).sqrt()),
        other => panic!("no reference for {other}"),
    }
}

#[derive(Debug, Clone)]
pub(super) struct Agg {
    pub(super) function: &'static str,
    pub(super) arg: Option<&'static str>,
    pub(super) distinct: bool,
    pub(super) filter: Option<i64>,
}

pub(super) fn agg(function: &'static str, arg: &'static str) -> Agg {
    Agg { function, arg: Some(arg), distinct: false, filter: None }
}

pub(super) fn record(function: &str, args: Vec<Expr>, more: Vec<(&str, Value)>) -> Value {
    let mut entries = vec![
        (Arc::from("function"), Value::name(function)),
        (Arc::from("args"), Value::List(args.into_iter().map(Value::Expr).collect())),
    ];
    entries.extend(more.into_iter().map(|(name, value)| (Arc::from(name), value)));
    Value::Record(entries)
}

pub(super) fn params(keys: &[&str], aggregates: &[Agg]) -> Params {
    let one = |(i, agg): (usize, &Agg)| {
        let mut more = Vec::new();
        if agg.distinct {
            more.push(("distinct", Value::Boolean(true)));
        }
        if let Some(limit) = agg.filter {
            more.push((
                "filter",
                Value::Expr(Expr::call(
                    "gt",
                    vec![
                        Expr::field("vi"),
                        Expr::call("add", vec![Expr::int64(limit), Expr::int64(0)]),
                    ],
                )),
            ));
        }
        (
            Arc::from(format!("a{i}")),
            record(agg.function, agg.arg.map(Expr::field).into_iter().collect(), more),
        )
    };
    let aggregates: Vec<_> = aggregates.iter().enumerate().map(one).collect();
    let params = Params::new().with("aggregates", aggregates);
    if keys.is_empty() { params } else { params.with("keys", Value::names(keys)) }
}

pub(super) fn reference(
    batch: &RecordBatch,
    keys: &[&str],
    aggregates: &[Agg],
) -> BTreeMap<Vec<String>, Vec<V>> {
    let column = |name: &str| values(batch.column_by_name(name).unwrap());
    let key_columns: Vec<Vec<V>> = keys.iter().map(|name| column(name)).collect();
    let mut groups: BTreeMap<Vec<String>, Vec<usize>> = BTreeMap::new();
    for row in 0..batch.num_rows() {
        groups
            .entry(key_columns.iter().map(|column| key(&column[row])).collect())
            .or_default()
            .push(row);
    }
    if keys.is_empty() {
        groups.entry(Vec::new()).or_default();
    }
    let filter = column("vi");
    let one = |agg: &Agg, rows: &[usize]| {
        let rows = rows.iter().filter(|row| match (agg.filter, &filter[**row]) {
            (None, _) => true,
            (Some(limit), V::I(value)) => *value > i128::from(limit),
            _ => false,
        });
        let Some(arg) = agg.arg else { return V::I(rows.count() as i128) };
        let all = column(arg);
        let mut list: Vec<V> = rows.map(|row| all[*row].clone()).collect();
        if agg.distinct {
            let mut seen = std::collections::HashSet::new();
            list.retain(|value| seen.insert(key(value)));
        }
        let scale = match batch.column_by_name(arg).unwrap().data_type() {
            DataType::Decimal64(_, scale) | DataType::Decimal128(_, scale) => i32::from(*scale),
            _ => 0,
        };
        expected(agg.function, &list, scale)
    };
    groups
        .iter()
        .map(|(key, rows)| (key.clone(), aggregates.iter().map(|agg| one(agg, rows)).collect()))
        .collect()
}

pub(super) fn check(
    found: &RecordBatch,
    keys: usize,
    wanted: &BTreeMap<Vec<String>, Vec<V>>,
    what: &str,
) {
    let columns: Vec<Vec<V>> = found.columns().iter().map(values).collect();
    assert_eq!(found.num_rows(), wanted.len(), "{what}: number of groups");
    for row in 0..found.num_rows() {
        let group: Vec<String> = columns[..keys].iter().map(|column| key(&column[row])).collect();
        let wanted = wanted.get(&group).unwrap_or_else(|| panic!("{what}: no group {group:?}"));
        for (i, wanted) in wanted.iter().enumerate() {
            let found = &columns[keys + i][row];
            let same = match (found, wanted) {
                (V::F(a), V::F(b)) => (a - b).abs() <= 1e-9 * b.abs().max(1e-3),
                _ => found == wanted,
            };
            assert!(same, "{what}: group {group:?}, aggregate {i}: {found:?}, wanted {wanted:?}");
        }
    }
}
