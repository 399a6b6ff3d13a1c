//! The text form of plans, which is also what travels to another process.
