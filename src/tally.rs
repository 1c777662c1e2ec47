//! One tally of many participants: what each has counted since the last exchange is added to what they share, each outcome once.
//!
//! Nothing is queued. A participant remembers the window it shared last, so what it counted since is the difference, whatever the
//! window is: a call costs no more than it does alone.

use alloc::string::String;
use alloc::vec::Vec;

use crate::codec;
use crate::policy::JudgeOn;
use crate::snapshot::Phase;
use crate::window::Window;
use crate::{Adoption, Policy, Snapshot, StoredProblem, Time, Transition};

/// What one participant of a shared tally remembers beside its circuit.
///
/// ```
/// use tripcurve::{CallOutcome, Policy, PolicyOptions, Rate, Snapshot, State, Tally, Time};
/// let policy = Policy::parse(PolicyOptions { failures: Some(2), failure_rate: Rate::Off, ..Default::default() })?;
/// let at = Time::from_millis;
/// let (mut here, mut there) = (Snapshot::closed(&policy, 1, at(0)), Snapshot::closed(&policy, 2, at(0)));
/// let (mut ours, mut theirs) = (Tally::of(&here), Tally::of(&there));
///
/// here.record(&policy, CallOutcome::failure(), at(10));
/// there.record(&policy, CallOutcome::failure(), at(20));
/// let stored = ours.seal(&here); // compare-and-set stores it
/// let met = theirs.meet(&policy, &mut there, &stored, at(30)).unwrap();
/// assert_eq!(met.decided.unwrap().to, State::Open); // half of the failures each
/// # Ok::<(), tripcurve::InvalidPolicy>(())
/// ```
#[derive(Clone, Debug)]
pub struct Tally {
    /// The window that was shared last, and the generation it belongs to.
    base: Window,
    generation: u32,
    /// The window as it was sealed, until a text tells whether it arrived.
    sealed: Option<Window>,
    /// The number of the last batch sealed here.
    batch: u32,
    /// The last batch of each participant in the text met last, the latest at the end.
    batches: Vec<Batch>,
}

/// A participant's last batch that is in a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Batch {
    pub(crate) by: u32,
    pub(crate) number: u32,
}

/// Participants whose last batch is kept. A write of unknown fate is counted twice only if so many others write before it is read again.
pub(crate) const MAX_BATCHES: usize = 64;

/// What [`Tally::meet`] found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Met {
    /// What came of the verdicts.
    pub adoption: Adoption,
    /// With what was counted here the shared tally opened the circuit.
    pub decided: Option<Transition>,
}

impl Tally {
    /// Of a circuit that has shared nothing yet: all it has counted is its own.
    pub fn of(circuit: &Snapshot) -> Tally {
        let mut base = circuit.window.clone();
        base.clear(circuit.since);
        Tally { base, generation: circuit.generation(), sealed: None, batch: 0, batches: Vec::new() }
    }

    /// The text to store, with what was counted here, under a number by which it is found again. If it is not known whether it was
    /// stored, send the same text again, or read first; do not seal again before.
    pub fn seal(&mut self, circuit: &Snapshot) -> String {
        self.follow(circuit);
        self.batch += 1;
        self.sealed = Some(circuit.window.clone());
        codec::with_batches(circuit.encode(), &self.batches, Batch { by: circuit.seed(), number: self.batch })
    }

    /// Takes a stored text: its verdict as [`Snapshot::adopt`] does, and its tally, to which is added what was counted here since the
    /// last one, if both are of one closed episode. Also to be called with a text that was sealed here once it is stored.
    pub fn meet(&mut self, policy: &Policy, circuit: &mut Snapshot, text: &str, now: Time) -> Result<Met, StoredProblem> {
        let theirs = Snapshot::read(policy, text)?;
        let (stamp, mut window) = (theirs.stamp, theirs.window.clone());
        window.fit(0, now); // a participant's clock may be fast
        let both_closed = |circuit: &Snapshot| circuit.stamp == stamp && matches!(circuit.phase, Phase::Closed);
        let closed = both_closed(&theirs);
        self.follow(circuit);
        let adoption = circuit.adopt(policy, theirs, now);
        self.follow(circuit);
        if !closed || !both_closed(circuit) {
            return Ok(Met { adoption, decided: None });
        }
        self.batches = codec::batches(text);
        if self.batches.iter().any(|batch| batch.by == circuit.seed() && batch.number >= self.batch) {
            if let Some(arrived) = self.sealed.take() {
                self.base = arrived;
            }
        }
        let now = circuit.last_seen();
        circuit.window.roll(now);
        let mut own = |mine: &mut Window| {
            let mut shared = window.clone();
            shared.roll(now);
            let own = shared.absorb(mine, &mut self.base);
            *mine = shared;
            own
        };
        if let Some(sealed) = &mut self.sealed {
            own(sealed);
        }
        let counted = own(&mut circuit.window);
        self.base = window;
        let judged = counted.failures > 0 || counted.slow > 0 || (policy.options.judge_on == JudgeOn::Any && counted.calls > 0);
        let decided = if judged { circuit.judge(policy, now) } else { None };
        Ok(Met { adoption, decided })
    }

    /// A new episode has counted nothing, and what the last one sent is of no interest.
    fn follow(&mut self, circuit: &Snapshot) {
        if self.generation != circuit.generation() {
            *self = Tally { batch: self.batch, ..Tally::of(circuit) };
        }
    }
}
