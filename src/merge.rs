//! Sharing: how two copies of one circuit become one. Two registers travel, each ordered totally, so that merging is commutative,
//! associative and idempotent: the verdict, and the operator's hold.

use core::cmp::Ordering;

use crate::snapshot::Phase;
use crate::{Counts, Held, Policy, Reason, Snapshot, Time, Transition};

/// Names and orders a verdict. The clock is hybrid: what was decided after meeting a verdict beats it, whatever the clocks say.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Stamp {
    pub(crate) since: Time,
    pub(crate) by: u32,
}

impl Stamp {
    /// No verdict yet: loses to any.
    pub(crate) const NONE: Stamp = Stamp { since: Time::ZERO, by: 0 };

    pub(crate) fn next(self, by: u32, now: Time) -> Stamp {
        Stamp { since: now.max(self.since.after(1)), by }
    }
}

/// The operator's override as a register: the latest one wins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Hold {
    pub(crate) at: Time,
    pub(crate) by: u32,
    pub(crate) value: Option<Held>,
}

impl Hold {
    /// None yet: loses to any.
    pub(crate) const NONE: Hold = Hold { at: Time::ZERO, by: 0, value: None };

    pub(crate) fn next(self, value: Option<Held>, by: u32, now: Time) -> Hold {
        Hold { at: now.max(self.at.after(1)), by, value }
    }

    fn order(self) -> Order {
        let value = match self.value {
            None => 0,
            Some(Held::Closed) => 1,
            Some(Held::Open) => 2,
        };
        [self.at.as_millis(), self.by.into(), value, 0]
    }
}

/// Compared from the first number to the last.
type Order = [u64; 4];

/// What [`Snapshot::adopt`] found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Adoption {
    /// The visible change, with reason `adopted`.
    pub transition: Option<Transition>,
    /// Their verdict or hold was newer and holds here now.
    pub adopted: bool,
    /// The same verdict; their probes or successes were news.
    pub updated: bool,
    /// They lack a verdict or hold that we have.
    pub behind: bool,
    /// Behind, and ours is an open verdict that is not due: worth writing again. Nothing else ever is, or old verdicts would come back.
    pub repair: bool,
}

/// More than a day ahead: not a fast clock but a corrupt text.
#[inline(never)]
pub(crate) fn far_ahead(at: Time, now: Time) -> bool {
    at.since(now) > 86_400_000
}

impl Snapshot {
    /// Takes over what another copy of this circuit decided later: its verdict, and its hold. A newer one begins an episode here (the
    /// permits of the last one are void, the window is empty); the same one again only updates the probes and fences nothing.
    ///
    /// Verdicts are ordered by the instant they were made, open before closed, the later `until`, the participant. A circuit that has
    /// met no verdict loses to any; if the first one it meets is closed it keeps its window and its calls in flight.
    ///
    /// ```
    /// use tripcurve::{Policy, Snapshot, State, Time};
    /// let (policy, at) = (Policy::default(), Time::from_millis);
    /// let mut here = Snapshot::closed(&policy, 1, at(0));
    /// let mut there = Snapshot::closed(&policy, 2, at(0));
    /// there.force(&policy, State::Open, None, at(10));
    /// assert!(here.adopt(&policy, there, at(20)).adopted);
    /// assert_eq!(here.state(), State::Open);
    /// ```
    pub fn adopt(&mut self, policy: &Policy, theirs: Snapshot, now: Time) -> Adoption {
        let now = self.clock(policy, now);
        let mut found = Adoption::default();
        if far_ahead(theirs.stamp.since.max(theirs.hold.at), now) && now > Time::ZERO {
            return Adoption { behind: true, ..found };
        }
        let before = self.standing();
        let mut entered = false;
        match theirs.order().cmp(&self.order()) {
            Ordering::Greater => {
                found.adopted = true;
                let (closed, closing) = (matches!(self.phase, Phase::Closed), matches!(theirs.phase, Phase::Closed));
                entered = !(closed && closing && self.stamp == Stamp::NONE);
                self.stamp = theirs.stamp;
                self.why = theirs.why;
                self.level = theirs.level;
                if closed || closing {
                    self.rejected = 0;
                }
                self.phase = theirs.phase;
            }
            Ordering::Less => found.behind = true,
            Ordering::Equal => match (&mut self.phase, &theirs.phase) {
                (Phase::HalfOpen { probing, .. }, Phase::HalfOpen { probing: news, .. }) => found.updated = probing.merge(news),
                (Phase::Open { .. }, Phase::HalfOpen { .. }) => {
                    found.updated = true;
                    entered = self.hold.value.is_none(); // open has no calls in flight to fence; held closed has, and keeps them
                    self.phase = theirs.phase;
                }
                (Phase::Closed | Phase::Open { .. } | Phase::HalfOpen { .. }, _) => {}
            },
        }
        match theirs.hold.order().cmp(&self.hold.order()) {
            Ordering::Greater => {
                found.adopted = true;
                self.hold = theirs.hold;
                entered |= self.held() != before.1;
            }
            Ordering::Less => found.behind = true,
            Ordering::Equal => {}
        }
        if entered {
            self.begin(now);
            self.since = theirs.since;
            self.fit(policy, 0, now);
            let counts = self.why.map_or(Counts::default(), |(_, counts)| counts);
            found.transition = self.moved(before, Reason::Adopted, counts, now);
        }
        if let (Some(_), Phase::HalfOpen { probing, .. }) = (self.held(), &mut self.phase) {
            probing.free_all(); // whoever holds a circuit waits for no probe
        }
        found.repair = found.behind && self.until().is_some_and(|until| now < until);
        found
    }

    fn order(&self) -> Order {
        let (open, until) = match &self.phase {
            Phase::Closed => (0, Time::ZERO),
            Phase::Open { until } | Phase::HalfOpen { until, .. } => (1, *until),
        };
        [self.stamp.since.as_millis(), open, until.as_millis(), self.stamp.by.into()]
    }
}
