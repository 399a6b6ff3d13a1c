//! Launches statements on ranks that `mpiexec` starts: `tessera-mpi` gets the same command line.

use std::sync::Arc;

use tessera_engine::{
    Extension, Launch, LaunchOption, LaunchOutcome, Launcher, SettingEntry, check_number,
    check_timeout,
};
use tessera_types::{Code, Result, parse_timeout};

use crate::launcher::{self, Canceller};
use crate::{EXCHANGE, ExchangeMode, Mpi, NAME};

/// The maximum of `--ranks`.
const RANKS_MAX: u16 = 4096;

/// The launcher of the platform: starts ranks and monitors them.
#[derive(Debug, Clone, Copy, Default)]
pub struct MpiLauncher;

const OPTIONS: [LaunchOption; 2] = [
    LaunchOption {
        name: "ranks",
        value_name: "N",
        default: Some("2"),
        help: "How many ranks mpiexec starts",
        check: |value| check_number(value, 1..=RANKS_MAX),
    },
    LaunchOption {
        name: "mpi-start-timeout",
        value_name: "SECONDS",
        default: Some("60"),
        help: "Seconds to wait for all ranks to start, or none",
        check: check_timeout,
    },
];

/// The setting for the [`ExchangeMode`].
pub(crate) const EXCHANGE_SETTING: SettingEntry = SettingEntry {
    name: EXCHANGE,
    default: "auto",
    value_name: "MODE",
    help: "how exchanges move tuples between ranks: auto (one-sided or rounds), one-sided, packed (one-sided, bit-packed), two-sided, split \
           (two-sided, from half of the ranks to the rest) or rounds (two-sided, for inputs larger than memory)",
    parse: |value| Ok(value.parse::<ExchangeMode>()?.to_string()),
};

impl Launcher for MpiLauncher {
    fn name(&self) -> &'static str {
        NAME
    }

    fn help(&self) -> &'static str {
        "Ranks of an MPI world, which mpiexec starts"
    }

    fn options(&self) -> &'static [LaunchOption] {
        &OPTIONS
    }

    fn settings(&self) -> &'static [SettingEntry] {
        &[EXCHANGE_SETTING]
    }

    fn has_shell(&self) -> bool {
        false
    }

    fn extension(&self) -> Arc<dyn Extension> {
        Arc::new(Mpi::default())
    }

    fn launch(&self, launch: &Launch<'_>) -> Result<LaunchOutcome> {
        let ranks: u16 = launch.values.parsed("ranks")?;
        let start = launch.values.get("mpi-start-timeout").and_then(parse_timeout).flatten();
        let canceller = Canceller::default();
        let cancelled = canceller.clone();
        let interrupted = (launch.on_interrupt)(Box::new(move || {
            cancelled.cancel();
            true
        }));
        let launched =
            launcher::launch(usize::from(ranks), &launch.arguments, launch.reads_input, &canceller);
        match launched.and_then(|launched| launched.wait(start)) {
            Ok(code) => {
                Ok(LaunchOutcome::Elsewhere { code, interrupted: code != 0 && interrupted() })
            }
            Err(error) if error.code() == Code::Cancelled => {
                eprintln!("error: {error}");
                Ok(LaunchOutcome::Elsewhere { code: 1, interrupted: true })
            }
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_few_or_thousands() {
        let check = |name: &str, value: &str| {
            let option = OPTIONS.iter().find(|option| option.name == name).unwrap();
            (option.check)(value).is_ok()
        };
        assert!(check("ranks", "1") && check("ranks", "4096"));
        assert!(!check("ranks", "0") && !check("ranks", "4097") && !check("ranks", "some"));
        assert!(check("mpi-start-timeout", "none") && !check("mpi-start-timeout", "0"));
        for option in OPTIONS {
            assert!(
                option.default.is_none_or(|value| (option.check)(value).is_ok()),
                "{}",
                option.name
            );
        }
    }
}
