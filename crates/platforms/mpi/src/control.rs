//! A rank's connection to the launcher that started it.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::sync::Mutex;

use crate::launcher::CONTROL;

/// The environment variables in which MPI launchers give a process its rank.
const RANK: [&str; 4] = ["PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "MPI_LOCALRANKID"];
/// The exit code of a rank that lost its launcher.
const EXIT_ABANDONED: i32 = 1;

/// The connection to the launcher. Without a launcher, messages are dropped and none arrive.
#[derive(Debug)]
pub struct Control {
    connection: Option<Mutex<UnixStream>>,
}

impl Control {
    /// Connects to the launcher that the environment names. `cancel` is called when the launcher
    /// asks for a cancellation; the process ends when the launcher does. Call this first, so that
    /// the launcher notices a rank that is lost early.
    pub fn connect(cancel: impl Fn() + Send + 'static) -> Control {
        // MPI reports the rank only after its initialization.
        let rank = RANK
            .iter()
            .find_map(|name| std::env::var(name).ok()?.parse::<usize>().ok())
            .unwrap_or(0);
        let Some(path) = std::env::var_os(CONTROL) else { return Control { connection: None } };
        let connection = UnixStream::connect(&path).unwrap_or_else(|error| {
            eprintln!("error: cannot connect to the launcher at '{}': {error}", path.display());
            std::process::exit(EXIT_ABANDONED)
        });
        if let Ok(reader) = connection.try_clone() {
            std::thread::spawn(move || {
                for line in BufReader::new(reader).lines().map_while(Result::ok) {
                    if line == "cancel" {
                        cancel();
                    }
                }
                // Exit without cleanup: other threads are running, perhaps in a library, and a
                // regular exit would destroy their data. SAFETY: `_exit` ends the process in any
                // state.
                unsafe { libc::_exit(EXIT_ABANDONED) }
            });
        }
        let control = Control { connection: Some(Mutex::new(connection)) };
        control.send(&format!("rank {rank} {}", std::process::id()));
        control
    }

    fn send(&self, line: &str) {
        if let Some(Ok(mut connection)) = self.connection.as_ref().map(Mutex::lock) {
            drop(connection.write_all(format!("{line}\n").as_bytes()));
        }
    }

    /// Reports that MPI has started; from then on the rank reacts to cancellations.
    pub fn ready(&self) {
        self.send("ready");
    }

    /// Reports the exit code of the first rank's work.
    pub fn exit(&self, code: u8) {
        self.send(&format!("exit {code}"));
    }

    /// Reports that this process ends on purpose. Returns whether a launcher is connected.
    pub fn done(&self) -> bool {
        self.send("done");
        self.connection.is_some()
    }
}
