//! Cancels statements at random moments and prints what came of each as a line of JSON;
//! `bench/cancel` makes a page of it.
//!
//! `cancel DIRECTORY SCALE MOMENTS THREADS SEED [CASE…]`

#[path = "../tests/cancelling/mod.rs"]
mod cancelling;
#[path = "../../storage/objects/tests/server/mod.rs"]
mod server;

use std::path::Path;
use std::time::Duration;

use cancelling::{Case, Data, Random, cancel_at, length};
use serde_json::json;

/// Statements that go on for longer are cancelled before this.
const LONGEST: Duration = Duration::from_secs(3);

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, scale, moments, threads, seed, names @ ..] = &arguments[..] else {
        eprintln!("usage: cancel DIRECTORY SCALE MOMENTS THREADS SEED [CASE…]");
        std::process::exit(2);
    };
    let number = |text: &String| text.parse::<usize>().expect("a whole number");
    let data = Data::make(Path::new(folder), scale.parse().expect("a number"));
    let mut session = data.session(number(threads));
    let mut random = Random(number(seed) as u64);
    let cases: Vec<Case> = data
        .cases()
        .into_iter()
        .filter(|case| names.is_empty() || names.iter().any(|name| name == case.name))
        .collect();
    let lengths: Vec<Duration> =
        cases.iter().map(|case| length(&mut session, case, LONGEST)).collect();
    for turn in 0..number(moments) {
        let (case, length) = (&cases[turn % cases.len()], lengths[turn % cases.len()]);
        let moment = cancel_at(&mut session, case, length.mul_f64(random.fraction()));
        println!(
            "{}",
            json!({
                "case": case.name,
                "length_ms": length.as_secs_f64() * 1e3,
                "at_ms": moment.at.as_secs_f64() * 1e3,
                "took_ms": moment.took.map(|took| took.as_secs_f64() * 1e3),
                "held_bytes": moment.held_bytes,
                "resident_bytes": resident_bytes(),
                "last": moment.last,
            })
        );
    }
}

/// What the process has in memory; nothing where the system does not tell.
fn resident_bytes() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<usize>().ok()? * 1024)
}
