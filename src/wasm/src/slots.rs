//! A policy comes as numbers in slots and is parsed by the core, where every bound is.
//!
//! NaN is "not given": the core's default. Infinity is "none": no limit, no lease, no rate. A number that is not whole becomes one
//! that is out of every range, so that the core names the bound.

use tripcurve::{Factor, Field, JudgeOn, Lease, Policy, PolicyOptions, Problem, Rate, Share, WindowOptions};

/// How many numbers a policy takes; one slot is spare.
pub(crate) const SLOTS: usize = 24;

/// Which slot was refused, and `[problem, min, max]`: 0 out of range, 1 excluded by another option, 2 does not divide `max`, 3 nothing
/// would ever open the circuit.
pub(crate) struct Refused {
    pub(crate) slot: i32,
    pub(crate) why: [f64; 3],
}

/// Parses the policy in the slots.
pub(crate) fn parse(numbers: &[f64; SLOTS]) -> Result<Policy, Refused> {
    let mut slots = Slots { numbers, refused: None };
    let options = slots.options();
    if let Some(refused) = slots.refused {
        return Err(refused);
    }
    Policy::parse(options).map_err(|error| {
        let (problem, min, max) = match error.problem {
            Problem::OutOfRange { min, max } => (0.0, min, max),
            Problem::Excluded => (1.0, 0, 0),
            Problem::MustDivide { ms } => (2.0, 0, ms),
            Problem::NeverOpens => (3.0, 0, 0),
        };
        Refused { slot: slot(error.field), why: [problem, min as f64, max as f64] }
    })
}

/// A reader whose first refusal sticks, so that what reads a slot need not look.
struct Slots<'a> {
    numbers: &'a [f64; SLOTS],
    refused: Option<Refused>,
}

impl Slots<'_> {
    fn options(&mut self) -> PolicyOptions {
        let mut options = PolicyOptions::default();
        let mut within_ms = None;
        self.length(4, &mut within_ms);
        options.window = match self.at(0) {
            0.0 => WindowOptions::Fixed { ms: self.whole(1) },
            2.0 => WindowOptions::Calls { last: self.small(3), within_ms },
            3.0 => WindowOptions::Consecutive { within_ms },
            _ => {
                let mut buckets = None;
                self.count(2, &mut buckets);
                WindowOptions::Time { ms: self.whole(1), buckets }
            }
        };
        if self.at(5) == f64::INFINITY {
            options.failure_rate = Rate::Off;
        } else if self.given(5) {
            options.failure_rate = Rate::Share(self.share(5));
        }
        self.count(7, &mut options.failures);
        self.count(8, &mut options.minimum_calls);
        self.length(9, &mut options.slow_ms);
        if self.given(10) {
            options.slow_rate = self.share(10);
        }
        if self.at(12) == 1.0 {
            options.judge_on = JudgeOn::Any;
        }
        if self.given(13) {
            options.open_ms = self.whole(13);
        }
        if self.given(14) {
            options.backoff = self.factor(14);
        }
        if self.given(16) && self.at(16) != 0.0 {
            options.jitter = Some(self.share(16));
        }
        self.length(18, &mut options.max_open_ms);
        self.count(19, &mut options.probe_limit);
        if self.given(20) {
            options.probe_successes = self.small(20);
        }
        if self.at(21) == f64::INFINITY {
            options.probe_lease = Lease::Never;
        } else if self.given(21) {
            options.probe_lease = Lease::Ms(self.whole(21));
        }
        options.shadow = self.at(22) == 1.0;
        options
    }

    fn at(&self, slot: usize) -> f64 {
        self.numbers.get(slot).copied().unwrap_or(f64::NAN)
    }

    // These are called for every slot; in the place of each call they would be a third of the module.

    #[inline(never)]
    fn given(&self, slot: usize) -> bool {
        !self.at(slot).is_nan()
    }

    #[inline(never)]
    fn whole(&self, slot: usize) -> u64 {
        let number = self.at(slot);
        let whole = number as u64;
        if whole as f64 == number {
            whole
        } else {
            u64::MAX
        }
    }

    #[inline(never)]
    fn small(&self, slot: usize) -> u32 {
        self.whole(slot).min(u32::MAX.into()) as u32
    }

    #[inline(never)]
    fn length(&self, slot: usize, option: &mut Option<u64>) {
        if self.given(slot) {
            *option = Some(self.whole(slot)).filter(|_| self.at(slot) != f64::INFINITY);
        }
    }

    #[inline(never)]
    fn count(&self, slot: usize, option: &mut Option<u32>) {
        if self.given(slot) {
            *option = Some(self.small(slot)).filter(|_| self.at(slot) != f64::INFINITY);
        }
    }

    #[inline(never)]
    fn share(&mut self, slot: usize) -> Share {
        Share::new(self.small(slot), self.small(slot + 1)).unwrap_or_else(|| {
            self.refuse(slot, 0.0, 1.0);
            Share::ALL
        })
    }

    fn factor(&mut self, slot: usize) -> Factor {
        Factor::new(self.whole(slot), self.small(slot + 1)).unwrap_or_else(|| {
            self.refuse(slot, 1.0, 10.0);
            Factor::ONE
        })
    }

    fn refuse(&mut self, slot: usize, min: f64, max: f64) {
        if self.refused.is_none() {
            self.refused = Some(Refused { slot: slot as i32, why: [0.0, min, max] });
        }
    }
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
