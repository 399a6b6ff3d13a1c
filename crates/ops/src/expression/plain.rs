//! Any Arrow form of an atom to its plain form.

use arrow::array::{Array, ArrayRef};
use arrow::compute::{CastOptions, cast_with_options};
use tessera_types::{Atom, Error, Result};

/// The same values in the atom's plain form; what scans and calls of foreign functions use.
///
/// # Errors
/// A value does not fit, such as a 256-bit decimal of more than 38 digits, or text that is not UTF-8.
pub fn to_plain(array: ArrayRef, atom: &Atom) -> Result<ArrayRef> {
    let target = atom.arrow();
    if *array.data_type() == target {
        return Ok(array);
    }
    let options = CastOptions { safe: false, ..Default::default() };
    cast_with_options(&array, &target, &options)
        .map_err(|error| Error::from(error).context(format!("converting {} to {atom}", array.data_type())))
}
