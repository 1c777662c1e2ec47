//! A policy comes as numbers in slots and is parsed by the core, where every bound is.
//!
//! NaN is "not given": the core's default. Infinity is "none": no limit, no lease, no rate. A number that is not whole becomes one
//! that is out of every range, so that the core names the bound.

use tripcurve::{Factor, Field, InvalidPolicy, JudgeOn, Lease, Policy, PolicyOptions, Problem, Rate, Share, WindowOptions};

/// How many numbers a policy takes; one slot is spare.
pub(crate) const SLOTS: usize = 24;

/// Which slot was refused, and `[problem, min, max]`: 0 out of range, 1 excluded by another option, 2 does not divide `max`, 3 nothing
/// would ever open the circuit.
pub(crate) struct Refused {
    pub(crate) slot: i32,
    pub(crate) why: [f64; 3],
}

/// Parses the policy in the slots.
pub(crate) fn parse(slots: &[f64; SLOTS]) -> Result<Policy, Refused> {
    Slots(slots).policy().map_err(|error| {
        let (problem, min, max) = match error.problem {
            Problem::OutOfRange { min, max } => (0.0, min, max),
            Problem::Excluded => (1.0, 0, 0),
            Problem::MustDivide { ms } => (2.0, 0, ms),
            Problem::NeverOpens => (3.0, 0, 0),
        };
        Refused { slot: slot(error.field), why: [problem, min as f64, max as f64] }
    })
}

struct Slots<'a>(&'a [f64; SLOTS]);

impl Slots<'_> {
    fn policy(&self) -> Result<Policy, InvalidPolicy> {
        let window = match self.given(0).unwrap_or(1.0) as u32 {
            0 => WindowOptions::Fixed { ms: self.length(1).unwrap_or(0) },
            1 => WindowOptions::Time { ms: self.length(1).unwrap_or(0), buckets: self.count(2) },
            2 => WindowOptions::Calls { last: self.count(3).unwrap_or(0), within_ms: self.length(4) },
            _ => WindowOptions::Consecutive { within_ms: self.length(4) },
        };
        let defaults = PolicyOptions::default();
        Policy::parse(PolicyOptions {
            window,
            failure_rate: match self.given(5) {
                None => Rate::Default,
                Some(f64::INFINITY) => Rate::Off,
                Some(_) => Rate::Share(self.share(5, Field::FailureRate)?),
            },
            failures: self.count(7),
            minimum_calls: self.count(8),
            slow_ms: self.length(9),
            slow_rate: match self.given(10) {
                None => defaults.slow_rate,
                Some(_) => self.share(10, Field::SlowRate)?,
            },
            judge_on: if self.given(12) == Some(1.0) { JudgeOn::Any } else { JudgeOn::Failure },
            open_ms: self.length(13).unwrap_or(defaults.open_ms),
            backoff: match self.given(14) {
                None => defaults.backoff,
                Some(_) => {
                    Factor::new(self.whole(14), self.whole(15).min(u32::MAX.into()) as u32).ok_or(outside(Field::Backoff, 1, 10))?
                }
            },
            jitter: match self.given(16) {
                None | Some(0.0) => None,
                Some(_) => Some(self.share(16, Field::Jitter)?),
            },
            max_open_ms: self.length(18),
            probe_limit: match self.given(19) {
                Some(f64::INFINITY) => None,
                _ => self.count(19).or(defaults.probe_limit),
            },
            probe_successes: self.count(20).unwrap_or(defaults.probe_successes),
            probe_lease: match self.given(21) {
                Some(f64::INFINITY) => Lease::Never,
                _ => self.length(21).map_or(Lease::Default, Lease::Ms),
            },
            shadow: self.given(22) == Some(1.0),
        })
    }

    fn given(&self, slot: usize) -> Option<f64> {
        self.0.get(slot).copied().filter(|number| !number.is_nan())
    }

    fn whole(&self, slot: usize) -> u64 {
        let number = self.given(slot).unwrap_or(-1.0);
        let whole = number as u64;
        if whole as f64 == number {
            whole
        } else {
            u64::MAX
        }
    }

    fn length(&self, slot: usize) -> Option<u64> {
        self.given(slot).filter(|number| *number != f64::INFINITY).map(|_| self.whole(slot))
    }

    fn count(&self, slot: usize) -> Option<u32> {
        self.length(slot).map(|whole| whole.min(u32::MAX.into()) as u32)
    }

    fn share(&self, slot: usize, field: Field) -> Result<Share, InvalidPolicy> {
        let part = |slot| self.whole(slot).min(u32::MAX.into()) as u32;
        Share::new(part(slot), part(slot + 1)).ok_or(outside(field, 0, 1))
    }
}

fn outside(field: Field, min: u64, max: u64) -> InvalidPolicy {
    InvalidPolicy { field, problem: Problem::OutOfRange { min, max } }
}

fn slot(field: Field) -> i32 {
    match field {
        Field::WindowKind => 0,
        Field::WindowMs => 1,
        Field::WindowBuckets => 2,
        Field::WindowLast => 3,
        Field::WindowWithinMs => 4,
        Field::FailureRate => 5,
        Field::Failures => 7,
        Field::MinimumCalls => 8,
        Field::SlowMs => 9,
        Field::SlowRate => 10,
        Field::JudgeOn => 12,
        Field::OpenMs => 13,
        Field::Backoff => 14,
        Field::Jitter => 16,
        Field::MaxOpenMs => 18,
        Field::ProbeLimit => 19,
        Field::ProbeSuccesses => 20,
        Field::ProbeLeaseMs => 21,
        Field::Shadow => 22,
    }
}
