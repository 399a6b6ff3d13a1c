//! A workbook: its sheets, the texts that they share, and which formats of numbers are dates.

use std::sync::Arc;

use bytes::Bytes;

use tessera_context::{Context, Reservation};
use tessera_types::{Error, Result};

use crate::archive::Archive;
use crate::xml::{Token, Xml, attribute, is};

/// The place of the list of the workbook's parts if the archive names no other.
const WORKBOOK: &str = "xl/workbook.xml";
/// The bytes by which the reservation of shared texts grows.
const GROWTH_BYTES: usize = 1 << 20;

/// A workbook in memory.
#[derive(Debug)]
pub(super) struct Book {
    archive: Archive,
    /// Names and parts of the sheets, in order.
    sheets: Vec<(String, String)>,
    pub(super) texts: Texts,
    /// The meaning of numbers for each style of cells.
    styles: Vec<Meaning>,
    /// Whether days are counted from 1904.
    pub(super) is_1904: bool,
}

/// What a number in a cell means, by its format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    Number,
    Date,
    Time,
    Moment,
}

/// The texts that cells share.
#[derive(Debug, Default)]
pub(super) struct Texts {
    all: String,
    ends: Vec<usize>,
    memory: Option<Reservation>,
}

impl Texts {
    /// Returns the text with this number.
    pub(super) fn get(&self, number: usize) -> Option<&str> {
        let end = *self.ends.get(number)?;
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.all.get(start..end)
    }

    fn read(xml: &mut Xml, context: Option<&Arc<dyn Context>>) -> Result<Texts> {
        let memory = context.cloned().map(Reservation::new);
        let mut texts = Texts { memory, ..Texts::default() };
        let (mut text, mut counted) = (String::new(), 0);
        loop {
            match xml.next()? {
                Token::Start(tag) if is(&tag, "si") => {
                    text.clear();
                    rich_text(xml, &mut text)?;
                    let bytes = texts.all.len() + text.len() + 8 * texts.ends.len();
                    // Twice as much, since both lists are copied when they grow.
                    if let (true, Some(memory)) = (bytes >= counted, &mut texts.memory) {
                        counted = bytes + GROWTH_BYTES;
                        memory.resize(2 * counted)?;
                    }
                    texts.all.push_str(&text);
                    texts.ends.push(texts.all.len());
                }
                Token::Done => return Ok(texts),
                _ => {}
            }
        }
    }
}

/// Appends the text of an element whose text may be in pieces with formats, without its reading
/// aids.
pub(super) fn rich_text(xml: &mut Xml, out: &mut String) -> Result<()> {
    let (start, mut depth) = (out.len(), 1);
    while depth > 0 {
        match xml.next()? {
            Token::Start(tag) if is(&tag, "t") => xml.text(out)?,
            Token::Start(tag) if is(&tag, "r") => depth += 1,
            Token::Start(_) => xml.skip()?,
            Token::End => depth -= 1,
            Token::Text(_) => {}
            Token::Done => break,
        }
    }
    unescape(out, start);
    Ok(())
}

/// Replaces `_x000D_`, which stands for a character that XML cannot have.
fn unescape(text: &mut String, start: usize) {
    if !text[start..].contains("_x") {
        return;
    }
    let (mut plain, mut rest) = (String::with_capacity(text.len() - start), &text[start..]);
    while let Some(at) = rest.find("_x") {
        let digits = rest.get(at + 2..at + 6).filter(|_| rest[at + 2..].get(4..5) == Some("_"));
        let hexadecimal =
            digits.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let code = hexadecimal.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        match code.and_then(char::from_u32) {
            Some(character) => {
                plain.push_str(&rest[..at]);
                plain.push(character);
                rest = &rest[at + 7..];
            }
            None => {
                plain.push_str(&rest[..at + 2]);
                rest = &rest[at + 2..];
            }
        }
    }
    plain.push_str(rest);
    text.truncate(start);
    text.push_str(&plain);
}

impl Book {
    /// Opens a workbook. What sheets share counts for the memory of a query.
    ///
    /// # Errors
    /// The bytes are not a workbook, it is damaged, or there is not enough memory.
    pub(super) fn open(bytes: Bytes, context: Option<&Arc<dyn Context>>) -> Result<Book> {
        let archive = Archive::new(bytes)?;
        let roots = relations(&archive, "_rels/.rels", "")?;
        let root = roots.iter().find(|relation| relation.kind.ends_with("/officeDocument"));
        let workbook = root.map_or(WORKBOOK, |root| &root.part);
        let (folder, file) = workbook.rsplit_once('/').unwrap_or(("", workbook));
        let related = relations(&archive, &format!("{folder}/_rels/{file}.rels"), folder)?;
        let mut book = Book {
            sheets: Vec::new(),
            texts: Texts::default(),
            styles: Vec::new(),
            is_1904: false,
            archive,
        };
        let Some(mut xml) = book.part(workbook)? else {
            return Err(Error::data(
                "the file is not an Excel workbook: it has no list of sheets; save it again as .xlsx",
            ));
        };
        loop {
            match xml.next()? {
                Token::Start(tag) if is(&tag, "sheet") => {
                    let (name, id) = (attribute(&tag, "name"), attribute(&tag, "id"));
                    let part = related.iter().find(|relation| Some(&relation.id) == id.as_ref());
                    // Sheets of charts have no cells.
                    if let (Some(name), Some(part)) = (name, part)
                        && part.kind.ends_with("/worksheet")
                    {
                        book.sheets.push((name, part.part.clone()));
                    }
                }
                Token::Start(tag) if is(&tag, "workbookPr") => {
                    let date = attribute(&tag, "date1904");
                    book.is_1904 = date.is_some_and(|text| matches!(&*text, "1" | "true"));
                }
                Token::Done => break,
                _ => {}
            }
        }
        let of_kind = |kind: &str| related.iter().find(|relation| relation.kind.ends_with(kind));
        if let Some(part) = of_kind("/styles")
            && let Some(mut xml) = book.part(&part.part)?
        {
            book.styles = styles(&mut xml)?;
        }
        if let Some(part) = of_kind("/sharedStrings")
            && let Some(mut xml) = book.part(&part.part)?
        {
            book.texts = Texts::read(&mut xml, context)?;
        }
        Ok(book)
    }

    fn part(&self, name: &str) -> Result<Option<Xml>> {
        Ok(self.archive.open(name)?.map(|part| Xml::new(name, part)))
    }

    /// Opens a sheet by its name, or the first one.
    ///
    /// # Errors
    /// There is no such sheet.
    pub(super) fn sheet(&self, name: Option<&str>) -> Result<Xml> {
        let found = match name {
            None => self.sheets.first(),
            Some(name) => self.sheets.iter().find(|(known, _)| known == name),
        };
        let Some((_, part)) = found else {
            let names: Vec<&str> = self.sheets.iter().map(|(name, _)| name.as_str()).collect();
            return Err(Error::data(match name {
                Some(name) => {
                    format!("it has no sheet '{name}'; its sheets are {}", names.join(", "))
                }
                None => "the workbook has no sheet with cells".to_string(),
            }));
        };
        self.part(part)?.ok_or_else(|| {
            Error::data(format!("the workbook is damaged: it lacks part '{part}', a sheet"))
        })
    }

    /// The meaning of numbers in cells of a style.
    pub(super) fn meaning(&self, style: usize) -> Meaning {
        self.styles.get(style).copied().unwrap_or(Meaning::Number)
    }
}

/// A part that another one names.
struct Relation {
    id: String,
    kind: String,
    part: String,
}

fn relations(archive: &Archive, name: &str, folder: &str) -> Result<Vec<Relation>> {
    let name = name.trim_start_matches('/');
    let Some(part) = archive.open(name)? else { return Ok(Vec::new()) };
    let (mut xml, mut all) = (Xml::new(name, part), Vec::new());
    loop {
        match xml.next()? {
            Token::Start(tag) if is(&tag, "Relationship") => {
                let [id, kind, target] =
                    ["Id", "Type", "Target"].map(|name| attribute(&tag, name).unwrap_or_default());
                let part = match target.strip_prefix('/') {
                    Some(absolute) => absolute.to_string(),
                    None if folder.is_empty() => target,
                    None => format!("{folder}/{target}"),
                };
                all.push(Relation { id, kind, part });
            }
            Token::Done => return Ok(all),
            _ => {}
        }
    }
}

/// Reads the meaning of each style.
fn styles(xml: &mut Xml) -> Result<Vec<Meaning>> {
    let (mut formats, mut styles, mut is_cells) = (Vec::new(), Vec::new(), false);
    loop {
        match xml.next()? {
            Token::Start(tag) if is(&tag, "numFmt") => {
                let code = attribute(&tag, "formatCode").unwrap_or_default();
                if let Some(id) = attribute(&tag, "numFmtId") {
                    formats.push((id, of_code(&code)));
                }
            }
            Token::Start(tag) if is(&tag, "cellXfs") => is_cells = true,
            Token::Start(tag) if is(&tag, "cellStyles") => is_cells = false,
            Token::Start(tag) if is_cells && is(&tag, "xf") => {
                let id = attribute(&tag, "numFmtId").unwrap_or_default();
                let own = formats.iter().find(|(known, _)| *known == id);
                styles.push(own.map_or_else(|| of_number(&id), |(_, meaning)| *meaning));
            }
            Token::Done => return Ok(styles),
            _ => {}
        }
    }
}

/// The meaning of formats that every workbook has.
fn of_number(id: &str) -> Meaning {
    match id.parse().unwrap_or(0_u32) {
        14..=17 | 27..=31 | 36 | 50..=54 | 57 | 58 => Meaning::Date,
        18..=21 | 32..=35 | 45 | 47 | 55 | 56 => Meaning::Time,
        22 => Meaning::Moment,
        _ => Meaning::Number,
    }
}

/// The meaning of a format such as `yyyy-mm-dd`. Elapsed hours, `[h]`, are numbers of days.
fn of_code(code: &str) -> Meaning {
    let (mut has_date, mut has_time, mut months) = (false, false, 0);
    let mut characters = code.chars();
    while let Some(character) = characters.next() {
        match character.to_ascii_lowercase() {
            // Texts, and what follows are characters as such or places of characters.
            '"' => while characters.next().is_some_and(|next| next != '"') {},
            '\\' | '_' | '*' => drop(characters.next()),
            '[' => {
                let inside: String = characters.by_ref().take_while(|next| *next != ']').collect();
                if inside.chars().all(|next| matches!(next.to_ascii_lowercase(), 'h' | 'm' | 's')) {
                    return Meaning::Number;
                }
            }
            // The formats after it are for negative numbers.
            ';' => break,
            'g' if characters.as_str().to_ascii_lowercase().starts_with("eneral") => {
                return Meaning::Number;
            }
            'd' | 'y' => has_date = true,
            'h' | 's' => has_time = true,
            'm' => months += 1,
            _ => {}
        }
    }
    match (has_date, has_time, months) {
        (true, true, _) => Meaning::Moment,
        (true, false, _) => Meaning::Date,
        (false, true, _) => Meaning::Time,
        // Months alone.
        (false, false, 1..) => Meaning::Date,
        _ => Meaning::Number,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meanings_of_formats() {
        for (code, meaning) in [
            ("General", Meaning::Number),
            ("0.00", Meaning::Number),
            ("#,##0.00;[Red]-#,##0.00", Meaning::Number),
            ("0.00E+00", Meaning::Number),
            ("\"day\" 0", Meaning::Number),
            ("0\\d", Meaning::Number),
            ("@", Meaning::Number),
            ("[h]:mm", Meaning::Number),
            ("[$-409]d-mmm-yy;@", Meaning::Date),
            ("yyyy-mm-dd", Meaning::Date),
            ("mmm", Meaning::Date),
            ("hh:mm", Meaning::Time),
            ("mm:ss.0", Meaning::Time),
            ("h:mm AM/PM", Meaning::Time),
            ("m/d/yy h:mm", Meaning::Moment),
        ] {
            assert_eq!(of_code(code), meaning, "{code}");
        }
    }

    #[test]
    fn characters_that_xml_cannot_have() {
        for (text, expected) in [
            ("a_x0041_b", "aAb"),
            ("_x005F_x0041_", "_x0041_"),
            ("_x00_", "_x00_"),
            ("_xé041_", "_xé041_"),
            ("x_x000d__x000A_", "x\r\n"),
            ("_xD800_", "_xD800_"),
        ] {
            let mut out = format!("_x0041_{text}");
            unescape(&mut out, 7);
            assert_eq!(out, format!("_x0041_{expected}"));
        }
    }
}
