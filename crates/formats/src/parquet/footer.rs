//! Checks of a plain footer that the Parquet library does not make: which columns are encrypted,
//! and the depth of the schema, which the library traverses recursively.

/// The deepest nesting of Thrift structs.
const DEPTH_MAX: usize = 32;

/// The types of Thrift's compact protocol.
const BOOLEANS: [u8; 2] = [1, 2];
const BYTE: u8 = 3;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const MAP: u8 = 11;
const STRUCT: u8 = 12;
const UUID: u8 = 13;

/// The deepest nesting of a schema.
const SCHEMA_DEPTH_MAX: usize = 256;

/// Field numbers of `FileMetaData`, `SchemaElement`, `RowGroup` and `ColumnChunk`.
const SCHEMA: i64 = 2;
const CHILDREN: i64 = 5;
const ROW_GROUPS: i64 = 4;
const COLUMNS: i64 = 1;
const CRYPTO_METADATA: i64 = 8;

/// Returns the leaves with encrypted values, according to the first row group; none if the footer
/// is malformed.
pub(super) fn encrypted_leaves(footer: &[u8]) -> Vec<usize> {
    leaves(&mut Thrift::new(footer)).unwrap_or_default()
}

fn leaves(thrift: &mut Thrift<'_>) -> Option<Vec<usize>> {
    let mut encrypted = Vec::new();
    if !thrift.find(ROW_GROUPS)? || thrift.list()? == 0 || !thrift.find(COLUMNS)? {
        return Some(encrypted);
    }
    for leaf in 0..thrift.list()? {
        let mut field = 0;
        while let Some(of_type) = thrift.field(&mut field)? {
            if field == CRYPTO_METADATA {
                encrypted.push(leaf);
            }
            thrift.skip(of_type, DEPTH_MAX)?;
        }
    }
    Some(encrypted)
}

/// Rejects a schema whose traversal would overflow the stack, groups of more children than there
/// are elements, for which the library would reserve memory, lists and maps of more items than
/// there are bytes, and what is not Thrift: the library takes no byte for a boolean in a list or
/// map, and would count the items of one that follows for seconds.
///
/// # Errors
/// The schema is nested too deeply or claims too many children, a list is too long, or the footer is
/// malformed.
pub(super) fn check_size(footer: &[u8]) -> Result<(), String> {
    let mut thrift = Thrift::new(footer);
    match check_schema(&mut thrift) {
        Some(checked) => checked,
        None if thrift.is_too_long => {
            Err("a list in its footer is longer than the footer".to_string())
        }
        None => Err("its footer is malformed".to_string()),
    }
}

fn check_schema(thrift: &mut Thrift<'_>) -> Option<Result<(), String>> {
    let mut field = 0;
    while let Some(of_type) = thrift.field(&mut field)? {
        if field != SCHEMA {
            thrift.skip(of_type, DEPTH_MAX)?;
            continue;
        }
        // The number of children still to come, for each open group.
        let mut open: Vec<u64> = Vec::new();
        let elements = thrift.items()?.1;
        for _ in 0..elements {
            let children = thrift.children()?;
            if children > elements {
                return Some(Err(format!(
                    "a group claims {children} children, but its schema has {elements} elements"
                )));
            }
            if let Some(left) = open.last_mut() {
                *left -= 1;
            }
            if children > 0 {
                open.push(children);
            }
            if open.len() > SCHEMA_DEPTH_MAX {
                return Some(Err(format!(
                    "its schema is nested deeper than {SCHEMA_DEPTH_MAX} levels"
                )));
            }
            while open.pop_if(|left| *left == 0).is_some() {}
        }
    }
    Some(Ok(()))
}

/// A reader of Thrift's compact protocol. Methods return `None` on malformed bytes.
struct Thrift<'a> {
    bytes: &'a [u8],
    /// Whether a list or map was found with more items than bytes are left. Each takes at least
    /// one.
    is_too_long: bool,
}

impl Thrift<'_> {
    fn new(bytes: &[u8]) -> Thrift<'_> {
        Thrift { bytes, is_too_long: false }
    }

    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(*first)
    }

    fn pass(&mut self, bytes: u64) -> Option<()> {
        self.bytes = self.bytes.get(usize::try_from(bytes).ok()?..)?;
        Some(())
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    /// Reads the type of a struct's next field and adds to its number `field`; `None` inside at the
    /// end of the struct.
    fn field(&mut self, field: &mut i64) -> Option<Option<u8>> {
        let header = self.byte()?;
        if header == 0 {
            return Some(None);
        }
        *field = match header >> 4 {
            0 => {
                let number = self.varint()?;
                (number >> 1) as i64 ^ -((number & 1) as i64)
            }
            step => field.checked_add(step.into())?,
        };
        Some(Some(header & 0xf))
    }

    /// Advances to a field of a struct. Returns whether it exists.
    fn find(&mut self, wanted: i64) -> Option<bool> {
        let mut field = 0;
        while let Some(of_type) = self.field(&mut field)? {
            if field == wanted && of_type == LIST {
                return Some(true);
            }
            self.skip(of_type, DEPTH_MAX)?;
        }
        Some(false)
    }

    /// Reads a schema element and returns its number of children.
    fn children(&mut self) -> Option<u64> {
        let (mut field, mut children) = (0, 0);
        while let Some(of_type) = self.field(&mut field)? {
            if field == CHILDREN && matches!(of_type, 4..=6) {
                let number = self.varint()?;
                children = if number & 1 == 0 { number >> 1 } else { 0 };
            } else {
                self.skip(of_type, DEPTH_MAX)?;
            }
        }
        Some(children)
    }

    /// Reads the length of a list of structs.
    fn list(&mut self) -> Option<usize> {
        let (of_type, len) = self.items()?;
        (of_type == STRUCT || len == 0).then_some(usize::try_from(len).ok()?)
    }

    fn items(&mut self) -> Option<(u8, u64)> {
        let header = self.byte()?;
        let len = if header >> 4 == 15 { self.varint()? } else { (header >> 4).into() };
        Some((header & 0xf, self.fitting(len)?))
    }

    /// Returns a number of items if the remaining bytes may hold them.
    fn fitting(&mut self, items: u64) -> Option<u64> {
        self.is_too_long |= items > self.bytes.len() as u64;
        (!self.is_too_long).then_some(items)
    }

    /// Skips the value of a field.
    fn skip(&mut self, of_type: u8, depth: usize) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        match of_type {
            _ if BOOLEANS.contains(&of_type) => Some(()),
            BINARY => {
                let len = self.varint()?;
                self.pass(len)
            }
            LIST | SET => {
                let (of_type, len) = self.items()?;
                (0..len).try_for_each(|_| self.skip_item(of_type, depth))
            }
            MAP => {
                let len = self.varint()?;
                let len = self.fitting(len)?;
                let types = if len > 0 { self.byte()? } else { 0 };
                (0..len).try_for_each(|_| {
                    self.skip_item(types >> 4, depth)?;
                    self.skip_item(types & 0xf, depth)
                })
            }
            STRUCT => {
                let mut field = 0;
                while let Some(of_type) = self.field(&mut field)? {
                    self.skip(of_type, depth)?;
                }
                Some(())
            }
            DOUBLE => self.pass(8),
            UUID => self.pass(16),
            BYTE => self.pass(1),
            4..=6 => self.varint().map(drop),
            _ => None,
        }
    }

    /// Like [`Thrift::skip`], for an item of a list, where a boolean takes a byte.
    fn skip_item(&mut self, of_type: u8, depth: usize) -> Option<()> {
        if BOOLEANS.contains(&of_type) { self.pass(1) } else { self.skip(of_type, depth) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_with_crypto_metadata_are_encrypted() {
        // version = 2, schema = [{name = "s"}], rows = 1, row groups = [{columns = [{file offset},
        // {file offset, crypto metadata = {footer key = {}}}, {file offset}]}].
        let schema = [0x19, 0x1c, 0x48, 0x01, b's', 0x00];
        let columns = [
            0x19, 0x3c, 0x26, 0x08, 0x00, 0x26, 0x08, 0x6c, 0x1c, 0x00, 0x00, 0x00, 0x26, 0x08,
            0x00,
        ];
        let footer =
            [&[0x15, 0x04][..], &schema, &[0x16, 0x02, 0x19, 0x1c], &columns, &[0x00, 0x00]]
                .concat();
        assert_eq!(encrypted_leaves(&footer), [1]);
        for len in 0..footer.len() {
            encrypted_leaves(&footer[..len]);
        }
        let nested = [0x1c; 100_000];
        assert!(encrypted_leaves(&nested).is_empty());
    }

    #[test]
    fn lists_longer_than_the_footer_are_errors() {
        for header in [&[0x19][..], &[0x1a], &[0x1b]] {
            for of_type in [0xf1, 0xf2, 0xf5, 0xfc] {
                let list = if header == [0x1b] { &[][..] } else { &[of_type][..] };
                let len = [0xff, 0xff, 0xff, 0xff, 0x07, 0x11, 0x00];
                let footer = [header, list, &len].concat();
                assert!(check_size(&footer).unwrap_err().contains("longer than"), "{footer:?}");
            }
        }
        assert_eq!(check_size(&[0x19, 0x31, 0x01, 0x02, 0x01, 0x00]), Ok(()));
        // A map of booleans, cut: the library takes what follows for fields.
        let cut = [0x1b, 0x02, 0x22, 0x01, 0x02, 0x1b, 0xff, 0xff, 0xff, 0x07, 0x22];
        assert!(check_size(&cut).unwrap_err().contains("malformed"));
    }

    /// A footer with a schema of nested groups, and a column.
    fn nested(groups: usize) -> Vec<u8> {
        let group = [0x48, 0x01, b'g', 0x15, 0x02, 0x00];
        let mut list = vec![0x19, 0xfc];
        let mut len = groups + 1;
        while len > 127 {
            list.push(len as u8 | 0x80);
            len >>= 7;
        }
        list.push(len as u8);
        list.extend(group.repeat(groups));
        [
            &[0x15, 0x04][..],
            &list,
            &[0x15, 0x02, 0x48, 0x01, b'l', 0x00, 0x16, 0x00, 0x19, 0x0c, 0x00],
        ]
        .concat()
    }

    #[test]
    fn deep_schemas_are_errors() {
        for groups in [1, 2, SCHEMA_DEPTH_MAX] {
            assert_eq!(check_schema(&mut Thrift::new(&nested(groups))), Some(Ok(())), "{groups}");
        }
        for groups in [SCHEMA_DEPTH_MAX + 1, 100_000] {
            assert!(check_size(&nested(groups)).unwrap_err().contains("256 levels"));
            // Regardless of the bytes after it.
            let cut = nested(groups);
            assert!(check_size(&cut[..cut.len() - 9]).is_err());
        }
        // A wide schema, whose groups are closed again, is not deep.
        let closed = [0x48, 0x01, b'g', 0x15, 0x02, 0x00, 0x48, 0x01, b'l', 0x00].repeat(400);
        let wide = [
            &[0x15, 0x04, 0x19, 0xfc, 0xa1, 0x06, 0x48, 0x01, b'r', 0x15, 0xa0, 0x06, 0x00][..],
            &closed,
            &[0x00],
        ];
        assert_eq!(check_schema(&mut Thrift::new(&wide.concat())), Some(Ok(())));
    }
}
