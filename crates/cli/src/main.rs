//! The program `tessera`. Its code is in the library, which `tessera-mpi` shares.

fn main() -> std::process::ExitCode {
    tessera_cli::main()
}
