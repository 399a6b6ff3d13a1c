//! Tests of stop checks in user-defined functions.

use super::*;

/// Code that never terminates by itself: a name, and a module.
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
        "a loop in a callee that returns a null pointer, which must not be followed",
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
        %y = call i8 @tessera.poll()
        ret i32 0
      }
      define i8 @tessera.poll() {
        br label %loop
      loop:
        br label %loop
      }",
    ),
];

/// A loop that terminates and has results, and a callee with another loop.
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
        let (_, function) = compile(code("f", ir, &[LONG], LONG)).unwrap();
        let test = TestContext::new(1, 1);
        let context: Arc<dyn tessera_context::Context> = test.clone();
        let ended = std::thread::scope(|scope| {
            let running = scope.spawn(|| {
                let inputs = [input(&[90i64, 91, 92], &[u8::MAX])];
                let (mut values, mut statuses) = ([0i64; 3], [99; 3]);
                let values = values.as_mut_ptr().cast();
                // SAFETY: an input of three values, and room for as many results.
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
    let (_, function) = compile(code("f", ROUNDS, &[LONG], LONG)).unwrap();
    let constants = [0i64, 1, 2, 100, 1_000_000];
    let (mut values, mut statuses) = ([0i64; 5], [99; 5]);
    let inputs = [input(&constants, &[u8::MAX])];
    // Simulates a concurrent stop: code then polls after each call.
    STOPPING.fetch_add(1, Ordering::Relaxed);
    // SAFETY: an input of five values, and room for as many results.
    unsafe { function.run(&inputs, 5, values.as_mut_ptr().cast(), statuses.as_mut_ptr()) }.unwrap();
    STOPPING.fetch_sub(1, Ordering::Relaxed);
    assert_eq!(statuses, [0; 5]);
    assert_eq!(values, constants.map(|x| if x == 0 { -1 } else { x * (x - 1) / 2 }));
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
    let (_, function) = compile(code("f", ir, &[LONG], LONG)).unwrap();
    let call = |depth: i64| {
        let (mut value, mut status) = (0i64, 99);
        let inputs = [input(&[depth], &[u8::MAX])];
        // SAFETY: an input of one value, and room for one result.
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

/// Short code without loops stays unchanged, and so does code for GPUs.
#[test]
fn only_what_may_run_for_long_asks() {
    let polls = |processor: &Processor, code: &FunctionCode| {
        let value = |op, machine| ValueCode { op, machine, nullable: true };
        let args = code.args.iter().map(|_| value(Op::Input(0), LONG)).collect();
        let call = value(Op::Function(Arc::new(code.clone()), args), LONG);
        let both = Box::new([call, value(Op::Integer(5), LONG)]);
        let predicate = value(Op::Compare(Comparison::Gt, both), MachineType::Boolean);
        let select = SelectCode { inputs: vec![InputCode::column(LONG, true)], predicate };
        let host = Host::new(processor).unwrap();
        let text = emit_piece(&host, &Piece::of_select(select).0, FileType::Assembly).unwrap();
        String::from_utf8_lossy(&text).contains("tessera.")
    };
    let own = Processor::at_hand().unwrap();
    let looping = code("f", ROUNDS, &[LONG], LONG);
    assert!(!polls(own, &quotient()) && polls(own, &looping) && polls(&Processor::arm(), &looping));
    assert!(!polls(&own.as_grid(), &looping) && !polls(&Processor::nvidia("sm_80"), &looping));
}
