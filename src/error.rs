//! What can be wrong with an argument: every error names the field and its bound.

use core::fmt;

/// Why a policy was refused: the option, and the bound it broke.
///
/// ```
/// use tripcurve::{Field, Policy, PolicyOptions, Problem};
/// let error = Policy::parse(PolicyOptions { probe_successes: 0, ..Default::default() }).unwrap_err();
/// assert_eq!((error.field, error.problem), (Field::ProbeSuccesses, Problem::OutOfRange { min: 1, max: 1000 }));
/// assert_eq!(error.to_string(), "probe_successes must be a whole number from 1 to 1000");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InvalidPolicy {
    /// The option at fault.
    pub field: Field,
    /// What is wrong with it.
    pub problem: Problem,
}

/// What is wrong with an option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Problem {
    /// Outside its bounds, which include both ends. For shares and factors the bounds are those of the value.
    OutOfRange {
        /// The smallest value accepted.
        min: u64,
        /// The largest value accepted.
        max: u64,
    },
    /// Two options exclude each other: `failures` and `failure_rate`.
    Excluded,
    /// `buckets` must divide the window's length, or `buckets` would not be equally long.
    MustDivide {
        /// The length to divide.
        ms: u64,
    },
    /// Nothing would ever open the circuit: give `failure_rate`, `failures` or `slow_ms`.
    NeverOpens,
}

/// An option of a policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)] // each is documented where it is set: `PolicyOptions` and `WindowOptions`
pub enum Field {
    WindowKind,
    WindowMs,
    WindowBuckets,
    WindowLast,
    WindowWithinMs,
    FailureRate,
    Failures,
    MinimumCalls,
    SlowMs,
    SlowRate,
    JudgeOn,
    OpenMs,
    Backoff,
    Jitter,
    MaxOpenMs,
    ProbeLimit,
    ProbeSuccesses,
    ProbeLeaseMs,
    Shadow,
}

impl Field {
    /// The option's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Field::WindowKind => "window.kind",
            Field::WindowMs => "window.ms",
            Field::WindowBuckets => "window.buckets",
            Field::WindowLast => "window.last",
            Field::WindowWithinMs => "window.within_ms",
            Field::FailureRate => "failure_rate",
            Field::Failures => "failures",
            Field::MinimumCalls => "minimum_calls",
            Field::SlowMs => "slow_ms",
            Field::SlowRate => "slow_rate",
            Field::JudgeOn => "judge_on",
            Field::OpenMs => "open_ms",
            Field::Backoff => "backoff",
            Field::Jitter => "jitter",
            Field::MaxOpenMs => "max_open_ms",
            Field::ProbeLimit => "probe_limit",
            Field::ProbeSuccesses => "probe_successes",
            Field::ProbeLeaseMs => "probe_lease_ms",
            Field::Shadow => "shadow",
        }
    }
}

impl fmt::Display for InvalidPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let field = self.field.as_str();
        match self.problem {
            Problem::OutOfRange { min, max } => write!(f, "{field} must be a whole number from {min} to {max}"),
            Problem::Excluded => write!(f, "{field} cannot be combined with failure_rate: give one of them"),
            Problem::MustDivide { ms } => write!(f, "{field} must divide window.ms ({ms})"),
            Problem::NeverOpens => write!(f, "{field} is missing: nothing would ever open this circuit"),
        }
    }
}

impl core::error::Error for InvalidPolicy {}

/// Why a key was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InvalidKey {
    /// More than [`Key::MAX_BYTES`](crate::Key::MAX_BYTES).
    TooLong,
    /// The byte at this index is not allowed there.
    Character {
        /// Its index in bytes.
        at: usize,
    },
    /// Empty, or it ends with a separator.
    Unfinished,
}

impl fmt::Display for InvalidKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InvalidKey::TooLong => write!(f, "a key has at most {} bytes", crate::Key::MAX_BYTES),
            InvalidKey::Character { at } => {
                write!(f, "byte {at} of the key: a-z and 0-9 are allowed, joined by a single . _ or -")
            }
            InvalidKey::Unfinished => write!(f, "a key ends with a-z or 0-9"),
        }
    }
}

impl core::error::Error for InvalidKey {}

/// What was wrong with a stored text. The circuit goes on regardless: see [`Snapshot::decode`](crate::Snapshot::decode).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StoredProblem {
    /// Longer than [`Snapshot::MAX_TEXT_BYTES`](crate::Snapshot::MAX_TEXT_BYTES); it was not read.
    TooLong,
    /// Written by a version this one does not know; it was not read.
    UnknownVersion,
    /// Not a stored circuit; a fresh closed one took its place.
    Malformed,
    /// Impossible counts (more failures than calls, say) were clamped.
    Clamped,
    /// It was counted by another kind or size of window; state, leases and hold are kept, the tally is not.
    OtherWindow,
}

impl StoredProblem {
    /// A stable code: `too_long`, `unknown_version`, `malformed`, `clamped`, `other_window`.
    pub const fn as_str(self) -> &'static str {
        match self {
            StoredProblem::TooLong => "too_long",
            StoredProblem::UnknownVersion => "unknown_version",
            StoredProblem::Malformed => "malformed",
            StoredProblem::Clamped => "clamped",
            StoredProblem::OtherWindow => "other_window",
        }
    }
}

impl fmt::Display for StoredProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
