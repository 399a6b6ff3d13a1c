use tessera_codegen::{Comparison, InputCode, MachineType, Op, RawInput, ValueCode};

use super::*;
use crate::target::Processor;

/// Requests the predicate "less than a number", like a new process would.
fn request_less_than(bits: u32, number: i128, files: &CodeCache) -> Request {
    let machine = MachineType::Integer { bits, signed: true };
    let value = |op| ValueCode { op, machine, nullable: false };
    let operands = Box::new([value(Op::Input(0)), value(Op::Integer(number))]);
    let predicate = ValueCode {
        op: Op::Compare(Comparison::Lt, operands),
        machine: MachineType::Boolean,
        nullable: false,
    };
    let inputs = vec![InputCode::column(machine, false)];
    let (piece, constants) = Piece::of_select(SelectCode { inputs, predicate });
    let entry = Arc::new(CacheEntry::new(piece));
    Request {
        entry,
        constants: Arc::new(constants),
        tier: Tier::Auto,
        cache: Some(Arc::new(files.clone())),
        compile_time: Arc::default(),
    }
}

fn selected(select: &dyn Select, numbers: &[i32]) -> Vec<u32> {
    let (values, validity) = (numbers.as_ptr().cast(), [u8::MAX; 8]);
    let input = RawInput::column(values, validity.as_ptr(), (0, 0));
    let mut out = vec![0; numbers.len()];
    // SAFETY: the input has `numbers.len()` values, and there is room for as many positions.
    let found = unsafe { select.run(&[input], std::ptr::null(), numbers.len(), out.as_mut_ptr()) };
    out.truncate(found.unwrap());
    out
}

#[test]
#[cfg(unix)]
fn code_is_kept_and_a_bad_file_costs_a_compilation() {
    let folder = tempfile::tempdir().unwrap();
    let files = CodeCache::new(&folder.path().join("code"));
    let all = || std::fs::read_dir(folder.path().join("code")).unwrap();
    let file = || all().next().unwrap().unwrap().path();
    let run = |number| {
        let request = request_less_than(32, number, &files);
        SHARED.compile(&request);
        selected(&request, &[5, 7, 6, -1])
    };
    assert_eq!(run(6), [0, 3]);
    let whole = std::fs::read(file()).unwrap();
    // A cached file is not written again, also not for another number.
    let written = std::fs::metadata(file()).unwrap();
    assert_eq!(run(6), [0, 3]);
    assert_eq!(run(7), [0, 2, 3]);
    use std::os::unix::fs::MetadataExt;
    assert_eq!(std::fs::metadata(file()).unwrap().ino(), written.ino());
    for damaged in [&whole[..whole.len() / 2], &[][..], &[9; 100]] {
        std::fs::write(file(), damaged).unwrap();
        assert!(!SHARED.search_cache(&request_less_than(32, 6, &files)));
        assert_eq!(run(6), [0, 3]);
        assert_eq!(std::fs::read(file()).unwrap(), whole);
    }
    // An intact file with an invalid object.
    let cache_key = request_less_than(32, 6, &files).entry.cache_key(Processor::at_hand().unwrap());
    assert!(files.save(&cache_key, b"no object"));
    assert!(!SHARED.search_cache(&request_less_than(32, 6, &files)));
    assert_eq!(run(6), [0, 3]);
    assert_eq!(std::fs::read(file()).unwrap(), whole);
    assert_eq!(all().count(), 1);
    SHARED.compile(&request_less_than(64, 6, &files));
    assert_eq!(all().count(), 2);
}

#[test]
#[cfg(unix)]
fn code_in_files_is_looked_for_before_it_is_compiled() {
    let folder = tempfile::tempdir().unwrap();
    let files = CodeCache::new(&folder.path().join("code"));
    let rows = LOAD_NANOSECONDS / SAVED_NANOSECONDS + 1;
    let is_ready = |request: &Request, rows: u64| request.is_ready(rows as usize).unwrap();
    let missing = request_less_than(16, 6, &files);
    assert!(!is_ready(&missing, rows) && !is_ready(&missing, 0));
    SHARED.compile(&request_less_than(32, 6, &files));
    let request = request_less_than(32, 9, &files);
    assert!(!is_ready(&request, 1));
    assert!(is_ready(&request, rows));
    assert_eq!(selected(&request, &[5, 9, 8]), [0, 2]);
}
