//! Evaluates the SELECT requests of the store on loopback with a session over the object's file.
//!
//! Text fields are strings, as in every such store: the SQL casts them. The store's dialect names
//! types differently from the engine, and refers to CSV fields by position.

use tessera_formats::{csv, json};
use tessera_objects::SmartStorage;
use tessera_serverless_local::{Format, Selection};
use tessera_session::{Config, Session, StatementOutput, with_big_stack};
use tessera_types::{Error, Result, quote_text};

/// Returns the selected records as text, or an error message.
pub(crate) fn select(selection: &Selection) -> std::result::Result<Vec<u8>, String> {
    with_big_stack(|| evaluate(selection)).map_err(|error| error.to_string())
}

fn evaluate(selection: &Selection) -> Result<Vec<u8>> {
    let config = Config { threads: 1, smart_storage: SmartStorage::Off, ..Config::default() };
    let mut session = Session::new(config)?;
    let file = quote_text(&selection.file.to_string_lossy());
    let words = words(&selection.sql);
    check(&words)?;
    match selection.input {
        Format::Parquet => {
            session.execute(&format!("CREATE VIEW s3object AS SELECT * FROM {file}"))?;
        }
        Format::Csv => {
            let options = format!(
                "STORED AS csv OPTIONS ('header' '{}', 'delimiter' {}, 'quote' {}) LOCATION {file}",
                selection.header,
                quote_text(&selection.delimiter),
                quote_text(&selection.quote)
            );
            session.execute(&format!("CREATE EXTERNAL TABLE looked_at {options}"))?;
            let names = columns(&mut session, "looked_at")?;
            session.execute(&format!(
                "CREATE EXTERNAL TABLE texts ({}) {options}",
                declared(&names)
            ))?;
            let positions = names
                .iter()
                .zip(1..)
                .map(|(name, number)| format!("{} AS _{number}", quoted_name(name)));
            let positions = positions.collect::<Vec<_>>().join(", ");
            session.execute(&format!("CREATE VIEW s3object AS SELECT {positions} FROM texts"))?;
        }
        Format::Json => {
            let mut names: Vec<String> = Vec::new();
            for word in &words {
                if let Word::Name(name) = word
                    && !names.contains(name)
                {
                    names.push(name.clone());
                }
            }
            if names.is_empty() {
                names.push("none".to_string());
            }
            let table = format!(
                "CREATE EXTERNAL TABLE s3object ({}) STORED AS json LOCATION {file}",
                declared(&names)
            );
            session.execute(&table)?;
        }
    }
    let Some(StatementOutput::Rows(rows)) = session.statement(&translated(&words))? else {
        return Err(Error::semantic("unsupported statement; the store evaluates only SELECT"));
    };
    let mut out = Vec::new();
    for batch in rows {
        match selection.output {
            Format::Json => json::write_batch(&batch?, &mut out)?,
            Format::Csv | Format::Parquet => csv::write_batch(&batch?, &mut out)?,
        }
    }
    Ok(out)
}

/// Restricts requests to one SELECT from the object, without other statements or relations: a
/// client of the store may read its objects but no other file of this machine.
fn check(words: &[Word]) -> Result<()> {
    let mut plain =
        words.iter().filter(|word| !matches!(word, Word::Other(space) if space.trim().is_empty()));
    let keyword = |word: Option<&Word>, wanted: &str| matches!(word, Some(Word::Plain(word)) if word.eq_ignore_ascii_case(wanted));
    let selects = keyword(plain.next(), "select");
    let froms = words.iter().filter(|word| keyword(Some(word), "from")).count();
    plain.by_ref().find(|word| keyword(Some(word), "from"));
    let from_object = keyword(plain.next(), "s3object");
    // The object may have an alias; then follow the predicate or the end.
    let behind = plain.next();
    let is_end =
        |word: Option<&Word>| word.is_none() || keyword(word, "where") || keyword(word, "limit");
    let ends = is_end(behind) || matches!(behind, Some(Word::Plain(_))) && is_end(plain.next());
    let several = words.iter().any(|word| matches!(word, Word::Other(text) if text == ";"));
    if selects && from_object && froms == 1 && ends && !several {
        return Ok(());
    }
    Err(Error::semantic(
        "unsupported SELECT; the store evaluates only SELECT … FROM S3Object s WHERE …",
    ))
}

/// Returns the names of a table's columns.
fn columns(session: &mut Session, table: &str) -> Result<Vec<String>> {
    Ok(session.query(&format!("SELECT * FROM {table} LIMIT 0"))?.names().to_vec())
}

/// Declares text columns of these names.
fn declared(names: &[String]) -> String {
    names.iter().map(|name| format!("{} VARCHAR", quoted_name(name))).collect::<Vec<_>>().join(", ")
}

fn quoted_name(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A token of SQL.
#[derive(Debug, PartialEq)]
enum Word {
    /// A quoted name, without its quotes.
    Name(String),
    /// An unquoted keyword, function, type or name.
    Plain(String),
    /// Any other text.
    Other(String),
}

fn words(sql: &str) -> Vec<Word> {
    let mut found = Vec::new();
    let mut rest = sql;
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let (word, len) = match first {
            quote @ ('"' | '\'') => {
                let len = closing(rest, quote);
                let inside = rest.get(1..len.saturating_sub(1)).unwrap_or_default();
                match quote {
                    '"' => (Word::Name(inside.replace("\"\"", "\"")), len),
                    _ => (Word::Other(rest[..len].to_string()), len),
                }
            }
            first if is_word(first) => {
                let len = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
                (Word::Plain(rest[..len].to_string()), len)
            }
            other => (Word::Other(other.to_string()), other.len_utf8()),
        };
        found.push(word);
        rest = &rest[len..];
    }
    found
}

/// Returns the end of a quoted text; a doubled quote does not end it.
fn closing(text: &str, quote: char) -> usize {
    let mut from = 1;
    while let Some(offset) = text[from..].find(quote) {
        from += offset + 1;
        if !text[from..].starts_with(quote) {
            return from;
        }
        from += 1;
    }
    text.len()
}

/// Returns the SQL with the engine's type names.
fn translated(words: &[Word]) -> String {
    let mut out = String::new();
    let mut is_type = false;
    for word in words {
        match word {
            Word::Name(name) => out += &quoted_name(name),
            Word::Plain(word) if is_type => {
                out += match word.to_ascii_uppercase().as_str() {
                    "INT" | "INTEGER" => "BIGINT",
                    "FLOAT" => "DOUBLE",
                    "STRING" => "VARCHAR",
                    "BOOL" => "BOOLEAN",
                    _ => word,
                };
            }
            Word::Plain(word) | Word::Other(word) => out += word,
        }
        is_type = match word {
            Word::Plain(word) => word.eq_ignore_ascii_case("as"),
            Word::Other(space) if space == " " => is_type,
            _ => false,
        };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selected(name: &str, text: &str, input: Format, sql: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(name);
        std::fs::write(&file, text).unwrap();
        let (sql, delimiter, quote) = (sql.to_string(), "|".to_string(), "\"".to_string());
        let output = if input == Format::Json { Format::Json } else { Format::Csv };
        let selection = Selection { file, sql, input, output, header: true, delimiter, quote };
        String::from_utf8(select(&selection).unwrap_or_else(String::into_bytes)).unwrap()
    }

    #[test]
    fn fields_of_csv_by_position() {
        let text = "a|b|c\n1|x|1994-01-01\n2|\"\"|1995-01-01\n|\"INT\"|1996-01-01\n";
        let all = "SELECT s._1, s._2 FROM S3Object s";
        assert_eq!(selected("x.csv", text, Format::Csv, all), "1,x\n2,\"\"\n,INT\n");
        let sql = "SELECT s._2 FROM S3Object s WHERE CAST(s._1 AS INT) < 3 AND CAST(s._3 AS STRING) < '1995'";
        assert_eq!(selected("x.csv", text, Format::Csv, sql), "x\n");
        let sql = "SELECT COUNT(*), MAX(CAST(s._1 AS INT)) FROM S3Object s WHERE s._2 = 'INT' OR s._1 IS NOT NULL";
        assert_eq!(selected("x.csv", text, Format::Csv, sql), "3,2\n");
        assert!(selected("x.csv", text, Format::Csv, "SELECT s._9 FROM S3Object s").contains("_9"));
    }

    #[test]
    fn nothing_but_the_object_is_read() {
        for sql in [
            "SELECT s._1 FROM S3Object s; SELECT 1",
            "COPY (SELECT 1) TO 'x.csv'",
            "SELECT * FROM 'other.csv'",
            "SELECT * FROM S3Object s, 'other.csv' o",
            "SELECT * FROM S3Object s JOIN 'other.csv' o ON TRUE",
            "SELECT s._1 FROM S3Object s WHERE s._1 IN (SELECT x FROM 'other.csv')",
            "SELECT s._1 FROM S3Object s UNION SELECT 1",
        ] {
            assert!(selected("x.csv", "a\n1\n", Format::Csv, sql).contains("only"), "{sql}");
        }
        assert_eq!(
            selected("x.csv", "a\n1\n", Format::Csv, "select count(*) from S3Object limit 3"),
            "1\n"
        );
    }

    #[test]
    fn members_of_json_as_text() {
        let text = "{\"a\":1,\"b\":\"x\"}\n{\"a\":2.50}\n";
        let sql =
            "SELECT s.\"a\", s.\"b\", s.\"none\" FROM S3Object s WHERE CAST(s.\"a\" AS FLOAT) >= 1";
        let expected =
            "{\"a\":\"1\",\"b\":\"x\",\"none\":null}\n{\"a\":\"2.50\",\"b\":null,\"none\":null}\n";
        assert_eq!(selected("x.json", text, Format::Json, sql), expected);
    }
}
