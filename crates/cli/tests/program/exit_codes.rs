//! Exit codes and interruption of the program.

use std::io::Write;
use std::process::Stdio;
use std::time::Duration;

use crate::support::{file, finish, folder, program, run, run_with_input, tpch};

/// A query that runs until it is cancelled.
const ENDLESS: &str =
    "select count(*) from lineitem a, lineitem b, lineitem c where a.l_tax + b.l_tax + c.l_tax < 0";

#[test]
fn usage_is_2() {
    for arguments in [
        &["--threads", "0"][..],
        &["--format", "xml", "-c", "select 1"],
        &["--memory", "lots"],
        &["--chunk-rows", "0"],
        &["--no-such-option"],
        &["generate", "tpcds", "--sf", "1", "--out", "x"],
        &["generate", "tpch", "--sf", "0", "--out", "x"],
        &["run"],
    ] {
        let ran = run(arguments);
        assert_eq!(ran.code, Some(2), "{arguments:?}: {}", ran.err);
        assert!(ran.err.starts_with("error: "), "{}", ran.err);
    }
}

#[test]
fn version_and_help_are_0() {
    let version = run(&["--version"]).ok();
    let number = concat!("tessera ", env!("CARGO_PKG_VERSION"), " (commit ");
    assert!(version.starts_with(number) && version.contains("compiled tier"), "{version}");
    assert!(run(&["--help"]).ok().contains("generate"));
}

#[test]
fn commands_stop_at_the_first_error() {
    let ran = run(&["--format", "csv", "-c", "select 1 as x; selec 2", "-c", "select 3 as y"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), "x\n1\n"));
    let lines: Vec<&str> = ran.err.lines().collect();
    let expected =
        "error: syntax error: expected an SQL statement, found selec (line 1, column 16)";
    assert_eq!(lines, [expected, "line 1:  selec 2", "         ^"]);
}

#[test]
fn files_stop_at_the_first_error_and_tell_its_line() {
    let folder = folder();
    let script = file(
        &folder,
        "script.sql",
        "-- a comment;\nselect 1 as x;\n\nselect 'a;b' as\n  y, no_such;\nselect 3;",
    );
    let ran = run(&["--format", "csv", "-f", &script]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), "x\n1\n"));
    assert!(ran.err.contains("(line 5, column "), "{}", ran.err);
    let missing = run(&["-f", "/no/such/file.sql"]).error();
    assert!(missing.contains("/no/such/file.sql"), "{missing}");
    let latin = file(&folder, "latin.sql", b"select 1;\nselect '\xe9';");
    assert!(run(&["-f", &latin]).error().contains("not valid UTF-8 in line 2"));
}

#[test]
fn the_standard_input_goes_on_after_an_error() {
    let input = "select 1 as x;\nselec;\nselect no_such_column;\nselect 2 as y";
    for arguments in [&["--format", "csv"][..], &["--format", "csv", "-f", "-"]] {
        let ran = run_with_input(arguments, input);
        assert_eq!((ran.code, ran.out.as_str()), (Some(1), "x\n1\ny\n2\n"), "{}", ran.err);
        assert_eq!(
            ran.err.lines().filter(|line| line.starts_with("error: ")).count(),
            2,
            "{}",
            ran.err
        );
    }
}

#[test]
fn statements_run_as_soon_as_they_are_complete() {
    let mut child =
        program(&["--format", "csv", "--timing"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"select 1 as x;\n").unwrap();
    stdin.flush().unwrap();
    // The result arrives while the input is still open.
    let mut answer = [0; 4];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut answer).unwrap();
    assert_eq!(&answer, b"x\n1\n");
    drop(stdin);
    let ran = finish(child, "");
    assert_eq!(ran.code, Some(0));
    let time = ran.err.trim_end();
    assert!(time.starts_with("Time: ") && time.ends_with(" ms"), "{time}");
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let mut child =
        program(&[tpch().to_str().unwrap(), "--format", "csv", "-c", "select * from lineitem"])
            .spawn()
            .unwrap();
    drop(child.stdout.take());
    child.stdout =
        std::process::Command::new("true").stdout(Stdio::piped()).spawn().unwrap().stdout;
    let ran = finish(child, "");
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
}

/// Waits until a process handles SIGINT itself.
fn wait_for_handler(process: u32) {
    const SIGINT: u64 = 1 << (2 - 1);
    let handled = || {
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"))?;
        Some(u64::from_str_radix(caught.trim(), 16).ok()? & SIGINT != 0)
    };
    while handled() == Some(false) {
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn an_interrupt_cancels_and_is_130() {
    let child = program(&[tpch().to_str().unwrap(), "-c", ENDLESS]).spawn().unwrap();
    wait_for_handler(child.id());
    let interrupted =
        std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(interrupted.unwrap().success());
    let ran = finish(child, "");
    assert_eq!(ran.code, Some(130), "{} {}", ran.out, ran.err);
}

/// An interruption at any time, including between two statements, ends the program.
#[test]
fn an_interrupt_between_statements_ends_the_script() {
    let folder = folder();
    let script = file(&folder, "many.sql", "select 1;".repeat(4_000));
    for wait_ms in 0..40 {
        let child = program(&["--threads", "1", "-f", &script]).spawn().unwrap();
        wait_for_handler(child.id());
        std::thread::sleep(Duration::from_micros(100 * 37 * wait_ms % 101_000));
        let interrupted =
            std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
        assert!(interrupted.unwrap().success());
        let ran = finish(child, "");
        assert_eq!(ran.code, Some(130), "{}", ran.err);
    }
}

#[test]
fn a_deadline_ends_a_statement() {
    let database = tpch().to_str().unwrap();
    let ran = run(&[database, "--deadline", "0.2", "-c", ENDLESS]);
    assert!(ran.error().contains("deadline"));
}

#[test]
fn going_over_the_memory_budget_is_one_error() {
    let sql = "select string_agg(a.l_comment || b.l_comment, ',') from lineitem a, lineitem b";
    let ran = run(&[tpch().to_str().unwrap(), "--memory", "4MiB", "-c", sql]);
    assert!(ran.error().contains("--memory"));
}
#[test]
#[cfg(feature = "llvm")]
fn a_device_that_is_not_there_is_told_of() {
    let arguments = ["--tier", "compiled", "--device", "virtual-gpu", "-c", "select 1"];
    let run = program(&arguments).env("TESSERA_VIRTUAL_GPU", "/no/such/program").output().unwrap();
    let text = String::from_utf8_lossy(&run.stderr);
    assert!(!run.status.success() && text.contains("/no/such/program"), "{text}");
}
