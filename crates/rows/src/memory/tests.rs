//! Tests of pages and of their concurrent writers.

use super::*;

#[test]
fn pages_grow_and_keep_values() {
    let mut pages = Pages::new(16, 5);
    for row in 0..100usize {
        pages.allocate(row + 1);
        pages.write::<u64>(row, 8, row as u64 * 3);
    }
    assert_eq!(
        pages.gather::<u64>(8, &[0, 31, 32, 99, u64::MAX]).unwrap(),
        vec![0, 93, 96, 297, 0]
    );
    assert!(pages.gather::<u64>(8, &[1 << 40]).is_err());
    pages.write_run(30, 40, 8, (0..40u64).map(|v| v + 1000));
    assert_eq!(pages.read::<u64>(29, 8), 87);
    assert_eq!(pages.read::<u64>(30, 8), 1000);
    assert_eq!(pages.read::<u64>(69, 8), 1039);
    assert_eq!(pages.read::<u64>(70, 8), 210);
}

#[test]
fn rows_that_others_write_are_there_when_they_say_so() {
    let mut pages = Pages::new(16, 5);
    pages.allocate(3);
    pages.reserve(70);
    assert_eq!(pages.allocated(), 3);
    let mut row = 3;
    while row < 66 {
        let (place, rows) = pages.place_mut(row, 66 - row);
        for word in 0..rows * 2 {
            // SAFETY: there is memory for so many rows of two words.
            unsafe { place.cast::<u64>().add(word).write_unaligned((row * 2 + word) as u64) };
        }
        row += rows;
    }
    // SAFETY: the rows from the third on were written just now.
    unsafe { pages.assume_written(66) };
    pages.allocate(68);
    let found = pages.gather::<u64>(8, &[2, 3, 31, 32, 65, 66, 67]).unwrap();
    assert_eq!(found, vec![0, 7, 63, 65, 131, 0, 0]);
}

#[test]
#[should_panic(expected = "outside")]
fn reads_outside_are_caught() {
    let mut pages = Pages::new(16, 5);
    pages.allocate(1);
    pages.read::<u64>(pages.allocated(), 8);
}

#[test]
fn writers_fill_disjoint_ranges_at_once() {
    let (shared, writers) = SharedPages::split(16, &[3, 0, 5]);
    assert!(shared.take().is_none());
    let threads: Vec<_> = writers
        .into_iter()
        .enumerate()
        .map(|(index, mut writer)| {
            std::thread::spawn(move || {
                for place in 0..writer.rows {
                    let row = writer.copy_row(place, &[index as u8; 16]);
                    row[0] = place as u8;
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let pages = shared.take().unwrap();
    assert_eq!(pages.gather::<u8>(0, &[0, 1, 2, 3, 7]).unwrap(), vec![0, 1, 2, 0, 4]);
    assert_eq!(pages.gather::<u8>(15, &[0, 2, 3, 7]).unwrap(), vec![0, 0, 2, 2]);
    assert!(shared.take().is_none());
}
