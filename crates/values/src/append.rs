//! Appends strings to columns.

use arrow::array::StringViewBuilder;
use arrow::buffer::Buffer;
use tessera_context::interrupt::SPAN_BYTES;

/// Appends a text; a long one is not copied.
pub fn append(builder: &mut StringViewBuilder, text: String) {
    let Ok(length @ SPAN..) = u32::try_from(text.len()) else { return builder.append_value(text) };
    const SPAN: u32 = SPAN_BYTES as u32;
    let block = builder.append_block(Buffer::from_vec(text.into_bytes()));
    // SAFETY: the block was just added; it is valid UTF-8 of exactly this length.
    unsafe { builder.append_view_unchecked(block, 0, length) };
}
