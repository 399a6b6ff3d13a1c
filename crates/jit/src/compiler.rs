//! Who compiles what, and when.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, LazyLock, Mutex, OnceLock};
use std::time::Instant;

use inkwell::context::Context;
use tessera_ops::code::{Compiler, Promise, RawInput, Select, SelectCode, Update, UpdateCode};
use tessera_ops::lock;
use tessera_types::{Error, Result};

use crate::kept::Files;
use crate::loaded::Loaded;
use crate::lower::{NONE, SELECT, UPDATE, lower_select, lower_update};
use crate::target::Host;
use crate::{Tier, in_use};

/// Pieces of code that are kept for the next query that has them.
const KEPT_MAX: usize = 256;
/// What compiled code saves for each state that a tuple changes, or each predicate, in nanoseconds, as measured on TPC-H 1.
const SAVED_NANOSECONDS: u64 = 2;
/// How long compiling is expected to take before it has been measured.
const COMPILE_NANOSECONDS: u64 = 10_000_000;
/// How much the thread that compiles yields to those that work.
const NICE: i32 = 10;

type UpdateFunction = unsafe extern "C" fn(*const RawInput, *const u32, u64, *const u32, *mut u64) -> u64;
type SelectFunction = unsafe extern "C" fn(*const RawInput, *const u32, u64, *mut u32) -> u64;

/// What there is code for.
#[derive(Debug)]
enum Piece {
    Update(UpdateCode),
    Select(SelectCode),
}

impl Piece {
    /// How much each tuple has of what compiled code saves.
    fn weight(&self) -> u64 {
        match self {
            Piece::Update(code) => code.stages.iter().map(|stage| stage.states.len() as u64).sum(),
            Piece::Select(_) => 1,
        }
    }

    /// Its code, of an object.
    fn linked(&self, object: &[u8]) -> Result<Compiled> {
        Ok(match self {
            Piece::Update(_) => Compiled::Update(CompiledUpdate(Loaded::new(object, UPDATE)?)),
            Piece::Select(_) => Compiled::Select(CompiledSelect(Loaded::new(object, SELECT)?)),
        })
    }
}

/// An update whose code is in this process.
#[derive(Debug)]
struct CompiledUpdate(Loaded);

/// A predicate whose code is in this process.
#[derive(Debug)]
struct CompiledSelect(Loaded);

fn counted(number: u64) -> Option<usize> {
    (number != NONE).then_some(number as usize)
}

impl Update for CompiledUpdate {
    unsafe fn run(
        &self,
        inputs: &[RawInput],
        positions: *const u32,
        rows: usize,
        groups: *const u32,
        area: *mut u64,
    ) -> Option<usize> {
        // SAFETY: the address is that of a function which `lower_update` made with these parameters; it is there for as long as `self`.
        let function: UpdateFunction = unsafe { std::mem::transmute(self.0.address() as usize) };
        // SAFETY: the caller keeps the promises of `Update::run`, which are all that the function relies on.
        counted(unsafe { function(inputs.as_ptr(), positions, rows as u64, groups, area) })
    }
}

impl Select for CompiledSelect {
    unsafe fn run(
        &self,
        inputs: &[RawInput],
        positions: *const u32,
        rows: usize,
        out: *mut u32,
    ) -> Option<usize> {
        // SAFETY: as above, of `lower_select`.
        let function: SelectFunction = unsafe { std::mem::transmute(self.0.address() as usize) };
        // SAFETY: the caller keeps the promises of `Select::run`, which are all that the function relies on.
        counted(unsafe { function(inputs.as_ptr(), positions, rows as u64, out) })
    }
}

/// Code in this process.
#[derive(Debug)]
enum Compiled {
    Update(CompiledUpdate),
    Select(CompiledSelect),
}

/// What some query wants, in whatever state its code is.
#[derive(Debug)]
struct Wanted {
    piece: Piece,
    /// Tuples that would have gone through it so far.
    rows: AtomicU64,
    asked: AtomicBool,
    done: OnceLock<Result<Compiled>>,
}

/// What all queries of this process share.
#[derive(Debug)]
struct Shared {
    kept: Mutex<Kept>,
    waiting: OnceLock<Option<Sender<Asked>>>,
    compiled: AtomicU64,
    nanoseconds: AtomicU64,
}

#[derive(Debug, Default)]
struct Kept {
    wanted: HashMap<String, (Arc<Wanted>, u64)>,
    uses: u64,
}

static SHARED: LazyLock<Shared> = LazyLock::new(|| Shared {
    kept: Mutex::default(),
    waiting: OnceLock::new(),
    compiled: AtomicU64::new(0),
    nanoseconds: AtomicU64::new(0),
});

impl Shared {
    /// A piece: the one that another query wanted, or a new one in the place of what was used longest ago.
    fn wanted(&self, piece: Piece) -> Arc<Wanted> {
        // The text of the code is all of it: equal texts are equal code.
        let key = format!("{piece:?}");
        let mut kept = lock(&self.kept);
        kept.uses += 1;
        let now = kept.uses;
        if let Some((wanted, used)) = kept.wanted.get_mut(&key) {
            *used = now;
            return wanted.clone();
        }
        if kept.wanted.len() >= KEPT_MAX {
            let oldest = kept.wanted.iter().min_by_key(|(_, (_, used))| *used).map(|(key, _)| key.clone());
            oldest.and_then(|oldest| kept.wanted.remove(&oldest));
        }
        let wanted = Arc::new(Wanted {
            piece,
            rows: AtomicU64::new(0),
            asked: AtomicBool::new(false),
            done: OnceLock::new(),
        });
        kept.wanted.insert(key, (wanted.clone(), now));
        wanted
    }

    fn compile(&self, asked: &Asked) {
        let wanted = &asked.wanted;
        wanted.done.get_or_init(|| {
            let started = Instant::now();
            let done = compile(&wanted.piece, asked.kept.as_deref());
            self.compiled.fetch_add(1, Ordering::Relaxed);
            self.nanoseconds.fetch_add(started.elapsed().as_nanos() as u64, Ordering::Relaxed);
            done
        });
    }

    /// What compiling takes, as far as is known.
    fn compile_nanoseconds(&self) -> u64 {
        let compiled = self.compiled.load(Ordering::Relaxed);
        let total = self.nanoseconds.load(Ordering::Relaxed);
        total.checked_div(compiled).unwrap_or(COMPILE_NANOSECONDS)
    }

    /// Has it compiled beside the query, by the one thread that does so.
    fn ask(&self, asked: &Asked) {
        let start = || {
            let (sender, receiver) = channel::<Asked>();
            let work = move || {
                // Only this thread's, on Linux.
                let _ = rustix::process::nice(NICE);
                for asked in receiver {
                    let _until_done = in_use::compiling();
                    match in_use::is_in_use() {
                        true => SHARED.compile(&asked),
                        false => asked.wanted.asked.store(false, Ordering::Relaxed),
                    }
                }
            };
            // Where there can be no thread, everything stays vectorised.
            std::thread::Builder::new().name("tessera-jit".to_string()).spawn(work).ok().map(|_| sender)
        };
        if let Some(sender) = self.waiting.get_or_init(start)
            && !asked.wanted.asked.swap(true, Ordering::Relaxed)
        {
            let _ = sender.send(asked.clone());
        }
    }
}

fn compile(piece: &Piece, kept: Option<&Files>) -> Result<Compiled> {
    thread_local! {
        /// Making it takes about as long as compiling a short function.
        static HOST: OnceCell<Result<Host>> = const { OnceCell::new() };
    }
    HOST.with(|host| compile_for(host.get_or_init(Host::new).as_ref().map_err(Error::clone)?, piece, kept))
}

fn compile_for(host: &Host, piece: &Piece, kept: Option<&Files>) -> Result<Compiled> {
    let kept = kept.map(|files| (files, format!("{}\n{piece:?}", host.describe())));
    // What cannot be linked is made anew.
    let known = kept.as_ref().and_then(|(files, made_of)| files.load(made_of));
    if let Some(compiled) = known.and_then(|object| piece.linked(&object).ok()) {
        return Ok(compiled);
    }
    let context = Context::create();
    let module = host.module(&context);
    let lowered = match piece {
        Piece::Update(code) => lower_update(&context, &module, code),
        Piece::Select(code) => lower_select(&context, &module, code),
    };
    let function =
        lowered.map_err(|error| Error::internal(format!("the compiler made wrong code: {error}")))?;
    let object = host.object(&context, &module, function)?;
    if let Some((files, made_of)) = kept {
        files.save(&made_of, &object);
    }
    piece.linked(&object)
}

/// A compiler of one tier.
#[derive(Debug)]
pub(crate) struct Jit {
    tier: Tier,
    kept: Option<Arc<Files>>,
}

/// The compiler of a tier; none for the vectorised one.
pub(crate) fn compiler(tier: Tier, kept: Option<&Path>) -> Option<Arc<dyn Compiler>> {
    match tier {
        Tier::Vectorized => None,
        tier => Some(Arc::new(Jit { tier, kept: kept.map(|kept| Arc::new(Files::new(kept))) })),
    }
}

impl Jit {
    fn asked(&self, piece: Piece) -> Asked {
        Asked { wanted: SHARED.wanted(piece), tier: self.tier, kept: self.kept.clone() }
    }
}

impl Compiler for Jit {
    fn update(&self, code: UpdateCode) -> Arc<dyn Promise<dyn Update>> {
        Arc::new(self.asked(Piece::Update(code)))
    }

    fn select(&self, code: SelectCode) -> Arc<dyn Promise<dyn Select>> {
        Arc::new(self.asked(Piece::Select(code)))
    }
}

/// What one run asked for.
#[derive(Debug, Clone)]
struct Asked {
    wanted: Arc<Wanted>,
    tier: Tier,
    kept: Option<Arc<Files>>,
}

impl Asked {
    fn get(&self, rows: usize) -> Result<Option<&Compiled>> {
        let wanted = &self.wanted;
        if self.tier == Tier::Compiled {
            SHARED.compile(self);
        }
        match (wanted.done.get(), self.tier) {
            (Some(Ok(compiled)), _) => Ok(Some(compiled)),
            (Some(Err(error)), Tier::Compiled) => Err(error.clone()),
            (Some(Err(_)), _) => Ok(None),
            (None, _) => {
                let rows = wanted.rows.fetch_add(rows as u64, Ordering::Relaxed) + rows as u64;
                // Whoever has come so far is taken to have as much before it.
                if rows * wanted.piece.weight() * SAVED_NANOSECONDS > SHARED.compile_nanoseconds() {
                    SHARED.ask(self);
                }
                Ok(None)
            }
        }
    }
}

impl Promise<dyn Update> for Asked {
    fn get(&self, rows: usize) -> Result<Option<&(dyn Update + 'static)>> {
        Ok(self.get(rows)?.and_then(|compiled| match compiled {
            Compiled::Update(code) => Some(code as &dyn Update),
            Compiled::Select(_) => None,
        }))
    }
}

impl Promise<dyn Select> for Asked {
    fn get(&self, rows: usize) -> Result<Option<&(dyn Select + 'static)>> {
        Ok(self.get(rows)?.and_then(|compiled| match compiled {
            Compiled::Select(code) => Some(code as &dyn Select),
            Compiled::Update(_) => None,
        }))
    }
}

#[cfg(test)]
mod tests {
    use tessera_ops::code::{Comparison, InputCode, Machine, Op, ValueCode};

    use super::*;

    /// Whether 32-bit numbers are less than one.
    fn less_than(number: i128) -> Piece {
        let machine = Machine::Integer { bits: 32, signed: true };
        let value = |op| ValueCode { op, machine, nullable: false };
        let operands = Box::new([value(Op::Input(0)), value(Op::Integer(number))]);
        let predicate = ValueCode {
            op: Op::Compare(Comparison::Lt, operands),
            machine: Machine::Boolean,
            nullable: false,
        };
        let inputs = vec![InputCode { machine, nullable: false }];
        Piece::Select(SelectCode { inputs, predicate })
    }

    fn selected(compiled: &Compiled, numbers: &[i32]) -> Vec<u32> {
        let Compiled::Select(select) = compiled else { panic!("no predicate") };
        let (values, validity) = (numbers.as_ptr().cast(), [u8::MAX; 8]);
        let input = RawInput { values, validity: validity.as_ptr(), values_offset: 0, validity_offset: 0 };
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
        let file = || std::fs::read_dir(folder.path().join("code")).unwrap().next().unwrap().unwrap().path();
        let run = |number| selected(&compile(&less_than(number), Some(&files)).unwrap(), &[5, 7, 6, -1]);
        assert_eq!(run(6), [0, 3]);
        let whole = std::fs::read(file()).unwrap();
        // Nothing is written where it is found.
        let written = std::fs::metadata(file()).unwrap();
        assert_eq!(run(6), [0, 3]);
        use std::os::unix::fs::MetadataExt;
        assert_eq!(std::fs::metadata(file()).unwrap().ino(), written.ino());
        for damaged in [&whole[..whole.len() / 2], &[][..], &[9; 100]] {
            std::fs::write(file(), damaged).unwrap();
            assert_eq!(run(6), [0, 3]);
            assert_eq!(std::fs::read(file()).unwrap(), whole);
        }
        // A whole file whose object is none.
        let made_of = format!("{}\n{:?}", Host::new().unwrap().describe(), less_than(6));
        assert!(files.save(&made_of, b"no object"));
        assert_eq!(run(6), [0, 3]);
        assert_eq!(std::fs::read(file()).unwrap(), whole);
        assert_eq!(run(7), [0, 2, 3]);
        assert_eq!(std::fs::read_dir(folder.path().join("code")).unwrap().count(), 2);
    }
}
