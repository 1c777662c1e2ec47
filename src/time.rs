//! Instants. The core reads no clock: every instant is an argument, in whole milliseconds.

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
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Time(u64);

impl Time {
    /// The latest instant there is: 2^53 − 1 ms.
    pub const MAX: Time = Time((1 << 53) - 1);
    /// The origin.
    pub const ZERO: Time = Time(0);

    /// The instant `millis` after the origin, at most [`Time::MAX`].
    pub const fn from_millis(millis: u64) -> Time {
        if millis > Time::MAX.0 {
            Time::MAX
        } else {
            Time(millis)
        }
    }

    /// Milliseconds since the origin.
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// Milliseconds from `earlier` to this instant; 0 when `earlier` is the later one.
    pub const fn since(self, earlier: Time) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// The instant `millis` later, at most [`Time::MAX`].
    pub const fn after(self, millis: u64) -> Time {
        Time::from_millis(self.0.saturating_add(millis))
    }

    /// The instant `millis` earlier, at least the origin.
    pub(crate) const fn before(self, millis: u64) -> Time {
        Time(self.0.saturating_sub(millis))
    }
}
