//! Collations: COLLATE, and the keys by which texts with a collation are compared.
//!
//! As in PostgreSQL, a collation belongs to an expression: COLLATE gives an explicit one, a column
//! of a subquery keeps the one of its value, and calls pass on those of their arguments. The binder
//! marks an expression with the function `collate`; where texts are compared, sorted or grouped, it
//! puts a key in their place. A field, which has no expression, is in `Binder::collations`.

use sqlparser::ast::{Expr as Ast, ObjectName, Spanned};
use tessera_optimizer::logical::relation::Name;
use tessera_plan::{Expr, Scalar};
use tessera_types::{Atom, Error, Result, SqlState, did_you_mean};

use super::typed::TypedExpr;
use super::{Binder, Place, with_span};

/// The function that marks an expression with a collation.
const MARK: &str = "collate";

/// The languages whose order is known.
const LANGUAGES: &str = "aa af am ar as az bal be bg blo bn bo br bs ca ceb chr cs cu cy da de dsb \
    dz ee el en eo es et fa ff fi fil fo fr fy ga gl gu ha haw he hi hr hsb hu hy id ig is it ja \
    ka kk kl km kn ko kok ku ky lb lij lkt ln lo lt lv mk ml mn mr ms mt my nb ne nl nn no nso om \
    or pa pl ps pt ro ru sa se sgs si sk sl smn sq sr ssy st sv sw ta te th tk tn to tr ug uk und \
    ur uz vi vo wae wo xh yi yo zh zu";

/// The most texts with a collation of which the greatest or least is chosen.
const CHOSEN_MAX: usize = 16;

/// How texts are compared. By default they are compared by their bytes, which is collation "C".
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Collation {
    ignores_case: bool,
    ignores_accents: bool,
    /// The locale in whose order texts are, such as `de-AT`.
    locale: Option<String>,
}

impl Collation {
    /// Returns the collation of this name, such as `C`, `nocase.noaccent` or `de_AT`.
    fn named(name: &str) -> Option<Collation> {
        let mut collation = Collation::default();
        let plain = name.to_ascii_lowercase();
        let plain = plain.trim_end_matches(".utf8").trim_end_matches(".utf-8");
        if matches!(plain, "c" | "posix" | "ucs_basic" | "default") {
            return Some(collation);
        }
        for part in plain.split('.') {
            match part {
                "nocase" => collation.ignores_case = true,
                "noaccent" => collation.ignores_accents = true,
                locale if collation.locale.is_none() => {
                    let locale = locale.trim_end_matches("-x-icu").replace('_', "-");
                    let language = locale.split('-').next().unwrap_or_default();
                    if !LANGUAGES.split_ascii_whitespace().any(|known| known == language) {
                        return None;
                    }
                    collation.locale = Some(locale);
                }
                _ => return None,
            }
        }
        Some(collation)
    }

    /// Returns the name, from which `named` makes the collation again.
    fn name(&self) -> String {
        let parts = [
            self.ignores_case.then_some("nocase"),
            self.ignores_accents.then_some("noaccent"),
            self.locale.as_deref(),
        ];
        match parts.into_iter().flatten().collect::<Vec<_>>().join(".") {
            name if name.is_empty() => "C".to_string(),
            name => name,
        }
    }

    /// Returns whether texts can be equal that differ.
    pub(super) fn joins_texts(&self) -> bool {
        self.ignores_case || self.ignores_accents
    }
}

/// The collation of an expression, and where it is from.
enum Derived {
    /// No collation: a constant or a plain column.
    None,
    Implicit(Collation),
    /// That of COLLATE.
    Explicit(Collation),
    /// Columns of several collations.
    Conflict(Collation, Collation),
}

impl Derived {
    /// Returns the collation of a call with arguments of these collations.
    fn with(self, other: Derived) -> Result<Derived> {
        Ok(match (self, other) {
            (Derived::Explicit(a), Derived::Explicit(b)) if a != b => {
                let message = format!(
                    "collations {} and {} cannot be combined; write COLLATE once",
                    a.name(),
                    b.name()
                );
                return Err(Error::semantic(message).with_state(SqlState::COLLATION_MISMATCH));
            }
            (one @ Derived::Explicit(_), _) | (_, one @ Derived::Explicit(_)) => one,
            (one, Derived::None) | (Derived::None, one) => one,
            (Derived::Implicit(a), Derived::Implicit(b)) if a != b => Derived::Conflict(a, b),
            (one @ Derived::Conflict(..), _) | (_, one) => one,
        })
    }

    fn collation(self) -> Result<Option<Collation>> {
        match self {
            Derived::None => Ok(None),
            Derived::Implicit(collation) | Derived::Explicit(collation) => Ok(Some(collation)),
            Derived::Conflict(a, b) => {
                let message = format!(
                    "texts of collations {} and {} cannot be compared; choose one with COLLATE",
                    a.name(),
                    b.name()
                );
                Err(Error::semantic(message).with_state(SqlState::INDETERMINATE_COLLATION))
            }
        }
    }
}

impl Binder<'_> {
    /// Binds `text COLLATE name`.
    pub(super) fn collate(
        &mut self,
        expr: &Ast,
        name: &ObjectName,
        place: &mut Place<'_, '_>,
    ) -> Result<TypedExpr> {
        let value = self.expr(expr, place)?;
        self.collated(value, name).map_err(|error| with_span(error, expr.span()))
    }

    fn collated(&self, value: TypedExpr, name: &ObjectName) -> Result<TypedExpr> {
        let value = match value.is_null() {
            true => self.cast_to(value, &Atom::String, false)?,
            false => value.known(),
        };
        if value.atom != Atom::String {
            let message = format!("COLLATE takes text, not {}; cast it to text", value.atom);
            return Err(Error::semantic(message).with_state(SqlState::DATATYPE_MISMATCH));
        }
        let parts = name.0.iter().map(|part| match part.as_ident() {
            Some(ident) => ident.value.clone(),
            None => part.to_string(),
        });
        let name = parts.filter(|part| part != "pg_catalog").collect::<Vec<_>>().join(".");
        let unknown = || {
            let known = ["C", "POSIX", "nocase", "noaccent", "de_DE", "en_US"];
            let hint = match did_you_mean(&name, known) {
                hint if hint.is_empty() => {
                    "; expected C, nocase, noaccent or a locale such as de_DE".to_string()
                }
                hint => hint,
            };
            Error::semantic(format!("unknown collation '{name}'{hint}"))
                .with_state(SqlState::UNDEFINED_OBJECT)
        };
        let collation = Collation::named(&name).ok_or_else(unknown)?;
        // The locale may have further parts, which its key reads.
        self.order_key(value.clone(), &collation).map_err(|_| unknown())?;
        self.has_collations.set(true);
        // Another COLLATE above it replaces the first one.
        let value = match value.expr {
            Expr::Call { function, mut args } if &*function == MARK => args.swap_remove(0),
            expr => expr,
        };
        Ok(TypedExpr::new(mark(value, &collation), Atom::String))
    }

    /// Returns the collation in which values are compared; `None` if they are compared by their
    /// bytes.
    ///
    /// # Errors
    /// The values have different collations.
    pub(super) fn collation(&self, values: &[&TypedExpr]) -> Result<Option<Collation>> {
        if !self.has_collations.get() {
            return Ok(None);
        }
        let derived = self.combined(values.iter().map(|value| &value.expr))?;
        Ok(derived.collation()?.filter(|collation| *collation != Collation::default()))
    }

    fn combined<'e>(&self, exprs: impl Iterator<Item = &'e Expr>) -> Result<Derived> {
        let mut all = Derived::None;
        for expr in exprs {
            all = all.with(self.derived(expr)?)?;
        }
        Ok(all)
    }

    fn derived(&self, expr: &Expr) -> Result<Derived> {
        if let Some(collation) = marked(expr) {
            return Ok(Derived::Explicit(collation));
        }
        if let Expr::Field(name) | Expr::Parameter(name) = expr {
            return Ok(match self.collations.get(name) {
                Some(collation) => Derived::Implicit(collation.clone()),
                None => Derived::None,
            });
        }
        // The fields of lambdas have no types here; their texts have no collation.
        if self.fields.atom_of(expr).ok() != Some(Atom::String) {
            return Ok(Derived::None);
        }
        match expr {
            Expr::Call { args, .. } | Expr::Coalesce(args) => self.combined(args.iter()),
            Expr::Cast { input, .. } | Expr::Try(input) => self.derived(input),
            Expr::Case { branches, otherwise } => {
                let values = branches.iter().map(|(_, value)| value);
                self.combined(values.chain(otherwise.as_deref()))
            }
            _ => Ok(Derived::None),
        }
    }

    /// Gives a field the collation of the values that it is computed from.
    pub(super) fn keep_collation<'e>(
        &mut self,
        field: &Name,
        values: impl IntoIterator<Item = &'e Expr>,
    ) -> Result<()> {
        if !self.has_collations.get() || self.fields.atom(field)? != Atom::String {
            return Ok(());
        }
        // A conflict is an error where the field is compared; it then counts as a plain one.
        match self.combined(values.into_iter())? {
            Derived::Implicit(collation) | Derived::Explicit(collation) => {
                self.collations.insert(field.clone(), collation);
            }
            Derived::None | Derived::Conflict(..) => {}
        }
        Ok(())
    }

    /// Returns the collation of a result of the SELECT list.
    pub(super) fn result_collation(&self, value: &TypedExpr) -> Result<Option<Collation>> {
        if !self.has_collations.get() || value.atom != Atom::String {
            return Ok(None);
        }
        Ok(match self.derived(&value.expr)? {
            Derived::Implicit(collation) | Derived::Explicit(collation) => Some(collation),
            Derived::None | Derived::Conflict(..) => None,
        })
    }

    /// Marks a simplified result with its collation, which simplifying has removed.
    pub(super) fn with_collation(
        &self,
        value: TypedExpr,
        collation: Option<Collation>,
    ) -> TypedExpr {
        match (&value.expr, collation) {
            (_, None) => value,
            (Expr::Field(name), Some(known)) if self.collations.get(name) == Some(&known) => value,
            (_, Some(collation)) => TypedExpr { expr: mark(value.expr, &collation), ..value },
        }
    }

    /// Returns the key by which a text is found equal.
    pub(super) fn equal_key(&self, value: TypedExpr, collation: &Collation) -> Result<TypedExpr> {
        let value = match collation.ignores_case {
            true => self.call("lower", vec![value])?,
            false => value,
        };
        match collation.ignores_accents {
            true => self.call("strip_accents", vec![value]),
            false => Ok(value),
        }
    }

    /// Returns the key by which a text is ordered.
    pub(super) fn order_key(&self, value: TypedExpr, collation: &Collation) -> Result<TypedExpr> {
        let value = self.equal_key(value, collation)?;
        match &collation.locale {
            Some(locale) => self.call("collation_key", vec![value, TypedExpr::text(locale)]),
            None => Ok(value),
        }
    }

    /// Puts the key of a sort in the place of a text with a collation; the flag says whether it
    /// has one.
    pub(super) fn sort_key(&self, value: TypedExpr) -> Result<(TypedExpr, bool)> {
        match self.text_collation(&value)? {
            Some(collation) => Ok((self.order_key(value, &collation)?, true)),
            None => Ok((value, false)),
        }
    }

    /// Puts the key of a partition in the place of a text with a collation.
    pub(super) fn partition_key(&self, value: TypedExpr) -> Result<TypedExpr> {
        match self.text_collation(&value)? {
            Some(collation) => self.equal_key(value, &collation),
            None => Ok(value),
        }
    }

    /// Returns the collation of a value that is a text.
    pub(super) fn text_collation(&self, value: &TypedExpr) -> Result<Option<Collation>> {
        match value.atom {
            Atom::String => self.collation(&[value]),
            _ => Ok(None),
        }
    }

    /// Puts keys in the place of texts that the comparison `name` reads.
    pub(super) fn compared_keys(
        &self,
        name: &str,
        left: TypedExpr,
        right: TypedExpr,
    ) -> Result<(TypedExpr, TypedExpr)> {
        if left.atom != Atom::String || right.atom != Atom::String {
            return Ok((left, right));
        }
        let Some(collation) = self.collation(&[&left, &right])? else { return Ok((left, right)) };
        let is_order = matches!(name, "lt" | "lt_eq" | "gt" | "gt_eq");
        let key = |value| match is_order {
            true => self.order_key(value, &collation),
            false => self.equal_key(value, &collation),
        };
        Ok((key(left)?, key(right)?))
    }

    /// Puts keys in the place of all texts in which a function looks for others.
    pub(super) fn searched_keys(&self, mut args: Vec<TypedExpr>) -> Result<Vec<TypedExpr>> {
        let texts = args.iter().filter(|arg| arg.atom == Atom::String).collect::<Vec<_>>();
        let Some(collation) = self.collation(&texts)? else { return Ok(args) };
        for arg in args.iter_mut().filter(|arg| arg.atom == Atom::String) {
            *arg = self.equal_key(arg.clone(), &collation)?;
        }
        Ok(args)
    }

    /// Makes a function that compares or finds texts do so in their collation.
    pub(super) fn collated_arguments(
        &self,
        name: &str,
        args: Vec<TypedExpr>,
    ) -> Result<Vec<TypedExpr>> {
        if !self.has_collations.get() {
            return Ok(args);
        }
        match (name, &args[..]) {
            (
                "contains" | "ends_with" | "instr" | "position" | "prefix" | "starts_with"
                | "strpos" | "suffix",
                _,
            ) => self.searched_keys(args),
            ("greatest" | "least", _) => self.chosen_text(name, args),
            // The comparison comes before the call, which then compares with NULL.
            ("nullif", [text, other]) if self.collation(&[text, other])?.is_some() => {
                let equal = self.compared("eq", text.clone(), other.clone())?;
                let null = Expr::null(Atom::String);
                let branches = vec![(equal.expr, null.clone())];
                let otherwise = Some(Box::new(text.expr.clone()));
                let value = Expr::Case { branches, otherwise };
                Ok(vec![TypedExpr::new(value, Atom::String), TypedExpr::new(null, Atom::String)])
            }
            _ => Ok(args),
        }
    }

    /// Computes `greatest` or `least` of texts with a collation by comparisons, and returns it as
    /// an argument of the function that has no collation.
    fn chosen_text(&self, name: &str, args: Vec<TypedExpr>) -> Result<Vec<TypedExpr>> {
        let texts = args.iter().filter(|arg| arg.atom == Atom::String).collect::<Vec<_>>();
        let Some(collation) = self.collation(&texts)? else { return Ok(args) };
        // Both functions leave out NULLs.
        let args: Vec<TypedExpr> = args.into_iter().filter(|arg| !arg.is_null()).collect();
        // Each text is compared several times.
        if args.len() > CHOSEN_MAX || args.iter().any(|arg| self.is_volatile(&arg.expr)) {
            self.refuse_collation(&format!("{name}(…)"), &args)?;
        }
        let operator = if name == "greatest" { "gt" } else { "lt" };
        let compared = |text: &TypedExpr| {
            TypedExpr::new(mark(text.clone().known().expr, &collation), Atom::String)
        };
        let mut texts = args;
        // A tree of comparisons is smaller than a chain of them.
        while texts.len() > 1 {
            let mut chosen = Vec::with_capacity(texts.len().div_ceil(2));
            for pair in texts.chunks(2) {
                let [first, second] = pair else {
                    chosen.extend_from_slice(pair);
                    continue;
                };
                let wins = self.compared(operator, compared(second), compared(first))?;
                let is_missing = Expr::IsNull(Box::new(first.expr.clone()));
                let branches =
                    vec![(is_missing, second.expr.clone()), (wins.expr, second.expr.clone())];
                let value = Expr::Case { branches, otherwise: Some(Box::new(first.expr.clone())) };
                chosen.push(TypedExpr::new(value, Atom::String));
            }
            texts = chosen;
        }
        texts.push(TypedExpr::new(Expr::null(Atom::String), Atom::String));
        Ok(texts)
    }

    /// Like `refuse_collation`, for constructs that only find texts equal: in a locale, texts are
    /// equal if their bytes are.
    pub(super) fn refuse_joined(&self, construct: &str, values: &[TypedExpr]) -> Result<()> {
        let texts = values.iter().filter(|value| value.atom == Atom::String).collect::<Vec<_>>();
        match self.collation(&texts)?.is_some_and(|collation| collation.joins_texts()) {
            true => self.refuse_collation(construct, values),
            false => Ok(()),
        }
    }

    /// Returns an error if a construct that compares bytes reads texts with a collation.
    pub(super) fn refuse_collation(&self, construct: &str, values: &[TypedExpr]) -> Result<()> {
        let texts = values.iter().filter(|value| value.atom == Atom::String).collect::<Vec<_>>();
        match self.collation(&texts)? {
            Some(collation) => {
                let message = format!(
                    "{construct} of texts with collation {} is not supported; write COLLATE \"C\"",
                    collation.name()
                );
                Err(Error::unsupported(message))
            }
            None => Ok(()),
        }
    }
}

fn mark(value: Expr, collation: &Collation) -> Expr {
    Expr::call(MARK, vec![value, Expr::string(&collation.name())])
}

/// Returns the collation with which an expression is marked.
fn marked(expr: &Expr) -> Option<Collation> {
    match expr {
        Expr::Call { function, args } if &**function == MARK => match args.last() {
            Some(Expr::Constant(Scalar::String(name), _)) => Collation::named(name),
            _ => None,
        },
        _ => None,
    }
}

/// Removes the marks of collations, which have done their work.
pub(super) fn remove_marks(expr: &mut Expr) {
    while let Expr::Call { function, args } = expr {
        match (&**function, args.is_empty()) {
            (MARK, false) => *expr = args.swap_remove(0),
            _ => break,
        }
    }
    expr.children_mut().into_iter().for_each(remove_marks);
}

/// Returns an expression without the marks of collations at its top.
pub(super) fn without_mark(mut expr: &Expr) -> &Expr {
    while let Expr::Call { function, args } = expr {
        match (&**function, args.first()) {
            (MARK, Some(inner)) => expr = inner,
            _ => break,
        }
    }
    expr
}

/// Returns whether an expression is marked with a collation.
pub(super) fn is_marked(expr: &Expr) -> bool {
    marked(expr).is_some()
}
