//! Property tests of GPU code.

use inkwell::context::Context;
use inkwell::targets::FileType;
use tessera_codegen::{MachineType, RawInput};
use tessera_context::Place;

use super::*;
use crate::compiler::piece::lower_piece;
use crate::gpu::{Cuda, GpuCompiler, VirtualGpu, runs_select, runs_update};
use crate::lower::UPDATE;
use crate::target::{Host, Processor};

/// The GPU under test: a virtual GPU, or an NVIDIA GPU if the environment selects it.
fn tested_gpu() -> GpuCompiler {
    match std::env::var("TESSERA_TEST_DEVICE").as_deref() {
        Ok("gpu") => GpuCompiler::new(Cuda::get().unwrap(), Place::Device),
        _ => GpuCompiler::new(VirtualGpu::get().unwrap(), Place::Device),
    }
}

/// Checks an update on a GPU. If no tuple raises an error on the CPU, the results are the same
/// except for the order of float additions; otherwise the GPU processes nothing.
fn same_on_a_gpu(update: &UpdateCode, inputs: &[RawInput], groups: &[u32]) -> bool {
    let gpu = tested_gpu();
    let host = Host::new(Processor::at_hand().unwrap()).unwrap();
    let alone = compiled_piece(&host, Piece::of_update(update.clone()));
    let request = gpu.update(update.clone());
    let Some(offloaded) = request.get(ROWS).unwrap() else { return false };
    let run = |code: &dyn Update, positions: &[u32], area: &mut [u64]| {
        let groups: Vec<u32> =
            positions.iter().map(|position| groups[*position as usize]).collect();
        // SAFETY: the inputs have values and validity for all positions, each group is below 4, and
        // the area has four records.
        unsafe {
            code.run(
                inputs,
                positions.as_ptr(),
                positions.len(),
                groups.as_ptr(),
                area.as_mut_ptr(),
            )
        }
    };
    let raises = |position: &u32| run(&alone, &[*position], &mut [0; STRIDE * 4]) != Some(1);
    let (raising, rest): (Vec<u32>, Vec<u32>) = (0..ROWS as u32).partition(raises);
    let (mut one, mut other) = ([0; STRIDE * 4], [0; STRIDE * 4]);
    let (expected, done) = (run(&alone, &rest, &mut one), run(offloaded, &rest, &mut other));
    match (expected, done) {
        // A sum of long numbers is left to the CPU.
        (_, Some(0)) if !rest.is_empty() => assert_eq!(other, [0; STRIDE * 4]),
        _ => {
            assert_eq!(expected, done);
            for state in update.stages.iter().flat_map(|stage| &stage.states) {
                for record in 0..if update.grouped { 4 } else { 1 } {
                    let at = record * STRIDE + state.offset;
                    let (one, other) = (&one[at..][..3], &other[at..][..3]);
                    assert!(is_same(state, one, other), "{state:?} {one:?} {other:?}");
                }
            }
        }
    }
    let before = other;
    if let Some(first) = raising.first() {
        let all: Vec<u32> = rest.iter().copied().chain([*first]).collect();
        assert_eq!(run(offloaded, &all, &mut other), Some(0));
        assert_eq!(other, before);
    }
    done == Some(rest.len()) && !rest.is_empty()
}

fn is_same(state: &StateCode, one: &[u64], other: &[u64]) -> bool {
    let is_close = |one: f64, other: f64| {
        let both_nan = one.is_nan() && other.is_nan();
        one == other || both_nan || (one - other).abs() <= 1e-12 * one.abs().max(other.abs())
    };
    let float = |word: u64| match state.step {
        StepCode::Min | StepCode::Max if state.args[0].machine == MachineType::Float32 => {
            f64::from(f32::from_bits(word as u32))
        }
        _ => f64::from_bits(word),
    };
    match (state.step, state.args[0].machine) {
        (StepCode::ExactSum, _) => one == other,
        (StepCode::Count, _) => one[0] == other[0],
        (_, MachineType::Float32 | MachineType::Float64) => {
            is_close(float(one[0]), float(other[0])) && one[1] == other[1]
        }
        _ => one[..2] == other[..2],
    }
}

#[test]
fn a_virtual_gpu_does_the_same() {
    let mut random = Random(4_711);
    let (mut updates, mut selects) = (0, 0);
    let host = Host::new(Processor::at_hand().unwrap()).unwrap();
    let gpu = tested_gpu();
    for _ in 0..PIECES {
        let columns = MACHINES.map(|machine| random.values(machine));
        let validity: Vec<u8> = (0..ROWS / 8 + 1).map(|_| random.below(256) as u8 | 0x45).collect();
        let inputs = columns.each_ref().map(|values| input(values, &validity));
        let groups: Vec<u32> = (0..ROWS).map(|_| random.below(4) as u32).collect();
        let (update, predicate) = (random.update(), random.value(MachineType::Boolean, 3));
        updates += usize::from(same_on_a_gpu(&update, &inputs, &groups));
        let select = SelectCode { inputs: Random::inputs(), predicate };
        let request = gpu.select(select.clone());
        if let Some(offloaded) = request.get(ROWS).unwrap() {
            let expected =
                selected(&compiled_piece(&host, Piece::of_select(select)), &inputs, ROWS);
            assert_eq!(selected(offloaded, &inputs, ROWS), expected);
            selects += usize::from(expected.is_some_and(|found| !found.is_empty()));
        }
    }
    assert!(
        updates * 3 > PIECES && selects * 4 > PIECES,
        "{updates} updates and {selects} predicates"
    );
}

/// Blocks run concurrently without lost updates, with few groups and with more than a scratchpad
/// can hold.
#[test]
fn blocks_lose_nothing_to_each_other() {
    const MANY: usize = 200_000;
    let value = |op, machine| ValueCode { op, machine, nullable: false };
    let state = |offset, step, machine, input| StateCode {
        offset,
        step,
        args: vec![value(Op::Input(input), machine)],
    };
    let states = vec![
        state(0, StepCode::ExactSum, signed(128), 0),
        state(3, StepCode::FloatSum, MachineType::Float64, 1),
        state(5, StepCode::Max, signed(64), 2),
        state(7, StepCode::Min, signed(64), 2),
    ];
    let machines = [signed(128), MachineType::Float64, signed(64)];
    let inputs = machines.map(|machine| InputCode::column(machine, false)).to_vec();
    let stages = vec![StageCode { filter: None, states }];
    let update = UpdateCode { inputs, shared: Vec::new(), stages, stride: 9, grouped: true };
    // Half of the additions carry.
    let long: Vec<i128> = (0..MANY as i128).map(|at| (1 << 63) * (at % 2 * 2 - 1) + at).collect();
    let (floats, short): (Vec<f64>, Vec<i64>) = (0..MANY as i64).map(|at| (at as f64, at)).unzip();
    let input = |values: *const u8| RawInput::column(values, values, (0, 0));
    let inputs =
        [input(long.as_ptr().cast()), input(floats.as_ptr().cast()), input(short.as_ptr().cast())];
    let positions: Vec<u32> = (0..MANY as u32).collect();
    let gpu = tested_gpu();
    let request = gpu.update(update);
    let code = request.get(MANY).unwrap().unwrap();
    // Repeated, because lost updates are random.
    for last in [1, 5_000].repeat(20) {
        let mut groups = vec![0; MANY];
        groups[MANY - 1] = last;
        let mut area = vec![0; 9 * (last as usize + 1)];
        // SAFETY: the inputs have values for all positions, and the area has a record of each
        // group.
        let done = unsafe {
            code.run(&inputs, positions.as_ptr(), MANY, groups.as_ptr(), area.as_mut_ptr())
        };
        assert_eq!(done, Some(MANY));
        let rest = MANY - 1;
        let sum = long[..rest].iter().sum::<i128>() as u128;
        let float = (rest as f64 * (rest - 1) as f64 / 2.0).to_bits();
        let rest = rest as u64;
        assert_eq!(
            area[..9],
            [sum as u64, (sum >> 64) as u64, rest, float, rest, rest - 1, 1, 0, 1]
        );
        assert_eq!(
            area[9 * last as usize..][..3],
            [long[MANY - 1] as u64, (long[MANY - 1] >> 64) as u64, 1]
        );
    }
}

/// CPU code contains no traces of the threads of a grid.
#[test]
fn code_for_a_processor_knows_no_threads() {
    let host = Host::new(Processor::at_hand().unwrap()).unwrap();
    let grid = Processor::at_hand().unwrap().as_grid();
    let grid = Host::new(&grid).unwrap();
    let mut random = Random(99);
    for _ in 0..PIECES / 4 {
        let (update, predicate) = (random.update(), random.value(MachineType::Boolean, 3));
        let select = SelectCode { inputs: Random::inputs(), predicate };
        let is_for_both = runs_update(&update) && runs_select(&select);
        for piece in [Piece::of_update(update).0, Piece::of_select(select).0] {
            if !is_for_both {
                continue;
            }
            let text = |host: &Host<'_>| {
                let context = Context::create();
                lower_piece(host, &context, &piece).unwrap().print_to_string().to_string()
            };
            let (alone, together) = (text(&host), text(&grid));
            for word in
                ["atomicrmw", "cmpxchg", "lane", "block", "thread", "scratchpad", "update.begin"]
            {
                assert!(!alone.contains(word), "{word} in {alone}");
            }
            assert_eq!(together.contains("atomicrmw"), piece.name() == UPDATE);
            assert!(together.contains("thread") || together.contains("lane"));
        }
    }
}

/// Compiles the same pieces for NVIDIA GPUs to PTX, and assembles them if `TESSERA_PTXAS` names an
/// assembler.
#[test]
fn code_for_nvidia_is_assembled() {
    let folder = tempfile::tempdir().unwrap();
    let mut random = Random(11);
    for capability in ["sm_80", "sm_90"] {
        let processor = Processor::nvidia(capability);
        let host = Host::new(&processor).unwrap();
        for number in 0..PIECES / 4 {
            let (update, predicate) = (random.update(), random.value(MachineType::Boolean, 3));
            let select = SelectCode { inputs: Random::inputs(), predicate };
            let pieces = [
                runs_update(&update).then(|| Piece::of_update(update).0),
                runs_select(&select).then(|| Piece::of_select(select).0),
            ];
            for piece in pieces.into_iter().flatten() {
                let text =
                    String::from_utf8(emit_piece(&host, &piece, FileType::Assembly).unwrap())
                        .unwrap();
                assert!(text.contains(&format!(".target {capability}")), "{text}");
                assert!(text.contains(&format!(".visible .entry {}(", piece.name())), "{text}");
                assert!(text.contains("bar.sync"), "{text}");
                let Some(assembler) = std::env::var_os("TESSERA_PTXAS") else { continue };
                let path = folder.path().join(format!("{number}.ptx"));
                std::fs::write(&path, &text).unwrap();
                let mut command = std::process::Command::new(assembler);
                command.args([
                    format!("-arch={capability}"),
                    "-o".to_string(),
                    "/dev/null".to_string(),
                ]);
                let done = command.arg(&path).output().unwrap();
                assert!(done.status.success(), "{}\n{text}", String::from_utf8_lossy(&done.stderr));
            }
        }
    }
}
