//! Starts ranks with `mpiexec`, and watches over them.
//!
//! Every rank holds a connection to the launcher for as long as it lives (`control`). So the launcher knows which rank was
//! lost when one is, whichever MPI started them; a rank knows when the launcher is gone; and neither is left behind.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tessera_types::{Error, Result};

/// Where a rank finds its launcher: the path of a socket.
pub const CONTROL: &str = "TESSERA_CONTROL";
/// The program that runs as a rank, where it is not `tessera-mpi` beside this one or on the path.
const PROGRAM: &str = "TESSERA_MPI";
/// What starts ranks, where it is not `mpiexec` on the path.
const MPIEXEC: &str = "TESSERA_MPIEXEC";

/// Where segments of shared memory lie.
const SHARED_MEMORY: &str = "/dev/shm/";

/// How long ranks have to end by themselves when one was lost, and to appear after the start.
const GRACE: Duration = Duration::from_secs(3);
const START: Duration = Duration::from_secs(60);
/// How often it is looked whether `mpiexec` has ended.
const LOOK: Duration = Duration::from_millis(20);

/// What comes from a rank.
#[derive(Debug)]
enum Event {
    Came { pid: i32 },
    Done,
    Exit(u8),
    Lost { rank: usize, pid: i32 },
}

/// Ranks that run.
#[derive(Debug)]
pub struct Launched {
    child: Child,
    ranks: usize,
    events: Receiver<Event>,
    connections: Connections,
    socket: PathBuf,
}

type Connections = Arc<Mutex<Vec<UnixStream>>>;

/// Ends what the ranks do, from any thread.
#[derive(Debug, Clone)]
pub struct Canceller {
    connections: Connections,
}

impl Canceller {
    /// Asks all ranks to cancel the running statement.
    pub fn cancel(&self) {
        for connection in self.connections.lock().unwrap_or_else(PoisonError::into_inner).iter_mut() {
            drop(connection.write_all(b"cancel\n"));
        }
    }
}

/// Starts `ranks` ranks with these arguments.
///
/// # Errors
/// There is no `mpiexec` or no program for ranks; the message says how to get them.
pub fn launch(ranks: usize, arguments: &[OsString], with_input: bool) -> Result<Launched> {
    let program = program()?;
    let socket = std::env::temp_dir().join(format!("tessera-{}.socket", std::process::id()));
    drop(std::fs::remove_file(&socket));
    let cannot =
        |error: std::io::Error| Error::io(format!("cannot listen on '{}': {error}", socket.display()));
    let listener = UnixListener::bind(&socket).map_err(cannot)?;
    let (events, connections) = (channel(), Connections::default());
    let (sender, kept) = (events.0, connections.clone());
    std::thread::spawn(move || listen(&listener, &sender, &kept));
    let mpiexec = std::env::var_os(MPIEXEC).unwrap_or_else(|| "mpiexec".into());
    let child = Command::new(&mpiexec)
        .arg("-n")
        .arg(ranks.to_string())
        .arg(program)
        .args(arguments)
        .env(CONTROL, &socket)
        // Interruptions come through us.
        .process_group(0)
        .stdin(if with_input { Stdio::inherit() } else { Stdio::null() })
        .spawn();
    let child = child.map_err(|error| {
        drop(std::fs::remove_file(&socket));
        Error::io(format!(
            "cannot start '{}': {error}; install MPICH or Open MPI, or set {MPIEXEC}",
            Path::new(&mpiexec).display()
        ))
    })?;
    Ok(Launched { child, ranks, events: events.1, connections, socket })
}

fn program() -> Result<PathBuf> {
    if let Some(program) = std::env::var_os(PROGRAM) {
        return Ok(program.into());
    }
    let name = "tessera-mpi";
    let beside =
        std::env::current_exe().ok().map(|own| own.with_file_name(name)).filter(|path| path.exists());
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = || std::env::split_paths(&path).map(|folder| folder.join(name)).find(|path| path.exists());
    beside.or_else(on_path).ok_or_else(|| {
        Error::unsupported(format!(
            "there is no {name} beside this program or on the path; build it against your MPI (cargo build --release -p \
             tessera-mpi) or set {PROGRAM}"
        ))
    })
}

fn listen(listener: &UnixListener, events: &Sender<Event>, connections: &Connections) {
    for connection in listener.incoming() {
        let Ok(connection) = connection else { return };
        if let Ok(own) = connection.try_clone() {
            connections.lock().unwrap_or_else(PoisonError::into_inner).push(own);
        }
        let events = events.clone();
        std::thread::spawn(move || follow(connection, &events));
    }
}

/// Tells what a rank says, and that it is gone.
fn follow(connection: UnixStream, events: &Sender<Event>) {
    let (mut rank, mut pid, mut done) = (usize::MAX, 0, false);
    for line in BufReader::new(connection).lines() {
        let Ok(line) = line else { break };
        let words: Vec<&str> = line.split(' ').collect();
        let event = match words[..] {
            ["rank", r, p] => {
                (rank, pid) = (r.parse().unwrap_or(usize::MAX), p.parse().unwrap_or(0));
                Event::Came { pid }
            }
            ["exit", code] => Event::Exit(code.parse().unwrap_or(1)),
            ["done"] => {
                done = true;
                Event::Done
            }
            _ => continue,
        };
        drop(events.send(event));
    }
    if !done && rank != usize::MAX {
        drop(events.send(Event::Lost { rank, pid }));
    }
}

impl Launched {
    /// A handle that cancels.
    pub fn canceller(&self) -> Canceller {
        Canceller { connections: self.connections.clone() }
    }

    /// Waits until all ranks have ended, and gives the exit code of the first one's work.
    ///
    /// # Errors
    /// A rank was lost; it is named, and the others have been ended.
    pub fn wait(mut self) -> Result<u8> {
        let started = Instant::now();
        let (mut pids, mut code, mut done) = (Vec::new(), None, 0);
        let result = loop {
            match self.events.recv_timeout(LOOK) {
                Ok(Event::Came { pid }) => pids.push(pid),
                Ok(Event::Exit(exit)) => code = Some(exit),
                Ok(Event::Done) => done += 1,
                Ok(Event::Lost { rank, pid }) => {
                    break Err(Error::io(format!(
                        "rank {rank} (process {pid}) was lost; the other ranks have been ended, and nothing was written"
                    )));
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    let ended = self.child.try_wait();
                    let ended =
                        ended.map_err(|error| Error::io(format!("cannot wait for mpiexec: {error}")))?;
                    match (ended, code) {
                        (Some(_), Some(code)) if done == self.ranks => break Ok(code),
                        (Some(status), _) => break Err(self.unexpected(status)),
                        (None, _) if pids.len() < self.ranks && started.elapsed() > START => {
                            break Err(Error::io(format!(
                                "only {} of {} ranks came within {} s",
                                pids.len(),
                                self.ranks,
                                START.as_secs()
                            )));
                        }
                        (None, _) => {}
                    }
                }
            }
        };
        if result.is_err() {
            // Libraries leave their segments to whoever ends last, which nobody does now.
            let segments = segments(&pids);
            self.end(&pids);
            segments.iter().for_each(|segment| drop(std::fs::remove_file(segment)));
        }
        result
    }

    fn unexpected(&self, status: std::process::ExitStatus) -> Error {
        // A rank that was lost says so through its connection, which may be read a little later than the end of mpiexec.
        let until = Instant::now() + GRACE;
        while let Ok(event) = self.events.recv_timeout(until.saturating_duration_since(Instant::now())) {
            if let Event::Lost { rank, pid } = event {
                return Error::io(format!("rank {rank} (process {pid}) was lost"));
            }
        }
        let how = status.signal().map(|signal| format!("by signal {signal}"));
        let how = how.or_else(|| status.code().map(|code| format!("with exit code {code}")));
        Error::io(format!("mpiexec ended {} before the ranks were done", how.unwrap_or_default()))
    }

    /// Ends everything that was started.
    fn end(&mut self, pids: &[i32]) {
        let group = self.child.id() as i32;
        signal(-group, libc::SIGTERM);
        let until = Instant::now() + GRACE;
        while Instant::now() < until && !matches!(self.child.try_wait(), Ok(Some(_)) | Err(_)) {
            std::thread::sleep(LOOK);
        }
        for pid in pids {
            signal(*pid, libc::SIGKILL);
        }
        signal(-group, libc::SIGKILL);
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Segments of shared memory that these processes have mapped.
fn segments(pids: &[i32]) -> Vec<PathBuf> {
    let maps = pids.iter().filter_map(|pid| std::fs::read_to_string(format!("/proc/{pid}/maps")).ok());
    let mut found: Vec<PathBuf> = maps
        .flat_map(|maps| {
            let segment = |line: &str| Some(PathBuf::from(line.get(line.find(SHARED_MEMORY)?..)?));
            maps.lines().filter_map(segment).collect::<Vec<_>>()
        })
        .collect();
    found.sort();
    found.dedup();
    found
}

/// Sends a signal to a process, or with a negative number to its group.
fn signal(pid: i32, signal: i32) {
    // 0 and -1 would be ourselves and everybody.
    if pid.abs() > 1 {
        // SAFETY: the call takes two numbers and touches no memory of ours.
        unsafe { libc::kill(pid, signal) };
    }
}

impl Drop for Launched {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.socket));
    }
}
