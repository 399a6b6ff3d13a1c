//! Wrong statements: messages have their shape and never show the parser's or a library's types.

use std::path::Path;

use tessera_session::{Config, Session};
use tessera_types::Code;

use super::script::{self, Expected};
use super::{SCRIPTS, each, scripts};

/// Words that a message shows only if an error of a library, or a debug print, leaks into it.
const FOREIGN: [&str; 21] = [
    "Ident {",
    "Some(",
    "Span {",
    "Token",
    "Expected",
    "EOF",
    "DataFusion",
    "datafusion",
    "Arrow",
    "sqlparser",
    "DataType",
    "Error during planning",
    "External error",
    "regex parse error",
    "Candidate functions",
    "Utf8",
    "Int32",
    "Int64",
    "Float64",
    "Decimal128",
    "Timestamp(",
];

/// One of so many records is changed.
const STRIDE: u64 = 6;

/// What can stand in place of a token.
const OTHERS: [&str; 14] = [
    "'x'",
    "1",
    "null",
    "date '2000-01-01'",
    "[1]",
    "true",
    "*",
    "(",
    "interval '1 day'",
    "1e400",
    "{'a': 1}",
    "x'00'",
    "map {'a': 1}",
    "(select 1, 2)",
];

#[test]
fn messages_of_wrong_statements_have_their_shape() {
    let results = each(&scripts(Path::new(SCRIPTS)), |path| {
        let mut seed = path.to_string_lossy().rsplit('/').next().map_or(1, hash);
        let config = Config { threads: 1, ..Config::default() };
        let mut session = Session::new(config).unwrap();
        let (mut count, mut leaks) = (0, Vec::new());
        for record in script::read(path) {
            if record.expected == Expected::Ok {
                // A record that fails here fails in the test of the records, too.
                drop(session.execute(&record.sql));
                continue;
            }
            if !next(&mut seed).is_multiple_of(STRIDE) {
                continue;
            }
            let wrong = format!("explain {}", changed(&record.sql, &mut seed));
            let Err(error) = session.execute(&wrong) else { continue };
            count += 1;
            let message = error.message();
            let is_foreign = |word: &&str| message.contains(*word) && !wrong.contains(*word);
            let is_bad = error.code() == Code::Internal
                || FOREIGN.iter().any(is_foreign)
                || !has_shape(message);
            if is_bad {
                leaks.push(format!("{wrong}\n  {error}"));
            }
        }
        (count, leaks)
    });
    let count: usize = results.iter().map(|(count, _)| count).sum();
    assert!(count > 300, "only {count} wrong statements");
    let leaks: Vec<String> = results.into_iter().flat_map(|(_, leaks)| leaks).collect();
    assert!(leaks.is_empty(), "{} of {count} messages:\n{}", leaks.len(), leaks.join("\n"));
}

/// Whether a message is one line without a final period, and begins with a small letter, a quote, a
/// number or a word of SQL.
fn has_shape(message: &str) -> bool {
    let first = message.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or("");
    let is_sentence = first.chars().nth(1).is_some_and(char::is_lowercase)
        && first.starts_with(|c: char| c.is_uppercase());
    !message.contains('\n')
        && (!message.ends_with('.') || message.ends_with("found ."))
        && !is_sentence
}

/// The statement with one token dropped, doubled, misspelled or replaced.
fn changed(sql: &str, seed: &mut u64) -> String {
    let tokens = tokens(sql);
    let at = pick(seed, tokens.len());
    let token = tokens[at];
    let new = match next(seed) % 4 {
        0 => String::new(),
        1 => format!("{token} {token}"),
        2 => OTHERS[pick(seed, OTHERS.len())].to_string(),
        _ => token.chars().rev().collect(),
    };
    [&tokens[..at].concat(), new.as_str(), &tokens[at + 1..].concat()].concat()
}

/// Words, quoted texts, single characters and spaces: together the whole statement.
fn tokens(sql: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = sql;
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let end = match first {
            '\'' | '"' => rest[1..].find(first).map_or(rest.len(), |end| end + 2),
            c if is_word(c) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            c => c.len_utf8(),
        };
        let (token, others) = rest.split_at(end);
        tokens.push(token);
        rest = others;
    }
    tokens
}

fn pick(seed: &mut u64, count: usize) -> usize {
    (next(seed) % count.max(1) as u64) as usize
}

/// The next number of a xorshift generator.
fn next(seed: &mut u64) -> u64 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    *seed >> 16
}

fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    }) | 1
}
