//! The text form of types: `<k: int64, v: decimal(15,2)?, parts: rows<k: int64>>`.

use std::str::FromStr;
use std::sync::Arc;

use crate::TYPE_DEPTH_MAX;
use crate::atom::{Atom, DECIMAL_PRECISION_MAX, Slot, TimeUnit, is_zone};
use crate::enum_type::EnumType;
use crate::error::{Code, Error, Result};
use crate::tuple::{Collection, Field, Item, Tuple};

/// Whether a name needs no quotes: letters, digits, `_`, `$`, not starting with a digit.
pub fn is_plain_name(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '$')
}

/// Returns the printed form of a name: in double quotes (with `""` for a quote) if necessary.
pub fn quote_name(name: &str) -> String {
    if is_plain_name(name) {
        name.to_string()
    } else {
        format!("\"{}\"", name.replace('"', "\"\""))
    }
}

/// Returns a text as a literal of SQL: in single quotes, with `''` for a quote.
pub fn quote_text(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// A parser for types inside of a longer text, such as a plan.
#[derive(Debug)]
pub struct TypeParser<'a> {
    text: &'a str,
    position: usize,
}

impl<'a> TypeParser<'a> {
    /// Creates a parser at byte `position` of `text`, which must be a character boundary.
    pub fn new(text: &'a str, position: usize) -> Self {
        TypeParser { text, position }
    }

    /// The byte offset after the last parsed type.
    pub fn position(&self) -> usize {
        self.position
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.position..).unwrap_or("")
    }

    fn skip_space(&mut self) {
        let rest = self.rest();
        self.position += rest.len() - rest.trim_start().len();
    }

    fn accept(&mut self, token: &str) -> bool {
        self.skip_space();
        let found = self.rest().starts_with(token);
        if found {
            self.position += token.len();
        }
        found
    }

    fn expect(&mut self, token: &str) -> Result<()> {
        if self.accept(token) { Ok(()) } else { Err(self.error(&format!("expected `{token}`"))) }
    }

    fn error(&self, message: &str) -> Error {
        let found: String = self.rest().chars().take(20).collect();
        let found = if found.is_empty() { "the end".to_string() } else { format!("`{found}`") };
        Error::new(Code::Syntax, format!("{message} in a type, found {found}"))
    }

    fn name(&mut self) -> Result<String> {
        self.skip_space();
        if !self.accept("\"") {
            let rest = self.rest();
            let end = rest
                .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '$'))
                .unwrap_or(rest.len());
            let name = &rest[..end];
            if !is_plain_name(name) {
                return Err(self.error("expected a name"));
            }
            self.position += end;
            return Ok(name.to_string());
        }
        self.quoted('"')
    }

    /// Parses a label in single quotes.
    fn label(&mut self) -> Result<String> {
        self.expect("'")?;
        self.quoted('\'')
    }

    /// Parses the rest of a text in quotes, in which a doubled quote stands for one.
    fn quoted(&mut self, quote: char) -> Result<String> {
        let mut text = String::new();
        loop {
            let rest = self.rest();
            let Some(end) = rest.find(quote) else {
                return Err(self.error(&format!("unclosed `{quote}`")));
            };
            text.push_str(&rest[..end]);
            self.position += end + 1;
            if !self.rest().starts_with(quote) {
                return Ok(text);
            }
            self.position += 1;
            text.push(quote);
        }
    }

    fn number(&mut self) -> Result<u8> {
        self.skip_space();
        let rest = self.rest();
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let number = rest[..end].parse().map_err(|_| self.error("expected a number up to 255"))?;
        self.position += end;
        Ok(number)
    }

    fn unit(&mut self) -> Result<TimeUnit> {
        Ok(match self.name()?.as_str() {
            "s" => TimeUnit::Second,
            "ms" => TimeUnit::Millisecond,
            "us" => TimeUnit::Microsecond,
            "ns" => TimeUnit::Nanosecond,
            _ => return Err(self.error("expected a unit (s, ms, us or ns)")),
        })
    }

    /// Parses a tuple type: `<name: item, …>`.
    pub fn tuple(&mut self) -> Result<Tuple> {
        self.tuple_at(0)
    }

    fn tuple_at(&mut self, depth: usize) -> Result<Tuple> {
        if depth > TYPE_DEPTH_MAX {
            return Err(Error::new(
                Code::Limit,
                format!("the type is nested deeper than {TYPE_DEPTH_MAX} levels (TYPE_DEPTH_MAX)"),
            ));
        }
        self.expect("<")?;
        let mut fields = Vec::new();
        if self.accept(">") {
            return Ok(Tuple::new(fields));
        }
        loop {
            let name = self.name()?;
            self.expect(":")?;
            let item = self.item_at(depth + 1)?;
            let nullable = self.accept("?");
            fields.push(Field { name: Arc::from(name), item, nullable });
            if self.accept(">") {
                let tuple = Tuple::new(fields);
                tuple.check()?;
                return Ok(tuple);
            }
            self.expect(",")?;
        }
    }

    fn item_at(&mut self, depth: usize) -> Result<Item> {
        let start = self.position;
        match self.atom_at(depth)? {
            Some(atom) => Ok(Item::Atom(atom)),
            None => {
                self.position = start;
                let format = self.name()?;
                Ok(Item::Collection(Collection::new(format.as_str(), self.tuple_at(depth + 1)?)))
            }
        }
    }

    /// Parses an atom.
    pub fn atom(&mut self) -> Result<Atom> {
        self.atom_at(0)?.ok_or_else(|| self.error("expected a scalar type"))
    }

    fn slot_at(&mut self, depth: usize) -> Result<Slot> {
        let atom = self.atom_at(depth)?.ok_or_else(|| self.error("expected a scalar type"))?;
        Ok(Slot { atom, nullable: self.accept("?") })
    }

    fn atom_at(&mut self, depth: usize) -> Result<Option<Atom>> {
        if depth > TYPE_DEPTH_MAX {
            return Err(Error::new(
                Code::Limit,
                format!("the type is nested deeper than {TYPE_DEPTH_MAX} levels (TYPE_DEPTH_MAX)"),
            ));
        }
        Ok(Some(match self.name()?.as_str() {
            "null" => Atom::Null,
            "boolean" => Atom::Boolean,
            "int8" => Atom::Int8,
            "int16" => Atom::Int16,
            "int32" => Atom::Int32,
            "int64" => Atom::Int64,
            "uint8" => Atom::UInt8,
            "uint16" => Atom::UInt16,
            "uint32" => Atom::UInt32,
            "uint64" => Atom::UInt64,
            "float32" => Atom::Float32,
            "float64" => Atom::Float64,
            "string" => Atom::String,
            "bytes" => Atom::Bytes,
            "bits" => Atom::Bits,
            "uuid" => Atom::Uuid,
            "timetz" => Atom::TimeTz,
            "date" => Atom::Date,
            "interval" => Atom::Interval,
            "decimal" => {
                self.expect("(")?;
                let precision = self.number()?;
                self.expect(",")?;
                let scale = self.number()?;
                self.expect(")")?;
                if precision == 0 || precision > DECIMAL_PRECISION_MAX || scale > precision {
                    return Err(self.error("expected a precision of 1 to 38 and a scale up to it"));
                }
                Atom::Decimal(precision, scale as i8)
            }
            "time" => Atom::Time(self.parenthesized_unit()?),
            "duration" => Atom::Duration(self.parenthesized_unit()?),
            "timestamp" => {
                self.expect("(")?;
                let unit = self.unit()?;
                let has_zone = self.accept(",");
                self.skip_space();
                let start = self.position;
                let zone: Option<Arc<str>> =
                    if has_zone { Some(Arc::from(self.name()?)) } else { None };
                if zone.as_deref().is_some_and(|zone| !is_zone(zone)) {
                    self.position = start;
                    return Err(self.error(
                        "expected a time zone such as UTC, \"Europe/Berlin\" or \"+02:00\"",
                    ));
                }
                self.expect(")")?;
                Atom::Timestamp(unit, zone)
            }
            "enum" => {
                self.expect("(")?;
                let name = self.name()?;
                let mut labels: Vec<Arc<str>> = Vec::new();
                while !self.accept(")") {
                    self.expect(",")?;
                    labels.push(self.label()?.into());
                }
                Atom::Enum(Arc::new(EnumType::new(&name, labels)?))
            }
            "list" => {
                self.expect("<")?;
                let slot = self.slot_at(depth + 1)?;
                self.expect(">")?;
                Atom::List(Box::new(slot))
            }
            "struct" => {
                self.expect("<")?;
                let mut slots: Vec<(Arc<str>, Slot)> = Vec::new();
                while !self.accept(">") {
                    if !slots.is_empty() {
                        self.expect(",")?;
                    }
                    let name = self.name()?;
                    self.expect(":")?;
                    slots.push((Arc::from(name), self.slot_at(depth + 1)?));
                }
                Atom::struct_of(slots)?
            }
            "map" => {
                self.expect("<")?;
                let key = Slot { nullable: false, ..self.slot_at(depth + 1)? };
                self.expect(",")?;
                let value = self.slot_at(depth + 1)?;
                self.expect(">")?;
                Atom::Map(Box::new(key), Box::new(value))
            }
            _ => return Ok(None),
        }))
    }

    fn parenthesized_unit(&mut self) -> Result<TimeUnit> {
        self.expect("(")?;
        let unit = self.unit()?;
        self.expect(")")?;
        Ok(unit)
    }

    fn end<T>(&mut self, value: T) -> Result<T> {
        self.skip_space();
        if self.rest().is_empty() { Ok(value) } else { Err(self.error("expected the end")) }
    }
}

impl FromStr for Tuple {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut parser = TypeParser::new(text, 0);
        let tuple = parser.tuple()?;
        parser.end(tuple)
    }
}

impl FromStr for Atom {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut parser = TypeParser::new(text, 0);
        let atom = parser.atom()?;
        parser.end(atom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_prints_and_parses_back() {
        let text = "<a: int8?, b: decimal(38,10), \"c d\"\"e\": timestamp(us, \"Europe/Zurich\")?, \
                    f: list<struct<x: int64?, y: map<string, bytes?>?>?>, e: enum(mood, 'it''s', 'ok')?, b2: list<bits>, u: list<uuid?>, g: rows<k: uint64, h: batch<>>>";
        assert_eq!(text.parse::<Tuple>().unwrap().to_string(), text);
    }

    #[test]
    fn wrong_types_are_errors() {
        for text in [
            "",
            "<a: timestamp(us, \"Europe/Zurjch\")>",
            "<a: timestamp(us, \"\")>",
            "<a>",
            "<a: int65>",
            "<a: decimal(39,2)>",
            "<a: int8, a: int8>",
            "<a: struct<x: int8, x: int64>>",
            "<a: int8> x",
            "<a: time(h)>",
            "<a: enum(mood, 'a', 'a')>",
            "<a: enum(mood, 'a)>",
        ] {
            assert!(text.parse::<Tuple>().is_err(), "{text}");
        }
        let deep = format!("<a: {}int8{}>", "list<".repeat(40), ">".repeat(40));
        assert_eq!(deep.parse::<Tuple>().unwrap_err().code(), Code::Limit);
    }
}
