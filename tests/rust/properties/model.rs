//! The rules once more, slow and obvious: every outcome of the episode and every probe is kept in a list, and all is worked out
//! anew each time it is asked for. It shares words and policies with the core, no rule.

use tripcurve::{
    Admission, CallOutcome, Counts, Held, Inspection, JudgeOn, Lease, Permit, PermitKind, PolicyOptions, Rate, Reason, Refusal,
    RefusalReason, State, Time, Transition, Verdict, Why, WindowOptions,
};

pub struct Model {
    /// With every default filled in.
    pub policy: PolicyOptions,
    pub phase: Phase,
    pub held: Option<Held>,
    pub since: u64,
    pub seen: u64,
    pub generation: u32,
    pub level: u32,
    pub rejected: u32,
    pub successes: u32,
    pub probes: Vec<Probe>,
    why: Option<Why>,
    /// Everything counted in this episode, in order.
    outcomes: Vec<Outcome>,
    /// When the fixed window began.
    pub window_since: u64,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Phase {
    Closed,
    Open { until: u64 },
    HalfOpen,
}

#[derive(Clone, Copy)]
pub struct Probe {
    id: u32,
    pub lease_end: Option<u64>,
}

#[derive(Clone, Copy)]
struct Outcome {
    at: u64,
    failed: bool,
    slow: bool,
}

/// What opened the circuit, and what its `until` may be: jitter lies anywhere in between, the model does not guess the hash.
pub struct Opened {
    pub earliest: u64,
    pub latest: u64,
}

#[derive(Default)]
pub struct Said {
    pub transition: Option<Transition>,
    pub opened: Option<Opened>,
}

impl Model {
    pub fn new(policy: PolicyOptions, now: u64) -> Model {
        Model {
            policy,
            phase: Phase::Closed,
            held: None,
            since: now,
            seen: now,
            generation: 0,
            level: 0,
            rejected: 0,
            successes: 0,
            probes: Vec::new(),
            why: None,
            outcomes: Vec::new(),
            window_since: now,
        }
    }

    /// Clocks that go back show the last good instant. (A correction by more than `max_open_ms` has a test of its own.)
    fn clock(&mut self, now: u64) -> u64 {
        self.seen = self.seen.max(now);
        self.seen
    }

    pub fn state(&self) -> State {
        match (self.held, self.phase) {
            (Some(Held::Open), _) | (None, Phase::Open { .. }) => State::Open,
            (Some(Held::Closed), _) | (None, Phase::Closed) => State::Closed,
            (None, Phase::HalfOpen) => State::HalfOpen,
        }
    }

    // -- time --

    fn until(&self) -> Option<u64> {
        match (self.held, self.phase) {
            (None, Phase::Open { until }) => Some(until),
            _ => None,
        }
    }

    fn is_due(&self, now: u64) -> bool {
        self.until().is_some_and(|until| now >= until)
    }

    fn drop_ended_probes(&mut self, now: u64) {
        self.probes.retain(|probe| probe.lease_end.is_none_or(|end| now < end));
    }

    fn restart_window(&mut self, now: u64) {
        if let WindowOptions::Fixed { ms } = self.policy.window {
            if now - self.window_since >= ms {
                self.window_since = now;
            }
        }
    }

    pub fn at(&mut self, now: u64) -> Option<Transition> {
        let now = self.clock(now);
        self.restart_window(now);
        self.drop_ended_probes(now);
        self.become_due(now)
    }

    fn become_due(&mut self, now: u64) -> Option<Transition> {
        if !self.is_due(now) {
            return None;
        }
        self.enter(Phase::HalfOpen, None, Reason::OpenElapsed, Counts::default(), now)
    }

    fn enter(&mut self, phase: Phase, held: Option<Held>, reason: Reason, counts: Counts, now: u64) -> Option<Transition> {
        let before = (self.state(), self.held);
        self.phase = phase;
        self.held = held;
        self.since = now;
        self.window_since = now;
        self.generation += 1;
        self.successes = 0;
        self.probes.clear();
        self.outcomes.clear();
        if reason != Reason::OpenElapsed {
            let next = self.why.map_or(0, |why| why.at.as_millis() + 1); // decisions of one millisecond are told one after the other
            self.why = Some(Why { reason, at: Time::from_millis(now.max(next)), counts });
        }
        let after = (self.state(), self.held);
        (before != after).then(|| Transition {
            from: before.0,
            to: after.0,
            reason,
            at: Time::from_millis(now),
            generation: self.generation,
            counts,
            until: self.until().map(Time::from_millis),
        })
    }

    // -- calls --

    pub fn admit(&mut self, id: u32, now: u64) -> (Admission, Option<Transition>) {
        let now = self.clock(now);
        let transition = self.become_due(now);
        self.drop_ended_probes(now);
        let admitted_at = Time::from_millis(now);
        let refusal = match self.state() {
            State::Closed => {
                self.restart_window(now);
                let permit = Permit { generation: self.generation, kind: PermitKind::Allowed, id: 0, admitted_at };
                return (Admission::Admitted(permit), transition);
            }
            State::HalfOpen if self.policy.probe_limit.is_none_or(|limit| self.probes.len() < limit as usize) => {
                self.probes.push(Probe { id, lease_end: self.lease_ms().map(|ms| now + ms) });
                let permit = Permit { generation: self.generation, kind: PermitKind::Probe, id, admitted_at };
                return (Admission::Admitted(permit), transition);
            }
            State::HalfOpen => {
                let earliest = self.probes.iter().filter_map(|probe| probe.lease_end).min();
                Refusal { reason: RefusalReason::ProbesBusy, retry_at: earliest.map(Time::from_millis) }
            }
            State::Open if self.held.is_some() => Refusal { reason: RefusalReason::HeldOpen, retry_at: None },
            State::Open => Refusal { reason: RefusalReason::Open, retry_at: self.until().map(Time::from_millis) },
        };
        self.rejected += 1;
        (if self.policy.shadow { Admission::Shadowed(refusal) } else { Admission::Refused(refusal) }, transition)
    }

    /// `None`: stale.
    pub fn settle(&mut self, permit: Permit, outcome: CallOutcome, now: u64) -> Option<Said> {
        let now = self.clock(now);
        if permit.generation != self.generation {
            return None;
        }
        match permit.kind {
            PermitKind::Allowed => Some(self.count(outcome, now)),
            PermitKind::Probe => {
                self.drop_ended_probes(now);
                let at = self.probes.iter().position(|probe| probe.id == permit.id)?;
                self.probes.remove(at);
                Some(self.judge_probe(outcome, now))
            }
        }
    }

    /// Without a permit: whether it counted, the move by time, and what it did.
    pub fn record(&mut self, outcome: CallOutcome, now: u64) -> (bool, Option<Transition>, Said) {
        let due = self.at(now);
        let now = self.seen;
        let counted = outcome.verdict != Verdict::Ignored;
        match self.state() {
            State::Closed => (counted, due, self.count(outcome, now)),
            State::HalfOpen => (counted, due, self.judge_probe(outcome, now)),
            State::Open => (false, due, Said::default()),
        }
    }

    fn is_slow(&self, outcome: CallOutcome) -> bool {
        self.policy.slow_ms.is_some_and(|slow| outcome.duration_ms.is_some_and(|took| took > slow))
    }

    fn count(&mut self, outcome: CallOutcome, now: u64) -> Said {
        if outcome.verdict == Verdict::Ignored {
            return Said::default();
        }
        let (failed, slow) = (outcome.verdict == Verdict::Failure, self.is_slow(outcome));
        self.restart_window(now);
        self.outcomes.push(Outcome { at: now, failed, slow });
        if self.held.is_some() || !(failed || slow || self.policy.judge_on == JudgeOn::Any) {
            return Said::default();
        }
        let counts = self.counts(now);
        let Some(reason) = self.verdict(counts) else { return Said::default() };
        if now - self.since >= self.policy.open_ms {
            self.level = 0;
        }
        self.rejected = 0;
        self.open(reason, counts, outcome, now)
    }

    fn judge_probe(&mut self, outcome: CallOutcome, now: u64) -> Said {
        if outcome.verdict == Verdict::Ignored {
            return Said::default();
        }
        let (failed, slow) = (outcome.verdict == Verdict::Failure, self.is_slow(outcome));
        let counts = Counts { calls: self.successes + 1, failures: failed.into(), slow: slow.into() };
        if failed || slow {
            self.level += 1;
            return self.open(if failed { Reason::ProbeFailed } else { Reason::ProbeSlow }, counts, outcome, now);
        }
        self.successes += 1;
        if self.successes < self.policy.probe_successes {
            return Said::default();
        }
        self.rejected = 0;
        Said { transition: self.enter(Phase::Closed, None, Reason::ProbesSucceeded, counts, now), opened: None }
    }

    fn open(&mut self, reason: Reason, counts: Counts, outcome: CallOutcome, now: u64) -> Said {
        let mut opened = self.open_time(now);
        if let Some(asked) = outcome.retry_at {
            let asked = asked.as_millis();
            opened = Opened { earliest: opened.earliest.max(asked), latest: opened.latest.max(asked) };
        }
        let cap = now + self.max_open_ms();
        let opened = Opened { earliest: opened.earliest.min(cap), latest: opened.latest.min(cap) };
        let transition = self.enter(Phase::Open { until: opened.earliest }, None, reason, counts, now);
        Said { transition, opened: Some(opened) }
    }

    /// The open time multiplied once per level, whole milliseconds each time; jitter may add up to its share.
    fn open_time(&self, now: u64) -> Opened {
        let cap = u128::from(self.max_open_ms());
        let mut ms = u128::from(self.policy.open_ms);
        for _ in 0..self.level {
            let (numerator, denominator) = (self.policy.backoff.numerator(), self.policy.backoff.denominator());
            ms = (ms * u128::from(numerator) / u128::from(denominator)).min(cap);
        }
        let share = self.policy.jitter.map_or((0, 1), |share| (share.numerator(), share.denominator()));
        let most = ms + ms * u128::from(share.0) / u128::from(share.1);
        Opened { earliest: now + ms.min(cap) as u64, latest: now + most.min(cap) as u64 }
    }

    // -- the window --

    pub fn counts(&self, now: u64) -> Counts {
        let young = |within_ms: Option<u64>, entry: &&Outcome| within_ms.is_none_or(|ms| now - entry.at <= ms);
        let entries: Vec<&Outcome> = match self.policy.window {
            WindowOptions::Fixed { ms } => {
                let over = now - self.window_since >= ms;
                self.outcomes.iter().filter(|entry| !over && entry.at >= self.window_since).collect()
            }
            WindowOptions::Time { ms, buckets } => {
                let buckets = u64::from(buckets.unwrap());
                let bucket_of = |t: u64| t / (ms / buckets);
                self.outcomes.iter().filter(|entry| bucket_of(entry.at) + buckets > bucket_of(now)).collect()
            }
            WindowOptions::Calls { last, within_ms } => {
                self.outcomes.iter().rev().take(last as usize).filter(|entry| young(within_ms, entry)).collect()
            }
            WindowOptions::Consecutive { within_ms } => {
                // More failures than a rule can ask for are not remembered; they only gather while held closed.
                let enough = self.policy.failures.unwrap_or(1).max(self.policy.minimum_calls.unwrap());
                let failures = self.outcomes.iter().rev().take_while(|entry| entry.failed);
                failures.take(enough as usize).filter(|entry| young(within_ms, entry)).collect()
            }
        };
        let number = |which: fn(&Outcome) -> bool| entries.iter().filter(|entry| which(entry)).count() as u32;
        Counts { calls: entries.len() as u32, failures: number(|entry| entry.failed), slow: number(|entry| entry.slow) }
    }

    fn verdict(&self, counts: Counts) -> Option<Reason> {
        let policy = &self.policy;
        let enough = counts.calls >= policy.minimum_calls.unwrap();
        let at_least = |part: u32, share: tripcurve::Share| {
            u128::from(part) * u128::from(share.denominator()) >= u128::from(counts.calls) * u128::from(share.numerator())
        };
        if policy.failures.is_some_and(|failures| counts.failures >= failures) {
            return Some(Reason::FailureCount);
        }
        if matches!(policy.failure_rate, Rate::Share(rate) if enough && at_least(counts.failures, rate)) {
            return Some(Reason::FailureRate);
        }
        if policy.slow_ms.is_some() && enough && at_least(counts.slow, policy.slow_rate) {
            return Some(Reason::SlowRate);
        }
        None
    }

    // -- by hand --

    pub fn force(&mut self, state: State, until: Option<u64>, now: u64) -> Said {
        let now = self.clock(now);
        (self.level, self.rejected) = (0, 0);
        let mut opened = None;
        let phase = match state {
            State::Closed => Phase::Closed,
            State::HalfOpen => Phase::HalfOpen,
            State::Open => {
                let cap = now + self.max_open_ms();
                let range = until.map_or(self.open_time(now), |until| Opened { earliest: until.min(cap), latest: until.min(cap) });
                let earliest = range.earliest;
                opened = Some(range);
                Phase::Open { until: earliest }
            }
        };
        Said { transition: self.enter(phase, None, Reason::Forced, Counts::default(), now), opened }
    }

    pub fn hold(&mut self, held: Held, now: u64) -> Option<Transition> {
        self.by_hand(Some(held), Reason::Held, now)
    }

    pub fn release(&mut self, now: u64) -> Option<Transition> {
        self.clock(now);
        self.held?;
        self.by_hand(None, Reason::Released, now)
    }

    pub fn reset(&mut self, now: u64) -> Option<Transition> {
        self.by_hand(None, Reason::Reset, now)
    }

    fn by_hand(&mut self, held: Option<Held>, reason: Reason, now: u64) -> Option<Transition> {
        let now = self.clock(now);
        (self.level, self.rejected) = (0, 0);
        self.enter(Phase::Closed, held, reason, Counts::default(), now)
    }

    // -- reading --

    /// `next_change_at` is left to a property of its own.
    pub fn inspect(&self, now: u64) -> Inspection {
        let now = now.max(self.seen);
        let due = self.is_due(now);
        let state = if due { State::HalfOpen } else { self.state() };
        let in_flight = self.probes.iter().filter(|probe| probe.lease_end.is_none_or(|end| now < end)).count() as u32;
        Inspection {
            state,
            held: self.held,
            admits: match state {
                State::Closed => true,
                State::Open => self.policy.shadow,
                State::HalfOpen => self.policy.shadow || self.policy.probe_limit.is_none_or(|limit| in_flight < limit),
            },
            since: Time::from_millis(self.until().filter(|_| due).unwrap_or(self.since)),
            until: self.until().filter(|_| !due).map(Time::from_millis),
            counts: if state == State::Closed { self.counts(now) } else { Counts::default() },
            probes_in_flight: in_flight,
            probe_successes: self.successes,
            rejected: self.rejected,
            generation: self.generation,
            next_change_at: None,
            why: self.why,
        }
    }

    pub fn lease_ms(&self) -> Option<u64> {
        match self.policy.probe_lease {
            Lease::Ms(ms) => Some(ms),
            Lease::Never => None,
            Lease::Default => unreachable!("filled in"),
        }
    }

    pub fn max_open_ms(&self) -> u64 {
        self.policy.max_open_ms.unwrap()
    }

    /// Instants at which time alone changes something, for steps that land around them.
    pub fn boundaries(&self) -> Vec<u64> {
        let mut all: Vec<u64> = self.until().into_iter().chain(self.probes.iter().filter_map(|probe| probe.lease_end)).collect();
        all.push(self.since + self.policy.open_ms);
        match self.policy.window {
            WindowOptions::Fixed { ms } => all.push(self.window_since + ms),
            WindowOptions::Time { ms, buckets } => {
                let width = ms / u64::from(buckets.unwrap());
                all.extend([width, ms].map(|ahead| (self.seen / width) * width + ahead));
            }
            WindowOptions::Calls { within_ms, .. } | WindowOptions::Consecutive { within_ms } => {
                all.extend(within_ms.into_iter().flat_map(|ms| self.outcomes.iter().map(move |entry| entry.at + ms)));
            }
        }
        all
    }
}
