//! Worker processes. The system kills them when the process that started them ends.

use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Sender, channel};

/// Kills a process.
pub(crate) fn kill(process: i32) {
    if process > 1 {
        // SAFETY: the call takes two numbers and does not access memory of this process.
        unsafe { libc::kill(process, libc::SIGKILL) };
    }
}

/// Returns the resident memory of a process in MiB.
pub(crate) fn memory_mib(process: i32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{process}/statm")).unwrap_or_default();
    let pages: u64 =
        text.split_whitespace().nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0);
    // SAFETY: the call returns a number.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    (pages * u64::try_from(page).unwrap_or(4096)) >> 20
}

/// Describes the exit of a process in the function service's words.
pub(crate) fn describe_exit(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(libc::SIGKILL), _) => "Runtime exited with error: signal: killed".to_string(),
        (Some(signal), _) => format!("Runtime exited with error: signal {signal}"),
        (None, code) => format!("Runtime exited with error: exit status {}", code.unwrap_or(-1)),
    }
}

type Job = (Command, Sender<io::Result<Child>>);

/// Starts processes, all on one thread: the system kills them when the thread that started them
/// ends.
#[derive(Debug, Clone)]
pub(crate) struct Starter {
    jobs: Sender<Job>,
}

impl Starter {
    pub(crate) fn new() -> io::Result<Starter> {
        let (jobs, waiting) = channel::<Job>();
        std::thread::Builder::new().name("starter".to_string()).spawn(move || {
            for (mut command, started) in waiting {
                drop(started.send(command.spawn()));
            }
        })?;
        Ok(Starter { jobs })
    }

    pub(crate) fn start(&self, mut command: Command) -> io::Result<Child> {
        let parent = std::process::id();
        command.stdin(Stdio::null()).process_group(0);
        // SAFETY: between fork and exec, the closure makes only system calls, which do not access
        // memory of this process.
        unsafe {
            command.pre_exec(move || {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                // The parent may have ended before the call.
                if libc::getppid() as u32 == parent {
                    Ok(())
                } else {
                    Err(io::ErrorKind::NotFound.into())
                }
            });
        }
        let (sender, receiver) = channel();
        let gone = || io::Error::other("the starter thread has ended");
        self.jobs.send((command, sender)).map_err(|_| gone())?;
        receiver.recv().map_err(|_| gone())?
    }
}
