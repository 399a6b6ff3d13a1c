mod stop;

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tessera_codegen::{
    Comparison, InputCode, Op, SelectCode, StageCode, StateCode, Status, StepCode, UpdateCode,
    ValueCode,
};
use tessera_context::interrupt::within;
use tessera_context::testing::TestContext;

use super::*;
use crate::stop::STOPPING;

const LONG: MachineType = MachineType::Integer { bits: 64, signed: true };

/// A quotient: NULL for a negative divisor, and with a check that only the user can define.
pub(crate) const QUOTIENT: &str = "
    define i32 @quotient(ptr %out, i64 %left, i64 %right) noinline optnone {
      %overflows = icmp eq i64 %left, -9223372036854775808
      br i1 %overflows, label %overflow, label %more
    more:
      %status = call i32 @status_of(i64 %right)
      %is_value = icmp eq i32 %status, 0
      br i1 %is_value, label %divide, label %end
    divide:
      %value = sdiv i64 %left, %right
      store i64 %value, ptr %out
      br label %end
    overflow:
      br label %end
    end:
      %result = phi i32 [ 0, %divide ], [ %status, %more ], [ 2, %overflow ]
      ret i32 %result
    }
    @statuses = private constant [3 x i32] [i32 1, i32 3, i32 0]
    define i32 @status_of(i64 %right) alwaysinline {
      %wrong = icmp eq i64 %right, 77
      br i1 %wrong, label %bad, label %good
    bad:
      ret i32 9
    good:
      %positive = icmp sgt i64 %right, 0
      %zero = icmp eq i64 %right, 0
      %otherwise = select i1 %positive, i64 2, i64 0
      %number = select i1 %zero, i64 1, i64 %otherwise
      %at = getelementptr [3 x i32], ptr @statuses, i64 0, i64 %number
      %status = load i32, ptr %at
      ret i32 %status
    }";

fn code(name: &str, ir: &str, args: &[MachineType], result: MachineType) -> FunctionCode {
    FunctionCode {
        name: name.into(),
        ir: ir.into(),
        args: args.to_vec(),
        result,
        limit: None,
        is_self_contained: false,
    }
}

fn quotient() -> FunctionCode {
    code("quotient", QUOTIENT, &[LONG, LONG], LONG)
}

fn input<T>(values: &[T], validity: &[u8]) -> RawInput {
    let (values, validity) = (values.as_ptr().cast(), validity.as_ptr());
    RawInput::column(values, validity, (0, 0))
}

#[test]
fn columns_are_computed_and_wrong_values_named() {
    let (code, function) = compile(quotient()).unwrap();
    assert!(code.is_self_contained);
    let (left, right) = ([7, 7, i64::MIN, 7, 7, 7, -9], [2i64, 0, 3, -1, 77, 5, 4]);
    let inputs = [input(&left, &[0b101_1111]), input(&right, &[u8::MAX])];
    let (mut values, mut statuses) = ([0i64; 7], [99; 7]);
    // SAFETY: two inputs of seven values, and room for as many results.
    unsafe { function.run(&inputs, 7, values.as_mut_ptr().cast(), statuses.as_mut_ptr()) }.unwrap();
    let [value, null] = [Status::Value as u32, Status::Null as u32];
    let [overflow, zero] = [Status::Overflow as u32, Status::DivisionByZero as u32];
    assert_eq!(statuses, [value, zero, overflow, null, 9, null, value]);
    assert_eq!((values[0], values[6]), (3, -2));
}

#[test]
fn decimals_stay_in_their_limit_and_booleans_are_bytes() {
    let ir = "define i32 @least(ptr %out, i1 %low, i128 %value) {
        %negative = sub i128 0, %value
        %result = select i1 %low, i128 %negative, i128 %value
        store i128 %result, ptr %out
        ret i32 0
    }
    define i32 @other(ptr %out, i8 %flag) {
        %not = xor i8 %flag, 1
        store i8 %not, ptr %out
        ret i32 0
    }";
    let wide = MachineType::Integer { bits: 128, signed: true };
    let least = FunctionCode {
        limit: Some(1_000),
        ..code("least", ir, &[MachineType::Boolean, wide], wide)
    };
    let (_, function) = compile(least).unwrap();
    let inputs = [input(&[0b0110u8], &[u8::MAX]), input(&[999i128, 999, 1_000, 1_000], &[u8::MAX])];
    let (mut values, mut statuses) = ([0i128; 4], [99; 4]);
    // SAFETY: two inputs of four values, and room for as many results.
    unsafe { function.run(&inputs, 4, values.as_mut_ptr().cast(), statuses.as_mut_ptr()) }.unwrap();
    assert_eq!((statuses, &values[..2]), ([0, 0, 2, 2], &[999, -999][..]));
    let (_, function) =
        compile(code("other", ir, &[MachineType::Boolean], MachineType::Boolean)).unwrap();
    let mut values = [9u8; 4];
    // SAFETY: as above.
    unsafe { function.run(&inputs[..1], 4, values.as_mut_ptr(), statuses.as_mut_ptr()) }.unwrap();
    assert_eq!((statuses, values), ([0; 4], [1, 0, 0, 1]));
}

#[test]
fn the_library_on_floats_is_there_and_nothing_else() {
    let double = MachineType::Float64;
    let calling = |other: &str| {
        format!(
            "declare double @{other}(double)
            define i32 @f(ptr %out, double %x) {{
              %y = call double @{other}(double %x)
              %z = frem double %y, 3.0
              store double %z, ptr %out
              ret i32 0
            }}"
        )
    };
    let (code, function) = compile(self::code("f", &calling("exp"), &[double], double)).unwrap();
    assert!(!code.is_self_contained);
    let (mut values, mut statuses) = ([0f64; 2], [99; 2]);
    // SAFETY: an input of two values, and room for as many results.
    unsafe {
        let inputs = [input(&[0.0, 2.0], &[u8::MAX])];
        function.run(&inputs, 2, values.as_mut_ptr().cast(), statuses.as_mut_ptr()).unwrap();
    }
    assert_eq!(values, [1.0, 2f64.exp() % 3.0]);
    let error = compile(self::code("f", &calling("system"), &[double], double)).unwrap_err();
    assert!(error.message().contains("undefined function system"), "{error}");
}

#[test]
fn modules_that_define_no_such_function_are_errors() {
    let quotient =
        |ir: &str| compile(code("quotient", ir, &[LONG, LONG], LONG)).unwrap_err().to_string();
    for (ir, told) in [
        ("", "missing function @quotient"),
        ("declare i32 @quotient(ptr, i64, i64)", "missing function @quotient"),
        ("nonsense", "invalid LLVM IR (version 19)"),
        ("define i32 @quotient(ptr %p) { ret i32 0 }", "define it as i32 @quotient(ptr, i64, i64)"),
        ("define i32 @quotient(ptr %p, i64 %a, i32 %b) { ret i32 0 }", "define it as"),
        ("define i32 @quotient(i64 %p, i64 %a, i64 %b) { ret i32 0 }", "define it as"),
        ("define i64 @quotient(ptr %p, i64 %a, i64 %b) { ret i64 0 }", "define it as"),
        ("define i32 @quotient(ptr %p, i64 %a, i64 %b, ...) { ret i32 0 }", "define it as"),
        (
            "define i32 @quotient(ptr %p, i64 %a, i64 %b) { ret i64 0 }",
            "invalid LLVM IR (version 19)",
        ),
        (
            "@other = external global i32 define i32 @quotient(ptr %p, i64 %a, i64 %b) { %x = load i32, ptr @other ret i32 %x }",
            "undefined global other",
        ),
    ] {
        let error = quotient(ir);
        assert!(error.contains(told), "{ir}: {error}");
    }
}

/// Calls of a user-defined function are inlined, on CPUs and GPUs.
#[test]
fn pieces_have_it_inlined() {
    let (code, _) = compile(quotient()).unwrap();
    let value = |op| ValueCode { op, machine: LONG, nullable: true };
    let call = value(Op::Function(code, vec![value(Op::Input(0)), value(Op::Integer(2))]));
    let compare = Op::Compare(Comparison::Gt, Box::new([call.clone(), value(Op::Integer(5))]));
    let predicate = ValueCode { op: compare, machine: MachineType::Boolean, nullable: true };
    let inputs = vec![InputCode::column(LONG, true)];
    let state = StateCode { offset: 0, step: StepCode::Count, args: vec![call] };
    let update = UpdateCode {
        inputs: inputs.clone(),
        shared: Vec::new(),
        stages: vec![StageCode { filter: None, states: vec![state] }],
        stride: 1,
        grouped: false,
    };
    let pieces = [Piece::of_select(SelectCode { inputs, predicate }).0, Piece::of_update(update).0];
    let own = Processor::at_hand().unwrap();
    for processor in [own.clone(), own.as_grid(), Processor::arm(), Processor::nvidia("sm_80")] {
        let host = Host::new(&processor).unwrap();
        for piece in &pieces {
            let text = emit_piece(&host, piece, FileType::Assembly).unwrap();
            let text = String::from_utf8_lossy(&text).into_owned();
            assert!(!text.contains("user.") && !text.contains("status_of"), "{text}");
        }
    }
}

/// Objects that threads link concurrently do not affect each other.
#[test]
fn many_threads_link_at_once() {
    let link = |number: i64| {
        let ir = format!("define i32 @f(ptr %out) {{ store i64 {number}, ptr %out ret i32 0 }}");
        let host = Host::new(Processor::at_hand().unwrap()).unwrap();
        let piece = Piece::Function(Arc::new(code("f", &ir, &[], LONG)));
        let object = emit_piece(&host, &piece, FileType::Object).unwrap();
        for _ in 0..1_000 {
            let function = CompiledFunction { code: LoadedCode::new(&object, FUNCTION).unwrap() };
            let (mut value, mut status) = (0i64, 99);
            // SAFETY: no inputs, and room for one value.
            unsafe { function.run(&[], 1, (&raw mut value).cast(), &raw mut status) }.unwrap();
            assert_eq!((value, status), (number, 0));
        }
    };
    std::thread::scope(|scope| {
        for number in 0..8 {
            scope.spawn(move || link(number));
        }
    });
}

/// Names in a module do not collide with those of the piece that calls it.
#[test]
fn helpers_may_have_any_names() {
    let ir = "@rows = global i64 4
      define i32 @f(ptr %out, i64 %x) {
        %y = call i64 @function(i64 %x)
        store i64 %y, ptr %out
        ret i32 0
      }
      define i64 @function(i64 %x) {
        %z = call i64 @text.find(i64 %x)
        ret i64 %z
      }
      define i64 @text.find(i64 %x) {
        %more = load i64, ptr @rows
        %z = add i64 %x, %more
        ret i64 %z
      }";
    let (_, function) = compile(code("f", ir, &[LONG], LONG)).unwrap();
    let (mut value, mut status) = (0i64, 99);
    let inputs = [input(&[3i64], &[u8::MAX])];
    // SAFETY: an input of one value, and room for one result.
    unsafe { function.run(&inputs, 1, (&raw mut value).cast(), &raw mut status) }.unwrap();
    assert_eq!((value, status), (7, 0));
    let two = |name: &str| {
        let ir = ir.replace("@f(", &format!("@{name}("));
        let value = |op| ValueCode { op, machine: LONG, nullable: true };
        value(Op::Function(
            compile(code(name, &ir, &[LONG], LONG)).unwrap().0,
            vec![value(Op::Input(0))],
        ))
    };
    let same = Op::Compare(Comparison::Eq, Box::new([two("f"), two("g")]));
    let predicate = ValueCode { op: same, machine: MachineType::Boolean, nullable: true };
    let select = SelectCode { inputs: vec![InputCode::column(LONG, true)], predicate };
    let host = Host::new(Processor::at_hand().unwrap()).unwrap();
    emit_piece(&host, &Piece::of_select(select).0, FileType::Object).unwrap();
}
