//! The types of DataFusion's functions over bit strings and UUIDs, which are texts to it, and over
//! times with time zone, which are numbers.
//!
//! What its functions choose, keep or collect of their arguments has the type of these.

use std::sync::Arc;

use tessera_plan::{Expr, Scalar};
use tessera_types::{Atom, Slot};

/// DataFusion's functions whose results are values of their arguments, or lists of them.
const KEEPING: [&str; 30] = [
    "array_agg",
    "array_any_value",
    "array_append",
    "array_compact",
    "array_concat",
    "array_distinct",
    "array_element",
    "array_except",
    "array_insert",
    "array_intersect",
    "array_max",
    "array_min",
    "array_pop_back",
    "array_pop_front",
    "array_prepend",
    "array_remove_n",
    "array_repeat",
    "array_replace_n",
    "array_resize",
    "array_reverse",
    "array_slice",
    "array_sort",
    "array_union",
    "first_value",
    "flatten",
    "greatest",
    "last_value",
    "least",
    "make_array",
    "map_entries",
];

/// Other functions of DataFusion that do not compute with the values, beside those of arrays.
const OF_ANY: [&str; 10] = [
    "approx_distinct",
    "cardinality",
    "empty",
    "get_field",
    "map",
    "map_extract",
    "map_keys",
    "map_values",
    "named_struct",
    "struct",
];

/// Returns the result type of a function of DataFusion, with bit strings, UUIDs and times with time
/// zone where its values are those of its arguments.
pub(crate) fn kept(name: &str, args: &[(&Atom, Option<&Expr>)], result: Atom) -> Atom {
    if !args.iter().any(|(atom, _)| has_such(atom)) {
        return result;
    }
    let at = |at: usize| args.get(at).map(|(atom, _)| (*atom).clone());
    let found = match name {
        "get_field" => field_of(args),
        "map" => at(0).as_ref().and_then(element).zip(at(1).as_ref().and_then(element)).map(
            |(key, value)| {
                let key = Slot { nullable: false, ..key };
                Atom::Map(Box::new(key), Box::new(value))
            },
        ),
        "struct" => structure((0..args.len()).filter_map(at)),
        "named_struct" => structure((1..args.len()).step_by(2).filter_map(at)),
        "map_keys" | "map_values" | "map_extract" => match args.first() {
            Some((Atom::Map(key, _), _)) if name == "map_keys" => Some(list(&key.atom)),
            Some((Atom::Map(_, value), _)) => Some(list(&value.atom)),
            _ => None,
        },
        "arrays_zip" => structure(args.iter().filter_map(|(atom, _)| Some(element(atom)?.atom)))
            .map(|atom| list(&atom)),
        name if KEEPING.contains(&name) => {
            let forms = args.iter().filter(|(atom, _)| has_such(atom));
            let mut forms = forms.flat_map(|(atom, _)| forms_of(atom));
            return forms.find_map(|form| like(&result, &form)).unwrap_or(result);
        }
        _ => None,
    };
    found.and_then(|found| like(&result, &found)).unwrap_or(result)
}

/// Whether values have types that DataFusion lacks.
fn has_such(atom: &Atom) -> bool {
    atom.has_bits() || atom.has_uuids() || atom.has_timetz()
}

/// Whether a function of DataFusion takes arguments of these types as they are.
pub(crate) fn is_taken<'a>(name: &str, mut atoms: impl Iterator<Item = &'a Atom>) -> bool {
    let of_any = name.starts_with("array") && name != "array_distance" || OF_ANY.contains(&name);
    of_any || KEEPING.contains(&name) || !atoms.any(Atom::has_timetz)
}

/// A value, and what functions take out of it or collect it in.
fn forms_of(atom: &Atom) -> Vec<Atom> {
    let mut forms = vec![atom.clone(), list(atom)];
    match atom {
        Atom::List(slot) => {
            forms.push(slot.atom.clone());
            if let Atom::List(inner) = &slot.atom {
                forms.push(inner.atom.clone());
            }
        }
        Atom::Map(key, value) => {
            forms.extend([list(&key.atom), list(&value.atom)]);
            forms.extend(structure([key.atom.clone(), value.atom.clone()]).map(|e| list(&e)));
        }
        _ => {}
    }
    forms
}

fn list(atom: &Atom) -> Atom {
    Atom::List(Box::new(Slot::nullable(atom.clone())))
}

fn element(atom: &Atom) -> Option<Slot> {
    match atom {
        Atom::List(slot) => Some((**slot).clone()),
        _ => None,
    }
}

/// A struct of values, whose names do not matter.
fn structure(atoms: impl IntoIterator<Item = Atom>) -> Option<Atom> {
    let slots = atoms.into_iter().map(|atom| (Arc::from(""), Slot::nullable(atom)));
    Some(Atom::Struct(slots.collect()))
}

/// The type of a field of a struct, at the path of names in the other arguments.
fn field_of(args: &[(&Atom, Option<&Expr>)]) -> Option<Atom> {
    let ((first, _), path) = args.split_first()?;
    path.iter().try_fold((*first).clone(), |atom, (_, name)| match (&atom, name) {
        (Atom::Struct(slots), Some(Expr::Constant(Scalar::String(name), _))) => {
            slots.iter().find(|(slot, _)| slot == name).map(|(_, slot)| slot.atom.clone())
        }
        (Atom::Map(_, value), _) => Some(value.atom.clone()),
        _ => None,
    })
}

/// Returns a type with those of `form` in place of what they are to DataFusion; `None` if the types
/// differ in more.
fn like(result: &Atom, form: &Atom) -> Option<Atom> {
    let slot = |result: &Slot, form: &Slot| {
        Some(Slot { atom: like(&result.atom, &form.atom)?, nullable: result.nullable })
    };
    Some(match (result, form) {
        (Atom::String, form @ (Atom::Bits | Atom::Uuid)) => form.clone(),
        (Atom::Int64, Atom::TimeTz) => Atom::TimeTz,
        (Atom::List(result), Atom::List(form)) => Atom::List(Box::new(slot(result, form)?)),
        (Atom::Map(key, value), Atom::Map(a, b)) => {
            Atom::Map(Box::new(slot(key, a)?), Box::new(slot(value, b)?))
        }
        (Atom::Struct(slots), Atom::Struct(forms)) if slots.len() == forms.len() => {
            let slots = slots.iter().zip(forms.iter());
            let slots = slots.map(|((name, a), (_, b))| Some((name.clone(), slot(a, b)?)));
            Atom::Struct(slots.collect::<Option<_>>()?)
        }
        (result, form) if result == form => result.clone(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_foreign_functions_keep_types() {
        let kept = |name: &str, args: &[&str], result: &str| {
            let args: Vec<Atom> = args.iter().map(|arg| arg.parse().unwrap()).collect();
            let args: Vec<_> = args.iter().map(|arg| (arg, None)).collect();
            super::kept(name, &args, result.parse().unwrap()).to_string()
        };
        for (name, args, result, expected) in [
            ("make_array", &["uuid", "uuid"][..], "list<string?>", "list<uuid?>"),
            ("array_element", &["list<uuid?>", "int64"], "string", "uuid"),
            ("array_to_string", &["list<uuid?>", "string"], "string", "string"),
            ("array_sort", &["list<uuid?>"], "list<string?>", "list<uuid?>"),
            ("named_struct", &["string", "uuid"], "struct<a: string?>", "struct<a: uuid?>"),
            (
                "map",
                &["list<string?>", "list<uuid?>"],
                "map<string, string?>",
                "map<string, uuid?>",
            ),
            ("array_append", &["list<bits?>", "bits"], "list<string?>", "list<bits?>"),
            ("map_keys", &["map<uuid, int64?>"], "list<string?>", "list<uuid?>"),
            ("map_values", &["map<uuid, int64?>"], "list<int64?>", "list<int64?>"),
            ("map_values", &["map<uuid, string?>"], "list<string?>", "list<string?>"),
            ("map_values", &["map<timetz, int64?>"], "list<int64?>", "list<int64?>"),
            ("map_keys", &["map<timetz, int64?>"], "list<int64?>", "list<timetz?>"),
            ("array_element", &["list<timetz?>", "int64"], "int64", "timetz"),
            ("array_position", &["list<timetz?>", "timetz"], "int64", "int64"),
        ] {
            assert_eq!(kept(name, args, result), expected, "{name}");
        }
    }
}
