//! A circuit breaker as a pure state machine: no clock, no I/O, no randomness, no dependencies. Time is an argument.
//!
//! A trip curve is the chart on every electrical breaker that says how much overload opens it, and when. Here a [`Policy`] is that
//! curve and a [`Snapshot`] is one circuit at one moment.
//!
//! ```text
//!                 the window trips (failure_rate, failure_count, slow_rate)
//!            ┌────────────────────────────────────────────────────────────────┐
//!            │                                                                ▼
//!        ┌────────┐   probes_succeeded   ┌───────────┐    open_elapsed    ┌────────┐
//!        │ closed │◀─────────────────────│ half_open │◀───────────────────│  open  │
//!        └────────┘                      └───────────┘                    └────────┘
//!                                              │  probe_failed, probe_slow    ▲
//!                                              └──────────────────────────────┘
//! ```
//!
//! Where to read on: a policy is parsed in `policy.rs`; outcomes are remembered in `window/`, one file a kind; the machine is
//! `snapshot.rs`; the probes of a half-open period are `probes.rs`; the stored text is `codec.rs`; two copies of one circuit are
//! merged in `merge.rs`, and participants that count together do so in `tally.rs`. Everything else is words: `time.rs`, `share.rs`, `outcome.rs`, `permit.rs`, `transition.rs`, `key.rs`, `error.rs`.
//!
//! ```
//! use tripcurve::{Admission, CallOutcome, Policy, Snapshot, Time};
//!
//! let policy = Policy::default(); // half of at least 10 calls within 30 s opens it for 30 s
//! let mut circuit = Snapshot::closed(&policy, 0x5eed, Time::from_millis(0));
//!
//! let now = Time::from_millis(1_000); // from your clock
//! match circuit.admit(&policy, 1, now).admission {
//!     Admission::Admitted(permit) => {
//!         // call the service, then say how it went
//!         let settled = circuit.settle(&policy, permit, CallOutcome::success(), now);
//!         assert!(settled.counted);
//!     }
//!     Admission::Shadowed(_) => { /* call the service; there is nothing to settle */ }
//!     Admission::Refused(refusal) => println!("try again at {:?}", refusal.retry_at),
//! }
//! ```
#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;

mod codec;
mod error;
mod key;
mod merge;
mod outcome;
mod permit;
mod policy;
mod probes;
mod share;
mod snapshot;
mod tally;
mod time;
mod transition;
mod window;

pub use error::{Field, InvalidKey, InvalidPolicy, Problem, StoredProblem};
pub use key::Key;
pub use merge::Adoption;
pub use outcome::{CallOutcome, Verdict};
pub use permit::{Admission, Permit, PermitKind, Refusal, RefusalReason};
pub use policy::{JudgeOn, Lease, Policy, PolicyOptions, Rate};
pub use share::{Factor, Share};
pub use snapshot::{Admitted, Recorded, Settled, Snapshot};
pub use tally::{Met, Tally};
pub use time::Time;
pub use transition::{Counts, Held, Inspection, Reason, State, Transition, Why};
pub use window::WindowOptions;
