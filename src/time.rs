//! Instants. The core reads no clock: every instant is an argument, in whole milliseconds.

use core::fmt;
use core::num::NonZeroU64;

/// An instant: milliseconds since the Unix epoch, or since any origin that all instants of one circuit share.
///
/// Bounded to 2^53 − 1, so that it is exact as a JavaScript number. Later instants stop at that bound.
///
/// ```
/// use tripcurve::Time;
/// let opened = Time::from_millis(1_000);
/// assert_eq!(opened.after(250).since(opened), 250);
/// assert_eq!(opened.since(opened.after(250)), 0); // never negative
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(
    /// One more than the milliseconds, so that an `Option<Time>` is no larger than a `Time`.
    NonZeroU64,
);

const MAX: u64 = (1 << 53) - 1;

impl Time {
    /// The latest instant there is: 2^53 − 1 ms.
    pub const MAX: Time = Time::from_millis(u64::MAX);
    /// The origin.
    pub const ZERO: Time = Time::from_millis(0);

    /// The instant `millis` after the origin, at most [`Time::MAX`].
    #[cfg_attr(target_family = "wasm", inline(never))]
    pub const fn from_millis(millis: u64) -> Time {
        match Time::checked(millis) {
            Some(at) => at,
            None => Time(NonZeroU64::MIN.saturating_add(MAX)),
        }
    }

    /// The instant `millis` after the origin; `None` if it is beyond [`Time::MAX`].
    #[inline(always)]
    pub const fn checked(millis: u64) -> Option<Time> {
        if millis > MAX {
            return None;
        }
        Some(Time(NonZeroU64::MIN.saturating_add(millis)))
    }

    /// Milliseconds since the origin.
    pub const fn as_millis(self) -> u64 {
        self.0.get() - 1
    }

    /// Milliseconds from `earlier` to this instant; 0 when `earlier` is the later one.
    pub const fn since(self, earlier: Time) -> u64 {
        self.0.get().saturating_sub(earlier.0.get())
    }

    /// The instant `millis` later, at most [`Time::MAX`].
    #[inline(never)]
    pub const fn after(self, millis: u64) -> Time {
        Time::from_millis(self.as_millis().saturating_add(millis))
    }

    /// The instant so many milliseconds later, or earlier if negative; within the origin and [`Time::MAX`].
    #[inline(never)]
    pub(crate) const fn moved(self, millis: i64) -> Time {
        Time::from_millis(self.as_millis().saturating_add_signed(millis))
    }
}

impl Default for Time {
    fn default() -> Time {
        Time::ZERO
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Time").field(&self.as_millis()).finish()
    }
}
