//! The device process of the virtual GPU, started by `tessera --device virtual-gpu`.

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
