//! phil: a fixed window, integer percentages, slow calls; outcomes are recorded without a permit, half-open has no limit.

use serde::Deserialize;
use serde_json::{json, Value};
use tripcurve::{
    CallOutcome, Counts, Key, Lease, Policy, PolicyOptions, Rate, Share, Snapshot, State, StoredProblem, WindowOptions,
};

use crate::circuit::{at, letter, outcome, Circuit};
use crate::trace::{check, rows, Reply, Step, System};

pub struct Phil {
    circuit: Circuit,
}

#[derive(Deserialize)]
pub struct PhilPolicy {
    rate: i64,
    min: i64,
    window_s: i64,
    open_s: i64,
    successes: i64,
    slow_ms: Option<i64>,
    slow_rate: i64,
}

/// `None` where our types cannot even say it: a negative number, a share of nothing or of more than everything.
fn options(policy: &PhilPolicy) -> Option<PolicyOptions> {
    let percent = |value: i64| u32::try_from(value).ok().and_then(Share::percent);
    let seconds = |value: i64| u64::try_from(value).ok().map(|s| s * 1000);
    Some(PolicyOptions {
        window: WindowOptions::Fixed { ms: seconds(policy.window_s)? },
        failure_rate: Rate::Share(percent(policy.rate)?),
        minimum_calls: Some(policy.min.try_into().ok()?),
        slow_ms: match policy.slow_ms {
            Some(ms) => Some(ms.try_into().ok()?),
            None => None,
        },
        slow_rate: percent(policy.slow_rate)?,
        open_ms: seconds(policy.open_s)?,
        probe_limit: None,
        probe_successes: policy.successes.try_into().ok()?,
        probe_lease: Lease::Never,
        ..PolicyOptions::default()
    })
}

impl System for Phil {
    type Policy = PhilPolicy;
    const NAME: &'static str = "phil";

    fn start(policy: PhilPolicy, t0: u64) -> Phil {
        Phil { circuit: Circuit::new(options(&policy).expect("a valid policy"), t0) }
    }

    fn step(&mut self, step: &Step) -> Reply {
        let mut reply = Reply::default();
        match step.op.as_str() {
            "at" => self.circuit.verb(|snapshot, policy| snapshot.at(policy, at(step.t))),
            "rec" => {
                let outcome = CallOutcome { duration_ms: step.ms, ..outcome(&step.out) };
                self.circuit
                    .verb(|snapshot, policy| snapshot.record(policy, outcome, at(step.t)).transitions.into_iter().flatten());
            }
            op => panic!("{op}"),
        }
        let moved = self.circuit.take_moved();
        if !moved.is_empty() {
            reply.set("tr", moved.iter().map(|m| json!([letter(m.from), letter(m.to)])).collect::<Value>());
        }
        let now = self.circuit.snapshot.inspect(&self.circuit.policy, at(step.t));
        let Counts { calls, failures, slow } = now.counts;
        let since = match now.state {
            State::Closed => self.circuit.snapshot.window_since(),
            State::Open | State::HalfOpen => now.since,
        };
        reply.set("ok", now.admits);
        reply.set("s", json!([letter(now.state), calls, failures, slow, now.probe_successes, since.as_millis()]));
        reply
    }
}

#[test]
fn every_trace_of_phil_passes() {
    check::<Phil>();
}

#[derive(Deserialize)]
struct Validation {
    policy: PhilPolicy,
    ok: bool,
}

/// Ours is looser in one row: `openMs` 0 is due at once, as utopia needs it.
#[test]
fn policies_of_phil_are_accepted_and_refused_alike() {
    for row in rows::<Validation>(Phil::NAME, "validation") {
        let looser = row.policy.open_s == 0;
        let ours = options(&row.policy).is_some_and(|options| Policy::parse(options).is_ok());
        assert_eq!(ours, row.ok || looser, "{:?}", options(&row.policy));
    }
}

#[test]
fn keys_of_phil_are_ours() {
    #[derive(Deserialize)]
    struct Row {
        key: String,
        ok: bool,
    }
    for row in rows::<Row>(Phil::NAME, "keys") {
        assert_eq!(Key::parse(&row.key).is_ok(), row.ok, "{:?}", row.key);
    }
}

#[test]
fn the_trip_test_is_phils() {
    #[derive(Deserialize)]
    struct Row {
        policy: PhilPolicy,
        calls: u32,
        failures: u32,
        slow: u32,
        trips: bool,
    }
    for Row { policy, calls, failures, slow, trips } in rows(Phil::NAME, "trips") {
        let policy = Policy::parse(options(&policy).unwrap()).unwrap();
        assert_eq!(
            policy.trips(Counts { calls, failures, slow }).is_some(),
            trips,
            "{failures}, {slow} of {calls} under {policy:?}"
        );
    }
}

/// A negative duration cannot be said at all: ours has no sign.
#[test]
fn durations_are_slow_as_in_phil() {
    #[derive(Deserialize)]
    struct Row {
        ms: Option<i64>,
        slow_ms: Option<u64>,
        ok: bool,
        slow: Option<bool>,
    }
    for Row { ms, slow_ms, ok, slow } in rows(Phil::NAME, "outcomes") {
        let policy = Policy::parse(PolicyOptions { slow_ms, ..PolicyOptions::default() }).unwrap();
        let duration = ms.map(u64::try_from).transpose();
        assert_eq!(duration.is_ok(), ok);
        assert_eq!(duration.ok().map(|ms| policy.is_slow(ms)), slow);
    }
}

#[derive(Deserialize)]
struct Restore {
    state: String,
    calls: i64,
    failures: i64,
    half_open_successes: i64,
    slow: i64,
    s: Value,
}

/// Through the stored text, which has no negative numbers: those are 0 here.
#[test]
fn stored_counters_of_phil_are_clamped_alike() {
    let policy = PolicyOptions {
        window: WindowOptions::Fixed { ms: 60_000 },
        probe_limit: None,
        probe_successes: 10,
        probe_lease: Lease::Never,
        ..PolicyOptions::default()
    };
    let policy = Policy::parse(policy).unwrap();
    let fresh = || Snapshot::closed(&policy, 1, at(0));
    for row in rows::<Restore>(Phil::NAME, "restore") {
        let [calls, failures, slow, successes] =
            [row.calls, row.failures, row.slow, row.half_open_successes].map(|n| u8::try_from(n.max(0)).expect("a small number"));
        // since, generation, seed, level, rejected, verdict, hold: none of them matters here
        let rest = "0;1;1;0;0;1.1;";
        let window = format!("F1aao:0.{}.{}.{}", base36(calls), base36(failures), base36(slow));
        let text = match row.state.as_str() {
            "C" => format!("1;C;{rest};;{window}"),
            "O" => format!("1;O{};{rest};;{window}", base36(35)),
            "H" => format!("1;H0;{rest};{};{window}", base36(successes)),
            state => panic!("{state}"),
        };
        let (restored, problem) = Snapshot::decode(&policy, &text, fresh());
        assert!(matches!(problem, None | Some(StoredProblem::Clamped)), "{problem:?}: {text}");
        let now = restored.inspect(&policy, at(1));
        let Counts { calls, failures, slow } = now.counts;
        assert_eq!(json!([letter(restored.state()), calls, failures, slow, now.probe_successes]), row.s, "{text}");
    }
}

fn base36(value: u8) -> String {
    let digit = |n: u8| char::from_digit(n.into(), 36);
    [(value >= 36).then_some(value / 36), Some(value % 36)].into_iter().flatten().filter_map(digit).collect()
}

#[test]
fn a_state_is_restored_as_it_was_written() {
    let policy = Policy::default();
    for state in [State::Closed, State::Open, State::HalfOpen] {
        let mut circuit = Snapshot::closed(&policy, 1, at(0));
        circuit.force(&policy, state, None, at(5));
        let (again, problem) = Snapshot::decode(&policy, &circuit.encode(), Snapshot::closed(&policy, 1, at(0)));
        assert_eq!((again.state(), problem), (state, None));
    }
}
