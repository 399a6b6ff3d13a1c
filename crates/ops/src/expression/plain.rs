//! Any Arrow form of an atom to its plain form.

use arrow::array::{Array, ArrayRef};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::DataType;
use tessera_types::{Atom, Error, Result};

/// The same values in the atom's plain form; what scans and calls of foreign functions use.
///
/// # Errors
/// A value does not fit, such as a 256-bit decimal of more than 38 digits, or text that is not UTF-8.
pub fn to_plain(array: ArrayRef, atom: &Atom) -> Result<ArrayRef> {
    to_form(array.clone(), &atom.arrow())
        .map_err(|error| error.context(format!("converting {} to {atom}", array.data_type())))
}

/// The values as Arrow casts them to another type; the same array where it is of that type already.
///
/// # Errors
/// A value does not fit.
pub(crate) fn to_form(array: ArrayRef, data_type: &DataType) -> Result<ArrayRef> {
    if array.data_type() == data_type {
        return Ok(array);
    }
    let options = CastOptions { safe: false, ..Default::default() };
    cast_with_options(&array, data_type, &options).map_err(Error::from)
}
