//! Reading and writing of standard streams, FIFOs, devices and links, without loss of user files.

use std::fs::{self, File, Permissions};
use std::io::{Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{finish, folder, names, program, run, run_with_input};

/// A query with more rows than a COPY writes within a test.
const ENDLESS: &str = "select n, m from range(100000) s(n), range(100000) t(m)";

fn fifo(folder: &tempfile::TempDir, name: &str) -> String {
    let path = folder.path().join(name).to_str().unwrap().to_string();
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    path
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let started = Instant::now();
    while !done() {
        assert!(started.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn rows_go_to_the_standard_output_in_order() {
    let sql = "select 1 as a; copy (select 2 as b) to stdout; select 3 as c; \
               copy (select 4 as d) to '/dev/stdout' (format json); copy (select 5 as e) to '/dev/fd/1' (format csv, header false)";
    let expected = "a\n1\nb\n2\nc\n3\n{\"d\":4}\n5\n";
    assert_eq!(run(&["--format", "csv", "-c", sql]).ok(), expected);
    // The same for a file with existing content.
    let folder = folder();
    let path = folder.path().join("out.csv");
    let mut file = File::create(&path).unwrap();
    file.write_all(b"before\n").unwrap();
    let mut child =
        program(&["--format", "csv", "-c", sql]).stdout(file.try_clone().unwrap()).spawn().unwrap();
    assert!(child.wait().unwrap().success());
    file.write_all(b"behind\n").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), format!("before\n{expected}behind\n"));
    assert_eq!(names(folder.path()), ["out.csv"]);
    // The output of COPY has neither a table footer nor a summary.
    assert_eq!(run(&["-c", "copy (select 2 as b) to stdout"]).ok(), "b\n2\n");
}

#[test]
fn every_format_goes_through_pipes() {
    for format in ["csv", "tsv", "json", "arrow", "parquet"] {
        let sql = format!("copy (select 7 as a, 'x' as b) to stdout (format {format})");
        let written = run(&["-c", &sql]);
        assert_eq!(written.code, Some(0), "{}", written.err);
        let read = program(&["--format", "csv", "-c", "select * from '/dev/stdin'"])
            .stdin(Stdio::piped())
            .spawn();
        let mut read = read.unwrap();
        read.stdin.take().unwrap().write_all(&written.bytes).unwrap();
        assert_eq!(finish(read, "").ok(), "a,b\n7,x\n", "{format}");
    }
    let message = run(&["-c", "copy (select 1) to stdout (format text)"]).error();
    assert!(message.contains("csv"), "{message}");
    let message = run(&["-c", "copy (select 1) to '/dev/null'"]).error();
    assert!(message.contains("FORMAT csv"), "{message}");
}

#[test]
fn a_reader_that_has_enough_ends_the_copy_quietly() {
    let mut child = program(&["-c", &format!("copy ({ENDLESS}) to stdout")]).spawn().unwrap();
    let mut some = [0; 4096];
    child.stdout.as_mut().unwrap().read_exact(&mut some).unwrap();
    drop(child.stdout.take());
    let mut message = String::new();
    child.stderr.take().unwrap().read_to_string(&mut message).unwrap();
    assert_eq!((child.wait().unwrap().code(), message.as_str()), (Some(0), ""));
    // A closed FIFO that the user has named is an error.
    let folder = folder();
    let path = fifo(&folder, "pipe");
    let child =
        program(&["-c", &format!("copy ({ENDLESS}) to '{path}' (format csv)")]).spawn().unwrap();
    File::open(&path).unwrap().read_exact(&mut some).unwrap();
    let message = finish(child, "").error();
    assert!(message.contains("its reader has gone"), "{message}");
    assert!(fs::metadata(&path).unwrap().file_type().is_fifo());
    assert_eq!(names(folder.path()), ["pipe"]);
}

#[test]
fn devices_are_written_and_stay_what_they_are() {
    let ran = run(&["-c", "copy (select * from range(100000)) to '/dev/null' (format parquet)"]);
    assert_eq!(ran.ok(), "COPY 100000\n");
    assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
    let message =
        run(&["-c", "copy (select * from range(100000)) to '/dev/full' (format csv)"]).error();
    assert!(message.contains("disk is full"), "{message}");
    assert!(fs::metadata("/dev/full").unwrap().file_type().is_char_device());
}

#[test]
fn links_stay_and_files_keep_their_mode() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    let copy = |name: &str| {
        let path = at(name).to_str().unwrap().to_string();
        run(&["-c", &format!("copy (select 1 as a) to '{path}' (format csv)")])
    };
    fs::create_dir(at("deep")).unwrap();
    fs::write(at("deep/data.csv"), "old").unwrap();
    fs::set_permissions(at("deep/data.csv"), Permissions::from_mode(0o604)).unwrap();
    symlink("deep/data.csv", at("link.csv")).unwrap();
    symlink("deep/new.csv", at("dangling.csv")).unwrap();
    symlink("circle.csv", at("circle.csv")).unwrap();
    symlink("/dev/null", at("null.csv")).unwrap();
    for name in ["link.csv", "dangling.csv", "null.csv"] {
        assert_eq!(copy(name).ok(), "COPY 1\n");
        assert!(at(name).is_symlink(), "{name}");
    }
    assert_eq!(fs::read_to_string(at("deep/data.csv")).unwrap(), "a\n1\n");
    assert_eq!(fs::read_to_string(at("deep/new.csv")).unwrap(), "a\n1\n");
    assert_eq!(mode(&at("deep/data.csv")), 0o604);
    for (name, cause) in
        [("circle.csv", "cycle"), ("deep", "is a directory"), ("none/x.csv", "no such file")]
    {
        let message = copy(name).error();
        assert!(message.contains(cause), "{name}: {message}");
    }
    // The umask determines the mode of a new file.
    let path = at("umask.csv");
    let sql = format!("copy (select 1 as a) to '{}'", path.display());
    let shell = format!("umask 027; exec \"{}\" -c \"{sql}\"", env!("CARGO_BIN_EXE_tessera"));
    assert!(
        Command::new("sh").args(["-c", &shell]).stdout(Stdio::null()).status().unwrap().success()
    );
    assert_eq!(mode(&path), 0o640);
    assert_eq!(names(&at("deep")), ["data.csv", "new.csv"]);
}

#[test]
fn a_copy_may_read_the_file_that_it_replaces() {
    let folder = folder();
    let path = folder.path().join("x.csv");
    fs::write(&path, "a\n1\n2\n").unwrap();
    let link = folder.path().join("link.csv");
    symlink("x.csv", &link).unwrap();
    for (to, sum) in [(&path, "a\n2\n4\n"), (&link, "a\n4\n8\n")] {
        let sql =
            format!("copy (select a * 2 as a from '{}') to '{}'", path.display(), to.display());
        run(&["-c", &sql]).ok();
        assert_eq!(fs::read_to_string(&path).unwrap(), sum);
    }
}

#[test]
fn what_a_killed_copy_left_goes_with_the_next() {
    let folder = folder();
    let path = folder.path().join("x.csv");
    let mine = ".x.csv.tmp";
    fs::write(&path, "old").unwrap();
    fs::write(folder.path().join(mine), "mine").unwrap();
    let sql = format!("copy ({ENDLESS}) to '{}'", path.display());
    let mut killed = program(&["-c", &sql]).spawn().unwrap();
    let left = || {
        let mut all = names(folder.path());
        all.retain(|name| name.starts_with(".x.csv.tessera-"));
        all
    };
    until("the copy begins", || left().len() == 1);
    let living = program(&["-c", &sql]).spawn().unwrap();
    until("another copy begins", || left().len() == 2);
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert_eq!((left().len(), fs::read_to_string(&path).unwrap()), (2, "old".to_string()));
    let all = left();
    assert_eq!(
        run(&["-c", &format!("copy (select 1 as a) to '{}'", path.display())]).ok(),
        "COPY 1\n"
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), "a\n1\n");
    let kept = left();
    assert!(kept.len() == 1 && all.contains(&kept[0]), "that of the living one stays: {kept:?}");
    Command::new("kill").args(["-INT", &living.id().to_string()]).status().unwrap();
    assert_eq!(finish(living, "").code, Some(130));
    assert_eq!(names(folder.path()), [mine, "x.csv"]);
}

#[test]
fn streams_are_read() {
    let csv = |sql: &str, input: &str| run_with_input(&["--format", "csv", "-c", sql], input);
    let lines = (1..=100_000).map(|n| format!("{n},{}\n", n % 7)).collect::<String>();
    let text = format!("a,b\n{lines}");
    let counted = "select count(*) as n, sum(a) as s from";
    for from in ["'/dev/stdin'", "read_csv('/dev/stdin')", "'/proc/self/fd/0'"] {
        assert_eq!(
            csv(&format!("{counted} {from}"), &text).ok(),
            "n,s\n100000,5000050000\n",
            "{from}"
        );
    }
    // A statement reads the stream once, even if it names it repeatedly.
    let twice = "select count(*) as n from '/dev/stdin' x join '/dev/fd/0' y using (a)";
    assert_eq!(csv(twice, &text).ok(), "n\n100000\n");
    assert_eq!(csv("select * from '/dev/stdin'", "{\"a\": 1}\n{\"a\": 2}\n").ok(), "a\n1\n2\n");
    assert_eq!(
        csv("create temp table t as from '/dev/stdin'; from t; from t", "a\n1\n").ok(),
        "a\n1\na\n1\n"
    );
    let message = csv("from '/dev/stdin'; from '/dev/stdin'", "a\n1\n");
    assert_eq!((message.code, message.out.as_str()), (Some(1), "a\n1\n"));
    assert!(message.err.contains("CREATE TEMP TABLE"), "{}", message.err);
    for arguments in [&[][..], &["-f", "-"], &["-f", "/dev/stdin"]] {
        let message = run_with_input(arguments, "select * from '/dev/stdin'").error();
        assert!(message.contains("SQL statements are read from it"), "{message}");
    }
    let message = csv("from '/dev/stdin'", "a\0b").error();
    assert!(message.contains("read_csv"), "{message}");
}

#[test]
fn a_file_as_the_standard_input_is_read_from_where_it_stands() {
    let folder = folder();
    let path = folder.path().join("x.csv");
    fs::write(&path, "comment\na\n1\n").unwrap();
    let sql = "from '/dev/stdin'";
    let mut file = File::open(&path).unwrap();
    let ran = |file: &File| {
        let child = program(&["--format", "csv", "-c", sql])
            .stdin(file.try_clone().unwrap())
            .spawn()
            .unwrap();
        finish(child, "")
    };
    assert_eq!(ran(&file).ok(), "comment\na\n1\n");
    std::io::Seek::seek(&mut file, std::io::SeekFrom::Start(8)).unwrap();
    assert_eq!(ran(&file).ok(), "a\n1\n");
}

#[test]
fn fifos_and_process_substitution_are_read() {
    let folder = folder();
    let (left, right) = (fifo(&folder, "left.csv"), fifo(&folder, "right"));
    let sql = format!("select * from '{left}' join read_json('{right}') using (a)");
    let child = program(&["--format", "csv", "-c", &sql]).spawn().unwrap();
    let write = |path: String, text: &'static str| {
        std::thread::spawn(move || fs::write(path, text).unwrap())
    };
    let writers = [write(left, "a,b\n1,2\n"), write(right, "{\"a\":1,\"c\":3}\n")];
    assert_eq!(finish(child, "").ok(), "a,b,c\n1,2,3\n");
    writers.into_iter().for_each(|writer| writer.join().unwrap());
    let line = format!(
        "f() {{ '{}' --format csv -c \"select * from '$1' join read_csv('$2') using (a)\"; }}; \
         f <(printf 'a,b\\n1,2\\n') <(printf 'a,c\\n1,3\\n')",
        env!("CARGO_BIN_EXE_tessera")
    );
    let mut bash = Command::new("bash");
    bash.args(["-c", &line]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    assert_eq!(finish(bash.spawn().unwrap(), "").ok(), "a,b,c\n1,2,3\n");
}

#[test]
fn a_silent_writer_does_not_keep_the_program() {
    let folder = folder();
    let path = fifo(&folder, "silent.csv");
    let _writer = File::options().read(true).write(true).open(&path).unwrap();
    let child = program(&["-c", &format!("select * from '{path}'")]).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(500));
    let asked = Instant::now();
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let ran = finish(child, "");
    assert_eq!(ran.code, Some(130), "{}", ran.err);
    assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
}
