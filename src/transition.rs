//! The words for what a circuit is and what it did: states, reasons, counts, transitions, inspections.

use crate::Time;

/// Where a circuit stands.
///
/// ```
/// assert_eq!(tripcurve::State::HalfOpen.as_str(), "half_open");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Calls go through and are counted.
    Closed,
    /// Calls are refused until an instant.
    Open,
    /// A few calls go through to find out.
    HalfOpen,
}

impl State {
    /// `closed`, `open`, `half_open`: the same strings in Rust, JSON, labels and events.
    pub const fn as_str(self) -> &'static str {
        match self {
            State::Closed => "closed",
            State::Open => "open",
            State::HalfOpen => "half_open",
        }
    }
}

/// An operator's override that time does not end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Held {
    /// Refuses everything.
    Open,
    /// Lets everything in and counts, but never opens.
    Closed,
}

/// Why a circuit moved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// The share of failures reached `failure_rate`.
    FailureRate,
    /// The number of failures reached `failures`.
    FailureCount,
    /// The share of slow calls reached `slow_rate`.
    SlowRate,
    /// The open time was over when somebody asked.
    OpenElapsed,
    /// A probe failed.
    ProbeFailed,
    /// A probe succeeded too slowly.
    ProbeSlow,
    /// Enough probes succeeded.
    ProbesSucceeded,
    /// By hand: [`Snapshot::force`](crate::Snapshot::force).
    Forced,
    /// By hand: [`Snapshot::hold`](crate::Snapshot::hold).
    Held,
    /// By hand: [`Snapshot::release`](crate::Snapshot::release).
    Released,
    /// By hand: [`Snapshot::reset`](crate::Snapshot::reset).
    Reset,
    /// Somebody else decided: [`Snapshot::adopt`](crate::Snapshot::adopt).
    Adopted,
}

impl Reason {
    /// The reasons of decisions: a circuit that is due, or that adopts, decides nothing. The order is that of their marks in the stored text.
    pub const DECISIONS: [Reason; 10] = [
        Reason::FailureRate,
        Reason::FailureCount,
        Reason::SlowRate,
        Reason::ProbeFailed,
        Reason::ProbeSlow,
        Reason::ProbesSucceeded,
        Reason::Forced,
        Reason::Held,
        Reason::Released,
        Reason::Reset,
    ];
}

/// The last decision about a circuit: it travels with the verdict, so that whoever adopts it knows as well.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Why {
    /// The reason of the transition.
    pub reason: Reason,
    /// When it was decided.
    pub at: Time,
    /// What decided it: the window that tripped, or the probes of the half-open period.
    pub counts: Counts,
}

/// What a window holds, or what decided a transition.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Calls that succeeded or failed.
    pub calls: u32,
    /// Those that failed.
    pub failures: u32,
    /// Those that took longer than `slow_ms`, failed or not.
    pub slow: u32,
}

/// One change of state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transition {
    /// The state left.
    pub from: State,
    /// The state entered; the same as `from` when only a hold began or ended.
    pub to: State,
    /// Why.
    pub reason: Reason,
    /// When it was decided.
    pub at: Time,
    /// The generation it began.
    pub generation: u32,
    /// What decided it: the window that tripped, or the probes of the half-open period; when adopted, of whoever decided.
    pub counts: Counts,
    /// When probing may begin, if the new state is open.
    pub until: Option<Time>,
}

/// What holds at an instant. Made by [`Snapshot::inspect`](crate::Snapshot::inspect), which changes nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Inspection {
    /// The state; an open circuit that is due reads `HalfOpen`.
    pub state: State,
    /// The operator's override, if any.
    pub held: Option<Held>,
    /// Would a call be let in now?
    pub admits: bool,
    /// When this state began.
    pub since: Time,
    /// When probing may begin; open only.
    pub until: Option<Time>,
    /// The window's counts; zero unless closed.
    pub counts: Counts,
    /// Probes that hold a slot now.
    pub probes_in_flight: u32,
    /// Probes of this half-open period that succeeded.
    pub probe_successes: u32,
    /// Calls refused since the outage began.
    pub rejected: u32,
    /// The generation.
    pub generation: u32,
    /// The next instant at which time alone changes what this says; `None`: never.
    pub next_change_at: Option<Time>,
    /// What was decided last, here or by whoever shares the circuit; `None`: nothing yet, or an older text did not tell.
    pub why: Option<Why>,
}
