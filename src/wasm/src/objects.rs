//! The pure core on plain objects: for reducers, tests and tools, off the hot path. A snapshot crosses as its stored text's fields
//! under their names; what comes back in is read as untrusted as a stored text is.

use serde::{Deserialize, Serialize};
use tripcurve::{
    Admission, CallOutcome, Counts, Held, JudgeOn, Key, Lease, Permit, PermitKind, Policy, Rate, Reason, Refusal, RefusalReason,
    Share, Snapshot, State, Time, Transition, Verdict, WindowOptions,
};
use wasm_bindgen::prelude::{wasm_bindgen, JsValue};

type Answer = Result<JsValue, JsValue>;

/// A policy with every default filled in.
#[wasm_bindgen]
pub fn parse_policy(policy: &[f64]) -> Answer {
    give(&PolicyObject::of(&read_policy(policy)?))
}

/// What is wrong with a key, or nothing.
#[wasm_bindgen]
pub fn key_problem(key: &str) -> Option<String> {
    Key::parse(key).err().map(|error| error.to_string())
}

#[wasm_bindgen]
pub fn closed(policy: &[f64], seed: u32, now: f64) -> Answer {
    give(&SnapshotObject::of(&Snapshot::closed(&read_policy(policy)?, seed, time(now)?)))
}

#[wasm_bindgen]
pub fn at(policy: &[f64], snapshot: JsValue, now: f64) -> Answer {
    step(policy, snapshot, now, |circuit, policy, now| (transitions([circuit.at(policy, now), None]), Extra::default()))
}

#[wasm_bindgen]
pub fn admit(policy: &[f64], snapshot: JsValue, probe_id: u32, now: f64) -> Answer {
    step(policy, snapshot, now, |circuit, policy, now| {
        let admitted = circuit.admit(policy, probe_id, now);
        let admission = Some(AdmissionObject::of(admitted.admission, now));
        (transitions([admitted.transition, None]), Extra { admission, ..Extra::default() })
    })
}

#[wasm_bindgen]
pub fn settle(policy: &[f64], snapshot: JsValue, permit: JsValue, outcome: JsValue, now: f64) -> Answer {
    let permit: PermitObject = take(permit)?;
    let outcome = take::<OutcomeObject>(outcome)?.parse()?;
    step(policy, snapshot, now, |circuit, policy, now| {
        let settled = circuit.settle(policy, permit.parse(), outcome, now);
        (transitions([settled.transition, None]), Extra { counted: Some(settled.counted), ..Extra::default() })
    })
}

#[wasm_bindgen]
pub fn record(policy: &[f64], snapshot: JsValue, outcome: JsValue, now: f64) -> Answer {
    let outcome = take::<OutcomeObject>(outcome)?.parse()?;
    step(policy, snapshot, now, |circuit, policy, now| {
        (transitions(circuit.record(policy, outcome, now).transitions), Extra::default())
    })
}

#[wasm_bindgen]
pub fn force(policy: &[f64], snapshot: JsValue, state: JsValue, until: Option<f64>, now: f64) -> Answer {
    let state = take::<StateName>(state)?.into();
    let until = until.map(time).transpose()?;
    step(policy, snapshot, now, |circuit, policy, now| {
        (transitions([circuit.force(policy, state, until, now), None]), Extra::default())
    })
}

#[wasm_bindgen]
pub fn hold(policy: &[f64], snapshot: JsValue, held: JsValue, now: f64) -> Answer {
    let held = take::<HeldName>(held)?.into();
    step(policy, snapshot, now, |circuit, policy, now| (transitions([circuit.hold(policy, held, now), None]), Extra::default()))
}

#[wasm_bindgen]
pub fn release(policy: &[f64], snapshot: JsValue, now: f64) -> Answer {
    step(policy, snapshot, now, |circuit, policy, now| (transitions([circuit.release(policy, now), None]), Extra::default()))
}

#[wasm_bindgen]
pub fn reset(policy: &[f64], snapshot: JsValue, now: f64) -> Answer {
    step(policy, snapshot, now, |circuit, policy, now| (transitions([circuit.reset(policy, now), None]), Extra::default()))
}

#[wasm_bindgen]
pub fn adopt(policy: &[f64], mine: JsValue, theirs: JsValue, now: f64) -> Answer {
    let theirs = {
        let policy = read_policy(policy)?;
        take::<SnapshotObject>(theirs)?.parse(&policy)?
    };
    step(policy, mine, now, |circuit, policy, now| {
        let adopted = circuit.adopt(policy, theirs, now).transition;
        (transitions([adopted, circuit.conclude(policy, now)]), Extra::default())
    })
}

#[wasm_bindgen]
pub fn inspect(policy: &[f64], snapshot: JsValue, now: f64) -> Answer {
    let policy = read_policy(policy)?;
    let found = take::<SnapshotObject>(snapshot)?.parse(&policy)?.inspect(&policy, time(now)?);
    give(&InspectionObject {
        state: found.state.into(),
        held: found.held.map(Into::into),
        admits: found.admits,
        since: found.since.as_millis(),
        until: found.until.map(Time::as_millis),
        counts: found.counts.into(),
        probes_in_flight: found.probes_in_flight,
        probe_successes: found.probe_successes,
        rejected: found.rejected,
        generation: found.generation,
        next_change_at: found.next_change_at.map(Time::as_millis),
        why: found.why.map(|why| WhyObject { reason: why.reason.into(), at: why.at.as_millis(), counts: why.counts.into() }),
    })
}

#[wasm_bindgen]
pub fn encode(snapshot: JsValue) -> Result<String, JsValue> {
    Ok(take::<SnapshotObject>(snapshot)?.text())
}

/// `{ snapshot, problem }`: a fresh closed circuit where the text cannot be read.
#[wasm_bindgen]
pub fn decode(policy: &[f64], text: &str, now: f64) -> Answer {
    let policy = read_policy(policy)?;
    let (snapshot, problem) = Snapshot::decode(&policy, text, Snapshot::closed(&policy, 0, time(now)?));
    give(&Decoded { snapshot: SnapshotObject::of(&snapshot), problem: problem.map(|problem| problem.as_str()) })
}

/// 30 random bits.
#[wasm_bindgen]
pub fn entropy() -> u32 {
    getrandom::u32().map_or(1, |bits| bits >> 2)
}

// ---- one step ----------------------------------------------------------------------------------------------------------------

#[derive(Serialize)]
struct StepObject {
    /// Nothing when nothing changed.
    snapshot: Option<SnapshotObject>,
    transitions: Vec<TransitionObject>,
    #[serde(skip_serializing_if = "Option::is_none")]
    admission: Option<AdmissionObject>,
    #[serde(skip_serializing_if = "Option::is_none")]
    counted: Option<bool>,
}

/// What some verbs answer beside the step.
#[derive(Default)]
struct Extra {
    admission: Option<AdmissionObject>,
    counted: Option<bool>,
}

#[derive(Serialize)]
struct Decoded {
    snapshot: SnapshotObject,
    problem: Option<&'static str>,
}

fn step(
    policy: &[f64],
    snapshot: JsValue,
    now: f64,
    verb: impl FnOnce(&mut Snapshot, &Policy, Time) -> (Vec<TransitionObject>, Extra),
) -> Answer {
    let policy = read_policy(policy)?;
    let mut circuit = take::<SnapshotObject>(snapshot)?.parse(&policy)?;
    let before = circuit.encode();
    let (transitions, Extra { admission, counted }) = verb(&mut circuit, &policy, time(now)?);
    let snapshot = (circuit.encode() != before).then(|| SnapshotObject::of(&circuit));
    give(&StepObject { snapshot, transitions, admission, counted })
}

fn transitions(moves: [Option<Transition>; 2]) -> Vec<TransitionObject> {
    moves.into_iter().flatten().map(TransitionObject::of).collect()
}

fn give<T: Serialize>(value: &T) -> Answer {
    Ok(value.serialize(&serde_wasm_bindgen::Serializer::json_compatible())?)
}

fn take<T: for<'a> Deserialize<'a>>(value: JsValue) -> Result<T, JsValue> {
    Ok(serde_wasm_bindgen::from_value(value)?)
}

fn refuse<T>(message: &str) -> Result<T, JsValue> {
    Err(js_sys::TypeError::new(message).into())
}

fn time(millis: f64) -> Result<Time, JsValue> {
    if (0.0..=Time::MAX.as_millis() as f64).contains(&millis) {
        Ok(Time::from_millis(millis as u64))
    } else {
        refuse("an instant is a number of milliseconds from 0 to 2^53 - 1")
    }
}

// ---- words ---------------------------------------------------------------------------------------------------------------------

macro_rules! words {
    ($name:ident, $of:ident, $($word:ident),+) => {
        #[derive(Serialize, Deserialize, Clone, Copy, PartialEq)]
        #[serde(rename_all = "snake_case")]
        enum $name { $($word),+ }
        impl From<$of> for $name {
            fn from(value: $of) -> $name { match value { $($of::$word => $name::$word),+ } }
        }
        impl From<$name> for $of {
            fn from(value: $name) -> $of { match value { $($name::$word => $of::$word),+ } }
        }
    };
}

words!(StateName, State, Closed, Open, HalfOpen);
words!(HeldName, Held, Open, Closed);
words!(VerdictName, Verdict, Success, Failure, Ignored);
words!(KindName, PermitKind, Allowed, Probe);
words!(JudgeName, JudgeOn, Failure, Any);
words!(RefusalName, RefusalReason, Open, HeldOpen, ProbesBusy);
words!(
    ReasonName,
    Reason,
    FailureRate,
    FailureCount,
    SlowRate,
    OpenElapsed,
    ProbeFailed,
    ProbeSlow,
    ProbesSucceeded,
    Forced,
    Held,
    Released,
    Reset,
    Adopted
);

#[derive(Serialize, Deserialize, Clone, Copy)]
struct CountsObject {
    calls: u32,
    failures: u32,
    slow: u32,
}

impl From<Counts> for CountsObject {
    fn from(Counts { calls, failures, slow }: Counts) -> CountsObject {
        CountsObject { calls, failures, slow }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TransitionObject {
    from: StateName,
    to: StateName,
    reason: ReasonName,
    at: u64,
    generation: u32,
    counts: CountsObject,
    until: Option<u64>,
}

impl TransitionObject {
    fn of(moved: Transition) -> TransitionObject {
        TransitionObject {
            from: moved.from.into(),
            to: moved.to.into(),
            reason: moved.reason.into(),
            at: moved.at.as_millis(),
            generation: moved.generation,
            counts: moved.counts.into(),
            until: moved.until.map(Time::as_millis),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InspectionObject {
    state: StateName,
    held: Option<HeldName>,
    admits: bool,
    since: u64,
    until: Option<u64>,
    counts: CountsObject,
    probes_in_flight: u32,
    probe_successes: u32,
    rejected: u32,
    generation: u32,
    next_change_at: Option<u64>,
    why: Option<WhyObject>,
}

#[derive(Serialize)]
struct WhyObject {
    reason: ReasonName,
    at: u64,
    counts: CountsObject,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PermitObject {
    kind: KindName,
    generation: u32,
    admitted_at: u64,
    id: u32,
}

impl PermitObject {
    fn parse(&self) -> Permit {
        let PermitObject { kind, generation, admitted_at, id } = *self;
        Permit { kind: kind.into(), generation, admitted_at: Time::from_millis(admitted_at), id }
    }
}

#[derive(Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
enum AdmissionObject {
    Admitted { kind: KindName, permit: PermitObject },
    Refused { kind: &'static str, reason: RefusalName, retry_at: Option<u64> },
}

impl AdmissionObject {
    fn of(admission: Admission, now: Time) -> AdmissionObject {
        let admitted = |permit: Permit| AdmissionObject::Admitted {
            kind: permit.kind.into(),
            permit: PermitObject {
                kind: permit.kind.into(),
                generation: permit.generation,
                admitted_at: permit.admitted_at.as_millis(),
                id: permit.id,
            },
        };
        match admission {
            Admission::Admitted(permit) => admitted(permit),
            // A permit of no generation there will be for a while: its outcome never counts.
            Admission::Shadowed(_) => admitted(Permit { generation: u32::MAX, kind: PermitKind::Allowed, id: 0, admitted_at: now }),
            Admission::Refused(Refusal { reason, retry_at }) => {
                AdmissionObject::Refused { kind: "rejected", reason: reason.into(), retry_at: retry_at.map(Time::as_millis) }
            }
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OutcomeObject {
    verdict: VerdictName,
    duration_ms: Option<f64>,
    retry_at: Option<f64>,
}

impl OutcomeObject {
    fn parse(self) -> Result<CallOutcome, JsValue> {
        let duration_ms = match self.duration_ms {
            Some(ms) if !(0.0..=Time::MAX.as_millis() as f64).contains(&ms) => {
                return refuse("durationMs is a number of milliseconds from 0 to 2^53 - 1")
            }
            Some(ms) => Some(ms.ceil() as u64),
            None => None,
        };
        Ok(CallOutcome { verdict: self.verdict.into(), duration_ms, retry_at: self.retry_at.map(time).transpose()? })
    }
}

// ---- snapshots -----------------------------------------------------------------------------------------------------------------

/// The fields of the stored text, named. `counts` is read from `window` and ignored on the way in.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SnapshotObject {
    v: u32,
    state: StateName,
    held: Option<HeldName>,
    since: u64,
    until: Option<u64>,
    generation: u32,
    level: u32,
    seed: u32,
    counts: CountsObject,
    probes: Vec<ProbeObject>,
    probe_successes: u32,
    rejected: u32,
    window: String,
    verdict: Option<StampObject>,
    why: Option<ReasonObject>,
    hold: Option<StampObject>,
    last_seen_at: u64,
}

/// Who decided, and when; of a verdict also what, since a hold may hide it.
#[derive(Serialize, Deserialize)]
struct StampObject {
    state: StateName,
    since: u64,
    by: u32,
}

/// What made the verdict.
#[derive(Serialize, Deserialize)]
struct ReasonObject {
    reason: ReasonName,
    counts: CountsObject,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ProbeObject {
    id: u32,
    lease_until: Option<u64>,
    fate: FateName,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum FateName {
    InFlight,
    Freed,
    Succeeded,
}

impl SnapshotObject {
    fn of(circuit: &Snapshot) -> SnapshotObject {
        let text = circuit.encode();
        let fields: Vec<&str> = text.splitn(11, ';').collect();
        let field = |index: usize| fields.get(index).copied().unwrap_or("");
        let (phase, until) = phase_of(field(1));
        let stamp = |text: &str, state| {
            let (since, by) = text.split_once('.')?;
            let by = by.split(char::is_uppercase).next()?;
            Some(StampObject { state, since: base36(since), by: base36(by) as u32 })
        };
        let mut probing = field(9).split(',');
        let recorded = base36(probing.next().unwrap_or("")) as u32;
        let probes: Vec<ProbeObject> = probing.filter_map(ProbeObject::of).collect();
        SnapshotObject {
            v: 1,
            state: circuit.state().into(),
            held: circuit.held().map(Into::into),
            since: base36(field(2)),
            until,
            generation: circuit.generation(),
            level: base36(field(5)) as u32,
            seed: circuit.seed(),
            counts: circuit.counts().into(),
            probe_successes: recorded + succeeded(&probes),
            probes,
            rejected: base36(field(6)) as u32,
            window: field(10).into(),
            verdict: stamp(field(7), phase),
            why: circuit.why().map(|why| ReasonObject { reason: why.reason.into(), counts: why.counts.into() }),
            hold: stamp(field(8).get(1..).unwrap_or(""), circuit.state().into()),
            last_seen_at: circuit.last_seen().as_millis(),
        }
    }

    fn text(&self) -> String {
        let state = match (self.held, &self.verdict) {
            (None, _) => self.state,
            (Some(_), Some(verdict)) => verdict.state,
            (Some(_), None) => StateName::Closed,
        };
        let until = to_base36(self.until.unwrap_or(self.since));
        let phase = match state {
            StateName::Closed => "C".into(),
            StateName::Open => format!("O{until}"),
            StateName::HalfOpen => format!("H{until}"),
        };
        let stamp = |stamp: &Option<StampObject>, tag: &str| {
            stamp.as_ref().map_or(String::new(), |at| format!("{tag}{}.{}", to_base36(at.since), to_base36(at.by.into())))
        };
        let hold = match self.held {
            None => "N",
            Some(HeldName::Open) => "O",
            Some(HeldName::Closed) => "C",
        };
        let probing = if state == StateName::HalfOpen {
            let mut text = to_base36(self.probe_successes.saturating_sub(succeeded(&self.probes)).into());
            for probe in &self.probes {
                let lease = probe.lease_until.map_or(String::new(), to_base36);
                let mark = match probe.fate {
                    FateName::InFlight => "",
                    FateName::Freed => "X",
                    FateName::Succeeded => "S",
                };
                text += &format!(",{}.{lease}{mark}", to_base36(probe.id.into()));
            }
            text
        } else {
            String::new()
        };
        [
            "1".into(),
            phase,
            to_base36(self.since),
            to_base36(self.generation.into()),
            to_base36(self.seed.into()),
            to_base36(self.level.into()),
            to_base36(self.rejected.into()),
            stamp(&self.verdict, "")
                + &self.why.as_ref().filter(|_| self.verdict.is_some()).map_or(String::new(), ReasonObject::text),
            stamp(&self.hold, hold),
            probing,
            self.window.clone(),
        ]
        .join(";")
    }

    fn parse(&self, policy: &Policy) -> Result<Snapshot, JsValue> {
        let seen = Time::from_millis(self.last_seen_at);
        match Snapshot::decode(policy, &self.text(), Snapshot::closed(policy, self.seed, seen)) {
            (snapshot, None) => Ok(snapshot.with_last_seen(seen)),
            (_, Some(problem)) => refuse(&format!("not a snapshot of this policy: {problem}")),
        }
    }
}

impl ReasonObject {
    fn text(&self) -> String {
        let reason = Reason::from(self.reason);
        // What is no decision has no mark, and the text is refused.
        let mark = Reason::DECISIONS.iter().zip('A'..).find(|(other, _)| **other == reason).map_or('Z', |(_, mark)| mark);
        let CountsObject { calls, failures, slow } = self.counts;
        let counts = [calls, failures, slow].map(|count| to_base36(count.into())).join(".");
        format!("{mark}{}", counts.trim_end_matches(".0"))
    }
}

impl ProbeObject {
    fn of(text: &str) -> Option<ProbeObject> {
        let (id, lease) = text.split_once('.')?;
        let digits = lease.trim_end_matches(['X', 'S']);
        let lease_until = if digits.is_empty() { None } else { Some(base36(digits)) };
        let fate = match lease.get(digits.len()..) {
            Some("X") => FateName::Freed,
            Some("S") => FateName::Succeeded,
            _ => FateName::InFlight,
        };
        Some(ProbeObject { id: base36(id) as u32, lease_until, fate })
    }
}

fn succeeded(probes: &[ProbeObject]) -> u32 {
    probes.iter().filter(|probe| probe.fate == FateName::Succeeded).count() as u32
}

fn phase_of(text: &str) -> (StateName, Option<u64>) {
    let until = text.get(1..).filter(|digits| !digits.is_empty()).map(base36);
    match text.get(..1) {
        Some("O") => (StateName::Open, until),
        Some("H") => (StateName::HalfOpen, until),
        _ => (StateName::Closed, until),
    }
}

fn base36(digits: &str) -> u64 {
    u64::from_str_radix(digits, 36).unwrap_or(0)
}

fn to_base36(mut value: u64) -> String {
    let mut digits = Vec::new();
    loop {
        digits.extend(char::from_digit((value % 36) as u32, 36));
        value /= 36;
        if value == 0 {
            return digits.iter().rev().collect();
        }
    }
}

// ---- policies ------------------------------------------------------------------------------------------------------------------

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PolicyObject {
    window: WindowObject,
    failure_rate: Option<[u32; 2]>,
    failures: Option<u32>,
    minimum_calls: Option<u32>,
    slow_ms: Option<u64>,
    slow_rate: [u32; 2],
    judge_on: JudgeName,
    open_ms: u64,
    backoff: [u64; 2],
    jitter: [u32; 2],
    max_open_ms: Option<u64>,
    probe_limit: Option<u32>,
    probe_successes: u32,
    probe_lease_ms: Option<u64>,
    shadow: bool,
}

#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "snake_case", rename_all_fields = "camelCase")]
enum WindowObject {
    Fixed { ms: u64 },
    Time { ms: u64, buckets: Option<u32> },
    Calls { last: u32, within_ms: Option<u64> },
    Consecutive { within_ms: Option<u64> },
}

/// Refused: throws `[slot, problem, min, max]`.
fn read_policy(slots: &[f64]) -> Result<Policy, JsValue> {
    let Ok(slots) = slots.try_into() else { return refuse("a policy takes 24 numbers") };
    crate::slots::parse(slots).map_err(|refused| {
        let [problem, min, max] = refused.why;
        js_sys::Array::of4(&refused.slot.into(), &problem.into(), &min.into(), &max.into()).into()
    })
}

impl PolicyObject {
    fn of(policy: &Policy) -> PolicyObject {
        let options = policy.options();
        let share = |share: Share| [share.numerator(), share.denominator()];
        PolicyObject {
            window: match options.window {
                WindowOptions::Fixed { ms } => WindowObject::Fixed { ms },
                WindowOptions::Time { ms, buckets } => WindowObject::Time { ms, buckets },
                WindowOptions::Calls { last, within_ms } => WindowObject::Calls { last, within_ms },
                WindowOptions::Consecutive { within_ms } => WindowObject::Consecutive { within_ms },
            },
            failure_rate: match options.failure_rate {
                Rate::Share(rate) => Some(share(rate)),
                Rate::Default | Rate::Off => None,
            },
            failures: options.failures,
            minimum_calls: options.minimum_calls,
            slow_ms: options.slow_ms,
            slow_rate: share(options.slow_rate),
            judge_on: options.judge_on.into(),
            open_ms: options.open_ms,
            backoff: [options.backoff.numerator(), options.backoff.denominator().into()],
            jitter: options.jitter.map_or([0, 1], share),
            max_open_ms: options.max_open_ms,
            probe_limit: options.probe_limit,
            probe_successes: options.probe_successes,
            probe_lease_ms: match options.probe_lease {
                Lease::Ms(ms) => Some(ms),
                Lease::Default | Lease::Never => None,
            },
            shadow: options.shadow,
        }
    }
}
