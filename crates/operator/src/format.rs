//! File formats: what a format tells the rooms above it, and the list of formats.
//!
//! A format is a value of a type that implements [`Format`]. Registering it
//! ([`Registry::register_format`]) is all that makes `read_NAME`, `STORED AS`, `COPY … TO`, file
//! names and messages know it.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use tessera_context::{Compression, RangeReader};
use tessera_plan::{FileFacts, Params, Pushes, Statistics, Value};
use tessera_types::{Atom, Error, Field, Result, Tuple};

use crate::Registry;

/// A file format.
pub trait Format: Send + Sync + fmt::Debug {
    /// Its names, sub-operators and options.
    fn entry(&self) -> &'static FormatEntry;

    /// Adds its sub-operators.
    fn register(&self, registry: &mut Registry);

    /// Whether data that starts with these bytes has this format. Only streams are asked, since
    /// they have no name with an extension.
    fn matches_start(&self, start: &[u8]) -> StartMatch {
        match self.entry().magic.iter().any(|magic| start.starts_with(magic)) {
            true => StartMatch::Certain,
            false => StartMatch::No,
        }
    }

    /// Checks and completes the options of reading, after each was parsed.
    ///
    /// # Errors
    /// Two options contradict each other.
    fn check_options(&self, _options: &mut ReadOptions) -> Result<()> {
        Ok(())
    }

    /// Returns the columns and statistics of files that form one table.
    ///
    /// # Errors
    /// A file cannot be read or is damaged, or the files have incompatible columns.
    fn describe(&self, files: &TableFiles<'_>) -> Result<TableDescription>;

    /// The functions of FROM that say something about files of the format.
    fn fact_functions(&self) -> &'static [&'static str] {
        &[]
    }

    /// Returns what one of these functions says about files.
    ///
    /// # Errors
    /// A file cannot be read or is damaged.
    fn facts(&self, function: &str, _files: &TableFiles<'_>) -> Result<FileFacts> {
        Err(Error::internal(format!("format {} has no function {function}", self.entry().name)))
    }
}

/// The facts about a format.
#[derive(Debug)]
pub struct FormatEntry {
    /// Its name in SQL, in lower case: `STORED AS csv`, `(FORMAT csv)`.
    pub name: &'static str,
    /// Its name in sentences.
    pub label: &'static str,
    /// One sentence for the reference documentation.
    pub summary: &'static str,
    /// Extensions of file names. They are names of the format, too.
    pub extensions: &'static [&'static str],
    /// Rarer extensions, which messages do not list.
    pub aliases: &'static [&'static str],
    /// The table functions that read it.
    pub functions: &'static [&'static str],
    /// Its scan sub-operator.
    pub scan: &'static str,
    /// Its materialize sub-operator, if it can be written.
    pub materialize: Option<&'static str>,
    /// What a file can start with, if that identifies the format.
    pub magic: &'static [&'static [u8]],
    /// The parts of a file that are read first.
    pub first_read: FirstRead,
    /// Whether the types of its columns can be declared freely, because it stores text.
    pub declares_types: bool,
    /// Whether its statistics have the exact number of rows.
    pub counts_rows: bool,
    /// The options of reading.
    pub read_options: &'static [FormatOption],
    /// The options of writing.
    pub write_options: &'static [FormatOption],
}

impl FormatEntry {
    /// Whether its files can be compressed as a whole, such as `x.csv.gz`.
    pub fn is_compressed_as_a_whole(&self) -> bool {
        self.read_options.iter().any(|option| option.name == COMPRESSION.name)
    }
}

/// The parts of a file that its scan reads first. Stores send them with the file's version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FirstRead {
    /// The first bytes, such as a header.
    pub head: bool,
    /// The last bytes, such as a footer.
    pub tail: bool,
}

/// An option of a format.
#[derive(Debug)]
pub struct FormatOption {
    /// Its name, which is the name of the sub-operator's parameter if it becomes one.
    pub name: &'static str,
    /// Names that other systems use.
    pub aliases: &'static [&'static str],
    /// Its effect, for the reference documentation.
    pub help: &'static str,
    /// The value of an absent option, which becomes the parameter.
    pub default: Option<&'static str>,
    /// Its values.
    pub kind: OptionKind,
}

/// The values of an option.
#[derive(Debug, Clone, Copy)]
pub enum OptionKind {
    /// A literal. The function returns the parameter; the sub-operator checks its value.
    Literal(fn(&str) -> Result<Value>),
    /// A string or a list of strings.
    Strings,
    /// A list of names.
    Names,
    /// Names and types of all columns: `{'a': 'int', 'b': 'varchar'}`.
    Columns,
    /// Types of columns, by name or in order.
    Types,
    /// Whether all columns are text.
    AllText,
}

/// The usual [`OptionKind::Literal`]: the text itself.
pub const TEXT: OptionKind = OptionKind::Literal(|text| Ok(Value::string(text)));

/// The options of reading that concern the paths of files, and that every format has.
pub static PATH_OPTIONS: [FormatOption; 4] = [
    FormatOption {
        name: "filename",
        aliases: &[],
        help: "whether a column `filename` has the path of each row's file, or another name of this column",
        default: None,
        kind: TEXT,
    },
    FormatOption {
        name: "hive_partitioning",
        aliases: &[],
        help: "whether folders such as `year=2024` are columns; absent: those below the given folder, or below the part of \
               a path before its first wildcard",
        default: None,
        kind: TEXT,
    },
    FormatOption {
        name: "hive_types",
        aliases: &[],
        help: "types of these columns by name; the others are whole numbers, dates or text",
        default: None,
        kind: OptionKind::Types,
    },
    FormatOption {
        name: "hive_types_autocast",
        aliases: &[],
        help: "whether these columns have other types than text",
        default: Some("true"),
        kind: TEXT,
    },
];

/// The option of how files of text are compressed.
pub const COMPRESSION: FormatOption = FormatOption {
    name: "compression",
    aliases: &[],
    help: "how the files are compressed: none, gzip, zstd, bz2 or xz; absent or auto: by the ends of their names",
    default: None,
    kind: TEXT,
};

/// The option of how a written file of text is compressed.
pub const WRITTEN_COMPRESSION: FormatOption = FormatOption {
    help: "how the file is compressed: none, gzip or zstd; absent or auto: by the end of its name",
    ..COMPRESSION
};

/// Returns the compression of a file, by the option of its scan or by its name.
///
/// # Errors
/// The option has an unknown value.
pub fn compression_of(params: &Params, path: &str) -> Result<Option<Compression>> {
    match params.get(COMPRESSION.name) {
        None => Ok(Compression::of_path(path)),
        Some(Value::String(name)) if name.eq_ignore_ascii_case("auto") => {
            Ok(Compression::of_path(path))
        }
        Some(Value::String(name)) if name.eq_ignore_ascii_case("none") => Ok(None),
        Some(Value::String(name)) if Compression::named(name).is_some() => {
            Ok(Compression::named(name))
        }
        Some(_) => {
            Err(Error::semantic("option compression must be auto, none, gzip, zstd, bz2 or xz"))
        }
    }
}

/// The parsed [`PATH_OPTIONS`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PathOptions {
    /// The name of the column of paths, if there is one.
    pub filename: Option<Arc<str>>,
    /// Whether folders such as `year=2024` are columns; `None` for those below the root only.
    pub hive_partitioning: Option<bool>,
    /// Types of these columns.
    pub hive_types: Vec<(String, Atom)>,
    /// Whether all other ones are text.
    pub hive_text: bool,
}

/// The answer of [`Format::matches_start`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartMatch {
    /// Another format.
    No,
    /// This format, if it is no other one.
    Possible,
    /// This format.
    Certain,
}

/// The parsed options of reading.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReadOptions {
    /// The parameters of the scan.
    pub params: Params,
    /// Names and types of all columns.
    pub columns: Option<Vec<Field>>,
    /// Types of some columns.
    pub types: ColumnTypes,
    /// What concerns the paths of files.
    pub paths: PathOptions,
}

/// The column types from options.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum ColumnTypes {
    /// All types are inferred.
    #[default]
    Inferred,
    /// The types of the first columns, in order.
    InOrder(Vec<Atom>),
    /// The types of named columns.
    Named(Vec<(String, Atom)>),
    /// All columns are text.
    Text,
}

/// Opens files. Headers and footers of objects are fetched concurrently.
pub type OpenFiles<'a> = &'a dyn Fn(&[String]) -> Result<Vec<Arc<dyn RangeReader>>>;

/// The files of a table, for [`Format::describe`].
#[derive(Clone, Copy)]
pub struct TableFiles<'a> {
    /// The files; at least one.
    pub paths: &'a [String],
    /// The parameters that options gave.
    pub params: &'a Params,
    /// The declared columns.
    pub declared: Option<&'a [Field]>,
    /// Opens some of the files.
    pub open: OpenFiles<'a>,
}

impl fmt::Debug for TableFiles<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableFiles").field("paths", &self.paths).finish_non_exhaustive()
    }
}

/// The columns of a table of files.
#[derive(Debug)]
pub struct TableDescription {
    /// The columns that the files have.
    pub columns: Tuple,
    /// Statistics of the rows and of these columns.
    pub statistics: Statistics,
    /// The parameters of the scan other than paths and columns.
    pub params: Params,
}

/// Adds the parameters of absent options that have a default.
pub fn set_defaults(params: &mut Params, options: &[FormatOption]) {
    for option in options {
        if let (Some(default), None) = (option.default, params.get(option.name)) {
            params.set(option.name, Value::string(default));
        }
    }
}

impl FormatEntry {
    /// Whether this is a name of the format; upper and lower case are the same.
    pub fn has_name(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name) || self.has_extension(name)
    }

    /// Whether files with this extension have the format; upper and lower case are the same.
    pub fn has_extension(&self, extension: &str) -> bool {
        let mut extensions = self.extensions.iter().chain(self.aliases);
        extensions.any(|known| known.eq_ignore_ascii_case(extension))
    }
}

impl FormatOption {
    /// Whether this is a name of the option; upper and lower case are the same.
    pub fn has_name(&self, name: &str) -> bool {
        std::iter::once(&self.name)
            .chain(self.aliases)
            .any(|known| known.eq_ignore_ascii_case(name))
    }
}

impl PartialEq for dyn Format {
    fn eq(&self, other: &dyn Format) -> bool {
        self.entry().name == other.entry().name
    }
}

/// The list of formats.
#[derive(Debug, Clone, Default)]
pub struct Formats {
    list: Vec<Arc<dyn Format>>,
    /// The scans that take predicates.
    filtering: BTreeSet<&'static str>,
}

impl Formats {
    /// Adds a format; it replaces an earlier one of the same name.
    pub(crate) fn add(&mut self, format: Arc<dyn Format>, pushes: Pushes) {
        if pushes.predicates {
            self.filtering.insert(format.entry().scan);
        }
        match self.list.iter_mut().find(|other| other.entry().name == format.entry().name) {
            Some(other) => *other = format,
            None => self.list.push(format),
        }
    }

    /// All formats, in the order of registration.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Format>> {
        self.list.iter()
    }

    /// Returns the format with this name.
    pub fn named(&self, name: &str) -> Option<&Arc<dyn Format>> {
        self.list.iter().find(|format| format.entry().has_name(name))
    }

    /// Returns the format of files with this extension.
    pub fn of_extension(&self, extension: &str) -> Option<&Arc<dyn Format>> {
        self.list.iter().find(|format| format.entry().has_extension(extension))
    }

    /// Returns a format that this table function reads.
    pub fn of_function(&self, function: &str) -> Option<&Arc<dyn Format>> {
        self.list.iter().find(|format| format.entry().functions.contains(&function))
    }

    /// Returns the format that has this function about files.
    pub fn of_fact_function(&self, function: &str) -> Option<&Arc<dyn Format>> {
        self.list.iter().find(|format| format.fact_functions().contains(&function))
    }

    /// Returns a format that this sub-operator scans.
    pub fn of_scan(&self, operator: &str) -> Option<&Arc<dyn Format>> {
        self.list.iter().find(|format| format.entry().scan == operator)
    }

    /// Whether the scan of a format takes predicates.
    pub fn takes_predicates(&self, format: &dyn Format) -> bool {
        self.filtering.contains(format.entry().scan)
    }

    /// Detects the format of data from its start.
    pub fn of_start(&self, start: &[u8]) -> Option<&Arc<dyn Format>> {
        let of = |wanted| self.list.iter().find(|format| format.matches_start(start) == wanted);
        of(StartMatch::Certain).or_else(|| of(StartMatch::Possible))
    }

    /// The names of the formats, for messages.
    pub fn names(&self) -> Vec<&'static str> {
        self.list.iter().map(|format| format.entry().name).collect()
    }

    /// The names of the formats that can be written, for messages.
    pub fn written_names(&self) -> Vec<&'static str> {
        let is_written = |format: &&Arc<dyn Format>| format.entry().materialize.is_some();
        self.list.iter().filter(is_written).map(|format| format.entry().name).collect()
    }

    /// The extensions of file names, for messages.
    pub fn extensions(&self) -> Vec<String> {
        let dotted = |format: &Arc<dyn Format>| {
            format.entry().extensions.iter().map(|extension| format!(".{extension}"))
        };
        self.list.iter().flat_map(dotted).collect()
    }

    /// Checks that a format can be added beside the others.
    ///
    /// # Errors
    /// Another format has one of its names or functions.
    pub fn check_free(&self, entry: &FormatEntry) -> Result<()> {
        let names = std::iter::once(&entry.name).chain(entry.extensions).chain(entry.aliases);
        for name in names {
            if let Some(other) = self.named(name) {
                return Err(taken("name", name, &[other.entry(), entry]));
            }
        }
        for function in entry.functions {
            if let Some(other) = self.of_function(function) {
                return Err(taken("function", function, &[other.entry(), entry]));
            }
        }
        Ok(())
    }
}

fn taken(what: &str, name: &str, entries: &[&FormatEntry; 2]) -> Error {
    let [one, other] = entries.map(|entry| entry.label);
    Error::semantic(format!(
        "the formats {one} and {other} have the same {what} {name}; leave one of them out"
    ))
}
