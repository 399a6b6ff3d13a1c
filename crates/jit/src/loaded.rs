//! Machine code in this process: an object file, linked. The only `unsafe` beside calling it.

use std::ffi::{CStr, CString, c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

use inkwell::llvm_sys::core::LLVMCreateMemoryBufferWithMemoryRangeCopy;
use inkwell::llvm_sys::error::{LLVMDisposeErrorMessage, LLVMErrorRef, LLVMGetErrorMessage};
use inkwell::llvm_sys::orc2::lljit::{
    LLVMOrcCreateLLJIT, LLVMOrcLLJITAddObjectFile, LLVMOrcLLJITGetExecutionSession,
    LLVMOrcLLJITGetGlobalPrefix, LLVMOrcLLJITMangleAndIntern, LLVMOrcLLJITRef,
};
use inkwell::llvm_sys::orc2::{
    LLVMJITEvaluatedSymbol, LLVMJITSymbolFlags, LLVMJITSymbolGenericFlags, LLVMOrcAbsoluteSymbols,
    LLVMOrcCJITDylibSearchOrderElement, LLVMOrcCLookupSetElement, LLVMOrcCSymbolMapPair,
    LLVMOrcCSymbolMapPairs, LLVMOrcCreateDynamicLibrarySearchGeneratorForProcess,
    LLVMOrcExecutionSessionCreateBareJITDylib, LLVMOrcExecutionSessionLookup,
    LLVMOrcJITDylibAddGenerator, LLVMOrcJITDylibClear, LLVMOrcJITDylibDefine,
    LLVMOrcJITDylibLookupFlags, LLVMOrcJITDylibRef, LLVMOrcLookupKind, LLVMOrcSymbolLookupFlags,
    LLVMOrcSymbolStringPoolEntryRef, LLVMOrcSymbolStringPoolEntryStr,
};
use tessera_context::lock;
use tessera_types::{Error, Result};

use crate::ask::{ASK, ENDING, ENDING_NAME, ask};

/// An object that was linked; its code is gone when it is dropped.
#[derive(Debug)]
pub(crate) struct Loaded {
    linker: &'static Linker,
    /// Nobody else's while this lives.
    library: LLVMOrcJITDylibRef,
    address: u64,
}

/// Links all objects of the process. Making it takes ten times as long as linking, so that it
/// stays.
#[derive(Debug)]
struct Linker {
    jit: LLVMOrcLLJITRef,
    /// Empty libraries, for the next objects: they can be emptied, but not removed. Whoever links
    /// or empties one holds this: LLVM gives a thread what another has to link, and lets that one
    /// go before it is done.
    free: Mutex<Vec<LLVMOrcJITDylibRef>>,
    libraries: AtomicU64,
}

// SAFETY: LLVM's JIT locks what its functions share.
unsafe impl Send for Linker {}
// SAFETY: as above.
unsafe impl Sync for Linker {}
// SAFETY: what is done with the library is done by its owner, who has it alone; code can run on any
// thread.
unsafe impl Send for Loaded {}
// SAFETY: as above.
unsafe impl Sync for Loaded {}

fn failed(why: &str) -> Error {
    Error::internal(format!("compiled code could not be linked: {why}; run with --tier vectorized"))
}

fn check(error: LLVMErrorRef) -> Result<()> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: the error is one that LLVM has just given; its message is taken once, and freed.
    let text = unsafe {
        let message = LLVMGetErrorMessage(error);
        let text = CStr::from_ptr(message).to_string_lossy().into_owned();
        LLVMDisposeErrorMessage(message);
        text
    };
    Err(failed(&text))
}

fn name_of(text: &str) -> Result<CString> {
    CString::new(text).map_err(|_| failed("a strange name"))
}

/// What objects may take from the process: C's functions on floats, and what a processor's
/// instructions lack.
const LIBRARY: [&str; 40] = [
    "__divti3",
    "__modti3",
    "__muloti4",
    "__udivti3",
    "__umodti3",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cbrt",
    "ceil",
    "cos",
    "cosh",
    "erf",
    "erfc",
    "exp",
    "exp2",
    "expm1",
    "floor",
    "fma",
    "fmod",
    "hypot",
    "ldexp",
    "log",
    "log10",
    "log1p",
    "log2",
    "memcpy",
    "memmove",
    "memset",
    "pow",
    "rint",
    "round",
    "sin",
    "sinh",
    "tan",
    "tanh",
];

/// Whether objects may take it; also as a function on 32-bit floats (`expf`).
pub(crate) fn is_in_library(name: &str) -> bool {
    let is_in = |name: &str| LIBRARY.binary_search(&name).is_ok();
    is_in(name) || name.strip_suffix('f').is_some_and(is_in)
}

extern "C" fn may_be_linked(_: *mut c_void, symbol: LLVMOrcSymbolStringPoolEntryRef) -> c_int {
    // SAFETY: LLVM holds the symbol while it asks for it.
    let name = unsafe { CStr::from_ptr(LLVMOrcSymbolStringPoolEntryStr(symbol)) };
    name.to_str().is_ok_and(is_in_library).into()
}

/// Where a symbol was found, or why it was not.
type Found = Result<u64>;

/// Notes the only symbol of a look-up.
extern "C" fn note_found(
    error: LLVMErrorRef,
    symbols: LLVMOrcCSymbolMapPairs,
    count: usize,
    found: *mut c_void,
) {
    let result = match check(error) {
        Err(error) => Err(error),
        Ok(()) if count == 0 => Err(failed("it lacks its function")),
        // SAFETY: there is one.
        Ok(()) => Ok(unsafe { (*symbols).Sym.Address }),
    };
    // SAFETY: `address_in` gave this pointer, and waits.
    unsafe { *found.cast::<Found>() = result };
}

impl Linker {
    /// The one of this process.
    fn get() -> Result<&'static Linker> {
        static LINKER: OnceLock<Result<Linker>> = OnceLock::new();
        let make = || {
            let mut jit = null_mut();
            // SAFETY: no builder means the default one.
            check(unsafe { LLVMOrcCreateLLJIT(&mut jit, null_mut()) })?;
            Ok(Linker { jit, free: Mutex::default(), libraries: AtomicU64::new(0) })
        };
        LINKER.get_or_init(make).as_ref().map_err(Error::clone)
    }

    /// An empty library.
    fn library(&self, free: &mut Vec<LLVMOrcJITDylibRef>) -> Result<LLVMOrcJITDylibRef> {
        if let Some(library) = free.pop() {
            return Ok(library);
        }
        let name = name_of(&format!("library {}", self.libraries.fetch_add(1, Ordering::Relaxed)))?;
        let mut others = null_mut();
        // SAFETY: the name is copied, and no other library has it; its generator goes to the
        // library.
        unsafe {
            let library = LLVMOrcExecutionSessionCreateBareJITDylib(
                LLVMOrcLLJITGetExecutionSession(self.jit),
                name.as_ptr(),
            );
            let prefix = LLVMOrcLLJITGetGlobalPrefix(self.jit);
            check(LLVMOrcCreateDynamicLibrarySearchGeneratorForProcess(
                &mut others,
                prefix,
                Some(may_be_linked),
                null_mut(),
            ))?;
            LLVMOrcJITDylibAddGenerator(library, others);
            Ok(library)
        }
    }

    /// Defines what code asks with ([`crate::ask`]).
    fn define(&self, library: LLVMOrcJITDylibRef) -> Result<()> {
        use LLVMJITSymbolGenericFlags::{
            LLVMJITSymbolGenericFlagsCallable as CALLABLE,
            LLVMJITSymbolGenericFlagsExported as EXPORTED,
        };
        let symbols = [
            (ASK, ask as *const () as u64, EXPORTED as u8 | CALLABLE as u8),
            (ENDING_NAME, ENDING.as_ptr() as u64, EXPORTED as u8),
        ];
        let pair = |(name, address, flags): (&str, u64, u8)| {
            let name = name_of(name)?;
            let flags = LLVMJITSymbolFlags { GenericFlags: flags, TargetFlags: 0 };
            // SAFETY: the name is copied; its reference goes to the symbols.
            let name = unsafe { LLVMOrcLLJITMangleAndIntern(self.jit, name.as_ptr()) };
            Ok(LLVMOrcCSymbolMapPair {
                Name: name,
                Sym: LLVMJITEvaluatedSymbol { Address: address, Flags: flags },
            })
        };
        let mut pairs = symbols.into_iter().map(pair).collect::<Result<Vec<_>>>()?;
        // SAFETY: the pairs are copied, and the symbols go to the library, which has none of these
        // names. What they stand for lives as long as the process.
        check(unsafe {
            LLVMOrcJITDylibDefine(library, LLVMOrcAbsoluteSymbols(pairs.as_mut_ptr(), pairs.len()))
        })
    }

    /// Links an object into an empty library; gives where a function of it begins.
    fn link(&self, library: LLVMOrcJITDylibRef, object: &[u8], function: &str) -> Found {
        self.define(library)?;
        let name = name_of(function)?;
        // SAFETY: the bytes are copied; the JIT takes the buffer.
        check(unsafe {
            let bytes = LLVMCreateMemoryBufferWithMemoryRangeCopy(
                object.as_ptr().cast(),
                object.len(),
                name.as_ptr(),
            );
            LLVMOrcLLJITAddObjectFile(self.jit, library, bytes)
        })?;
        match self.address_in(library, function)? {
            0 => Err(failed("it lacks its function")),
            address => Ok(address),
        }
    }

    /// Where a function of a library begins.
    fn address_in(&self, library: LLVMOrcJITDylibRef, function: &str) -> Found {
        let name = name_of(function)?;
        let mut found: Found = Err(failed("nothing was found"));
        // SAFETY: pointers are to what lives here, until the call returns: without threads of its
        // own, LLVM links within it, as long as nobody else has it link. The name's reference goes
        // to the look-up.
        unsafe {
            let mut order = [LLVMOrcCJITDylibSearchOrderElement {
                JD: library,
                JDLookupFlags:
                    LLVMOrcJITDylibLookupFlags::LLVMOrcJITDylibLookupFlagsMatchAllSymbols,
            }];
            let mut symbols = [LLVMOrcCLookupSetElement {
                Name: LLVMOrcLLJITMangleAndIntern(self.jit, name.as_ptr()),
                LookupFlags: LLVMOrcSymbolLookupFlags::LLVMOrcSymbolLookupFlagsRequiredSymbol,
            }];
            LLVMOrcExecutionSessionLookup(
                LLVMOrcLLJITGetExecutionSession(self.jit),
                LLVMOrcLookupKind::LLVMOrcLookupKindStatic,
                order.as_mut_ptr(),
                order.len(),
                symbols.as_mut_ptr(),
                symbols.len(),
                note_found,
                (&raw mut found).cast(),
            );
        }
        found
    }
}

/// Empties a library that nobody uses any more.
fn empty(library: LLVMOrcJITDylibRef, free: &mut Vec<LLVMOrcJITDylibRef>) {
    // SAFETY: the caller has it alone, and holds what is free.
    let emptied = check(unsafe { LLVMOrcJITDylibClear(library) });
    debug_assert!(emptied.is_ok());
    // One that could not be emptied is not used again.
    if emptied.is_ok() {
        free.push(library);
    }
}

impl Loaded {
    /// Links an object and finds a function in it.
    pub(crate) fn new(object: &[u8], function: &str) -> Result<Loaded> {
        let linker = Linker::get()?;
        let mut free = lock(&linker.free);
        let library = linker.library(&mut free)?;
        match linker.link(library, object, function) {
            Ok(address) => Ok(Loaded { linker, library, address }),
            Err(error) => {
                empty(library, &mut free);
                Err(error)
            }
        }
    }

    /// Where the function begins.
    pub(crate) fn address(&self) -> u64 {
        self.address
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        // Who calls the code holds a reference to `self`; the library is this one's alone.
        empty(self.library, &mut lock(&self.linker.free));
    }
}
