//! The launcher's record of its ranks.

use super::Event;

/// What the launcher knows of its ranks.
#[derive(Debug, Default)]
pub(super) struct RankStates {
    /// The ranks that have connected, with their process ids.
    pub(super) connected: Vec<(usize, i32)>,
    /// The exit code of the program, which the first rank sends.
    pub(super) code: Option<u8>,
    /// The number of ranks on which MPI has started.
    pub(super) ready: usize,
    /// The number of ranks that have ended normally.
    pub(super) done: usize,
    /// The ranks whose connection was closed before they were done, with their process ids.
    pub(super) lost: Vec<(usize, i32)>,
    /// The ranks that MPI aborts.
    pub(super) aborted: Vec<usize>,
    /// The first process that `mpiexec` reports as failed.
    pub(super) blamed: Option<i32>,
}

impl RankStates {
    /// Returns the rank that was lost first. Ranks that read its memory may notice and abort before
    /// its connection is closed, so aborted ranks count last.
    pub(super) fn first_lost(&self) -> Option<(usize, i32)> {
        let by_itself = |(rank, _): &&(usize, i32)| !self.aborted.contains(rank);
        self.lost.iter().find(by_itself).or(self.lost.first()).copied()
    }

    /// Records an event.
    pub(super) fn take(&mut self, event: Event) {
        match event {
            Event::Connected { rank, pid } => self.connected.push((rank, pid)),
            Event::Exit(code) => self.code = Some(code),
            Event::Ready => self.ready += 1,
            Event::Done => self.done += 1,
            Event::Lost { rank, pid } => self.lost.push((rank, pid)),
            Event::Aborted { rank } => self.aborted.push(rank),
            Event::Blamed { pid } => self.blamed = self.blamed.or(Some(pid)),
        }
    }
}
