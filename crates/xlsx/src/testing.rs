//! Workbooks for tests and fuzz targets, without compression.

/// An archive of these parts.
pub fn archive(parts: &[(&str, &[u8])]) -> Vec<u8> {
    let (mut out, mut directory) = (Vec::new(), Vec::new());
    for (name, text) in parts {
        let offset = out.len() as u32;
        let mut fields = vec![20, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        fields.extend(crc32fast::hash(text).to_le_bytes());
        fields.extend((text.len() as u32).to_le_bytes().repeat(2));
        fields.extend((name.len() as u16).to_le_bytes());
        fields.extend([0, 0]);
        out.extend(b"PK\x03\x04");
        out.extend(&fields);
        out.extend(name.as_bytes());
        out.extend(*text);
        directory.extend(b"PK\x01\x02\x14\0");
        directory.extend(&fields);
        directory.extend([0; 10]);
        directory.extend(offset.to_le_bytes());
        directory.extend(name.as_bytes());
    }
    let (start, count) = (out.len() as u32, parts.len() as u16);
    out.extend(&directory);
    out.extend(b"PK\x05\x06\0\0\0\0");
    out.extend(count.to_le_bytes().repeat(2));
    out.extend((directory.len() as u32).to_le_bytes());
    out.extend(start.to_le_bytes());
    out.extend([0, 0]);
    out
}

/// A workbook of one sheet with these rows, as XML, and these shared texts.
pub fn workbook(rows: &str, texts: &[&str]) -> Vec<u8> {
    let texts: String = texts.iter().map(|text| format!("<si><t>{text}</t></si>")).collect();
    workbook_of(
        format!("<worksheet><sheetData>{rows}</sheetData></worksheet>").as_bytes(),
        format!("<sst>{texts}</sst>").as_bytes(),
        b"<styleSheet><numFmts><numFmt numFmtId='164' formatCode='yyyy-mm-dd'/></numFmts>\
          <cellXfs><xf numFmtId='0'/><xf numFmtId='164'/></cellXfs></styleSheet>",
    )
}

/// A workbook of one sheet, of these parts.
pub fn workbook_of(sheet: &[u8], shared_texts: &[u8], styles: &[u8]) -> Vec<u8> {
    let main = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
    let relation = |id: u32, kind: &str, part: &str| {
        format!("<Relationship Id='r{id}' Type='{main}/{kind}' Target='{part}'/>")
    };
    let relations = [
        relation(1, "worksheet", "worksheets/one.xml"),
        relation(2, "sharedStrings", "shared.xml"),
        relation(3, "styles", "/xl/styles.xml"),
    ];
    let book = format!("<a>{}</a>", relation(1, "officeDocument", "xl/book.xml"));
    let relations = format!("<a>{}</a>", relations.concat());
    archive(&[
        ("_rels/.rels", book.as_bytes()),
        (
            "xl/book.xml",
            b"<workbook xmlns:r='x'><sheets><sheet name='One' sheetId='1' r:id='r1'/></sheets></workbook>",
        ),
        ("xl/_rels/book.xml.rels", relations.as_bytes()),
        ("xl/shared.xml", shared_texts),
        ("xl/styles.xml", styles),
        ("xl/worksheets/one.xml", sheet),
    ])
}
