//! Records of a script, in the format of sqllogictest.

use std::path::Path;

/// The expected result of a record.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Expected {
    /// The statement succeeds.
    Ok,
    /// The statement fails with this SQLSTATE.
    Error(String),
    /// The statement returns these rows.
    Rows { letters: String, sorted: bool, rows: Vec<String> },
}

/// A statement and its expected result.
#[derive(Debug, Clone)]
pub(super) struct Record {
    /// The line of its header.
    pub(super) line: usize,
    /// The reason of a known failure.
    pub(super) cause: Option<String>,
    pub(super) sql: String,
    pub(super) expected: Expected,
}

impl Record {
    /// `strings.slt:12`.
    pub(super) fn place(&self, path: &Path) -> String {
        format!("{}:{}", path.display(), self.line)
    }
}

/// The records of a script.
pub(super) fn read(path: &Path) -> Vec<Record> {
    parse(&std::fs::read_to_string(path).unwrap())
        .unwrap_or_else(|wrong| panic!("{}:{wrong}", path.display()))
}

fn parse(text: &str) -> Result<Vec<Record>, String> {
    let mut records = Vec::new();
    let mut lines = text.lines().enumerate().peekable();
    while let Some((number, line)) = lines.next() {
        let mut block = vec![line.trim_end()];
        if block[0].is_empty() {
            continue;
        }
        while let Some((_, line)) = lines.next_if(|(_, line)| !line.trim().is_empty()) {
            block.push(line.trim_end());
        }
        let comments = block.iter().take_while(|line| line.starts_with('#')).count();
        if comments < block.len() {
            let at = number + comments + 1;
            let cause = block[..comments].iter().find_map(|line| line.strip_prefix("# cause:"));
            let (sql, expected) =
                record(&block[comments..]).map_err(|wrong| format!("{at}: {wrong}"))?;
            records.push(Record {
                line: at,
                cause: cause.map(|cause| cause.trim().to_string()),
                sql,
                expected,
            });
        }
    }
    Ok(records)
}

/// SQL and expectation of a block without its comments.
fn record(block: &[&str]) -> Result<(String, Expected), String> {
    let words: Vec<&str> = block[0].split_whitespace().collect();
    let end = block.iter().position(|line| *line == "----").unwrap_or(block.len());
    let sql = block[1..end].join("\n");
    if sql.is_empty() {
        return Err("a record without SQL".to_string());
    }
    let expected = match words[..] {
        ["statement", "ok"] => Expected::Ok,
        ["statement" | "query", "error", state] => Expected::Error(state.to_string()),
        ["query", letters, ref options @ ..]
            if letters.chars().all(|letter| "IRT".contains(letter)) =>
        {
            let sorted = match options {
                [] | ["nosort"] => false,
                ["rowsort"] => true,
                _ => return Err(format!("'{}' is not nosort or rowsort", options.join(" "))),
            };
            let rows = block.iter().skip(end + 1).map(|line| line.to_string()).collect();
            Expected::Rows { letters: letters.to_string(), sorted, rows }
        }
        _ => return Err(format!("'{}' is not the header of a record", block[0])),
    };
    Ok((sql, expected))
}

#[test]
fn blocks_become_records() {
    let text = "# Of something.\n\n# judge: dialect\n# cause: why\nquery IT rowsort\nselect 1,\n  'x'\n----\n1  x\n\n\n\
                statement error 22012\nselect 1/0\n";
    let records = parse(text).unwrap();
    let rows = Expected::Rows { letters: "IT".into(), sorted: true, rows: vec!["1  x".into()] };
    assert_eq!((records[0].line, records[0].cause.as_deref()), (5, Some("why")));
    assert_eq!((records[0].sql.as_str(), &records[0].expected), ("select 1,\n  'x'", &rows));
    assert_eq!((records[1].line, &records[1].expected), (12, &Expected::Error("22012".into())));
    for wrong in
        ["query X\nselect 1", "statement maybe\nselect 1", "query I", "query I valuesort\nselect 1"]
    {
        assert!(parse(wrong).is_err(), "{wrong}");
    }
}
