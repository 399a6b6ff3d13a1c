//! tessera-sql
