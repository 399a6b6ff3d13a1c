//! Starts ranks with `mpiexec`, and watches over them.
//!
//! Every rank holds a connection to the launcher for as long as it lives (`control`). So the
//! launcher knows which rank was lost when one is, whichever MPI started them; a rank knows when
//! the launcher is gone; and neither is left behind.

use std::ffi::OsString;
use std::fs::Permissions;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use tempfile::TempDir;
use tessera_context::lock;
use tessera_types::{Code, Error, Result};

use crate::said::{Said, forward};

/// Where a rank finds its launcher: the path of a socket.
pub const CONTROL: &str = "TESSERA_CONTROL";
/// The program that runs as a rank, where it is not `tessera-mpi` beside this one or on the path.
const PROGRAM: &str = "TESSERA_MPI";
/// What starts ranks, where it is not `mpiexec` on the path.
const MPIEXEC: &str = "TESSERA_MPIEXEC";

/// Where segments of shared memory lie.
const SHARED_MEMORY: &str = "/dev/shm/";

/// How long ranks have to end by themselves when one was lost.
const GRACE: Duration = Duration::from_secs(3);
/// How long it takes until the word of a rank that ends itself has come.
const WORD: Duration = Duration::from_millis(200);
/// How often it is looked whether `mpiexec` has ended, and when all else has.
const LOOK: Duration = Duration::from_millis(20);
const LOOK_AT_END: Duration = Duration::from_millis(1);

/// What comes from a rank.
#[derive(Debug)]
pub(crate) enum Event {
    Came {
        rank: usize,
        pid: i32,
    },
    /// MPI has started there.
    Ready,
    Done,
    Exit(u8),
    Lost {
        rank: usize,
        pid: i32,
    },
    /// MPI says that it ends this rank, which cannot go on.
    Aborted {
        rank: usize,
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
    /// Ranks come there until they have ended.
    _socket: Socket,
    since: SystemTime,
    canceller: Canceller,
    /// Passes on what ranks write to their standard errors; keeps what MPI says.
    errors: Option<std::thread::JoinHandle<Vec<Said>>>,
}

/// Ends what the ranks do, from any thread; those that come later hear of it when they do.
#[derive(Debug, Clone, Default)]
pub struct Canceller {
    ranks: Arc<Mutex<Told>>,
}

#[derive(Debug, Default)]
struct Told {
    connections: Vec<UnixStream>,
    cancelled: bool,
}

const CANCEL: &[u8] = b"cancel\n";

impl Canceller {
    /// Asks all ranks to cancel the running statement, or the next where none runs.
    pub fn cancel(&self) {
        let mut ranks = lock(&self.ranks);
        ranks.cancelled = true;
        for connection in &mut ranks.connections {
            drop(connection.write_all(CANCEL));
        }
    }

    fn is_cancelled(&self) -> bool {
        lock(&self.ranks).cancelled
    }

    /// A rank has come.
    fn add(&self, mut connection: UnixStream) {
        let mut ranks = lock(&self.ranks);
        if ranks.cancelled {
            drop(connection.write_all(CANCEL));
        }
        ranks.connections.push(connection);
    }
}

/// Starts `ranks` ranks with these arguments, which `canceller` ends.
///
/// # Errors
/// There is no `mpiexec` or no program for ranks; the message says how to get them.
pub fn launch(
    ranks: usize,
    arguments: &[OsString],
    with_input: bool,
    canceller: &Canceller,
) -> Result<Launched> {
    let program = program()?;
    let since = SystemTime::now();
    let socket = Socket::new().map_err(|error| {
        let all = std::env::temp_dir();
        Error::io(format!("cannot make a directory in '{}': {error}", all.display()))
    })?;
    let cannot = |error: std::io::Error| {
        Error::io(format!("cannot listen on '{}': {error}", socket.path().display()))
    };
    let events = channel();
    let (sender, blamed) = (events.0.clone(), events.0);
    let mut listener = Listener::bind(&socket.path(), sender, canceller.clone()).map_err(cannot)?;
    std::thread::spawn(move || listener.listen());
    let mpiexec = std::env::var_os(MPIEXEC).unwrap_or_else(|| "mpiexec".into());
    let child = Command::new(&mpiexec)
        .arg("-n")
        .arg(ranks.to_string())
        .arg(program)
        .args(arguments)
        .env(CONTROL, socket.path())
        // Interruptions come through us.
        .process_group(0)
        .stdin(if with_input { Stdio::inherit() } else { Stdio::null() })
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
    Ok(Launched { child, ranks, events, _socket: socket, since, canceller, errors })
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
            "there is no {name} beside this program or on the path; build it against your MPI (cargo build --release -p \
             tessera-mpi) or set {PROGRAM}"
        ))
    })
}

/// Hears all ranks on one thread: of several that are lost while it does not look, the kernel tells
/// in the order in which they were, so that the first is the one that was not ended because of
/// another.
struct Listener {
    listener: UnixListener,
    poll: Poll,
    ranks: Vec<Option<Heard>>,
    events: Sender<Event>,
    canceller: Canceller,
}

/// A rank, as far as it has told.
struct Heard {
    connection: UnixStream,
    line: Vec<u8>,
    rank: Option<(usize, i32)>,
    done: bool,
}

const LISTENER: Token = Token(usize::MAX);

impl Listener {
    fn bind(
        socket: &Path,
        events: Sender<Event>,
        canceller: Canceller,
    ) -> std::io::Result<Listener> {
        let listener = UnixListener::bind(socket)?;
        listener.set_nonblocking(true)?;
        let poll = Poll::new()?;
        poll.registry().register(
            &mut SourceFd(&listener.as_raw_fd()),
            LISTENER,
            Interest::READABLE,
        )?;
        Ok(Listener { listener, poll, ranks: Vec::new(), events, canceller })
    }

    fn listen(&mut self) {
        let mut ready = Events::with_capacity(64);
        loop {
            match self.poll.poll(&mut ready, None) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return,
                Ok(()) => {}
            }
            for event in &ready {
                if event.token() == LISTENER {
                    while let Ok((connection, _)) = self.listener.accept() {
                        drop(self.came(connection));
                    }
                } else if let Some(heard) = self.ranks.get_mut(event.token().0) {
                    let is_there = heard.as_mut().is_some_and(|heard| heard.hear(&self.events));
                    if !is_there {
                        *heard = None;
                    }
                }
            }
        }
    }

    fn came(&mut self, connection: UnixStream) -> std::io::Result<()> {
        connection.set_nonblocking(true)?;
        let token = Token(self.ranks.len());
        self.poll.registry().register(
            &mut SourceFd(&connection.as_raw_fd()),
            token,
            Interest::READABLE,
        )?;
        self.canceller.add(connection.try_clone()?);
        self.ranks.push(Some(Heard { connection, line: Vec::new(), rank: None, done: false }));
        Ok(())
    }
}

impl Heard {
    /// Tells what the rank says, and that it is gone; whether it is still there.
    fn hear(&mut self, events: &Sender<Event>) -> bool {
        let mut bytes = [0; 256];
        loop {
            match self.connection.read(&mut bytes) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                Err(_) | Ok(0) => break,
                Ok(length) => {
                    for byte in &bytes[..length] {
                        match byte {
                            b'\n' => self.take(events),
                            byte => self.line.push(*byte),
                        }
                    }
                }
            }
        }
        if let (Some((rank, pid)), false) = (self.rank, self.done) {
            drop(events.send(Event::Lost { rank, pid }));
        }
        false
    }

    /// A line is there.
    fn take(&mut self, events: &Sender<Event>) {
        let line = std::mem::take(&mut self.line);
        let words: Vec<&str> = std::str::from_utf8(&line).unwrap_or_default().split(' ').collect();
        let event = match words[..] {
            ["rank", rank, pid] => {
                let (rank, pid) = (rank.parse().unwrap_or(usize::MAX), pid.parse().unwrap_or(0));
                self.rank = Some((rank, pid));
                Event::Came { rank, pid }
            }
            ["ready"] => Event::Ready,
            ["exit", code] => Event::Exit(code.parse().unwrap_or(1)),
            ["done"] => {
                self.done = true;
                Event::Done
            }
            _ => return,
        };
        drop(events.send(event));
    }
}

impl Launched {
    /// Waits until all ranks have ended, and gives the exit code of the first one's work.
    ///
    /// # Errors
    /// A rank was lost; it is named, and the others have been ended. Or they were cancelled while
    /// MPI started, which hears of nothing before its end: nothing had begun, and they have been
    /// ended.
    pub fn wait(mut self, start_timeout: Option<Duration>) -> Result<u8> {
        let (started, since) = (Instant::now(), self.since);
        let mut seen = Seen::default();
        let result = loop {
            let at_most = if seen.done == self.ranks { LOOK_AT_END } else { LOOK };
            match self.events.recv_timeout(at_most) {
                Ok(event) => seen.take(event),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    let ended = self.child.try_wait();
                    let ended = ended
                        .map_err(|error| Error::io(format!("cannot wait for mpiexec: {error}")))?;
                    match ended {
                        Some(status) => break self.outcome(&mut seen, Some(status)),
                        None => {
                            let late = |timeout: &Duration| started.elapsed() > *timeout;
                            if seen.came.len() < self.ranks
                                && let Some(timeout) = start_timeout.filter(late)
                            {
                                break Err(Error::io(format!(
                                    "only {} of {} ranks came within {} s (--mpi-start-timeout); see what '{MPIEXEC}' starts",
                                    seen.came.len(),
                                    self.ranks,
                                    timeout.as_secs_f64()
                                )));
                            }
                        }
                    }
                }
            }
            if !seen.lost.is_empty() {
                break self.outcome(&mut seen, None);
            }
            if seen.ready < self.ranks && self.canceller.is_cancelled() {
                break Err(Error::new(Code::Cancelled, "the query was cancelled"));
            }
        };
        if result.is_err() || seen.done < self.ranks {
            let pids: Vec<i32> = seen.came.iter().map(|(_, pid)| *pid).collect();
            self.end(&pids);
            remove_segments(since);
        }
        let said = self.errors.take().and_then(|errors| errors.join().ok()).unwrap_or_default();
        let first = seen.first_lost().map(|(rank, _)| rank);
        // Of those that went after the first one, it says nothing that we do not.
        let matters =
            |rank: &Option<usize>| rank.is_some_and(|_| *rank == first) || seen.came.is_empty();
        let was_lost = result.as_ref().is_err_and(|error| error.code() != Code::Cancelled);
        let shown = said.iter().filter(|(rank, _)| was_lost && matters(rank));
        shown.for_each(|(_, line)| eprintln!("{line}"));
        result
    }

    /// The exit code, or which rank was lost: the first one. What ranks have said may come after
    /// the end of `mpiexec`. While not all had come, it may be one of which nothing was heard, and
    /// the word of `mpiexec` is waited for.
    fn outcome(&self, seen: &mut Seen, status: Option<ExitStatus>) -> Result<u8> {
        let after = "the other ranks have been ended, and nothing was written";
        let mut until = Instant::now() + GRACE;
        let is_known = |seen: &Seen| !seen.lost.is_empty() && seen.came.len() == self.ranks;
        while seen.code.is_none() || seen.done < self.ranks {
            if is_known(seen) {
                until = until.min(Instant::now() + WORD);
            }
            match self.events.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(event) => seen.take(event),
                Err(_) => break,
            }
            if seen.blamed.is_some() && !is_known(seen) {
                break;
            }
        }
        if let (Some(code), true) = (seen.code, seen.done == self.ranks) {
            return Ok(code);
        }
        // What has failed stays so, and was told: that a rank was lost after it, while MPI ends,
        // changes nothing.
        if let Some(code) = seen.code.filter(|code| *code != 0) {
            return Ok(code);
        }
        if let (Some((rank, pid)), true) = (seen.first_lost(), is_known(seen)) {
            return Err(Error::io(format!("rank {rank} (process {pid}) was lost; {after}")));
        }
        let of =
            |pid: i32| seen.came.iter().find(|(_, other)| *other == pid).map(|(rank, _)| *rank);
        Err(match seen.blamed {
            Some(pid) => match of(pid) {
                Some(rank) => Error::io(format!("rank {rank} (process {pid}) was lost; {after}")),
                None => Error::io(format!(
                    "a rank (process {pid}) was lost before it had begun; {after}"
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
                Error::io(format!("a rank was lost before it had begun{how}; {after}"))
            }
        })
    }

    /// Ends everything that was started.
    fn end(&mut self, pids: &[i32]) {
        let group = self.child.id() as i32;
        signal(-group, libc::SIGTERM);
        let until = Instant::now() + GRACE;
        while Instant::now() < until && !matches!(self.child.try_wait(), Ok(Some(_)) | Err(_)) {
            std::thread::sleep(LOOK_AT_END);
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
    ready: usize,
    done: usize,
    lost: Vec<(usize, i32)>,
    aborted: Vec<usize>,
    blamed: Option<i32>,
}

impl Seen {
    /// The one that was lost first. Ranks that read its memory may notice, and end themselves,
    /// before its connection is closed.
    fn first_lost(&self) -> Option<(usize, i32)> {
        let by_itself = |(rank, _): &&(usize, i32)| !self.aborted.contains(rank);
        self.lost.iter().find(by_itself).or(self.lost.first()).copied()
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Came { rank, pid } => {
                self.came.push((rank, pid));
            }
            Event::Exit(code) => self.code = Some(code),
            Event::Ready => self.ready += 1,
            Event::Done => self.done += 1,
            Event::Lost { rank, pid } => self.lost.push((rank, pid)),
            Event::Aborted { rank } => self.aborted.push(rank),
            Event::Blamed { pid } => self.blamed = self.blamed.or(Some(pid)),
        }
    }
}

/// Removes segments of shared memory that MPI libraries have made since and that no process has
/// mapped any more: a library leaves them to whoever ends last, and nobody does when ranks are
/// killed.
fn remove_segments(since: SystemTime) {
    const OF_MPI: [&str; 6] =
        ["mpich_", "vader_segment", "sm_segment", "osc_", "open_mpi", "ucx_shm_"];
    let entries = std::fs::read_dir(SHARED_MEMORY).into_iter().flatten().flatten();
    let is_ours = |entry: &std::fs::DirEntry| {
        let name = entry.file_name();
        let is_of_mpi = OF_MPI.iter().any(|start| name.to_string_lossy().starts_with(start));
        // A file system may keep coarser times than the clock.
        let since = since - Duration::from_secs(1);
        is_of_mpi
            && entry
                .metadata()
                .and_then(|data| data.modified())
                .is_ok_and(|modified| modified >= since)
    };
    let found: Vec<PathBuf> = entries.filter(is_ours).map(|entry| entry.path()).collect();
    if found.is_empty() {
        return;
    }
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let maps =
        processes.filter_map(|process| std::fs::read_to_string(process.path().join("maps")).ok());
    let mapped = maps.fold(String::new(), |all, maps| all + &maps);
    for path in found.iter().filter(|path| !mapped.contains(&*path.to_string_lossy())) {
        drop(std::fs::remove_file(path));
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

/// Where ranks find the launcher: in a directory for this user alone, which goes with it.
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
mod tests {
    use super::*;

    #[test]
    fn the_socket_is_for_this_user_alone_and_goes() {
        use std::os::unix::fs::MetadataExt;
        let socket = Socket::new().unwrap();
        let directory = socket.directory.path().to_path_buf();
        let _listener = UnixListener::bind(socket.path()).unwrap();
        assert_eq!(std::fs::metadata(&directory).unwrap().mode() & 0o777, 0o700);
        drop(socket);
        assert!(!directory.exists());
    }

    #[test]
    fn who_ends_itself_was_not_the_first() {
        let mut seen = Seen { lost: vec![(2, 12), (0, 10)], ..Seen::default() };
        assert_eq!(seen.first_lost(), Some((2, 12)));
        seen.take(Event::Aborted { rank: 2 });
        assert_eq!(seen.first_lost(), Some((0, 10)));
        seen.take(Event::Aborted { rank: 0 });
        assert_eq!(seen.first_lost(), Some((2, 12)));
    }

    /// Ranks of which these words come a while after `mpiexec` has ended.
    fn ended(words: Vec<Event>) -> Result<u8> {
        let (sender, events) = channel();
        let child = Command::new("true").process_group(0).spawn().unwrap();
        let socket = Socket::new().unwrap();
        let since = SystemTime::now();
        let launched = Launched {
            child,
            ranks: 1,
            events,
            _socket: socket,
            since,
            canceller: Canceller::default(),
            errors: None,
        };
        let says = std::thread::spawn(move || {
            std::thread::sleep(5 * LOOK);
            words.into_iter().for_each(|word| sender.send(word).unwrap());
            sender
        });
        let result = launched.wait(None);
        drop(says.join().unwrap());
        result
    }

    #[test]
    fn words_that_come_after_the_end_count() {
        // A process that is none.
        let (rank, pid) = (0, i32::MAX);
        let came = Event::Came { rank, pid };
        assert_eq!(ended(vec![came, Event::Exit(3), Event::Done]).unwrap(), 3);
        let failed = [Event::Came { rank, pid }, Event::Exit(3), Event::Lost { rank, pid }];
        assert_eq!(ended(failed.into()).unwrap(), 3);
        ended(vec![Event::Came { rank, pid }, Event::Exit(0), Event::Lost { rank, pid }])
            .unwrap_err();
        let lost = ended(vec![Event::Came { rank, pid }, Event::Lost { rank, pid }]).unwrap_err();
        assert!(lost.to_string().contains("rank 0 (process 2147483647) was lost"), "{lost}");
    }
}
