//! Exchanges that meet in a join: what they tell each other, and whose the tuples of heavy
//! partitions are.
//!
//! Every worker reads the indexes of all objects of both exchanges, so that all come to the same
//! without a word. On a worker, each of the two reads its own objects' and tells the other.

use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};

use tessera_context::lock;
use tessera_operator::platform::{Heavy, heavy_partitions};
use tessera_plan::{Node, Plan};
use tessera_types::{Error, Result};

/// What an exchange tells the one that it meets.
#[derive(Debug)]
pub(crate) struct Said {
    /// Of the exchange.
    pub(crate) number: usize,
    pub(crate) heavy: Heavy,
    /// Of each partition, of all senders.
    pub(crate) rows: Vec<i64>,
}

/// Which workers read the tuples of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The one that its hash names.
    Hash,
    /// All.
    All,
    /// Each its own.
    Sender,
}

/// Where two exchanges of a worker meet.
#[derive(Debug, Default)]
pub(crate) struct Meeting {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    said: Vec<Arc<Said>>,
    /// Whoever came first.
    waiting: Option<Waker>,
}

impl Meeting {
    /// Tells the other exchange, and waits until it has told this one; gives the owners of this
    /// one's partitions.
    pub(crate) async fn owners(&self, said: Said, workers: usize) -> Vec<Owner> {
        let number = said.number;
        let mut both = self.both(said).await;
        both.sort_by_key(|said| said.number);
        let rows = [&both[0].rows[..], &both[1].rows];
        let may_split = Heavy::may_split([both[0].heavy, both[1].heavy]);
        let owner = |split: Option<usize>| match split {
            None => Owner::Hash,
            Some(side) if both[side].number == number => Owner::Sender,
            Some(_) => Owner::All,
        };
        heavy_partitions(rows, may_split, workers).into_iter().map(owner).collect()
    }

    async fn both(&self, said: Said) -> [Arc<Said>; 2] {
        {
            let mut state = lock(&self.state);
            state.said.push(Arc::new(said));
            state.waiting.take().into_iter().for_each(Waker::wake);
        }
        poll_fn(|context| {
            let mut state = lock(&self.state);
            if let [one, other, ..] = &state.said[..] {
                return Poll::Ready([one.clone(), other.clone()]);
            }
            state.waiting = Some(context.waker().clone());
            Poll::Pending
        })
        .await
    }
}

/// The name of the join in which an exchange meets another, and what may become of its heavy
/// partitions.
///
/// # Errors
/// One of the two is missing or wrong.
pub(crate) fn meets(node: &Node) -> Result<Option<(Arc<str>, Heavy)>> {
    match (Heavy::of(node)?, node.params.get("meets")) {
        (None, None) => Ok(None),
        (Some(heavy), Some(_)) => Ok(Some((node.params.name("meets")?.clone(), heavy))),
        _ => Err(Error::semantic("takes heavy and meets together, or neither")),
    }
}

/// Checks that exchanges which wait for each other need not wait for ever: that they are two, with
/// as many partitions, and that neither needs what the other brings.
///
/// # Errors
/// They are not.
pub(crate) fn check(plan: &Plan) -> Result<()> {
    let wrong = |name: &str, why: &str| {
        Error::semantic(format!(
            "exchanges with meets = :{name} {why}; leave out meets and heavy, or correct them"
        ))
    };
    let mut met: Vec<(Arc<str>, usize)> = Vec::new();
    for (position, node) in
        plan.nodes.iter().enumerate().filter(|(_, node)| &*node.operator == "object_exchange")
    {
        met.extend(meets(node)?.map(|(name, _)| (name, position)));
    }
    for (name, first) in &met {
        let both: Vec<usize> =
            met.iter().filter(|(other, _)| other == name).map(|(_, at)| *at).collect();
        let [one, other] = both[..] else {
            return Err(wrong(name, &format!("are {} and must be two", both.len())));
        };
        let bits = |at: usize| plan.nodes[at].params.integer_opt("bits");
        if bits(one)? != bits(other)? {
            return Err(wrong(name, "have different bits"));
        }
        // Inputs come before their consumers, so that only the later one can need the earlier.
        if *first == one && needs(plan, other, one) {
            return Err(wrong(name, "wait for each other: one brings what the other sends"));
        }
    }
    Ok(())
}

/// Whether a node reads another, if not at once.
fn needs(plan: &Plan, node: usize, wanted: usize) -> bool {
    let mut is_read = vec![false; plan.nodes.len()];
    is_read[node] = true;
    for at in (wanted..=node).rev() {
        if is_read[at] {
            plan.nodes[at].inputs.iter().for_each(|input| is_read[input.index()] = true);
        }
    }
    is_read[wanted]
}

#[cfg(test)]
mod tests {
    use futures_util::future::join;
    use tessera_plan::text;

    use super::*;

    #[test]
    fn both_come_to_the_same_whoever_is_first() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let said = |number, heavy, rows: [i64; 3]| Said { number, heavy, rows: rows.to_vec() };
        let owners = |rows: [[i64; 3]; 2], workers, turned: bool| {
            let meeting = Meeting::default();
            let one = meeting.owners(said(3, Heavy::Either, rows[0]), workers);
            let other = meeting.owners(said(8, Heavy::Either, rows[1]), workers);
            runtime.block_on(async {
                if turned {
                    let (other, one) = join(other, one).await;
                    (one, other)
                } else {
                    join(one, other).await
                }
            })
        };
        for turned in [false, true] {
            let (one, other) = owners([[5, 900, 5], [300, 7, 40]], 4, turned);
            assert_eq!(one, [Owner::All, Owner::Sender, Owner::Hash]);
            assert_eq!(other, [Owner::Sender, Owner::All, Owner::Hash]);
            // Either could be split.
            let (one, other) = owners([[100, 1, 1]; 2], 2, turned);
            assert_eq!(one, [Owner::Sender, Owner::Hash, Owner::Hash]);
            assert_eq!(other, [Owner::All, Owner::Hash, Owner::Hash]);
        }
    }

    #[test]
    fn who_would_wait_for_ever_is_told() {
        let exchange =
            |params: &str| format!("object_exchange(%0) {{keys = [k], shift = 40, {params}}}");
        let checked = |one: &str, other: &str| {
            let text = format!(
                "plan {{ %0 = values() {{columns = <k: int64>, rows = [[1::int64]]}} %1 = {one} %2 = {other} \
                 %3 = zip(%1, %2) {{}} return %3 }}"
            );
            check(&text::parse(&text).unwrap()).map_err(|error| error.message().to_string())
        };
        let (one, other) =
            ("bits = 5, heavy = :split, meets = :j", "bits = 5, heavy = :copied, meets = :j");
        assert_eq!(checked(&exchange(one), &exchange(other)), Ok(()));
        for (other, why) in [
            (exchange("bits = 5"), "are 1 and must be two"),
            (exchange("bits = 5, heavy = :copied, meets = :i"), "are 1 and must be two"),
            (exchange("bits = 6, heavy = :copied, meets = :j"), "different bits"),
            (exchange("bits = 5, meets = :j"), "together"),
            (exchange(other).replace("%0", "%1"), "wait for each other"),
        ] {
            let message = checked(&exchange(one), &other).unwrap_err();
            assert!(message.contains(why), "{message}");
        }
    }
}
