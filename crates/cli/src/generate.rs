//! `tessera generate`: benchmark data as Parquet.

use std::io::{IsTerminal, stderr};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use tessera_generate::{Error, Options, Suite};

use crate::arguments::Generate;
use crate::interrupt::Interrupt;
use crate::progress::ProgressLine;
use crate::runner::print_stderr;
use crate::{EXIT_ERROR, EXIT_INTERRUPTED, EXIT_USAGE};

/// Writes the data. Returns the exit code.
pub(crate) fn main(arguments: &Generate) -> u8 {
    let suite: Suite = match arguments.suite.parse() {
        Ok(suite) => suite,
        Err(error) => {
            print_stderr(&format!("error: {error}"));
            return EXIT_USAGE;
        }
    };
    let cancelled = Arc::new(AtomicBool::new(false));
    let flag = cancelled.clone();
    let _interrupt = Interrupt::listen(move || {
        flag.store(true, Ordering::Relaxed);
        true
    });
    let line = ProgressLine::default();
    let terminal = stderr().is_terminal();
    let progress = |table: &str, done: u64, expected: u64| {
        if terminal {
            line.show(&format!("{table}: {done} of {expected} rows"));
        }
    };
    let is_cancelled = || cancelled.load(Ordering::Relaxed);
    let mut options = Options {
        overwrite: arguments.overwrite,
        not_null: arguments.not_null,
        progress: &progress,
        cancelled: &is_cancelled,
        ..Options::default()
    };
    let threads = arguments.threads.and_then(|threads| NonZeroUsize::new(threads.into()));
    options.threads = threads.unwrap_or(options.threads);
    options.seed = arguments.seed.unwrap_or(options.seed);
    let started = Instant::now();
    let result = tessera_generate::generate(suite, arguments.scale, &arguments.out, &options);
    line.clear();
    match result {
        Ok(report) => {
            let bytes: u64 = report.tables.iter().map(|table| table.bytes).sum();
            for table in &report.tables {
                print_stderr(&format!(
                    "{:<12} {:>12} rows  {:>8.1} MB",
                    table.name,
                    table.rows,
                    table.bytes as f64 / 1e6
                ));
            }
            print_stderr(&format!(
                "{suite} at scale factor {} in '{}': {:.1} MB, {:.1} s",
                arguments.scale,
                arguments.out.display(),
                bytes as f64 / 1e6,
                started.elapsed().as_secs_f64()
            ));
            0
        }
        Err(error) => {
            print_stderr(&format!("error: {error}"));
            match error {
                Error::Cancelled => EXIT_INTERRUPTED,
                Error::Scale { .. } => EXIT_USAGE,
                _ => EXIT_ERROR,
            }
        }
    }
}
