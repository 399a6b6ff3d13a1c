//! Bodies of the fuzz targets.

use crate::code_cache::object_in;

/// Parses a file of the code cache with a valid hash.
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
        let key = format!("{}\nmade of", crate::code_cache::VERSION);
        let seed = [b"TESSCOD1", &(key.len() as u64).to_le_bytes()[..], key.as_bytes(), b"object"]
            .concat();
        tessera_fuzzing::mutate("code_files", &[&seed], super::code_files);
    }
}
