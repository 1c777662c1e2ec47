//! A ratio given as a double, as the exact fraction that judges every window the same way.

/// The simplest fraction that, divided in doubles, gives `ratio` again.
///
/// utopia tests `failures / calls >= ratio` in doubles. A quotient equal to a simple fraction rounds to the same double as that
/// fraction, and any other quotient of counts this small is many roundings away: so the exact test of the fraction decides alike.
pub fn simplest(ratio: f64) -> (u32, u32) {
    let (mut before, mut last) = ((0u64, 1u64), (1u64, 0u64));
    let mut rest = ratio;
    loop {
        let whole = rest.floor();
        let next = (whole as u64 * last.0 + before.0, whole as u64 * last.1 + before.1);
        assert!(next.1 <= 1_000_000_000, "no fraction with nine digits is {ratio}");
        if next.0 as f64 / next.1 as f64 == ratio {
            return (next.0 as u32, next.1 as u32);
        }
        (before, last) = (last, next);
        rest = 1.0 / (rest - whole);
    }
}

#[test]
fn the_fraction_is_the_one_that_was_meant() {
    for (ratio, fraction) in [
        (0.5, (1, 2)),
        (0.01, (1, 100)),
        (0.1, (1, 10)),
        (0.3, (3, 10)),
        (0.34, (17, 50)),
        (2.0 / 3.0, (2, 3)),
        (0.75, (3, 4)),
        (1.0, (1, 1)),
        (1e-9, (1, 1_000_000_000)),
    ] {
        assert_eq!(simplest(ratio), fraction);
    }
}

#[test]
fn fraction_and_double_judge_every_small_window_alike() {
    for ratio in [0.01, 0.1, 0.25, 0.3, 0.34, 0.5, 0.6, 0.6666666666666666, 0.75, 1.0] {
        let (numerator, denominator) = simplest(ratio);
        for calls in 1..=400u64 {
            for failures in 0..=calls {
                let in_doubles = failures as f64 / calls as f64 >= ratio;
                assert_eq!(
                    in_doubles,
                    failures * u64::from(denominator) >= calls * u64::from(numerator),
                    "{failures}/{calls} {ratio}"
                );
            }
        }
    }
}
