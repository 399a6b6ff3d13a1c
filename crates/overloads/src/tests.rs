//! Compares call resolution with PostgreSQL's answers (`cases.txt`, written by
//! `crates/overloads/postgres_tables.py`), and tests types that PostgreSQL lacks.

use tessera_types::{Atom, Slot};

use super::casts::can_cast;
use super::resolve::Call;
use super::*;

const INT4: ValueType = ValueType::of(Type::Int4);
const INT8: ValueType = ValueType::of(Type::Int8);
const TEXT: ValueType = ValueType::of(Type::Text);
const UNKNOWN: ValueType = ValueType::of(Type::Unknown);
const OTHER: ValueType = ValueType::of(Type::Other);

fn of_name(name: &str) -> ValueType {
    let (name, make): (_, fn(Type) -> ValueType) = match name.strip_suffix("[]") {
        Some(element) => (element, ValueType::array),
        None => (name, ValueType::of),
    };
    let found = Type::NAMED
        .iter()
        .chain(&[Type::Unknown])
        .find(|ty| ValueType::of(**ty).to_string() == name);
    make(*found.unwrap_or_else(|| panic!("unknown type {name} in cases.txt")))
}

fn list(types: &[ValueType]) -> String {
    types.iter().map(ValueType::to_string).collect::<Vec<_>>().join(", ")
}

fn answer(name: &str, args: &[ValueType]) -> String {
    let is_function = name.starts_with(|first: char| first.is_ascii_alphabetic());
    match if is_function { function(name, &[], args) } else { operator(name, args) } {
        Outcome::Found(call) => format!("({}) {}", list(call.form.args), call.result),
        Outcome::Cast(to) => format!("cast {to}"),
        Outcome::NotFound | Outcome::NoMatch => "42883".to_string(),
        Outcome::Ambiguous => "42725".to_string(),
        Outcome::Indeterminate => "42804".to_string(),
    }
}

fn call(name: &str, args: &[ValueType]) -> Call {
    let is_function = name.starts_with(|first: char| first.is_ascii_alphabetic());
    match if is_function { function(name, &[], args) } else { operator(name, args) } {
        Outcome::Found(call) => call,
        other => panic!("{name} ({}): {other:?}", list(args)),
    }
}

#[test]
fn calls_mean_what_they_mean_in_postgresql() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for line in
        include_str!("cases.txt").lines().filter(|line| !line.is_empty() && !line.starts_with("--"))
    {
        let (asked, expected) = line.split_once(" -> ").expect("an answer");
        let (name, args) = asked.split_once(" (").expect("arguments");
        let args: Vec<ValueType> = args
            .trim_end_matches(')')
            .split(", ")
            .filter(|arg| !arg.is_empty())
            .map(of_name)
            .collect();
        let ours = answer(name, &args);
        if ours != expected {
            wrong.push(format!("{line}, not {ours}"));
        }
        count += 1;
    }
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count >= 60, "only {count} cases");
}

#[test]
fn polymorphic_arguments_become_what_is_given() {
    let ints = ValueType::array(Type::Int4);
    assert_eq!(call("array_append", &[ints, UNKNOWN]).args, [ints, INT4]);
    // The common type of the array's elements and the other argument.
    let appended = call("array_append", &[ints, INT8]);
    assert_eq!(
        (appended.args, appended.result),
        (vec![ValueType::array(Type::Int8), INT8], ValueType::array(Type::Int8))
    );
    assert_eq!(
        call("array_append", &[UNKNOWN, UNKNOWN]).args,
        [ValueType::array(Type::Text), TEXT]
    );
    assert_eq!(call("=", &[ints, UNKNOWN]).args, [ints, ints]);
    assert_eq!(call("unnest", &[ints]).result, INT4);
    assert_eq!(call("concat", &[INT4, UNKNOWN, TEXT]).args, [INT4, UNKNOWN, TEXT]);
}

#[test]
fn structs_and_lists_of_lists_are_taken_as_they_are() {
    let lists = ValueType::of_atom(&Atom::List(Box::new(Slot::nullable(Atom::List(Box::new(
        Slot::nullable(Atom::Int32),
    ))))));
    assert_eq!(lists, ValueType::array(Type::Array));
    assert_eq!(call("count", &[OTHER]).args, [OTHER]);
    assert_eq!(call("array_agg", &[OTHER]).result, ValueType::array(Type::Other));
    assert_eq!(call("array_length", &[lists, INT4]).args, [lists, INT4]);
    assert_eq!(call("=", &[lists, lists]).args, [lists, lists]);
    assert_eq!(function("sum", &[], &[OTHER]), Outcome::NoMatch);
    assert_eq!(operator("+", &[OTHER, INT4]), Outcome::NoMatch);
}

#[test]
fn a_name_without_a_form_of_the_kind_is_not_found() {
    assert_eq!(function("no_such_function", &[], &[INT4]), Outcome::NotFound);
    assert_eq!(function("sum", &[Kind::Scalar], &[INT4]), Outcome::NotFound);
    assert!(matches!(function("sum", &[Kind::Aggregate], &[INT4]), Outcome::Found(_)));
    assert_eq!(operator("<=>", &[INT4, INT4]), Outcome::NotFound);
}

#[test]
fn casts_are_allowed_where_postgresql_allows_them() {
    use Context::{Assignment, Explicit, Implicit};
    let cast = |from, to| can_cast(ValueType::of(from), ValueType::of(to));
    assert_eq!(cast(Type::Int4, Type::Int8), Some(Implicit));
    assert_eq!(cast(Type::Int8, Type::Int4), Some(Assignment));
    assert_eq!(cast(Type::Bool, Type::Int4), Some(Explicit));
    assert_eq!(cast(Type::Bool, Type::Int8), None);
    assert_eq!(cast(Type::Date, Type::Text), Some(Assignment));
    assert_eq!(cast(Type::Text, Type::Date), Some(Explicit));
    assert_eq!(cast(Type::Unknown, Type::Date), Some(Implicit));
    assert_eq!(cast(Type::Date, Type::Int4), None);
    assert_eq!(
        can_cast(ValueType::array(Type::Int4), ValueType::array(Type::Int8)),
        Some(Implicit)
    );
    assert_eq!(can_cast(ValueType::array(Type::Int4), TEXT), Some(Assignment));
    assert_eq!(can_cast(ValueType::array(Type::Date), ValueType::array(Type::Int4)), None);
}

#[test]
fn several_types_have_one_in_common() {
    let common =
        |types: &[Type]| common_type(&types.iter().copied().map(ValueType::of).collect::<Vec<_>>());
    assert_eq!(
        common(&[Type::Int4, Type::Unknown, Type::Numeric]),
        Some(ValueType::of(Type::Numeric))
    );
    assert_eq!(common(&[Type::Numeric, Type::Float4]), Some(ValueType::of(Type::Float4)));
    assert_eq!(
        common(&[Type::Date, Type::Timestamptz, Type::Timestamp]),
        Some(ValueType::of(Type::Timestamptz))
    );
    assert_eq!(common(&[Type::Unknown, Type::Unknown]), Some(TEXT));
    assert_eq!(common(&[Type::Int4, Type::Text]), None);
    assert_eq!(common(&[Type::Int4, Type::Bool]), None);
    assert_eq!(common(&[]), None);
}
