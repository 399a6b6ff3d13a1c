//! Bodies of fuzz targets.

use arrow::array::Array;

/// Reads a block of spilled tuples as if its checksum were right.
pub fn spill_blocks(data: &[u8]) {
    let Ok(batch) = crate::ipc::first_batch(data.to_vec()) else { return };
    for column in batch.columns() {
        column.to_data().validate_full().expect("what was decoded is valid");
    }
    drop(lz4_flex::block::decompress(data, data.len() * 4));
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{
        ArrayRef, Decimal128Array, Int64Array, ListArray, RecordBatch, StringViewArray,
    };
    use arrow::datatypes::Int32Type;
    use arrow::ipc::writer::StreamWriter;

    #[test]
    fn spill_blocks() {
        let texts = ["a", "longer than twelve bytes", ""];
        let lists = [Some(vec![Some(1), None]), None, Some(vec![])];
        let columns: [(&str, ArrayRef); 4] = [
            ("a", Arc::new(Int64Array::from(vec![Some(1), None, Some(3)]))),
            ("b", Arc::new(StringViewArray::from_iter_values(texts))),
            ("c", Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(lists))),
            ("d", Arc::new(Decimal128Array::from(vec![1, 2, 3]))),
        ];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema()).unwrap();
        writer.write(&batch).unwrap();
        let stream = writer.into_inner().unwrap();
        assert_eq!(crate::ipc::first_batch(stream.clone()).unwrap(), batch);
        tessera_fuzzing::mutate("spill_blocks", &[&stream], super::spill_blocks);
    }
}
