//! Sample files: samples cached across processes, one file per table in a cache directory.
//!
//! The name of a file is a hash of the table's scan. The file contains the versions of the table's
//! files, so that a changed table is sampled again. A damaged or outdated file, or one of another
//! program version, is ignored, and a failed write is too. A file is read only if no other user can
//! have written it. It is written under a temporary name and renamed.
//!
//! Layout: [`MAGIC`]; length and text of the versions; rows of the table (float bits); 1 for a
//! uniform sample; the sampled ranges, the column numbers, and the distinct counts (float bits, 0
//! if unknown), each a list with its length first; the number of sampled rows; the columns as an
//! Arrow stream; a hash of all bytes before it. Numbers are 8 bytes, little endian.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Field, Schema};
use arrow::ipc::writer::StreamWriter;
use tessera_files::{read_private, write_private};
use tessera_optimizer::sample::SampledRows;
use tessera_rows::ipc::first_batch;
use tessera_vector::hash::word_of_bytes;

const MAGIC: &[u8; 8] = b"TESSTAT2";
/// The maximum size of a sample file.
const FILE_BYTES_MAX: u64 = 64 << 20;
/// The maximum number of files in the directory, which is emptied when it is full. A file has about
/// 100 KiB, or a few MiB for a wide table that was read entirely.
const FILES_MAX: usize = 4_096;

/// The sample file of one version of a table.
#[derive(Debug, Clone)]
pub(super) struct SampleFile {
    file: PathBuf,
    versions: String,
}

/// Sampled columns with their numbers.
#[derive(Debug, Clone, Default)]
pub(super) struct SampledColumns {
    /// The sampled ranges, as encoded by `SampledRanges`.
    pub(super) ranges: Vec<u64>,
    pub(super) numbers: Vec<usize>,
    pub(super) rows: SampledRows,
}

impl SampledColumns {
    /// Whether `ANALYZE` has counted the distinct values of the whole table.
    pub(super) fn is_analyzed(&self) -> bool {
        self.rows.distinct.iter().any(Option::is_some)
    }
}

impl SampleFile {
    /// The sample file of a table. `scan` identifies the scan, `versions` the versions of the
    /// files.
    pub(super) fn new(directory: &Path, scan: &str, versions: String) -> SampleFile {
        SampleFile {
            file: directory.join(format!("{:016x}.sample", word_of_bytes(scan.as_bytes()))),
            versions,
        }
    }

    /// Reads the sample. `None` if the file is missing, damaged or of other versions.
    pub(super) fn load(&self) -> Option<SampledColumns> {
        self.parse(&read_private(&self.file, FILE_BYTES_MAX).ok()?)
    }

    fn parse(&self, bytes: &[u8]) -> Option<SampledColumns> {
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
        let uniform = number(&mut rest)? == 1;
        let ranges = list(&mut rest)?;
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
        fits.then_some(SampledColumns {
            ranges,
            numbers,
            rows: SampledRows { columns, rows, table_rows, uniform, distinct },
        })
    }

    /// Writes a sample. Returns whether this succeeded.
    pub(super) fn save(&self, sample: &SampledColumns) -> bool {
        self.try_save(sample).is_some()
    }

    fn try_save(&self, sample: &SampledColumns) -> Option<()> {
        let bytes = self.bytes(sample)?;
        if bytes.len() as u64 > FILE_BYTES_MAX {
            return None;
        }
        make_room(self.file.parent()?);
        write_private(&self.file, &bytes).ok()
    }

    fn bytes(&self, sample: &SampledColumns) -> Option<Vec<u8>> {
        let SampledRows { columns, rows, table_rows, uniform, distinct } = &sample.rows;
        let mut bytes = MAGIC.to_vec();
        let mut put = |number: u64| bytes.extend(number.to_le_bytes());
        put(self.versions.len() as u64);
        bytes.extend(self.versions.as_bytes());
        let mut put = |number: u64| bytes.extend(number.to_le_bytes());
        put(table_rows.to_bits());
        put(u64::from(*uniform));
        put(sample.ranges.len() as u64);
        sample.ranges.iter().for_each(|number| put(*number));
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

/// Reads a number from the front of `bytes`.
fn number(bytes: &mut &[u8]) -> Option<u64> {
    let (first, rest) = bytes.split_first_chunk::<8>()?;
    *bytes = rest;
    Some(u64::from_le_bytes(*first))
}

/// Reads a list with its length first.
fn list(bytes: &mut &[u8]) -> Option<Vec<u64>> {
    let count = number(bytes)?;
    (0..count).map(|_| number(bytes)).collect()
}

/// Removes all sample files of a full directory, including temporary files of killed processes.
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

/// The body of a fuzz target: parses `data` as a file with a correct hash.
#[cfg(any(test, fuzzing))]
pub fn sample_bytes(data: &[u8]) {
    use arrow::array::Array;
    let file = SampleFile::new(Path::new("none"), "x", "1".to_string());
    let bytes = [data, &word_of_bytes(data).to_le_bytes()].concat();
    for column in file.parse(&bytes).into_iter().flat_map(|sample| sample.rows.columns) {
        column.to_data().validate_full().expect("what was read is valid");
    }
}

/// A sample file without its hash.
#[cfg(test)]
pub(crate) fn sample_seed() -> Vec<u8> {
    let file = SampleFile::new(Path::new("none"), "x", "1".to_string());
    let mut bytes = file.bytes(&tests::sample()).unwrap();
    bytes.truncate(bytes.len() - 8);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Int64Array, StringViewArray};

    pub(super) fn sample() -> SampledColumns {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from(vec![Some(1), None, Some(3)])),
            Arc::new(StringViewArray::from(vec![
                Some("a"),
                Some("longer than twelve bytes"),
                None,
            ])),
        ];
        let distinct = vec![Some(2.0), None];
        let rows = SampledRows { columns, rows: 3, table_rows: 70.0, uniform: true, distinct };
        SampledColumns { ranges: vec![1, 2, 3], numbers: vec![4, 1], rows }
    }

    #[test]
    fn what_is_kept_comes_back_for_the_same_versions_only() {
        let folder = tempfile::tempdir().unwrap();
        let kept = SampleFile::new(&folder.path().join("new"), "scan of x", "1".to_string());
        assert!(kept.load().is_none());
        assert!(kept.save(&sample()));
        let found = kept.load().unwrap();
        assert_eq!(found.ranges, [1, 2, 3]);
        assert_eq!(found.rows.distinct, [Some(2.0), None]);
        assert_eq!((found.numbers, found.rows.rows, found.rows.table_rows), (vec![4, 1], 3, 70.0));
        assert_eq!(found.rows.columns, sample().rows.columns);
        assert!(
            SampleFile::new(&folder.path().join("new"), "scan of x", "2".to_string())
                .load()
                .is_none()
        );
        assert!(
            SampleFile::new(&folder.path().join("new"), "scan of y", "1".to_string())
                .load()
                .is_none()
        );
    }

    #[test]
    fn a_damaged_file_is_as_good_as_none() {
        let folder = tempfile::tempdir().unwrap();
        let kept = SampleFile::new(folder.path(), "x", "1".to_string());
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
            !SampleFile::new(&kept.file, "x", "1".to_string()).save(&sample()),
            "a directory that is a file"
        );
    }
}
