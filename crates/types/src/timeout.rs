//! The text form of timeouts.

use std::time::Duration;

/// Parses a timeout: positive seconds (`2`, `1.5s`), or `none`, which gives `Some(None)`. Returns
/// `None` if the text is neither.
pub fn parse_timeout(text: &str) -> Option<Option<Duration>> {
    let text = text.trim();
    if text.eq_ignore_ascii_case("none") {
        return Some(None);
    }
    let seconds = text.trim_end_matches('s').trim_end().parse::<f64>().ok()?;
    Duration::try_from_secs_f64(seconds).ok().filter(|time| !time.is_zero()).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_seconds_or_none() {
        assert_eq!(parse_timeout("1.5"), Some(Some(Duration::from_millis(1_500))));
        assert_eq!(parse_timeout(" 2s "), Some(Some(Duration::from_secs(2))));
        assert_eq!(parse_timeout("None"), Some(None));
        for wrong in ["", "0", "-1", "soon", "1e99", "nan"] {
            assert_eq!(parse_timeout(wrong), None, "{wrong}");
        }
    }
}
