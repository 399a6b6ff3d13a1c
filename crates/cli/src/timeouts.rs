//! The time-outs of the command line.

use clap::Args;
use tessera_engine::check_timeout;
use tessera_session::Config;
use tessera_types::parse_timeout;

/// How long is waited, in seconds.
#[derive(Debug, Default, Clone, PartialEq, Eq, Args)]
#[command(next_help_heading = "Time-outs, in seconds, or none")]
pub(crate) struct TimeoutLine {
    /// Until a store or web server takes a connection (or TESSERA_CONNECT_TIMEOUT) [default: 5]
    #[arg(long, value_name = "SECONDS", value_parser = timeout)]
    connect_timeout: Option<String>,
    /// Until its answer begins (or TESSERA_FIRST_BYTE_TIMEOUT) [default: 30]
    #[arg(long, value_name = "SECONDS", value_parser = timeout)]
    first_byte_timeout: Option<String>,
    /// Between two pieces of its answer (or TESSERA_STALL_TIMEOUT) [default: 30]
    #[arg(long, value_name = "SECONDS", value_parser = timeout)]
    stall_timeout: Option<String>,
    /// Until other statements of the process leave enough memory for one to begin [default: none]
    #[arg(long, value_name = "SECONDS", value_parser = timeout)]
    admission_timeout: Option<String>,
}

impl TimeoutLine {
    /// What a session and its platform are told.
    pub(crate) fn set(&self, config: &mut Config) {
        let variables = [
            ("TESSERA_CONNECT_TIMEOUT", &self.connect_timeout),
            ("TESSERA_FIRST_BYTE_TIMEOUT", &self.first_byte_timeout),
            ("TESSERA_STALL_TIMEOUT", &self.stall_timeout),
        ];
        for (name, value) in variables {
            config.stores.extend(value.iter().map(|value| (name.to_string(), value.clone())));
        }
        if let Some(timeout) = self.admission_timeout.as_deref().and_then(parse_timeout) {
            config.admission_timeout = timeout;
        }
    }
}

/// Checks that a text is a time.
fn timeout(text: &str) -> Result<String, String> {
    check_timeout(text).map(|()| text.to_string())
}
