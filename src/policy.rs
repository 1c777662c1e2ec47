//! The policy: the trip curve itself. Parsed once; what a [`Policy`] holds is within its bounds.

use crate::error::{Field, InvalidPolicy, Problem};
use crate::{Counts, Factor, Reason, Share, Time, WindowOptions};

/// What a policy may say. Every field has a default, so `PolicyOptions { open_ms: 5_000, ..Default::default() }` is a policy.
///
/// Lengths are milliseconds from 1 to 2^53 − 1 (`open_ms` from 0), counts are from 1 to 10,000.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PolicyOptions {
    /// How outcomes are remembered while closed. Default: the last 30 s in 10 buckets.
    pub window: WindowOptions,
    /// Opens at this share of failed calls, once there are `minimum_calls`. Default: one half, unless `failures` is given or the
    /// window is consecutive.
    pub failure_rate: Rate,
    /// Opens at this many failures in the window, without waiting for `minimum_calls`. Not together with `failure_rate`.
    /// Default: none, or 5 with a consecutive window. At most `last` with a window of calls.
    pub failures: Option<u32>,
    /// Calls a window needs before a share is judged. Default 10, or `last` if that is smaller. At most `last`.
    pub minimum_calls: Option<u32>,
    /// A call that took longer than this is slow (equal is not). Default: none is.
    pub slow_ms: Option<u64>,
    /// Opens at this share of slow calls, once there are `minimum_calls`. Default: all. Without `slow_ms` it means nothing.
    pub slow_rate: Share,
    /// Which outcomes are looked at. Default: failures and slow calls.
    pub judge_on: JudgeOn,
    /// How long the circuit stays open before it may be probed; 0: it is due at once. Default 30,000.
    pub open_ms: u64,
    /// What the open time is multiplied by for each half-open period in a row that failed. Default 1.
    pub backoff: Factor,
    /// Up to this share of the open time is added, by a hash of seed and generation, so that participants do not come back in step.
    /// `None` (default): nothing.
    pub jitter: Option<Share>,
    /// The one cap on every open time: backoff, jitter, Retry-After, restored and adopted. At least `open_ms`.
    /// Default: the larger of `open_ms` and 300,000.
    pub max_open_ms: Option<u64>,
    /// Probes in flight while half-open, 1 to 1000; `None`: no limit. Default 1.
    pub probe_limit: Option<u32>,
    /// Successful probes that close the circuit, 1 to 1000. Default 1.
    pub probe_successes: u32,
    /// How long a probe may hold its slot. Default: the larger of `open_ms` and 10,000.
    pub probe_lease: Lease,
    /// Everything is computed and reported, nothing is refused. Default: off.
    pub shadow: bool,
}

/// A share of calls that opens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rate {
    /// One half, unless `failures` is given or the window is consecutive.
    Default,
    /// Shares of failures are not judged.
    Off,
    /// This share.
    Share(Share),
}

/// Which outcomes of a closed circuit are judged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JudgeOn {
    /// Only a failure or a slow call can open (phil, utopia).
    Failure,
    /// A fast success that completes `minimum_calls` can open as well (reqtide).
    Any,
}

/// How long a probe may hold its slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lease {
    /// The larger of `open_ms` and 10,000 ms: else a service slower than `open_ms` could never close the circuit.
    Default,
    /// Until it is settled. A hazard: a probe that never settles holds its slot for ever.
    Never,
    /// This many milliseconds.
    Ms(u64),
}

impl Default for PolicyOptions {
    fn default() -> PolicyOptions {
        const DEFAULT: PolicyOptions = PolicyOptions {
            window: WindowOptions::Time { ms: 30_000, buckets: None },
            failure_rate: Rate::Default,
            failures: None,
            minimum_calls: None,
            slow_ms: None,
            slow_rate: Share::ALL,
            judge_on: JudgeOn::Failure,
            open_ms: 30_000,
            backoff: Factor::ONE,
            jitter: None,
            max_open_ms: None,
            probe_limit: Some(1),
            probe_successes: 1,
            probe_lease: Lease::Default,
            shadow: false,
        };
        DEFAULT
    }
}

/// A checked policy with every default filled in.
///
/// ```
/// use tripcurve::{Counts, Policy, PolicyOptions, Rate, Share};
/// let policy = Policy::parse(PolicyOptions {
///     failure_rate: Rate::Share(Share::percent(33).unwrap()),
///     minimum_calls: Some(3),
///     ..Default::default()
/// })?;
/// assert!(policy.trips(Counts { calls: 3, failures: 1, slow: 0 }).is_some());
/// assert!(policy.trips(Counts { calls: 2, failures: 2, slow: 0 }).is_none()); // too few to judge
/// # Ok::<(), tripcurve::InvalidPolicy>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Policy {
    pub(crate) options: PolicyOptions,
}

impl Default for Policy {
    /// The policy of `PolicyOptions::default()`.
    fn default() -> Policy {
        let mut options = PolicyOptions::default();
        options.fill(&mut Check { error: None });
        Policy { options }
    }
}

/// The largest count an option takes: `last`, `minimum_calls`, `failures`.
pub(crate) const MAX_COUNT: u32 = 10_000;
const MAX_PROBES: u32 = 1_000;
const DEFAULT_MAX_OPEN_MS: u64 = 300_000;
const LEAST_LEASE_MS: u64 = 10_000;

impl Policy {
    /// Checks every bound and fills in the defaults. The first option that breaks one is named.
    pub fn parse(mut options: PolicyOptions) -> Result<Policy, InvalidPolicy> {
        let mut check = Check { error: None };
        options.fill(&mut check);
        match check.error {
            Some(error) => Err(error),
            None => Ok(Policy { options }),
        }
    }

    /// Why a closed window with these counts opens, or `None`. Failures are looked at before slowness (phil's trip test).
    pub fn trips(&self, counts: Counts) -> Option<Reason> {
        let options = &self.options;
        let judged = options.minimum_calls.is_none_or(|enough| counts.calls >= enough);
        if options.failures.is_some_and(|enough| counts.failures >= enough) {
            return Some(Reason::FailureCount);
        }
        if matches!(options.failure_rate, Rate::Share(rate) if judged && rate.met_by(counts.failures, counts.calls)) {
            return Some(Reason::FailureRate);
        }
        if options.slow_ms.is_some() && judged && options.slow_rate.met_by(counts.slow, counts.calls) {
            return Some(Reason::SlowRate);
        }
        None
    }

    /// Is a call of this duration slow? Longer than `slow_ms`; a call that was not measured never is.
    pub fn is_slow(&self, duration_ms: Option<u64>) -> bool {
        matches!((self.options.slow_ms, duration_ms), (Some(limit), Some(took)) if took > limit)
    }

    /// The options with every default filled in; parsing them gives this policy again.
    pub fn options(&self) -> PolicyOptions {
        self.options
    }

    /// How long the circuit stays open after `level` failed half-open periods. Jitter is a pure hash, so that the same circuit gives
    /// the same answer everywhere.
    pub(crate) fn open_ms_at(&self, level: u32, seed: u32, generation: u32) -> u64 {
        let mut ms = self.options.open_ms;
        for _ in 0..level {
            let longer = self.options.backoff.times(ms);
            if longer == ms || longer >= self.max_open_ms() {
                ms = longer;
                break;
            }
            ms = longer;
        }
        if let Some(share) = self.options.jitter {
            let most = share.of(ms);
            let hash = u64::from(hash(seed, generation));
            ms += (most >> 32) * hash + (((most & 0xffff_ffff) * hash) >> 32);
        }
        ms.min(self.max_open_ms())
    }

    pub(crate) fn max_open_ms(&self) -> u64 {
        self.options.max_open_ms.unwrap_or(u64::MAX)
    }

    /// Until when a probe let in now may hold its slot; `None`: for ever.
    pub(crate) fn lease_until(&self, now: Time) -> Option<Time> {
        match self.options.probe_lease {
            Lease::Ms(ms) => Some(now.after(ms)),
            Lease::Default | Lease::Never => None,
        }
    }

    /// `until`, at most `max_open_ms` from now.
    pub(crate) fn cap(&self, until: Time, now: Time) -> Time {
        until.min(now.after(self.max_open_ms()))
    }
}

impl PolicyOptions {
    /// Fills in the defaults and checks every bound.
    #[inline(never)]
    fn fill(&mut self, check: &mut Check) {
        self.window.fill(check);
        let most = match self.window {
            WindowOptions::Calls { last, .. } => last,
            WindowOptions::Fixed { .. } | WindowOptions::Time { .. } | WindowOptions::Consecutive { .. } => MAX_COUNT,
        };
        if self.failure_rate == Rate::Default {
            if self.failures.is_none() && matches!(self.window, WindowOptions::Consecutive { .. }) {
                self.failures = Some(5);
            }
            self.failure_rate = if self.failures.is_none() { Rate::Share(Share::HALF) } else { Rate::Off };
        }
        match (self.failures, self.failure_rate) {
            (Some(count), Rate::Off) => check.count(Field::Failures, count, most),
            (Some(_), _) => check.fail(Field::Failures, Problem::Excluded),
            (None, Rate::Off) if self.slow_ms.is_none() => check.fail(Field::FailureRate, Problem::NeverOpens),
            (None, _) => {}
        }
        check.count(Field::MinimumCalls, *self.minimum_calls.get_or_insert(most.min(10)), most);
        check.length(Field::SlowMs, self.slow_ms.unwrap_or(1), 1);
        check.length(Field::OpenMs, self.open_ms, 0);
        check.length(Field::MaxOpenMs, *self.max_open_ms.get_or_insert(self.open_ms.max(DEFAULT_MAX_OPEN_MS)), self.open_ms);
        check.count(Field::ProbeLimit, self.probe_limit.unwrap_or(1), MAX_PROBES);
        check.count(Field::ProbeSuccesses, self.probe_successes, MAX_PROBES);
        if self.probe_lease == Lease::Default {
            self.probe_lease = Lease::Ms(self.open_ms.max(LEAST_LEASE_MS));
        }
        if let Lease::Ms(ms) = self.probe_lease {
            check.length(Field::ProbeLeaseMs, ms, 1);
        }
    }
}

/// Mixes seed and generation into 32 even bits (the finaliser of MurmurHash3, public domain).
fn hash(seed: u32, generation: u32) -> u32 {
    let mut x = seed ^ generation.wrapping_mul(0x9e37_79b9);
    x = (x ^ (x >> 16)).wrapping_mul(0x85eb_ca6b);
    x = (x ^ (x >> 13)).wrapping_mul(0xc2b2_ae35);
    x ^ (x >> 16)
}

/// Collects the first bound that is broken.
pub(crate) struct Check {
    error: Option<InvalidPolicy>,
}

impl Check {
    pub(crate) fn fail(&mut self, field: Field, problem: Problem) {
        if self.error.is_none() {
            self.error = Some(InvalidPolicy { field, problem });
        }
    }

    pub(crate) fn count(&mut self, field: Field, count: u32, max: u32) {
        self.range(field, count.into(), 1, max.into());
    }

    pub(crate) fn length(&mut self, field: Field, ms: u64, min: u64) {
        self.range(field, ms, min, Time::MAX.as_millis());
    }

    #[inline(never)] // so that a bound costs a call, not a copy of this
    fn range(&mut self, field: Field, value: u64, min: u64, max: u64) {
        if value < min || value > max {
            self.fail(field, Problem::OutOfRange { min, max });
        }
    }
}
