//! Property tests: random pieces of code give the same results with all features of this CPU, with
//! those of any x86-64 CPU, and on GPUs. For ARM they are only assembled.

mod gpu;

use tessera_codegen::{
    Comparison, InputCode, Op, Operation, StageCode, StateCode, StepCode, ValueCode,
};

use super::*;
use crate::function::tests::QUOTIENT;
use crate::target::Host;
use crate::target::Processor;
use inkwell::targets::FileType;
use tessera_codegen::{FunctionCode, MachineType, RawInput};

const PIECES: usize = 120;
pub(super) const ROWS: usize = 200;
const STRIDE: usize = 16;

const fn signed(bits: u32) -> MachineType {
    MachineType::Integer { bits, signed: true }
}

const fn unsigned(bits: u32) -> MachineType {
    MachineType::Integer { bits, signed: false }
}

/// The types of the inputs; every second input is nullable.
pub(super) const MACHINES: [MachineType; 14] = [
    signed(64),
    MachineType::Float64,
    signed(32),
    MachineType::Boolean,
    signed(128),
    signed(8),
    unsigned(16),
    signed(16),
    unsigned(64),
    MachineType::Float32,
    unsigned(8),
    unsigned(32),
    signed(64),
    MachineType::Float64,
];

/// A user-defined function.
fn quotient() -> Arc<FunctionCode> {
    let (name, args, result) = ("quotient".into(), vec![signed(64); 2], signed(64));
    Arc::new(FunctionCode {
        name,
        ir: QUOTIENT.into(),
        args,
        result,
        limit: None,
        is_self_contained: true,
    })
}

/// A deterministic generator of random numbers (Knuth's constants).
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

    /// Mostly small numbers; now and then near the limits of the type.
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

    fn leaf(&mut self, machine: MachineType) -> Op {
        let inputs: Vec<usize> =
            (0..MACHINES.len()).filter(|at| MACHINES[*at] == machine).collect();
        match (self.below(4), machine) {
            (0, MachineType::Boolean) => Op::Integer(self.below(2) as i128),
            (0, MachineType::Integer { bits, signed }) => {
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

    fn pair(&mut self, machine: MachineType, depth: usize) -> Box<[ValueCode; 2]> {
        Box::new([self.value(machine, depth), self.value(machine, depth)])
    }

    fn truth(&mut self, depth: usize) -> Op {
        let list = |this: &mut Self| {
            (0..2 + this.below(2)).map(|_| this.value(MachineType::Boolean, depth)).collect()
        };
        match self.below(8) {
            0 => Op::And(list(self)),
            1 => Op::Or(list(self)),
            2 => Op::Not(Box::new(self.value(MachineType::Boolean, depth))),
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
                Op::InList { value, numbers, null }
            }
            _ => {
                use Comparison::*;
                let comparison = self.one(&[Eq, NotEq, Lt, LtEq, Gt, GtEq, Distinct, NotDistinct]);
                let machine = self.one(&MACHINES);
                Op::Compare(comparison, self.pair(machine, depth))
            }
        }
    }

    fn number(&mut self, machine: MachineType, depth: usize) -> Op {
        use Operation::*;
        match (machine, self.below(5)) {
            (MachineType::Float64, 0) => {
                let from = self.one(&[signed(64), signed(32), unsigned(64), signed(8)]);
                Op::ToFloat(self.one(&[1.0, 100.0]), Box::new(self.value(from, depth)))
            }
            (MachineType::Float64, 1) => {
                Op::DecimalsAsFloats(self.one(&[Mul, Div]), self.pair(machine, depth))
            }
            (MachineType::Float32 | MachineType::Float64, _) => {
                Op::Arithmetic(self.one(&[Add, Sub, Mul, Div]), self.pair(machine, depth))
            }
            (MachineType::Integer { bits: 128, .. }, 0) => {
                let (left, right) = (self.value(machine, depth), self.value(signed(64), depth));
                Op::Decimal {
                    operation: Mul,
                    factors: (1, 1),
                    exact: false,
                    args: Box::new([left, right]),
                }
            }
            (MachineType::Integer { bits: 128, .. }, 1) => {
                let (operation, args) = (self.one(&[Add, Sub]), self.pair(machine, depth));
                Op::Decimal { operation, factors: (1, 1), exact: false, args }
            }
            (MachineType::Integer { bits: 128, .. }, _) => {
                let from = self.one(&[signed(64), signed(32), unsigned(64)]);
                Op::Widen(self.one(&[1, 100]), Box::new(self.value(from, depth)))
            }
            (MachineType::Integer { bits: 64, signed: true }, 0) => {
                let args = Box::new([self.value(signed(32), depth), self.value(signed(16), depth)]);
                Op::Decimal {
                    operation: self.one(&[Add, Sub, Mul]),
                    factors: (10, 1),
                    exact: true,
                    args,
                }
            }
            (MachineType::Integer { bits: 64, signed: true }, 2) if self.below(2) == 0 => {
                let by = Op::Integer(self.one(&[3, -2, 7, 1, 0]));
                let by = ValueCode { op: by, machine, nullable: false };
                Op::Function(quotient(), vec![self.value(machine, depth), by])
            }
            (MachineType::Integer { signed: true, .. }, 1) => {
                Op::Negate(Box::new(self.value(machine, depth)))
            }
            _ => Op::Arithmetic(self.one(&[Add, Sub, Mul, Div, Mod]), self.pair(machine, depth)),
        }
    }

    fn value(&mut self, machine: MachineType, depth: usize) -> ValueCode {
        let op = match (depth, self.below(8), machine) {
            (0, ..) => self.leaf(machine),
            (_, 0, _) => Op::Coalesce((0..2).map(|_| self.value(machine, depth - 1)).collect()),
            (_, 1, _) => {
                let branches = (0..1 + self.below(2))
                    .map(|_| {
                        (
                            self.value(MachineType::Boolean, depth - 1),
                            self.value(machine, depth - 1),
                        )
                    })
                    .collect();
                let otherwise = self.below(2) == 0;
                Op::Case(branches, otherwise.then(|| Box::new(self.value(machine, depth - 1))))
            }
            (.., MachineType::Boolean) => self.truth(depth - 1),
            _ => self.number(machine, depth - 1),
        };
        ValueCode { op, machine, nullable: true }
    }

    fn inputs() -> Vec<InputCode> {
        let nullable =
            |(at, machine): (usize, &MachineType)| InputCode::column(*machine, at % 2 == 1);
        MACHINES.iter().enumerate().map(nullable).collect()
    }

    fn update(&mut self) -> UpdateCode {
        let steps = [
            (StepCode::ExactSum, signed(64)),
            (StepCode::ExactSum, signed(128)),
            (StepCode::FloatSum, MachineType::Float64),
            (StepCode::Min, signed(32)),
            (StepCode::Max, MachineType::Float32),
            (StepCode::Min, signed(128)),
            (StepCode::Count, MachineType::Boolean),
        ];
        let states = (0..4).map(|at| {
            let (step, machine) = self.one(&steps);
            StateCode { offset: at * 4, step, args: vec![self.value(machine, 2)] }
        });
        let states = states.collect();
        let filter = (self.below(2) == 0).then(|| self.value(MachineType::Boolean, 2));
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

    /// Returns values of an input, with room for the widest type.
    pub(super) fn values(&mut self, machine: MachineType) -> Vec<u64> {
        let width = match machine {
            MachineType::Boolean => {
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
                MachineType::Float32 => u128::from((float as f32).to_bits()),
                MachineType::Float64 => u128::from(float.to_bits()),
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

pub(super) fn input(values: &[u64], validity: &[u8]) -> RawInput {
    let (values, validity) = (values.as_ptr().cast(), validity.as_ptr());
    RawInput::column(values, validity, (3, 0))
}

/// Compiles a piece for a CPU and loads it.
pub(super) fn compiled_piece(
    host: &Host<'_>,
    (piece, constants): (Piece, RuntimeConstants),
) -> Request {
    let entry = CacheEntry::new(piece);
    let object = emit_piece(host, &entry.piece, FileType::Object).unwrap();
    entry.code.set(entry.piece.load_object(&object)).unwrap();
    Request {
        entry: Arc::new(entry),
        constants: Arc::new(constants),
        tier: Tier::Compiled,
        cache: None,
        compile_time: Arc::default(),
    }
}

/// Runs an update to the end, skipping tuples that may raise errors; returns where each run ended,
/// and the states.
fn updated(code: &Request, inputs: &[RawInput], groups: &[u32]) -> (Vec<Option<usize>>, Vec<u64>) {
    let positions: Vec<u32> = (0..ROWS as u32).rev().collect();
    let mut area = vec![0; STRIDE * 4];
    let (mut first, mut ends) = (0, Vec::new());
    while first < ROWS {
        // SAFETY: the inputs have values and validity for all positions, each group is below 4, and
        // the area has four records.
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
    // SAFETY: as above; `out` has room for all positions.
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
        let (update, predicate) = (random.update(), random.value(MachineType::Boolean, 3));
        let select = SelectCode { inputs: Random::inputs(), predicate };
        let pieces = || [Piece::of_update(update.clone()), Piece::of_select(select.clone())];
        let run = |host: &Host<'_>| {
            let [update, select] = pieces().map(|piece| compiled_piece(host, piece));
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
                String::from_utf8(emit_piece(&hosts[1], &piece, FileType::Assembly).unwrap())
                    .unwrap();
            assert!(
                !text.contains("%ymm") && !text.contains("%zmm") && !text.contains("\tv"),
                "{text}"
            );
            let object = emit_piece(&hosts[2], &piece, FileType::Object).unwrap();
            // An ELF file for machine 183 (AArch64).
            assert!(object.starts_with(b"\x7fELF") && object[18..20] == [183, 0]);
        }
    }
    // The random pieces are not trivial.
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
