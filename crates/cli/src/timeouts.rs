//! The timeout flags.

use clap::Args;
use tessera_engine::check_timeout;
use tessera_session::Config;
use tessera_types::parse_timeout;

/// The timeout flags, in seconds.
#[derive(Debug, Default, Clone, PartialEq, Eq, Args)]
#[command(next_help_heading = "Limits of waits, in seconds, or none")]
pub(crate) struct TimeoutArgs {
    /// Wait for a connection to a store or web server (or TESSERA_CONNECT_TIMEOUT) [default: 5]
    #[arg(long, value_name = "SECONDS", value_parser = timeout)]
    connect_timeout: Option<String>,
    /// Wait for the first byte of its response (or TESSERA_FIRST_BYTE_TIMEOUT) [default: 30]
    #[arg(long, value_name = "SECONDS", value_parser = timeout)]
    first_byte_timeout: Option<String>,
    /// Wait for the next part of its response (or TESSERA_STALL_TIMEOUT) [default: 30]
    #[arg(long, value_name = "SECONDS", value_parser = timeout)]
    stall_timeout: Option<String>,
    /// Wait for memory that other statements of the process use [default: none]
    #[arg(long, value_name = "SECONDS", value_parser = timeout)]
    admission_timeout: Option<String>,
}

impl TimeoutArgs {
    /// Adds the timeouts to the configuration of a session.
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

/// Checks that a text is a timeout.
fn timeout(text: &str) -> Result<String, String> {
    check_timeout(text).map(|()| text.to_string())
}
