//! Functions of UUIDs, and the types of DataFusion's functions over them.
//!
//! DataFusion takes and returns UUIDs as text. What its functions choose, keep or collect of their
//! arguments has the type of these.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use arrow::array::{ArrayRef, AsArray, StringViewBuilder};
use tessera_plan::{Expr, Scalar};
use tessera_types::{Atom, Error, Result, Slot};
use tessera_values::kernel::{Argument, Kernel, unexpected};
use tessera_values::rowwise::{OutputValue, signature, strict, zoned};
use tessera_values::types::{Arg, ResolvedCall, expect_arguments};
use tessera_values::uuid;

/// The names of the functions, beside those that make random UUIDs.
pub(crate) const NAMES: &[&str] = &["uuid_extract_timestamp", "uuid_extract_version"];

/// The function of UUIDs that begin with the time.
pub(crate) const BY_TIME: &str = "uuidv7";
/// The function of random UUIDs.
pub(crate) const RANDOM: &str = "uuid";

/// From 1582-10-15, from which UUIDs of version 1 count, to 1970, in units of 100 nanoseconds.
const EPOCH_OF_VERSION_1: i64 = 0x01b2_1dd2_1381_4000;
/// The characters of a UUID of version 7 that tell the time.
const TIME_CHARS: usize = 18;

/// Resolves a call of one of these functions.
pub(crate) fn resolve(name: &str, args: &[Arg<'_>]) -> Option<Result<ResolvedCall>> {
    Some(match name {
        "uuid_extract_version" => signature(name, args, &[Atom::Uuid]).map(|casts| {
            strict(Atom::Int16, args, casts, |arguments| {
                let version =
                    arguments.first().and_then(|text| version(&uuid::parse(text.text())?));
                Ok(version.map_or(OutputValue::Null, |version| OutputValue::Whole(version.into())))
            })
        }),
        "uuid_extract_timestamp" => signature(name, args, &[Atom::Uuid]).map(|casts| {
            strict(zoned(), args, casts, |arguments| {
                let moment = arguments.first().and_then(|text| moment(&uuid::parse(text.text())?));
                Ok(moment.map_or(OutputValue::Null, OutputValue::Whole))
            })
        }),
        _ => return None,
    })
}

/// The version of a UUID; `None` for one of another variant than that of RFC 9562.
fn version(uuid: &[u8; 16]) -> Option<u8> {
    (uuid[8] & 0xc0 == 0x80).then_some(uuid[6] >> 4)
}

/// The time in a UUID of version 1 or 7, in microseconds since 1970.
fn moment(uuid: &[u8; 16]) -> Option<i64> {
    let whole = |bytes: &[usize]| bytes.iter().fold(0, |sum, at| sum << 8 | i64::from(uuid[*at]));
    match version(uuid)? {
        1 => {
            let ticks = whole(&[6, 7, 4, 5, 0, 1, 2, 3]) & 0x0fff_ffff_ffff_ffff;
            Some((ticks - EPOCH_OF_VERSION_1).div_euclid(10))
        }
        7 => Some(whole(&[0, 1, 2, 3, 4, 5]) * 1_000),
        _ => None,
    }
}

/// Returns a call of random UUIDs, which are text in DataFusion.
pub(crate) fn random(call: ResolvedCall) -> ResolvedCall {
    ResolvedCall { atom: Atom::Uuid, ..call }
}

/// Returns a call of UUIDs of version 7, made of random ones.
pub(crate) fn by_time(args: &[Arg<'_>], random: ResolvedCall) -> Result<ResolvedCall> {
    expect_arguments(BY_TIME, args, 0)?;
    Ok(ResolvedCall { atom: Atom::Uuid, kernel: Arc::new(ByTime(random.kernel)), ..random })
}

/// Puts the time in place of the first bits of random UUIDs.
#[derive(Debug)]
struct ByTime(Arc<dyn Kernel>);

impl Kernel for ByTime {
    fn call(&self, args: &[Argument], rows: usize) -> Result<ArrayRef> {
        let random = self.0.call(args, rows)?;
        let random = random.as_string_view_opt().ok_or_else(|| unexpected(&random))?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let mut texts = StringViewBuilder::with_capacity(rows);
        for (row, text) in random.iter().enumerate() {
            // Twelve bits have the parts of a millisecond. Later rows are later.
            let ticks = now * 4_096 / 1_000_000 + row as u128;
            let (time, part) = ((ticks >> 12) & 0xffff_ffff_ffff, ticks & 0xfff);
            let rest = text.and_then(|text| text.get(TIME_CHARS..));
            let rest = rest.ok_or_else(|| Error::internal("a random UUID is too short"))?;
            texts.append_value(format!(
                "{:08x}-{:04x}-7{part:03x}{rest}",
                time >> 16,
                time & 0xffff
            ));
        }
        Ok(Arc::new(texts.finish()))
    }
}

/// DataFusion's functions whose results are values of their arguments, or lists of them.
const KEEPING: [&str; 33] = [
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
    "map_extract",
    "map_keys",
    "map_values",
];

/// Returns the result type of a function of DataFusion, with UUIDs where its values are those of
/// its arguments.
pub(crate) fn kept(name: &str, args: &[(&Atom, Option<&Expr>)], result: Atom) -> Atom {
    if !args.iter().any(|(atom, _)| atom.has_uuids()) {
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
        "arrays_zip" => structure(args.iter().filter_map(|(atom, _)| Some(element(atom)?.atom)))
            .map(|atom| list(&atom)),
        name if KEEPING.contains(&name) => {
            let forms = args.iter().filter(|(atom, _)| atom.has_uuids());
            let mut forms = forms.flat_map(|(atom, _)| forms_of(atom));
            return forms.find_map(|form| like(&result, &form)).unwrap_or(result);
        }
        _ => None,
    };
    found.and_then(|found| like(&result, &found)).unwrap_or(result)
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

/// Returns a type with UUIDs in place of its texts where `form` has UUIDs; `None` if the types
/// differ in more.
fn like(result: &Atom, form: &Atom) -> Option<Atom> {
    let slot = |result: &Slot, form: &Slot| {
        Some(Slot { atom: like(&result.atom, &form.atom)?, nullable: result.nullable })
    };
    Some(match (result, form) {
        (Atom::String, Atom::Uuid) => Atom::Uuid,
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
    fn versions_and_times() {
        let of = |text: &str| uuid::parse(text).map(|uuid| (version(&uuid), moment(&uuid)));
        for (text, version, moment) in [
            ("c232ab00-9414-11ec-b3c8-9f6bdeced846", Some(1), Some(1_645_557_742_000_000)),
            ("017f22e2-79b0-7cc3-98c4-dc0c0c07398f", Some(7), Some(1_645_557_742_000_000)),
            ("919108f7-52d1-4320-9bac-f847db4148a8", Some(4), None),
            ("00000000-0000-0000-0000-000000000000", None, None),
        ] {
            assert_eq!(of(text), Some((version, moment)), "{text}");
        }
    }

    #[test]
    fn results_of_foreign_functions_keep_uuids() {
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
            ("map_keys", &["map<uuid, int64?>"], "list<string?>", "list<uuid?>"),
            ("map_values", &["map<uuid, int64?>"], "list<int64?>", "list<int64?>"),
        ] {
            assert_eq!(kept(name, args, result), expected, "{name}");
        }
    }
}
