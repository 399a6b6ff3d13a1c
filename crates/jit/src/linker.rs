//! Links object files into this process. All `unsafe` code of the compiled tier is here, in calls
//! of compiled code, and in the GPU drivers.

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

use crate::stop::{POLL, STOPPING, STOPPING_NAME, poll};

/// A linked object; dropping it unloads its code.
#[derive(Debug)]
pub(crate) struct LoadedCode {
    linker: &'static Linker,
    /// No other object uses it while this one lives.
    library: LLVMOrcJITDylibRef,
    address: u64,
}

/// The linker of the process. Creating one takes ten times as long as linking an object, so there
/// is only one.
#[derive(Debug)]
struct Linker {
    jit: LLVMOrcLLJITRef,
    /// Emptied libraries for later objects, because a library cannot be removed. The lock is held
    /// while an object is linked or a library is emptied: LLVM may hand one thread's work to
    /// another thread and return before that work is done.
    free: Mutex<Vec<LLVMOrcJITDylibRef>>,
    libraries: AtomicU64,
}

// SAFETY: LLVM's JIT synchronizes access to its shared state.
unsafe impl Send for Linker {}
// SAFETY: as above.
unsafe impl Sync for Linker {}
// SAFETY: only the owner of the library modifies it; code can run on any thread.
unsafe impl Send for LoadedCode {}
// SAFETY: as above.
unsafe impl Sync for LoadedCode {}

fn link_error(why: &str) -> Error {
    Error::internal(format!("compiled code could not be linked: {why}; run with --tier vectorized"))
}

fn check(error: LLVMErrorRef) -> Result<()> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: LLVM has just returned the error; its message is taken once and freed.
    let text = unsafe {
        let message = LLVMGetErrorMessage(error);
        let text = CStr::from_ptr(message).to_string_lossy().into_owned();
        LLVMDisposeErrorMessage(message);
        text
    };
    Err(link_error(&text))
}

fn c_string(text: &str) -> Result<CString> {
    CString::new(text).map_err(|_| link_error("a symbol name contains a zero byte"))
}

/// Sorted names of the process's symbols that objects may use: C's math functions, and runtime
/// functions for operations that processors lack.
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

/// Returns whether objects may link a symbol; also its variant for 32-bit floats (`expf`).
pub(crate) fn is_in_library(name: &str) -> bool {
    let is_in = |name: &str| LIBRARY.binary_search(&name).is_ok();
    is_in(name) || name.strip_suffix('f').is_some_and(is_in)
}

extern "C" fn is_allowed(_: *mut c_void, symbol: LLVMOrcSymbolStringPoolEntryRef) -> c_int {
    // SAFETY: LLVM keeps the symbol alive during this call.
    let name = unsafe { CStr::from_ptr(LLVMOrcSymbolStringPoolEntryStr(symbol)) };
    name.to_str().is_ok_and(is_in_library).into()
}

/// The address of a symbol, or why it was not found.
type AddressResult = Result<u64>;

/// Stores the result of a look-up of one symbol.
extern "C" fn store_address(
    error: LLVMErrorRef,
    symbols: LLVMOrcCSymbolMapPairs,
    count: usize,
    found: *mut c_void,
) {
    let result = match check(error) {
        Err(error) => Err(error),
        Ok(()) if count == 0 => Err(link_error("its function is missing")),
        // SAFETY: `count` is not zero.
        Ok(()) => Ok(unsafe { (*symbols).Sym.Address }),
    };
    // SAFETY: `address_in` passed this pointer, and waits for the call.
    unsafe { *found.cast::<AddressResult>() = result };
}

impl Linker {
    /// Returns the linker of this process.
    fn get() -> Result<&'static Linker> {
        static LINKER: OnceLock<Result<Linker>> = OnceLock::new();
        let make = || {
            let mut jit = null_mut();
            // SAFETY: a null builder selects the default.
            check(unsafe { LLVMOrcCreateLLJIT(&mut jit, null_mut()) })?;
            Ok(Linker { jit, free: Mutex::default(), libraries: AtomicU64::new(0) })
        };
        LINKER.get_or_init(make).as_ref().map_err(Error::clone)
    }

    /// Returns an empty library.
    fn library(&self, free: &mut Vec<LLVMOrcJITDylibRef>) -> Result<LLVMOrcJITDylibRef> {
        if let Some(library) = free.pop() {
            return Ok(library);
        }
        let name =
            c_string(&format!("library {}", self.libraries.fetch_add(1, Ordering::Relaxed)))?;
        let mut others = null_mut();
        // SAFETY: the name is copied and unique; the library takes ownership of its generator.
        unsafe {
            let library = LLVMOrcExecutionSessionCreateBareJITDylib(
                LLVMOrcLLJITGetExecutionSession(self.jit),
                name.as_ptr(),
            );
            let prefix = LLVMOrcLLJITGetGlobalPrefix(self.jit);
            check(LLVMOrcCreateDynamicLibrarySearchGeneratorForProcess(
                &mut others,
                prefix,
                Some(is_allowed),
                null_mut(),
            ))?;
            LLVMOrcJITDylibAddGenerator(library, others);
            Ok(library)
        }
    }

    /// Defines the symbols for polling ([`crate::stop`]).
    fn define(&self, library: LLVMOrcJITDylibRef) -> Result<()> {
        use LLVMJITSymbolGenericFlags::{
            LLVMJITSymbolGenericFlagsCallable as CALLABLE,
            LLVMJITSymbolGenericFlagsExported as EXPORTED,
        };
        let symbols = [
            (POLL, poll as *const () as u64, EXPORTED as u8 | CALLABLE as u8),
            (STOPPING_NAME, STOPPING.as_ptr() as u64, EXPORTED as u8),
        ];
        let pair = |(name, address, flags): (&str, u64, u8)| {
            let name = c_string(name)?;
            let flags = LLVMJITSymbolFlags { GenericFlags: flags, TargetFlags: 0 };
            // SAFETY: the name is copied; the symbol list takes ownership of its reference.
            let name = unsafe { LLVMOrcLLJITMangleAndIntern(self.jit, name.as_ptr()) };
            Ok(LLVMOrcCSymbolMapPair {
                Name: name,
                Sym: LLVMJITEvaluatedSymbol { Address: address, Flags: flags },
            })
        };
        let mut pairs = symbols.into_iter().map(pair).collect::<Result<Vec<_>>>()?;
        // SAFETY: the pairs are copied, and the library, which has none of these names, takes
        // ownership of the symbols. Their addresses stay valid for the life of the process.
        check(unsafe {
            LLVMOrcJITDylibDefine(library, LLVMOrcAbsoluteSymbols(pairs.as_mut_ptr(), pairs.len()))
        })
    }

    /// Links an object into an empty library; returns the address of one of its functions.
    fn link(&self, library: LLVMOrcJITDylibRef, object: &[u8], function: &str) -> AddressResult {
        self.define(library)?;
        let name = c_string(function)?;
        // SAFETY: the bytes are copied; the JIT takes ownership of the buffer.
        check(unsafe {
            let bytes = LLVMCreateMemoryBufferWithMemoryRangeCopy(
                object.as_ptr().cast(),
                object.len(),
                name.as_ptr(),
            );
            LLVMOrcLLJITAddObjectFile(self.jit, library, bytes)
        })?;
        match self.address_in(library, function)? {
            0 => Err(link_error("its function is missing")),
            address => Ok(address),
        }
    }

    /// Returns the address of a function of a library.
    fn address_in(&self, library: LLVMOrcJITDylibRef, function: &str) -> AddressResult {
        let name = c_string(function)?;
        let mut found: AddressResult = Err(link_error("the look-up returned no result"));
        // SAFETY: all pointers are to locals that live until the call returns: LLVM has no threads
        // of its own here and links within the call, because the lock on `free` excludes other
        // threads. The look-up takes ownership of the name's reference.
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
                store_address,
                (&raw mut found).cast(),
            );
        }
        found
    }
}

/// Empties a library that is no longer used.
fn empty(library: LLVMOrcJITDylibRef, free: &mut Vec<LLVMOrcJITDylibRef>) {
    // SAFETY: the caller owns the library and holds the lock on `free`.
    let emptied = check(unsafe { LLVMOrcJITDylibClear(library) });
    debug_assert!(emptied.is_ok());
    // A library that could not be emptied is not reused.
    if emptied.is_ok() {
        free.push(library);
    }
}

impl LoadedCode {
    /// Links an object and looks up a function in it.
    pub(crate) fn new(object: &[u8], function: &str) -> Result<LoadedCode> {
        let linker = Linker::get()?;
        let mut free = lock(&linker.free);
        let library = linker.library(&mut free)?;
        match linker.link(library, object, function) {
            Ok(address) => Ok(LoadedCode { linker, library, address }),
            Err(error) => {
                empty(library, &mut free);
                Err(error)
            }
        }
    }

    /// Returns the address of the function.
    pub(crate) fn address(&self) -> u64 {
        self.address
    }
}

impl Drop for LoadedCode {
    fn drop(&mut self) {
        // Callers of the code hold a reference to `self`, and `self` alone uses the library.
        empty(self.library, &mut lock(&self.linker.free));
    }
}
