//! What all adapters share: one circuit, the permits of its calls by number, and the transitions of the step at hand.

use std::collections::HashMap;

use serde_json::{json, Value};
use tripcurve::{
    Admission, CallOutcome, Permit, PermitKind, Policy, PolicyOptions, Refusal, Settled, Share, Snapshot, State, Time, Transition,
};

pub struct Circuit {
    pub policy: Policy,
    pub snapshot: Snapshot,
    permits: HashMap<u64, Permit>,
    /// Transitions since they were last taken.
    moved: Vec<Transition>,
}

impl Circuit {
    pub fn new(options: PolicyOptions, t0: u64) -> Circuit {
        let policy = Policy::parse(options).unwrap_or_else(|error| panic!("{error}: {options:?}"));
        Circuit { policy, snapshot: Snapshot::closed(&policy, 1, at(t0)), permits: HashMap::new(), moved: Vec::new() }
    }

    /// Asks for admission of call `c`.
    pub fn begin(&mut self, c: u64, t: u64) -> Result<PermitKind, Refusal> {
        let admitted = self.snapshot.admit(&self.policy, c as u32, at(t));
        self.moved.extend(admitted.transition);
        match admitted.admission {
            Admission::Admitted(permit) => {
                self.permits.insert(c, permit);
                Ok(permit.kind)
            }
            Admission::Refused(refusal) => Err(refusal),
            Admission::Shadowed(_) => unreachable!("no system has a shadow mode"),
        }
    }

    pub fn end(&mut self, c: u64, outcome: CallOutcome, t: u64) -> Settled {
        let permit = self.permits.remove(&c).expect("the call was admitted");
        let settled = self.snapshot.settle(&self.policy, permit, outcome, at(t));
        self.moved.extend(settled.transition);
        settled
    }

    /// Runs a verb that gives transitions, and keeps them.
    pub fn verb<M: IntoIterator<Item = Transition>>(&mut self, verb: impl FnOnce(&mut Snapshot, &Policy) -> M) {
        let moved = verb(&mut self.snapshot, &self.policy);
        self.moved.extend(moved);
    }

    /// The transition of the step at hand, if there was one.
    pub fn moved(&self) -> Option<Transition> {
        self.moved.first().copied()
    }

    pub fn take_moved(&mut self) -> Vec<Transition> {
        std::mem::take(&mut self.moved)
    }
}

pub fn at(t: u64) -> Time {
    Time::from_millis(t)
}

pub fn share(numerator: u32, denominator: u32) -> Share {
    Share::new(numerator, denominator).unwrap_or_else(|| panic!("{numerator}/{denominator} is no share"))
}

pub fn outcome(name: &str) -> CallOutcome {
    match name {
        "success" => CallOutcome::success(),
        "failure" => CallOutcome::failure(),
        "ignored" | "neutral" => CallOutcome::ignored(),
        _ => panic!("no outcome is called {name}"),
    }
}

pub fn letter(state: State) -> &'static str {
    match state {
        State::Closed => "C",
        State::Open => "O",
        State::HalfOpen => "H",
    }
}

/// `tr`: `[from, to, reason]` of each.
pub fn arrows(moved: &[Transition], reason: impl Fn(&Transition) -> &'static str) -> Value {
    moved.iter().map(|move_| json!([letter(move_.from), letter(move_.to), reason(move_)])).collect()
}
