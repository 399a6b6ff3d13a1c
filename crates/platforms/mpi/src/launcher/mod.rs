//! Starts ranks with `mpiexec` and monitors them.
//!
//! Every rank holds a connection to the launcher for as long as it lives (`control`). So the
//! launcher knows which rank was lost, with any MPI library; a rank notices when the launcher is
//! gone; and neither outlives the other.

mod canceller;
mod listener;
mod rank_messages;
mod rank_states;
mod shared_memory;

use std::ffi::OsString;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant, SystemTime};

use tempfile::TempDir;
use tessera_types::{Code, Error, Result};

pub use canceller::Canceller;
use listener::Listener;
use rank_messages::{RankMessage, forward};
use rank_states::RankStates;
use shared_memory::remove_segments;

/// The environment variable with the path of the launcher's socket.
pub const CONTROL: &str = "TESSERA_CONTROL";
/// The variable with the socket where rank 0 gets the standard input of the launcher.
pub const INPUT: &str = "TESSERA_MPI_INPUT";
/// The environment variable for the rank program. The default is `tessera-mpi` next to this program
/// or on the path.
const PROGRAM: &str = "TESSERA_MPI";
/// The environment variable for the program that starts ranks. The default is `mpiexec` on the
/// path.
const MPIEXEC: &str = "TESSERA_MPIEXEC";

/// How long ranks may take to end by themselves after one was lost.
const GRACE: Duration = Duration::from_secs(3);
/// How long the report of a rank that ends itself may take to arrive.
const REPORT_DELAY: Duration = Duration::from_millis(200);
/// Intervals at which the launcher checks whether `mpiexec` has ended; the second one applies after
/// all ranks have reported their end.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
const POLL_INTERVAL_AT_END: Duration = Duration::from_millis(1);

/// An event about a rank.
#[derive(Debug)]
pub(crate) enum Event {
    Connected {
        rank: usize,
        pid: i32,
    },
    /// MPI has started on a rank.
    Ready,
    Done,
    Exit(u8),
    Lost {
        rank: usize,
        pid: i32,
    },
    /// MPI aborts this rank.
    Aborted {
        rank: usize,
    },
    /// `mpiexec` reports that this process failed.
    Blamed {
        pid: i32,
    },
}

/// The running ranks.
#[derive(Debug)]
pub struct RunningRanks {
    child: Child,
    ranks: usize,
    events: Receiver<Event>,
    /// The socket that ranks connect to, kept until they have ended.
    _socket: Socket,
    since: SystemTime,
    canceller: Canceller,
    /// The thread that forwards the ranks' standard error and returns the lines of MPI.
    errors: Option<std::thread::JoinHandle<Vec<RankMessage>>>,
}

/// Passes the standard input on to the first process that connects to a socket. MPICH's `mpiexec`
/// ends a rank that reads it more slowly than it comes.
fn pass_input_on(socket: &Path) -> std::io::Result<()> {
    let listener = UnixListener::bind(socket)?;
    std::thread::spawn(move || {
        let (mut reader, _) = listener.accept()?;
        // The rank that reads may end before the input does.
        std::io::copy(&mut std::io::stdin().lock(), &mut reader)
    });
    Ok(())
}

/// Starts `ranks` ranks with these arguments; `canceller` cancels their statements.
///
/// # Errors
/// `mpiexec` or the program for ranks is missing; the message says how to get them.
pub fn launch(
    ranks: usize,
    arguments: &[OsString],
    with_input: bool,
    canceller: &Canceller,
) -> Result<RunningRanks> {
    let program = program()?;
    let since = SystemTime::now();
    let socket = Socket::new().map_err(|error| {
        let all = std::env::temp_dir();
        Error::io(format!("cannot create a directory in '{}': {error}", all.display()))
    })?;
    let cannot = |error: std::io::Error| {
        Error::io(format!("cannot listen on '{}': {error}", socket.path().display()))
    };
    let events = channel();
    let (sender, blamed) = (events.0.clone(), events.0);
    let mut listener = Listener::bind(&socket.path(), sender, canceller.clone()).map_err(cannot)?;
    std::thread::spawn(move || listener.listen());
    let input = with_input.then(|| socket.directory.path().join("input"));
    if let Some(path) = &input {
        pass_input_on(path).map_err(cannot)?;
    }
    let mpiexec = std::env::var_os(MPIEXEC).unwrap_or_else(|| "mpiexec".into());
    let child = Command::new(&mpiexec)
        .arg("-n")
        .arg(ranks.to_string())
        .arg(program)
        .args(arguments)
        .env(CONTROL, socket.path())
        .envs(input.map(|input| (INPUT, input)))
        // The launcher forwards interrupts.
        .process_group(0)
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = child.map_err(|error| {
        Error::io(format!(
            "cannot start '{}': {error}; install MPICH or Open MPI, or set {MPIEXEC}",
            Path::new(&mpiexec).display()
        ))
    })?;
    let errors =
        child.stderr.take().map(|errors| std::thread::spawn(move || forward(errors, &blamed)));
    let (events, canceller) = (events.1, canceller.clone());
    Ok(RunningRanks { child, ranks, events, _socket: socket, since, canceller, errors })
}

fn program() -> Result<PathBuf> {
    if let Some(program) = std::env::var_os(PROGRAM) {
        return Ok(program.into());
    }
    let name = "tessera-mpi";
    let beside = std::env::current_exe()
        .ok()
        .map(|own| own.with_file_name(name))
        .filter(|path| path.exists());
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path =
        || std::env::split_paths(&path).map(|folder| folder.join(name)).find(|path| path.exists());
    beside.or_else(on_path).ok_or_else(|| {
        Error::unsupported(format!(
            "cannot find {name} next to this program or on the path; build it against your MPI library (cargo build --release -p \
             tessera-mpi) or set {PROGRAM}"
        ))
    })
}

impl RunningRanks {
    /// Waits until all ranks have ended, and returns the exit code of the first rank's work.
    ///
    /// # Errors
    /// A rank was lost: the error names it, and the others are ended. Or the statement was
    /// cancelled while MPI started, which reacts to nothing until it has: no work had begun, and
    /// the ranks are ended.
    pub fn wait(mut self, start_timeout: Option<Duration>) -> Result<u8> {
        let (started, since) = (Instant::now(), self.since);
        let mut states = RankStates::default();
        let result = loop {
            let at_most =
                if states.done == self.ranks { POLL_INTERVAL_AT_END } else { POLL_INTERVAL };
            match self.events.recv_timeout(at_most) {
                Ok(event) => states.take(event),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    let ended = self.child.try_wait();
                    let ended = ended
                        .map_err(|error| Error::io(format!("cannot wait for mpiexec: {error}")))?;
                    match ended {
                        Some(status) => break self.outcome(&mut states, Some(status)),
                        None => {
                            let late = |timeout: &Duration| started.elapsed() > *timeout;
                            if states.connected.len() < self.ranks
                                && let Some(timeout) = start_timeout.filter(late)
                            {
                                break Err(Error::io(format!(
                                    "only {} of {} ranks started within {} s (--mpi-start-timeout); check which program {MPIEXEC} names",
                                    states.connected.len(),
                                    self.ranks,
                                    timeout.as_secs_f64()
                                )));
                            }
                        }
                    }
                }
            }
            if !states.lost.is_empty() {
                break self.outcome(&mut states, None);
            }
            if states.ready < self.ranks && self.canceller.is_cancelled() {
                break Err(Error::new(Code::Cancelled, "the query was cancelled"));
            }
        };
        if result.is_err() || states.done < self.ranks {
            let pids: Vec<i32> = states.connected.iter().map(|(_, pid)| *pid).collect();
            self.end(&pids);
            remove_segments(since);
        }
        let messages = self.errors.take().and_then(|errors| errors.join().ok()).unwrap_or_default();
        let first = states.first_lost().map(|(rank, _)| rank);
        // Messages about ranks that were lost later only repeat the error.
        let matters = |rank: &Option<usize>| {
            rank.is_some_and(|_| *rank == first) || states.connected.is_empty()
        };
        let was_lost = result.as_ref().is_err_and(|error| error.code() != Code::Cancelled);
        let shown = messages.iter().filter(|(rank, _)| was_lost && matters(rank));
        shown.for_each(|(_, line)| eprintln!("{line}"));
        result
    }

    /// Returns the exit code, or an error that names the rank lost first. Reports of ranks may
    /// arrive after `mpiexec` has ended. Until all ranks have connected, the lost one may be
    /// unknown here, so this waits for `mpiexec` to name its process.
    fn outcome(&self, states: &mut RankStates, status: Option<ExitStatus>) -> Result<u8> {
        let after = "the other ranks have been ended, and nothing was written";
        let mut until = Instant::now() + GRACE;
        let is_known =
            |states: &RankStates| !states.lost.is_empty() && states.connected.len() == self.ranks;
        while states.code.is_none() || states.done < self.ranks {
            if is_known(states) {
                until = until.min(Instant::now() + REPORT_DELAY);
            }
            match self.events.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(event) => states.take(event),
                Err(_) => break,
            }
            if states.blamed.is_some() && !is_known(states) {
                break;
            }
        }
        if let (Some(code), true) = (states.code, states.done == self.ranks) {
            return Ok(code);
        }
        // A reported failure stands, even if a rank was lost after it while MPI ended.
        if let Some(code) = states.code.filter(|code| *code != 0) {
            return Ok(code);
        }
        if let (Some((rank, pid)), true) = (states.first_lost(), is_known(states)) {
            return Err(Error::io(format!("rank {rank} (process {pid}) was lost; {after}")));
        }
        let rank_of = |pid: i32| {
            states.connected.iter().find(|(_, other)| *other == pid).map(|(rank, _)| *rank)
        };
        Err(match states.blamed {
            Some(pid) => match rank_of(pid) {
                Some(rank) => Error::io(format!("rank {rank} (process {pid}) was lost; {after}")),
                None => Error::io(format!(
                    "a rank (process {pid}) was lost before it connected; {after}"
                )),
            },
            None => {
                let signal = status
                    .and_then(|status| status.signal())
                    .map(|signal| format!("by signal {signal}"));
                let code = status
                    .and_then(|status| status.code())
                    .map(|code| format!("with exit code {code}"));
                let how = signal
                    .or(code)
                    .map(|how| format!(" (mpiexec ended {how})"))
                    .unwrap_or_default();
                Error::io(format!("a rank was lost before it connected{how}; {after}"))
            }
        })
    }

    /// Ends `mpiexec` and all ranks.
    fn end(&mut self, pids: &[i32]) {
        let group = self.child.id() as i32;
        signal(-group, libc::SIGTERM);
        let until = Instant::now() + GRACE;
        while Instant::now() < until && !matches!(self.child.try_wait(), Ok(Some(_)) | Err(_)) {
            std::thread::sleep(POLL_INTERVAL_AT_END);
        }
        for pid in pids {
            signal(*pid, libc::SIGKILL);
        }
        signal(-group, libc::SIGKILL);
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Sends a signal to a process, or with a negative number to its group.
fn signal(pid: i32, signal: i32) {
    // 0 would be this process's own group, and -1 every process.
    if pid.abs() > 1 {
        // SAFETY: the call takes two numbers and does not access memory of this process.
        unsafe { libc::kill(pid, signal) };
    }
}

/// The launcher's socket, in a directory that only this user can access and that is removed on
/// drop.
#[derive(Debug)]
struct Socket {
    directory: TempDir,
}

impl Socket {
    fn new() -> std::io::Result<Socket> {
        let for_owner = Permissions::from_mode(0o700);
        let directory =
            tempfile::Builder::new().prefix("tessera-mpi-").permissions(for_owner).tempdir()?;
        Ok(Socket { directory })
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("socket")
    }
}

#[cfg(test)]
mod tests;
