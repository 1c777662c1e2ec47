//! fuse: consecutive failures in whole seconds. Every operation reads the stored text and writes it back, and the store forgets.

use serde::Deserialize;
use serde_json::{json, Value};
use tripcurve::{
    CallOutcome, Key, Lease, Policy, PolicyOptions, Rate, Reason, RefusalReason, Snapshot, State, StoredProblem, Transition,
    Verdict, WindowOptions,
};

use crate::circuit::{arrows, at, letter, outcome, Circuit};
use crate::trace::{check, rows, Fenced, Reply, Step, System};

pub struct Fuse {
    /// Its snapshot is read anew from `store` in every step.
    circuit: Circuit,
    store: Store,
    threshold: usize,
    window_s: u64,
    /// Instants of failures in seconds: of the closed window as of its last change, or what led to open.
    failures: Vec<u64>,
    opened_at: Option<u64>,
}

#[derive(Deserialize)]
pub struct FusePolicy {
    threshold: i64,
    window_s: i64,
    open_s: i64,
    probes: i64,
}

/// `None` where our types cannot say it: a negative number.
fn options(policy: &FusePolicy) -> Option<PolicyOptions> {
    let seconds = |value: i64| u64::try_from(value).ok().map(|s| s * 1000);
    let probes = policy.probes.try_into().ok()?;
    Some(PolicyOptions {
        window: WindowOptions::Consecutive { within_ms: Some(seconds(policy.window_s)?) },
        failure_rate: Rate::Off,
        failures: Some(policy.threshold.try_into().ok()?),
        open_ms: seconds(policy.open_s)?,
        probe_limit: Some(probes),
        probe_successes: probes,
        probe_lease: Lease::Never,
        ..PolicyOptions::default()
    })
}

impl System for Fuse {
    type Policy = FusePolicy;
    const NAME: &'static str = "fuse";

    fn start(policy: FusePolicy, t0: u64) -> Fuse {
        let circuit = Circuit::new(options(&policy).expect("a valid policy"), t0);
        let ttl_s = 2 * policy.window_s.max(policy.open_s) as u64;
        let store = Store { text: circuit.snapshot.encode(), expires_at: None, ttl_s };
        let (threshold, window_s) = (policy.threshold as usize, policy.window_s as u64);
        Fuse { circuit, store, threshold, window_s, failures: Vec::new(), opened_at: None }
    }

    fn step(&mut self, step: &Step) -> Reply {
        let mut reply = Reply::default();
        let now_s = step.t / 1000;
        self.read(step.t);
        let before = self.circuit.snapshot.state();
        let writes = match step.op.as_str() {
            "begin" => self.begin(step, &mut reply),
            "end" => {
                let outcome = outcome(&step.out);
                let settled = self.circuit.end(step.c, outcome, step.t);
                reply.fenced = settled.stale.then_some(Fenced::Dropped);
                self.note(outcome, settled.counted && before == State::Closed, now_s);
                settled.counted || (!settled.stale && before == State::HalfOpen)
            }
            "rec" => self.record(outcome(&step.out), step.t, &mut reply),
            "force_open" => self.force(State::Open, step.t),
            "force_closed" => self.force(State::Closed, step.t),
            "reset" => {
                self.circuit.verb(|snapshot, policy| snapshot.reset(policy, at(step.t)));
                self.store.text = self.circuit.snapshot.encode();
                self.store.expires_at = None;
                (self.failures, self.opened_at) = (Vec::new(), None);
                false
            }
            "retry" => {
                let now = self.circuit.snapshot.inspect(&self.circuit.policy, at(step.t));
                let open_s = now.until.map_or(0, |until| until.since(at(step.t)) / 1000);
                reply.set("retry_s", (before != State::Closed).then_some(open_s));
                false
            }
            "nop" => false,
            op => panic!("{op}"),
        };
        self.note_moves(step, now_s, &mut reply);
        if writes {
            self.store.write(self.circuit.snapshot.encode(), now_s);
        }
        let now = self.circuit.snapshot.inspect(&self.circuit.policy, at(step.t));
        let state = self.circuit.snapshot.state();
        let count = self.failures.len();
        reply.set("failures", self.failures.clone());
        let (successes, slots) = (now.probe_successes, now.probes_in_flight);
        reply.set("s", json!([letter(state), count, successes, slots, self.opened_at, self.store.expires_at]));
        reply
    }
}

impl Fuse {
    fn read(&mut self, t: u64) {
        let policy = self.circuit.policy;
        let fresh = Snapshot::closed(&policy, 1, at(t));
        let (snapshot, problem) = Snapshot::decode(&policy, &self.store.text, fresh);
        assert_eq!((snapshot.encode(), problem), (self.store.text.clone(), None), "text to circuit to text");
        self.circuit.snapshot = snapshot;
        if self.store.forget(t / 1000) {
            // Closed and empty, without an event. A closed circuit needs nothing for that: what it held is too old to count.
            if self.circuit.snapshot.state() != State::Closed {
                self.circuit.snapshot.reset(&policy, at(t));
                self.store.text = self.circuit.snapshot.encode();
            }
            (self.failures, self.opened_at) = (Vec::new(), None);
        }
    }

    fn begin(&mut self, step: &Step, reply: &mut Reply) -> bool {
        let admitted = self.circuit.begin(step.c, step.t);
        reply.set("ok", admitted.is_ok());
        if let Err(refusal) = admitted {
            let retry_s = match refusal.reason {
                RefusalReason::ProbesBusy => 0,
                RefusalReason::Open | RefusalReason::HeldOpen => {
                    refusal.retry_at.map_or(0, |retry_at| retry_at.since(at(step.t)).div_ceil(1000))
                }
            };
            reply.set("retry_s", retry_s);
        }
        admitted.is_ok() && self.circuit.snapshot.state() == State::HalfOpen
    }

    /// By hand, without a call. While open theirs treats it as if the circuit were closed: below the threshold it closes.
    fn record(&mut self, outcome: CallOutcome, t: u64, reply: &mut Reply) -> bool {
        let now_s = t / 1000;
        let state = self.circuit.snapshot.state();
        if state != State::Open {
            self.circuit.verb(|snapshot, policy| snapshot.record(policy, outcome, at(t)).transitions.into_iter().flatten());
            self.note(outcome, state == State::Closed, now_s);
            return outcome.verdict != Verdict::Ignored;
        }
        self.note(outcome, true, now_s);
        match outcome.verdict {
            Verdict::Ignored => return false,
            Verdict::Failure if self.failures.len() >= self.threshold => {
                self.circuit.verb(|snapshot, policy| snapshot.force(policy, State::Open, None, at(t)));
                self.opened_at = Some(now_s);
                return true;
            }
            Verdict::Failure => reply.set("tr", json!([["O", "C", "failure_recorded"]])),
            Verdict::Success => reply.set("tr", json!([["O", "C", "success"]])),
        }
        let Circuit { policy, snapshot, .. } = &mut self.circuit;
        snapshot.force(policy, State::Closed, None, at(t));
        for _ in &self.failures {
            snapshot.record(policy, CallOutcome::failure(), at(t));
        }
        self.opened_at = None;
        true
    }

    fn force(&mut self, state: State, t: u64) -> bool {
        self.circuit.verb(|snapshot, policy| snapshot.force(policy, state, None, at(t)));
        self.failures.clear();
        self.opened_at = (state == State::Open).then_some(t / 1000);
        true
    }

    /// Keeps the instants of the failures a closed circuit counted.
    fn note(&mut self, outcome: CallOutcome, counted: bool, now_s: u64) {
        match outcome.verdict {
            Verdict::Success if counted => self.failures.clear(),
            Verdict::Failure if counted => {
                self.failures.retain(|failed_at| failed_at + self.window_s >= now_s);
                self.failures.push(now_s);
            }
            Verdict::Success | Verdict::Failure | Verdict::Ignored => {}
        }
    }

    fn note_moves(&mut self, step: &Step, now_s: u64, reply: &mut Reply) {
        let moved = self.circuit.take_moved();
        for m in &moved {
            match m.to {
                State::Open if m.reason == Reason::ProbeFailed => (self.failures, self.opened_at) = (vec![now_s], Some(now_s)),
                State::Open => self.opened_at = Some(now_s),
                State::HalfOpen => self.failures.clear(),
                State::Closed => (self.failures, self.opened_at) = (Vec::new(), None),
            }
        }
        if !moved.is_empty() {
            reply.set("tr", arrows(&moved, reason));
        }
        if self.circuit.snapshot.state() == State::Closed && matches!(step.op.as_str(), "end" | "rec") {
            let counts = self.circuit.snapshot.inspect(&self.circuit.policy, at(step.t)).counts;
            let young = self.failures.iter().filter(|failed_at| *failed_at + self.window_s >= now_s).count();
            assert_eq!(counts.failures as usize, young, "the core counts the failures that are shown");
        }
    }
}

fn reason(moved: &Transition) -> &'static str {
    match moved.reason {
        Reason::FailureCount => "failure_threshold",
        Reason::OpenElapsed => "cooldown_elapsed",
        Reason::ProbesSucceeded => "probes_succeeded",
        Reason::ProbeFailed => "probe_failed",
        Reason::Forced => "forced",
        Reason::Reset => "reset",
        other => panic!("fuse has no {other:?}"),
    }
}

/// One text with a lifetime that every write renews; alive up to and including its last second. What it forgot is kept for the
/// generation in it, which fences the calls of before.
struct Store {
    text: String,
    expires_at: Option<u64>,
    ttl_s: u64,
}

impl Store {
    fn write(&mut self, text: String, now_s: u64) {
        self.text = text;
        self.expires_at = Some(now_s + self.ttl_s);
    }

    /// Did it just end?
    fn forget(&mut self, now_s: u64) -> bool {
        let over = self.expires_at.is_some_and(|last| now_s > last);
        if over {
            self.expires_at = None;
        }
        over
    }
}

#[test]
fn every_fenced_trace_of_fuse_passes() {
    check::<Fuse>();
}

/// Ours is looser in one row: `openMs` 0 is due at once, as utopia needs it.
#[test]
fn policies_of_fuse_are_accepted_and_refused_alike() {
    #[derive(Deserialize)]
    struct Row {
        policy: FusePolicy,
        ok: bool,
    }
    for row in rows::<Row>(Fuse::NAME, "validation") {
        let looser = row.policy.open_s == 0;
        let ours = options(&row.policy).is_some_and(|options| Policy::parse(options).is_ok());
        assert_eq!(ours, row.ok || looser, "{:?}", options(&row.policy));
    }
}

/// Theirs has no grammar and joins by `:`, so none of its names is a key here. Joined by `.` three of eleven are refused: a `:`
/// inside a part, nothing at all, capitals with a space.
#[test]
fn names_of_fuse_are_keys_once_joined_by_dots() {
    #[derive(Deserialize)]
    struct Row {
        prefix: String,
        app: Option<String>,
        name: String,
        operation: Option<String>,
        key: String,
    }
    let mut refused = Vec::new();
    for Row { prefix, app, name, operation, key } in rows::<Row>(Fuse::NAME, "keys") {
        let parts = [Some(prefix), app, Some(name), operation].into_iter().flatten().filter(|part| !part.is_empty());
        let parts: Vec<_> = parts.collect();
        assert_eq!(parts.join(":"), key);
        assert!(Key::parse(&key).is_err());
        if Key::parse(&parts.join(".")).is_err() {
            refused.push(key);
        }
    }
    assert_eq!(refused, ["cb:d:a:b:c", "", "fuse:app:UPPER case:op"]);
}

#[test]
fn the_store_forgets_after_its_last_second_and_a_write_renews_it() {
    let mut store = Store { text: String::new(), expires_at: None, ttl_s: 20 };
    assert!(!store.forget(1_000_000)); // nothing stored
    store.write("a".to_owned(), 100);
    assert!(!store.forget(120));
    store.write("b".to_owned(), 110);
    assert!(!store.forget(130) && store.forget(131) && !store.forget(132));
}

/// To theirs a stored state it does not know is an error; here it reads as closed, and the problem is told.
#[test]
fn an_unknown_state_reads_as_closed() {
    let policy = Policy::default();
    let mut open = Snapshot::closed(&policy, 1, at(0));
    open.force(&policy, State::Open, None, at(1));
    let text = open.encode();
    assert!(text.starts_with("1;O"));
    let (read, problem) = Snapshot::decode(&policy, &text.replacen('O', "Q", 1), Snapshot::closed(&policy, 1, at(0)));
    assert_eq!((read.state(), problem), (State::Closed, Some(StoredProblem::Malformed)));
}

#[test]
fn an_outcome_by_hand_while_open_closes_unless_it_is_one_too_many() {
    let step = |t: u64, op: &str, out: &str| Step::parse(json!({"t": t, "op": op, "out": out}));
    let policy = || FusePolicy { threshold: 2, window_s: 10, open_s: 5, probes: 1 };
    let state = |reply: &Reply| reply.values["s"][0].clone();

    let mut forced = Fuse::start(policy(), 0);
    forced.step(&step(1_000, "force_open", ""));
    assert_eq!(state(&forced.step(&step(2_000, "rec", "failure"))), "C");

    let mut opened = Fuse::start(policy(), 0);
    opened.step(&step(1_000, "rec", "failure"));
    let reply = opened.step(&step(2_000, "rec", "failure"));
    assert_eq!(reply.values["tr"], json!([["C", "O", "failure_threshold"]]));
    let reply = opened.step(&step(4_000, "rec", "failure"));
    assert_eq!((state(&reply), reply.values.get("tr")), (Value::from("O"), None)); // three failures: open for another 5 s
    assert_eq!(opened.step(&step(8_000, "retry", "")).values["retry_s"], 1);
    let reply = opened.step(&step(8_000, "rec", "success"));
    assert_eq!(reply.values["tr"], json!([["O", "C", "success"]]));
}
