//! The gamma function and its logarithm, by Lanczos' approximation with nine terms.

use super::{Fault, Value};

const G: f64 = 7.0;
const TERMS: [f64; 9] = [
    0.999_999_999_999_809_9,
    676.520_368_121_885_1,
    -1_259.139_216_722_402_8,
    771.323_428_777_653_1,
    -176.615_029_162_140_6,
    12.507_343_278_686_905,
    -0.138_571_095_265_720_12,
    9.984_369_578_019_572e-6,
    1.505_632_735_149_311_6e-7,
];

/// The sum of the approximation, for a positive argument that is one too large.
fn sum(x: f64) -> f64 {
    let parts = TERMS[1..].iter().enumerate();
    parts.fold(TERMS[0], |sum, (at, term)| sum + term / (x + at as f64 + 1.0))
}

/// The gamma function. Zero and negative integers are outside of its domain.
pub(super) fn gamma(x: f64) -> Value {
    if x.is_nan() || x == f64::INFINITY {
        return Ok(x);
    }
    if x <= 0.0 && x == x.floor() {
        return Err(Fault::Input);
    }
    if x > 171.7 {
        return Err(Fault::Overflow);
    }
    if x == x.floor() {
        // Exact as long as doubles are.
        return Ok((2..x as u32).fold(1.0, |product, factor| product * f64::from(factor)));
    }
    if x < 0.5 {
        let sine = (std::f64::consts::PI * x).sin();
        return Ok(match gamma(1.0 - x) {
            Ok(other) => std::f64::consts::PI / (sine * other),
            Err(_) => 0.0,
        });
    }
    let (x, base) = (x - 1.0, x - 1.0 + G + 0.5);
    // The power is taken in halves, which do not overflow.
    let half = base.powf((x + 0.5) / 2.0);
    let root = (2.0 * std::f64::consts::PI).sqrt();
    Ok(root * half * (-base).exp() * half * sum(x))
}

/// The logarithm of the absolute value of the gamma function.
pub(super) fn log_gamma(x: f64) -> Value {
    if x.is_nan() || x.is_infinite() {
        return Ok(x.abs());
    }
    if x <= 0.0 && x == x.floor() {
        return Err(Fault::Input);
    }
    if x.abs() < 100.0 {
        return gamma(x).map(|value| value.abs().ln());
    }
    if x < 0.5 {
        let sine = (std::f64::consts::PI * x).sin().abs();
        return log_gamma(1.0 - x).map(|other| (std::f64::consts::PI / sine).ln() - other);
    }
    let (x, base) = (x - 1.0, x - 1.0 + G + 0.5);
    let root = (2.0 * std::f64::consts::PI).ln() / 2.0;
    let value = root + (x + 0.5) * base.ln() - base + sum(x).ln();
    if value.is_finite() { Ok(value) } else { Err(Fault::Overflow) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_near(ours: f64, theirs: f64) -> bool {
        (ours / theirs - 1.0).abs() < 1e-12
    }

    #[test]
    fn values_are_known_ones() {
        assert_eq!(gamma(5.0), Ok(24.0));
        assert_eq!(gamma(1.0), Ok(1.0));
        for (x, value) in [
            (0.5, 1.772_453_850_905_516),
            (-0.5, -3.544_907_701_811_032),
            (1.5, 0.886_226_925_452_758),
            (170.5, 5.562_092_414_56e305),
        ] {
            assert!(is_near(gamma(x).unwrap(), value), "{x}: {:?}", gamma(x));
        }
        for (x, value) in [
            (0.5, 0.572_364_942_924_700_1),
            (10.0, 12.801_827_480_081_469),
            (1000.0, 5_905.220_423_209_181),
            (1e10, 220258509288.81058),
        ] {
            assert!(is_near(log_gamma(x).unwrap(), value), "{x}: {:?}", log_gamma(x));
        }
        assert_eq!(gamma(0.0), Err(Fault::Input));
        assert_eq!(gamma(-3.0), Err(Fault::Input));
        assert_eq!(gamma(172.0), Err(Fault::Overflow));
        assert_eq!(gamma(-200.5), Ok(0.0));
        assert_eq!(log_gamma(1.0), Ok(0.0));
    }
}
