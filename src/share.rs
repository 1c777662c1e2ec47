//! Exact fractions: shares of calls, and what multiplies a length of time. Never floats.

/// A share greater than 0 and at most 1, exact: `1/3` is one third, not 0.333….
///
/// ```
/// use tripcurve::Share;
/// let third = Share::new(33, 100).unwrap();
/// assert!(third.met_by(1, 3)); // 1 of 3 calls is more than 33 %
/// assert!(!Share::new(34, 100).unwrap().met_by(1, 3));
/// assert_eq!(Share::new(3, 2), None); // more than everything
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Share {
    numerator: u32,
    denominator: u32,
}

impl Share {
    /// Everything: 1/1.
    pub const ALL: Share = Share { numerator: 1, denominator: 1 };
    /// One half.
    pub const HALF: Share = Share { numerator: 1, denominator: 2 };
    /// The largest denominator: 10^9, which is nine decimals.
    pub const MAX_DENOMINATOR: u32 = 1_000_000_000;

    /// `numerator / denominator`; `None` unless 1 ≤ numerator ≤ denominator ≤ 10^9.
    pub const fn new(numerator: u32, denominator: u32) -> Option<Share> {
        if numerator == 0 || numerator > denominator || denominator > Share::MAX_DENOMINATOR {
            return None;
        }
        Some(Share { numerator, denominator })
    }

    /// `percent / 100`; `None` unless 1 ≤ percent ≤ 100.
    pub const fn percent(percent: u32) -> Option<Share> {
        Share::new(percent, 100)
    }

    /// Is `part` at least this share of `whole`? Compared by multiplying, so that no rounding decides.
    pub const fn met_by(self, part: u32, whole: u32) -> bool {
        part as u64 * self.denominator as u64 >= self.numerator as u64 * whole as u64
    }

    /// The numerator as given.
    pub const fn numerator(self) -> u32 {
        self.numerator
    }

    /// The denominator as given.
    pub const fn denominator(self) -> u32 {
        self.denominator
    }

    /// This share of `millis`, rounded down. Split so that it stays within 64 bits.
    pub(crate) const fn of(self, millis: u64) -> u64 {
        scale(millis, self.numerator as u64, self.denominator as u64)
    }
}

/// A factor from 1 to 10, exact: what [`backoff`](crate::PolicyOptions::backoff) multiplies the open time by.
///
/// ```
/// use tripcurve::Factor;
/// assert!(Factor::new(3, 2).is_some()); // 1.5
/// assert_eq!(Factor::new(1, 2), None);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Factor {
    numerator: u64,
    denominator: u32,
}

impl Factor {
    /// No growth.
    pub const ONE: Factor = Factor { numerator: 1, denominator: 1 };
    /// Twice as long each time.
    pub const TWO: Factor = Factor { numerator: 2, denominator: 1 };

    /// `numerator / denominator`; `None` unless it is from 1 to 10 with a denominator of at most 10^9.
    pub const fn new(numerator: u64, denominator: u32) -> Option<Factor> {
        if denominator == 0
            || denominator > Share::MAX_DENOMINATOR
            || numerator < denominator as u64
            || numerator > denominator as u64 * 10
        {
            return None;
        }
        Some(Factor { numerator, denominator })
    }

    /// The numerator as given.
    pub const fn numerator(self) -> u64 {
        self.numerator
    }

    /// The denominator as given.
    pub const fn denominator(self) -> u32 {
        self.denominator
    }

    /// `millis` times this factor, rounded down.
    pub(crate) const fn times(self, millis: u64) -> u64 {
        scale(millis, self.numerator, self.denominator as u64)
    }
}

/// `value * numerator / denominator` without 128 bits: exact while the result fits, else the largest number.
const fn scale(value: u64, numerator: u64, denominator: u64) -> u64 {
    let whole = (value / denominator).saturating_mul(numerator);
    whole.saturating_add((value % denominator) * numerator / denominator)
}
