//! The rendezvous of the two exchanges of a join: they tell each other the sizes of their
//! partitions and agree on the owners of heavy ones.
//!
//! Every worker reads the indexes of all objects of both exchanges, so all workers reach the same
//! decision without further messages. On each worker, each of the two exchanges reads the indexes
//! of its own objects and passes the sums to the other.

use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};

use tessera_context::lock;
use tessera_operator::platform::{HeavyMode, heavy_partitions};
use tessera_plan::{Node, Plan};
use tessera_types::{Error, Result};

/// The partition sizes that an exchange passes to the other side.
#[derive(Debug)]
pub(crate) struct SideSizes {
    /// The number of the exchange.
    pub(crate) number: usize,
    pub(crate) heavy: HeavyMode,
    /// The rows of each partition, summed over all senders.
    pub(crate) rows: Vec<i64>,
}

/// The workers that read the tuples of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The worker that its hash names.
    Hash,
    /// Every worker reads the whole partition.
    All,
    /// Every worker keeps what it has read from the source.
    Sender,
}

/// The rendezvous of two exchanges of one worker.
#[derive(Debug, Default)]
pub(crate) struct Rendezvous {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    sizes: Vec<Arc<SideSizes>>,
    /// The waker of the exchange that arrived first.
    waiting: Option<Waker>,
}

impl Rendezvous {
    /// Passes sizes to the other exchange, waits for the other's, and returns the owners of this
    /// exchange's partitions.
    pub(crate) async fn owners(&self, sizes: SideSizes, workers: usize) -> Vec<Owner> {
        let number = sizes.number;
        let mut both = self.both(sizes).await;
        both.sort_by_key(|side| side.number);
        let rows = [&both[0].rows[..], &both[1].rows];
        let may_split = HeavyMode::may_split([both[0].heavy, both[1].heavy]);
        let owner = |split: Option<usize>| match split {
            None => Owner::Hash,
            Some(side) if both[side].number == number => Owner::Sender,
            Some(_) => Owner::All,
        };
        heavy_partitions(rows, may_split, workers).into_iter().map(owner).collect()
    }

    async fn both(&self, sizes: SideSizes) -> [Arc<SideSizes>; 2] {
        {
            let mut state = lock(&self.state);
            state.sizes.push(Arc::new(sizes));
            state.waiting.take().into_iter().for_each(Waker::wake);
        }
        poll_fn(|context| {
            let mut state = lock(&self.state);
            if let [one, other, ..] = &state.sizes[..] {
                return Poll::Ready([one.clone(), other.clone()]);
            }
            state.waiting = Some(context.waker().clone());
            Poll::Pending
        })
        .await
    }
}

/// Returns the name of the join that an exchange belongs to, and what its heavy partitions allow.
///
/// # Errors
/// One of the parameters `heavy` and `meets` is missing or wrong.
pub(crate) fn meets(node: &Node) -> Result<Option<(Arc<str>, HeavyMode)>> {
    match (HeavyMode::of(node)?, node.params.get("meets")) {
        (None, None) => Ok(None),
        (Some(heavy), Some(_)) => Ok(Some((node.params.name("meets")?.clone(), heavy))),
        _ => Err(Error::semantic("takes heavy and meets together, or neither")),
    }
}

/// Checks that exchanges that wait for each other cannot deadlock: each name has two of them, with
/// the same number of partitions, and neither is an input of the other.
///
/// # Errors
/// A rendezvous is invalid.
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
            return Err(wrong(name, &format!("are {} instead of two", both.len())));
        };
        let bits = |at: usize| plan.nodes[at].params.integer_opt("bits");
        if bits(one)? != bits(other)? {
            return Err(wrong(name, "have different bits"));
        }
        // Inputs come before their consumers, so only the later exchange can depend on the earlier.
        if *first == one && depends_on(plan, other, one) {
            return Err(wrong(name, "wait for each other: one is an input of the other"));
        }
    }
    Ok(())
}

/// Whether a node depends on another, directly or indirectly.
fn depends_on(plan: &Plan, node: usize, wanted: usize) -> bool {
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
        let sizes =
            |number, heavy, rows: [i64; 3]| SideSizes { number, heavy, rows: rows.to_vec() };
        let owners = |rows: [[i64; 3]; 2], workers, turned: bool| {
            let rendezvous = Rendezvous::default();
            let one = rendezvous.owners(sizes(3, HeavyMode::Either, rows[0]), workers);
            let other = rendezvous.owners(sizes(8, HeavyMode::Either, rows[1]), workers);
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
            // Either side could be split.
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
            (exchange("bits = 5"), "are 1 instead of two"),
            (exchange("bits = 5, heavy = :copied, meets = :i"), "are 1 instead of two"),
            (exchange("bits = 6, heavy = :copied, meets = :j"), "different bits"),
            (exchange("bits = 5, meets = :j"), "together"),
            (exchange(other).replace("%0", "%1"), "wait for each other"),
        ] {
            let message = checked(&exchange(one), &other).unwrap_err();
            assert!(message.contains(why), "{message}");
        }
    }
}
