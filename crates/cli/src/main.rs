//! The program `tessera`; all of it is in the library, which `tessera-mpi` shares.

fn main() -> std::process::ExitCode {
    tessera_cli::main()
}
