//! tessera-session
