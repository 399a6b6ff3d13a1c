//! tessera-local
