//! What a scan of text does with records that it cannot read: `ignore_errors`, `store_rejects`.

use std::sync::Arc;

use tessera_context::{Context, RejectFile, RejectScan};
use tessera_operator::format::{FormatOption, ReadOptions, TEXT};
use tessera_plan::{Params, Value};
use tessera_types::{Error, Result};

use super::RECORD_BYTES_MAX;
use crate::csv::flag;

/// The default names of the tables of scans and of errors.
const TABLES: [&str; 2] = ["reject_scans", "reject_errors"];

/// The option of the longest record.
pub(crate) const MAX_LINE_SIZE: FormatOption = option(
    "max_line_size",
    &["maximum_line_size"],
    "the most bytes of a record; absent: 268435456, which is also the most that it can be",
);
/// Whether records that cannot be read are skipped.
pub(crate) const IGNORE_ERRORS: FormatOption =
    option("ignore_errors", &[], "whether records that cannot be read are skipped");
const STORE_REJECTS: FormatOption = option(
    "store_rejects",
    &[],
    "whether the records that are skipped are kept in tables of the session; sets ignore_errors",
);
const REJECTS_SCAN: FormatOption = option(
    "rejects_scan",
    &[],
    "the table of scans that have skipped records; absent: reject_scans. Sets store_rejects",
);
const REJECTS_TABLE: FormatOption = option(
    "rejects_table",
    &[],
    "the table of the records that were skipped; absent: reject_errors. Sets store_rejects",
);
const REJECTS_LIMIT: FormatOption = option(
    "rejects_limit",
    &[],
    "the most errors of a scan that are kept; 0 and absent: all. Sets store_rejects",
);

/// The options of tables of rejects.
pub(crate) const REJECTS: [FormatOption; 4] =
    [STORE_REJECTS, REJECTS_SCAN, REJECTS_TABLE, REJECTS_LIMIT];

const fn option(
    name: &'static str,
    aliases: &'static [&'static str],
    help: &'static str,
) -> FormatOption {
    FormatOption { name, aliases, help, default: None, kind: TEXT }
}

/// What happens with records that cannot be read.
#[derive(Debug, Clone)]
pub(crate) struct Leniency {
    /// Whether they are skipped.
    pub(crate) ignores: bool,
    /// What is kept of them.
    pub(crate) rejects: Option<KeptRejects>,
    /// The longest record.
    pub(crate) record_bytes_max: usize,
}

/// How rejects are kept.
#[derive(Debug, Clone)]
pub(crate) struct KeptRejects {
    /// The tables of scans and of errors.
    tables: [Arc<str>; 2],
    limit: Option<usize>,
}

impl Leniency {
    /// Reads the parameters of a scan.
    ///
    /// # Errors
    /// A parameter has an invalid value.
    pub(crate) fn new(params: &Params) -> Result<Leniency> {
        let record_bytes_max = match number(params, MAX_LINE_SIZE.name)? {
            None => RECORD_BYTES_MAX,
            Some(bytes) if (1..=RECORD_BYTES_MAX).contains(&bytes) => bytes,
            Some(_) => {
                return Err(Error::semantic(format!(
                    "option {} must be between 1 and {RECORD_BYTES_MAX} bytes",
                    MAX_LINE_SIZE.name
                )));
            }
        };
        let ignores = flag(params, IGNORE_ERRORS.name)? == Some(true);
        let rejects = match flag(params, STORE_REJECTS.name)? {
            Some(true) => {
                let limit = number(params, REJECTS_LIMIT.name)?.filter(|limit| *limit > 0);
                let [scans, errors] = [&REJECTS_SCAN, &REJECTS_TABLE].map(|option| option.name);
                let tables = [table(params, scans, TABLES[0])?, table(params, errors, TABLES[1])?];
                Some(KeptRejects { tables, limit })
            }
            _ => None,
        };
        Ok(Leniency { ignores, rejects, record_bytes_max })
    }

    /// Completes options that follow from others: what names a table of rejects stores them, and
    /// what stores them skips records.
    ///
    /// # Errors
    /// Two options contradict each other.
    pub(crate) fn check(options: &mut ReadOptions) -> Result<()> {
        let params = &mut options.params;
        let given = REJECTS.iter().skip(1).find(|option| params.get(option.name).is_some());
        let stores = match (flag(params, STORE_REJECTS.name)?, given) {
            (Some(false), Some(option)) => {
                return Err(Error::semantic(format!(
                    "option {} needs store_rejects, which is false; remove one of them",
                    option.name
                )));
            }
            (stores, given) => stores == Some(true) || given.is_some(),
        };
        if stores {
            if flag(params, IGNORE_ERRORS.name)? == Some(false) {
                return Err(Error::semantic(
                    "option store_rejects keeps what ignore_errors skips, and that is false; remove one of them",
                ));
            }
            params.set(STORE_REJECTS.name, true);
            params.set(IGNORE_ERRORS.name, true);
        }
        let [scans, errors] = Leniency::new(params)?
            .rejects
            .map_or_else(|| TABLES.map(Arc::from), |rejects| rejects.tables);
        match scans.eq_ignore_ascii_case(&errors) {
            false => Ok(()),
            true => Err(Error::semantic(format!(
                "options rejects_scan and rejects_table both name '{scans}'; give them different names"
            ))),
        }
    }

    /// Begins the list of the records that a scan skips, if it is kept and read.
    pub(crate) fn begin(
        &self,
        files: Vec<RejectFile>,
        context: &dyn Context,
    ) -> Option<Arc<RejectScan>> {
        let (rejects, list) = (self.rejects.as_ref()?, context.rejects()?);
        let scan = RejectScan::new(rejects.tables.clone(), files, rejects.limit);
        list.begin(scan.clone());
        Some(scan)
    }
}

fn table(params: &Params, option: &str, otherwise: &str) -> Result<Arc<str>> {
    let Some(_) = params.get(option) else { return Ok(otherwise.into()) };
    let name = params.string(option)?;
    match name.is_empty() {
        true => Err(Error::semantic(format!("option {option} must be the name of a table"))),
        false => Ok(name.clone()),
    }
}

fn number(params: &Params, option: &str) -> Result<Option<usize>> {
    let found = match params.get(option) {
        None => return Ok(None),
        Some(Value::Integer(number)) => usize::try_from(*number).ok(),
        Some(Value::String(text)) => text.parse().ok(),
        Some(_) => None,
    };
    let wrong = || Error::semantic(format!("option {option} must be a whole number from 0 on"));
    found.map(Some).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(options: &[(&str, &str)]) -> Result<Leniency> {
        let mut read = ReadOptions::default();
        for (name, value) in options {
            read.params.set(*name, Value::string(*value));
        }
        Leniency::check(&mut read)?;
        Leniency::new(&read.params)
    }

    #[test]
    fn options_that_follow_from_others() {
        let plain = checked(&[]).unwrap();
        assert!(!plain.ignores && plain.rejects.is_none());
        assert!(checked(&[("ignore_errors", "1")]).unwrap().ignores);
        let named = checked(&[("rejects_table", "e"), ("rejects_limit", "0")]).unwrap();
        let rejects = named.rejects.unwrap();
        assert_eq!(rejects.tables.each_ref().map(|name| &**name), ["reject_scans", "e"]);
        assert!(named.ignores && rejects.limit.is_none());
    }

    #[test]
    fn options_that_contradict_each_other() {
        for options in [
            &[("store_rejects", "true"), ("ignore_errors", "false")][..],
            &[("store_rejects", "false"), ("rejects_limit", "3")],
            &[("store_rejects", "true"), ("rejects_limit", "-1")],
            &[("rejects_table", "x"), ("rejects_scan", "X")],
            &[("rejects_table", "")],
            &[("ignore_errors", "perhaps")],
            &[("max_line_size", "0")],
            &[("max_line_size", "300000000")],
        ] {
            assert!(checked(options).is_err(), "{options:?}");
        }
    }
}
