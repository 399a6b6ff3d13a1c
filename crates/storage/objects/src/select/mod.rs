//! Smart storage: what a store computes itself, so that less of an object has to be sent
//! (Modularis, section 2.4.5).
//!
//! A store that offers SelectObjectContent filters an object's tuples, drops columns and counts.
//! [`push_selects`] finds scans of objects for which that can be relied on, and puts three
//! sub-operators in their place: `select_request` asks and gives Arrow tables,
//! `arrow_to_collection` takes them over, `batch_scan` (the engine's own) reads them. What the
//! store cannot be trusted with stays in the plan.
//!
//! Parts: `pass` which scans; `trust` which store can be trusted with what; `sql` predicates in the
//! store's language; `operator`; `request`, `client`, `event`, `answer` the wire protocol.

mod answer;
mod client;
mod event;
mod operator;
mod pass;
mod pays;
mod request;
mod sql;
mod trust;

pub(crate) use answer::Answer;
pub(crate) use client::{Clients, SelectClient};
#[cfg(any(test, fuzzing))]
pub(crate) use event::{Decoder, Event, inside};
pub use operator::SelectRequest;
pub use pass::push_selects;
pub(crate) use trust::{Dialect, SELECT_AS};

/// When stores are asked to select.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SmartStorage {
    /// Never.
    #[default]
    Off,
    /// Where what they would send is believed to be less than what would be read.
    Auto,
    /// Wherever they can be trusted with it.
    On,
}

impl SmartStorage {
    /// The value of a setting.
    pub fn parse(text: &str) -> Option<SmartStorage> {
        Some(match text.to_ascii_lowercase().as_str() {
            "off" => SmartStorage::Off,
            "auto" => SmartStorage::Auto,
            "on" => SmartStorage::On,
            _ => return None,
        })
    }

    /// As [`SmartStorage::parse`] takes it.
    pub fn name(self) -> &'static str {
        match self {
            SmartStorage::Off => "off",
            SmartStorage::Auto => "auto",
            SmartStorage::On => "on",
        }
    }
}
