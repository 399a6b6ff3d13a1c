//! Tests of number formatting.

use super::*;

fn shown(number: Number<'_>, pattern: &str) -> String {
    format(number, &NumberPattern::parse(pattern).unwrap()).unwrap()
}

#[test]
fn numbers_are_written_as_by_postgresql() {
    for (number, pattern, expected) in [
        ("1234.5", "9,999.99", " 1,234.50"),
        ("-0.1", "99.99", "  -.10"),
        ("-0.1", "FM9.99", "-.1"),
        ("0.1", "0.9", " 0.1"),
        ("12", "9990999.9", "    0012.0"),
        ("-485", "999S", "485-"),
        ("-485", "999PR", "<485>"),
        ("485", "FMRN", "CDLXXXV"),
        ("482", "999th", " 482nd"),
        ("12.45", "99V9", " 125"),
        ("0.0004859", "9.99EEEE", " 4.86e-04"),
        ("1234", "99", " ##"),
        ("148.5", "FM999.990", "148.500"),
        ("-485", "SG999", "-485"),
        ("485", "\"Good number:\"999", "Good number: 485"),
    ] {
        assert_eq!(shown(Number::Decimal(number), pattern), expected, "{number} '{pattern}'");
    }
    assert_eq!(shown(Number::Double(0.1 + 0.2), "0.99999999999999999999"), " 0.30000000000000");
    assert_eq!(shown(Number::Short(5), "FM999.9"), "5.");
    assert!(NumberPattern::parse("9.9.9").is_err());
    assert!(NumberPattern::parse("S9MI").is_err());
}
