//! Machine code in this process: an object file, linked. The only `unsafe` beside calling it.

use std::ffi::{CStr, CString};
use std::ptr::null_mut;

use inkwell::llvm_sys::core::LLVMCreateMemoryBufferWithMemoryRangeCopy;
use inkwell::llvm_sys::error::{LLVMDisposeErrorMessage, LLVMErrorRef, LLVMGetErrorMessage};
use inkwell::llvm_sys::orc2::lljit::{
    LLVMOrcCreateLLJIT, LLVMOrcDisposeLLJIT, LLVMOrcLLJITAddObjectFile, LLVMOrcLLJITGetMainJITDylib,
    LLVMOrcLLJITLookup, LLVMOrcLLJITRef,
};
use tessera_types::{Error, Result};

/// An object that was linked; its code is gone when it is dropped.
#[derive(Debug)]
pub(crate) struct Loaded {
    jit: LLVMOrcLLJITRef,
    address: u64,
}

// SAFETY: after linking nothing is done with the JIT but to dispose of it, once; code can run on any thread.
unsafe impl Send for Loaded {}
// SAFETY: as above.
unsafe impl Sync for Loaded {}

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
    Err(Error::internal(format!("compiled code could not be linked: {text}; run with --tier vectorized")))
}

impl Loaded {
    /// Links an object and finds a function in it.
    pub(crate) fn new(object: &[u8], function: &str) -> Result<Loaded> {
        let name = CString::new(function).map_err(|_| Error::internal("a function with a strange name"))?;
        let mut loaded = Loaded { jit: null_mut(), address: 0 };
        // SAFETY: pointers are to what lives here; no builder means the default one. The target was initialised before there could be
        // an object.
        check(unsafe { LLVMOrcCreateLLJIT(&mut loaded.jit, null_mut()) })?;
        // SAFETY: the bytes are copied; the JIT takes the buffer.
        unsafe {
            let bytes = LLVMCreateMemoryBufferWithMemoryRangeCopy(
                object.as_ptr().cast(),
                object.len(),
                name.as_ptr(),
            );
            check(LLVMOrcLLJITAddObjectFile(loaded.jit, LLVMOrcLLJITGetMainJITDylib(loaded.jit), bytes))?;
            check(LLVMOrcLLJITLookup(loaded.jit, &mut loaded.address, name.as_ptr()))?;
        }
        match loaded.address {
            0 => Err(Error::internal("compiled code lacks its function")),
            _ => Ok(loaded),
        }
    }

    /// Where the function begins.
    pub(crate) fn address(&self) -> u64 {
        self.address
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        if !self.jit.is_null() {
            // SAFETY: it was created here, and is disposed of once; who calls the code holds a reference to `self`.
            let ended = check(unsafe { LLVMOrcDisposeLLJIT(self.jit) });
            debug_assert!(ended.is_ok());
        }
    }
}
