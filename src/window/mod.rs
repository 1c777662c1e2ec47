//! Windows: how outcomes are remembered while a circuit is closed. Four kinds in three files.
//!
//! A window is rolled to an instant, then added to. Rolling over many lengths at once costs one pass and equals a fresh window.

mod calls;
mod fixed;
mod time;

pub(crate) use calls::CallsWindow;
pub(crate) use fixed::FixedWindow;
pub(crate) use time::TimeWindow;

use crate::error::{Field, Problem};
use crate::policy::{Check, Policy, MAX_COUNT};
use crate::{Counts, Time};

/// How outcomes are remembered while closed.
///
/// ```
/// use tripcurve::{Policy, PolicyOptions, WindowOptions};
/// let last_hundred = WindowOptions::Calls { last: 100, within_ms: None };
/// assert!(Policy::parse(PolicyOptions { window: last_hundred, ..Default::default() }).is_ok());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WindowOptions {
    /// One set of counters that starts again, empty, at the first admission or outcome `ms` after it began (phil).
    Fixed {
        /// Its length.
        ms: u64,
    },
    /// Buckets aligned to the epoch: the current one and the `buckets` − 1 before it count (reqtide; utopia with two).
    Time {
        /// The length of all buckets together.
        ms: u64,
        /// 1 to 100, dividing `ms`. Default: the largest divisor up to 10.
        buckets: Option<u32>,
    },
    /// The last `last` outcomes (reqtide, rasuvaeff).
    Calls {
        /// How many, 1 to 10,000.
        last: u32,
        /// Only those not older than this; one exactly this old still counts. `None`: any age.
        within_ms: Option<u64>,
    },
    /// Failures since the last success (fuse).
    Consecutive {
        /// Only those not older than this; one exactly this old still counts. `None`: any age.
        within_ms: Option<u64>,
    },
}

impl WindowOptions {
    pub(crate) fn fill(&mut self, check: &mut Check) {
        match self {
            WindowOptions::Fixed { ms } => check.length(Field::WindowMs, *ms, 1),
            WindowOptions::Time { ms, buckets } => {
                check.length(Field::WindowMs, *ms, 1);
                let largest = || (1..=10).rev().find(|n| *ms % u64::from(*n) == 0).unwrap_or(1);
                let buckets = *buckets.get_or_insert_with(largest);
                check.count(Field::WindowBuckets, buckets, time::MAX_BUCKETS);
                if ms.checked_rem(buckets.into()) != Some(0) {
                    check.fail(Field::WindowBuckets, Problem::MustDivide { ms: *ms });
                }
            }
            WindowOptions::Calls { last, within_ms } => {
                check.count(Field::WindowLast, *last, MAX_COUNT);
                check.length(Field::WindowWithinMs, within_ms.unwrap_or(1), 1);
            }
            WindowOptions::Consecutive { within_ms } => check.length(Field::WindowWithinMs, within_ms.unwrap_or(1), 1),
        }
    }
}

/// A window's memory. Its options stay in the policy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Window {
    Fixed(FixedWindow),
    Time(TimeWindow),
    Calls(CallsWindow),
    Consecutive(CallsWindow),
}

impl Window {
    pub(crate) fn new(policy: &Policy, now: Time) -> Window {
        match policy.options.window {
            WindowOptions::Fixed { ms } => Window::Fixed(FixedWindow::new(ms, now)),
            WindowOptions::Time { ms, buckets } => Window::Time(TimeWindow::new(ms, buckets.unwrap_or(1))),
            WindowOptions::Calls { last, within_ms } => Window::Calls(CallsWindow::new(last, within_ms)),
            WindowOptions::Consecutive { within_ms } => {
                // As many failures as could ever be asked for: by count, or by a share that waits for the minimum.
                let enough = policy.options.failures.max(policy.options.minimum_calls).unwrap_or(1);
                Window::Consecutive(CallsWindow::new(enough, within_ms))
            }
        }
    }

    /// Empties it; a fixed window begins at `now`.
    pub(crate) fn clear(&mut self, now: Time) {
        match self {
            Window::Fixed(window) => window.clear(now),
            Window::Time(window) => window.clear(),
            Window::Calls(window) | Window::Consecutive(window) => window.clear(),
        }
    }

    /// Drops what is too old at `now`.
    pub(crate) fn roll(&mut self, now: Time) {
        match self {
            Window::Fixed(window) => window.roll(now),
            Window::Time(window) => window.roll(now),
            Window::Calls(window) | Window::Consecutive(window) => window.roll(now),
        }
    }

    /// A call was let in. Only a fixed window begins again by that.
    #[inline(always)]
    pub(crate) fn admitted(&mut self, now: Time) {
        if let Window::Fixed(window) = self {
            window.roll(now);
        }
    }

    /// Rolls to `now` and counts one outcome there. Two kinds here, two apart: four would become a jump table, which costs as much as
    /// counting.
    #[cfg_attr(target_family = "wasm", inline(never))]
    #[cfg_attr(not(target_family = "wasm"), inline(always))]
    pub(crate) fn count(&mut self, failed: bool, slow: bool, now: Time) {
        match self {
            Window::Calls(window) => {
                window.roll(now);
                window.add(failed, slow, now);
            }
            Window::Time(window) => {
                window.roll(now);
                window.add(failed, slow, now);
            }
            Window::Fixed(_) | Window::Consecutive(_) => self.count_other(failed, slow, now),
        }
    }

    #[inline(never)]
    fn count_other(&mut self, failed: bool, slow: bool, now: Time) {
        self.roll(now);
        match self {
            Window::Fixed(window) => window.add(failed, slow),
            Window::Consecutive(window) if failed => window.add(failed, slow, now),
            Window::Consecutive(window) => window.empty(),
            Window::Time(_) | Window::Calls(_) => {}
        }
    }

    /// The counts as of the last roll or addition.
    pub(crate) fn counts(&self) -> Counts {
        match self {
            Window::Fixed(window) => window.counts(),
            Window::Time(window) => window.counts(),
            Window::Calls(window) | Window::Consecutive(window) => window.counts(),
        }
    }

    /// Adds what `mine` has counted beyond `base`, an earlier copy of it, and gives it.
    pub(crate) fn absorb(&mut self, mine: &mut Window, base: &mut Window) -> Counts {
        match (self, mine, base) {
            (Window::Fixed(window), Window::Fixed(mine), Window::Fixed(base)) => window.absorb(mine, base),
            (Window::Time(window), Window::Time(mine), Window::Time(base)) => window.absorb(mine, base),
            (Window::Calls(window), Window::Calls(mine), Window::Calls(base))
            | (Window::Consecutive(window), Window::Consecutive(mine), Window::Consecutive(base)) => window.absorb(mine, base),
            _ => Counts::default(), // one policy makes one kind
        }
    }

    /// The next instant at which rolling would drop something.
    pub(crate) fn next_change_at(&self) -> Option<Time> {
        match self {
            Window::Fixed(window) => window.next_change_at(),
            Window::Time(window) => window.next_change_at(),
            Window::Calls(window) | Window::Consecutive(window) => window.next_change_at(),
        }
    }

    /// Everything in it happened `by` milliseconds later, or earlier if negative, and nothing after `latest`.
    pub(crate) fn fit(&mut self, by: i64, latest: Time) {
        match self {
            Window::Fixed(window) => window.fit(by, latest),
            Window::Time(window) => window.fit(by, latest),
            Window::Calls(window) | Window::Consecutive(window) => window.fit(by, latest),
        }
    }
}

impl Counts {
    #[inline(always)]
    pub(crate) fn add(&mut self, failed: bool, slow: bool) {
        self.calls = self.calls.saturating_add(1);
        self.failures = self.failures.saturating_add(failed.into());
        self.slow = self.slow.saturating_add(slow.into());
    }

    #[inline(never)]
    pub(crate) fn plus(self, other: Counts) -> Counts {
        Counts {
            calls: self.calls.saturating_add(other.calls),
            failures: self.failures.saturating_add(other.failures),
            slow: self.slow.saturating_add(other.slow),
        }
    }

    #[inline(never)]
    pub(crate) fn minus(self, other: Counts) -> Counts {
        Counts {
            calls: self.calls.saturating_sub(other.calls),
            failures: self.failures.saturating_sub(other.failures),
            slow: self.slow.saturating_sub(other.slow),
        }
    }
}
