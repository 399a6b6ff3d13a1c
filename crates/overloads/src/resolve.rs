//! Resolves calls to operators and functions.

use super::table::{Form, Kind};
use super::{Category, Type, ValueType, casts, polymorphic, tables};

/// The result of resolving a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// An operator or function.
    Found(Call),
    /// A cast of the only argument: the call's name is a type's name.
    Cast(ValueType),
    /// The name is unknown.
    NotFound,
    /// The name is known, but no signature takes these arguments.
    NoMatch,
    /// Several signatures match equally well.
    Ambiguous,
    /// All arguments of a polymorphic function are untyped literals.
    Indeterminate,
}

/// A resolved call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The types to which the arguments are converted. An argument declared as `any` keeps its
    /// type, even an unknown one.
    pub args: Vec<ValueType>,
    /// The type of the result.
    pub(crate) result: ValueType,
    /// The declared signature. If it is polymorphic, types of nested lists and structs follow from
    /// the arguments.
    pub(crate) form: &'static Form,
}

/// Resolves an operator with one or two operands.
pub fn operator(name: &str, operands: &[ValueType]) -> Outcome {
    let name = if name == "!=" { "<>" } else { name };
    let forms = forms(&tables::OPERATORS, name);
    let candidates: Vec<Candidate> =
        forms.iter().filter_map(|form| Candidate::new(form, operands.len())).collect();
    // A literal is first assumed to have the type of the other operand.
    let assumed = match *operands {
        [left, right] if left.is_unknown() => vec![right, right],
        [left, right] if right.is_unknown() => vec![left, left],
        _ => operands.to_vec(),
    };
    match candidates.iter().find(|candidate| candidate.args == assumed) {
        Some(exact) => exact.called_with(operands),
        None => best(candidates, operands, forms.is_empty()),
    }
}

/// Resolves a function among the functions of some kinds; an empty slice means all kinds.
pub fn function(name: &str, kinds: &[Kind], args: &[ValueType]) -> Outcome {
    let forms: Vec<&'static Form> = forms(&tables::FUNCTIONS, name)
        .iter()
        .filter(|form| kinds.is_empty() || kinds.contains(&form.kind))
        .collect();
    let candidates: Vec<Candidate> =
        forms.iter().filter_map(|form| Candidate::new(form, args.len())).collect();
    if let Some(exact) = candidates.iter().find(|candidate| candidate.args == args) {
        return exact.called_with(args);
    }
    if let [arg] = args
        && let Some(to) = casts::cast_called(name, *arg)
    {
        return Outcome::Cast(to);
    }
    best(candidates, args, forms.is_empty())
}

/// Returns the signatures with this name; the table is sorted by name.
fn forms(table: &'static [Form], name: &str) -> &'static [Form] {
    let start = table.partition_point(|form| form.name < name);
    let count = table[start..].partition_point(|form| form.name == name);
    &table[start..start + count]
}

/// A signature that takes the given number of arguments.
#[derive(Debug, Clone)]
struct Candidate {
    form: &'static Form,
    args: Vec<ValueType>,
}

impl Candidate {
    fn new(form: &'static Form, count: usize) -> Option<Self> {
        let declared = form.args.len();
        let mut args = form.args.get(..count.min(declared))?.to_vec();
        match form.variadic {
            Some(more) if declared <= count => {
                args.truncate(declared.saturating_sub(1));
                args.resize(count, more);
            }
            _ if declared < count || declared - count > usize::from(form.defaults) => return None,
            _ => {}
        }
        Some(Candidate { form, args })
    }

    fn called_with(&self, given: &[ValueType]) -> Outcome {
        let is_foreign =
            self.args.iter().chain([&self.form.result]).any(|ty| ty.ty == Type::Foreign);
        let Some(solution) = polymorphic::solve(given, &self.args).filter(|_| !is_foreign) else {
            return Outcome::NoMatch;
        };
        if solution.is_indeterminate() {
            return Outcome::Indeterminate;
        }
        let args = self
            .args
            .iter()
            .zip(given)
            .map(|(declared, given)| solution.resolved(*declared, *given));
        let result = solution.resolved(self.form.result, self.form.result);
        Outcome::Found(Call { args: args.collect(), result, form: self.form })
    }
}

/// Resolves a call without an exact match.
fn best(mut candidates: Vec<Candidate>, given: &[ValueType], is_nothing: bool) -> Outcome {
    candidates.retain(|candidate| casts::can_pass(given, &candidate.args));
    match candidates.as_slice() {
        [] if is_nothing => Outcome::NotFound,
        [] => Outcome::NoMatch,
        [only] => only.called_with(given),
        _ => selected(candidates, given).map_or(Outcome::Ambiguous, |best| best.called_with(given)),
    }
}

/// Selects the best of several candidates (`func_select_candidate`).
fn selected(mut candidates: Vec<Candidate>, given: &[ValueType]) -> Option<Candidate> {
    let is_exact = |given: ValueType, declared: ValueType| !given.is_unknown() && given == declared;
    keep_best(&mut candidates, given, is_exact);
    keep_best(&mut candidates, given, |given, declared| {
        let is_preferred = || declared.is_preferred() && declared.category() == given.category();
        is_exact(given, declared) || !given.is_unknown() && is_preferred()
    });
    if candidates.len() > 1 && given.iter().any(|ty| ty.is_unknown()) {
        keep_for_literals(&mut candidates, given);
    }
    if candidates.len() > 1 {
        keep_of_one_type(&mut candidates, given);
    }
    match candidates.len() {
        1 => candidates.pop(),
        _ => None,
    }
}

/// Keeps the candidates that match the most argument positions.
fn keep_best(
    candidates: &mut Vec<Candidate>,
    given: &[ValueType],
    fits: impl Fn(ValueType, ValueType) -> bool,
) {
    let count = |candidate: &Candidate| {
        given
            .iter()
            .zip(&candidate.args)
            .filter(|(given, declared)| fits(**given, **declared))
            .count()
    };
    let most = candidates.iter().map(count).max().unwrap_or(0);
    candidates.retain(|candidate| count(candidate) == most);
}

/// Keeps the candidates that take a type of the chosen category for each literal: string if any
/// candidate takes one, else the category that all candidates share. If a candidate takes the
/// category's preferred type, all kept ones must. Keeps all candidates if a category is undecided
/// or no candidate would remain.
fn keep_for_literals(candidates: &mut Vec<Candidate>, given: &[ValueType]) {
    let mut wanted = Vec::new();
    for (place, _) in given.iter().enumerate().filter(|(_, ty)| ty.is_unknown()) {
        let declared = || candidates.iter().filter_map(move |candidate| candidate.args.get(place));
        let is_text = declared().any(|ty| ty.category() == Category::String);
        let Some(first) = declared().next().map(|ty| ty.category()) else { return };
        let category = if is_text { Category::String } else { first };
        if !is_text && declared().any(|ty| ty.category() != category) {
            return;
        }
        let preferred = declared().any(|ty| ty.category() == category && ty.is_preferred());
        wanted.push((place, category, preferred));
    }
    let fits = |candidate: &Candidate| {
        wanted.iter().all(|(place, category, preferred)| {
            candidate
                .args
                .get(*place)
                .is_some_and(|ty| ty.category() == *category && (ty.is_preferred() || !preferred))
        })
    };
    if candidates.iter().any(fits) {
        candidates.retain(fits);
    }
}

/// Keeps the only candidate that takes the literals as the type that all other arguments have.
fn keep_of_one_type(candidates: &mut Vec<Candidate>, given: &[ValueType]) {
    let mut known = given.iter().filter(|ty| !ty.is_unknown());
    let Some(first) = known.next() else { return };
    if known.any(|ty| ty != first) || !given.iter().any(|ty| ty.is_unknown()) {
        return;
    }
    let assumed = vec![*first; given.len()];
    let takes = |candidate: &Candidate| casts::can_pass(&assumed, &candidate.args);
    if candidates.iter().filter(|candidate| takes(candidate)).count() == 1 {
        candidates.retain(takes);
    }
}
