//! Trigonometric functions in degrees with exact values where they exist (`sind(30)` is 0.5),
//! computed as in PostgreSQL.

const DEGREE: f64 = std::f64::consts::PI / 180.0;

fn sine_to_30(x: f64) -> f64 {
    (x * DEGREE).sin() / (30.0 * DEGREE).sin() / 2.0
}

fn cosine_to_60(x: f64) -> f64 {
    1.0 - (1.0 - (x * DEGREE).cos()) / (1.0 - (60.0 * DEGREE).cos()) / 2.0
}

/// The sine of 0 to 90 degrees.
fn sine(x: f64) -> f64 {
    if x <= 30.0 { sine_to_30(x) } else { cosine_to_60(90.0 - x) }
}

/// The cosine of 0 to 90 degrees.
fn cosine(x: f64) -> f64 {
    if x <= 60.0 { cosine_to_60(x) } else { sine_to_30(90.0 - x) }
}

/// Reduces an angle to 0 to 90 degrees and returns the signs of its sine and cosine.
fn quarter(x: f64) -> (f64, f64, f64) {
    let (mut x, mut sine, mut cosine) = (x % 360.0, 1.0, 1.0);
    if x < 0.0 {
        (x, sine) = (-x, -sine);
    }
    if x > 180.0 {
        (x, sine) = (360.0 - x, -sine);
    }
    if x > 90.0 {
        (x, cosine) = (180.0 - x, -cosine);
    }
    (x, sine, cosine)
}

pub(super) fn sind(x: f64) -> f64 {
    let (x, sign, _) = quarter(x);
    sign * sine(x)
}

pub(super) fn cosd(x: f64) -> f64 {
    let (x, _, sign) = quarter(x);
    sign * cosine(x)
}

pub(super) fn tand(x: f64) -> f64 {
    let (x, a, b) = quarter(x);
    // Adding 0.0 turns -0.0 into 0.0.
    a * b * (sine(x) / cosine(x) / (sine(45.0) / cosine(45.0))) + 0.0
}

pub(super) fn cotd(x: f64) -> f64 {
    let (x, a, b) = quarter(x);
    a * b * (cosine(x) / sine(x) / (cosine(45.0) / sine(45.0))) + 0.0
}

fn arc_sine(x: f64) -> f64 {
    match x <= 0.5 {
        true => x.asin() / 0.5f64.asin() * 30.0,
        false => 90.0 - x.acos() / 0.5f64.acos() * 60.0,
    }
}

pub(super) fn asind(x: f64) -> f64 {
    if x >= 0.0 { arc_sine(x) } else { -arc_sine(-x) }
}

pub(super) fn acosd(x: f64) -> f64 {
    match x {
        x if x < 0.0 => 90.0 + arc_sine(-x),
        x if x <= 0.5 => 90.0 - x.asin() / 0.5f64.asin() * 30.0,
        x => x.acos() / 0.5f64.acos() * 60.0,
    }
}

pub(super) fn atand(x: f64) -> f64 {
    x.atan() / 1f64.atan() * 45.0
}

pub(super) fn atan2d(y: f64, x: f64) -> f64 {
    y.atan2(x) / 1f64.atan() * 45.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_whole_angles_are_exact() {
        assert_eq!(
            [0.0, 30.0, 90.0, 150.0, 180.0, -30.0, 390.0].map(sind),
            [0.0, 0.5, 1.0, 0.5, 0.0, -0.5, 0.5]
        );
        assert_eq!(
            [0.0, 60.0, 90.0, 120.0, 180.0, -60.0].map(cosd),
            [1.0, 0.5, 0.0, -0.5, -1.0, 0.5]
        );
        assert_eq!([0.0, 45.0, 135.0, 180.0, 225.0].map(tand), [0.0, 1.0, -1.0, 0.0, 1.0]);
        assert_eq!([45.0, 90.0, 135.0].map(cotd), [1.0, 0.0, -1.0]);
        assert_eq!([0.0, 0.5, 1.0, -0.5, -1.0].map(asind), [0.0, 30.0, 90.0, -30.0, -90.0]);
        assert_eq!([0.0, 0.5, 1.0, -0.5, -1.0].map(acosd), [90.0, 60.0, 0.0, 120.0, 180.0]);
        assert_eq!([0.0, 1.0, -1.0, f64::INFINITY].map(atand), [0.0, 45.0, -45.0, 90.0]);
        assert_eq!(atan2d(-1.0, -1.0), -135.0);
    }
}
