//! Bodies of fuzz targets.

use crate::kept::object_in;

/// A file of the code cache whose hash is right.
pub fn code_files(data: &[u8]) {
    let bytes = [data, &tessera_vector::hash::word_of_bytes(data).to_le_bytes()].concat();
    if let Some(object) = object_in(&bytes, "made of") {
        assert!(object.len() < data.len());
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn code_files() {
        let made_of = format!("{}\nmade of", crate::kept::VERSION);
        let seed =
            [b"TESSCOD1", &(made_of.len() as u64).to_le_bytes()[..], made_of.as_bytes(), b"object"]
                .concat();
        tessera_fuzzing::mutate("code_files", &[&seed], super::code_files);
    }
}
