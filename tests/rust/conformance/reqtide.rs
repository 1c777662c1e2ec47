//! reqtide: fenced permits, exact ratios over the last n calls or over buckets, probes with a lease each.

use serde::Deserialize;
use serde_json::json;
use tripcurve::{JudgeOn, Lease, PermitKind, Policy, PolicyOptions, Rate, Reason, RefusalReason, Share, State, WindowOptions};

use crate::circuit::{arrows, at, letter, outcome, Circuit};
use crate::trace::{check, rows, Reply, Step, System};

pub struct Reqtide {
    circuit: Circuit,
    /// reqtide shows its last opening for ever; ours shows when the present state began.
    opened_at: Option<u64>,
}

#[derive(Deserialize)]
pub struct ReqtidePolicy {
    window: ReqtideWindow,
    min: u32,
    ratio: [u32; 2],
    open_ms: u64,
    capacity: u32,
    successes: u32,
    lease_ms: u64,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ReqtideWindow {
    Calls { last: u32 },
    Time { total_ms: u64, bucket_ms: u64 },
}

/// `None` where our types cannot say it: a ratio of nothing or of more than everything, buckets that do not fit the window.
fn options(policy: &ReqtidePolicy) -> Option<PolicyOptions> {
    let [numerator, denominator] = policy.ratio;
    Some(PolicyOptions {
        window: match policy.window {
            ReqtideWindow::Calls { last } => WindowOptions::Calls { last, within_ms: None },
            ReqtideWindow::Time { total_ms, bucket_ms } => {
                let whole = total_ms.checked_rem(bucket_ms)? == 0;
                WindowOptions::Time { ms: total_ms, buckets: Some((total_ms / bucket_ms) as u32).filter(|_| whole)?.into() }
            }
        },
        failure_rate: Rate::Share(Share::new(numerator, denominator)?),
        minimum_calls: Some(policy.min),
        judge_on: JudgeOn::Any,
        open_ms: policy.open_ms,
        probe_limit: Some(policy.capacity),
        probe_successes: policy.successes,
        probe_lease: Lease::Ms(policy.lease_ms),
        ..PolicyOptions::default()
    })
}

impl System for Reqtide {
    type Policy = ReqtidePolicy;
    const NAME: &'static str = "reqtide";

    fn start(policy: ReqtidePolicy, t0: u64) -> Reqtide {
        Reqtide { circuit: Circuit::new(options(&policy).expect("a valid policy"), t0), opened_at: None }
    }

    fn step(&mut self, step: &Step) -> Reply {
        let mut reply = Reply::default();
        match step.op.as_str() {
            "begin" => match self.circuit.begin(step.c, step.t) {
                Ok(PermitKind::Allowed) => reply.set("adm", "allowed"),
                Ok(PermitKind::Probe) => reply.set("adm", "probe"),
                Err(refusal) => {
                    reply.set("adm", "rejected");
                    let why = match refusal.reason {
                        RefusalReason::Open | RefusalReason::HeldOpen => "circuit_open",
                        RefusalReason::ProbesBusy => "circuit_probe_capacity_exhausted",
                    };
                    reply.set("why", why);
                }
            },
            "end" => {
                let settled = self.circuit.end(step.c, outcome(&step.out), step.t);
                reply.set("eff", if settled.counted { "counted" } else { "ignored" });
            }
            op => panic!("{op}"),
        }
        let moved = self.circuit.take_moved();
        if let Some(opened) = moved.iter().find(|m| m.to == State::Open) {
            self.opened_at = Some(opened.at.as_millis());
        }
        if !moved.is_empty() {
            reply.set("tr", arrows(&moved, |m| reason(m.reason)));
        }
        let snapshot = &self.circuit.snapshot;
        let now = snapshot.inspect(&self.circuit.policy, at(step.t));
        let (samples, failures) = (now.counts.calls, now.counts.failures);
        reply.set(
            "s",
            json!([letter(snapshot.state()), samples, failures, now.probes_in_flight, now.probe_successes, self.opened_at]),
        );
        reply
    }
}

fn reason(reason: Reason) -> &'static str {
    match reason {
        Reason::FailureRate => "threshold",
        Reason::OpenElapsed => "open_elapsed",
        Reason::ProbeFailed => "probe_failed",
        Reason::ProbesSucceeded => "probes_succeeded",
        other => panic!("reqtide has no {other:?}"),
    }
}

#[test]
fn every_trace_of_reqtide_passes() {
    check::<Reqtide>();
}

/// Ours is looser in one row: `openMs` 0 is due at once, as utopia needs it.
#[test]
fn policies_of_reqtide_are_accepted_and_refused_alike() {
    #[derive(Deserialize)]
    struct Row {
        policy: ReqtidePolicy,
        ok: bool,
    }
    for row in rows::<Row>(Reqtide::NAME, "validation") {
        let looser = row.policy.open_ms == 0;
        let ours = options(&row.policy).is_some_and(|options| Policy::parse(options).is_ok());
        assert_eq!(ours, row.ok || looser, "{:?}", options(&row.policy));
    }
}
