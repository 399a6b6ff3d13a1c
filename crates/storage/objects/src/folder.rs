//! Prefixes whose new objects appear at the end. Each object is a multipart upload whose parts are
//! sent as it is written; the last request of each, which makes it visible, is sent when all bytes
//! are in the store. These requests follow each other closely, but readers can see a part of them.

use std::collections::HashSet;
use std::fmt;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::{FutureExt, StreamExt};
use object_store::path::Path;
use object_store::{Error as StoreError, ObjectStore};
use tessera_context::{FolderMode, Interrupt, Output, OutputFolder, lock};
use tessera_types::{Error, Result};

use crate::error::store_error;
use crate::io::wait;
use crate::listing::is_data;
use crate::location::{Kind, Location};
use crate::objects::Objects;
use crate::output::{ObjectOutput, complete};

/// The concurrent requests that make objects visible.
const REQUESTS_MAX: usize = 32;
/// The most objects whose last parts are in flight while others are written.
const UNSENT_MAX: usize = 4;

/// Whether an object of this address is data.
type IsData = Box<dyn Fn(&str) -> bool + Send>;

/// A prefix being written. Dropped before the commit, it leaves nothing.
pub(crate) struct ObjectFolder {
    objects: Arc<Objects>,
    store: Arc<dyn ObjectStore>,
    /// The address as the user wrote it.
    address: String,
    /// The prefix, with a slash at its end unless it is empty.
    prefix: Location,
    mode: FolderMode,
    is_data: IsData,
    staged: Arc<Mutex<Staged>>,
}

/// The objects that were written completely and are not visible.
#[derive(Debug, Default)]
struct Staged {
    outputs: Vec<ObjectOutput>,
    /// The number of outputs, from the first on, all of whose parts have arrived.
    sent: usize,
}

impl fmt::Debug for ObjectFolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ObjectFolder { address, mode, .. } = self;
        f.debug_struct("ObjectFolder")
            .field("address", address)
            .field("mode", mode)
            .finish_non_exhaustive()
    }
}

impl ObjectFolder {
    /// Begins to write the objects below a prefix.
    ///
    /// # Errors
    /// The store is read-only, or has objects there and the mode is [`FolderMode::New`].
    pub(crate) fn create(
        objects: Arc<Objects>,
        address: &str,
        mode: FolderMode,
        is_data: IsData,
    ) -> Result<ObjectFolder> {
        let mut prefix = Location::parse(address)?;
        if prefix.kind == Kind::Web {
            return Err(Error::unsupported(format!(
                "cannot write '{address}': web servers are read-only; write to s3://, gs:// or az://"
            )));
        }
        let key = prefix.key.trim_end_matches('/');
        prefix.key = if key.is_empty() { String::new() } else { format!("{key}/") };
        if mode == FolderMode::New && !objects.below(&prefix, |_| true)?.is_empty() {
            return Err(Error::io(format!(
                "the prefix '{address}' is not empty; with OVERWRITE, its data files are removed, with OVERWRITE_OR_IGNORE, \
                 those of the same names are replaced, and with APPEND, files are added"
            )));
        }
        let store = objects.store(&prefix)?;
        let (address, staged) = (address.to_string(), Arc::default());
        Ok(ObjectFolder { objects, store, address, prefix, mode, is_data, staged })
    }

    /// Makes all objects visible. Returns the first error and leaves the others for their abort.
    fn publish(&self, staged: &mut Staged) -> Result<()> {
        staged.send(0)?;
        let interrupt = self.objects.interrupt();
        let uploads: Vec<_> = staged
            .outputs
            .iter_mut()
            .enumerate()
            .filter_map(|(position, output)| Some((position, output.take_upload()?)))
            .collect();
        let has_failed = Arc::new(AtomicBool::new(false));
        let completions: Vec<_> = uploads
            .into_iter()
            .map(|(position, upload)| {
                let (interrupt, has_failed) = (interrupt.clone(), has_failed.clone());
                async move {
                    if has_failed.load(Ordering::Relaxed) {
                        return (position, upload, None);
                    }
                    let (upload, done) = complete(upload, &interrupt).await;
                    has_failed.fetch_or(!matches!(done, Ok(Ok(()))), Ordering::Relaxed);
                    (position, upload, Some(done))
                }
                .boxed()
            })
            .collect();
        let completions = futures_util::stream::iter(completions).buffer_unordered(REQUESTS_MAX);
        // Uploads are returned in any case, so that they can still be aborted.
        let done =
            wait(&Interrupt::default(), async move { Ok(completions.collect::<Vec<_>>().await) })?;
        let mut failure = None;
        for (position, upload, done) in done {
            let output = &mut staged.outputs[position];
            match done {
                Some(Ok(Ok(()))) => continue,
                Some(Ok(Err(error))) => {
                    failure = Some(store_error("write", output.address(), error));
                }
                Some(Err(cancelled)) => failure = Some(cancelled),
                None => {}
            }
            output.return_upload(upload);
        }
        failure.map_or(Ok(()), Err)
    }

    /// Removes objects. One that is not there any more is no error.
    fn remove(&self, paths: Vec<Path>, interrupt: &Interrupt) -> Result<()> {
        if paths.is_empty() {
            return Ok(());
        }
        let (store, address) = (self.store.clone(), self.address.clone());
        wait(interrupt, async move {
            let paths = futures_util::stream::iter(paths.into_iter().map(Ok)).boxed();
            let mut removed = store.delete_stream(paths);
            while let Some(result) = removed.next().await {
                match result {
                    Ok(_) | Err(StoreError::NotFound { .. }) => {}
                    Err(error) => return Err(store_error("remove objects of", &address, error)),
                }
            }
            Ok(())
        })
    }
}

impl Staged {
    /// Waits until at most `unsent_max` objects have parts in flight.
    fn send(&mut self, unsent_max: usize) -> Result<()> {
        while self.sent + unsent_max < self.outputs.len() {
            self.outputs[self.sent].settle()?;
            self.sent += 1;
        }
        Ok(())
    }
}

impl OutputFolder for ObjectFolder {
    fn create(&mut self, name: &str) -> Result<Box<dyn Output>> {
        let address = format!("{}{name}", self.prefix.address());
        let output = self.objects.output(&address)?;
        Ok(Box::new(StagedObject { output, staged: self.staged.clone() }))
    }

    fn commit(self: Box<Self>) -> Result<()> {
        let mut staged = lock(&self.staged);
        let new: HashSet<String> =
            staged.outputs.iter().map(|output| output.address().to_string()).collect();
        let start = self.prefix.address().len();
        let old = match self.mode {
            FolderMode::New | FolderMode::Replace => Vec::new(),
            FolderMode::Append => self.objects.below(&self.prefix, |_| true)?,
            FolderMode::Overwrite => self.objects.below(&self.prefix, is_data)?,
        };
        if self.mode == FolderMode::Append
            && let Some(taken) = old.iter().find(|address| new.contains(*address))
        {
            return Err(Error::io(format!(
                "cannot write '{}': its file {} exists",
                self.address,
                taken.get(start..).unwrap_or_default()
            )));
        }
        let paths = |addresses: &mut dyn Iterator<Item = &String>| {
            addresses.map(|address| Location::parse(address)?.path()).collect::<Result<Vec<_>>>()
        };
        let published = self.publish(&mut staged);
        if let Err(error) = published {
            // What did not replace other objects can be taken back.
            if matches!(self.mode, FolderMode::New | FolderMode::Append) {
                drop(self.remove(paths(&mut new.iter())?, &Interrupt::default()));
            }
            return Err(error);
        }
        if self.mode != FolderMode::Overwrite {
            return Ok(());
        }
        let mut gone =
            old.iter().filter(|address| !new.contains(*address) && (self.is_data)(address));
        self.remove(paths(&mut gone)?, &self.objects.interrupt())
    }
}

/// An object of a prefix. Once committed, its bytes are in the store or on their way.
#[derive(Debug)]
struct StagedObject {
    output: ObjectOutput,
    staged: Arc<Mutex<Staged>>,
}

impl Write for StagedObject {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.output.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Output for StagedObject {
    fn commit(self: Box<Self>) -> Result<()> {
        let StagedObject { mut output, staged } = *self;
        output.send_last()?;
        let mut staged = lock(&staged);
        staged.outputs.push(output);
        staged.send(UNSENT_MAX)
    }
}
