//! Functions of UUIDs.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use arrow::array::{ArrayRef, AsArray, StringViewBuilder};
use tessera_types::{Atom, Error, Result};
use tessera_values::kernel::{Argument, Kernel, unexpected};
use tessera_values::rowwise::{OutputValue, signature, strict, zoned};
use tessera_values::types::{Arg, ResolvedCall, expect_arguments};
use tessera_values::uuid;

/// The names of the functions, beside those that make random UUIDs.
pub(crate) const NAMES: &[&str] = &["uuid_extract_timestamp", "uuid_extract_version"];

/// The function of UUIDs that begin with the time.
pub(crate) const BY_TIME: &str = "uuidv7";
/// The function of random UUIDs.
pub(crate) const RANDOM: &str = "uuid";

/// From 1582-10-15, from which UUIDs of version 1 count, to 1970, in units of 100 nanoseconds.
const EPOCH_OF_VERSION_1: i64 = 0x01b2_1dd2_1381_4000;
/// The characters of a UUID of version 7 that tell the time.
const TIME_CHARS: usize = 18;

/// Resolves a call of one of these functions.
pub(crate) fn resolve(name: &str, args: &[Arg<'_>]) -> Option<Result<ResolvedCall>> {
    Some(match name {
        "uuid_extract_version" => signature(name, args, &[Atom::Uuid]).map(|casts| {
            strict(Atom::Int16, args, casts, |arguments| {
                let version =
                    arguments.first().and_then(|text| version(&uuid::parse(text.text())?));
                Ok(version.map_or(OutputValue::Null, |version| OutputValue::Whole(version.into())))
            })
        }),
        "uuid_extract_timestamp" => signature(name, args, &[Atom::Uuid]).map(|casts| {
            strict(zoned(), args, casts, |arguments| {
                let moment = arguments.first().and_then(|text| moment(&uuid::parse(text.text())?));
                Ok(moment.map_or(OutputValue::Null, OutputValue::Whole))
            })
        }),
        _ => return None,
    })
}

/// The version of a UUID; `None` for one of another variant than that of RFC 9562.
fn version(uuid: &[u8; 16]) -> Option<u8> {
    (uuid[8] & 0xc0 == 0x80).then_some(uuid[6] >> 4)
}

/// The time in a UUID of version 1 or 7, in microseconds since 1970.
fn moment(uuid: &[u8; 16]) -> Option<i64> {
    let whole = |bytes: &[usize]| bytes.iter().fold(0, |sum, at| sum << 8 | i64::from(uuid[*at]));
    match version(uuid)? {
        1 => {
            let ticks = whole(&[6, 7, 4, 5, 0, 1, 2, 3]) & 0x0fff_ffff_ffff_ffff;
            Some((ticks - EPOCH_OF_VERSION_1).div_euclid(10))
        }
        7 => Some(whole(&[0, 1, 2, 3, 4, 5]) * 1_000),
        _ => None,
    }
}

/// Returns a call of random UUIDs, which are text in DataFusion.
pub(crate) fn random(call: ResolvedCall) -> ResolvedCall {
    ResolvedCall { atom: Atom::Uuid, ..call }
}

/// Returns a call of UUIDs of version 7, made of random ones.
pub(crate) fn by_time(args: &[Arg<'_>], random: ResolvedCall) -> Result<ResolvedCall> {
    expect_arguments(BY_TIME, args, 0)?;
    Ok(ResolvedCall { atom: Atom::Uuid, kernel: Arc::new(ByTime(random.kernel)), ..random })
}

/// Puts the time in place of the first bits of random UUIDs.
#[derive(Debug)]
struct ByTime(Arc<dyn Kernel>);

impl Kernel for ByTime {
    fn call(&self, args: &[Argument], rows: usize) -> Result<ArrayRef> {
        let random = self.0.call(args, rows)?;
        let random = random.as_string_view_opt().ok_or_else(|| unexpected(&random))?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let mut texts = StringViewBuilder::with_capacity(rows);
        for (row, text) in random.iter().enumerate() {
            // Twelve bits have the parts of a millisecond. Later rows are later.
            let ticks = now * 4_096 / 1_000_000 + row as u128;
            let (time, part) = ((ticks >> 12) & 0xffff_ffff_ffff, ticks & 0xfff);
            let rest = text.and_then(|text| text.get(TIME_CHARS..));
            let rest = rest.ok_or_else(|| Error::internal("a random UUID is too short"))?;
            texts.append_value(format!(
                "{:08x}-{:04x}-7{part:03x}{rest}",
                time >> 16,
                time & 0xffff
            ));
        }
        Ok(Arc::new(texts.finish()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_and_times() {
        let of = |text: &str| uuid::parse(text).map(|uuid| (version(&uuid), moment(&uuid)));
        for (text, version, moment) in [
            ("c232ab00-9414-11ec-b3c8-9f6bdeced846", Some(1), Some(1_645_557_742_000_000)),
            ("017f22e2-79b0-7cc3-98c4-dc0c0c07398f", Some(7), Some(1_645_557_742_000_000)),
            ("919108f7-52d1-4320-9bac-f847db4148a8", Some(4), None),
            ("00000000-0000-0000-0000-000000000000", None, None),
        ] {
            assert_eq!(of(text), Some((version, moment)), "{text}");
        }
    }
}
