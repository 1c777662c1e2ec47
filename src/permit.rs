//! What an admission gives: a permit that is fenced by its generation, or a refusal.

use crate::Time;

/// One admitted call. Give it back to [`Snapshot::settle`](crate::Snapshot::settle) with the outcome.
///
/// ```
/// use tripcurve::{Admission, CallOutcome, Policy, Snapshot, Time};
/// let (policy, now) = (Policy::default(), Time::from_millis(0));
/// let mut circuit = Snapshot::closed(&policy, 7, now);
/// let Admission::Admitted(permit) = circuit.admit(&policy, 1, now).admission else { panic!("a closed circuit admits") };
/// circuit.reset(&policy, now); // a new episode
/// assert!(!circuit.settle(&policy, permit, CallOutcome::failure(), now).counted); // the old result changes nothing
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Permit {
    /// The episode it belongs to; a result of an earlier one changes nothing.
    pub generation: u32,
    /// Ordinary call or probe.
    pub kind: PermitKind,
    /// Names a probe; 0 for an ordinary call.
    pub id: u32,
    /// When it was given.
    pub admitted_at: Time,
}

/// Ordinary call or probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PermitKind {
    /// A call of a closed circuit.
    Allowed,
    /// A call of a half-open circuit: it holds a slot until it is settled or its lease ends, and it decides.
    Probe,
}

/// The answer to "may I call?".
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Admission {
    /// Go ahead, and settle the permit.
    Admitted(Permit),
    /// Shadow mode: go ahead although an acting circuit would refuse. The outcome never counts, so there is nothing to settle.
    Shadowed(Refusal),
    /// Do not call.
    Refused(Refusal),
}

/// Why not, and when to ask again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// What refuses.
    pub reason: RefusalReason,
    /// The earliest instant at which a call may be let in; `None`: not known (held open, or probes without a lease).
    pub retry_at: Option<Time>,
}

/// What refuses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RefusalReason {
    /// The circuit is open.
    Open,
    /// An operator holds it open; time does not end it.
    HeldOpen,
    /// Half-open, and every probe slot is taken.
    ProbesBusy,
}
