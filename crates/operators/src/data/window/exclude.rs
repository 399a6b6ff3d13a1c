//! EXCLUDE: cuts frames into pieces.

use super::batch::Batch;
use super::call::Exclude;
use super::frame::Frames;

/// Returns the pieces of all frames without the excluded rows: the first piece of each frame, the
/// second one, and the third one. Pieces may be empty.
pub(super) fn pieces(frames: Frames, exclude: Exclude, batch: &Batch) -> Vec<Frames> {
    if exclude == Exclude::Nothing {
        return vec![frames];
    }
    let groups = || {
        let firsts = batch.of_rows(batch.peer_spans(), |span| span.start);
        (firsts, batch.of_rows(batch.peer_spans(), |span| span.end))
    };
    let rows = || {
        let rows = batch.rows() as u32;
        ((0..rows).collect::<Vec<u32>>(), (1..=rows).collect::<Vec<u32>>())
    };
    match exclude {
        Exclude::Nothing => vec![frames],
        Exclude::CurrentRow => without(frames, rows()).into(),
        Exclude::Group => without(frames, groups()).into(),
        Exclude::Ties => {
            let (firsts, lasts) = rows();
            let current = within(&frames, &firsts, &lasts);
            let [before, after] = without(frames, groups());
            vec![before, current, after]
        }
    }
}

/// Cuts the rows between `firsts` and `lasts` out of each frame.
fn without(frames: Frames, (firsts, lasts): (Vec<u32>, Vec<u32>)) -> [Frames; 2] {
    let Frames { starts, ends } = frames;
    let cut_ends = ends.iter().zip(&firsts).map(|(end, first)| *end.min(first)).collect();
    let cut_starts = starts.iter().zip(&lasts).map(|(start, last)| *start.max(last)).collect();
    [Frames { starts, ends: cut_ends }, Frames { starts: cut_starts, ends }]
}

/// Cuts each frame to the rows between `firsts` and `lasts`.
fn within(frames: &Frames, firsts: &[u32], lasts: &[u32]) -> Frames {
    let larger = |(start, first): (&u32, &u32)| *start.max(first);
    let smaller = |(end, last): (&u32, &u32)| *end.min(last);
    Frames {
        starts: frames.starts.iter().zip(firsts).map(larger).collect(),
        ends: frames.ends.iter().zip(lasts).map(smaller).collect(),
    }
}
