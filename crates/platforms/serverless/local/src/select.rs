//! The wire protocol of SelectObjectContent. The program that starts the store evaluates the SQL.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::http::Answer;
use crate::xml::{escape, unescape};

/// The maximum size of records in a message.
const RECORDS_BYTES: usize = 128 << 10;

/// A selection from an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    /// The object's file.
    pub file: PathBuf,
    /// The SQL.
    pub sql: String,
    /// The format of the object.
    pub input: Format,
    /// The format of the selected records.
    pub output: Format,
    /// For CSV: whether the first line is a header.
    pub header: bool,
    /// For CSV: the delimiter of fields.
    pub delimiter: String,
    /// For CSV: the quote of fields; may be empty.
    pub quote: String,
}

/// The formats of objects and records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Parquet.
    Parquet,
    /// CSV.
    Csv,
    /// One JSON object a line.
    Json,
}

/// Evaluates selections: returns the records as text without a header, or an error message.
#[derive(Clone)]
pub struct Selector(Arc<dyn Fn(&Selection) -> Result<Vec<u8>, String> + Send + Sync>);

impl Selector {
    /// Creates a selector from a function.
    pub fn new(
        select: impl Fn(&Selection) -> Result<Vec<u8>, String> + Send + Sync + 'static,
    ) -> Selector {
        Selector(Arc::new(select))
    }
}

impl fmt::Debug for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Selector")
    }
}

/// Answers a request to select from an object's file.
pub(crate) fn answer(selector: &Selector, file: &Path, request: &[u8]) -> Answer {
    let refused = |code: &str, message: &str| {
        let text =
            format!("<Error><Code>{code}</Code><Message>{}</Message></Error>", escape(message));
        Answer::new(400, text)
    };
    let Some(selection) = parse(file, &String::from_utf8_lossy(request)) else {
        return refused("MalformedXML", "expected a SelectObjectContentRequest");
    };
    match (selector.0)(&selection) {
        Ok(records) => {
            let scanned = std::fs::metadata(file).map_or(0, |meta| meta.len());
            Answer::new(200, stream(&records, scanned))
        }
        Err(message) => refused("InvalidQuery", &message),
    }
}

fn parse(file: &Path, text: &str) -> Option<Selection> {
    let request =
        element(text, "SelectObjectContentRequest").or_else(|| element(text, "SelectRequest"))?;
    let (input, output) =
        (element(request, "InputSerialization")?, element(request, "OutputSerialization")?);
    let format = |text: &str| {
        let formats = [("CSV", Format::Csv), ("JSON", Format::Json), ("Parquet", Format::Parquet)];
        formats.into_iter().find(|(tag, _)| element(text, tag).is_some()).map(|(_, format)| format)
    };
    let of_input = |tag: &str| element(input, tag).map(unescape);
    Some(Selection {
        file: file.to_path_buf(),
        sql: unescape(element(request, "Expression")?),
        input: format(input)?,
        output: format(output).filter(|format| *format != Format::Parquet)?,
        header: !matches!(of_input("FileHeaderInfo").as_deref(), None | Some("NONE")),
        delimiter: of_input("FieldDelimiter").unwrap_or_else(|| ",".to_string()),
        quote: of_input("QuoteCharacter").unwrap_or_else(|| "\"".to_string()),
    })
}

/// Returns the content of the first element with this tag.
fn element<'a>(text: &'a str, tag: &str) -> Option<&'a str> {
    if text.contains(&format!("<{tag}/>")) {
        return Some("");
    }
    let mut rest = text;
    loop {
        let (_, behind) = rest.split_once(&format!("<{tag}"))?;
        rest = behind;
        if let Some((_, inside)) = behind.split_once('>').filter(|_| behind.starts_with(['>', ' ']))
        {
            return Some(inside.split_once(&format!("</{tag}>"))?.0);
        }
    }
}

/// Encodes the event stream: records, statistics, end.
fn stream(records: &[u8], scanned: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(records.len() + records.len() / 256 + 512);
    for part in records.chunks(RECORDS_BYTES) {
        message(
            &[(":content-type", "application/octet-stream"), (":event-type", "Records")],
            part,
            &mut out,
        );
    }
    let stats = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><Stats><BytesScanned>{scanned}</BytesScanned><BytesProcessed>{scanned}\
         </BytesProcessed><BytesReturned>{}</BytesReturned></Stats>",
        records.len()
    );
    message(&[(":content-type", "text/xml"), (":event-type", "Stats")], stats.as_bytes(), &mut out);
    message(&[(":event-type", "End")], &[], &mut out);
    out
}

fn message(headers: &[(&str, &str)], payload: &[u8], out: &mut Vec<u8>) {
    let mut of_headers = Vec::new();
    for (name, value) in [(":message-type", "event")].iter().chain(headers) {
        of_headers.push(name.len() as u8);
        of_headers.extend_from_slice(name.as_bytes());
        of_headers.push(7);
        of_headers.extend_from_slice(&(value.len() as u16).to_be_bytes());
        of_headers.extend_from_slice(value.as_bytes());
    }
    let start = out.len();
    let total = 16 + of_headers.len() + payload.len();
    out.extend_from_slice(&(total as u32).to_be_bytes());
    out.extend_from_slice(&(of_headers.len() as u32).to_be_bytes());
    out.extend_from_slice(&crc32fast::hash(&out[start..]).to_be_bytes());
    out.extend_from_slice(&of_headers);
    out.extend_from_slice(payload);
    out.extend_from_slice(&crc32fast::hash(&out[start..]).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUEST: &str = "<?xml version=\"1.0\"?><SelectObjectContentRequest xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\
         <Expression>SELECT s._1 FROM S3Object s WHERE s._2 &lt; 'a&amp;b'</Expression><ExpressionType>SQL</ExpressionType>\
         <InputSerialization><CompressionType>NONE</CompressionType><CSV><FileHeaderInfo>IGNORE</FileHeaderInfo>\
         <FieldDelimiter>&#9;</FieldDelimiter><QuoteCharacter></QuoteCharacter></CSV></InputSerialization>\
         <OutputSerialization><JSON/></OutputSerialization></SelectObjectContentRequest>";

    #[test]
    fn requests_are_understood() {
        let selection = parse(Path::new("x"), REQUEST).unwrap();
        assert_eq!(selection.sql, "SELECT s._1 FROM S3Object s WHERE s._2 < 'a&b'");
        assert_eq!(
            (selection.input, selection.output, selection.header),
            (Format::Csv, Format::Json, true)
        );
        assert_eq!((&*selection.delimiter, &*selection.quote), ("\t", ""));
        assert!(parse(Path::new("x"), "<Other/>").is_none());
    }

    #[test]
    fn an_answer_ends() {
        let selector = Selector::new(|selection| Ok(selection.sql.as_bytes().to_vec()));
        let found = answer(&selector, Path::new("/none"), REQUEST.as_bytes());
        // The beginning of the end message, as in Amazon's documentation.
        assert!(
            found.status == 200
                && found.body.windows(8).any(|part| part == [0, 0, 0, 56, 0, 0, 0, 40])
        );
        assert_eq!(crc32fast::hash(b"123456789"), 0xcbf4_3926);
        let failing = Selector::new(|_| Err("no <such> column".to_string()));
        let found = answer(&failing, Path::new("/none"), REQUEST.as_bytes());
        assert!(
            found.status == 400
                && String::from_utf8_lossy(&found.body).contains("no &lt;such&gt; column")
        );
    }
}
