//! tessera-generate
