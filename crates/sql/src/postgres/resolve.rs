//! Which operator or function a call means.

use super::table::{Form, Kind};
use super::{Category, Given, Type, casts, polymorphic, tables};

/// What a call means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// This operator or function.
    Found(Call),
    /// The cast of the only argument to a type: the function is called as the type is.
    Cast(Given),
    /// There is none of this name.
    NotFound,
    /// None of this name takes these arguments.
    NoMatch,
    /// Several take them, and none of them better than the others.
    Ambiguous,
    /// The arguments, all literals, do not say what type they are.
    Indeterminate,
}

/// A call that is understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    /// The types that the arguments become. One that is declared as `any` stays as it is, even
    /// unknown.
    pub(crate) args: Vec<Given>,
    /// The type of the result.
    pub(crate) result: Given,
    /// The operator or function as it is declared: where it is polymorphic, the types of lists of
    /// lists and of structs follow from the arguments.
    pub(crate) form: &'static Form,
}

/// What an operator means between two operands, or before one.
pub(crate) fn operator(name: &str, operands: &[Given]) -> Outcome {
    let name = if name == "!=" { "<>" } else { name };
    let forms = forms(&tables::OPERATORS, name);
    let candidates: Vec<Candidate> =
        forms.iter().filter_map(|form| Candidate::new(form, operands.len())).collect();
    // A literal beside another operand is first taken to be of its type.
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

/// What a function's name means before some arguments, among the functions of some kinds (none: of
/// all).
pub(crate) fn function(name: &str, kinds: &[Kind], args: &[Given]) -> Outcome {
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

fn forms(table: &'static [Form], name: &str) -> &'static [Form] {
    let start = table.partition_point(|form| form.name < name);
    let count = table[start..].partition_point(|form| form.name == name);
    &table[start..start + count]
}

/// A form that takes as many arguments as there are.
#[derive(Debug, Clone)]
struct Candidate {
    form: &'static Form,
    args: Vec<Given>,
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

    fn called_with(&self, given: &[Given]) -> Outcome {
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

/// The outcome where no candidate's types are exactly those given.
fn best(mut candidates: Vec<Candidate>, given: &[Given], is_nothing: bool) -> Outcome {
    candidates.retain(|candidate| casts::can_pass(given, &candidate.args));
    match candidates.as_slice() {
        [] if is_nothing => Outcome::NotFound,
        [] => Outcome::NoMatch,
        [only] => only.called_with(given),
        _ => selected(candidates, given).map_or(Outcome::Ambiguous, |best| best.called_with(given)),
    }
}

/// The best of several candidates (`func_select_candidate`).
fn selected(mut candidates: Vec<Candidate>, given: &[Given]) -> Option<Candidate> {
    let is_exact = |given: Given, declared: Given| !given.is_unknown() && given == declared;
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

/// Keeps the candidates that fit at the most places.
fn keep_best(
    candidates: &mut Vec<Candidate>,
    given: &[Given],
    fits: impl Fn(Given, Given) -> bool,
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

/// Keeps the candidates that take, for each literal, a type of the category that it has: text if
/// any takes that, else the one that all take. If one takes the preferred type of the category, so
/// must the others. Keeps all where a literal's category is undecided, or where none would be left.
fn keep_for_literals(candidates: &mut Vec<Candidate>, given: &[Given]) {
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

/// Keeps the only candidate, if it is one, that takes the literals as values of the type that all
/// others have.
fn keep_of_one_type(candidates: &mut Vec<Candidate>, given: &[Given]) {
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
