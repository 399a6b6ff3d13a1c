//! The process that is a virtual GPU; `tessera --device virtual-gpu` starts it.

use std::process::ExitCode;

fn main() -> ExitCode {
    match tessera_jit::serve_virtual_gpu() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tessera-virtual-gpu: {error}");
            ExitCode::FAILURE
        }
    }
}
