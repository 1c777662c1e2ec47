//! The machine: everything that must survive between two calls, and the verbs that move it.
//!
//! One verb per thing that can happen, each a function of policy, snapshot, arguments and `now`. Nothing happens by time alone: a
//! circuit that is due moves when somebody asks. Every new episode raises the generation, which fences the permits of the last one.

use crate::merge::{far_ahead, Hold, Stamp};
use crate::policy::JudgeOn;
use crate::probes::{Fate, Probe, Probing};
use crate::window::Window;
use crate::{
    Admission, CallOutcome, Counts, Held, Inspection, Permit, PermitKind, Policy, Reason, Refusal, RefusalReason, State, Time,
    Transition, Verdict, Why,
};

/// One circuit at one moment: a plain value.
///
/// ```
/// use tripcurve::{Admission, CallOutcome, Policy, PolicyOptions, Snapshot, State, Time};
/// let policy = Policy::parse(PolicyOptions { failures: Some(1), open_ms: 1_000, ..Default::default() })?;
/// let at = Time::from_millis;
///
/// let mut circuit = Snapshot::closed(&policy, 7, at(0));
/// let Admission::Admitted(permit) = circuit.admit(&policy, 1, at(10)).admission else { unreachable!() };
/// let opened = circuit.settle(&policy, permit, CallOutcome::failure(), at(20)).transition.unwrap();
/// assert_eq!((opened.to, opened.until), (State::Open, Some(at(1_020))));
///
/// assert!(matches!(circuit.admit(&policy, 2, at(1_019)).admission, Admission::Refused(_)));
/// let Admission::Admitted(probe) = circuit.admit(&policy, 3, at(1_020)).admission else { unreachable!() };
/// circuit.settle(&policy, probe, CallOutcome::success(), at(1_030));
/// assert_eq!(circuit.inspect(&policy, at(1_030)).state, State::Closed);
/// # Ok::<(), tripcurve::InvalidPolicy>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Snapshot {
    pub(crate) phase: Phase,
    /// Orders verdicts among those who share the circuit.
    pub(crate) stamp: Stamp,
    /// What made the verdict: told, never used.
    pub(crate) why: Option<(Reason, Counts)>,
    /// The operator's override.
    pub(crate) hold: Hold,
    pub(crate) window: Window,
    /// When this episode began.
    pub(crate) since: Time,
    /// The latest instant seen; zero: none yet, so a restored text is still to be fitted to this clock.
    pub(crate) seen: Time,
    pub(crate) generation: u32,
    pub(crate) seed: u32,
    /// Half-open periods in a row that failed, for the backoff.
    pub(crate) level: u32,
    pub(crate) rejected: u32,
}

/// What was decided last, with what lives only in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    Closed,
    Open {
        until: Time,
    },
    /// An open verdict that is due, with the probes in it.
    HalfOpen {
        until: Time,
        probing: Probing,
    },
}

/// What a circuit does, and by whose hand: a move is reported when this changes.
pub(crate) type Standing = (State, Option<Held>);

/// What [`Snapshot::admit`] gives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Admitted {
    /// The answer.
    pub admission: Admission,
    /// Open to half-open, if this call was the one that found the open time over.
    pub transition: Option<Transition>,
}

/// What [`Snapshot::settle`] gives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settled {
    /// Did the outcome count? An ignored or stale one does not.
    pub counted: bool,
    /// The permit was of an earlier generation, or its lease was over: nothing changed.
    pub stale: bool,
    /// The move it caused.
    pub transition: Option<Transition>,
}

/// What [`Snapshot::record`] gives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Recorded {
    /// Did the outcome count?
    pub counted: bool,
    /// In order: the move by time, then the move by the outcome.
    pub transitions: [Option<Transition>; 2],
}

/// Beyond this many failed half-open periods the backoff grows no more; every factor above 1.0035 has reached 32 by then.
pub(crate) const MAX_LEVEL: u32 = 1_000;

impl Snapshot {
    /// A fresh closed circuit. `seed` is 32 random bits, drawn once by the caller: it spreads the jitter and names this participant
    /// among those who share the circuit.
    pub fn closed(policy: &Policy, seed: u32, now: Time) -> Snapshot {
        Snapshot {
            phase: Phase::Closed,
            stamp: Stamp::NONE,
            why: None,
            hold: Hold::NONE,
            window: Window::new(policy, now),
            since: now,
            seen: now,
            generation: 0,
            seed,
            level: 0,
            rejected: 0,
        }
    }

    /// Applies the passage of time, as every other verb does first: an open circuit that is due becomes half-open, a fixed window
    /// that is over starts again, leases that are over end.
    pub fn at(&mut self, policy: &Policy, now: Time) -> Option<Transition> {
        let now = self.clock(policy, now);
        self.window.roll(now);
        if let Phase::HalfOpen { probing, .. } = &mut self.phase {
            probing.drop_ended(now);
        }
        self.become_due(now)
    }

    /// May a call go ahead at `now`? `probe_id` names it should it become a probe: any number not in use by another one.
    // Natively what a closed circuit needs is inlined: a permit that goes through memory costs as much as the rest of the call.
    #[cfg_attr(not(target_family = "wasm"), inline(always))]
    pub fn admit(&mut self, policy: &Policy, probe_id: u32, now: Time) -> Admitted {
        let now = self.clock(policy, now);
        if !self.is_closed() {
            return self.admit_probe(policy, probe_id, now);
        }
        self.window.admitted(now);
        let permit = Permit { generation: self.generation, kind: PermitKind::Allowed, id: 0, admitted_at: now };
        Admitted { admission: Admission::Admitted(permit), transition: None }
    }

    /// Lets a probe into a circuit that is not closed, or refuses.
    #[cold]
    fn admit_probe(&mut self, policy: &Policy, probe_id: u32, now: Time) -> Admitted {
        let transition = self.become_due(now);
        let refusal = match &mut self.phase {
            _ if self.hold.value.is_some() => Refusal { reason: RefusalReason::HeldOpen, retry_at: None },
            Phase::HalfOpen { probing, .. } => {
                probing.drop_ended(now);
                if policy.options.probe_limit.is_none_or(|limit| probing.in_flight() < limit) {
                    probing.insert(Probe { id: probe_id, lease_until: policy.lease_until(now), fate: Fate::InFlight });
                    let permit = Permit { generation: self.generation, kind: PermitKind::Probe, id: probe_id, admitted_at: now };
                    return Admitted { admission: Admission::Admitted(permit), transition };
                }
                Refusal { reason: RefusalReason::ProbesBusy, retry_at: probing.earliest_end() }
            }
            Phase::Closed | Phase::Open { .. } => Refusal { reason: RefusalReason::Open, retry_at: self.until() },
        };
        self.rejected = self.rejected.saturating_add(1);
        let admission = if policy.options.shadow { Admission::Shadowed(refusal) } else { Admission::Refused(refusal) };
        Admitted { admission, transition }
    }

    /// Counts a success of this generation, if that is all there is to do. False: nothing was done; settle it.
    ///
    /// For a host that pays for every value it moves: most calls are such.
    #[inline(always)]
    pub fn count_success(&mut self, policy: &Policy, duration_ms: Option<u64>, now: Time) -> bool {
        let steady = self.is_closed() && now >= self.seen && self.seen > Time::ZERO;
        let plain = steady && policy.options.judge_on == JudgeOn::Failure && !policy.is_slow(duration_ms);
        if plain {
            self.seen = now;
            self.window.count(false, false, now);
        }
        plain
    }

    /// Reports how an admitted call went. A result from an earlier generation, or of a probe whose lease is over, changes nothing.
    #[cfg_attr(not(target_family = "wasm"), inline(always))]
    pub fn settle(&mut self, policy: &Policy, permit: Permit, outcome: CallOutcome, now: Time) -> Settled {
        let now = self.clock_here(policy, now);
        if permit.generation != self.generation || permit.kind != PermitKind::Allowed || !self.is_closed() {
            let probe = (permit.generation == self.generation && permit.kind == PermitKind::Probe).then_some(permit.id);
            return self.settle_probe(policy, probe, outcome, now);
        }
        let counted = outcome.verdict != Verdict::Ignored;
        match self.tally(policy, outcome, now) {
            None => Settled { counted, stale: false, transition: None },
            Some(reason) => Settled { counted, stale: false, transition: self.trip(policy, reason, outcome.retry_at, now) },
        }
    }

    /// [`settle`](Snapshot::settle) on a copy, which is `None` if the outcome is stale: for a host that must store it before it holds.
    pub fn settled(
        &self,
        policy: &Policy,
        permit: Permit,
        outcome: CallOutcome,
        now: Time,
    ) -> Option<(Snapshot, Option<Transition>)> {
        let mut then = self.clone();
        let settled = then.settle(policy, permit, outcome, now);
        (!settled.stale).then_some((then, settled.transition))
    }

    #[cold]
    fn settle_probe(&mut self, policy: &Policy, probe: Option<u32>, outcome: CallOutcome, now: Time) -> Settled {
        if !probe.is_some_and(|id| self.end_probe(id, now)) {
            return Settled { counted: false, stale: true, transition: None };
        }
        let counted = outcome.verdict != Verdict::Ignored;
        Settled { counted, stale: false, transition: self.judge_probe(policy, probe, outcome, now) }
    }

    /// Counts an outcome without a permit, in whatever state the circuit is (phil's API): half-open it is judged like a probe, open it
    /// changes nothing. Prefer [`settle`](Snapshot::settle), which cannot be fooled by a late result.
    pub fn record(&mut self, policy: &Policy, outcome: CallOutcome, now: Time) -> Recorded {
        let due = self.at(policy, now);
        let now = self.seen;
        let counted = outcome.verdict != Verdict::Ignored;
        let (counted, moved) = match self.state() {
            State::Closed => {
                let reason = self.tally(policy, outcome, now);
                (counted, reason.and_then(|reason| self.trip(policy, reason, outcome.retry_at, now)))
            }
            State::HalfOpen => (counted, self.judge_probe(policy, None, outcome, now)),
            State::Open => (false, None),
        };
        Recorded { counted, transitions: [due, moved] }
    }

    /// An ordinary transition by hand: a circuit forced open may be probed after `until`, or after the policy's open time. Ends a hold.
    pub fn force(&mut self, policy: &Policy, state: State, until: Option<Time>, now: Time) -> Option<Transition> {
        let now = self.clock(policy, now);
        self.level = 0;
        let before = self.standing();
        self.phase = match state {
            State::Closed => Phase::Closed,
            State::HalfOpen => Phase::HalfOpen { until: now, probing: Probing::default() },
            State::Open => Phase::Open { until: self.open_until(policy, until, now) },
        };
        self.by_hand(before, None, Reason::Forced, now)
    }

    /// An operator's override that time does not end: `Open` refuses everything, `Closed` lets everything in and counts. Ended by
    /// [`release`](Snapshot::release), [`force`](Snapshot::force) or [`reset`](Snapshot::reset).
    pub fn hold(&mut self, policy: &Policy, held: Held, now: Time) -> Option<Transition> {
        let now = self.clock(policy, now);
        self.close_by_hand(Some(held), Reason::Held, now)
    }

    /// Ends a hold: closed and empty. Does nothing when not held.
    pub fn release(&mut self, policy: &Policy, now: Time) -> Option<Transition> {
        let now = self.clock(policy, now);
        self.held()?;
        self.close_by_hand(None, Reason::Released, now)
    }

    /// Closed and empty, whatever it was.
    pub fn reset(&mut self, policy: &Policy, now: Time) -> Option<Transition> {
        let now = self.clock(policy, now);
        self.close_by_hand(None, Reason::Reset, now)
    }

    /// What holds at `now`. Changes nothing and moves nothing: an open circuit that is due reads half-open.
    pub fn inspect(&self, policy: &Policy, now: Time) -> Inspection {
        let mut then = self.clone();
        let now = then.clock(policy, now);
        let due = then.until().filter(|until| now >= *until);
        then.at(policy, now);
        let state = then.state();
        let mut found = Inspection {
            state,
            held: then.held(),
            admits: policy.options.shadow || state == State::Closed,
            since: due.unwrap_or(then.since),
            until: then.until(),
            counts: Counts::default(),
            probes_in_flight: 0,
            probe_successes: 0,
            rejected: then.rejected,
            generation: self.generation,
            next_change_at: then.until(),
            why: then.why(),
        };
        if state == State::Closed {
            found.counts = then.window.counts();
            found.next_change_at = then.window.next_change_at();
        } else if let (State::HalfOpen, Phase::HalfOpen { probing, .. }) = (state, &then.phase) {
            found.probes_in_flight = probing.in_flight();
            found.probe_successes = probing.successes();
            found.admits |= policy.options.probe_limit.is_none_or(|limit| found.probes_in_flight < limit);
            found.next_change_at = probing.earliest_end();
        }
        found
    }

    /// The state as of the last verb; see [`inspect`](Snapshot::inspect) for what holds at an instant.
    pub fn state(&self) -> State {
        match (self.held(), &self.phase) {
            (Some(Held::Open), _) => State::Open,
            (Some(Held::Closed), _) | (None, Phase::Closed) => State::Closed,
            (None, Phase::Open { .. }) => State::Open,
            (None, Phase::HalfOpen { .. }) => State::HalfOpen,
        }
    }

    /// The operator's override, if any.
    pub fn held(&self) -> Option<Held> {
        self.hold.value
    }

    /// What was decided last, here or by whoever shares the circuit.
    pub fn why(&self) -> Option<Why> {
        self.why.map(|(reason, counts)| Why { reason, at: self.stamp.since, counts })
    }

    /// The current generation.
    pub fn generation(&self) -> u32 {
        self.generation
    }

    /// The latest instant seen.
    pub fn last_seen(&self) -> Time {
        self.seen
    }

    /// The same circuit, for a clock that has been seen at `at`. For a host that keeps snapshots as data of its own: a stored text
    /// does not carry it.
    pub fn with_last_seen(mut self, at: Time) -> Snapshot {
        self.seen = at;
        self
    }

    /// The window's counts as of the last verb.
    pub fn counts(&self) -> Counts {
        self.window.counts()
    }

    /// When a fixed window last began; for other windows, when the episode did.
    pub fn window_since(&self) -> Time {
        match &self.window {
            Window::Fixed(window) => window.start(),
            Window::Time(_) | Window::Calls(_) | Window::Consecutive(_) => self.since,
        }
    }

    /// Is this probe still holding its slot?
    pub fn is_probing(&self, id: u32) -> bool {
        matches!(&self.phase, Phase::HalfOpen { probing, .. } if probing.probes.iter().any(|probe| probe.id == id && probe.fate == Fate::InFlight))
    }

    /// Does the circuit let every call in until a verb other than `admit` changes it? True while closed, unless a fixed window
    /// wants to hear of admissions too.
    #[inline(always)]
    pub fn admits_without_asking(&self) -> bool {
        self.is_closed() && !matches!(self.window, Window::Fixed(_))
    }

    /// The seed, replaced: for a host that draws it only when it is first needed.
    pub fn set_seed(&mut self, seed: u32) {
        self.seed = seed;
    }

    /// The seed.
    pub fn seed(&self) -> u32 {
        self.seed
    }

    #[inline(always)]
    fn is_closed(&self) -> bool {
        match self.phase {
            Phase::Closed => self.held() != Some(Held::Open),
            Phase::Open { .. } | Phase::HalfOpen { .. } => self.held() == Some(Held::Closed),
        }
    }

    pub(crate) fn until(&self) -> Option<Time> {
        match (self.held(), &self.phase) {
            (None, Phase::Open { until }) => Some(*until),
            (Some(_), _) | (None, Phase::Closed | Phase::HalfOpen { .. }) => None,
        }
    }

    fn become_due(&mut self, now: Time) -> Option<Transition> {
        let until = self.until().filter(|until| now >= *until)?;
        let phase = Phase::HalfOpen { until, probing: Probing::default() };
        self.enter(phase, Reason::OpenElapsed, Counts::default(), now)
    }

    /// Counts an outcome in a closed window: why that opens the circuit, if it does.
    #[inline(always)]
    fn tally(&mut self, policy: &Policy, outcome: CallOutcome, now: Time) -> Option<Reason> {
        let failed = match outcome.verdict {
            Verdict::Success => false,
            Verdict::Failure => true,
            Verdict::Ignored => return None,
        };
        let slow = policy.is_slow(outcome.duration_ms);
        self.window.count(failed, slow, now);
        if !(failed || slow || policy.options.judge_on == JudgeOn::Any) || self.held().is_some() {
            return None;
        }
        policy.trips(self.window.counts())
    }

    /// Opens a closed circuit whose window has come to trip by outcomes of others.
    pub(crate) fn judge(&mut self, policy: &Policy, now: Time) -> Option<Transition> {
        let reason = policy.trips(self.window.counts()).filter(|_| self.held().is_none())?;
        self.trip(policy, reason, None, now)
    }

    #[cold]
    fn trip(&mut self, policy: &Policy, reason: Reason, retry_at: Option<Time>, now: Time) -> Option<Transition> {
        if now.since(self.since) >= policy.options.open_ms {
            self.level = 0; // a closed period this long was a recovery
        }
        self.rejected = 0;
        self.open(policy, reason, self.window.counts(), retry_at, now)
    }

    /// Frees the slot of a probe; false when it does not hold one any more.
    fn end_probe(&mut self, id: u32, now: Time) -> bool {
        let Phase::HalfOpen { probing, .. } = &mut self.phase else { return false };
        probing.drop_ended(now);
        probing.free(id)
    }

    /// Judges the outcome of a probe, or one that came without a permit.
    fn judge_probe(&mut self, policy: &Policy, probe: Option<u32>, outcome: CallOutcome, now: Time) -> Option<Transition> {
        let Phase::HalfOpen { probing, .. } = &mut self.phase else { return None };
        let failed = match outcome.verdict {
            Verdict::Success => false,
            Verdict::Failure => true,
            Verdict::Ignored => return None,
        };
        let slow = policy.is_slow(outcome.duration_ms);
        if failed || slow {
            let calls = probing.successes().saturating_add(1);
            let counts = Counts { calls, failures: failed.into(), slow: slow.into() };
            self.level = (self.level + 1).min(MAX_LEVEL);
            let reason = if failed { Reason::ProbeFailed } else { Reason::ProbeSlow };
            return self.open(policy, reason, counts, outcome.retry_at, now);
        }
        probing.succeed(probe);
        self.conclude(policy, now)
    }

    /// Closes a circuit whose probes have succeeded often enough: after one more of them, or after other participants' were met.
    pub fn conclude(&mut self, policy: &Policy, now: Time) -> Option<Transition> {
        let now = self.clock(policy, now);
        let Phase::HalfOpen { probing, .. } = &self.phase else { return None };
        let calls = probing.successes();
        if calls < policy.options.probe_successes || self.held().is_some() {
            return None;
        }
        self.rejected = 0;
        let counts = Counts { calls, ..Counts::default() };
        self.decide(Reason::ProbesSucceeded, counts, now);
        self.enter(Phase::Closed, Reason::ProbesSucceeded, counts, now)
    }

    fn open(&mut self, policy: &Policy, reason: Reason, counts: Counts, retry_at: Option<Time>, now: Time) -> Option<Transition> {
        let ordinary = self.open_until(policy, None, now);
        let until = retry_at.map_or(ordinary, |asked| policy.cap(asked.max(ordinary), now));
        self.decide(reason, counts, now);
        self.enter(Phase::Open { until }, reason, counts, now)
    }

    fn open_until(&self, policy: &Policy, asked: Option<Time>, now: Time) -> Time {
        let until = asked.unwrap_or_else(|| now.after(policy.open_ms_at(self.level, self.seed, self.generation.wrapping_add(1))));
        policy.cap(until, now)
    }

    fn close_by_hand(&mut self, held: Option<Held>, reason: Reason, now: Time) -> Option<Transition> {
        let before = self.standing();
        self.phase = Phase::Closed;
        self.by_hand(before, held, reason, now)
    }

    fn by_hand(&mut self, before: Standing, held: Option<Held>, reason: Reason, now: Time) -> Option<Transition> {
        if before.1 != held || held.is_some() {
            self.hold = self.hold.next(held, self.seed, now);
        }
        self.level = 0;
        self.rejected = 0;
        self.decide(reason, Counts::default(), now);
        self.begin(now);
        self.moved(before, reason, Counts::default(), now)
    }

    /// A new verdict: it beats every one met so far, whatever the clocks say.
    fn decide(&mut self, reason: Reason, counts: Counts, now: Time) {
        self.stamp = self.stamp.next(self.seed, now);
        self.why = Some((reason, counts));
    }

    fn enter(&mut self, phase: Phase, reason: Reason, counts: Counts, now: Time) -> Option<Transition> {
        let before = self.standing();
        self.phase = phase;
        self.begin(now);
        self.moved(before, reason, counts, now)
    }

    /// A new episode of the phase it is in now.
    pub(crate) fn begin(&mut self, now: Time) {
        self.since = now;
        self.generation = self.generation.wrapping_add(1);
        self.window.clear(now);
    }

    /// The move into this episode. There is none to report if what the circuit does has not changed.
    pub(crate) fn moved(&self, before: Standing, reason: Reason, counts: Counts, at: Time) -> Option<Transition> {
        (before != self.standing()).then(|| Transition {
            from: before.0,
            to: self.state(),
            reason,
            at,
            generation: self.generation,
            counts,
            until: self.until(),
        })
    }

    pub(crate) fn standing(&self) -> Standing {
        (self.state(), self.held())
    }

    /// The instant to work with. A clock that goes back changes nothing, unless it is more than `max_open_ms` behind: that is a
    /// correction, and what is remembered moves back with it.
    #[cfg_attr(target_family = "wasm", inline(never))]
    #[cfg_attr(not(target_family = "wasm"), inline(always))]
    pub(crate) fn clock(&mut self, policy: &Policy, now: Time) -> Time {
        self.clock_here(policy, now)
    }

    /// The same for the hot path.
    #[inline(always)]
    fn clock_here(&mut self, policy: &Policy, now: Time) -> Time {
        if now < self.seen || self.seen == Time::ZERO {
            return self.other_clock(policy, now);
        }
        self.seen = now;
        now
    }

    #[cold]
    fn other_clock(&mut self, policy: &Policy, now: Time) -> Time {
        let behind = self.seen.since(now);
        if behind > policy.max_open_ms() || (self.seen == Time::ZERO && now > Time::ZERO) {
            self.fit(policy, -(behind as i64), now);
            self.seen = now;
        }
        self.seen = self.seen.max(now);
        self.seen
    }

    /// The same circuit by another clock, which shows so many milliseconds more, or less if negative. For a host that learns only later
    /// by which clock the circuit is shared: what was decided here before it knew moves with it, what it met of others stays.
    pub fn shift(&mut self, by: i64) {
        let shift = |at: &mut Time| {
            if *at > Time::ZERO {
                *at = at.moved(by).max(Time::from_millis(1));
            }
        };
        shift(&mut self.seen);
        self.window.fit(by, Time::MAX);
        if self.hold.by == self.seed {
            shift(&mut self.hold.at);
        }
        if self.stamp != Stamp::NONE && self.stamp.by != self.seed {
            return;
        }
        shift(&mut self.since);
        shift(&mut self.stamp.since);
        match &mut self.phase {
            Phase::Closed => {}
            Phase::Open { until } => shift(until),
            Phase::HalfOpen { until, probing } => {
                shift(until);
                probing.fit(by, None);
            }
        }
    }

    /// Fits the circuit to this clock, which was corrected by so much: nothing began later than now, nothing lasts longer than it could.
    /// By 0 it is a restored or adopted circuit that meets this clock.
    ///
    /// A stamp from far ahead was not made by a fast clock but by one that is put right now, or by a corrupt text; kept, it would beat
    /// every later verdict.
    #[cold]
    pub(crate) fn fit(&mut self, policy: &Policy, by: i64, now: Time) {
        self.since = self.since.moved(by).min(now);
        self.window.fit(by, now);
        let mut other_verdict = false;
        if far_ahead(self.stamp.since, now) {
            self.stamp = Stamp::NONE;
            self.why = self.why.filter(|_| !matches!(self.phase, Phase::Closed));
            other_verdict = true;
        }
        if far_ahead(self.hold.at, now) {
            // From a text it is not to be trusted; our own does not end because the clock was put right.
            self.hold = if by == 0 { Hold::NONE } else { Hold { at: now, ..self.hold } };
        }
        match &mut self.phase {
            Phase::Closed => return,
            Phase::Open { until } => {
                let end = policy.cap(until.moved(by), now);
                other_verdict |= end != *until; // another end is another verdict
                *until = end;
            }
            Phase::HalfOpen { until, probing } => {
                if by == 0 && *until > policy.cap(*until, now) {
                    other_verdict = true;
                    *until = now;
                }
                probing.fit(by, policy.lease_until(now));
            }
        }
        if other_verdict {
            self.stamp = self.stamp.next(self.seed, now);
        }
    }
}
