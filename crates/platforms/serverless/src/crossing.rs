//! The store's side of an exchange, on the I/O thread: an object is written, and those of all
//! senders are read.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::{Error as StoreError, GetOptions, GetRange};
use tessera_context::{Reservation, lock};
use tessera_types::{Code, Error, Result};

use crate::invoke::pause;
use crate::meeting::{Meeting, Owner, Said};
use crate::object::{self, Came, Content, Group, Index};
use crate::parts::Parts;
use crate::task::Task;

/// Bytes that are read with an index: small objects are then read whole, with one request.
const BESIDE_BYTES: usize = 16 << 10;
/// Requests of one exchange that are under way at once.
const READS_MAX: usize = 32;
/// How often a body that was cut is asked for again.
const CUTS_MAX: usize = 6;

/// The store's side of an exchange.
pub(crate) struct Crossing {
    pub(crate) number: usize,
    pub(crate) parts: Parts,
    /// Whether only the first worker sends.
    pub(crate) only_first: bool,
    /// With the exchange of the other side of a join.
    pub(crate) meeting: Option<Arc<Meeting>>,
    pub(crate) task: Arc<Task>,
    /// For what has come.
    pub(crate) memory: Mutex<Reservation>,
}

/// What has come, and how many partitions stay where they are.
#[derive(Debug)]
pub(crate) struct Crossed {
    pub(crate) came: Vec<Came>,
    pub(crate) split: usize,
}

/// A sender's object, and what of it is here.
struct Object {
    sender: usize,
    index: Index,
    /// Groups of this worker's own.
    kept: BTreeMap<usize, Vec<Came>>,
    /// The first bytes of another's.
    head: Bytes,
    memory: Reservation,
}

/// Neighbouring groups of an object that are still to be read.
struct Run {
    sender: usize,
    range: Range<u64>,
    content: Content,
}

impl Crossing {
    /// The name of a sender's object.
    pub(crate) fn name(&self, sender: usize) -> String {
        format!("{:05}/{sender:05}", self.number)
    }

    pub(crate) fn reservation(&self) -> Reservation {
        Reservation::new(lock(&self.memory).context())
    }

    /// Writes this worker's object; gives what this worker is to have of every sender's.
    pub(crate) async fn cross(
        &self,
        groups: Vec<Vec<Group>>,
        held: Vec<Reservation>,
    ) -> Result<Crossed> {
        let order = &self.task.order;
        let own = self.send(groups, held).await?;
        let senders = if self.only_first { 1 } else { order.workers };
        let others: Vec<usize> = (0..senders)
            .filter(|sender| own.as_ref().is_none_or(|own| own.sender != *sender))
            .collect();
        let Some((meeting, heavy)) = self.meeting.as_ref().zip(self.parts.heavy()) else {
            return Ok(Crossed { came: self.receive(own, others).await?, split: 0 });
        };
        let objects = self.as_they_appear(others, |sender| self.open(sender)).await?;
        let objects: Vec<Object> = objects.into_values().chain(own).collect();
        let mut rows = vec![0i64; self.parts.groups()];
        for object in &objects {
            let counts = object.index.rows().map(|count| i64::try_from(count).unwrap_or(i64::MAX));
            rows.iter_mut().zip(counts).for_each(|(sum, count)| *sum = sum.saturating_add(count));
        }
        let owners = meeting.owners(Said { number: self.number, heavy, rows }, order.workers).await;
        let split = owners.iter().filter(|owner| **owner == Owner::Sender).count();
        Ok(Crossed { came: self.receive_met(objects, &owners).await?, split })
    }

    /// Writes this worker's object, if others read it. None if it does not send, or if another
    /// attempt at this worker was first: that one's tuples are those that the others see.
    async fn send(
        &self,
        groups: Vec<Vec<Group>>,
        held: Vec<Reservation>,
    ) -> Result<Option<Object>> {
        let sender = self.task.order.index;
        if self.only_first && sender > 0 {
            return Ok(None);
        }
        let groups: Vec<Vec<Came>> =
            groups.into_iter().map(|parts| parts.into_iter().map(Came::from).collect()).collect();
        let index = Index::of(&groups);
        if self.parts.read_by_others(sender) {
            let payload = object::payload(&groups, &index)?;
            if !self.task.put_new(self.name(sender), payload).await? {
                return Ok(None);
            }
        }
        let mut memory = self.reservation();
        let rows: Vec<u64> = index.rows().collect();
        let kept: BTreeMap<usize, Vec<Came>> = groups
            .into_iter()
            .enumerate()
            .filter(|(group, _)| self.parts.is_kept(*group, sender, &rows))
            .collect();
        drop(held);
        memory.grow(kept.values().flatten().map(|part| part.bytes.len()).sum())?;
        Ok(Some(Object { sender, index, kept, head: Bytes::new(), memory }))
    }

    /// The groups of this worker, of each sender's object as it appears; in the order of the
    /// senders.
    async fn receive(&self, own: Option<Object>, others: Vec<usize>) -> Result<Vec<Came>> {
        let mine = self.parts.of_receiver(self.task.order.index);
        if mine.is_empty() {
            return Ok(Vec::new());
        }
        let take = |object| async {
            let (mut came, runs) = self.at_hand(object, &|group| mine.contains(&group))?;
            for run in runs {
                came.push(self.read(run).await?);
            }
            Ok(came)
        };
        let mut came = BTreeMap::new();
        if let Some(own) = own {
            came.insert(own.sender, take(own).await?);
        }
        let open = |sender| async move {
            match self.open(sender).await? {
                Some(object) => take(object).await.map(Some),
                None => Ok(None),
            }
        };
        came.extend(self.as_they_appear(others, open).await?);
        Ok(came.into_values().flatten().collect())
    }

    /// The groups of this worker, where partitions have these owners.
    async fn receive_met(&self, objects: Vec<Object>, owners: &[Owner]) -> Result<Vec<Came>> {
        let receiver = self.task.order.index;
        let mine = self.parts.of_receiver(receiver);
        let (mut came, mut missing) = (Vec::new(), Vec::new());
        for object in objects {
            let sender = object.sender;
            let is_mine = |group: usize| match owners[group] {
                Owner::Hash => mine.contains(&group),
                Owner::All => true,
                Owner::Sender => sender == receiver,
            };
            let (here, runs) = self.at_hand(object, &is_mine)?;
            came.extend(here);
            missing.extend(runs);
        }
        let reads = stream::iter(missing.into_iter().map(|run| self.read(run)));
        let read: Vec<Came> = reads.buffer_unordered(READS_MAX).try_collect().await?;
        came.extend(read);
        Ok(came)
    }

    /// What `read` gives of the objects of these senders, as they appear. One that is late is asked
    /// for alone, so that waiting costs one request a time and not one for each sender.
    pub(crate) async fn as_they_appear<T, F: Future<Output = Result<Option<T>>>>(
        &self,
        mut missing: Vec<usize>,
        read: impl Fn(usize) -> F,
    ) -> Result<BTreeMap<usize, T>> {
        let mut came = BTreeMap::new();
        let (mut waited, mut alone) = (0, false);
        while !missing.is_empty() {
            self.task.stop.check()?;
            let now = if alone { missing[..1].to_vec() } else { missing.clone() };
            let reads = now.into_iter().map(|sender| {
                let read = read(sender);
                async move { (sender, read.await) }
            });
            let found: Vec<_> = stream::iter(reads).buffer_unordered(READS_MAX).collect().await;
            let before = missing.len();
            for (sender, found) in found {
                if let Some(found) = found? {
                    came.insert(sender, found);
                    missing.retain(|other| *other != sender);
                }
            }
            alone = missing.len() == before;
            if alone {
                tokio::time::sleep(pause(waited)).await;
                waited += 1;
            }
        }
        Ok(came)
    }

    /// The index of a sender's object, and what comes with it; none where that is not there yet.
    async fn open(&self, sender: usize) -> Result<Option<Object>> {
        let groups = self.parts.groups();
        let first = 0..(object::index_bytes(groups) + BESIDE_BYTES) as u64;
        let Some((head, size)) = self.range(&self.name(sender), first).await? else {
            return Ok(None);
        };
        let mut memory = self.reservation();
        memory.grow(head.len())?;
        let index = Index::read(&head, groups)?;
        index.check(size)?;
        Ok(Some(Object { sender, index, kept: BTreeMap::new(), head, memory }))
    }

    /// What is here of some groups, and what is to be read.
    fn at_hand(
        &self,
        object: Object,
        wanted: &dyn Fn(usize) -> bool,
    ) -> Result<(Vec<Came>, Vec<Run>)> {
        let Object { sender, index, mut kept, head, memory } = object;
        let missing = index.runs(|group| wanted(group) && !kept.contains_key(&group));
        kept.retain(|group, _| wanted(*group));
        let mut here: Vec<Came> = kept.into_values().flatten().collect();
        let mut bytes: usize = here.iter().map(|part| part.bytes.len()).sum();
        let (mut runs, before) = (Vec::new(), here.len());
        for (range, content) in missing {
            let end = usize::try_from(range.end).ok().filter(|end| *end <= head.len());
            match end {
                Some(end) => {
                    here.push(Came { content, bytes: head.slice(range.start as usize..end) })
                }
                None => runs.push(Run { sender, range, content }),
            }
        }
        if here.len() > before {
            // They keep the whole head.
            bytes += head.len();
        }
        drop(memory);
        lock(&self.memory).grow(bytes)?;
        Ok((here, runs))
    }

    async fn read(&self, run: Run) -> Result<Came> {
        let Run { sender, range, content } = run;
        let len = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        lock(&self.memory).grow(len)?;
        let name = self.name(sender);
        match self.range(&name, range).await? {
            Some((bytes, _)) => Ok(Came { content, bytes }),
            None => Err(gone(&name)),
        }
    }

    /// The bytes of a range, as far as the object has them, and how many it has in all; none where
    /// it is not there.
    pub(crate) async fn range(
        &self,
        name: &str,
        range: Range<u64>,
    ) -> Result<Option<(Bytes, u64)>> {
        let path = self.task.space.path(name);
        let mut cuts = 0;
        loop {
            let options = GetOptions::new().with_range(Some(GetRange::Bounded(range.clone())));
            let failed = |error| {
                Err(Error::io(format!("cannot read the object '{path}' of this query: {error}")))
            };
            let cut = match self.task.space.store.get_opts(&path, options).await {
                Ok(answer) => {
                    let (range, size) = (answer.range.clone(), answer.meta.size);
                    match answer.bytes().await {
                        Ok(bytes) if bytes.len() as u64 == range.end - range.start => {
                            self.task.space.received(&bytes);
                            return Ok(Some((bytes, size)));
                        }
                        Ok(_) => "the body ends early".to_string(),
                        Err(error) => error.to_string(),
                    }
                }
                Err(StoreError::NotFound { .. }) => return Ok(None),
                Err(error) => error.to_string(),
            };
            if cuts == CUTS_MAX {
                return failed(cut);
            }
            tokio::time::sleep(pause(cuts)).await;
            cuts += 1;
        }
    }
}

/// Whoever ends a query deletes its objects, and says why; this is not the reason.
pub(crate) fn gone(name: &str) -> Error {
    Error::new(Code::Cancelled, format!("the object '{name}' of this query is gone"))
}

#[cfg(test)]
mod tests;
