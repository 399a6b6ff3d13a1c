//! Receives the ranks' reports over a Unix domain socket.

use std::io::{ErrorKind, Read};
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::mpsc::Sender;

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};

use super::{Canceller, Event};

/// Listens to all ranks on one thread. If several ranks are lost between two polls, the kernel
/// reports them in the order of their loss; the first is the one that caused the others to end.
pub(super) struct Listener {
    listener: UnixListener,
    poll: Poll,
    ranks: Vec<Option<RankConnection>>,
    events: Sender<Event>,
    canceller: Canceller,
}

/// The connection of a rank and its reports so far.
struct RankConnection {
    connection: UnixStream,
    line: Vec<u8>,
    rank: Option<(usize, i32)>,
    done: bool,
}

const LISTENER: Token = Token(usize::MAX);

impl Listener {
    pub(super) fn bind(
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

    pub(super) fn listen(&mut self) {
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
                        drop(self.accept(connection));
                    }
                } else if let Some(slot) = self.ranks.get_mut(event.token().0) {
                    let is_connected = slot.as_mut().is_some_and(|rank| rank.read(&self.events));
                    if !is_connected {
                        *slot = None;
                    }
                }
            }
        }
    }

    fn accept(&mut self, connection: UnixStream) -> std::io::Result<()> {
        connection.set_nonblocking(true)?;
        let token = Token(self.ranks.len());
        self.poll.registry().register(
            &mut SourceFd(&connection.as_raw_fd()),
            token,
            Interest::READABLE,
        )?;
        self.canceller.add(connection.try_clone()?);
        self.ranks.push(Some(RankConnection {
            connection,
            line: Vec::new(),
            rank: None,
            done: false,
        }));
        Ok(())
    }
}

impl RankConnection {
    /// Reads the rank's reports and sends events, also for the loss of the rank; returns whether it
    /// is still connected.
    fn read(&mut self, events: &Sender<Event>) -> bool {
        let mut bytes = [0; 256];
        loop {
            match self.connection.read(&mut bytes) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                Err(_) | Ok(0) => break,
                Ok(length) => {
                    for byte in &bytes[..length] {
                        match byte {
                            b'\n' => self.send_event(events),
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

    /// Sends the event for a complete line.
    fn send_event(&mut self, events: &Sender<Event>) {
        let line = std::mem::take(&mut self.line);
        let words: Vec<&str> = std::str::from_utf8(&line).unwrap_or_default().split(' ').collect();
        let event = match words[..] {
            ["rank", rank, pid] => {
                let (rank, pid) = (rank.parse().unwrap_or(usize::MAX), pid.parse().unwrap_or(0));
                self.rank = Some((rank, pid));
                Event::Connected { rank, pid }
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
