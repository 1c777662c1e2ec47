//! utopia: two buckets aligned to the epoch, a ratio in doubles, slots counted in the process, optionally a verdict shared by two.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::json;
use tripcurve::{JudgeOn, Lease, PermitKind, Policy, PolicyOptions, Rate, Share, Snapshot, State, Verdict, WindowOptions};

use crate::circuit::{at, letter, outcome, Circuit};
use crate::fractions::simplest;
use crate::trace::{check, rows, Fenced, Reply, Step, System};

pub struct Utopia {
    instances: Vec<Instance>,
    permitted: u32,
    clock: BucketClock,
    began_at: HashMap<u64, usize>,
    /// What two instances share: the stored text, and when it opened.
    shared: Option<(String, Option<u64>)>,
}

struct Instance {
    circuit: Circuit,
    /// Failures and calls in the window as of the last outcome or the last move of its own.
    tally: (u32, u32),
    opened_at: Option<u64>,
    running: Slots,
}

#[derive(Deserialize)]
pub struct UtopiaPolicy {
    timeout_s: i64,
    successes: i64,
    window_s: i64,
    ratio: f64,
    min: i64,
    permitted: i64,
    instances: Option<usize>,
}

/// `None` where our types cannot say it: a negative number, a ratio of nothing or of more than everything.
fn options(policy: &UtopiaPolicy) -> Option<PolicyOptions> {
    if policy.ratio.partial_cmp(&0.0)?.is_le() || policy.ratio > 1.0 {
        return None;
    }
    let (numerator, denominator) = simplest(policy.ratio);
    let seconds = |value: i64| u64::try_from(value).ok().map(|s| s * 1000);
    Some(PolicyOptions {
        window: WindowOptions::Time { ms: seconds(policy.window_s)? * 2, buckets: Some(2) },
        failure_rate: Rate::Share(Share::new(numerator, denominator)?),
        minimum_calls: Some(policy.min.try_into().ok()?),
        judge_on: JudgeOn::Failure,
        open_ms: seconds(policy.timeout_s)?,
        probe_limit: None, // the slots are those of a process, see `Slots`
        probe_successes: policy.successes.try_into().ok()?,
        probe_lease: Lease::Never,
        ..PolicyOptions::default()
    })
}

impl System for Utopia {
    type Policy = UtopiaPolicy;
    const NAME: &'static str = "utopia";
    const REPORTS_TRANSITIONS: bool = false;

    fn start(policy: UtopiaPolicy, t0: u64) -> Utopia {
        let instance = |i| {
            let mut circuit = Circuit::new(options(&policy).expect("a valid policy"), t0);
            circuit.snapshot.set_seed(i as u32 + 1); // names the participant
            Instance { circuit, tally: (0, 0), opened_at: None, running: Slots::default() }
        };
        Utopia {
            instances: (0..policy.instances.unwrap_or(1)).map(instance).collect(),
            permitted: policy.permitted as u32,
            clock: BucketClock::new(policy.window_s as u64 * 1000, t0),
            began_at: HashMap::new(),
            shared: None,
        }
    }

    fn step(&mut self, step: &Step) -> Reply {
        let t = self.clock.at(step.t);
        let mut reply = Reply::default();
        let i = self.acting(step);
        self.read(i, t);
        let instance = &mut self.instances[i];
        match step.op.as_str() {
            "begin" => instance.begin(step.c, t, self.permitted, &mut reply),
            "end" => instance.end(step.c, &step.out, t, &mut reply),
            "trip" => {
                instance.circuit.verb(|snapshot, policy| snapshot.force(policy, State::Open, None, at(t)));
                instance.opened_at = Some(t); // also when it was open already, which no transition tells
            }
            "get" => {
                instance.circuit.verb(|snapshot, policy| snapshot.at(policy, at(t)));
                reply.set("get", letter(instance.circuit.snapshot.state()));
            }
            op => panic!("{op}"),
        }
        instance.note_moves(t);
        let seconds = instance.opened_at.map(|t| t / 1000);
        let now = instance.circuit.snapshot.inspect(&instance.circuit.policy, at(t));
        let state = instance.circuit.snapshot.state();
        let (failures, calls) = instance.tally;
        let failures = if state == State::HalfOpen { 0 } else { failures }; // there it counts failed probes: the first one reopens
        reply.set("s", json!([letter(state), failures, now.probe_successes, calls, seconds, instance.running.taken()]));
        self.write(i);
        reply
    }
}

impl Utopia {
    /// The instance that acts; a call ends where it began.
    fn acting(&mut self, step: &Step) -> usize {
        match step.op.as_str() {
            "begin" => self.began_at.insert(step.c, step.i).map_or(step.i, |_| panic!("call {} began twice", step.c)),
            "end" => self.began_at[&step.c],
            _ => step.i,
        }
    }

    /// Meets what the sibling wrote: before every step, also before an outcome, which theirs judges by what it last knew.
    fn read(&mut self, i: usize, t: u64) {
        let Some((text, opened_at)) = &self.shared else { return };
        let instance = &mut self.instances[i];
        let Circuit { policy, snapshot, .. } = &mut instance.circuit;
        let (theirs, problem) = Snapshot::decode(policy, text, snapshot.clone());
        assert_eq!(problem, None);
        if snapshot.adopt(policy, theirs, at(t)).adopted {
            instance.opened_at = *opened_at;
        }
    }

    fn write(&mut self, i: usize) {
        if self.instances.len() > 1 {
            let instance = &self.instances[i];
            self.shared = Some((instance.circuit.snapshot.encode(), instance.opened_at));
        }
    }
}

impl Instance {
    fn begin(&mut self, c: u64, t: u64, permitted: u32, reply: &mut Reply) {
        self.circuit.verb(|snapshot, policy| snapshot.at(policy, at(t)));
        if self.circuit.snapshot.state() == State::HalfOpen && self.running.taken() >= permitted {
            reply.set("adm", "fallback");
            reply.set("why", "half_open_saturated");
            return;
        }
        match self.circuit.begin(c, t) {
            Ok(PermitKind::Allowed) => reply.set("adm", "run"),
            Ok(PermitKind::Probe) => {
                self.running.take(c);
                reply.set("adm", "probe");
            }
            Err(_) => {
                reply.set("adm", "fallback");
                reply.set("why", "open");
            }
        }
    }

    fn end(&mut self, c: u64, out: &str, t: u64, reply: &mut Reply) {
        let outcome = outcome(out);
        reply.set("res", if outcome.verdict == Verdict::Success { "value" } else { "fallback" });
        self.running.give_back(c);
        let settled = self.circuit.end(c, outcome, t);
        if settled.stale {
            reply.fenced = Some(Fenced::Dropped);
        } else if let Some(moved) = settled.transition.filter(|moved| moved.from == State::Closed) {
            self.tally = (moved.counts.failures, moved.counts.calls);
        } else if self.circuit.snapshot.state() == State::Closed && settled.transition.is_none() {
            let counts = self.circuit.snapshot.inspect(&self.circuit.policy, at(t)).counts;
            self.tally = (counts.failures, counts.calls);
        }
    }

    /// Half-open and closed begin empty; what led to open stays readable.
    fn note_moves(&mut self, t: u64) {
        for moved in self.circuit.take_moved() {
            match moved.to {
                State::Open => self.opened_at = Some(t),
                State::HalfOpen => self.tally = (0, 0),
                State::Closed => (self.tally, self.opened_at) = ((0, 0), None),
            }
        }
    }
}

/// Slots of one process: taken by running probes, never by time or by a transition given back.
#[derive(Default)]
struct Slots {
    running: HashMap<u64, ()>,
}

impl Slots {
    fn take(&mut self, c: u64) {
        self.running.insert(c, ());
    }

    fn give_back(&mut self, c: u64) {
        self.running.remove(&c);
    }

    fn taken(&self) -> u32 {
        self.running.len() as u32
    }
}

/// Theirs drops both buckets when the clock goes back by a bucket; ours takes the last good instant. So a step back goes on here
/// two buckets later instead, which drops both as well.
struct BucketClock {
    bucket_ms: u64,
    last: u64,
    ahead: u64,
}

impl BucketClock {
    fn new(bucket_ms: u64, t0: u64) -> BucketClock {
        BucketClock { bucket_ms, last: t0, ahead: 0 }
    }

    fn at(&mut self, t: u64) -> u64 {
        let buckets_back = (self.last / self.bucket_ms).saturating_sub(t / self.bucket_ms);
        if buckets_back > 0 {
            self.ahead += (buckets_back + 2) * self.bucket_ms;
        }
        self.last = t;
        t + self.ahead
    }
}

#[test]
fn every_fenced_trace_of_utopia_passes() {
    check::<Utopia>();
}

/// Ours is tighter in three rows: a negative timeout, and fewer successes than one. The empty key of a shared one is no matter of a
/// policy.
#[test]
fn policies_of_utopia_are_accepted_and_refused_alike() {
    #[derive(Deserialize)]
    struct Row {
        policy: UtopiaPolicy,
        ok: bool,
    }
    #[derive(Deserialize)]
    struct Named {
        policy: Name,
    }
    #[derive(Deserialize)]
    struct Name {
        key: String,
        shared: bool,
    }
    let names = rows::<Named>(Utopia::NAME, "validation");
    for (Row { policy, ok }, Named { policy: name }) in rows::<Row>(Utopia::NAME, "validation").into_iter().zip(names) {
        if name.shared && name.key.is_empty() {
            continue;
        }
        let tighter = policy.timeout_s < 0 || policy.successes < 1;
        let permitted = policy.permitted >= 1; // the adapter's own slots
        let ours = permitted && options(&policy).is_some_and(|options| Policy::parse(options).is_ok());
        assert_eq!(ours, ok && !tighter, "{:?}", options(&policy));
    }
}

#[test]
fn slots_are_given_back_by_the_call_that_took_them_only() {
    let mut slots = Slots::default();
    slots.take(1);
    slots.give_back(2);
    assert_eq!(slots.taken(), 1);
    slots.give_back(1);
    slots.give_back(1);
    assert_eq!(slots.taken(), 0);
}

#[test]
fn a_clock_that_goes_back_by_a_bucket_goes_on_two_buckets_later() {
    let mut clock = BucketClock::new(10, 100);
    assert_eq!([100, 109, 105, 99, 100].map(|t| clock.at(t)), [100, 109, 105, 129, 130]);
}
