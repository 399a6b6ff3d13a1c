//! Values of every type that files may have, odd ones among them.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BinaryViewArray, BooleanArray, Date32Array, Decimal64Array, Decimal128Array,
    Float32Array, Float64Array, Int8Array, Int16Array, Int32Array, Int64Array,
    IntervalMonthDayNanoArray, ListArray, StringViewArray, Time64MicrosecondArray,
    TimestampMicrosecondArray, UInt8Array, UInt16Array, UInt32Array, UInt64Array,
};
use arrow::compute::take;
use arrow::datatypes::{Int64Type, IntervalMonthDayNano};

/// Days since 1970 of 0001-01-01 and 9999-12-31.
const DAYS: [i32; 2] = [-719_162, 2_932_896];
/// The microseconds of a day.
const DAY: i64 = 86_400_000_000;

/// Samples of each type: all values, all with NULLs between them, NULLs only, no rows.
pub(super) fn samples() -> Vec<ArrayRef> {
    let mut samples = Vec::new();
    for array in arrays() {
        let rows = array.len() as u64;
        let with_nulls = (0..3 * rows).map(|row| (row % 5 != 3).then_some(row % rows));
        for positions in [
            (0..rows).map(Some).collect::<UInt64Array>(),
            with_nulls.collect(),
            (0..9).map(|_| None::<u64>).collect(),
            UInt64Array::from(Vec::<u64>::new()),
        ] {
            samples.push(take(&array, &positions, None).expect("positions within the array"));
        }
    }
    samples
}

fn arrays() -> Vec<ArrayRef> {
    let moments = [i64::from(DAYS[0]) * DAY, -1, 0, 1_700_000_000_123_456, (1 << 50) + 1];
    let interval = |months, days, milliseconds: i64| {
        IntervalMonthDayNano::new(months, days, milliseconds * 1_000_000)
    };
    let long = "long text, ".repeat(1_000);
    let texts = [
        "",
        " ",
        "a",
        "NULL",
        "null",
        "\\N",
        "a,b",
        "a;b",
        "a\tb",
        "say \"no\"",
        "'",
        "l\nm",
        "l\r\nm",
        "  padded  ",
        "häßlich €",
        "\u{1f600}",
        "1",
        "true",
        "2024-01-01",
        "#",
        "{}",
        "\\",
        "nan",
        long.as_str(),
    ];
    let bytes: [&[u8]; 5] = [b"", &[0], &[0xff, 0x80], b"\\xff", b"more than twelve bytes"];
    let lists = vec![
        Some(vec![Some(1), None, Some(-2)]),
        Some(vec![]),
        Some(vec![None]),
        Some((0..100).map(Some).collect::<Vec<_>>()),
    ];
    vec![
        Arc::new(BooleanArray::from(vec![true, false])),
        Arc::new(Int8Array::from(vec![i8::MIN, 0, i8::MAX])),
        Arc::new(Int16Array::from(vec![i16::MIN, 0, i16::MAX])),
        Arc::new(Int32Array::from(vec![i32::MIN, 0, i32::MAX])),
        Arc::new(Int64Array::from(vec![i64::MIN, -1, 0, 1, i64::MAX])),
        Arc::new(UInt8Array::from(vec![0, u8::MAX])),
        Arc::new(UInt16Array::from(vec![0, u16::MAX])),
        Arc::new(UInt32Array::from(vec![0, u32::MAX])),
        Arc::new(UInt64Array::from(vec![0, u64::MAX])),
        Arc::new(Float32Array::from(vec![0.0, -0.0, 1.5, f32::MIN, f32::MIN_POSITIVE, 1e-40])),
        Arc::new(Float64Array::from(vec![
            0.0,
            -0.0,
            0.1,
            f64::MAX,
            5e-324,
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
        ])),
        Arc::new(
            Decimal64Array::from(vec![0, 1, -105, 999_999_999_999_999_999])
                .with_precision_and_scale(18, 2)
                .expect("18 digits"),
        ),
        Arc::new(
            Decimal128Array::from(vec![0, 1, -(10_i128.pow(38) - 1), 10_i128.pow(38) - 1])
                .with_precision_and_scale(38, 10)
                .expect("38 digits"),
        ),
        Arc::new(StringViewArray::from_iter_values(texts)),
        Arc::new(BinaryViewArray::from_iter_values(bytes)),
        Arc::new(Date32Array::from(vec![DAYS[0], -1, 0, 19_000, DAYS[1]])),
        Arc::new(Time64MicrosecondArray::from(vec![0, 1, DAY / 2, DAY - 1])),
        Arc::new(TimestampMicrosecondArray::from(moments.to_vec())),
        Arc::new(TimestampMicrosecondArray::from(moments.to_vec()).with_timezone("UTC")),
        Arc::new(IntervalMonthDayNanoArray::from(vec![
            interval(0, 0, 0),
            interval(14, 3, 4_500),
            interval(0, 40, 0),
        ])),
        Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(lists)),
    ]
}
