//! The workers of the toy platform, and what they share while they run one plan.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use tessera_context::{Reservation, Token, lock};
use tessera_engine::DriverPlan;
use tessera_rows::WireBatch;
use tessera_types::{Error, Result};

/// A plan that the first worker sends to the others; `None` ends a worker.
pub(crate) type Order = Option<(DriverPlan, Arc<SharedRun>)>;

/// One worker: a session of its own, in a thread. The first one is the driver's.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) index: usize,
    pub(crate) workers: usize,
    /// Where the first worker sends plans.
    others: Vec<Sender<Order>>,
    /// Where another worker gets them.
    orders: Option<Mutex<Receiver<Order>>>,
    /// The run of the plan in progress.
    current: Mutex<Option<Arc<SharedRun>>>,
}

impl Worker {
    /// Creates all workers.
    pub(crate) fn all(workers: usize) -> Vec<Arc<Worker>> {
        let (senders, receivers): (Vec<_>, Vec<_>) = (1..workers).map(|_| channel()).unzip();
        let orders = receivers.into_iter().map(|orders| Some(Mutex::new(orders)));
        let worker = |(index, orders)| {
            let others = if index == 0 { senders.clone() } else { Vec::new() };
            Arc::new(Worker { index, workers, others, orders, current: Mutex::default() })
        };
        std::iter::once(None).chain(orders).enumerate().map(worker).collect()
    }

    /// Starts a run and sends its plan to the other workers.
    pub(crate) fn begin(&self, plan: &DriverPlan) -> Arc<SharedRun> {
        let run = SharedRun::new(self.workers);
        *lock(&self.current) = Some(run.clone());
        self.send(&Some((plan.clone(), run.clone())));
        run
    }

    /// Sends an order to the other workers. One that has gone is seen by its missing end.
    pub(crate) fn send(&self, order: &Order) {
        for other in &self.others {
            drop(other.send(order.clone()));
        }
    }

    /// The run of the plan in progress.
    pub(crate) fn current(&self) -> Result<Arc<SharedRun>> {
        lock(&self.current).clone().ok_or_else(|| Error::internal("no plan is in progress"))
    }

    /// Forgets the run, and with it what it still holds.
    pub(crate) fn forget(&self) {
        *lock(&self.current) = None;
    }

    /// Runs the plans that the first worker sends. Returns whether this is another worker.
    pub(crate) fn serve(&self, work: &mut dyn FnMut(&DriverPlan) -> Result<()>) -> bool {
        let Some(orders) = &self.orders else { return false };
        while let Ok(Some((plan, run))) = lock(orders).recv() {
            *lock(&self.current) = Some(run.clone());
            if let Err(error) = work(&plan) {
                run.fail(error, self.index);
            }
            // A plan that has not come to its executor ends here.
            run.end(self.index, None);
            self.forget();
        }
        true
    }
}

/// Rows on their way from one worker to another.
#[derive(Debug)]
pub(crate) struct Packet {
    /// The position of their morsel and the sender, which order packets as the source does.
    pub(crate) place: (u64, usize),
    pub(crate) batch: WireBatch<'static>,
    /// Counts the bytes for the sender until the receiver has copied them.
    pub(crate) memory: Reservation,
}

/// What the workers share while they run one plan.
#[derive(Debug)]
pub(crate) struct SharedRun {
    workers: usize,
    state: Mutex<State>,
    /// Ready when all workers have ended the plan.
    pub(crate) all_ended: Token,
}

#[derive(Debug, Default)]
struct State {
    /// By the node's position in the plan.
    exchanges: BTreeMap<usize, Queues>,
    ended: BTreeSet<usize>,
    failure: Option<Error>,
    figures: Vec<String>,
}

/// One exchange.
#[derive(Debug)]
struct Queues {
    /// The packets for each worker.
    packets: Vec<Vec<Packet>>,
    /// Workers that have sent everything.
    complete: usize,
    token: Token,
}

impl State {
    fn exchange(&mut self, step: usize, workers: usize) -> &mut Queues {
        let queues = || Queues {
            packets: (0..workers).map(|_| Vec::new()).collect(),
            complete: 0,
            token: Token::new(),
        };
        self.exchanges.entry(step).or_insert_with(queues)
    }
}

impl SharedRun {
    fn new(workers: usize) -> Arc<SharedRun> {
        Arc::new(SharedRun { workers, state: Mutex::default(), all_ended: Token::new() })
    }

    /// Queues a packet. After a failure it is dropped.
    pub(crate) fn send(&self, step: usize, to: usize, packet: Packet) {
        let mut state = lock(&self.state);
        if state.failure.is_none() {
            state.exchange(step, self.workers).packets[to].push(packet);
        }
    }

    /// A worker has sent everything of an exchange. Returns the token that is ready when all have.
    pub(crate) fn complete(&self, step: usize) -> Token {
        let mut state = lock(&self.state);
        let failed = state.failure.is_some();
        let exchange = state.exchange(step, self.workers);
        exchange.complete += 1;
        if failed || exchange.complete == self.workers {
            exchange.token.set_ready();
        }
        exchange.token.clone()
    }

    /// The packets for a worker, in the order of the source.
    ///
    /// # Errors
    /// The plan has failed on some worker.
    pub(crate) fn receive(&self, step: usize, worker: usize) -> Result<Vec<Packet>> {
        self.check()?;
        let mut state = lock(&self.state);
        let exchange = state.exchange(step, self.workers);
        let mut packets = std::mem::take(&mut exchange.packets[worker]);
        packets.sort_by_key(|packet| packet.place);
        Ok(packets)
    }

    /// Ends the plan on all workers. Only the first failure counts.
    pub(crate) fn fail(&self, error: Error, worker: usize) {
        let mut state = lock(&self.state);
        if state.failure.is_none() {
            state.failure = Some(error.context(format!("worker {worker}")));
        }
        for exchange in state.exchanges.values_mut() {
            exchange.packets.iter_mut().for_each(Vec::clear);
            exchange.token.set_ready();
        }
    }

    /// A worker has ended the plan. Other workers than the first bring their figures.
    pub(crate) fn end(&self, worker: usize, figures: Option<String>) {
        let mut state = lock(&self.state);
        state.ended.insert(worker);
        state.figures.extend(figures);
        if state.ended.len() == self.workers {
            self.all_ended.set_ready();
        }
    }

    /// The figures of the other workers.
    pub(crate) fn figures(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.state).figures)
    }

    /// # Errors
    /// The plan has failed on some worker.
    pub(crate) fn check(&self) -> Result<()> {
        lock(&self.state).failure.clone().map_or(Ok(()), Err)
    }
}
