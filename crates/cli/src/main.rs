//! The program `tessera`; all of it is in the library, which the program of ranks shares.

fn main() -> std::process::ExitCode {
    tessera_cli::main()
}
