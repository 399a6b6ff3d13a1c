//! tessera-files
