//! rasuvaeff: N failures among the last M outcomes, a counter of refusals, forcing, and counts that stay readable while open.

use serde::Deserialize;
use serde_json::json;
use tripcurve::{
    Key, Lease, PermitKind, Policy, PolicyOptions, Rate, Reason, RefusalReason, State, Transition, Verdict, WindowOptions,
};

use crate::circuit::{arrows, at, letter, outcome, Circuit};
use crate::trace::{check, rows, Fenced, Reply, Step, System};

pub struct Rasuvaeff {
    circuit: Circuit,
    /// Successes and failures in the closed window as of its last change; kept while open, shown as 0 while half-open.
    window: (u32, u32),
    /// The last opening or forcing.
    opened_at: Option<u64>,
    lease: PeriodLease,
}

#[derive(Deserialize)]
pub struct RasuvaeffPolicy {
    failures: i64,
    window: i64,
    within_ms: i64,
    cooldown_ms: i64,
    successes: i64,
    probes: i64,
    probe_timeout_ms: Option<i64>,
}

/// `None` where our types cannot say it: a negative number.
fn options(policy: &RasuvaeffPolicy) -> Option<PolicyOptions> {
    Some(PolicyOptions {
        window: WindowOptions::Calls { last: policy.window.try_into().ok()?, within_ms: Some(policy.within_ms.try_into().ok()?) },
        failure_rate: Rate::Off,
        failures: Some(policy.failures.try_into().ok()?),
        open_ms: policy.cooldown_ms.try_into().ok()?,
        probe_limit: Some(policy.probes.try_into().ok()?),
        probe_successes: policy.successes.try_into().ok()?,
        probe_lease: Lease::Ms(policy.probe_timeout_ms.unwrap_or(policy.cooldown_ms).try_into().ok()?),
        ..PolicyOptions::default()
    })
}

impl System for Rasuvaeff {
    type Policy = RasuvaeffPolicy;
    const NAME: &'static str = "rasuvaeff";

    fn start(policy: RasuvaeffPolicy, t0: u64) -> Rasuvaeff {
        let lease = PeriodLease::new(policy.probe_timeout_ms.unwrap_or(policy.cooldown_ms) as u64);
        Rasuvaeff { circuit: Circuit::new(options(&policy).expect("a valid policy"), t0), window: (0, 0), opened_at: None, lease }
    }

    /// The retry time of a saturated half-open is "one lease from now" there, the end of the earliest lease here.
    fn leaves_out(step: &Step, key: &str) -> bool {
        key == "retry" && step.expected["s"][0] == "H"
    }

    fn step(&mut self, step: &Step) -> Reply {
        let mut reply = Reply::default();
        match step.op.as_str() {
            "begin" => self.begin(step, &mut reply),
            "end" => self.end(step, &mut reply),
            "can" => {
                // Theirs asks about the cooldown only, not about free slots.
                let state = self.circuit.snapshot.inspect(&self.circuit.policy, at(step.t)).state;
                reply.set("can", state != State::Open);
            }
            "force" => {
                let to = match step.to.as_str() {
                    "open" => State::Open,
                    "closed" => State::Closed,
                    "half_open" => State::HalfOpen,
                    to => panic!("{to}"),
                };
                self.circuit.verb(|snapshot, policy| snapshot.force(policy, to, None, at(step.t)));
                self.window = (0, 0);
                self.opened_at = Some(step.t);
                self.lease.start(step.t);
            }
            op => panic!("{op}"),
        }
        let moved = self.circuit.take_moved();
        if moved.iter().any(|m| m.to == State::Open) {
            self.opened_at = Some(step.t);
        }
        if !moved.is_empty() {
            reply.set("tr", arrows(&moved, reason));
        }
        let (successes, failures, rejected) = self.shown(step.t);
        if let [moved] = moved[..] {
            reply.set("rec", json!([successes, failures, rejected, moved.at.as_millis()]));
        }
        reply.set("s", json!([letter(self.circuit.snapshot.state()), successes, failures, rejected, self.opened_at]));
        reply
    }
}

impl Rasuvaeff {
    fn begin(&mut self, step: &Step, reply: &mut Reply) {
        let admitted = self.circuit.begin(step.c, step.t);
        if self.circuit.snapshot.state() == State::HalfOpen {
            let limit = self.circuit.policy.options().probe_limit.unwrap_or(u32::MAX);
            if self.circuit.moved().is_some_and(|moved| moved.reason == Reason::OpenElapsed) {
                self.lease.start(step.t);
            }
            if self.lease.take(step.c, limit, step.t) != admitted.is_ok() {
                reply.fenced = Some(Fenced::Lease);
            }
        }
        match admitted {
            Ok(PermitKind::Allowed) => reply.set("adm", "allowed"),
            Ok(PermitKind::Probe) => reply.set("adm", "probe"),
            Err(refusal) => {
                reply.set("adm", "rejected");
                reply.set("retry", refusal.retry_at.map(|at| at.as_millis()));
                if refusal.reason == RefusalReason::ProbesBusy {
                    assert!(refusal.retry_at > Some(at(step.t)), "the earliest live lease ends later");
                }
            }
        }
    }

    fn end(&mut self, step: &Step, reply: &mut Reply) {
        let outcome = outcome(&step.out);
        let before = self.circuit.snapshot.state();
        let settled = self.circuit.end(step.c, outcome, step.t);
        let held_there = self.lease.give_back(step.c);
        if settled.stale {
            reply.fenced = Some(Fenced::Dropped);
            return;
        }
        match before {
            State::Closed if outcome.verdict != Verdict::Ignored => {
                let counts = match settled.transition {
                    Some(opened) => opened.counts,
                    None => self.circuit.snapshot.inspect(&self.circuit.policy, at(step.t)).counts,
                };
                self.window = (counts.calls - counts.failures, counts.failures);
            }
            State::HalfOpen => {
                reply.fenced = (!held_there).then_some(Fenced::Lease);
                if self.circuit.snapshot.state() == State::Closed {
                    self.window = (0, 0);
                }
            }
            State::Closed | State::Open => {}
        }
    }

    fn shown(&self, t: u64) -> (u32, u32, u32) {
        let now = self.circuit.snapshot.inspect(&self.circuit.policy, at(t));
        match self.circuit.snapshot.state() {
            State::HalfOpen => (now.probe_successes, 0, now.rejected),
            State::Closed | State::Open => (self.window.0, self.window.1, now.rejected),
        }
    }
}

/// Their slots: one lease for a whole half-open period, that starts over when no slot is taken. It decides nothing here; it only
/// tells where it and one lease per probe must part.
struct PeriodLease {
    ms: u64,
    since: u64,
    /// The calls that hold a slot.
    taken: Vec<u64>,
}

impl PeriodLease {
    fn new(ms: u64) -> PeriodLease {
        PeriodLease { ms, since: 0, taken: Vec::new() }
    }

    fn start(&mut self, t: u64) {
        self.since = t;
        self.taken.clear();
    }

    fn take(&mut self, c: u64, limit: u32, t: u64) -> bool {
        if self.taken.is_empty() || t >= self.since + self.ms {
            self.start(t);
        }
        let free = self.taken.len() < limit as usize;
        if free {
            self.taken.push(c);
        }
        free
    }

    /// Did it still hold its slot?
    fn give_back(&mut self, c: u64) -> bool {
        let at = self.taken.iter().position(|holder| *holder == c);
        at.is_some_and(|at| {
            self.taken.remove(at);
            true
        })
    }
}

fn reason(moved: &Transition) -> &'static str {
    match (moved.reason, moved.to) {
        (Reason::FailureCount, _) => "failure-threshold-reached",
        (Reason::OpenElapsed, _) => "cooldown-elapsed",
        (Reason::ProbesSucceeded, _) => "probe-succeeded",
        (Reason::ProbeFailed, _) => "probe-failed",
        (Reason::Forced, State::Open) => "forced-open",
        (Reason::Forced, State::Closed) => "forced-closed",
        (Reason::Forced, State::HalfOpen) => "forced-half-open",
        (other, _) => panic!("rasuvaeff has no {other:?}"),
    }
}

#[test]
fn every_fenced_trace_of_rasuvaeff_passes() {
    check::<Rasuvaeff>();
}

/// Ours is looser in one row: `openMs` 0 is due at once, as utopia needs it.
#[test]
fn policies_of_rasuvaeff_are_accepted_and_refused_alike() {
    #[derive(Deserialize)]
    struct Row {
        policy: RasuvaeffPolicy,
        ok: bool,
    }
    for row in rows::<Row>(Rasuvaeff::NAME, "validation") {
        let looser = row.policy.cooldown_ms == 0;
        let ours = options(&row.policy).is_some_and(|mut options| {
            if looser {
                options.probe_lease = Lease::Default; // theirs defaults to the cooldown, and a lease of 0 is refused by both
            }
            Policy::parse(options).is_ok()
        });
        assert_eq!(ours, row.ok || looser, "{:?}", options(&row.policy));
    }
}

/// Theirs is looser in six rows: capitals, `:`, separators anywhere, any length. Nothing is the other way.
#[test]
fn every_key_is_a_name_of_rasuvaeff() {
    #[derive(Deserialize)]
    struct Row {
        key: String,
        ok: bool,
    }
    let mut looser = Vec::new();
    for Row { key, ok } in rows::<Row>(Rasuvaeff::NAME, "keys") {
        let ours = Key::parse(&key).is_ok();
        assert!(ok || !ours, "{key}");
        if ok && !ours {
            looser.push(if key.len() > Key::MAX_BYTES { "(long)".to_owned() } else { key });
        }
    }
    assert_eq!(looser, ["A.b_c-d:e", "..", "-", ":", "UPPER", "(long)"]);
}

#[test]
fn the_lease_of_a_period_frees_all_slots_at_once_and_starts_over_when_none_is_taken() {
    let mut lease = PeriodLease::new(1_000);
    lease.start(0);
    assert!(lease.take(1, 2, 0) && lease.take(2, 2, 900) && !lease.take(3, 2, 999)); // both slots until 1000
    assert!(lease.take(4, 2, 1_000) && lease.take(5, 2, 1_000) && !lease.take(6, 2, 1_000)); // both free again
    assert!(!lease.give_back(2) && lease.give_back(4) && lease.give_back(5));
    assert!(lease.take(7, 1, 1_900) && !lease.take(8, 1, 2_899) && lease.take(8, 1, 2_900));
    // started over at 1900
}
