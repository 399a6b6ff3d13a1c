//! Random expressions over fields of every type, in shapes to which a given rule applies.

use tessera_context::testing::Numbers;
use tessera_functions::testing::call;
use tessera_plan::{Expr, Rule, Scalar};
use tessera_types::{Atom, DECIMAL_PRECISION_MAX, TimeUnit};

use super::Fields;

const COMPARISONS: [&str; 8] =
    ["eq", "not_eq", "lt", "lt_eq", "gt", "gt_eq", "is_distinct", "is_not_distinct"];
const DAY: i128 = 86_400_000_000;

/// A deterministic generator of choices.
pub(super) struct Random(Numbers);

impl Random {
    pub(super) fn new(seed: u64) -> Random {
        Random(Numbers::new(seed))
    }

    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.0.index(bound)
    }

    pub(super) fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }
}

/// Returns values of a type, including extreme ones.
pub(super) fn pool(atom: &Atom) -> Vec<Scalar> {
    let integers = |values: &[i128]| values.iter().map(|value| Scalar::Integer(*value)).collect();
    match atom {
        Atom::Boolean => vec![Scalar::Boolean(true), Scalar::Boolean(false)],
        Atom::Int8 => integers(&[0, 1, 2, -1, i8::MIN.into(), i8::MAX.into()]),
        Atom::Int16 => integers(&[0, 1, 2, -1, 127, 128, i16::MIN.into(), i16::MAX.into()]),
        Atom::Int32 => integers(&[0, 1, 2, -1, 32_768, i32::MIN.into(), i32::MAX.into()]),
        Atom::Int64 => {
            integers(&[0, 1, 2, -1, 1 << 31, (1 << 53) + 1, i64::MIN.into(), i64::MAX.into()])
        }
        Atom::UInt8 => integers(&[0, 1, 2, u8::MAX.into()]),
        Atom::UInt32 => integers(&[0, 1, 2, u32::MAX.into()]),
        Atom::UInt64 => integers(&[0, 1, 2, 1 << 63, u64::MAX.into()]),
        Atom::Float32 | Atom::Float64 => {
            let most = if *atom == Atom::Float32 { f64::from(f32::MAX) } else { f64::MAX };
            let floats = [
                0.0,
                -0.0,
                1.0,
                1.5,
                -2.0,
                f64::NAN,
                f64::INFINITY,
                f64::NEG_INFINITY,
                most,
                -most,
            ];
            floats.map(Scalar::Float).to_vec()
        }
        Atom::Decimal(precision, scale) => {
            let one = 10_i128.pow(scale.unsigned_abs().into());
            let most = 10_i128.pow((*precision).into()) - 1;
            integers(&[0, 1, one, 2 * one, one * 3 / 2, -one, most, -most])
        }
        Atom::String => {
            let texts = [
                "",
                "a",
                "ab",
                "AB",
                "a%",
                "_b",
                "a\\%",
                " ",
                "日本",
                "é",
                "e\u{301}",
                "😀b",
                "1",
                "9999999999",
            ];
            texts
                .iter()
                .chain(&["2020-02-29", "true", "NaN"])
                .map(|text| Scalar::String((*text).into()))
                .collect()
        }
        Atom::Bytes => {
            let bytes: [&[u8]; 4] = [b"", b"\0", b"\xff\0", b"ab"];
            bytes.iter().map(|bytes| Scalar::Bytes((*bytes).into())).collect()
        }
        Atom::Date => integers(&[0, 1, -1, 18_321, 200_000_000, i32::MAX.into(), i32::MIN.into()]),
        Atom::Time(_) => integers(&[0, 1, DAY / 2, DAY - 1]),
        Atom::Timestamp(..) => integers(&[
            0,
            1,
            -1,
            DAY,
            -DAY,
            18_321 * DAY,
            18_321 * DAY + 1,
            i64::MAX.into(),
            i64::MIN.into(),
        ]),
        Atom::Duration(_) => integers(&[0, 1, -1, DAY]),
        Atom::Interval => {
            let of = |(months, days, nanoseconds)| Scalar::Interval { months, days, nanoseconds };
            [(0, 0, 0), (1, 0, 0), (0, 30, 0), (0, 1, 0), (-1, 0, 1)].map(of).to_vec()
        }
        Atom::List(_) => {
            let (one, two) = (Scalar::Integer(1), Scalar::Integer(2));
            let lists = [
                vec![],
                vec![one.clone()],
                vec![one.clone(), two],
                vec![one, Scalar::Null],
                vec![Scalar::Null],
            ];
            lists.map(|list| Scalar::Nested(list.into())).to_vec()
        }
        Atom::Struct(_) => {
            let (one, text) = (Scalar::Integer(1), Scalar::String("a".into()));
            let rows = [
                [one.clone(), text.clone()],
                [Scalar::Null, text],
                [one, Scalar::Null],
                [Scalar::Null, Scalar::Null],
            ];
            rows.map(|row| Scalar::Nested(row.into())).to_vec()
        }
        _ => vec![Scalar::Null],
    }
}

/// Returns an expression to which the rule probably applies.
pub(super) fn shape(rule: Rule, fields: &Fields, random: &mut Random) -> Expr {
    let mut making = Making { fields, random };
    let core = making.core(rule);
    let depth = making.random.below(3);
    making.within(core, depth)
}

struct Making<'a> {
    fields: &'a Fields,
    random: &'a mut Random,
}

impl Making<'_> {
    fn core(&mut self, rule: Rule) -> Expr {
        match rule {
            Rule::FoldConstants => self.constants(),
            Rule::SameTypeCast => {
                let atom = self.atom();
                let value = self.value(&atom, 2);
                self.cast(value, atom)
            }
            Rule::StrictNull => {
                let atom = self.atom();
                let mut pair = vec![self.value(&atom, 2), Expr::null(atom.clone())];
                if self.random.below(2) == 0 {
                    pair.reverse();
                }
                let of_numbers = ["add", "sub", "mul", "div", "mod"];
                let name = match atom {
                    Atom::String if self.random.below(2) == 0 => {
                        *self.random.pick(&["like", "ilike"])
                    }
                    _ if self.random.below(3) == 0 => *self.random.pick(&of_numbers),
                    _ => *self.random.pick(&COMPARISONS[..6]),
                };
                call(name, pair)
            }
            Rule::FlipComparison => {
                let atom = self.atom();
                let (left, right) = (self.constant(&atom), self.value(&atom, 2));
                self.compare(left, right)
            }
            Rule::DistinctFromNull => {
                let atom = self.atom();
                let name = *self.random.pick(&COMPARISONS[6..]);
                call(name, [self.value(&atom, 2), Expr::null(atom)])
            }
            Rule::BooleanEquality => {
                let name = *self.random.pick(&["eq", "eq", "not_eq"]);
                let value = Expr::boolean(self.random.below(2) == 0);
                call(name, [self.condition(2), value])
            }
            Rule::UnwrapCast => self.unwrapped(),
            Rule::DateComparison => {
                let to = Atom::Timestamp(TimeUnit::Microsecond, None);
                let day = self.value(&Atom::Date, 1);
                let (left, right) = (self.cast(day, to.clone()), self.constant(&to));
                self.compare(left, right)
            }
            Rule::LikeWithoutWildcards => {
                let pattern = *self
                    .random
                    .pick(&["", "a", "ab", "AB", "日本", "é", "e\u{301}", "a%", "_b", "a\\%"]);
                call("like", [self.value(&Atom::String, 2), Expr::string(pattern)])
            }
            Rule::DoubleNot => not(not(self.condition(2))),
            Rule::NegateComparison => {
                let atom = self.atom();
                let (left, right) = (self.value(&atom, 2), self.value(&atom, 1));
                not(self.compare(left, right))
            }
            Rule::PushNot => not(self.connective(2)),
            Rule::FlattenConnectives => {
                let any = self.random.below(2) == 0;
                let inner = (0..self.random.below(3)).map(|_| self.condition(1)).collect();
                let mut list: Vec<Expr> =
                    (0..self.random.below(3)).map(|_| self.condition(1)).collect();
                let at = self.random.below(list.len() + 1);
                list.insert(at, connected(any, inner));
                connected(any, list)
            }
            Rule::NeutralOperands | Rule::DecidingOperand => {
                let any = self.random.below(2) == 0;
                let constant = Expr::boolean(any == (rule == Rule::DecidingOperand));
                let mut list: Vec<Expr> =
                    (0..self.random.below(4)).map(|_| self.condition(2)).collect();
                let at = self.random.below(list.len() + 1);
                list.insert(at, constant);
                connected(any, list)
            }
            Rule::RepeatedOperands => {
                let mut list: Vec<Expr> =
                    (0..1 + self.random.below(3)).map(|_| self.condition(2)).collect();
                let again = self.random.pick(&list).clone();
                list.insert(self.random.below(list.len()) + 1, again);
                connected(self.random.below(2) == 0, list)
            }
            Rule::DeadBranches => {
                let atom = self.atom();
                let mut branches: Vec<(Expr, Expr)> = (0..self.random.below(3))
                    .map(|_| (self.condition(1), self.value(&atom, 1)))
                    .collect();
                let decided = self.constant(&Atom::Boolean);
                let at = self.random.below(branches.len() + 1);
                branches.insert(at, (decided, self.value(&atom, 1)));
                let otherwise = (self.random.below(2) == 0).then(|| Box::new(self.value(&atom, 1)));
                Expr::Case { branches, otherwise }
            }
            _ => {
                let atom = self.atom();
                let mut list: Vec<Expr> =
                    (0..self.random.below(3)).map(|_| self.value(&atom, 1)).collect();
                let at = self.random.below(list.len() + 1);
                let inner = match self.random.below(3) {
                    0 => Expr::Coalesce(vec![self.value(&atom, 1), self.value(&atom, 1)]),
                    1 => Expr::null(atom.clone()),
                    _ => self.constant(&atom),
                };
                list.insert(at, inner);
                Expr::Coalesce(list)
            }
        }
    }

    /// Returns a comparison of a lossless cast with a constant that mostly also fits the inner
    /// type.
    fn unwrapped(&mut self) -> Expr {
        const PAIRS: [(&str, &str); 14] = [
            ("int8", "int32"),
            ("int16", "int64"),
            ("int32", "int64"),
            ("uint8", "int16"),
            ("uint32", "int64"),
            ("uint32", "uint64"),
            ("int8", "float64"),
            ("int32", "float64"),
            ("float32", "float64"),
            ("int32", "decimal(12,1)"),
            ("int64", "decimal(38,4)"),
            ("decimal(10,2)", "decimal(12,3)"),
            ("decimal(10,2)", "decimal(38,4)"),
            ("int64", "float64"),
        ];
        let (from, to) = *self.random.pick(&PAIRS);
        let (from, to): (Atom, Atom) = (from.parse().unwrap(), to.parse().unwrap());
        let constant = match self.random.below(4) {
            0 => self.constant(&to),
            _ => {
                let value = self.constant(&from).cast(to.clone());
                let scale = |scale: i8| 10_i128.pow(scale.unsigned_abs().into());
                let constant = match (&value, &from, &to) {
                    (Expr::Cast { input, .. }, _, _) => match (&**input, &from, &to) {
                        (
                            Expr::Constant(Scalar::Integer(v), _),
                            Atom::Decimal(_, s),
                            Atom::Decimal(_, t),
                        ) => Scalar::Integer(v * scale(t - s)),
                        (Expr::Constant(Scalar::Integer(v), _), _, Atom::Decimal(_, t)) => {
                            Scalar::Integer(v * scale(*t))
                        }
                        (Expr::Constant(Scalar::Integer(v), _), _, Atom::Float64) => {
                            Scalar::Float(*v as f64)
                        }
                        (Expr::Constant(value, _), ..) => value.clone(),
                        _ => Scalar::Null,
                    },
                    _ => Scalar::Null,
                };
                Expr::Constant(constant, to.clone())
            }
        };
        let value = self.value(&from, 1);
        let cast = self.cast(value, to);
        self.compare(cast, constant)
    }

    /// Returns a call over constants.
    fn constants(&mut self) -> Expr {
        let atom = self.atom();
        let (a, b) = (self.constant(&atom), self.constant(&atom));
        match self.random.below(8) {
            0 => self.arithmetic(a, b),
            1 => {
                let to = self.atom();
                self.cast(a, to)
            }
            2 => Expr::Coalesce(vec![a, b]),
            3 => Expr::IsNull(Box::new(a)),
            4 => connected(
                self.random.below(2) == 0,
                vec![self.constant(&Atom::Boolean), self.constant(&Atom::Boolean)],
            ),
            5 => not(self.constant(&Atom::Boolean)),
            6 => {
                let branches = vec![(self.constant(&Atom::Boolean), a)];
                Expr::Case { branches, otherwise: Some(Box::new(b)) }
            }
            _ => self.compare(a, b),
        }
    }

    /// Wraps an expression in another one.
    fn within(&mut self, core: Expr, depth: usize) -> Expr {
        if depth == 0 {
            return core;
        }
        let Some(atom) = self.fields.atom_of(&core) else { return core };
        let around = match (self.random.below(6), &atom) {
            (0, _) => Expr::IsNull(Box::new(core)),
            (1, _) => Expr::Coalesce(vec![core, self.value(&atom, 1)]),
            (2, _) => {
                let branches = vec![(self.condition(1), core)];
                Expr::Case { branches, otherwise: Some(Box::new(self.value(&atom, 1))) }
            }
            (3, Atom::Boolean) => {
                let branches = vec![(core, self.condition(1))];
                Expr::Case { branches, otherwise: None }
            }
            (4, Atom::Boolean) => not(core),
            (_, Atom::Boolean) => {
                let mut list = vec![self.condition(1), self.condition(1)];
                list.insert(self.random.below(3), core);
                connected(self.random.below(2) == 0, list)
            }
            _ => {
                let other = self.value(&atom, 1);
                self.compare(core, other)
            }
        };
        self.within(around, depth - 1)
    }

    fn atom(&mut self) -> Atom {
        self.random.pick(&self.fields.atoms).clone()
    }

    fn constant(&mut self, atom: &Atom) -> Expr {
        match self.random.below(6) {
            0 => Expr::null(atom.clone()),
            _ => Expr::Constant(self.random.pick(&pool(atom)).clone(), atom.clone()),
        }
    }

    fn compare(&mut self, left: Expr, right: Expr) -> Expr {
        let name = *self.random.pick(&COMPARISONS);
        call(name, [left, right])
    }

    fn arithmetic(&mut self, left: Expr, right: Expr) -> Expr {
        let name = *self.random.pick(&["add", "sub", "mul", "div", "mod"]);
        call(name, [left, right])
    }

    fn cast(&mut self, input: Expr, to: Atom) -> Expr {
        Expr::Cast { input: Box::new(input), to, safe: self.random.below(3) == 0 }
    }

    fn connective(&mut self, depth: usize) -> Expr {
        let list = (0..1 + self.random.below(3))
            .map(|_| self.condition(depth.saturating_sub(1)))
            .collect();
        connected(self.random.below(2) == 0, list)
    }

    /// Returns an expression of a type; some raise errors, some are volatile but constant per call.
    fn value(&mut self, atom: &Atom, depth: usize) -> Expr {
        if *atom == Atom::Boolean {
            return self.condition(depth);
        }
        let which = if depth == 0 { 0 } else { self.random.below(10) };
        let made = match which {
            4 => Expr::Coalesce(vec![self.value(atom, depth - 1), self.value(atom, depth - 1)]),
            5 => {
                let branches = vec![(self.condition(depth - 1), self.value(atom, depth - 1))];
                Expr::Case { branches, otherwise: Some(Box::new(self.value(atom, depth - 1))) }
            }
            6 => {
                let (a, b) = (self.value(atom, depth - 1), self.value(atom, depth - 1));
                self.arithmetic(a, b)
            }
            7 => {
                let from = self.atom();
                let input = self.value(&from, depth - 1);
                self.cast(input, atom.clone())
            }
            8 if *atom == Atom::String => {
                call("concat_op", [self.value(atom, depth - 1), self.value(atom, depth - 1)])
            }
            8 if *atom == Atom::Float64 => {
                let zero = Expr::Constant(Scalar::Float(0.0), Atom::Float64);
                call("mul", [call("random", []), zero])
            }
            9 => call("nullif", [self.value(atom, depth - 1), self.value(atom, depth - 1)]),
            _ => return self.leaf(atom),
        };
        match self.fields.atom_of(&made) {
            Some(found) if found == *atom => made,
            // A sum of decimals has more digits.
            Some(Atom::Decimal(..)) if matches!(atom, Atom::Decimal(p, _) if *p < DECIMAL_PRECISION_MAX) => {
                made.cast(atom.clone())
            }
            _ => self.leaf(atom),
        }
    }

    fn leaf(&mut self, atom: &Atom) -> Expr {
        let field =
            if self.random.below(4) == 0 { None } else { self.fields.field(atom, self.random) };
        field.unwrap_or_else(|| self.constant(atom))
    }

    /// Returns a boolean expression.
    fn condition(&mut self, depth: usize) -> Expr {
        let below = depth.saturating_sub(1);
        let which = if depth == 0 { 0 } else { self.random.below(12) };
        let made = match which {
            1..=4 => {
                let atom = self.atom();
                let (left, right) = (self.value(&atom, below), self.value(&atom, below));
                self.compare(left, right)
            }
            5 => not(self.condition(below)),
            6 => self.connective(depth),
            7 => {
                let atom = self.atom();
                Expr::IsNull(Box::new(self.value(&atom, below)))
            }
            8 => call("like", [self.value(&Atom::String, below), self.value(&Atom::String, 0)]),
            9 => {
                // True or false at random for each row.
                let bound =
                    Expr::Constant(Scalar::Float(*self.random.pick(&[0.0, 1.0])), Atom::Float64);
                call("lt", [call("random", []), bound])
            }
            10 => {
                let one = Expr::Constant(Scalar::Integer(1), Atom::Int64);
                let ratio = call("div", [one.clone(), self.leaf(&Atom::Int64)]);
                call("gt", [ratio, one])
            }
            11 => self.leaf(&Atom::String).cast(Atom::Boolean),
            _ => return self.leaf(&Atom::Boolean),
        };
        match self.fields.atom_of(&made) {
            Some(Atom::Boolean) => made,
            _ => self.leaf(&Atom::Boolean),
        }
    }
}

fn not(inner: Expr) -> Expr {
    Expr::Not(Box::new(inner))
}

fn connected(any: bool, list: Vec<Expr>) -> Expr {
    if any { Expr::Or(list) } else { Expr::And(list) }
}
