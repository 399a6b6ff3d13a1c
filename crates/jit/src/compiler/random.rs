//! Random pieces of code do the same on each processor: with all that the one at hand can do, and
//! with what every one could in 2009. For ARM they can at least be assembled.

use tessera_codegen::{
    Comparison, InputCode, Op, Operation, StageCode, StateCode, StepCode, ValueCode,
};

use super::*;
use crate::function::tests::QUOTIENT;
use crate::gpu::{Cuda, Gpu, VirtualGpu, runs_select, runs_update};

const PIECES: usize = 120;
pub(super) const ROWS: usize = 200;
const STRIDE: usize = 16;

const fn signed(bits: u32) -> Machine {
    Machine::Integer { bits, signed: true }
}

const fn unsigned(bits: u32) -> Machine {
    Machine::Integer { bits, signed: false }
}

/// The types of the inputs; every second one is nullable.
pub(super) const MACHINES: [Machine; 14] = [
    signed(64),
    Machine::Float64,
    signed(32),
    Machine::Boolean,
    signed(128),
    signed(8),
    unsigned(16),
    signed(16),
    unsigned(64),
    Machine::Float32,
    unsigned(8),
    unsigned(32),
    signed(64),
    Machine::Float64,
];

/// A user's function.
fn quotient() -> Arc<FunctionCode> {
    let (name, args, result) = ("quotient".into(), vec![signed(64); 2], signed(64));
    Arc::new(FunctionCode { name, ir: QUOTIENT.into(), args, result, limit: None, is_whole: true })
}

/// Numbers that are the same in every run (Knuth's constants).
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, most: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % most
    }

    pub(super) fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    /// Mostly small; now and then near the ends of its type.
    fn whole(&mut self) -> i128 {
        match self.below(12) {
            0 => self.one(&[
                i128::from(i64::MAX),
                i128::from(i32::MIN),
                1 << 70,
                i128::MAX,
                i128::MIN,
                255,
            ]),
            _ => self.below(200) as i128 - 60,
        }
    }

    fn leaf(&mut self, machine: Machine) -> Op {
        let inputs: Vec<usize> =
            (0..MACHINES.len()).filter(|at| MACHINES[*at] == machine).collect();
        match (self.below(4), machine) {
            (0, Machine::Boolean) => Op::Integer(self.below(2) as i128),
            (0, Machine::Integer { bits, signed }) => {
                let value = self.whole();
                let (least, bits) =
                    (if signed { i128::MIN >> (128 - bits) } else { 0 }, bits.min(127));
                Op::Integer(value.clamp(least, !least & !(-1 << bits)))
            }
            (0, _) => Op::Float((self.below(64) as f64 / 8.0 - 3.0).to_bits()),
            (1, _) if self.below(4) == 0 => Op::Null,
            _ if inputs.is_empty() => Op::Null,
            _ => Op::Input(self.one(&inputs)),
        }
    }

    fn pair(&mut self, machine: Machine, depth: usize) -> Box<[ValueCode; 2]> {
        Box::new([self.value(machine, depth), self.value(machine, depth)])
    }

    fn truth(&mut self, depth: usize) -> Op {
        let list = |this: &mut Self| {
            (0..2 + this.below(2)).map(|_| this.value(Machine::Boolean, depth)).collect()
        };
        match self.below(8) {
            0 => Op::And(list(self)),
            1 => Op::Or(list(self)),
            2 => Op::Not(Box::new(self.value(Machine::Boolean, depth))),
            3 => {
                let machine = self.one(&MACHINES);
                Op::IsNull(Box::new(self.value(machine, depth)))
            }
            4 => {
                let machine = self.one(&[signed(64), signed(32), signed(128), unsigned(16)]);
                let number = |op| ValueCode { op, machine, nullable: false };
                let numbers = (0..1 + self.below(5))
                    .map(|_| number(Op::Integer(self.below(90) as i128)))
                    .collect();
                let (value, null) = (Box::new(self.value(machine, depth)), self.below(3) == 0);
                Op::Among { value, numbers, null }
            }
            _ => {
                use Comparison::*;
                let comparison = self.one(&[Eq, NotEq, Lt, LtEq, Gt, GtEq, Distinct, NotDistinct]);
                let machine = self.one(&MACHINES);
                Op::Compare(comparison, self.pair(machine, depth))
            }
        }
    }

    fn number(&mut self, machine: Machine, depth: usize) -> Op {
        use Operation::*;
        match (machine, self.below(5)) {
            (Machine::Float64, 0) => {
                let from = self.one(&[signed(64), signed(32), unsigned(64), signed(8)]);
                Op::ToFloat(self.one(&[1.0, 100.0]), Box::new(self.value(from, depth)))
            }
            (Machine::Float64, 1) => {
                Op::OfDecimals(self.one(&[Mul, Div]), self.pair(machine, depth))
            }
            (Machine::Float32 | Machine::Float64, _) => {
                Op::Arithmetic(self.one(&[Add, Sub, Mul, Div]), self.pair(machine, depth))
            }
            (Machine::Integer { bits: 128, .. }, 0) => {
                let (left, right) = (self.value(machine, depth), self.value(signed(64), depth));
                Op::Decimal {
                    operation: Mul,
                    factors: (1, 1),
                    exact: false,
                    args: Box::new([left, right]),
                }
            }
            (Machine::Integer { bits: 128, .. }, 1) => {
                let (operation, args) = (self.one(&[Add, Sub]), self.pair(machine, depth));
                Op::Decimal { operation, factors: (1, 1), exact: false, args }
            }
            (Machine::Integer { bits: 128, .. }, _) => {
                let from = self.one(&[signed(64), signed(32), unsigned(64)]);
                Op::Widen(self.one(&[1, 100]), Box::new(self.value(from, depth)))
            }
            (Machine::Integer { bits: 64, signed: true }, 0) => {
                let args = Box::new([self.value(signed(32), depth), self.value(signed(16), depth)]);
                Op::Decimal {
                    operation: self.one(&[Add, Sub, Mul]),
                    factors: (10, 1),
                    exact: true,
                    args,
                }
            }
            (Machine::Integer { bits: 64, signed: true }, 2) if self.below(2) == 0 => {
                let by = Op::Integer(self.one(&[3, -2, 7, 1, 0]));
                let by = ValueCode { op: by, machine, nullable: false };
                Op::Function(quotient(), vec![self.value(machine, depth), by])
            }
            (Machine::Integer { signed: true, .. }, 1) => {
                Op::Negate(Box::new(self.value(machine, depth)))
            }
            _ => Op::Arithmetic(self.one(&[Add, Sub, Mul, Div, Mod]), self.pair(machine, depth)),
        }
    }

    fn value(&mut self, machine: Machine, depth: usize) -> ValueCode {
        let op = match (depth, self.below(8), machine) {
            (0, ..) => self.leaf(machine),
            (_, 0, _) => Op::Coalesce((0..2).map(|_| self.value(machine, depth - 1)).collect()),
            (_, 1, _) => {
                let branches = (0..1 + self.below(2))
                    .map(|_| {
                        (self.value(Machine::Boolean, depth - 1), self.value(machine, depth - 1))
                    })
                    .collect();
                let otherwise = self.below(2) == 0;
                Op::Case(branches, otherwise.then(|| Box::new(self.value(machine, depth - 1))))
            }
            (.., Machine::Boolean) => self.truth(depth - 1),
            _ => self.number(machine, depth - 1),
        };
        ValueCode { op, machine, nullable: true }
    }

    fn inputs() -> Vec<InputCode> {
        let nullable = |(at, machine): (usize, &Machine)| InputCode::column(*machine, at % 2 == 1);
        MACHINES.iter().enumerate().map(nullable).collect()
    }

    fn update(&mut self) -> UpdateCode {
        let steps = [
            (StepCode::ExactSum, signed(64)),
            (StepCode::ExactSum, signed(128)),
            (StepCode::FloatSum, Machine::Float64),
            (StepCode::Min, signed(32)),
            (StepCode::Max, Machine::Float32),
            (StepCode::Min, signed(128)),
            (StepCode::Count, Machine::Boolean),
        ];
        let states = (0..4).map(|at| {
            let (step, machine) = self.one(&steps);
            StateCode { offset: at * 4, step, args: vec![self.value(machine, 2)] }
        });
        let states = states.collect();
        let filter = (self.below(2) == 0).then(|| self.value(Machine::Boolean, 2));
        let shared = vec![self.value(signed(64), 1)];
        let (inputs, grouped) = (Random::inputs(), self.below(2) == 0);
        UpdateCode {
            inputs,
            shared,
            stages: vec![StageCode { filter, states }],
            stride: STRIDE,
            grouped,
        }
    }

    /// Values of an input, with room for the widest type.
    pub(super) fn values(&mut self, machine: Machine) -> Vec<u64> {
        let width = match machine {
            Machine::Boolean => {
                return (0..ROWS).map(|_| self.below(1 << 30) as u64 * 0x1_0001).collect();
            }
            machine => machine.bytes(),
        };
        let mut bytes = Vec::new();
        for _ in 0..ROWS {
            let float = match self.below(15) {
                0 => self.one(&[f64::NAN, f64::INFINITY, -0.0]),
                _ => self.below(400) as f64 / 8.0 - 11.0,
            };
            let value = match machine {
                Machine::Float32 => u128::from((float as f32).to_bits()),
                Machine::Float64 => u128::from(float.to_bits()),
                _ => self.whole() as u128,
            };
            bytes.extend(&value.to_le_bytes()[..width]);
        }
        bytes
            .chunks(8)
            .map(|chunk| u64::from_le_bytes(chunk.try_into().unwrap_or([7; 8])))
            .collect()
    }
}

/// The GPU of these tests: a virtual one, or NVIDIA's, where the environment says so.
fn tested_gpu() -> Gpu {
    match std::env::var("TESSERA_TEST_DEVICE").as_deref() {
        Ok("gpu") => Gpu::new(Cuda::get().unwrap()),
        _ => Gpu::new(VirtualGpu::get().unwrap()),
    }
}

/// What a GPU makes of tuples that raise no error on the processor is the same as there, but for
/// the order in which floats are added; and of others nothing.
fn same_on_a_gpu(update: &UpdateCode, inputs: &[RawInput], groups: &[u32]) -> bool {
    let gpu = tested_gpu();
    let host = Host::new(Processor::at_hand().unwrap()).unwrap();
    let alone = made(&host, Piece::of_update(update.clone()));
    let asked = gpu.update(update.clone());
    let Some(offloaded) = asked.get(ROWS).unwrap() else { return false };
    let run = |code: &dyn Update, positions: &[u32], area: &mut [u64]| {
        let groups: Vec<u32> =
            positions.iter().map(|position| groups[*position as usize]).collect();
        // SAFETY: inputs with values and validity for all positions, a group below 4 for each, an
        // area of four records.
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
        // A sum of long numbers: it is left to the processor.
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
        StepCode::Min | StepCode::Max if state.args[0].machine == Machine::Float32 => {
            f64::from(f32::from_bits(word as u32))
        }
        _ => f64::from_bits(word),
    };
    match (state.step, state.args[0].machine) {
        (StepCode::ExactSum, _) => one == other,
        (StepCode::Count, _) => one[0] == other[0],
        (_, Machine::Float32 | Machine::Float64) => {
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
        let (update, predicate) = (random.update(), random.value(Machine::Boolean, 3));
        updates += usize::from(same_on_a_gpu(&update, &inputs, &groups));
        let select = SelectCode { inputs: Random::inputs(), predicate };
        let asked = gpu.select(select.clone());
        if let Some(offloaded) = asked.get(ROWS).unwrap() {
            let expected = selected(&made(&host, Piece::of_select(select)), &inputs, ROWS);
            assert_eq!(selected(offloaded, &inputs, ROWS), expected);
            selects += usize::from(expected.is_some_and(|found| !found.is_empty()));
        }
    }
    assert!(
        updates * 3 > PIECES && selects * 4 > PIECES,
        "{updates} updates and {selects} predicates"
    );
}

/// Blocks run side by side: what they add to the same record is all there in the end, for few
/// groups and for more than a scratchpad has room for.
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
        state(3, StepCode::FloatSum, Machine::Float64, 1),
        state(5, StepCode::Max, signed(64), 2),
        state(7, StepCode::Min, signed(64), 2),
    ];
    let machines = [signed(128), Machine::Float64, signed(64)];
    let inputs = machines.map(|machine| InputCode::column(machine, false)).to_vec();
    let stages = vec![StageCode { filter: None, states }];
    let update = UpdateCode { inputs, shared: Vec::new(), stages, stride: 9, grouped: true };
    // Half of the sums carry, one way or the other.
    let long: Vec<i128> = (0..MANY as i128).map(|at| (1 << 63) * (at % 2 * 2 - 1) + at).collect();
    let (floats, short): (Vec<f64>, Vec<i64>) = (0..MANY as i64).map(|at| (at as f64, at)).unzip();
    let input = |values: *const u8| RawInput::column(values, values, (0, 0));
    let inputs =
        [input(long.as_ptr().cast()), input(floats.as_ptr().cast()), input(short.as_ptr().cast())];
    let positions: Vec<u32> = (0..MANY as u32).collect();
    let gpu = tested_gpu();
    let asked = gpu.update(update);
    let code = asked.get(MANY).unwrap().unwrap();
    // Again and again: what is lost is lost by chance.
    for last in [1, 5_000].repeat(20) {
        let mut groups = vec![0; MANY];
        groups[MANY - 1] = last;
        let mut area = vec![0; 9 * (last as usize + 1)];
        // SAFETY: inputs with values for all positions, an area with a record of each group.
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

/// What each thread of a grid does for itself is not to be seen in code for one thread alone.
#[test]
fn code_for_a_processor_knows_no_threads() {
    let host = Host::new(Processor::at_hand().unwrap()).unwrap();
    let grid = Processor::at_hand().unwrap().as_grid();
    let grid = Host::new(&grid).unwrap();
    let mut random = Random(99);
    for _ in 0..PIECES / 4 {
        let (update, predicate) = (random.update(), random.value(Machine::Boolean, 3));
        let select = SelectCode { inputs: Random::inputs(), predicate };
        let is_for_both = runs_update(&update) && runs_select(&select);
        for piece in [Piece::of_update(update).0, Piece::of_select(select).0] {
            if !is_for_both {
                continue;
            }
            let text = |host: &Host<'_>| {
                let context = Context::create();
                lowered(host, &context, &piece).unwrap().print_to_string().to_string()
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

/// The same pieces for NVIDIA's GPUs: as text, and assembled where TESSERA_PTXAS names an
/// assembler.
#[test]
fn code_for_nvidia_is_assembled() {
    let folder = tempfile::tempdir().unwrap();
    let mut random = Random(11);
    for capability in ["sm_80", "sm_90"] {
        let processor = Processor::nvidia(capability);
        let host = Host::new(&processor).unwrap();
        for number in 0..PIECES / 4 {
            let (update, predicate) = (random.update(), random.value(Machine::Boolean, 3));
            let select = SelectCode { inputs: Random::inputs(), predicate };
            let pieces = [
                runs_update(&update).then(|| Piece::of_update(update).0),
                runs_select(&select).then(|| Piece::of_select(select).0),
            ];
            for piece in pieces.into_iter().flatten() {
                let text =
                    String::from_utf8(emitted(&host, &piece, FileType::Assembly).unwrap()).unwrap();
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

pub(super) fn input(values: &[u64], validity: &[u8]) -> RawInput {
    let (values, validity) = (values.as_ptr().cast(), validity.as_ptr());
    RawInput::column(values, validity, (3, 0))
}

/// A piece in this process, made for a processor.
pub(super) fn made(host: &Host<'_>, (piece, given): (Piece, Given)) -> Asked {
    let wanted = Wanted::new(piece);
    let object = emitted(host, &wanted.piece, FileType::Object).unwrap();
    wanted.done.set(wanted.piece.linked(&object)).unwrap();
    Asked {
        wanted: Arc::new(wanted),
        given: Arc::new(given),
        tier: Tier::Compiled,
        kept: None,
        spent: Arc::default(),
    }
}

/// All that an update does: how far it comes, again and again behind tuples that perhaps raise
/// errors, and the states then.
fn updated(code: &Asked, inputs: &[RawInput], groups: &[u32]) -> (Vec<Option<usize>>, Vec<u64>) {
    let positions: Vec<u32> = (0..ROWS as u32).rev().collect();
    let mut area = vec![0; STRIDE * 4];
    let (mut first, mut ends) = (0, Vec::new());
    while first < ROWS {
        // SAFETY: inputs with values and validity for all positions, a group below 4 for each, an
        // area of four records.
        let done = unsafe {
            let (positions, groups) = (positions[first..].as_ptr(), groups[first..].as_ptr());
            Update::run(code, inputs, positions, ROWS - first, groups, area.as_mut_ptr())
        };
        ends.push(done);
        first += done.unwrap_or(0) + 1;
    }
    (ends, area)
}

pub(super) fn selected(code: &dyn Select, inputs: &[RawInput], rows: usize) -> Option<Vec<u32>> {
    let mut out = vec![0; rows];
    // SAFETY: as above; there is room for all.
    let found = unsafe { code.run(inputs, std::ptr::null(), rows, out.as_mut_ptr()) };
    out.truncate(found.unwrap_or(0));
    found.map(|_| out)
}

#[test]
#[cfg(target_arch = "x86_64")]
fn all_processors_do_the_same() {
    let whole = Processor::at_hand().unwrap();
    let (masked, arm) = (whole.at_level("x86-64-v2").unwrap(), Processor::arm());
    let hosts = [whole, &masked, &arm].map(|processor| Host::new(processor).unwrap());
    let mut random = Random(20_261_124);
    let (mut raising, mut selecting, mut changed) = (0, 0, 0);
    for _ in 0..PIECES {
        let columns = MACHINES.map(|machine| random.values(machine));
        let validity: Vec<u8> = (0..ROWS / 8 + 1).map(|_| random.below(256) as u8 | 0x45).collect();
        let inputs = columns.each_ref().map(|values| input(values, &validity));
        let groups: Vec<u32> = (0..ROWS).map(|_| random.below(4) as u32).collect();
        let (update, predicate) = (random.update(), random.value(Machine::Boolean, 3));
        let select = SelectCode { inputs: Random::inputs(), predicate };
        let pieces = || [Piece::of_update(update.clone()), Piece::of_select(select.clone())];
        let run = |host: &Host<'_>| {
            let [update, select] = pieces().map(|piece| made(host, piece));
            (updated(&update, &inputs, &groups), selected(&select, &inputs, ROWS))
        };
        let with_all = run(&hosts[0]);
        assert_eq!(with_all, run(&hosts[1]), "{update:?}\n{select:?}");
        raising += with_all.0.0.len() - 1;
        selecting +=
            usize::from(with_all.1.is_some_and(|found| !found.is_empty() && found.len() < ROWS));
        changed += usize::from(with_all.0.1.iter().any(|word| *word != 0));
        for (piece, _) in pieces() {
            let text =
                String::from_utf8(emitted(&hosts[1], &piece, FileType::Assembly).unwrap()).unwrap();
            assert!(
                !text.contains("%ymm") && !text.contains("%zmm") && !text.contains("\tv"),
                "{text}"
            );
            let object = emitted(&hosts[2], &piece, FileType::Object).unwrap();
            // An ELF file for the machine of number 183.
            assert!(object.starts_with(b"\x7fELF") && object[18..20] == [183, 0]);
        }
    }
    // They are worth something.
    assert!(raising > PIECES && raising * 2 < PIECES * ROWS, "{raising} tuples raise errors");
    assert!(
        selecting * 5 > PIECES && changed * 2 > PIECES,
        "{selecting} select, {changed} change states"
    );
}

#[test]
#[cfg(target_arch = "x86_64")]
fn only_what_the_processor_can_is_asked_of_it() {
    let whole = Processor::at_hand().unwrap();
    let masked = whole.at_level("x86-64-v2").unwrap();
    let refused = masked.at_level("x86-64-v3").unwrap_err().to_string();
    assert!(refused.contains("TESSERA_CPU=x86-64-v3"), "{refused}");
    assert!(whole.at_level("pentium").is_err());
    assert_ne!(whole.describe(), masked.describe());
}
