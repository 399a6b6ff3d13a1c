//! Conversions between text and enums, and between enums.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, StringViewArray, UInt16Array};
use arrow::compute::take;
use arrow::datatypes::UInt16Type;
use tessera_context::interrupt::Every;
use tessera_types::{EnumType, Error, Result, SqlState};

use crate::kernel::unexpected;
use crate::parse::excerpt;

/// The labels that the message of an unknown one names.
const NAMED_LABELS_MAX: usize = 10;

/// Returns the place of each text in the labels of an enum.
///
/// # Errors
/// A text is no label. With `safe` it becomes NULL instead.
pub(crate) fn from_texts(array: &ArrayRef, to: &EnumType, safe: bool) -> Result<ArrayRef> {
    let texts = array.as_string_view_opt().ok_or_else(|| unexpected(array))?;
    let places: HashMap<&str, u16> =
        to.labels().iter().enumerate().map(|(place, label)| (&**label, place as u16)).collect();
    let every = Every::default();
    let place = |text: Option<&str>| -> Result<Option<u16>> {
        every.pass();
        let Some(text) = text else { return Ok(None) };
        match places.get(text) {
            Some(place) => Ok(Some(*place)),
            None if safe => Ok(None),
            None => Err(unknown_label(text, to)),
        }
    };
    Ok(Arc::new(texts.iter().map(place).collect::<Result<UInt16Array>>()?))
}

/// Returns the place of each label of an enum in the labels of another.
///
/// # Errors
/// The other one lacks a label. With `safe` it becomes NULL instead.
pub(crate) fn from_enum(
    array: &ArrayRef,
    from: &EnumType,
    to: &EnumType,
    safe: bool,
) -> Result<ArrayRef> {
    from_texts(&labels_of(array, from)?, to, safe)
}

/// Returns the label of each value.
///
/// # Errors
/// A value is not the place of a label: it was not made by a conversion.
pub(crate) fn labels_of(array: &ArrayRef, from: &EnumType) -> Result<ArrayRef> {
    let places = array.as_primitive_opt::<UInt16Type>().ok_or_else(|| unexpected(array))?;
    if let Some(place) = places.iter().flatten().find(|at| usize::from(*at) >= from.labels().len())
    {
        return Err(Error::internal(format!(
            "{place} is not the place of a label of enum {}",
            from.name()
        )));
    }
    let labels = StringViewArray::from_iter_values(from.labels());
    Ok(take(&labels, places, None)?)
}

fn unknown_label(text: &str, to: &EnumType) -> Error {
    let short = excerpt(text);
    let named = to.labels().iter().take(NAMED_LABELS_MAX).map(|label| format!("'{label}'"));
    let mut named = named.collect::<Vec<_>>().join(", ");
    if to.labels().len() > NAMED_LABELS_MAX {
        named.push_str(", …");
    }
    let expected = if named.is_empty() { String::new() } else { format!("; expected {named}") };
    Error::data(format!("'{short}' is not a label of enum {}{expected}", to.name()))
        .with_state(SqlState::INVALID_TEXT_REPRESENTATION)
}

#[cfg(test)]
mod tests {
    use tessera_types::{Atom, Code};

    use super::*;
    use crate::cast::cast;

    fn of(text: &str) -> Atom {
        text.parse().unwrap()
    }

    #[test]
    fn labels_convert_to_places_and_back() {
        let mood = of("enum(mood, 'sad', 'ok')");
        let texts: ArrayRef = Arc::new(StringViewArray::from(vec![Some("ok"), None, Some("sad")]));
        let places = cast(&texts, &Atom::String, &mood, false).unwrap();
        assert_eq!(
            &places,
            &(Arc::new(UInt16Array::from(vec![Some(1), None, Some(0)])) as ArrayRef)
        );
        assert_eq!(&cast(&places, &mood, &Atom::String, false).unwrap(), &texts);
        let other = of("enum(other, 'ok')");
        let lacking = cast(&places, &mood, &other, false).unwrap_err();
        assert_eq!(lacking.message(), "'sad' is not a label of enum other; expected 'ok'");
        let safe = cast(&places, &mood, &other, true).unwrap();
        assert_eq!(&safe, &(Arc::new(UInt16Array::from(vec![Some(0), None, None])) as ArrayRef));
    }

    #[test]
    fn a_place_without_a_label_is_an_error() {
        let places: ArrayRef = Arc::new(UInt16Array::from(vec![2]));
        let error = cast(&places, &of("enum(mood, 'sad', 'ok')"), &Atom::String, false);
        assert_eq!(error.unwrap_err().code(), Code::Internal);
    }
}
