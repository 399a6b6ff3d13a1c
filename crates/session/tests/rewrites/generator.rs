//! Random queries, one generator per rule.

use tessera_context::testing::Numbers;
use tessera_plan::Rule;

/// A generator of parts of queries.
pub(super) struct Random(Numbers);

impl Random {
    pub(super) fn new(seed: u64) -> Random {
        Random(Numbers::new(seed))
    }

    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.0.index(bound)
    }

    pub(super) fn pick<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.below(list.len())]
    }

    /// A column of one of these relations.
    pub(super) fn column(&mut self, of: &[&str], columns: &[&str]) -> String {
        format!("{}.{}", self.pick(of), self.pick(columns))
    }

    pub(super) fn number(&mut self, of: &[&str]) -> String {
        match self.below(6) {
            0 => self.below(4).to_string(),
            1 => format!("({} + {})", self.column(of, &["a", "b"]), self.column(of, &["a", "b"])),
            2 => format!("coalesce({}, {})", self.column(of, &["a", "b"]), self.below(3)),
            _ => self.column(of, &["a", "b"]),
        }
    }

    /// A condition over relations with the columns a, b (numbers), c (text), d (double) and e
    /// (boolean).
    pub(super) fn condition(&mut self, of: &[&str], depth: usize) -> String {
        let compare = ["=", "<>", "<", "<=", ">", ">=", "is distinct from"];
        match self.below(if depth == 0 { 8 } else { 12 }) {
            0 | 1 => format!("{} {} {}", self.number(of), self.pick(&compare), self.number(of)),
            2 => format!(
                "{} in (1, 2{})",
                self.column(of, &["a", "b"]),
                self.pick(&["", ", null", ", 3"])
            ),
            3 => format!(
                "{} {} '{}'",
                self.column(of, &["c"]),
                self.pick(&compare),
                self.pick(&["", "a", "ä"])
            ),
            4 => {
                format!("{} like '{}'", self.column(of, &["c"]), self.pick(&["a%", "", "%b", "a"]))
            }
            5 => {
                format!(
                    "{} is {}null",
                    self.column(of, &["a", "b", "c", "d", "e"]),
                    self.pick(&["", "not "])
                )
            }
            6 => format!("{} {} 0.0", self.column(of, &["d"]), self.pick(&compare)),
            7 => self.column(of, &["e"]),
            8 => format!("not ({})", self.condition(of, depth - 1)),
            9 => format!("6 / {} > 1", self.column(of, &["a", "b"])),
            which => {
                let (left, right) = (self.condition(of, depth - 1), self.condition(of, depth - 1));
                format!("({left} {} {right})", if which == 10 { "and" } else { "or" })
            }
        }
    }

    pub(super) fn test(&mut self, of: &[&str]) -> String {
        self.condition(of, 2)
    }

    pub(super) fn safe(&mut self, of: &[&str]) -> String {
        self.condition(of, 0)
    }

    /// A call of a numeric aggregate function.
    pub(super) fn number_of_group(&mut self, of: &[&str]) -> String {
        loop {
            let call = self.aggregate(of, "");
            if !(call.starts_with("min(") && call.contains(".c")) {
                return call;
            }
        }
    }

    pub(super) fn aggregate(&mut self, of: &[&str], distinct: &str) -> String {
        match self.below(5) {
            0 => "count(*)".to_string(),
            1 => format!("count({distinct}{})", self.column(of, &["a", "b", "c"])),
            2 => format!("sum({distinct}{})", self.column(of, &["a", "b"])),
            3 => format!("min({})", self.column(of, &["a", "c", "d"])),
            _ => format!("avg({distinct}{})", self.column(of, &["a", "b"])),
        }
    }
}

/// A query that a rule may change.
pub(super) fn query(rule: Rule, random: &mut Random) -> String {
    let r = random;
    let join = r.pick(&["join", "left join", "right join", "full join"]);
    let on = format!("x.{} = y.{}", r.pick(&["a", "b"]), r.pick(&["a", "b"]));
    match rule {
        Rule::FactorDisjunctions => {
            let (shared, one, two) = (r.safe(&["x"]), r.test(&["x"]), r.test(&["x"]));
            format!("select x.a, x.c from t x where ({shared} and {one}) or ({two} and {shared})")
        }
        Rule::PushFilterScan | Rule::PushIntoScans | Rule::PruneColumns | Rule::DropIdle => {
            format!("select x.a, x.b, x.c from t x where {} and {}", r.safe(&["x"]), r.test(&["x"]))
        }
        Rule::TryInScans => {
            format!(
                "select x.a, x.c from t x where 6 / x.{} > 1 and {}",
                r.pick(&["a", "b"]),
                r.test(&["x"])
            )
        }
        Rule::PushFilterMap => {
            let inner = format!(
                "select {} as a, y.b, y.c || 'b' as c, y.d, y.e from t y",
                r.number(&["y"])
            );
            format!("select * from ({inner}) x where {} and {}", r.safe(&["x"]), r.test(&["x"]))
        }
        Rule::PushFilterJoin => {
            let (side, both) = (r.safe(&["x"]), r.test(&["x", "y"]));
            format!("select x.a, y.b, y.c from t x {join} u y on {on} where {side} and {both}")
        }
        Rule::OuterToInner => {
            let join = r.pick(&["left join", "right join", "full join"]);
            let (one, two) = (r.test(&["x", "y"]), r.test(&["x", "y"]));
            format!("select x.a, x.b, y.a, y.c from t x {join} u y on {on} where {one} and {two}")
        }
        Rule::OuterToAnti => {
            let on = format!("x.a = y.a and {}", r.test(&["x", "y"]));
            let both = r.test(&["x", "y"]);
            format!(
                "select x.a, x.b, y.a, y.c from t x left join u y on {on} where y.a is null and ({both} or x.b > 1)"
            )
        }
        Rule::ImpliedPredicates => {
            let both = |r: &mut Random| format!("({} and {})", r.safe(&["x"]), r.safe(&["y"]));
            let (one, two) = (both(r), both(r));
            let compared = format!("x.a {} {}", r.pick(&["<", "=", ">", "<>"]), r.below(4));
            let key = r.pick(&["x.a = y.a", "y.b = x.a and x.c = y.c", "x.a = y.a and x.b < y.b"]);
            let exists = r.pick(&["exists", "not exists"]);
            match r.below(3) {
                0 => format!("select x.a, y.b from t x left join u y on {key} where {compared}"),
                1 => format!(
                    "select x.a, x.c from t x where {compared} and {exists} (select 1 from u y where {key})"
                ),
                _ => format!("select x.a, y.b from t x join u y on {on} and ({one} or {two})"),
            }
        }
        Rule::PushFilterAggregate => {
            let keys = r.pick(&["y.a, y.c", "y.a", "y.c, y.a"]);
            let inner = format!(
                "select {keys}, {} as b from t y group by {keys}",
                r.number_of_group(&["y"])
            );
            format!(
                "select * from ({inner}) x where {} and x.b is not null",
                r.pick(&[
                    "x.a > 0",
                    "x.a = 1",
                    "x.a is null",
                    "x.a in (1, 2)",
                    "6 / x.a > 1",
                    "x.b < 3"
                ])
            )
        }
        Rule::PushFilterWindow => {
            let calls = [
                "count(*) over (partition by a)",
                "sum(b) over (partition by c, a order by b, d)",
                "rank() over (partition by a order by b, c, d)",
            ];
            let inner = format!("select a, b, c, d, e, {} as n from t", r.pick(&calls));
            let key = r.pick(&["x.a > 0", "x.a = 1", "x.a is null", "x.a in (1, 2)"]);
            format!("select * from ({inner}) x where {key} and {}", r.test(&["x"]))
        }
        Rule::PushFilterUnion => {
            let side = |r: &mut Random, table: &str| {
                format!("select a, b, c, d, e from {table} y where {}", r.test(&["y"]))
            };
            let (one, two) = (side(r, "t"), side(r, "u"));
            format!(
                "select * from ({one} union all {two}) x where {} and {}",
                r.safe(&["x"]),
                r.test(&["x"])
            )
        }
        Rule::PushFilterSort => {
            // Of other subqueries the order is dropped.
            let inner = "select distinct on (a) a, b, c, d, e from t order by a, b, c, d, e";
            format!(
                "select x.a, x.c from ({inner}) x where {} and {}",
                r.safe(&["x"]),
                r.test(&["x"])
            )
        }
        Rule::PushFilterUnnest => {
            let inner = "select a, b, c, d, e, unnest(l) as l from q";
            format!(
                "select * from ({inner}) x where {} and {} and x.l > 0",
                r.safe(&["x"]),
                r.test(&["x"])
            )
        }
        Rule::SinkSemiJoins => {
            let exists = r.pick(&["exists", "not exists"]);
            let within = format!("{exists} (select 1 from w z where z.a = x.a)");
            format!(
                "select x.a, y.b from t x join u y on {on} where {within} and {}",
                r.test(&["x", "y"])
            )
        }
        Rule::FirstOfSort | Rule::PushThresholds => {
            let table = if rule == Rule::PushThresholds { "p" } else { "t" };
            let (limit, offset) = (r.below(8), r.below(3));
            let descending = r.pick(&["", " desc", " nulls first"]);
            let order = format!("order by 1{descending}, 2, 3 limit {limit} offset {offset}");
            format!(
                "select x.{}, x.b, x.c from {table} x where {} {order}",
                r.pick(&["a", "b", "d"]),
                r.test(&["x"])
            )
        }
        Rule::UnnestLateral => match r.below(3) {
            0 => format!(
                "select x.a, m from q x left join lateral unnest(x.l) as n(m) on true where {}",
                r.test(&["x"])
            ),
            1 => format!(
                "select x.a, k.s from q x, lateral (select m + x.b as s from unnest(x.l) as n(m) where m > {}) k",
                r.below(3)
            ),
            _ => format!("select x.a, m from q x, unnest(x.l) as n(m) where {}", r.test(&["x"])),
        },
        Rule::LateralLimit => {
            let (limit, offset, on) =
                (1 + r.below(3), r.below(2), r.pick(&["y.a = x.a", "y.a = x.a and y.b <= x.b"]));
            let inner = format!(
                "select y.a, y.b, y.c, {} as s from w y where {on} and {} \
                 order by y.b {}, y.c, y.a, y.d, y.e limit {limit} offset {offset}",
                r.pick(&["y.b", "x.c", "y.d"]),
                r.safe(&["y"]),
                r.pick(&["", "desc", "nulls first"])
            );
            match r.below(3) {
                0 => format!(
                    "select x.a, x.b, k.* from u x, lateral ({inner}) k where {}",
                    r.test(&["x"])
                ),
                1 => format!(
                    "select x.a, x.b, k.* from u x left join lateral ({inner}) k on k.b = x.b"
                ),
                _ => format!(
                    "select x.a, x.b from u x where exists (select 1 from ({inner}) k where k.c = x.c)"
                ),
            }
        }
        Rule::SingleRowSubquery => {
            let value =
                format!("(select {} from u y where {})", r.aggregate(&["y"], ""), r.test(&["y"]));
            format!("select x.a, {value} from t x where {}", r.test(&["x"]))
        }
        Rule::DistinctAggregates => {
            let value = r.pick(&["x.a", "x.b", "x.c"]);
            let others = format!(
                "{}, {}",
                r.pick(&["count(*)", "sum(x.a)", "count(x.c)", "min(x.b)", "max(x.a)"]),
                r.aggregate(&["x"], "")
            );
            let group = r.pick(&["", " group by x.a", " group by x.e, x.a"]);
            let test = r.test(&["x"]);
            match r.below(6) {
                0 => format!(
                    "select x.a from t x where exists (select count(distinct 1 / y.a) from t y where {test})"
                ),
                1 => format!(
                    "select p from (select count(distinct {value}) as p, count(distinct 1 / x.a) as q from t x \
                     where {test}{group}) as s"
                ),
                _ => {
                    format!("select count(distinct {value}), {others} from t x where {test}{group}")
                }
            }
        }
        Rule::PartitionAggregates => {
            let call = r.pick(&[
                "count(*)",
                "count(distinct x.b)",
                "sum(x.a)",
                "min(x.c) filter (where x.a > 0)",
                "avg(x.b)",
                "bool_or(x.a > 1)",
            ]);
            let over = r.pick(&["over ()", "over (partition by x.e)"]);
            format!("select x.a, x.e, {call} {over} as n from w x where {}", r.test(&["x"]))
        }
        Rule::FirstOfPartitions => {
            let key = r.pick(&["x.a", "x.c", "x.e, x.b"]);
            let number =
                format!("row_number() over (partition by {key} order by x.b, x.a, x.c, x.d, x.e)");
            let bound = r.pick(&["x.n <= 2", "x.n < 4", "x.n = 1", "x.n <= 0"]);
            let inner = format!("select *, {number} as n from t x");
            format!("select x.* from ({inner}) x where {bound} and {}", r.test(&["x"]))
        }
        Rule::InequalityJoins => {
            let join = r.pick(&["join", "left join", "right join", "semi join", "anti join"]);
            let mut test = || {
                let compare = r.pick(&["<", "<=", ">", ">="]);
                format!("{} {compare} {}", r.number(&["x"]), r.number(&["y"]))
            };
            let (one, two) = (test(), test());
            let test = r.test(&["x", "y"]);
            let more = r.pick(&["", "and two", "and two", "and two and test"]);
            let on = format!("{one} {more}").replace("two", &two).replace("test", &test);
            format!(
                "select * from (select * from w where a < 150) x {join} (select * from w where a < 120) y on {on}"
            )
        }
        Rule::ShareCopies => {
            let inner = format!(
                "select x.e, x.c, sum(x.a) as a, count(*) as b, min(x.d) as d from {} x where {} group by x.e, x.c",
                r.pick(&["t", "w"]),
                r.test(&["x"])
            );
            let outer = r.pick(&[
                "select x.a, y.b from s x join s y on x.c = y.c",
                "select x.a, y.b from s x left join s y on x.e = y.e and x.b < y.a",
                "select e, a from s union all select e, b from s",
                "select a from s where a > (select avg(b) from s)",
                "select a, d from s where exists (select 1 from s y where y.c = s.c and y.b > s.b)",
                // Groups that other predicates select.
                "select x.a, y.b from s x, s y where x.c = 'a1' and y.c >= 'a' and y.e",
                "select e, a from s where c > 'a1' union all select e, b from s where not e",
                "select x.a, y.a from s x left join s y on x.b = y.b and y.e where x.c <= 'a1'",
            ]);
            format!("with s as ({inner}) {outer}")
        }
        Rule::CoarserSets => {
            let sets = r.pick(&[
                "rollup (x.e, x.c)",
                "rollup (x.c, x.a, x.e)",
                "cube (x.e, x.c)",
                "grouping sets ((x.e, x.c), (x.c), (x.e), (), ())",
                "grouping sets ((x.e, x.c, x.c), (x.a, x.c), (x.c, x.e))",
            ]);
            let (one, two) = (r.aggregate(&["x"], ""), r.aggregate(&["x"], ""));
            let test = r.test(&["x"]);
            format!(
                "select x.e, x.c, {one} as p, {two} as q, grouping(x.c) from t x where {test} group by {sets}"
            )
        }
        Rule::OrderJoins => {
            let join = r.pick(&["join", "join", "left join"]);
            let (one, two) = (r.test(&["x", "y"]), r.test(&["x", "z"]));
            format!(
                "select x.a, y.b, z.c from w x {join} t y on {on} and {one} join u z on z.a = x.a where {two}"
            )
        }
        Rule::ReduceGroups => {
            let groups =
                format!("select y.a, {} as q from w y group by y.a", r.aggregate(&["y"], ""));
            let join = r.pick(&["join", "left join"]);
            format!(
                "select x.a, g.q from u x {join} ({groups}) g on g.a = x.{} where {}",
                r.pick(&["a", "b"]),
                r.test(&["x"])
            )
        }
        Rule::BuildSmallerSide => {
            let exists = format!(
                "select x.a from u x where {} (select 1 from w y where {on})",
                r.pick(&["exists", "not exists"])
            );
            let joined =
                format!("select x.a, y.c from u x {join} w y on {on} and {}", r.test(&["x", "y"]));
            if r.below(3) == 0 { exists } else { joined }
        }
        Rule::ShareCommon => {
            let grouped = format!(
                "select y.a, {} as b from t y where {} group by y.a",
                r.number_of_group(&["y"]),
                r.test(&["y"])
            );
            format!(
                "with g as ({grouped}) select * from g x join g y on x.a = y.a where {}",
                r.pick(&["x.b > 0", "true", "x.a = y.b"])
            )
        }
        Rule::FilterAggregates => {
            let tested = format!("x.a {} {}", r.pick(&["<", "=", ">", "<>"]), r.below(4));
            format!(
                "select {}, sum(x.{}) from t x where {tested}",
                r.pick(&["count(*)", "min(x.b)", "max(x.a)"]),
                r.pick(&["a", "b", "a * 1073741824"])
            )
        }
        Rule::FuseAggregates => {
            let value =
                format!("select y.a, {} as b from t y where {}", r.number(&["y"]), r.test(&["y"]));
            format!(
                "select sum(x.b + 1), count(x.b) from ({value}) x{}",
                r.pick(&["", " group by x.a"])
            )
        }
        Rule::EmptyFilter => {
            let never = r.pick(&["false", "null", "not true"]);
            let tables = r.pick(&[
                "t x",
                "u x",
                "t x join u y on x.a = y.a",
                "t x left join u y on x.a = y.b",
            ]);
            format!(
                "select x.a, count(*) from {tables} where {} and {never} group by x.a",
                r.safe(&["x"])
            )
        }
        Rule::FuseFilters => {
            // A condition on the row outside is tested first, one that can raise behind it.
            let inner = format!(
                "select y.b from w y where y.a > x.{} and {} / y.a > 0 and {} order by y.a limit 1",
                r.pick(&["a", "b"]),
                6 + r.below(9),
                r.safe(&["y"])
            );
            format!("select x.a, ({inner}) from t x where {}", r.test(&["x"]))
        }
        _ => {
            let inner = format!(
                "select y.a + 1 as a, {} as b, y.c, y.d, y.e from t y where {}",
                r.number(&["y"]),
                r.test(&["y"])
            );
            format!(
                "select x.a, x.c, {} from ({inner}) x {join} u y on {on} where {}",
                r.number(&["x"]),
                r.test(&["x"])
            )
        }
    }
}
