use std::os::unix::net::UnixListener;

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
    let mut states = RankStates { lost: vec![(2, 12), (0, 10)], ..RankStates::default() };
    assert_eq!(states.first_lost(), Some((2, 12)));
    states.take(Event::Aborted { rank: 2 });
    assert_eq!(states.first_lost(), Some((0, 10)));
    states.take(Event::Aborted { rank: 0 });
    assert_eq!(states.first_lost(), Some((2, 12)));
}

/// Waits for a rank that sends these events a while after `mpiexec` has ended.
fn ended(events_later: Vec<Event>) -> Result<u8> {
    let (sender, events) = channel();
    let child = Command::new("true").process_group(0).spawn().unwrap();
    let socket = Socket::new().unwrap();
    let since = SystemTime::now();
    let running = RunningRanks {
        child,
        ranks: 1,
        events,
        _socket: socket,
        since,
        canceller: Canceller::default(),
        errors: None,
    };
    let says = std::thread::spawn(move || {
        std::thread::sleep(5 * POLL_INTERVAL);
        events_later.into_iter().for_each(|event| sender.send(event).unwrap());
        sender
    });
    let result = running.wait(None);
    drop(says.join().unwrap());
    result
}

#[test]
fn words_that_come_after_the_end_count() {
    // A process number that does not exist.
    let (rank, pid) = (0, i32::MAX);
    let connected = Event::Connected { rank, pid };
    assert_eq!(ended(vec![connected, Event::Exit(3), Event::Done]).unwrap(), 3);
    let failed = [Event::Connected { rank, pid }, Event::Exit(3), Event::Lost { rank, pid }];
    assert_eq!(ended(failed.into()).unwrap(), 3);
    ended(vec![Event::Connected { rank, pid }, Event::Exit(0), Event::Lost { rank, pid }])
        .unwrap_err();
    let lost = ended(vec![Event::Connected { rank, pid }, Event::Lost { rank, pid }]).unwrap_err();
    assert!(lost.to_string().contains("rank 0 (process 2147483647) was lost"), "{lost}");
}
