//! Functions on bytes for which DataFusion requires strings: lengths, and the text that LIKE
//! matches.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryViewArray, Int32Array, StringViewArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion_common::{Result, exec_err, plan_err};
use datafusion_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// Maps each byte to the character with that code, so that LIKE on the result is LIKE on bytes.
pub const BYTES_TEXT: &str = "bytes_text";

/// The functions of this module.
pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    let function = |function: Function| Arc::new(ScalarUDF::from(BytesFunction::new(function)));
    [Function::OctetLength, Function::BitLength, Function::Text].map(function).to_vec()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Function {
    OctetLength,
    BitLength,
    Text,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct BytesFunction {
    function: Function,
    signature: Signature,
}

impl BytesFunction {
    fn new(function: Function) -> BytesFunction {
        BytesFunction { function, signature: Signature::user_defined(Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for BytesFunction {
    fn name(&self) -> &str {
        match self.function {
            Function::OctetLength => "octet_length",
            Function::BitLength => "bit_length",
            Function::Text => BYTES_TEXT,
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _args: &[DataType]) -> Result<DataType> {
        Ok(match self.function {
            Function::OctetLength | Function::BitLength => DataType::Int32,
            Function::Text => DataType::Utf8,
        })
    }

    fn coerce_types(&self, args: &[DataType]) -> Result<Vec<DataType>> {
        use DataType::{Binary, BinaryView, LargeBinary, LargeUtf8, Null, Utf8, Utf8View};
        match args {
            [Null] => Ok(vec![Utf8]),
            [Binary | LargeBinary | BinaryView | Utf8 | LargeUtf8 | Utf8View] => Ok(args.to_vec()),
            _ => plan_err!("{} takes a text or bytes", self.name()),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let scalar = matches!(args.args.first(), Some(ColumnarValue::Scalar(_)));
        let values = ColumnarValue::values_to_arrays(&args.args)?;
        let [values] = &values[..] else { return exec_err!("{} takes one argument", self.name()) };
        // A string is converted to its bytes.
        let values = cast(values, &DataType::BinaryView)?;
        let values = values.as_binary_view();
        let result = match self.function {
            Function::OctetLength => lengths(values, 1)?,
            Function::BitLength => lengths(values, 8)?,
            Function::Text => {
                let text =
                    |bytes: &[u8]| bytes.iter().map(|byte| char::from(*byte)).collect::<String>();
                let texts: StringViewArray = values.iter().map(|bytes| bytes.map(text)).collect();
                cast(&texts, &DataType::Utf8)?
            }
        };
        match scalar {
            true => Ok(ColumnarValue::Scalar(datafusion_common::ScalarValue::try_from_array(
                &result, 0,
            )?)),
            false => Ok(ColumnarValue::Array(result)),
        }
    }
}

/// The length of each value, multiplied by `factor`.
fn lengths(values: &BinaryViewArray, factor: usize) -> Result<ArrayRef> {
    let mut counts = Vec::with_capacity(values.len());
    for value in values.iter() {
        let count =
            value.map(|bytes| i32::try_from(bytes.len().saturating_mul(factor))).transpose();
        let Ok(count) = count else { return exec_err!("overflow: a value of 256 MiB or more") };
        counts.push(count);
    }
    Ok(Arc::new(Int32Array::from(counts)))
}
