//! Exact fractions: shares of calls, and what multiplies a length of time. Never floats.

use core::num::{NonZeroU32, NonZeroU64};

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
    denominator: NonZeroU32,
}

impl Share {
    /// Everything: 1/1.
    pub const ALL: Share = Share { numerator: 1, denominator: NonZeroU32::MIN };
    /// One half.
    pub const HALF: Share = Share { numerator: 1, denominator: NonZeroU32::MIN.saturating_add(1) };
    /// The largest denominator: 10^9, which is nine decimals.
    pub const MAX_DENOMINATOR: u32 = 1_000_000_000;

    /// `numerator / denominator`; `None` unless 1 ≤ numerator ≤ denominator ≤ 10^9.
    pub const fn new(numerator: u32, denominator: u32) -> Option<Share> {
        match NonZeroU32::new(denominator) {
            Some(bound) if numerator > 0 && numerator <= denominator && denominator <= Share::MAX_DENOMINATOR => {
                Some(Share { numerator, denominator: bound })
            }
            _ => None,
        }
    }

    /// `percent / 100`; `None` unless 1 ≤ percent ≤ 100.
    pub const fn percent(percent: u32) -> Option<Share> {
        Share::new(percent, 100)
    }

    /// Is `part` at least this share of `whole`? Compared by multiplying, so that no rounding decides.
    pub const fn met_by(self, part: u32, whole: u32) -> bool {
        part as u64 * self.denominator.get() as u64 >= self.numerator as u64 * whole as u64
    }

    /// The numerator as given.
    pub const fn numerator(self) -> u32 {
        self.numerator
    }

    /// The denominator as given.
    pub const fn denominator(self) -> u32 {
        self.denominator.get()
    }

    /// This share of `millis`, rounded down.
    pub(crate) fn of(self, millis: u64) -> u64 {
        scale(millis, self.numerator.into(), self.denominator)
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
    denominator: NonZeroU32,
}

impl Factor {
    /// No growth.
    pub const ONE: Factor = Factor { numerator: 1, denominator: NonZeroU32::MIN };
    /// Twice as long each time.
    pub const TWO: Factor = Factor { numerator: 2, denominator: NonZeroU32::MIN };

    /// `numerator / denominator`; `None` unless it is from 1 to 10 with a denominator of at most 10^9.
    pub const fn new(numerator: u64, denominator: u32) -> Option<Factor> {
        match NonZeroU32::new(denominator) {
            Some(bound)
                if denominator <= Share::MAX_DENOMINATOR
                    && numerator >= denominator as u64
                    && numerator <= denominator as u64 * 10 =>
            {
                Some(Factor { numerator, denominator: bound })
            }
            _ => None,
        }
    }

    /// The numerator as given.
    pub const fn numerator(self) -> u64 {
        self.numerator
    }

    /// The denominator as given.
    pub const fn denominator(self) -> u32 {
        self.denominator.get()
    }

    /// `millis` times this factor, rounded down.
    pub(crate) fn times(self, millis: u64) -> u64 {
        scale(millis, self.numerator, self.denominator)
    }
}

/// `millis * numerator / denominator`, split so that it stays within 64 bits: a length of time is at most 2^53, a fraction at most 10.
fn scale(millis: u64, numerator: u64, denominator: NonZeroU32) -> u64 {
    let denominator = NonZeroU64::from(denominator);
    millis / denominator * numerator + millis % denominator * numerator / denominator
}
