//! fenced: our own rules. The adapter only translates names.

use serde::Deserialize;
use serde_json::json;
use tripcurve::{
    CallOutcome, Held, JudgeOn, Lease, PermitKind, PolicyOptions, Rate, Reason, RefusalReason, Share, State, Transition,
    WindowOptions,
};

use crate::circuit::{at, letter, outcome, share, Circuit};
use crate::trace::{check, Fenced as Fence, Reply, Step, System};

pub struct Fenced {
    circuit: Circuit,
    /// One of the five states: a transition tells the state but not the hold.
    stands: &'static str,
}

#[derive(Deserialize)]
pub struct FencedPolicy {
    window: FencedWindow,
    trip: Trip,
    min: u32,
    slow_ms: Option<u64>,
    slow_rate: Option<[u32; 2]>,
    judge_on: String,
    open_ms: u64,
    probes: Option<u32>,
    successes: u32,
    lease_ms: Option<u64>,
}

#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum FencedWindow {
    Fixed { span_ms: u64 },
    Time { span_ms: u64, bucket_ms: u64 },
    Calls { last: u32, within_ms: Option<u64> },
    Consecutive { within_ms: Option<u64> },
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Trip {
    Rate([u32; 2]),
    Count(u32),
}

fn options(policy: &FencedPolicy) -> PolicyOptions {
    let (failure_rate, failures) = match policy.trip {
        Trip::Rate([numerator, denominator]) => (Rate::Share(share(numerator, denominator)), None),
        Trip::Count(count) => (Rate::Off, Some(count)),
    };
    PolicyOptions {
        window: match policy.window {
            FencedWindow::Fixed { span_ms } => WindowOptions::Fixed { ms: span_ms },
            FencedWindow::Time { span_ms, bucket_ms } => {
                WindowOptions::Time { ms: span_ms, buckets: Some((span_ms / bucket_ms) as u32) }
            }
            FencedWindow::Calls { last, within_ms } => WindowOptions::Calls { last, within_ms },
            FencedWindow::Consecutive { within_ms } => WindowOptions::Consecutive { within_ms },
        },
        failure_rate,
        failures,
        minimum_calls: Some(policy.min),
        slow_ms: policy.slow_ms,
        slow_rate: policy.slow_rate.map_or(Share::ALL, |[numerator, denominator]| share(numerator, denominator)),
        judge_on: if policy.judge_on == "any" { JudgeOn::Any } else { JudgeOn::Failure },
        open_ms: policy.open_ms,
        probe_limit: policy.probes,
        probe_successes: policy.successes,
        probe_lease: policy.lease_ms.map_or(Lease::Never, Lease::Ms),
        ..PolicyOptions::default()
    }
}

impl System for Fenced {
    type Policy = FencedPolicy;
    const NAME: &'static str = "fenced";

    fn start(policy: FencedPolicy, t0: u64) -> Fenced {
        Fenced { circuit: Circuit::new(options(&policy), t0), stands: "C" }
    }

    fn step(&mut self, step: &Step) -> Reply {
        let mut reply = Reply::default();
        let now = at(step.t);
        match step.op.as_str() {
            "begin" => match self.circuit.begin(step.c, step.t) {
                Ok(PermitKind::Allowed) => reply.set("adm", "allowed"),
                Ok(PermitKind::Probe) => reply.set("adm", "probe"),
                Err(refusal) => {
                    reply.set("adm", "rejected");
                    let why = match refusal.reason {
                        RefusalReason::Open => "circuit_open",
                        RefusalReason::HeldOpen => "forced_open",
                        RefusalReason::ProbesBusy => "probe_capacity",
                    };
                    reply.set("why", why);
                    reply.set("retry", refusal.retry_at.map(|at| at.as_millis()));
                }
            },
            "end" => {
                let outcome = CallOutcome { duration_ms: step.ms, ..outcome(&step.out) };
                if self.circuit.end(step.c, outcome, step.t).stale {
                    reply.fenced = Some(Fence::Dropped);
                }
            }
            "force_open" => self.circuit.verb(|snapshot, policy| snapshot.hold(policy, Held::Open, now)),
            "force_closed" => self.circuit.verb(|snapshot, policy| snapshot.hold(policy, Held::Closed, now)),
            "release" => self.circuit.verb(|snapshot, policy| snapshot.release(policy, now)),
            "reset" => self.circuit.verb(|snapshot, policy| snapshot.reset(policy, now)),
            op => panic!("{op}"),
        }
        let mut arrows = Vec::new();
        for moved in self.circuit.take_moved() {
            let to = stands(moved.to, (moved.reason == Reason::Held).then_some(moved.to));
            arrows.push(json!([self.stands, to, reason(&moved)]));
            self.stands = to;
        }
        if !arrows.is_empty() {
            reply.set("tr", arrows);
        }
        let snapshot = &self.circuit.snapshot;
        let state = stands(snapshot.state(), snapshot.held().map(|_| snapshot.state()));
        assert_eq!(state, self.stands, "every move is reported");
        let now = snapshot.inspect(&self.circuit.policy, now);
        // A due open circuit reads half-open since the instant it became due; the trace shows the state as it was entered.
        let since = if now.state == snapshot.state() { now.since } else { snapshot.window_since() };
        let counts = now.counts;
        reply.set(
            "s",
            json!([
                state,
                counts.calls,
                counts.failures,
                counts.slow,
                now.probe_successes,
                now.probes_in_flight,
                since.as_millis()
            ]),
        );
        reply
    }
}

fn stands(state: State, held: Option<State>) -> &'static str {
    match held {
        Some(State::Open) => "FO",
        Some(State::Closed) => "FC",
        Some(State::HalfOpen) => panic!("nothing is held half-open"),
        None => letter(state),
    }
}

fn reason(moved: &Transition) -> &'static str {
    match moved.reason {
        Reason::FailureRate => "failure_rate",
        Reason::FailureCount => "failure_count",
        Reason::SlowRate => "slow_rate",
        Reason::OpenElapsed => "open_elapsed",
        Reason::ProbeFailed => "probe_failed",
        Reason::ProbeSlow => "probe_slow",
        Reason::ProbesSucceeded => "probe_succeeded",
        Reason::Held if moved.to == State::Open => "forced_open",
        Reason::Held => "forced_closed",
        Reason::Released => "released",
        Reason::Reset => "reset",
        other => panic!("no trace has {other:?}"),
    }
}

#[test]
fn every_trace_of_the_fenced_rules_passes() {
    check::<Fenced>();
}
