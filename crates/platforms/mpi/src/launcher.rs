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
use std::time::{Duration, Instant, SystemTime};

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
    Came {
        rank: usize,
        pid: i32,
    },
    Done,
    Exit(u8),
    Lost {
        rank: usize,
        pid: i32,
    },
    /// `mpiexec` says that this process ended badly.
    Blamed {
        pid: i32,
    },
}

/// Ranks that run.
#[derive(Debug)]
pub struct Launched {
    child: Child,
    ranks: usize,
    events: Receiver<Event>,
    connections: Connections,
    socket: PathBuf,
    since: SystemTime,
    /// Passes on what ranks write to their standard errors.
    errors: Option<std::thread::JoinHandle<()>>,
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
    let since = SystemTime::now();
    let socket = std::env::temp_dir().join(format!("tessera-{}.socket", std::process::id()));
    drop(std::fs::remove_file(&socket));
    let cannot =
        |error: std::io::Error| Error::io(format!("cannot listen on '{}': {error}", socket.display()));
    let listener = UnixListener::bind(&socket).map_err(cannot)?;
    let (events, connections) = (channel(), Connections::default());
    let (sender, blamed, kept) = (events.0.clone(), events.0, connections.clone());
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
        .stderr(Stdio::piped())
        .spawn();
    let mut child = child.map_err(|error| {
        drop(std::fs::remove_file(&socket));
        Error::io(format!(
            "cannot start '{}': {error}; install MPICH or Open MPI, or set {MPIEXEC}",
            Path::new(&mpiexec).display()
        ))
    })?;
    let errors = child.stderr.take().map(|errors| std::thread::spawn(move || forward(errors, &blamed)));
    Ok(Launched { child, ranks, events: events.1, connections, socket, since, errors })
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
                Event::Came { rank, pid }
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
        let (started, since) = (Instant::now(), self.since);
        let mut seen = Seen::default();
        let result = loop {
            match self.events.recv_timeout(LOOK) {
                Ok(event) => seen.take(event),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    let ended = self.child.try_wait();
                    let ended =
                        ended.map_err(|error| Error::io(format!("cannot wait for mpiexec: {error}")))?;
                    match (ended, seen.code) {
                        (Some(_), Some(code)) if seen.done == self.ranks => break Ok(code),
                        (Some(status), _) => break Err(self.lost(&mut seen, Some(status))),
                        (None, _) if seen.came.len() < self.ranks && started.elapsed() > START => {
                            let (came, ranks, seconds) = (seen.came.len(), self.ranks, START.as_secs());
                            let message = format!("only {came} of {ranks} ranks came within {seconds} s");
                            break Err(Error::io(message));
                        }
                        (None, _) => {}
                    }
                }
            }
            if !seen.lost.is_empty() {
                break Err(self.lost(&mut seen, None));
            }
        };
        if result.is_err() {
            let pids: Vec<i32> = seen.came.iter().map(|(_, pid)| *pid).collect();
            self.end(&pids);
            remove_segments(since);
        }
        if let Some(errors) = self.errors.take() {
            drop(errors.join());
        }
        result
    }

    /// Which rank was lost. Those that `mpiexec` ended because of it may be noticed before it, so its own word is waited for.
    fn lost(&self, seen: &mut Seen, status: Option<std::process::ExitStatus>) -> Error {
        let until = Instant::now() + GRACE;
        while seen.blamed.is_none()
            && let Ok(event) = self.events.recv_timeout(until.saturating_duration_since(Instant::now()))
        {
            seen.take(event);
        }
        let of = |pid: i32| seen.came.iter().find(|(_, other)| *other == pid).map(|(rank, _)| *rank);
        let after = "the other ranks have been ended, and nothing was written";
        match (seen.blamed, seen.lost.first()) {
            (Some(pid), _) => match of(pid) {
                Some(rank) => Error::io(format!("rank {rank} (process {pid}) was lost; {after}")),
                None => Error::io(format!("a rank (process {pid}) was lost before it had begun; {after}")),
            },
            (None, Some((rank, pid))) if seen.came.len() == self.ranks => {
                Error::io(format!("rank {rank} (process {pid}) was lost; {after}"))
            }
            (None, _) => {
                let signal =
                    status.and_then(|status| status.signal()).map(|signal| format!("by signal {signal}"));
                let code =
                    status.and_then(|status| status.code()).map(|code| format!("with exit code {code}"));
                let how = signal.or(code).map(|how| format!(" (mpiexec ended {how})")).unwrap_or_default();
                Error::io(format!("a rank was lost before it had begun{how}; {after}"))
            }
        }
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

/// What is known of the ranks.
#[derive(Debug, Default)]
struct Seen {
    came: Vec<(usize, i32)>,
    code: Option<u8>,
    done: usize,
    lost: Vec<(usize, i32)>,
    blamed: Option<i32>,
}

impl Seen {
    fn take(&mut self, event: Event) {
        match event {
            Event::Came { rank, pid } => {
                self.came.push((rank, pid));
            }
            Event::Exit(code) => self.code = Some(code),
            Event::Done => self.done += 1,
            Event::Lost { rank, pid } => self.lost.push((rank, pid)),
            Event::Blamed { pid } => self.blamed = self.blamed.or(Some(pid)),
        }
    }
}

/// Removes segments of shared memory that MPI libraries have made since and that no process has mapped any more: a library leaves
/// them to whoever ends last, and nobody does when ranks are killed.
fn remove_segments(since: SystemTime) {
    const OF_MPI: [&str; 5] = ["mpich_", "vader_segment", "sm_segment", "osc_", "open_mpi"];
    let entries = std::fs::read_dir(SHARED_MEMORY).into_iter().flatten().flatten();
    let is_ours = |entry: &std::fs::DirEntry| {
        let name = entry.file_name();
        let is_of_mpi = OF_MPI.iter().any(|start| name.to_string_lossy().starts_with(start));
        // A file system may keep coarser times than the clock.
        let since = since - Duration::from_secs(1);
        is_of_mpi && entry.metadata().and_then(|data| data.modified()).is_ok_and(|modified| modified >= since)
    };
    let found: Vec<PathBuf> = entries.filter(is_ours).map(|entry| entry.path()).collect();
    if found.is_empty() {
        return;
    }
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let maps = processes.filter_map(|process| std::fs::read_to_string(process.path().join("maps")).ok());
    let mapped = maps.fold(String::new(), |all, maps| all + &maps);
    for path in found.iter().filter(|path| !mapped.contains(&*path.to_string_lossy())) {
        drop(std::fs::remove_file(path));
    }
}

/// Passes on what comes, but for what `mpiexec` says of a process that ended badly: of that, only which one.
fn forward(errors: impl std::io::Read, events: &Sender<Event>) {
    const OF_MPIEXEC: [&str; 5] =
        ["=====", "=   ", "YOUR APPLICATION", "This typically refers", "Please see the FAQ"];
    let mut in_box = false;
    for line in BufReader::new(errors).lines().map_while(std::result::Result::ok) {
        let is_edge = line.starts_with("----------");
        in_box ^= is_edge;
        let is_own = in_box || is_edge || OF_MPIEXEC.iter().any(|start| line.starts_with(start));
        let is_own = is_own || line.contains("] PMIX ERROR: ");
        if !is_own && !line.is_empty() {
            eprintln!("{line}");
        }
        let pid = line.split("PID ").nth(1).filter(|_| is_own);
        let digits = |text: &str| text.chars().take_while(char::is_ascii_digit).collect::<String>();
        if let Some(pid) = pid.and_then(|pid| digits(pid).parse().ok()) {
            drop(events.send(Event::Blamed { pid }));
        }
    }
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
