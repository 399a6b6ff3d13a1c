//! The store side of an exchange, on the I/O thread: writes this worker's object and reads those of
//! all senders.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::{Error as StoreError, GetOptions, GetRange};
use tessera_context::{Reservation, lock};
use tessera_types::{Code, Error, Result};

use crate::group_map::GroupMap;
use crate::invoke::pause;
use crate::object::{self, Group, GroupData, GroupSummary, Index};
use crate::rendezvous::{Owner, Rendezvous, SideSizes};
use crate::task::Task;

/// Bytes read together with an index, so that small objects need one request.
const READ_AHEAD_BYTES: usize = 16 << 10;
/// The maximum number of concurrent requests of one exchange.
const READS_MAX: usize = 32;
/// The maximum number of retries of a truncated body.
const RETRIES_MAX: usize = 6;

/// The store side of an exchange.
pub(crate) struct StoreExchange {
    pub(crate) number: usize,
    pub(crate) group_map: GroupMap,
    /// Whether only the first worker sends.
    pub(crate) only_first: bool,
    /// The rendezvous with the exchange of the other side of a join.
    pub(crate) rendezvous: Option<Arc<Rendezvous>>,
    pub(crate) task: Arc<Task>,
    /// The reservation of received groups.
    pub(crate) memory: Mutex<Reservation>,
}

/// The received groups, and the number of partitions that stay with their senders.
#[derive(Debug)]
pub(crate) struct ReceivedGroups {
    pub(crate) groups: Vec<GroupData>,
    pub(crate) split: usize,
}

/// A sender's object, and the parts of it that are in memory.
struct SenderObject {
    sender: usize,
    index: Index,
    /// Groups that this worker has kept of its own object.
    kept: BTreeMap<usize, Vec<GroupData>>,
    /// The first bytes of another worker's object.
    head: Bytes,
    memory: Reservation,
}

/// Neighboring groups of an object that are not yet read.
struct MissingRange {
    sender: usize,
    range: Range<u64>,
    content: GroupSummary,
}

impl StoreExchange {
    /// Returns the name of a sender's object.
    pub(crate) fn name(&self, sender: usize) -> String {
        format!("{:05}/{sender:05}", self.number)
    }

    pub(crate) fn reservation(&self) -> Reservation {
        Reservation::new(lock(&self.memory).context())
    }

    /// Writes this worker's object and returns the groups for this worker of every sender's object.
    pub(crate) async fn exchange(
        &self,
        groups: Vec<Vec<Group>>,
        held: Vec<Reservation>,
    ) -> Result<ReceivedGroups> {
        let order = &self.task.order;
        let own = self.send(groups, held).await?;
        let senders = if self.only_first { 1 } else { order.workers };
        let others: Vec<usize> = (0..senders)
            .filter(|sender| own.as_ref().is_none_or(|own| own.sender != *sender))
            .collect();
        let Some((rendezvous, heavy)) = self.rendezvous.as_ref().zip(self.group_map.heavy()) else {
            return Ok(ReceivedGroups { groups: self.receive(own, others).await?, split: 0 });
        };
        let objects = self.poll_senders(others, |sender| self.open(sender)).await?;
        let objects: Vec<SenderObject> = objects.into_values().chain(own).collect();
        let mut rows = vec![0i64; self.group_map.groups()];
        for object in &objects {
            let counts = object.index.rows().map(|count| i64::try_from(count).unwrap_or(i64::MAX));
            rows.iter_mut().zip(counts).for_each(|(sum, count)| *sum = sum.saturating_add(count));
        }
        let owners =
            rendezvous.owners(SideSizes { number: self.number, heavy, rows }, order.workers).await;
        let split = owners.iter().filter(|owner| **owner == Owner::Sender).count();
        Ok(ReceivedGroups { groups: self.receive_owned(objects, &owners).await?, split })
    }

    /// Writes this worker's object if others read it. Returns `None` if this worker does not send,
    /// or if another attempt at it was first: the others then see that attempt's tuples.
    async fn send(
        &self,
        groups: Vec<Vec<Group>>,
        held: Vec<Reservation>,
    ) -> Result<Option<SenderObject>> {
        let sender = self.task.order.index;
        if self.only_first && sender > 0 {
            return Ok(None);
        }
        let groups: Vec<Vec<GroupData>> = groups
            .into_iter()
            .map(|parts| parts.into_iter().map(GroupData::from).collect())
            .collect();
        let index = Index::of_groups(&groups);
        if self.group_map.read_by_others(sender) {
            let payload = object::payload(&groups, &index)?;
            if !self.task.put_new(self.name(sender), payload).await? {
                return Ok(None);
            }
        }
        let mut memory = self.reservation();
        let rows: Vec<u64> = index.rows().collect();
        let kept: BTreeMap<usize, Vec<GroupData>> = groups
            .into_iter()
            .enumerate()
            .filter(|(group, _)| self.group_map.is_retained(*group, sender, &rows))
            .collect();
        drop(held);
        memory.grow(kept.values().flatten().map(|part| part.bytes.len()).sum())?;
        Ok(Some(SenderObject { sender, index, kept, head: Bytes::new(), memory }))
    }

    /// Reads this worker's groups of each sender's object as it appears; returns them in the order
    /// of the senders.
    async fn receive(
        &self,
        own: Option<SenderObject>,
        others: Vec<usize>,
    ) -> Result<Vec<GroupData>> {
        let mine = self.group_map.receiver_groups(self.task.order.index);
        if mine.is_empty() {
            return Ok(Vec::new());
        }
        let take = |object| async {
            let (mut received, runs) = self.split_local(object, &|group| mine.contains(&group))?;
            for run in runs {
                received.push(self.read(run).await?);
            }
            Ok(received)
        };
        let mut received = BTreeMap::new();
        if let Some(own) = own {
            received.insert(own.sender, take(own).await?);
        }
        let open = |sender| async move {
            match self.open(sender).await? {
                Some(object) => take(object).await.map(Some),
                None => Ok(None),
            }
        };
        received.extend(self.poll_senders(others, open).await?);
        Ok(received.into_values().flatten().collect())
    }

    /// Reads this worker's groups, given the owners of partitions.
    async fn receive_owned(
        &self,
        objects: Vec<SenderObject>,
        owners: &[Owner],
    ) -> Result<Vec<GroupData>> {
        let receiver = self.task.order.index;
        let mine = self.group_map.receiver_groups(receiver);
        let (mut received, mut missing) = (Vec::new(), Vec::new());
        for object in objects {
            let sender = object.sender;
            let is_mine = |group: usize| match owners[group] {
                Owner::Hash => mine.contains(&group),
                Owner::All => true,
                Owner::Sender => sender == receiver,
            };
            let (here, runs) = self.split_local(object, &is_mine)?;
            received.extend(here);
            missing.extend(runs);
        }
        let reads = stream::iter(missing.into_iter().map(|run| self.read(run)));
        let read: Vec<GroupData> = reads.buffer_unordered(READS_MAX).try_collect().await?;
        received.extend(read);
        Ok(received)
    }

    /// Polls the objects of these senders until `read` has returned a value for each. Without
    /// progress it polls only one sender, so that waiting costs one request at a time.
    pub(crate) async fn poll_senders<T, F: Future<Output = Result<Option<T>>>>(
        &self,
        mut missing: Vec<usize>,
        read: impl Fn(usize) -> F,
    ) -> Result<BTreeMap<usize, T>> {
        let mut received = BTreeMap::new();
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
                    received.insert(sender, found);
                    missing.retain(|other| *other != sender);
                }
            }
            alone = missing.len() == before;
            if alone {
                tokio::time::sleep(pause(waited)).await;
                waited += 1;
            }
        }
        Ok(received)
    }

    /// Reads the index of a sender's object and the bytes after it; `None` if the object does not
    /// exist yet.
    async fn open(&self, sender: usize) -> Result<Option<SenderObject>> {
        let groups = self.group_map.groups();
        let first = 0..(object::index_bytes(groups) + READ_AHEAD_BYTES) as u64;
        let Some((head, size)) = self.range(&self.name(sender), first).await? else {
            return Ok(None);
        };
        let mut memory = self.reservation();
        memory.grow(head.len())?;
        let index = Index::read(&head, groups)?;
        index.check(size)?;
        Ok(Some(SenderObject { sender, index, kept: BTreeMap::new(), head, memory }))
    }

    /// Returns the wanted groups that are in memory, and the ranges still to be read.
    fn split_local(
        &self,
        object: SenderObject,
        wanted: &dyn Fn(usize) -> bool,
    ) -> Result<(Vec<GroupData>, Vec<MissingRange>)> {
        let SenderObject { sender, index, mut kept, head, memory } = object;
        let missing = index.runs(|group| wanted(group) && !kept.contains_key(&group));
        kept.retain(|group, _| wanted(*group));
        let mut here: Vec<GroupData> = kept.into_values().flatten().collect();
        let mut bytes: usize = here.iter().map(|part| part.bytes.len()).sum();
        let (mut runs, before) = (Vec::new(), here.len());
        for (range, content) in missing {
            let end = usize::try_from(range.end).ok().filter(|end| *end <= head.len());
            match end {
                Some(end) => {
                    here.push(GroupData { content, bytes: head.slice(range.start as usize..end) })
                }
                None => runs.push(MissingRange { sender, range, content }),
            }
        }
        if here.len() > before {
            // The slices keep the whole head in memory.
            bytes += head.len();
        }
        drop(memory);
        lock(&self.memory).grow(bytes)?;
        Ok((here, runs))
    }

    async fn read(&self, run: MissingRange) -> Result<GroupData> {
        let MissingRange { sender, range, content } = run;
        let len = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        lock(&self.memory).grow(len)?;
        let name = self.name(sender);
        match self.range(&name, range).await? {
            Some((bytes, _)) => Ok(GroupData { content, bytes }),
            None => Err(object_missing(&name)),
        }
    }

    /// Reads a range of an object as far as it exists; returns the bytes and the object's size, or
    /// `None` if there is no such object.
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
                        Ok(_) => "the body is truncated".to_string(),
                        Err(error) => error.to_string(),
                    }
                }
                Err(StoreError::NotFound { .. }) => return Ok(None),
                Err(error) => error.to_string(),
            };
            if cuts == RETRIES_MAX {
                return failed(cut);
            }
            tokio::time::sleep(pause(cuts)).await;
            cuts += 1;
        }
    }
}

/// Returns the error for a missing object. AbortOnDrop a query deletes its objects, so this is a
/// consequence and not the cause.
pub(crate) fn object_missing(name: &str) -> Error {
    Error::new(Code::Cancelled, format!("the object '{name}' of this query is gone"))
}

#[cfg(test)]
mod tests;
