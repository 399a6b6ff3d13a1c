use super::*;

#[test]
fn areas_are_zeroed_and_aligned() {
    for len in [0, 1, 1000, HUGE_PAGE / 8 + 1] {
        let mut area = Area::<u64>::new(len);
        assert_eq!(area.len(), len);
        assert!(area.as_ptr().addr().is_multiple_of(64) && area.iter().all(|&word| word == 0));
        area.fill(7);
        assert!(area.iter().all(|&word| word == 7));
    }
}

/// Writes `count` items from position `from` like a partitioning pass; returns the whole inbox.
fn fill<T: Item + PartialEq + std::fmt::Debug>(
    item: impl Fn(usize) -> T,
    from: usize,
    count: usize,
    streaming: bool,
) {
    let mut inbox = Inbox::<T>::private(64, streaming);
    let (mut line, begin) = (Line::default(), inbox.lead() + from);
    for place in begin..begin + count {
        item(place - begin).store(&mut line, place % T::PER_LINE);
        if place % T::PER_LINE == T::PER_LINE - 1 {
            let first = place + 1 - T::PER_LINE;
            inbox.write(first, begin.saturating_sub(first)..T::PER_LINE, &line);
        }
    }
    let slots = (begin + count) % T::PER_LINE;
    let first = begin + count - slots;
    inbox.write(first, begin.saturating_sub(first).min(slots)..slots, &line);
    inbox.flush();
    let received = Received(inbox);
    for (place, found) in received.iter().enumerate() {
        let expected =
            if (from..from + count).contains(&place) { item(place - from) } else { T::default() };
        assert_eq!(*found, expected, "place {place} of {count} from {from}");
    }
}

#[test]
fn a_region_is_written_and_nothing_beside_it() {
    for streaming in [false, true] {
        for from in 0..9 {
            for count in 0..20 {
                fill(|number| number as u64 + 1, from, count, streaming);
                fill(|number| Tuple { key: number as u64 + 1, payload: 9 }, from, count, streaming);
            }
        }
    }
}

#[test]
#[should_panic(expected = "self.len")]
fn a_line_past_the_end_is_refused() {
    Inbox::<u64>::private(12, true).write(8, 0..8, &Line::default());
}

#[test]
fn messages_are_received_where_they_belong() {
    let mut inbox = Inbox::<Tuple>::private(3, true);
    inbox.receiving(1..3).copy_from_slice(&[1, 2, 3, 4]);
    assert_eq!(
        Received(inbox)[..],
        [(0, 0), (1, 2), (3, 4)].map(|(key, payload)| Tuple { key, payload })
    );
}
