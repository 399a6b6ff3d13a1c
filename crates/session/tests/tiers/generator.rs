//! Random tables and queries of the tests of tiers.

/// Values of all types that compiled code supports, few of them extreme. Every second column has
/// NULLs, some only in a part of the table, because chunks without NULLs run other code.
pub(super) const ROWS: &str = "
    select i, i % 4 as few, i % 997 as many,
        cast(i % 200 - 100 as tinyint) as tiny, case when i % 11 > 0 then cast(i * 7 % 60000 - 30000 as smallint) end as small,
        cast(i * 31 % 1000 as integer) as middle, case when i > 2500 or i % 5 > 0 then i * 1237 % 100003 - 50000 end as large,
        case i when 1777 then 9223372036854775807 when 2777 then -9223372036854775808 else i end as extreme,
        cast(i % 250 as tinyint unsigned) as byte, case when i % 13 > 0 then cast(i * 3 as integer unsigned) end as natural,
        cast(i * 17 % 90001 as decimal(12,2)) / 7 as ratio, cast(i * 17 % 90001 - 400 as decimal(12,2)) as price,
        case when i < 2000 or i % 17 > 0 then cast(i * 101 as decimal(18,6)) end as exact, cast(i * 1000003 as decimal(30,4)) as wide,
        case when i % 19 > 0 then cast(i as decimal(38,10)) * 1000000 end as widest,
        cast(i % 1000 as double) / 8 - 50 as double, case when i > 3000 or i % 7 > 0 then cast(i % 100 as real) / 3 end as real,
        case i % 101 when 0 then cast('NaN' as double) when 1 then cast('Infinity' as double) else i end as strange,
        i % 3 = 0 as flag, case when i between 1000 and 4000 or i % 23 > 0 then i % 2 = 0 end as maybe,
        date '1992-01-01' + cast(i % 2500 as integer) as day,
        case when i < 4000 or i % 29 > 0 then timestamp '2020-01-01 00:00:00' + interval '1 second' * i end as moment,
        'text ' || cast(i % 13 as varchar) as text,
        case when i % 31 > 0 then 'grüße ' || cast(i * 7919 % 100003 as varchar) || case i % 3 when 0 then ' of all, that is' else '' end end
            as words
    from generate_series(1, 5000) as t(i)";

/// The other table of joins: some keys have several tuples or none, and some values are NULL.
pub(super) const OTHERS: &str = "
    select i * 7 % 4 as u_few, case when i % 9 > 0 then cast(i * 7 % 60000 - 30000 as smallint) end as u_small,
        cast(i * 31 % 500 as integer) as u_middle, case when i % 8 > 0 then i * 1237 % 100003 - 50000 end as u_large,
        cast(i * 17 % 90001 - 400 as decimal(12,2)) as u_price, date '1992-01-01' + cast(i % 700 as integer) as u_day,
        case when i % 6 > 0 then i * 11 - 900 end as weight, case when i % 5 > 0 then i % 3 = 0 end as u_maybe,
        cast(i * 13 as decimal(38,3)) as u_wide, cast(i as double) / 4 as u_double, cast(i % 50 as tinyint) as u_tiny,
        'other ' || cast(i % 7 as varchar) as u_text
    from generate_series(1, 1200) as u(i)";

/// Join keys. A query uses one or two.
pub(super) const KEYS: [(&str, &str); 7] = [
    ("many", "weight"),
    ("small", "u_small"),
    ("middle", "u_middle"),
    ("large", "u_large"),
    ("price", "u_price"),
    ("day", "u_day"),
    ("text", "'text ' || cast(u_tiny % 2 + 20 as varchar)"),
];

/// Aggregates over columns of both tables.
pub(super) const OF_BOTH: [&str; 8] = [
    "sum(weight)",
    "sum(weight * i)",
    "min(u_day)",
    "max(u_wide)",
    "count(u_maybe)",
    "sum(case when u_maybe then weight - middle else 1 end)",
    "sum(u_double + ratio)",
    "max(u_tiny) filter (where u_maybe or flag)",
];

pub(super) const NUMBERS: [&str; 19] = [
    "i",
    "tiny",
    "small",
    "middle",
    "large",
    "extreme",
    "byte",
    "natural",
    "ratio",
    "price",
    "exact",
    "wide",
    "widest",
    "double",
    "real",
    "strange",
    "few",
    "many",
    "length(text)",
];

/// User functions: two that do and do not accept zero, and one that calls a library.
pub(super) const FUNCTIONS: &str = "
    create function quotient(a bigint, b bigint) returns bigint language llvm immutable strict as $$
        define i32 @quotient(ptr %out, i64 %a, i64 %b) {
          %zero = icmp eq i64 %b, 0
          br i1 %zero, label %bad, label %good
        bad:
          ret i32 3
        good:
          %value = sdiv i64 %a, %b
          store i64 %value, ptr %out
          ret i32 0
        }
    $$;
    create function share(a bigint, b integer) returns decimal(9,2) language llvm immutable as $$
        define i32 @share(ptr %out, i64 %a, i32 %b) {
          %hundreds = mul i64 %a, 100
          %wide = sext i32 %b to i64
          %negative = icmp slt i64 %wide, 1
          br i1 %negative, label %none, label %some
        none:
          ret i32 1
        some:
          %value = sdiv i64 %hundreds, %wide
          store i64 %value, ptr %out
          ret i32 0
        }
    $$;
    create function halved(x double precision) returns double precision language llvm immutable as $$
        declare double @fmod(double, double)
        define i32 @halved(ptr %out, double %x) {
          %rest = call double @fmod(double %x, double 7.0)
          %value = fmul double %rest, 0.5
          store double %value, ptr %out
          ret i32 0
        }
    $$";

/// Predicates over strings with many distinct values.
pub(super) const TEXTS: [&str; 10] = [
    "words like '%9%all%'",
    "words not like 'grüße 1%'",
    "words like '%is'",
    "words like 'grüße%7_%'",
    "words = 'grüße 15838 of all, that is'",
    "words <> 'grüße 7919'",
    "words is null",
    "substring(words from 7 for 2) = '12'",
    "substring(words from 7 for 1) in ('1', '3', '5')",
    "substring(words from 2 for 4) = substring(words from 2 for 4)",
];

pub(super) const TIMES: [&str; 2] = ["day", "moment"];

/// A deterministic random number generator (Knuth's constants).
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, most: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % most
    }

    pub(super) fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }

    pub(super) fn number(&mut self, depth: usize) -> String {
        if depth == 0 {
            return match self.below(5) {
                0 => self
                    .one(&[
                        "0",
                        "1",
                        "-3",
                        "2.5",
                        "1000",
                        "0.01",
                        "cast(7 as smallint)",
                        "cast(1.5 as double)",
                    ])
                    .to_string(),
                _ => self.one(&NUMBERS).to_string(),
            };
        }
        let next = depth - 1;
        match self.below(13) {
            0..=5 => {
                let operator = self.one(&["+", "-", "*", "+", "-", "*", "/", "%"]);
                format!("({} {operator} {})", self.number(next), self.number(next))
            }
            6 => format!("(- {})", self.number(next)),
            7 => format!("coalesce({}, {})", self.number(next), self.number(next)),
            8 => {
                let to = self.one(&["double", "bigint", "decimal(38,12)", "integer", "real"]);
                format!("cast({} as {to})", self.number(next))
            }
            9 => format!("case when {} then {} end", self.truth(next), self.number(next)),
            10 => match self.below(2) {
                0 => format!(
                    "{}({}, {})",
                    self.one(&["quotient", "share"]),
                    self.one(&["i", "large", "many"]),
                    self.one(&["few", "middle", "3"])
                ),
                _ => format!("halved({})", self.number(next)),
            },
            11 => {
                let (zero, divided) = (self.number(next), self.number(next));
                format!("case when {zero} <> 0 then {divided} / {zero} else 0 end")
            }
            _ => {
                let (first, second) = (self.truth(next), self.truth(next));
                let values = (self.number(next), self.number(next), self.number(next));
                format!(
                    "case when {first} then {} when {second} then {} else {} end",
                    values.0, values.1, values.2
                )
            }
        }
    }

    pub(super) fn truth(&mut self, depth: usize) -> String {
        let next = depth.saturating_sub(1);
        match self.below(if depth == 0 { 7 } else { 11 }) {
            6 => self.one(&TEXTS).to_string(),
            0 => self.one(&["flag", "maybe", "text = 'text 3'", "text like '%1'"]).to_string(),
            1 | 2 => {
                let operator = self.one(&[
                    "=",
                    "<>",
                    "<",
                    "<=",
                    ">",
                    ">=",
                    "is distinct from",
                    "is not distinct from",
                ]);
                format!("{} {operator} {}", self.number(next), self.number(next))
            }
            3 => {
                let operator = self.one(&["<", ">=", "="]);
                match self.one(&TIMES) {
                    "day" => format!("day {operator} date '1995-03-01'"),
                    time => format!("{time} {operator} timestamp '2020-01-01 00:30:00'"),
                }
            }
            4 => format!("{} is null", self.number(next)),
            5 => format!(
                "{} in (1, 5, 17, 300)",
                self.one(&["tiny", "middle", "large", "i", "price"])
            ),
            7 | 8 => format!("({} and {})", self.truth(next), self.truth(next)),
            9 => format!("({} or {})", self.truth(next), self.truth(next)),
            _ => format!("(not {})", self.truth(next)),
        }
    }

    pub(super) fn aggregate(&mut self) -> String {
        let depth = self.below(4);
        let call = match self.below(8) {
            0 => "count(*)".to_string(),
            1 => format!("count({})", self.number(depth)),
            2 => format!("min({})", self.one(&TIMES)),
            3 => format!("max({})", self.number(depth)),
            4 => format!("min({})", self.number(depth)),
            5 => format!("avg({})", self.number(depth)),
            _ => format!("sum({})", self.number(depth)),
        };
        match self.below(4) {
            0 => format!("{call} filter (where {})", self.truth(1)),
            _ => call,
        }
    }

    /// A top-k query that sorts by a computed key, then by all other columns.
    pub(super) fn first_ones(&mut self) -> String {
        let (first, second, third) = (self.number(2), self.truth(2), self.number(1));
        let source = self.source();
        let condition =
            if self.below(2) == 0 { format!(" where {}", self.truth(1)) } else { String::new() };
        let key = self.one(&["a", "a", "b", "c", "day", "exact", "real"]);
        let (direction, then) = (self.one(&["asc", "desc"]), self.one(&["asc", "desc"]));
        let nulls = self.one(&["first", "last"]);
        format!(
            "select {first} as a, {second} as b, {third} as c, day, exact, real, i from {source}{condition} \
             order by {key} {direction} nulls {nulls}, i {then}, a, b, c limit {}",
            1 + self.below(40)
        )
    }

    pub(super) fn query(&mut self) -> String {
        if self.below(4) == 0 {
            return self.first_ones();
        }
        let aggregates: Vec<String> = (0..1 + self.below(4)).map(|_| self.aggregate()).collect();
        let condition = match self.below(3) {
            0 => format!(" where {}", self.truth(1)),
            _ => String::new(),
        };
        let mut list = aggregates.join(", ");
        let source = self.source();
        if source != "t" {
            list += &format!(", {}, {}", self.one(&OF_BOTH), self.one(&OF_BOTH));
        }
        match self.below(3) {
            0 => format!("select {list} from {source}{condition}"),
            1 => format!("select few, {list} from {source}{condition} group by few order by few"),
            _ => {
                format!("select many, {list} from {source}{condition} group by many order by many")
            }
        }
    }

    /// The FROM clause: one table or two.
    pub(super) fn source(&mut self) -> String {
        if self.below(2) == 0 {
            return "t".to_string();
        }
        let kind = self.one(&["join", "join", "join", "left join", "right join"]);
        let mut key = || {
            let (own, other) = KEYS[self.below(KEYS.len())];
            format!("{own} = {other}")
        };
        let keys = [key(), key()];
        let count = 1 + self.below(2);
        format!("t {kind} u on {}", keys[..count].join(" and "))
    }
}
