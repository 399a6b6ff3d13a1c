//! Filters the standard error of MPI and `mpiexec`: forwards what ranks write, and reads the rank
//! or process that a message blames.

use std::io::{BufRead, BufReader, Read};
use std::sync::mpsc::Sender;

use super::Event;

/// A line of MPI or `mpiexec`, with the rank it is about, if any.
pub(crate) type RankMessage = (Option<usize>, String);

/// Forwards the ranks' lines to standard error. `mpiexec`'s report of a failed process is reduced
/// to an event that names the process. Returns the other lines of `mpiexec`, and those of MPI about
/// a rank that it aborts.
pub(crate) fn forward(errors: impl Read, events: &Sender<Event>) -> Vec<RankMessage> {
    const OWN_PREFIXES: [&str; 2] = ["[proxy:", "[mpiexec@"];
    const MPIEXEC_LINES: [&str; 5] =
        ["=====", "=   ", "YOUR APPLICATION", "This typically refers", "Please see the FAQ"];
    let mut messages = Vec::new();
    let (mut in_box, mut aborted) = (false, None);
    for line in BufReader::new(errors).split(b'\n').map_while(std::result::Result::ok) {
        // Open MPI sometimes forwards a zero byte of a killed rank.
        let line = String::from_utf8_lossy(&line).replace('\0', "");
        let is_edge = line.starts_with("----------");
        in_box ^= is_edge;
        let is_own = in_box || is_edge || MPIEXEC_LINES.iter().any(|start| line.starts_with(start));
        let is_own = is_own || line.contains("] PMIX ERROR: ");
        if let Some(rank) = aborted_rank(&line) {
            aborted = Some(rank);
            drop(events.send(Event::Aborted { rank }));
        } else if !is_stack_line(&line) {
            aborted = None;
        }
        if aborted.is_some() || OWN_PREFIXES.iter().any(|start| line.starts_with(start)) {
            messages.push((aborted, line));
            continue;
        }
        if !is_own && !line.is_empty() {
            eprintln!("{line}");
        }
        let pid = line.split("PID ").nth(1).filter(|_| is_own);
        let digits = |text: &str| text.chars().take_while(char::is_ascii_digit).collect::<String>();
        if let Some(pid) = pid.and_then(|pid| digits(pid).parse().ok()) {
            drop(events.send(Event::Blamed { pid }));
        }
    }
    messages
}

/// Returns the rank that MPICH aborts, from `Abort(15) on node 1: …` or `Abort(15) on node 1 (rank
/// 1 in comm 0): …`.
fn aborted_rank(line: &str) -> Option<usize> {
    let (_, rank) = line.strip_prefix("Abort(")?.split_once(") on node ")?;
    rank.split([' ', ':']).next()?.parse().ok()
}

/// Whether a line belongs to the error stack that follows: `internal_Test(109).....: …`.
fn is_stack_line(line: &str) -> bool {
    let place = line.split_once('(').and_then(|(name, rest)| Some((name, rest.split_once(')')?)));
    place.is_some_and(|(name, (number, rest))| {
        let is_name = !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        is_name
            && number.bytes().all(|byte| byte.is_ascii_digit())
            && rest.trim_start_matches('.').starts_with(':')
    })
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    fn forwarded(text: &[u8]) -> (Vec<RankMessage>, Vec<Event>) {
        let (sender, receiver) = channel();
        let messages = forward(text, &sender);
        drop(sender);
        (messages, receiver.iter().collect())
    }

    #[test]
    fn what_mpi_says_is_kept_apart() {
        let (messages, events) = forwarded(
            b"\0Abort(40) on node 1 (rank 1 in comm 0): Fatal error in internal_Test: Other MPI error, error stack:\n\
             internal_Test(109).....: MPI_Test(request=0x28, flag=0x7f, status=0x1) failed\n\
             MPIDI_CMA_copy_data(68): \n\
             [proxy:0@vm] HYDU_sock_write (sock.c:250): write error (Broken pipe)\n\
             \0\n\
             a rank's words that are \xff no UTF-8\n\
             =   PID 4711 RUNNING AT vm\n",
        );
        assert_eq!(
            messages.iter().map(|(rank, _)| *rank).collect::<Vec<_>>(),
            [Some(1), Some(1), Some(1), None]
        );
        assert!(
            matches!(events[..], [Event::Aborted { rank: 1 }, Event::Blamed { pid: 4711 }]),
            "{events:?}"
        );
        assert_eq!(
            aborted_rank("Abort(1009927439) on node 2: Fatal error in internal_Init_thread"),
            Some(2)
        );
        assert!(
            !is_stack_line("error: cannot read f(x): no")
                && !is_stack_line("sum(v): 3")
                && is_stack_line("f(1): x")
        );
    }
}
