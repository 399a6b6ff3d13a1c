//! Files in folders such as `year=2024/month=1`, one for each combination of values. The input is
//! sorted by these columns, so that one file at a time is open.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::{Arc, Mutex};

use arrow::array::RecordBatch;
use arrow::compute::partition;

use tessera_context::{FolderMode, OutputFolder, Reservation, Run, lock};
use tessera_plan::{Node, Value};
use tessera_types::{Error, Result, Tuple, quote_name};

use super::{Encoder, FileWriter, Group, Part, PendingPart, TrackedOutput};
use crate::display::ColumnText;

/// The parameter of materialize sub-operators that write folders.
pub(crate) const PARTITIONS: &str = "partitions";
/// The value in a folder's name that represents NULL.
const NULL: &str = "__HIVE_DEFAULT_PARTITION__";
/// Replaced in file names by the number of earlier files of the same folder.
const NUMBER: &str = "{i}";
/// Replaced in file names by a random identifier.
const UNIQUE: &str = "{uuid}";

/// Returns the pattern of the names of files, if a node writes folders.
pub(super) fn file_name(node: &Node) -> Option<&Arc<str>> {
    let Some(Value::Record(entries)) = node.params.get(PARTITIONS) else { return None };
    entries.iter().find_map(|(name, value)| match value {
        Value::String(file) if &**name == "file" => Some(file),
        _ => None,
    })
}

/// How tuples are divided into folders.
#[derive(Debug, Clone)]
pub(crate) struct Partitioning {
    /// The columns whose values name the folders, outermost first, by name and position.
    keys: Vec<(Arc<str>, usize)>,
    /// The positions of the columns that the files have.
    written: Vec<usize>,
    /// The name of a file, with its extension.
    file_name: Arc<str>,
    mode: FolderMode,
}

impl Partitioning {
    /// Reads the parameter `partitions`; `None` if the node writes one file.
    ///
    /// # Errors
    /// The parameter is malformed, or names an unknown column.
    pub(crate) fn new(node: &Node, tuple: &Tuple) -> Result<Option<Partitioning>> {
        let Some(value) = node.params.get(PARTITIONS) else { return Ok(None) };
        let wrong = || {
            Error::semantic(
                "parameter partitions must be {by = [column, …], file = 'data_{i}.csv', mode = 'new', keep = false}",
            )
        };
        let Value::Record(entries) = value else { return Err(wrong()) };
        let (mut keys, mut file_name, mut mode, mut keep) =
            (Vec::new(), None, FolderMode::New, false);
        for (name, value) in entries {
            match (&**name, value) {
                ("by", Value::List(names)) => {
                    for name in names {
                        let (Value::String(name) | Value::Name(name)) = name else {
                            return Err(wrong());
                        };
                        let place = tuple.index_of(name).ok_or_else(|| {
                            let known = tuple.fields().iter().map(|field| &*field.name);
                            Error::semantic(format!(
                                "unknown column {} in partitions; the input has {}",
                                quote_name(name),
                                known.collect::<Vec<_>>().join(", ")
                            ))
                        })?;
                        keys.push((name.clone(), place));
                    }
                }
                ("file", Value::String(name)) => file_name = Some(name.clone()),
                ("mode", Value::String(text)) => {
                    mode = match &**text {
                        "new" => FolderMode::New,
                        "overwrite" => FolderMode::Overwrite,
                        "replace" => FolderMode::Replace,
                        "append" => FolderMode::Append,
                        _ => return Err(wrong()),
                    };
                }
                ("keep", Value::Boolean(value)) => keep = *value,
                _ => return Err(wrong()),
            }
        }
        let is_key = |position: &usize| keys.iter().any(|(_, key)| key == position);
        let written: Vec<usize> =
            (0..tuple.len()).filter(|position| keep || !is_key(position)).collect();
        let Some(file_name) = file_name.filter(|_| !keys.is_empty() && !written.is_empty()) else {
            return Err(wrong());
        };
        Ok(Some(Partitioning { keys, written, file_name, mode }))
    }

    /// The columns of the files.
    pub(crate) fn files_tuple(&self, tuple: &Tuple) -> Tuple {
        let fields = self.written.iter().map(|&position| tuple.fields()[position].clone());
        Tuple::new(fields.collect::<Vec<_>>())
    }

    /// Encodes the runs of tuples of one folder each. `memory` holds the bytes of the batch.
    pub(super) fn runs(
        &self,
        batch: &RecordBatch,
        encoder: &dyn Encoder,
        memory: Reservation,
        run: &Run,
    ) -> Result<Vec<PartitionRun>> {
        let keys: Vec<_> =
            self.keys.iter().map(|(_, position)| batch.column(*position).clone()).collect();
        let texts = keys.iter().map(ColumnText::new).collect::<Result<Vec<_>>>()?;
        let files = batch.project(&self.written)?;
        let share = memory.bytes() / batch.num_rows().max(1);
        drop(memory);
        let mut runs = Vec::new();
        for range in partition(&keys)?.ranges() {
            run.context.check()?;
            let folder = self.folder(&texts, range.start)?;
            let rows = range.end - range.start;
            let part = encoder.part(files.slice(range.start, rows))?;
            let mut memory = Reservation::new(run.context.clone());
            memory.grow(match &part {
                Part::Text(text) => text.len(),
                _ => rows * share,
            })?;
            runs.push(PartitionRun { folder, part: (part, memory) });
        }
        Ok(runs)
    }

    /// The folder of a tuple: `year=2024/month=1`.
    fn folder(&self, texts: &[ColumnText<'_>], row: usize) -> Result<Arc<str>> {
        let mut folder = String::new();
        for ((name, _), text) in self.keys.iter().zip(texts) {
            if !folder.is_empty() {
                folder.push('/');
            }
            encode(name, &mut folder);
            folder.push('=');
            if text.is_null(row) {
                folder.push_str(NULL);
                continue;
            }
            let mut value = String::new();
            text.append(row, &mut value)?;
            encode(&value, &mut folder);
        }
        Ok(folder.into())
    }
}

/// Appends a text with the bytes encoded that a folder's name cannot have, as in the address of a
/// web page.
fn encode(text: &str, out: &mut String) {
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                out.push(char::from(byte));
            }
            _ => {
                const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
                let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble & 15)]);
                out.extend(['%', digit(byte >> 4), digit(byte)]);
            }
        }
    }
}

/// Successive tuples of one folder.
#[derive(Debug)]
pub(crate) struct PartitionRun {
    folder: Arc<str>,
    part: PendingPart,
}

impl PartitionRun {
    /// The reserved bytes.
    pub(super) fn bytes(&self) -> usize {
        self.part.1.bytes()
    }
}

/// The files of all folders. One is open at a time.
#[derive(Debug)]
pub(super) struct PartitionedFiles {
    path: Arc<str>,
    partitioning: Arc<Partitioning>,
    encoder: Arc<dyn Encoder>,
    run: Run,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// `None` after it was completed.
    folder: Option<Box<dyn OutputFolder>>,
    open: Option<OpenFile>,
    /// The number of files in each folder.
    files: HashMap<Arc<str>, usize>,
}

#[derive(Debug)]
struct OpenFile {
    folder: Arc<str>,
    path: String,
    output: TrackedOutput,
    writer: Box<dyn FileWriter>,
}

impl PartitionedFiles {
    pub(super) fn begin(
        path: &Arc<str>,
        partitioning: &Arc<Partitioning>,
        encoder: &Arc<dyn Encoder>,
        run: &Run,
    ) -> Result<Box<dyn FileWriter>> {
        let folder = Some(run.context.create_folder(path, partitioning.mode)?);
        Ok(Box::new(PartitionedFiles {
            path: path.clone(),
            partitioning: partitioning.clone(),
            encoder: encoder.clone(),
            run: run.clone(),
            state: Mutex::new(State { folder, open: None, files: HashMap::new() }),
        }))
    }

    fn write_run(&self, state: &mut State, run: PartitionRun) -> Result<()> {
        if state.open.as_ref().is_none_or(|open| open.folder != run.folder) {
            state.close()?;
            state.open = Some(self.open(state, run.folder)?);
        }
        let Some(open) = &state.open else {
            return Err(Error::internal("a file of a folder is not open"));
        };
        let written = open
            .writer
            .take(vec![run.part])
            .and_then(|groups| groups.into_iter().try_for_each(|group| open.writer.write(group)));
        open.output.explain(&open.path, written)
    }

    fn open(&self, state: &mut State, folder: Arc<str>) -> Result<OpenFile> {
        let number = state.files.entry(folder.clone()).or_default();
        let mut name = self.partitioning.file_name.replace(NUMBER, &number.to_string());
        if name.contains(UNIQUE) {
            name = name.replace(UNIQUE, &unique());
        }
        *number += 1;
        let Some(files) = &mut state.folder else {
            return Err(Error::internal("a folder was written twice"));
        };
        let name = format!("{folder}/{name}");
        let output = TrackedOutput::new(files.create(&name)?);
        let path = format!("{}/{name}", self.path.trim_end_matches('/'));
        let writer = self.encoder.begin(output.clone(), &self.run);
        let writer = output.explain(&path, writer)?;
        Ok(OpenFile { folder, path, output, writer })
    }
}

/// A random identifier in the form of a UUID of version 4.
fn unique() -> String {
    let random = || RandomState::new().build_hasher().finish();
    let (high, low) = (random(), random());
    format!(
        "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
        high >> 32,
        (high >> 16) & 0xffff,
        high & 0xfff,
        (low >> 48) & 0x3fff | 0x8000,
        low & 0xffff_ffff_ffff
    )
}

impl State {
    /// Completes the open file, if any.
    fn close(&mut self) -> Result<()> {
        let Some(OpenFile { path, output, writer, .. }) = self.open.take() else { return Ok(()) };
        output.explain(&path, writer.close())?;
        output.commit()
    }
}

impl FileWriter for PartitionedFiles {
    fn take(&self, parts: Vec<PendingPart>) -> Result<Vec<Group>> {
        let mut state = lock(&self.state);
        for (part, _memory) in parts {
            let Part::Runs(runs) = part else {
                return Err(Error::internal("runs of a folder were expected"));
            };
            for run in runs {
                self.run.context.check()?;
                self.write_run(&mut state, run)?;
            }
        }
        Ok(Vec::new())
    }

    fn close(&self) -> Result<()> {
        let mut state = lock(&self.state);
        state.close()?;
        let folder = state.folder.take();
        folder.ok_or_else(|| Error::internal("a folder was written twice"))?.commit()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_folders() {
        let encoded = |text: &str| {
            let mut out = String::new();
            encode(text, &mut out);
            out
        };
        assert_eq!(encoded("a-b_c.d~9"), "a-b_c.d~9");
        assert_eq!(encoded("x y/=%é"), "x%20y%2F%3D%25%C3%A9");
    }

    #[test]
    fn identifiers_differ() {
        let (one, other) = (unique(), unique());
        assert_ne!(one, other);
        assert_eq!((one.len(), &one[14..15]), (36, "4"));
    }
}
