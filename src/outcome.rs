//! How a call went.

use crate::Time;

/// What a call says about the guarded service.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The service did its work.
    Success,
    /// The service failed.
    Failure,
    /// It says nothing about the service: a cancelled call, a caller's own mistake. Frees a probe's slot, counts nowhere.
    Ignored,
}

/// The outcome of one call: a [`Verdict`], how long the call took, and when the service asked to be called again.
///
/// ```
/// use tripcurve::{CallOutcome, Time};
/// let slow = CallOutcome::success().took(2_500);
/// let busy = CallOutcome::failure().retry_at(Time::from_millis(60_000)); // Retry-After
/// assert_eq!((slow.duration_ms, busy.duration_ms), (Some(2_500), None));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CallOutcome {
    /// What the call says about the service.
    pub verdict: Verdict,
    /// How long it took; `None`: not measured, and therefore never slow.
    pub duration_ms: Option<u64>,
    /// When the service asked to be called again. Used only if this failure opens or reopens the circuit: the later of it and the
    /// ordinary end of the open time, at most `max_open_ms` away.
    pub retry_at: Option<Time>,
}

impl CallOutcome {
    /// A success that was not measured.
    pub const fn success() -> CallOutcome {
        CallOutcome::of(Verdict::Success)
    }

    /// A failure that was not measured.
    pub const fn failure() -> CallOutcome {
        CallOutcome::of(Verdict::Failure)
    }

    /// An outcome that counts nowhere.
    pub const fn ignored() -> CallOutcome {
        CallOutcome::of(Verdict::Ignored)
    }

    /// Any verdict, not measured.
    pub const fn of(verdict: Verdict) -> CallOutcome {
        CallOutcome { verdict, duration_ms: None, retry_at: None }
    }

    /// The same outcome of a call that took `duration_ms`.
    pub const fn took(self, duration_ms: u64) -> CallOutcome {
        CallOutcome { duration_ms: Some(duration_ms), ..self }
    }

    /// The same outcome with the instant the service asked for.
    pub const fn retry_at(self, at: Time) -> CallOutcome {
        CallOutcome { retry_at: Some(at), ..self }
    }
}
