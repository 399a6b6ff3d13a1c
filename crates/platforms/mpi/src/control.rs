//! A rank's connection to the launcher that started it.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::sync::Mutex;

use crate::launcher::CONTROL;

/// Where launchers of MPI tell a process its rank.
const RANK: [&str; 4] = ["PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "MPI_LOCALRANKID"];
/// A rank whose launcher is gone ends with this code.
const EXIT_ABANDONED: i32 = 1;

/// The connection; without a launcher nothing is said and nothing is heard.
#[derive(Debug)]
pub struct Control {
    connection: Option<Mutex<UnixStream>>,
}

impl Control {
    /// Connects, where a launcher is named in the environment. `cancel` is called when the launcher
    /// asks for that; the process ends when the launcher does. To be called first of all, so that a
    /// rank that is lost early is known.
    pub fn connect(cancel: impl Fn() + Send + 'static) -> Control {
        // MPI itself tells only when it has been initialised.
        let rank = RANK
            .iter()
            .find_map(|name| std::env::var(name).ok()?.parse::<usize>().ok())
            .unwrap_or(0);
        let Some(path) = std::env::var_os(CONTROL) else { return Control { connection: None } };
        let connection = UnixStream::connect(&path).unwrap_or_else(|error| {
            eprintln!("error: no launcher at '{}': {error}", path.display());
            std::process::exit(EXIT_ABANDONED)
        });
        if let Ok(heard) = connection.try_clone() {
            std::thread::spawn(move || {
                for line in BufReader::new(heard).lines().map_while(Result::ok) {
                    if line == "cancel" {
                        cancel();
                    }
                }
                // At once: other threads are at work, perhaps in a library whose data an orderly
                // end would take away. SAFETY: ends the process, whatever its state.
                unsafe { libc::_exit(EXIT_ABANDONED) }
            });
        }
        let control = Control { connection: Some(Mutex::new(connection)) };
        control.say(&format!("rank {rank} {}", std::process::id()));
        control
    }

    fn say(&self, line: &str) {
        if let Some(Ok(mut connection)) = self.connection.as_ref().map(Mutex::lock) {
            drop(connection.write_all(format!("{line}\n").as_bytes()));
        }
    }

    /// Says that MPI has started here: from now on the rank hears when it is cancelled.
    pub fn ready(&self) {
        self.say("ready");
    }

    /// Says what the first rank's work ended with.
    pub fn exit(&self, code: u8) {
        self.say(&format!("exit {code}"));
    }

    /// Says that the end of this process is meant; whether there is somebody to say it to.
    pub fn done(&self) -> bool {
        self.say("done");
        self.connection.is_some()
    }
}
