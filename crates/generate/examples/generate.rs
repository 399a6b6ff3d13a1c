//! Generates a benchmark suite: `cargo run --release -p tessera-generate --example generate -- tpch
//! 1 DIRECTORY [THREADS]`

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use tessera_generate::{Options, Suite, generate};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (suite, scale, out, threads) = match arguments.as_slice() {
        [suite, scale, out] => (suite, scale, out, None),
        [suite, scale, out, threads] => (suite, scale, out, threads.parse().ok()),
        _ => {
            eprintln!("usage: generate tpch|ssb SCALE DIRECTORY [THREADS]");
            return ExitCode::from(2);
        }
    };
    let start = Instant::now();
    let mut options = Options::default();
    options.threads = threads.unwrap_or(options.threads);
    let result = suite.parse::<Suite>().and_then(|suite| {
        generate(suite, scale.parse().unwrap_or(f64::NAN), Path::new(out), &options)
    });
    match result {
        Ok(report) => {
            for table in report.tables {
                println!(
                    "{:>12} rows {:>12} bytes  {}",
                    table.rows,
                    table.bytes,
                    table.path.display()
                );
            }
            println!("{:.1} s", start.elapsed().as_secs_f64());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
