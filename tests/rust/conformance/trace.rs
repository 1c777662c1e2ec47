//! Reads the files of `tests/vectors`, replays traces through one adapter per system and compares its answers.

use std::fmt;
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// One of the six systems: translates its policy and operations to the core, and the core's answers back.
pub trait System: Sized {
    type Policy: DeserializeOwned;
    const NAME: &'static str;
    /// Without transitions in its traces, "no `tr`" says nothing.
    const REPORTS_TRANSITIONS: bool = true;

    fn start(policy: Self::Policy, t0: u64) -> Self;
    fn step(&mut self, step: &Step) -> Reply;

    /// Expected keys that `tests/vectors/README.md` leaves out of the comparison.
    fn leaves_out(_step: &Step, _key: &str) -> bool {
        false
    }
}

/// What an adapter says about one step.
#[derive(Default)]
pub struct Reply {
    pub values: Map<String, Value>,
    /// Why this breaker and one without our fence may part here.
    pub fenced: Option<Fenced>,
}

/// What a fence does that the unfenced systems do not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fenced {
    /// A result of an earlier episode, or of a probe whose lease had ended, was dropped.
    Dropped,
    /// Leases per probe and one lease per half-open period leave different slots free.
    Lease,
}

impl Reply {
    pub fn set(&mut self, key: &str, value: impl Into<Value>) {
        self.values.insert(key.to_owned(), value.into());
    }
}

pub struct Trace {
    pub id: String,
    /// `None` where the system is fenced itself, or has no calls.
    pub fenced_same: Option<bool>,
    policy: Value,
    t0: u64,
    pub steps: Vec<Step>,
}

/// The inputs of one step, and what is expected of it.
pub struct Step {
    pub t: u64,
    pub op: String,
    pub c: u64,
    pub out: String,
    pub ms: Option<u64>,
    pub to: String,
    pub i: usize,
    pub expected: Map<String, Value>,
}

impl Step {
    pub fn parse(value: Value) -> Step {
        let Value::Object(mut all) = value else { panic!("a step is an object") };
        let mut text = |key: &str| all.remove(key).map(|v| v.as_str().expect("a string").to_owned());
        let (op, out, to) = (text("op").expect("op"), text("out").unwrap_or_default(), text("to").unwrap_or_default());
        let mut number = |key: &str| all.remove(key).map(|v| v.as_u64().expect("a whole number"));
        let (t, c, ms, i) = (number("t").expect("t"), number("c").unwrap_or(0), number("ms"), number("i").unwrap_or(0));
        Step { t, op, c, out, ms, to, i: i as usize, expected: all }
    }
}

/// Where a replay and its trace part first.
pub struct Difference {
    pub step: usize,
    pub key: String,
    pub expected: Option<Value>,
    pub got: Option<Value>,
    /// The last step, this one included, at which the fence did something, and what.
    pub fenced: Option<(usize, Fenced)>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |value: &Option<Value>| value.as_ref().map_or("nothing".to_owned(), Value::to_string);
        write!(f, "step {}, {}: expected {}, got {}", self.step, self.key, show(&self.expected), show(&self.got))?;
        if let Some((at, what)) = self.fenced {
            write!(f, " ({what:?} at step {at})")?;
        }
        Ok(())
    }
}

/// Replays one trace up to the first difference.
pub fn replay<S: System>(trace: &Trace) -> Option<Difference> {
    let policy = serde_json::from_value(trace.policy.clone()).unwrap_or_else(|error| panic!("{}: {error}", trace.id));
    let mut system = S::start(policy, trace.t0);
    let mut fenced = None;
    for (at, step) in trace.steps.iter().enumerate() {
        let reply = system.step(step);
        fenced = reply.fenced.map(|what| (at, what)).or(fenced);
        if let Some((key, expected, got)) = difference::<S>(step, &reply.values) {
            return Some(Difference { step: at, key, expected, got, fenced });
        }
    }
    None
}

fn difference<S: System>(step: &Step, got: &Map<String, Value>) -> Option<(String, Option<Value>, Option<Value>)> {
    for (key, expected) in &step.expected {
        if got.get(key) != Some(expected) && !S::leaves_out(step, key) {
            return Some((key.clone(), Some(expected.clone()), got.get(key).cloned()));
        }
    }
    if S::REPORTS_TRANSITIONS && !step.expected.contains_key("tr") && got.contains_key("tr") {
        return Some(("tr".to_owned(), None, got.get("tr").cloned()));
    }
    None
}

/// How a system's traces went.
#[derive(Default)]
pub struct Summary {
    pub name: &'static str,
    /// Traces that must agree (`fenced_same` is not `false`), and those of them that do.
    pub must: usize,
    pub agree: usize,
    /// Of `fenced_same: false`: those that part just where a late result was dropped, or a lease counted, and those that agree too.
    pub dropped: usize,
    pub lease: usize,
    pub anyway: usize,
    pub steps: usize,
    pub faults: Vec<String>,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Summary { name, must, agree, dropped, lease, anyway, steps, .. } = self;
        write!(f, "{name:<10} {agree:>3} of {must:>3} traces agree")?;
        if dropped + lease + anyway > 0 {
            write!(
                f,
                "; of the others {dropped} part at a late result that is dropped here, {lease} at a lease, {anyway} agree too"
            )?;
        }
        write!(f, "; {steps} steps in all")
    }
}

/// Replays `public` and `edges` of a system.
pub fn replay_all<S: System>() -> Summary {
    let mut summary = Summary { name: S::NAME, ..Summary::default() };
    for trace in traces(S::NAME) {
        let id = &trace.id;
        summary.steps += trace.steps.len();
        let difference = replay::<S>(&trace);
        if trace.fenced_same != Some(false) {
            summary.must += 1;
            match difference {
                None => summary.agree += 1,
                Some(difference) => summary.faults.push(format!("{id}: {difference}")),
            }
            continue;
        }
        match difference {
            None => summary.anyway += 1,
            Some(Difference { step, fenced: Some((at, Fenced::Dropped)), .. }) if step == at => summary.dropped += 1,
            Some(Difference { step, fenced: Some((at, Fenced::Lease)), .. }) if step == at => summary.lease += 1,
            Some(difference) => summary.faults.push(format!("{id} parts for another reason: {difference}")),
        }
    }
    summary
}

/// Fails with every trace that went wrong.
pub fn check<S: System>() {
    let summary = replay_all::<S>();
    println!("{summary}");
    assert!(summary.faults.is_empty(), "{summary}\n{} faults:\n{}", summary.faults.len(), summary.faults.join("\n"));
}

/// `public.jsonl`, and `edges.jsonl` where there is one.
pub fn traces(system: &str) -> Vec<Trace> {
    let mut rows = rows::<Value>(system, "public");
    if path(system, "edges").exists() {
        rows.extend(self::rows(system, "edges"));
    }
    rows.into_iter()
        .map(|row| Trace {
            id: row["id"].as_str().expect("id").to_owned(),
            fenced_same: row.get("fenced_same").map(|v| v.as_bool().expect("a boolean")),
            policy: row["policy"].clone(),
            t0: row["t0"].as_u64().expect("t0"),
            steps: row["steps"].as_array().expect("steps").iter().cloned().map(Step::parse).collect(),
        })
        .collect()
}

/// The rows of a flat table.
pub fn rows<T: DeserializeOwned>(system: &str, table: &str) -> Vec<T> {
    let path = path(system, table);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"))).collect()
}

fn path(system: &str, table: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "..", "vectors", system].iter().collect::<PathBuf>().join(format!("{table}.jsonl"))
}
