use tessera_codegen::{Comparison, InputCode, Op, ValueCode};

use super::*;

/// Whether numbers are less than one, as a new process would ask for it.
fn less_than(bits: u32, number: i128, files: &Files) -> Asked {
    let machine = Machine::Integer { bits, signed: true };
    let value = |op| ValueCode { op, machine, nullable: false };
    let operands = Box::new([value(Op::Input(0)), value(Op::Integer(number))]);
    let predicate = ValueCode {
        op: Op::Compare(Comparison::Lt, operands),
        machine: Machine::Boolean,
        nullable: false,
    };
    let inputs = vec![InputCode::column(machine, false)];
    let (piece, given) = Piece::of_select(SelectCode { inputs, predicate });
    let wanted = Arc::new(Wanted::new(piece));
    Asked {
        wanted,
        given: Arc::new(given),
        tier: Tier::Auto,
        kept: Some(Arc::new(files.clone())),
        spent: Arc::default(),
    }
}

fn selected(select: &dyn Select, numbers: &[i32]) -> Vec<u32> {
    let (values, validity) = (numbers.as_ptr().cast(), [u8::MAX; 8]);
    let input = RawInput::column(values, validity.as_ptr(), (0, 0));
    let mut out = vec![0; numbers.len()];
    // SAFETY: an input with so many values, and room for as many positions.
    let found = unsafe { select.run(&[input], std::ptr::null(), numbers.len(), out.as_mut_ptr()) };
    out.truncate(found.unwrap());
    out
}

#[test]
#[cfg(unix)]
fn code_is_kept_and_a_bad_file_costs_a_compilation() {
    let folder = tempfile::tempdir().unwrap();
    let files = Files::new(&folder.path().join("code"));
    let all = || std::fs::read_dir(folder.path().join("code")).unwrap();
    let file = || all().next().unwrap().unwrap().path();
    let run = |number| {
        let asked = less_than(32, number, &files);
        SHARED.compile(&asked);
        selected(&asked, &[5, 7, 6, -1])
    };
    assert_eq!(run(6), [0, 3]);
    let whole = std::fs::read(file()).unwrap();
    // Nothing is written where it is found, also for another number.
    let written = std::fs::metadata(file()).unwrap();
    assert_eq!(run(6), [0, 3]);
    assert_eq!(run(7), [0, 2, 3]);
    use std::os::unix::fs::MetadataExt;
    assert_eq!(std::fs::metadata(file()).unwrap().ino(), written.ino());
    for damaged in [&whole[..whole.len() / 2], &[][..], &[9; 100]] {
        std::fs::write(file(), damaged).unwrap();
        assert!(!SHARED.look_for(&less_than(32, 6, &files)));
        assert_eq!(run(6), [0, 3]);
        assert_eq!(std::fs::read(file()).unwrap(), whole);
    }
    // A whole file whose object is none.
    let made_of = less_than(32, 6, &files).wanted.made_of(Processor::at_hand().unwrap());
    assert!(files.save(&made_of, b"no object"));
    assert!(!SHARED.look_for(&less_than(32, 6, &files)));
    assert_eq!(run(6), [0, 3]);
    assert_eq!(std::fs::read(file()).unwrap(), whole);
    assert_eq!(all().count(), 1);
    SHARED.compile(&less_than(64, 6, &files));
    assert_eq!(all().count(), 2);
}

#[test]
#[cfg(unix)]
fn code_in_files_is_looked_for_before_it_is_compiled() {
    let folder = tempfile::tempdir().unwrap();
    let files = Files::new(&folder.path().join("code"));
    let rows = LOAD_NANOSECONDS / SAVED_NANOSECONDS + 1;
    let is_there = |asked: &Asked, rows: u64| asked.is_there(rows as usize).unwrap();
    let nobody_has = less_than(16, 6, &files);
    assert!(!is_there(&nobody_has, rows) && !is_there(&nobody_has, 0));
    SHARED.compile(&less_than(32, 6, &files));
    let asked = less_than(32, 9, &files);
    assert!(!is_there(&asked, 1));
    assert!(is_there(&asked, rows));
    assert_eq!(selected(&asked, &[5, 9, 8]), [0, 2]);
}
