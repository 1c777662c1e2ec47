//! Probes of one half-open period. Every lease ends by itself: a probe whose tab was closed never blocks a circuit.

use alloc::vec::Vec;

use crate::Time;

/// One probe. A settled one is kept until its lease would have ended, so that a copy of the circuit that still shows it in flight
/// cannot bring it back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Probe {
    pub(crate) id: u32,
    /// `None`: it may hold its slot for ever.
    pub(crate) lease_until: Option<Time>,
    pub(crate) settled: bool,
}

/// So many settled probes are kept; a period that ignores many outcomes must not grow without bound.
const MAX_SETTLED: usize = 64;

/// The probes in flight and the successes so far.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Probing {
    pub(crate) probes: Vec<Probe>,
    pub(crate) successes: u32,
}

impl Probing {
    /// Forgets whose lease is over, that instant included; it counts for nothing.
    pub(crate) fn drop_ended(&mut self, now: Time) {
        self.probes.retain(|probe| probe.lease_until.map_or(!probe.settled, |end| now < end));
    }

    /// Gives a slot. The list is ordered by id, so that equal sets are equal lists.
    pub(crate) fn insert(&mut self, probe: Probe) {
        let at = self.probes.iter().position(|other| other.id > probe.id).unwrap_or(self.probes.len());
        self.probes.insert(at, probe);
    }

    pub(crate) fn in_flight(&self) -> u32 {
        self.probes.iter().filter(|probe| !probe.settled).count() as u32
    }

    /// Frees the slot of this probe; false when it does not hold one.
    pub(crate) fn settle(&mut self, id: u32) -> bool {
        let mut settled = self.probes.iter().filter(|probe| probe.settled).map(|probe| probe.id);
        if let (Some(first), MAX_SETTLED) = (settled.next(), settled.count() + 1) {
            self.probes.retain(|probe| probe.id != first);
        }
        let Some(probe) = self.probes.iter_mut().find(|probe| probe.id == id && !probe.settled) else { return false };
        probe.settled = true;
        true
    }

    /// Frees every slot.
    pub(crate) fn settle_all(&mut self) {
        for probe in &mut self.probes {
            probe.settled = true;
        }
    }

    /// When the next slot becomes free by time alone.
    pub(crate) fn earliest_end(&self) -> Option<Time> {
        self.probes.iter().filter(|probe| !probe.settled).filter_map(|probe| probe.lease_until).min()
    }

    /// Takes over what another copy of the same period knows; true when something was new. The order of merging does not matter.
    pub(crate) fn merge(&mut self, other: &Probing) -> bool {
        let mut news = other.successes > self.successes;
        self.successes = self.successes.max(other.successes);
        for theirs in &other.probes {
            match self.probes.iter_mut().find(|mine| mine.id == theirs.id) {
                None => {
                    news = true;
                    self.insert(*theirs);
                }
                Some(mine) => {
                    news |= theirs.settled && !mine.settled;
                    mine.settled |= theirs.settled;
                    mine.lease_until = sooner(mine.lease_until, theirs.lease_until);
                }
            }
        }
        news
    }

    /// The clock was corrected by so much, and no lease lasts longer than a new one would.
    pub(crate) fn fit(&mut self, by: u64, latest: Option<Time>) {
        for probe in &mut self.probes {
            probe.lease_until = sooner(probe.lease_until.map(|end| end.before(by)), latest);
        }
    }
}

/// The earlier end of two leases, of which either may have none.
fn sooner(one: Option<Time>, other: Option<Time>) -> Option<Time> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
