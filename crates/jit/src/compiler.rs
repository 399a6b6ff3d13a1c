//! Who compiles what, and when.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, LazyLock, Mutex, OnceLock};
use std::time::Duration;

use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::targets::FileType;
use tessera_codegen::{
    Compiler, Compute, ComputeCode, FindGroups, FunctionCode, GroupCode, HashCode, HashKeys,
    InputPlace, Lookup, LookupCode, Machine, Promise, RawGroups, RawInput, RawTable, Select,
    SelectCode, Update, UpdateCode, WriteCode, WriteRows,
};
use tessera_context::lock;
use tessera_types::{Error, Result};

use crate::ask::answered;
use crate::function::link;
use crate::given::Given;
use crate::kept::Files;
use crate::loaded::Loaded;
use crate::lower::{
    COMPUTE, FUNCTION, GROUP, HASH, LOOKUP, NONE, SELECT, UPDATE, WRITE, lower_compute,
    lower_function, lower_group, lower_hash, lower_lookup, lower_select, lower_update, lower_write,
};
use crate::target::{Host, Processor};
use crate::{Tier, in_use};

/// Pieces of code that are kept for the next query that has them.
const KEPT_MAX: usize = 256;
/// What compiled code saves for each state that a tuple changes, or each predicate, in nanoseconds,
/// as measured on TPC-H 1.
const SAVED_NANOSECONDS: u64 = 2;
/// How often that is what it saves for each tuple that is looked up.
const LOOKUP_WEIGHT: u64 = 4;
/// The same of predicates on texts, and of how many fields of a row that are written.
const TEXT_WEIGHT: u64 = 3;
const WRITTEN_FIELDS: u64 = 4;
/// How long compiling is expected to take before it has been measured.
const COMPILE_NANOSECONDS: u64 = 10_000_000;
/// How long it takes to find out whether there is code in a file, and to link it.
const LOAD_NANOSECONDS: u64 = 200_000;
/// How much the thread that compiles yields to those that work.
const NICE: i32 = 10;

type UpdateFunction =
    unsafe extern "C" fn(*const RawInput, *const u32, u64, *const u64, *const u32, *mut u64) -> u64;
type LookupFunction = unsafe extern "C" fn(
    *const RawInput,
    *const u32,
    u64,
    *const u64,
    *const RawTable,
    *mut u32,
    *mut u64,
) -> u64;
type HashFunction =
    unsafe extern "C" fn(*const RawInput, *const u32, u64, *const u64, *mut u64) -> u64;
type GroupFunction = unsafe extern "C" fn(
    *const RawInput,
    *const u32,
    u64,
    *const u64,
    *mut RawGroups,
    *mut u32,
) -> u64;
type WriteFunction =
    unsafe extern "C" fn(*const RawInput, *const u32, u64, *const u64, *mut u8, *mut u64) -> u64;
type ComputeFunction =
    unsafe extern "C" fn(*const RawInput, *const u32, u64, *const u64, *mut u8, *mut u8) -> u64;
type SelectFunction =
    unsafe extern "C" fn(*const RawInput, *const u32, u64, *const u64, *mut u32) -> u64;

/// What there is code for, without the numbers that it is given, but with what they are.
#[derive(Debug)]
pub(crate) enum Piece {
    Update(UpdateCode, Vec<Machine>),
    Select(SelectCode, Vec<Machine>),
    Compute(ComputeCode, Vec<Machine>),
    Lookup(LookupCode),
    Hash(HashCode),
    Group(GroupCode),
    Write(WriteCode),
    Function(Arc<FunctionCode>),
}

impl Piece {
    /// A piece, and what it is given.
    pub(crate) fn of_update(mut code: UpdateCode) -> (Piece, Given) {
        let given = Given::of_update(&mut code);
        (Piece::Update(code, given.machines.clone()), given)
    }

    /// As [`Piece::of_update`].
    pub(crate) fn of_select(mut code: SelectCode) -> (Piece, Given) {
        let given = Given::of_select(&mut code);
        (Piece::Select(code, given.machines.clone()), given)
    }

    /// As [`Piece::of_update`].
    pub(crate) fn of_compute(mut code: ComputeCode) -> (Piece, Given) {
        let given = Given::of_compute(&mut code);
        (Piece::Compute(code, given.machines.clone()), given)
    }

    /// How much each tuple has of what compiled code saves.
    fn weight(&self) -> u64 {
        match self {
            Piece::Update(code, _) => {
                code.stages.iter().map(|stage| stage.states.len() as u64).sum()
            }
            Piece::Lookup(_) | Piece::Group(_) => LOOKUP_WEIGHT,
            Piece::Write(code) => 1 + code.fields.len() as u64 / WRITTEN_FIELDS,
            Piece::Select(code, _)
                if code.inputs.iter().any(|input| input.place == InputPlace::Views) =>
            {
                TEXT_WEIGHT
            }
            Piece::Hash(_) | Piece::Compute(..) | Piece::Select(..) | Piece::Function(_) => 1,
        }
    }

    /// The name of its function.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Piece::Update(..) => UPDATE,
            Piece::Select(..) => SELECT,
            Piece::Compute(..) => COMPUTE,
            Piece::Lookup(_) => LOOKUP,
            Piece::Hash(_) => HASH,
            Piece::Group(_) => GROUP,
            Piece::Write(_) => WRITE,
            Piece::Function(_) => FUNCTION,
        }
    }

    /// Whether its loops have no branches for one tuple.
    fn is_straight(&self) -> bool {
        match self {
            Piece::Update(code, _) => !code.grouped,
            Piece::Select(..) | Piece::Compute(..) => true,
            Piece::Lookup(_)
            | Piece::Hash(_)
            | Piece::Group(_)
            | Piece::Write(_)
            | Piece::Function(_) => false,
        }
    }

    /// Users' functions that it calls, each once.
    fn functions(&self) -> Vec<&Arc<FunctionCode>> {
        let mut found: Vec<&Arc<FunctionCode>> = Vec::new();
        let add = |function| {
            if !found.contains(&function) {
                found.push(function);
            }
        };
        match self {
            Piece::Update(code, _) => code.each_function(add),
            Piece::Select(code, _) => code.predicate.each_function(add),
            Piece::Compute(code, _) => code.value.each_function(add),
            Piece::Lookup(_) | Piece::Hash(_) | Piece::Group(_) | Piece::Write(_) => {}
            Piece::Function(code) => found.push(code),
        }
        found
    }

    /// Its code, of an object.
    fn linked(&self, object: &[u8]) -> Result<Loaded> {
        Loaded::new(object, self.name())
    }
}

/// Runs code that may ask. Where it was told to return, this unwinds with the error, as
/// [`tessera_context::interrupt::point`] does.
fn or_unwind<T>(run: impl FnOnce() -> T) -> T {
    answered(run).unwrap_or_else(|error| resume_unwind(Box::new(error)))
}

fn counted(number: u64) -> Option<usize> {
    (number != NONE).then_some(number as usize)
}

impl Update for Asked {
    unsafe fn run(
        &self,
        inputs: &[RawInput],
        positions: *const u32,
        rows: usize,
        groups: *const u32,
        area: *mut u64,
    ) -> Option<usize> {
        let (Piece::Update(..), Some(Ok(code))) = (&self.wanted.piece, self.wanted.done.get())
        else {
            return Some(0);
        };
        // SAFETY: the address is that of a function which `lower_update` made with these
        // parameters; it is there for as long as `self`.
        let function: UpdateFunction = unsafe { std::mem::transmute(code.address() as usize) };
        let given = self.given.words.as_ptr();
        // SAFETY: the caller keeps the promises of `Update::run`; the numbers are those of the
        // code, in their order: that is all that the function relies on.
        counted(or_unwind(|| unsafe {
            function(inputs.as_ptr(), positions, rows as u64, given, groups, area)
        }))
    }
}

impl Select for Asked {
    unsafe fn run(
        &self,
        inputs: &[RawInput],
        positions: *const u32,
        rows: usize,
        out: *mut u32,
    ) -> Option<usize> {
        let (Piece::Select(..), Some(Ok(code))) = (&self.wanted.piece, self.wanted.done.get())
        else {
            return None;
        };
        // SAFETY: as above, of `lower_select`.
        let function: SelectFunction = unsafe { std::mem::transmute(code.address() as usize) };
        let given = self.given.words.as_ptr();
        // SAFETY: the caller keeps the promises of `Select::run`; for the numbers as above.
        counted(or_unwind(|| unsafe {
            function(inputs.as_ptr(), positions, rows as u64, given, out)
        }))
    }
}

impl Lookup for Asked {
    unsafe fn run(
        &self,
        inputs: &[RawInput],
        positions: *const u32,
        rows: usize,
        table: &RawTable,
        tuples: *mut u32,
        found: *mut u64,
    ) -> Option<usize> {
        let (Piece::Lookup(_), Some(Ok(code))) = (&self.wanted.piece, self.wanted.done.get())
        else {
            return None;
        };
        // SAFETY: as above, of `lower_lookup`.
        let function: LookupFunction = unsafe { std::mem::transmute(code.address() as usize) };
        let given = self.given.words.as_ptr();
        // SAFETY: the caller keeps the promises of `Lookup::run`; no numbers are given.
        counted(unsafe {
            function(inputs.as_ptr(), positions, rows as u64, given, table, tuples, found)
        })
    }
}

impl Compute for Asked {
    unsafe fn run(
        &self,
        inputs: &[RawInput],
        rows: usize,
        values: *mut u8,
        valid: *mut u8,
    ) -> bool {
        let (Piece::Compute(..), Some(Ok(code))) = (&self.wanted.piece, self.wanted.done.get())
        else {
            return false;
        };
        // SAFETY: as above, of `lower_compute`.
        let function: ComputeFunction = unsafe { std::mem::transmute(code.address() as usize) };
        let (given, all) = (self.given.words.as_ptr(), std::ptr::null());
        // SAFETY: the caller keeps the promises of `Compute::run`; for the numbers as above.
        let run = || unsafe { function(inputs.as_ptr(), all, rows as u64, given, values, valid) };
        counted(or_unwind(run)).is_some()
    }
}

impl HashKeys for Asked {
    unsafe fn run(
        &self,
        inputs: &[RawInput],
        positions: *const u32,
        rows: usize,
        out: *mut u64,
    ) -> bool {
        let (Piece::Hash(_), Some(Ok(code))) = (&self.wanted.piece, self.wanted.done.get()) else {
            return false;
        };
        // SAFETY: as above, of `lower_hash`.
        let function: HashFunction = unsafe { std::mem::transmute(code.address() as usize) };
        // SAFETY: the caller keeps the promises of `HashKeys::run`; no numbers are given.
        unsafe {
            function(inputs.as_ptr(), positions, rows as u64, self.given.words.as_ptr(), out)
        };
        true
    }
}

impl FindGroups for Asked {
    unsafe fn run(
        &self,
        inputs: &[RawInput],
        positions: *const u32,
        rows: usize,
        table: &mut RawGroups,
        groups: *mut u32,
    ) -> bool {
        let (Piece::Group(_), Some(Ok(code))) = (&self.wanted.piece, self.wanted.done.get()) else {
            return false;
        };
        // SAFETY: as above, of `lower_group`.
        let function: GroupFunction = unsafe { std::mem::transmute(code.address() as usize) };
        let given = self.given.words.as_ptr();
        // SAFETY: the caller keeps the promises of `FindGroups::run`; no numbers are given.
        unsafe { function(inputs.as_ptr(), positions, rows as u64, given, table, groups) == 0 }
    }
}

impl WriteRows for Asked {
    unsafe fn run(
        &self,
        inputs: &[RawInput],
        positions: *const u32,
        rows: usize,
        out: *mut u8,
        nulls: *mut u64,
    ) -> bool {
        let (Piece::Write(_), Some(Ok(code))) = (&self.wanted.piece, self.wanted.done.get()) else {
            return false;
        };
        // SAFETY: as above, of `lower_write`.
        let function: WriteFunction = unsafe { std::mem::transmute(code.address() as usize) };
        // SAFETY: the caller keeps the promises of `WriteRows::run`; no numbers are given.
        unsafe {
            function(inputs.as_ptr(), positions, rows as u64, self.given.words.as_ptr(), out, nulls)
        };
        true
    }
}

/// What some query wants, in whatever state its code is.
#[derive(Debug)]
struct Wanted {
    piece: Piece,
    /// The text of the piece is all of it: equal texts are equal code.
    text: Arc<str>,
    /// Tuples that would have gone through it so far.
    rows: AtomicU64,
    /// Whether it was looked for among files.
    looked_for: AtomicBool,
    asked: AtomicBool,
    done: OnceLock<Result<Loaded>>,
}

impl Wanted {
    fn new(piece: Piece) -> Wanted {
        Wanted {
            text: format!("{piece:?}").into(),
            piece,
            rows: AtomicU64::new(0),
            looked_for: AtomicBool::new(false),
            asked: AtomicBool::new(false),
            done: OnceLock::new(),
        }
    }

    /// What its code for a processor is made of.
    fn made_of(&self, processor: &Processor) -> String {
        format!("{}\n{}", processor.describe(), self.text)
    }

    /// Its code of a file.
    fn found(&self, processor: &Processor, files: &Files) -> Option<Loaded> {
        self.piece.linked(&files.load(&self.made_of(processor))?).ok()
    }
}

/// What all queries of this process share.
#[derive(Debug)]
struct Shared {
    kept: Mutex<Kept>,
    waiting: OnceLock<Option<Sender<Asked>>>,
    spent: Spent,
}

/// What compiling has taken.
#[derive(Debug, Default)]
pub(crate) struct Spent {
    pieces: AtomicU64,
    nanoseconds: AtomicU64,
}

impl Spent {
    /// One more piece.
    pub(crate) fn add(&self, nanoseconds: u64) {
        self.pieces.fetch_add(1, Ordering::Relaxed);
        self.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
    }

    /// How many pieces, and how long they took.
    pub(crate) fn get(&self) -> (usize, Duration) {
        let nanoseconds = Duration::from_nanos(self.nanoseconds.load(Ordering::Relaxed));
        (self.pieces.load(Ordering::Relaxed) as usize, nanoseconds)
    }
}

#[derive(Debug, Default)]
struct Kept {
    wanted: HashMap<Arc<str>, (Arc<Wanted>, u64)>,
    uses: u64,
}

static SHARED: LazyLock<Shared> = LazyLock::new(|| Shared {
    kept: Mutex::default(),
    waiting: OnceLock::new(),
    spent: Spent { pieces: AtomicU64::new(0), nanoseconds: AtomicU64::new(0) },
});

impl Shared {
    /// A piece: the one that another query wanted, or a new one in the place of what was used
    /// longest ago.
    fn wanted(&self, piece: Piece) -> Arc<Wanted> {
        let new = Wanted::new(piece);
        let mut kept = lock(&self.kept);
        kept.uses += 1;
        let now = kept.uses;
        if let Some((wanted, used)) = kept.wanted.get_mut(&new.text) {
            *used = now;
            return wanted.clone();
        }
        if kept.wanted.len() >= KEPT_MAX {
            let oldest =
                kept.wanted.iter().min_by_key(|(_, (_, used))| *used).map(|(key, _)| key.clone());
            oldest.and_then(|oldest| kept.wanted.remove(&oldest));
        }
        let wanted = Arc::new(new);
        kept.wanted.insert(wanted.text.clone(), (wanted.clone(), now));
        wanted
    }

    /// Links code that another run has left in a file, if there is any; once.
    fn look_for(&self, asked: &Asked) -> bool {
        let (wanted, Some(files)) = (&asked.wanted, &asked.kept) else { return false };
        if wanted.looked_for.swap(true, Ordering::Relaxed) {
            return false;
        }
        let _until_done = in_use::compiling();
        let found = Processor::at_hand().ok().and_then(|processor| wanted.found(processor, files));
        found.is_some_and(|code| wanted.done.set(Ok(code)).is_ok())
    }

    fn compile(&self, asked: &Asked) {
        let wanted = &asked.wanted;
        wanted.done.get_or_init(|| {
            let started = worked();
            let done = compile(wanted, asked.kept.as_deref());
            for spent in [&self.spent, &*asked.spent] {
                spent.add(worked().saturating_sub(started));
            }
            done
        });
    }

    /// What compiling takes, as far as is known.
    fn compile_nanoseconds(&self) -> u64 {
        let (pieces, total) = self.spent.get();
        (total.as_nanos() as u64).checked_div(pieces as u64).unwrap_or(COMPILE_NANOSECONDS)
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
            std::thread::Builder::new()
                .name("tessera-jit".to_string())
                .spawn(work)
                .ok()
                .map(|_| sender)
        };
        if let Some(sender) = self.waiting.get_or_init(start)
            && !asked.wanted.asked.swap(true, Ordering::Relaxed)
        {
            let _ = sender.send(asked.clone());
        }
    }
}

/// How long this thread has worked, in nanoseconds: who yields to others takes far longer by the
/// clock.
pub(crate) fn worked() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn compile(wanted: &Wanted, kept: Option<&Files>) -> Result<Loaded> {
    let processor = Processor::at_hand()?;
    // What cannot be linked is made anew.
    if let Some(code) = kept.and_then(|files| wanted.found(processor, files)) {
        return Ok(code);
    }
    thread_local! {
        /// Making it takes about as long as compiling a short function.
        static HOST: OnceCell<Result<Host<'static>>> = const { OnceCell::new() };
    }
    let object = HOST.with(|host| {
        let host = host.get_or_init(|| Host::new(processor)).as_ref().map_err(Error::clone)?;
        emitted(host, &wanted.piece, FileType::Object)
    })?;
    if let Some(files) = kept {
        files.save(&wanted.made_of(processor), &object);
    }
    wanted.piece.linked(&object)
}

/// The object file of a piece, or the assembler's text.
pub(crate) fn emitted(host: &Host<'_>, piece: &Piece, form: FileType) -> Result<Vec<u8>> {
    let context = Context::create();
    let module = lowered(host, &context, piece)?;
    let straight = host.processor.provider.is_alone() && piece.is_straight();
    host.emit((&context, &module), straight, form)
}

/// The IR of a piece, as it is made.
fn lowered<'ctx>(host: &Host<'_>, context: &'ctx Context, piece: &Piece) -> Result<Module<'ctx>> {
    let module = host.module(context);
    let (of, provider) = ((context, &module), host.processor.provider);
    piece.functions().into_iter().try_for_each(|function| link(of, provider, function))?;
    let lowered = match piece {
        Piece::Update(code, given) => lower_update(of, provider, (code, given)),
        Piece::Select(code, given) => {
            lower_select(of, (provider, host.processor.compresses()), (code, given))
        }
        Piece::Compute(code, given) => lower_compute(of, provider, (code, given)),
        Piece::Lookup(code) => lower_lookup(of, provider, code),
        Piece::Group(code) => lower_group(of, provider, code),
        Piece::Hash(code) => lower_hash(of, provider, code),
        Piece::Write(code) => lower_write(of, provider, code),
        Piece::Function(code) => lower_function(of, provider, code),
    };
    lowered.map_err(|error| Error::internal(format!("the compiler made wrong code: {error}")))?;
    Ok(module)
}

/// A compiler of one tier.
#[derive(Debug)]
pub(crate) struct Jit {
    tier: Tier,
    kept: Option<Arc<Files>>,
    spent: Arc<Spent>,
}

/// The compiler of a tier; none for the vectorised one.
pub(crate) fn compiler(tier: Tier, kept: Option<&Path>) -> Option<Arc<dyn Compiler>> {
    match tier {
        Tier::Vectorized => None,
        tier => {
            let kept = kept.map(|kept| Arc::new(Files::new(kept)));
            Some(Arc::new(Jit { tier, kept, spent: Arc::default() }))
        }
    }
}

impl Jit {
    fn asked(&self, (piece, given): (Piece, Given)) -> Asked {
        let (kept, spent) = (self.kept.clone(), self.spent.clone());
        Asked { wanted: SHARED.wanted(piece), given: Arc::new(given), tier: self.tier, kept, spent }
    }
}

impl Compiler for Jit {
    fn update(&self, code: UpdateCode) -> Arc<dyn Promise<dyn Update>> {
        Arc::new(self.asked(Piece::of_update(code)))
    }

    fn select(&self, code: SelectCode) -> Arc<dyn Promise<dyn Select>> {
        Arc::new(self.asked(Piece::of_select(code)))
    }

    fn lookup(&self, code: LookupCode) -> Option<Arc<dyn Promise<dyn Lookup>>> {
        Some(Arc::new(self.asked((Piece::Lookup(code), Given::default()))))
    }

    fn compute(&self, code: ComputeCode) -> Option<Arc<dyn Promise<dyn Compute>>> {
        Some(Arc::new(self.asked(Piece::of_compute(code))))
    }

    fn hash(&self, code: HashCode) -> Option<Arc<dyn Promise<dyn HashKeys>>> {
        Some(Arc::new(self.asked((Piece::Hash(code), Given::default()))))
    }

    fn find_groups(&self, code: GroupCode) -> Option<Arc<dyn Promise<dyn FindGroups>>> {
        Some(Arc::new(self.asked((Piece::Group(code), Given::default()))))
    }

    fn write(&self, code: WriteCode) -> Option<Arc<dyn Promise<dyn WriteRows>>> {
        Some(Arc::new(self.asked((Piece::Write(code), Given::default()))))
    }

    fn reads_lists(&self) -> bool {
        true
    }

    fn spent(&self) -> (usize, Duration) {
        self.spent.get()
    }
}

/// What one run asked for.
#[derive(Debug, Clone)]
struct Asked {
    wanted: Arc<Wanted>,
    /// What the code is given, as the piece has it.
    given: Arc<Given>,
    tier: Tier,
    kept: Option<Arc<Files>>,
    spent: Arc<Spent>,
}

impl Asked {
    /// Whether the code is there.
    fn is_there(&self, rows: usize) -> Result<bool> {
        let wanted = &self.wanted;
        if self.tier == Tier::Compiled {
            SHARED.compile(self);
        }
        match (wanted.done.get(), self.tier) {
            (Some(Ok(_)), _) => Ok(true),
            (Some(Err(error)), Tier::Compiled) => Err(error.clone()),
            (Some(Err(_)), _) => Ok(false),
            (None, _) => {
                let rows = wanted.rows.fetch_add(rows as u64, Ordering::Relaxed) + rows as u64;
                // Whoever has come so far is taken to have as much before it.
                let saved = rows * wanted.piece.weight() * SAVED_NANOSECONDS;
                if saved > LOAD_NANOSECONDS && SHARED.look_for(self) {
                    return Ok(true);
                }
                if saved > SHARED.compile_nanoseconds() {
                    SHARED.ask(self);
                }
                Ok(false)
            }
        }
    }
}

macro_rules! promise {
    ($($piece:ident),*) => { $(
        impl Promise<dyn $piece> for Asked {
            fn get(&self, rows: usize) -> Result<Option<&(dyn $piece + 'static)>> {
                Ok(self.is_there(rows)?.then_some(self))
            }
        }
    )* };
}
promise!(Update, Select, Compute, Lookup, HashKeys, FindGroups, WriteRows);

#[cfg(test)]
mod random;
#[cfg(test)]
mod rows;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod texts;
