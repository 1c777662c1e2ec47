//! The core and the model side by side: the same operations at the same instants, and the same answers.

use tripcurve::{Admission, Held, Inspection, Permit, PermitKind, Policy, Snapshot, State, Time, Transition};

use crate::given::{Op, Pace, T0};
use crate::model::{Model, Phase, Said};

pub struct Pair {
    pub policy: Policy,
    pub core: Snapshot,
    pub model: Model,
    /// Every permit ever given; settled ones stay, to be given back again.
    pub permits: Vec<Permit>,
    /// What the clock shows; it may lie behind what was seen.
    pub now: u64,
}

pub fn at(t: u64) -> Time {
    Time::from_millis(t)
}

impl Pair {
    pub fn new(policy: Policy, seed: u32) -> Pair {
        let model = Model::new(policy.options(), T0);
        Pair { policy, core: Snapshot::closed(&policy, seed, at(T0)), model, permits: Vec::new(), now: T0 }
    }

    pub fn run(&mut self, script: &[(Pace, Op)]) {
        for (pace, op) in script {
            self.pass(*pace);
            self.step(*op);
        }
    }

    pub fn pass(&mut self, pace: Pace) {
        let seen = self.model.seen;
        self.now = match pace {
            Pace::Stays => seen,
            Pace::Ahead(ms) => seen + ms,
            Pace::Around(which, off) => {
                let ahead: Vec<u64> = self.model.boundaries().into_iter().filter(|end| *end >= seen).collect();
                match ahead.get(which.checked_rem(ahead.len()).unwrap_or(0)) {
                    Some(end) => seen.max(end.saturating_add_signed(off)),
                    None => seen,
                }
            }
            Pace::Back(ms) => seen - ms.min(self.model.max_open_ms()),
        };
    }

    pub fn step(&mut self, op: Op) {
        let (policy, now) = (self.policy, self.now);
        match op {
            Op::Begin => {
                let id = self.permits.len() as u32;
                let (admission, transition) = self.model.admit(id, now);
                let admitted = self.core.admit(&policy, id, at(now));
                assert_eq!((admitted.admission, admitted.transition), (admission, transition));
                if let Admission::Admitted(permit) = admission {
                    self.permits.push(permit);
                }
                self.probes_stay_within_their_limit();
            }
            Op::End(which, outcome) => {
                let Some(permit) = self.permits.get(which.checked_rem(self.permits.len()).unwrap_or(0)).copied() else { return };
                let before = self.core.clone();
                let settled = self.core.settle(&policy, permit, outcome, at(now));
                match self.model.settle(permit, outcome, now) {
                    None => {
                        assert!(settled.stale && !settled.counted && settled.transition.is_none());
                        assert_eq!(texts_at(&policy, &self.core, self.model.seen), texts_at(&policy, &before, self.model.seen));
                    }
                    Some(said) => {
                        assert!(!settled.stale);
                        assert_eq!(settled.counted, outcome.verdict != tripcurve::Verdict::Ignored);
                        self.same(settled.transition, said);
                    }
                }
            }
            Op::Record(outcome) => {
                let recorded = self.core.record(&policy, outcome, at(now));
                let (counted, due, said) = self.model.record(outcome, now);
                assert_eq!((recorded.counted, recorded.transitions[0]), (counted, due));
                self.same(recorded.transitions[1], said);
            }
            Op::At => assert_eq!(self.core.at(&policy, at(now)), self.model.at(now)),
            Op::Force(state, until) => {
                let moved = self.core.force(&policy, state, until.map(at), at(now));
                let said = self.model.force(state, until, now);
                self.same(moved, said);
            }
            Op::Hold(held) => assert_eq!(self.core.hold(&policy, held, at(now)), self.model.hold(held, now)),
            Op::Release => assert_eq!(self.core.release(&policy, at(now)), self.model.release(now)),
            Op::Reset => assert_eq!(self.core.reset(&policy, at(now)), self.model.reset(now)),
            Op::Reload => {
                let text = self.core.encode();
                assert!(text.len() <= Snapshot::MAX_TEXT_BYTES && text.is_ascii());
                let (again, problem) = Snapshot::decode(&policy, &text, Snapshot::closed(&policy, 0, at(0)));
                assert_eq!((again.encode(), problem), (text, None));
                self.core = again;
                self.now = self.model.seen; // the text does not hold the last instant
                self.step(Op::At);
            }
        }
        let seen = self.model.seen;
        for then in [self.now, seen, seen + 1, seen + 1_000] {
            let inspection = Inspection { next_change_at: None, ..self.core.inspect(&policy, at(then)) };
            assert_eq!(inspection, self.model.inspect(then), "at {then}, {seen} seen");
        }
        assert_eq!((self.core.state(), self.core.generation()), (self.model.state(), self.model.generation));
        if self.model.state() == State::Closed {
            assert_eq!(self.core.window_since().as_millis(), self.model.window_since);
        }
    }

    /// The same move; where it opened, the core says until when and the model whether that may be.
    fn same(&mut self, moved: Option<Transition>, said: Said) {
        let mut transition = said.transition;
        if let Some(opened) = said.opened {
            let now = self.core.inspect(&self.policy, at(self.model.seen));
            let until = now.until.unwrap_or(now.since).as_millis(); // one that is due at once reads half-open since then
            assert!((opened.earliest..=opened.latest).contains(&until), "{} <= {until} <= {}", opened.earliest, opened.latest);
            self.model.phase = Phase::Open { until };
            if let Some(transition) = &mut transition {
                transition.until = Some(at(until));
            }
        }
        assert_eq!(moved, transition);
    }

    fn probes_stay_within_their_limit(&self) {
        let running = |permit: &&Permit| {
            let leased = self.model.lease_ms().is_none_or(|ms| self.model.seen < permit.admitted_at.as_millis() + ms);
            permit.kind == PermitKind::Probe
                && permit.generation == self.core.generation()
                && leased
                && self.core.is_probing(permit.id)
        };
        if let Some(limit) = self.policy.options().probe_limit {
            assert!(self.permits.iter().filter(running).count() <= limit as usize);
        }
    }

    /// Ends what only people end.
    pub fn release(&mut self) {
        if self.core.held() == Some(Held::Open) {
            self.step(Op::Release);
        }
    }
}

/// The stored text once what ended by `t` is gone.
fn texts_at(policy: &Policy, circuit: &Snapshot, t: u64) -> String {
    let mut circuit = circuit.clone();
    circuit.at(policy, at(t));
    circuit.encode()
}
