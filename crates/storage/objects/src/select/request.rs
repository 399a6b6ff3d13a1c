//! The body of a SelectObjectContent request.

use std::fmt::Write;

use tessera_formats::RecordFormat;

/// The format of the objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Input {
    /// Parquet.
    Parquet,
    /// CSV; fields are referenced by position.
    Csv {
        /// Whether the first line is a header.
        header: bool,
        delimiter: char,
        /// `None`: a quote is an ordinary character.
        quote: Option<char>,
    },
    /// One JSON object per line.
    Json,
}

/// Stores drop lines that begin with the comment character, and a request cannot disable this. No
/// text line begins with this character.
const COMMENT: char = '\u{10fffd}';

/// Returns the body of a request.
pub(crate) fn body(sql: &str, input: &Input, output: RecordFormat) -> String {
    let input = match input {
        Input::Parquet => "<Parquet/>".to_string(),
        Input::Json => {
            "<CompressionType>NONE</CompressionType><JSON><Type>LINES</Type></JSON>".to_string()
        }
        Input::Csv { header, delimiter, quote } => {
            let header = if *header { "IGNORE" } else { "NONE" };
            let quote = quote.map(|quote| escaped(&quote.to_string())).unwrap_or_default();
            format!(
                "<CompressionType>NONE</CompressionType><CSV><FileHeaderInfo>{header}</FileHeaderInfo><Comments>{COMMENT}</Comments>\
                 <FieldDelimiter>{}</FieldDelimiter><QuoteCharacter>{quote}</QuoteCharacter>\
                 <AllowQuotedRecordDelimiter>true</AllowQuotedRecordDelimiter></CSV>",
                escaped(&delimiter.to_string())
            )
        }
    };
    let output = match output {
        RecordFormat::Csv => "<CSV/>",
        RecordFormat::Json => "<JSON/>",
    };
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<SelectObjectContentRequest xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\
         <Expression>{}</Expression><ExpressionType>SQL</ExpressionType><InputSerialization>{input}</InputSerialization>\
         <OutputSerialization>{output}</OutputSerialization></SelectObjectContentRequest>",
        escaped(sql)
    )
}

/// Escapes text for XML; tabs and line ends would otherwise be normalized.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\t' | '\n' | '\r' => drop(write!(out, "&#{};", u32::from(character))),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies() {
        let csv = Input::Csv { header: true, delimiter: '\t', quote: Some('"') };
        let text = body("SELECT s._1 FROM S3Object s WHERE s._2 < 'a&b'", &csv, RecordFormat::Csv);
        for part in [
            "<Expression>SELECT s._1 FROM S3Object s WHERE s._2 &lt; 'a&amp;b'</Expression>",
            "<FileHeaderInfo>IGNORE</FileHeaderInfo>",
            "<FieldDelimiter>&#9;</FieldDelimiter><QuoteCharacter>&quot;</QuoteCharacter>",
            "<OutputSerialization><CSV/></OutputSerialization>",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let text = body("SELECT s.\"a\" FROM S3Object s", &Input::Parquet, RecordFormat::Json);
        assert!(text.contains("<InputSerialization><Parquet/></InputSerialization>"), "{text}");
    }
}
