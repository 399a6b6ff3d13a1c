//! Samples that outlive the process: a file for each table in a cache directory.
//!
//! A file is named by a hash of what reads the table, and holds the versions of the table's files,
//! so that a table that has changed is sampled again. A file that is damaged, old or of another
//! version of this program is ignored, and a file that cannot be written is left out. A file is
//! read only if no other user can have written it. Files appear whole, by renaming.
//!
//! Layout: [`MAGIC`]; length and text of the versions; rows of the table (a float's bits); 1 for an
//! even sample; where the rows lie, the numbers of the columns, and their distinct values (a
//! float's bits, 0 if not counted), each a list with its length first; rows; the columns as an
//! Arrow stream; a hash of all that. Numbers are 8 bytes, the lowest first.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Field, Schema};
use arrow::ipc::writer::StreamWriter;
use tessera_files::{read_own, write_own};
use tessera_optimizer::sample::Drawn;
use tessera_rows::ipc::first_batch;
use tessera_vector::hash::word_of_bytes;

const MAGIC: &[u8; 8] = b"TESSTAT2";
/// A larger file is no sample.
const FILE_BYTES_MAX: u64 = 64 << 20;
/// The most files in the directory; when one more comes, all go. Each is some 100 KiB, of a wide
/// table that was read whole some MiB.
const FILES_MAX: usize = 4_096;

/// Where the sample of one version of a table is kept.
#[derive(Debug, Clone)]
pub(super) struct Kept {
    file: PathBuf,
    versions: String,
}

/// Columns that were drawn, by their numbers.
#[derive(Debug, Clone, Default)]
pub(super) struct Columns {
    /// Where the rows lie, in the words of who draws them.
    pub(super) places: Vec<u64>,
    pub(super) numbers: Vec<usize>,
    pub(super) drawn: Drawn,
}

impl Columns {
    /// Whether distinct values were counted, in the whole table.
    pub(super) fn is_counted(&self) -> bool {
        self.drawn.distinct.iter().any(Option::is_some)
    }
}

impl Kept {
    /// The place of a table: `reads` says how it is read, `versions` which versions its files are
    /// of.
    pub(super) fn new(directory: &Path, reads: &str, versions: String) -> Kept {
        Kept {
            file: directory.join(format!("{:016x}.sample", word_of_bytes(reads.as_bytes()))),
            versions,
        }
    }

    /// What is kept, if it is of these versions and not damaged.
    pub(super) fn load(&self) -> Option<Columns> {
        self.parse(&read_own(&self.file, FILE_BYTES_MAX).ok()?)
    }

    fn parse(&self, bytes: &[u8]) -> Option<Columns> {
        let (body, hash) = bytes.split_last_chunk::<8>()?;
        if u64::from_le_bytes(*hash) != word_of_bytes(body) {
            return None;
        }
        let mut rest = body.strip_prefix(MAGIC)?;
        let length = number(&mut rest)? as usize;
        let (versions, mut rest) = rest.split_at_checked(length)?;
        if versions != self.versions.as_bytes() {
            return None;
        }
        let table_rows = f64::from_bits(number(&mut rest)?);
        let even = number(&mut rest)? == 1;
        let places = list(&mut rest)?;
        let numbers: Vec<usize> =
            list(&mut rest)?.into_iter().map(|number| number as usize).collect();
        let counted =
            list(&mut rest)?.into_iter().map(|bits| (bits != 0).then(|| f64::from_bits(bits)));
        let distinct: Vec<Option<f64>> = counted.collect();
        let rows = number(&mut rest)? as usize;
        let batch = first_batch(rest.to_vec()).ok()?;
        let columns = batch.columns().to_vec();
        let fits =
            columns.len() == numbers.len() && columns.iter().all(|column| column.len() == rows);
        fits.then_some(Columns {
            places,
            numbers,
            drawn: Drawn { columns, rows, table_rows, even, distinct },
        })
    }

    /// Keeps a sample; whether it could.
    pub(super) fn save(&self, sample: &Columns) -> bool {
        self.written(sample).is_some()
    }

    fn written(&self, sample: &Columns) -> Option<()> {
        let bytes = self.bytes(sample)?;
        if bytes.len() as u64 > FILE_BYTES_MAX {
            return None;
        }
        make_room(self.file.parent()?);
        write_own(&self.file, &bytes).ok()
    }

    fn bytes(&self, sample: &Columns) -> Option<Vec<u8>> {
        let Drawn { columns, rows, table_rows, even, distinct } = &sample.drawn;
        let mut bytes = MAGIC.to_vec();
        let mut put = |number: u64| bytes.extend(number.to_le_bytes());
        put(self.versions.len() as u64);
        bytes.extend(self.versions.as_bytes());
        let mut put = |number: u64| bytes.extend(number.to_le_bytes());
        put(table_rows.to_bits());
        put(u64::from(*even));
        put(sample.places.len() as u64);
        sample.places.iter().for_each(|number| put(*number));
        put(sample.numbers.len() as u64);
        sample.numbers.iter().for_each(|number| put(*number as u64));
        put(distinct.len() as u64);
        distinct.iter().for_each(|count| put(count.map_or(0, f64::to_bits)));
        put(*rows as u64);
        let field = |(number, array): (usize, &ArrayRef)| {
            Field::new(number.to_string(), array.data_type().clone(), true)
        };
        let schema =
            Arc::new(Schema::new(columns.iter().enumerate().map(field).collect::<Vec<_>>()));
        let options = RecordBatchOptions::new().with_row_count(Some(*rows));
        let batch =
            RecordBatch::try_new_with_options(schema.clone(), columns.clone(), &options).ok()?;
        let mut writer = StreamWriter::try_new(&mut bytes, &schema).ok()?;
        writer.write(&batch).ok()?;
        writer.finish().ok()?;
        drop(writer);
        bytes.extend(word_of_bytes(&bytes).to_le_bytes());
        Some(bytes)
    }
}

/// Takes a number off the front.
fn number(bytes: &mut &[u8]) -> Option<u64> {
    let (first, rest) = bytes.split_first_chunk::<8>()?;
    *bytes = rest;
    Some(u64::from_le_bytes(*first))
}

fn list(bytes: &mut &[u8]) -> Option<Vec<u64>> {
    let count = number(bytes)?;
    (0..count).map(|_| number(bytes)).collect()
}

/// Removes the files of a directory that has become too full, those of processes that ended early
/// among them.
fn make_room(directory: &Path) {
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    let files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    if files.len() < FILES_MAX {
        return;
    }
    let ours =
        |file: &&PathBuf| file.extension().is_some_and(|end| end == "sample" || end == "tmp");
    files.iter().filter(ours).for_each(|file| drop(std::fs::remove_file(file)));
}

/// The body of a fuzz target: a file whose hash is right.
#[cfg(any(test, fuzzing))]
pub fn sample_bytes(data: &[u8]) {
    use arrow::array::Array;
    let kept = Kept::new(Path::new("none"), "x", "1".to_string());
    let bytes = [data, &word_of_bytes(data).to_le_bytes()].concat();
    for column in kept.parse(&bytes).into_iter().flat_map(|sample| sample.drawn.columns) {
        column.to_data().validate_full().expect("what was read is valid");
    }
}

/// A file without its hash.
#[cfg(test)]
pub(crate) fn sample_seed() -> Vec<u8> {
    let kept = Kept::new(Path::new("none"), "x", "1".to_string());
    let mut bytes = kept.bytes(&tests::sample()).unwrap();
    bytes.truncate(bytes.len() - 8);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Int64Array, StringViewArray};

    pub(super) fn sample() -> Columns {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from(vec![Some(1), None, Some(3)])),
            Arc::new(StringViewArray::from(vec![
                Some("a"),
                Some("longer than twelve bytes"),
                None,
            ])),
        ];
        let distinct = vec![Some(2.0), None];
        let drawn = Drawn { columns, rows: 3, table_rows: 70.0, even: true, distinct };
        Columns { places: vec![1, 2, 3], numbers: vec![4, 1], drawn }
    }

    #[test]
    fn what_is_kept_comes_back_for_the_same_versions_only() {
        let folder = tempfile::tempdir().unwrap();
        let kept = Kept::new(&folder.path().join("new"), "scan of x", "1".to_string());
        assert!(kept.load().is_none());
        assert!(kept.save(&sample()));
        let found = kept.load().unwrap();
        assert_eq!(found.places, [1, 2, 3]);
        assert_eq!(found.drawn.distinct, [Some(2.0), None]);
        assert_eq!(
            (found.numbers, found.drawn.rows, found.drawn.table_rows),
            (vec![4, 1], 3, 70.0)
        );
        assert_eq!(found.drawn.columns, sample().drawn.columns);
        assert!(
            Kept::new(&folder.path().join("new"), "scan of x", "2".to_string()).load().is_none()
        );
        assert!(
            Kept::new(&folder.path().join("new"), "scan of y", "1".to_string()).load().is_none()
        );
    }

    #[test]
    fn a_damaged_file_is_as_good_as_none() {
        let folder = tempfile::tempdir().unwrap();
        let kept = Kept::new(folder.path(), "x", "1".to_string());
        assert!(kept.save(&sample()));
        let whole = std::fs::read(&kept.file).unwrap();
        for position in (0..whole.len()).step_by(7) {
            let mut bytes = whole.clone();
            bytes[position] ^= 0x10;
            std::fs::write(&kept.file, &bytes).unwrap();
            assert!(kept.load().is_none(), "{position}");
            std::fs::write(&kept.file, &whole[..position]).unwrap();
            assert!(kept.load().is_none(), "{position}");
        }
        assert!(
            !Kept::new(&kept.file, "x", "1".to_string()).save(&sample()),
            "a directory that is a file"
        );
    }
}
