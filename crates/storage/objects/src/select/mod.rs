//! Smart storage: computation pushed down to a store, so that it sends less of an object (Modularis
//! §2.4.5).
//!
//! A store with SelectObjectContent filters an object's tuples, drops columns and aggregates.
//! [`push_selects`] finds scans of objects for which this is reliable, and replaces each by three
//! sub-operators: `select_request` returns the response as Arrow tables, `arrow_to_collection`
//! converts them, and the engine's `batch_scan` reads them. Work that the store cannot do reliably
//! stays in the plan.
//!
//! Modules: `pass` chooses the scans; `trust` knows what each store does reliably; `sql` writes
//! predicates in the store's language; `operator`; `request`, `client`, `event`, `answer` implement
//! the wire protocol.

mod answer;
mod client;
mod estimate;
mod event;
mod operator;
mod pass;
mod request;
mod sql;
mod trust;

pub(crate) use answer::Answer;
pub(crate) use client::{Clients, SelectClient};
#[cfg(any(test, fuzzing))]
pub(crate) use event::{Decoder, Event, element_text};
pub use operator::SelectRequest;
pub use pass::push_selects;
pub(crate) use trust::{Dialect, SELECT_AS};

/// When to push work down to stores.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SmartStorage {
    /// Never.
    #[default]
    Off,
    /// If the response is estimated to be smaller than the bytes a scan would read.
    Auto,
    /// Wherever the store is reliable.
    On,
}

impl SmartStorage {
    /// Parses the value of the setting.
    pub fn parse(text: &str) -> Option<SmartStorage> {
        Some(match text.to_ascii_lowercase().as_str() {
            "off" => SmartStorage::Off,
            "auto" => SmartStorage::Auto,
            "on" => SmartStorage::On,
            _ => return None,
        })
    }

    /// Returns the name that [`SmartStorage::parse`] accepts.
    pub fn name(self) -> &'static str {
        match self {
            SmartStorage::Off => "off",
            SmartStorage::Auto => "auto",
            SmartStorage::On => "on",
        }
    }
}
