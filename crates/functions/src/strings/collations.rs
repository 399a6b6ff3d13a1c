//! Keys by which collations compare texts.

use std::borrow::Cow;
use std::sync::LazyLock;

use icu_collator::{Collator, CollatorBorrowed};
use icu_locale_core::Locale;
use icu_normalizer::{ComposingNormalizerBorrowed, DecomposingNormalizerBorrowed};
use regex::Regex;
use tessera_plan::{Expr, Scalar};
use tessera_types::{Atom, Error, Result};

use tessera_values::rowwise::{OutputValue, signature, strict};
use tessera_values::types::{Arg, ResolvedCall, wrong_arguments};

/// The accents that follow a letter where texts are decomposed.
static MARKS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\p{M}+").ok());

/// `strip_accents(text)`: the text without accents, as in DuckDB.
pub(super) fn strip_accents(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let casts = signature(name, args, &[Atom::String])?;
    let call = strict(Atom::String, args, casts, |arguments| {
        Ok(OutputValue::Text(without_accents(arguments[0].text()).into_owned()))
    });
    Ok(call.raising(false))
}

fn without_accents(text: &str) -> Cow<'_, str> {
    let Some(marks) = MARKS.as_ref().filter(|_| !text.is_ascii()) else {
        return Cow::Borrowed(text);
    };
    let decomposed = DecomposingNormalizerBorrowed::new_nfd().normalize(text);
    let plain = marks.replace_all(&decomposed, "");
    Cow::Owned(ComposingNormalizerBorrowed::new_nfc().normalize(&plain).into_owned())
}

/// `collate(text, collation)`: the text itself. The name of the collation is for the binder, which
/// reads it where texts are compared.
pub(super) fn collate(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let casts = signature(name, args, &[Atom::String, Atom::String])?;
    let call = strict(Atom::String, args, casts, |arguments| {
        Ok(OutputValue::Text(arguments[0].text().to_string()))
    });
    Ok(call.raising(false))
}

/// `collation_key(text, locale)`: bytes whose order is that of the texts in a locale. Texts that
/// are equal there are ordered by their bytes, as in PostgreSQL.
pub(super) fn key(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let casts = signature(name, args, &[Atom::String, Atom::String])?;
    let Expr::Constant(Scalar::String(locale), _) = args[1].expr else {
        return Err(wrong_arguments(name, args, "the locale must be a constant"));
    };
    let collator = collator(locale)?;
    let call = strict(Atom::Bytes, args, casts, move |arguments| {
        let text = arguments[0].text();
        let mut key = Vec::with_capacity(3 * text.len() + 8);
        let Ok(()) = collator.write_sort_key_to(text, &mut key);
        // No key has a zero byte, so a shorter one comes first.
        key.push(0);
        key.extend_from_slice(text.as_bytes());
        Ok(OutputValue::Bytes(key))
    });
    Ok(call.raising(false))
}

/// Returns the rules of a locale, such as `de-AT`.
fn collator(locale: &str) -> Result<CollatorBorrowed<'static>> {
    let unknown = || Error::semantic(format!("unknown locale '{locale}' of a collation"));
    let parsed = Locale::try_from_str(locale).map_err(|_| unknown())?;
    Collator::try_new((&parsed).into(), Default::default()).map_err(|_| unknown())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accents_go() {
        for (text, plain) in [
            ("", ""),
            ("plain", "plain"),
            ("Ärger à l'été", "Arger a l'ete"),
            ("e\u{301}\u{302}x", "ex"),
            ("straße ø 東京", "straße ø 東京"),
            ("한글", "한글"),
            ("\u{301}", ""),
        ] {
            assert_eq!(without_accents(text), plain);
        }
    }

    #[test]
    fn keys_are_in_the_order_of_a_locale() {
        let key = |locale: &str, text: &str| {
            let mut key = Vec::new();
            let Ok(()) = collator(locale).unwrap().write_sort_key_to(text, &mut key);
            key
        };
        assert!(key("en", "a") < key("en", "B"));
        assert!(key("de", "ä") < key("de", "z"));
        assert!(key("sv", "ä") > key("sv", "z"));
        assert!(key("en", "") < key("en", "a"));
        assert!(collator("not a locale").is_err());
    }
}
