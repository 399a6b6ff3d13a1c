use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tessera_codegen::{
    Comparison, InputCode, Op, SelectCode, StageCode, StateCode, Status, StepCode, UpdateCode,
    ValueCode,
};
use tessera_context::interrupt::within;
use tessera_context::testing::TestContext;

use super::*;
use crate::ask::ENDING;

const LONG: Machine = Machine::Integer { bits: 64, signed: true };

/// A quotient; NULL for a negative divisor, and what only a user knows to be wrong.
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

fn code(name: &str, ir: &str, args: &[Machine], result: Machine) -> FunctionCode {
    FunctionCode {
        name: name.into(),
        ir: ir.into(),
        args: args.to_vec(),
        result,
        limit: None,
        is_whole: false,
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
    let (code, function) = compiled(quotient()).unwrap();
    assert!(code.is_whole);
    let (left, right) = ([7, 7, i64::MIN, 7, 7, 7, -9], [2i64, 0, 3, -1, 77, 5, 4]);
    let inputs = [input(&left, &[0b101_1111]), input(&right, &[u8::MAX])];
    let (mut values, mut statuses) = ([0i64; 7], [99; 7]);
    // SAFETY: two inputs of seven values, and room for as many.
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
    let wide = Machine::Integer { bits: 128, signed: true };
    let least =
        FunctionCode { limit: Some(1_000), ..code("least", ir, &[Machine::Boolean, wide], wide) };
    let (_, function) = compiled(least).unwrap();
    let inputs = [input(&[0b0110u8], &[u8::MAX]), input(&[999i128, 999, 1_000, 1_000], &[u8::MAX])];
    let (mut values, mut statuses) = ([0i128; 4], [99; 4]);
    // SAFETY: two inputs of four values, and room for as many.
    unsafe { function.run(&inputs, 4, values.as_mut_ptr().cast(), statuses.as_mut_ptr()) }.unwrap();
    assert_eq!((statuses, &values[..2]), ([0, 0, 2, 2], &[999, -999][..]));
    let (_, function) = compiled(code("other", ir, &[Machine::Boolean], Machine::Boolean)).unwrap();
    let mut values = [9u8; 4];
    // SAFETY: as above.
    unsafe { function.run(&inputs[..1], 4, values.as_mut_ptr(), statuses.as_mut_ptr()) }.unwrap();
    assert_eq!((statuses, values), ([0; 4], [1, 0, 0, 1]));
}

#[test]
fn the_library_on_floats_is_there_and_nothing_else() {
    let double = Machine::Float64;
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
    let (code, function) = compiled(self::code("f", &calling("exp"), &[double], double)).unwrap();
    assert!(!code.is_whole);
    let (mut values, mut statuses) = ([0f64; 2], [99; 2]);
    // SAFETY: an input of two values, and room for as many.
    unsafe {
        let inputs = [input(&[0.0, 2.0], &[u8::MAX])];
        function.run(&inputs, 2, values.as_mut_ptr().cast(), statuses.as_mut_ptr()).unwrap();
    }
    assert_eq!(values, [1.0, 2f64.exp() % 3.0]);
    let error = compiled(self::code("f", &calling("system"), &[double], double)).unwrap_err();
    assert!(error.message().contains("calls system, which it does not define"), "{error}");
}

#[test]
fn modules_that_define_no_such_function_are_errors() {
    let quotient =
        |ir: &str| compiled(code("quotient", ir, &[LONG, LONG], LONG)).unwrap_err().to_string();
    for (ir, told) in [
        ("", "defines no function @quotient"),
        ("declare i32 @quotient(ptr, i64, i64)", "defines no function @quotient"),
        ("nonsense", "this is no LLVM IR of version 19"),
        ("define i32 @quotient(ptr %p) { ret i32 0 }", "define it as i32 @quotient(ptr, i64, i64)"),
        ("define i32 @quotient(ptr %p, i64 %a, i32 %b) { ret i32 0 }", "define it as"),
        ("define i32 @quotient(i64 %p, i64 %a, i64 %b) { ret i32 0 }", "define it as"),
        ("define i64 @quotient(ptr %p, i64 %a, i64 %b) { ret i64 0 }", "define it as"),
        ("define i32 @quotient(ptr %p, i64 %a, i64 %b, ...) { ret i32 0 }", "define it as"),
        (
            "define i32 @quotient(ptr %p, i64 %a, i64 %b) { ret i64 0 }",
            "this is no LLVM IR of version 19",
        ),
        (
            "@other = external global i32 define i32 @quotient(ptr %p, i64 %a, i64 %b) { %x = load i32, ptr @other ret i32 %x }",
            "reads other, which it does not define",
        ),
    ] {
        let error = quotient(ir);
        assert!(error.contains(told), "{ir}: {error}");
    }
}

/// What calls it has it within: in code for a processor, as in that for others.
#[test]
fn pieces_have_it_inlined() {
    let (code, _) = compiled(quotient()).unwrap();
    let value = |op| ValueCode { op, machine: LONG, nullable: true };
    let call = value(Op::Function(code, vec![value(Op::Input(0)), value(Op::Integer(2))]));
    let compare = Op::Compare(Comparison::Gt, Box::new([call.clone(), value(Op::Integer(5))]));
    let predicate = ValueCode { op: compare, machine: Machine::Boolean, nullable: true };
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
            let text = emitted(&host, piece, FileType::Assembly).unwrap();
            let text = String::from_utf8_lossy(&text).into_owned();
            assert!(!text.contains("user.") && !text.contains("status_of"), "{text}");
        }
    }
}

/// Whoever links an object gets its own, whatever others link meanwhile.
#[test]
fn many_threads_link_at_once() {
    let link = |number: i64| {
        let ir = format!("define i32 @f(ptr %out) {{ store i64 {number}, ptr %out ret i32 0 }}");
        let host = Host::new(Processor::at_hand().unwrap()).unwrap();
        let piece = Piece::Function(Arc::new(code("f", &ir, &[], LONG)));
        let object = emitted(&host, &piece, FileType::Object).unwrap();
        for _ in 0..1_000 {
            let function = Compiled { code: Loaded::new(&object, FUNCTION).unwrap() };
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

/// Code that never ends by itself: the function of each module and what it takes.
const ENDLESS: [(&str, &str); 7] = [
    (
        "a loop",
        "define i32 @f(ptr %out, i64 %x) memory(none) mustprogress willreturn {
        br label %loop
      loop:
        br label %loop
      }",
    ),
    (
        "a loop in a loop, of many short ones",
        "define i32 @f(ptr %out, i64 %x) {
        br label %outer
      outer:
        %seen = phi i64 [ 0, %0 ], [ %next, %outer.next ]
        br label %inner
      inner:
        %i = phi i64 [ 0, %outer ], [ %j, %inner ]
        %j = add i64 %i, 1
        %more = icmp ult i64 %j, 3
        br i1 %more, label %inner, label %outer.next
      outer.next:
        %next = xor i64 %seen, %j
        br label %outer
      }",
    ),
    (
        "two blocks that jump to each other, entered at both",
        "define i32 @f(ptr %out, i64 %x) {
        %odd = trunc i64 %x to i1
        br i1 %odd, label %a, label %b
      a:
        br label %b
      b:
        br label %a
      }",
    ),
    (
        "a loop in a callee, whose null must not be followed",
        "define i32 @f(ptr %out, i64 %x) {
        %place = call nonnull noundef ptr @place(i64 %x)
        %value = load i64, ptr %place
        store i64 %value, ptr %out
        ret i32 0
      }
      define internal nonnull noundef ptr @place(i64 %x) nounwind memory(none) {
        br label %loop
      loop:
        br label %loop
      }",
    ),
    (
        "a callee that calls itself, without a loop",
        "define i32 @f(ptr %out, i64 %x) {
        %y = call fastcc i64 @fib(i64 %x)
        store i64 %y, ptr %out
        ret i32 0
      }
      define fastcc i64 @fib(i64 %n) memory(none) {
        %small = icmp ult i64 %n, 2
        br i1 %small, label %end, label %more
      more:
        %n1 = sub i64 %n, 1
        %n2 = sub i64 %n, 2
        %a = call fastcc i64 @fib(i64 %n1)
        %b = call fastcc i64 @fib(i64 %n2)
        %c = add i64 %a, %b
        br label %end
      end:
        %r = phi i64 [ %n, %0 ], [ %c, %more ]
        ret i64 %r
      }",
    ),
    (
        "tail calls by pointers",
        "@table = private constant [1 x ptr] [ptr @again]
      define i32 @f(ptr %out, i64 %x) {
        %y = call i64 @again(i64 %x)
        store i64 %y, ptr %out
        ret i32 0
      }
      define i64 @again(i64 %x) {
        %to = load ptr, ptr @table
        %y = musttail call i64 %to(i64 %x)
        ret i64 %y
      }",
    ),
    (
        "a name that is the check's",
        "define i32 @f(ptr %out, i64 %x) {
        %y = call i8 @tessera.ask()
        ret i32 0
      }
      define i8 @tessera.ask() {
        br label %loop
      loop:
        br label %loop
      }",
    ),
];

/// A loop that ends, with values that come from it, and a callee with another.
const ROUNDS: &str = "define i32 @f(ptr %out, i64 %x) {
    %space = alloca [4 x i64]
    %none = icmp eq i64 %x, 0
    br i1 %none, label %end, label %loop
  loop:
    %i = phi i64 [ 0, %0 ], [ %next, %loop ]
    %sum = phi i64 [ 0, %0 ], [ %more, %loop ]
    %slot = and i64 %i, 3
    %at = getelementptr [4 x i64], ptr %space, i64 0, i64 %slot
    store i64 %i, ptr %at
    %steps = call i64 @steps(i64 %i)
    %again = call i64 @steps(i64 %i)
    %both = sub i64 %steps, %again
    %stored = load i64, ptr %at
    %one = add i64 %sum, %stored
    %more = add i64 %one, %both
    %next = add i64 %i, 1
    %done = icmp eq i64 %next, %x
    br i1 %done, label %end, label %loop
  end:
    %result = phi i64 [ -1, %0 ], [ %more, %loop ]
    store i64 %result, ptr %out
    ret i32 0
  }
  define i64 @steps(i64 %x) {
    br label %head
  head:
    %n = phi i64 [ %x, %0 ], [ %half, %body ]
    %k = phi i64 [ 0, %0 ], [ %k1, %body ]
    %zero = icmp eq i64 %n, 0
    br i1 %zero, label %out, label %body
  body:
    %half = lshr i64 %n, 1
    %k1 = add i64 %k, 1
    br label %head
  out:
    ret i64 %k
  }";

#[test]
fn code_that_never_ends_does_with_its_query() {
    for (what, ir) in ENDLESS {
        let (_, function) = compiled(code("f", ir, &[LONG], LONG)).unwrap();
        let test = TestContext::new(1, 1);
        let context: Arc<dyn tessera_context::Context> = test.clone();
        let ended = std::thread::scope(|scope| {
            let running = scope.spawn(|| {
                let inputs = [input(&[90i64, 91, 92], &[u8::MAX])];
                let (mut values, mut statuses) = ([0i64; 3], [99; 3]);
                let values = values.as_mut_ptr().cast();
                // SAFETY: an input of three values, and room for as many.
                let run = || unsafe { function.run(&inputs, 3, values, statuses.as_mut_ptr()) };
                within(&context, run).map_err(|error| (error, Instant::now()))
            });
            std::thread::sleep(Duration::from_millis(20));
            assert!(!running.is_finished(), "{what}");
            test.cancelled.store(true, Ordering::SeqCst);
            let cancelled = Instant::now();
            let (error, ended) = running.join().unwrap().unwrap_err();
            assert_eq!(error.code(), Code::Cancelled, "{what}");
            ended.saturating_duration_since(cancelled)
        });
        assert!(ended < Duration::from_millis(500), "{what}: {ended:?}");
    }
}

#[test]
fn what_asks_computes_the_same() {
    let (_, function) = compiled(code("f", ROUNDS, &[LONG], LONG)).unwrap();
    let given = [0i64, 1, 2, 100, 1_000_000];
    let (mut values, mut statuses) = ([0i64; 5], [99; 5]);
    let inputs = [input(&given, &[u8::MAX])];
    // As if others were ended meanwhile: then code asks after each call.
    ENDING.fetch_add(1, Ordering::Relaxed);
    // SAFETY: an input of five values, and room for as many.
    unsafe { function.run(&inputs, 5, values.as_mut_ptr().cast(), statuses.as_mut_ptr()) }.unwrap();
    ENDING.fetch_sub(1, Ordering::Relaxed);
    assert_eq!(statuses, [0; 5]);
    assert_eq!(values, given.map(|x| if x == 0 { -1 } else { x * (x - 1) / 2 }));
}

#[test]
fn who_calls_itself_too_deeply_gets_an_error() {
    let ir = "define i32 @f(ptr %out, i64 %x) {
        %y = call i64 @depth(i64 %x)
        store i64 %y, ptr %out
        ret i32 0
      }
      define i64 @depth(i64 %x) {
        %zero = icmp eq i64 %x, 0
        br i1 %zero, label %end, label %more
      more:
        %x1 = sub i64 %x, 1
        %y = call i64 @depth(i64 %x1)
        %z = add i64 %y, 1
        ret i64 %z
      end:
        ret i64 0
      }";
    let (_, function) = compiled(code("f", ir, &[LONG], LONG)).unwrap();
    let call = |depth: i64| {
        let (mut value, mut status) = (0i64, 99);
        let inputs = [input(&[depth], &[u8::MAX])];
        // SAFETY: an input of one value, and room for one.
        unsafe { function.run(&inputs, 1, (&raw mut value).cast(), &raw mut status) }
            .map(|()| value)
    };
    assert_eq!(call(5_000).unwrap(), 5_000);
    let error = call(i64::MAX).unwrap_err();
    assert_eq!(
        (error.code(), error.message().contains("too deeply")),
        (Code::Limit, true),
        "{error}"
    );
    assert_eq!(call(7).unwrap(), 7);
}

/// What is short and has no loops stays as it is, and so does what is for GPUs.
#[test]
fn only_what_may_run_for_long_asks() {
    let asks = |processor: &Processor, code: &FunctionCode| {
        let value = |op, machine| ValueCode { op, machine, nullable: true };
        let args = code.args.iter().map(|_| value(Op::Input(0), LONG)).collect();
        let call = value(Op::Function(Arc::new(code.clone()), args), LONG);
        let both = Box::new([call, value(Op::Integer(5), LONG)]);
        let predicate = value(Op::Compare(Comparison::Gt, both), Machine::Boolean);
        let select = SelectCode { inputs: vec![InputCode::column(LONG, true)], predicate };
        let host = Host::new(processor).unwrap();
        let text = emitted(&host, &Piece::of_select(select).0, FileType::Assembly).unwrap();
        String::from_utf8_lossy(&text).contains("tessera.")
    };
    let own = Processor::at_hand().unwrap();
    let looping = code("f", ROUNDS, &[LONG], LONG);
    assert!(!asks(own, &quotient()) && asks(own, &looping) && asks(&Processor::arm(), &looping));
    assert!(!asks(&own.as_grid(), &looping) && !asks(&Processor::nvidia("sm_80"), &looping));
}

/// Names of a module do not meet those of the piece that calls it.
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
    let (_, function) = compiled(code("f", ir, &[LONG], LONG)).unwrap();
    let (mut value, mut status) = (0i64, 99);
    let inputs = [input(&[3i64], &[u8::MAX])];
    // SAFETY: an input of one value, and room for one.
    unsafe { function.run(&inputs, 1, (&raw mut value).cast(), &raw mut status) }.unwrap();
    assert_eq!((value, status), (7, 0));
    let two = |name: &str| {
        let ir = ir.replace("@f(", &format!("@{name}("));
        let value = |op| ValueCode { op, machine: LONG, nullable: true };
        value(Op::Function(
            compiled(code(name, &ir, &[LONG], LONG)).unwrap().0,
            vec![value(Op::Input(0))],
        ))
    };
    let same = Op::Compare(Comparison::Eq, Box::new([two("f"), two("g")]));
    let predicate = ValueCode { op: same, machine: Machine::Boolean, nullable: true };
    let select = SelectCode { inputs: vec![InputCode::column(LONG, true)], predicate };
    let host = Host::new(Processor::at_hand().unwrap()).unwrap();
    emitted(&host, &Piece::of_select(select).0, FileType::Object).unwrap();
}
