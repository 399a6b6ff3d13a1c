//! Runs the same pipelines on a device and on the CPU, compares the results, and measures both.
//!
//! ```text
//! gpu_pipelines DEVICE [TUPLES [REPEAT]]
//! ```
//!
//! Prints a line of JSON for each pipeline: the bytes that it reads, and median times in
//! milliseconds of one CPU thread, of the device including copies, and of a real GPU's kernel
//! alone. Fails if results differ.

use std::process::ExitCode;
use std::time::Instant;

use tessera_codegen::{
    Comparison, InputCode, MachineType, Op, Operation, Promise, RawInput, Select, SelectCode,
    StageCode, StateCode, StepCode, Tier, Update, UpdateCode, ValueCode,
};
use tessera_context::Place;
use tessera_jit::{Backend, compiler, kernel_nanoseconds};
use tessera_types::{Error, Result};

const LONG: MachineType = MachineType::Integer { bits: 64, signed: true };
const SUM: MachineType = MachineType::Integer { bits: 128, signed: true };
const DAY: MachineType = MachineType::Integer { bits: 32, signed: true };

/// Columns like TPC-H's lineitem: quantity, price and discount in cents, ship date, group.
struct Tuples {
    quantity: Vec<i64>,
    price: Vec<i64>,
    discount: Vec<i64>,
    day: Vec<i32>,
    group: Vec<u32>,
    position: Vec<u32>,
}

impl Tuples {
    fn new(count: usize) -> Tuples {
        let mut state = 42u64;
        let mut below = |most: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % most
        };
        let mut column = |most: u64| (0..count).map(|_| below(most) as i64).collect::<Vec<_>>();
        Tuples {
            quantity: column(50).into_iter().map(|value| (value + 1) * 100).collect(),
            price: column(10_000_000).into_iter().map(|value| value + 90_000).collect(),
            discount: column(11),
            day: column(2_526).into_iter().map(|value| value as i32 + 8_036).collect(),
            group: column(4).into_iter().map(|value| value as u32).collect(),
            position: (0..count as u32).collect(),
        }
    }

    fn inputs(&self) -> [RawInput; 4] {
        let input = |values: *const u8| RawInput::column(values, values, (0, 0));
        let [quantity, price, discount] = [&self.quantity, &self.price, &self.discount];
        let long = |values: &Vec<i64>| input(values.as_ptr().cast());
        [long(quantity), long(price), long(discount), input(self.day.as_ptr().cast())]
    }
}

fn value(op: Op, machine: MachineType) -> ValueCode {
    ValueCode { op, machine, nullable: false }
}

fn inputs() -> Vec<InputCode> {
    [LONG, LONG, LONG, DAY].map(|machine| InputCode::column(machine, false)).to_vec()
}

fn compare(comparison: Comparison, input: usize, machine: MachineType, number: i128) -> ValueCode {
    let operands = [value(Op::Input(input), machine), value(Op::Integer(number), machine)];
    value(Op::Compare(comparison, Box::new(operands)), MachineType::Boolean)
}

/// The predicate of TPC-H 6: a year, three discounts, small quantities.
fn condition() -> ValueCode {
    use Comparison::{Gt, GtEq, Lt, LtEq};
    let list = vec![
        compare(GtEq, 3, DAY, 8_766),
        compare(Lt, 3, DAY, 9_131),
        compare(GtEq, 2, LONG, 5),
        compare(LtEq, 2, LONG, 7),
        compare(Lt, 0, LONG, 2_400),
        compare(Gt, 1, LONG, 0),
    ];
    value(Op::And(list), MachineType::Boolean)
}

fn sum(offset: usize, arg: ValueCode) -> StateCode {
    StateCode { offset, step: StepCode::ExactSum, args: vec![arg] }
}

/// The price times the discount, or times one minus the discount.
fn discounted(left: bool) -> ValueCode {
    let discount = value(Op::Input(2), LONG);
    let factor = match left {
        false => discount,
        true => value(
            Op::Arithmetic(Operation::Sub, Box::new([value(Op::Integer(100), LONG), discount])),
            LONG,
        ),
    };
    let args = Box::new([value(Op::Input(1), LONG), factor]);
    value(Op::Decimal { operation: Operation::Mul, factors: (1, 1), exact: true, args }, SUM)
}

/// TPC-H 6: a filter and a sum in one loop.
fn filtered_sum() -> UpdateCode {
    let stages =
        vec![StageCode { filter: Some(condition()), states: vec![sum(0, discounted(false))] }];
    UpdateCode { inputs: inputs(), shared: Vec::new(), stages, stride: 3, grouped: false }
}

/// TPC-H 1: sums and counts of four groups.
fn grouped_sums() -> UpdateCode {
    let states = vec![
        sum(0, value(Op::Input(0), LONG)),
        sum(3, value(Op::Input(1), LONG)),
        sum(6, discounted(true)),
        StateCode { offset: 9, step: StepCode::Max, args: vec![value(Op::Input(3), DAY)] },
        StateCode { offset: 11, step: StepCode::Count, args: Vec::new() },
    ];
    let stages = vec![StageCode { filter: None, states }];
    UpdateCode { inputs: inputs(), shared: Vec::new(), stages, stride: 12, grouped: true }
}

/// The result of a pipeline, its total time, and the time of a GPU's kernel.
type Timed<T> = (T, f64, f64);

fn timed<T>(run: impl FnOnce() -> Result<T>) -> Result<Timed<T>> {
    let (started, before) = (Instant::now(), kernel_nanoseconds());
    let result = run()?;
    let kernel = (kernel_nanoseconds() - before) as f64 / 1e6;
    Ok((result, started.elapsed().as_secs_f64() * 1e3, kernel))
}

fn missing() -> Error {
    Error::unsupported("the pipeline cannot run on the device")
}

fn run_update(
    promise: &dyn Promise<dyn Update>,
    tuples: &Tuples,
    grouped: bool,
) -> Result<Vec<u64>> {
    let (rows, mut area) = (tuples.position.len(), vec![0; 12 * 4]);
    let code = promise.get(rows)?.ok_or_else(missing)?;
    let (positions, groups) = match grouped {
        true => (tuples.position.as_ptr(), tuples.group.as_ptr()),
        false => (std::ptr::null(), std::ptr::null()),
    };
    // SAFETY: the inputs match the code and have a value for each tuple; groups are below 4, and
    // there are four records.
    let done = unsafe { code.run(&tuples.inputs(), positions, rows, groups, area.as_mut_ptr()) };
    // The next `get` reports a failure of the device.
    promise.get(0)?;
    match done == Some(rows) {
        true => Ok(area),
        false => Err(Error::internal(format!("only {done:?} of {rows} tuples were processed"))),
    }
}

fn run_select(promise: &dyn Promise<dyn Select>, tuples: &Tuples) -> Result<Vec<u32>> {
    let mut found = vec![0; tuples.position.len()];
    let code = promise.get(found.len())?.ok_or_else(missing)?;
    // SAFETY: as above; there is room for all positions.
    let count =
        unsafe { code.run(&tuples.inputs(), std::ptr::null(), found.len(), found.as_mut_ptr()) };
    promise.get(0)?;
    found.truncate(count.ok_or_else(missing)?);
    Ok(found)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Runs a pipeline on both in turn, after one untimed run.
fn measure<T: PartialEq>(
    name: &str,
    (tuples, bytes, repeat): (usize, usize, usize),
    on_processor: impl Fn() -> Result<T>,
    on_device: impl Fn() -> Result<T>,
) -> Result<()> {
    let (mut processor, mut device, mut kernel) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..=repeat {
        let (expected, took, _) = timed(&on_processor)?;
        let (found, took_there, in_kernel) = timed(&on_device)?;
        if found != expected {
            return Err(Error::internal(format!("{name} returns different results on the device")));
        }
        if number > 0 {
            processor.push(took);
            device.push(took_there);
            kernel.push(in_kernel);
        }
    }
    let (processor, device, kernel) = (median(processor), median(device), median(kernel));
    println!(
        "{{\"pipeline\": \"{name}\", \"tuples\": {tuples}, \"bytes\": {bytes}, \"processor_ms\": {processor:.3}, \
         \"device_ms\": {device:.3}, \"kernel_ms\": {kernel:.3}}}"
    );
    Ok(())
}

fn main() -> ExitCode {
    match measure_all() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("gpu_pipelines: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure_all() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, otherwise: usize| match arguments.get(at) {
        Some(text) => text.parse().map_err(|_| Error::semantic(format!("invalid number '{text}'"))),
        None => Ok(otherwise),
    };
    let name = arguments.first().map_or("virtual-gpu", String::as_str);
    let device = Backend::ALL
        .into_iter()
        .find(|backend| backend.name() == name)
        .ok_or_else(|| Error::semantic(format!("unknown device '{name}'")))?;
    let (count, repeat) = (number(1, 1 << 20)?.max(1), number(2, 5)?.max(1));
    let of = |device: Backend| -> Result<_> {
        compiler(device, Tier::Compiled, None, Place::Device)?
            .ok_or_else(|| Error::internal("the compiler is missing"))
    };
    let (processor, device) = (of(Backend::Cpu)?, of(device)?);
    let tuples = Tuples::new(count);
    for (name, code, bytes) in
        [("filtered sum", filtered_sum(), 28), ("grouped sums", grouped_sums(), 36)]
    {
        let grouped = code.grouped;
        let (one, other) = (processor.update(code.clone()), device.update(code));
        measure(
            name,
            (count, count * bytes, repeat),
            || run_update(&*one, &tuples, grouped),
            || run_update(&*other, &tuples, grouped),
        )?;
    }
    let code = SelectCode { inputs: inputs(), predicate: condition() };
    let (one, other) = (processor.select(code.clone()), device.select(code));
    let sizes = (count, count * 28, repeat);
    measure("filter", sizes, || run_select(&*one, &tuples), || run_select(&*other, &tuples))
}
