//! Probes of one half-open period. Every lease ends by itself: a probe whose tab was closed never blocks a circuit.

use alloc::vec::Vec;

use crate::Time;

/// One probe. One that gave its slot back is kept until its lease would have ended, so that a copy of the circuit that still shows it
/// in flight cannot bring it back; one that succeeded is kept as long as the period, so that successes of many participants add up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Probe {
    pub(crate) id: u32,
    /// `None`: it may hold its slot for ever.
    pub(crate) lease_until: Option<Time>,
    pub(crate) fate: Fate,
}

/// What became of a probe. Of two copies the later one holds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Fate {
    InFlight,
    Freed,
    Succeeded,
}

/// So many freed probes are kept; a period that ignores many outcomes must not grow without bound.
const MAX_FREED: u32 = 64;

/// The probes of one half-open period.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Probing {
    pub(crate) probes: Vec<Probe>,
    /// Successes that were recorded without a permit.
    pub(crate) recorded: u32,
}

impl Probing {
    /// Forgets whose lease is over, that instant included; it counts for nothing.
    pub(crate) fn drop_ended(&mut self, now: Time) {
        self.probes.retain(|probe| match probe.fate {
            Fate::Succeeded => true,
            fate => probe.lease_until.map_or(fate == Fate::InFlight, |end| now < end),
        });
    }

    pub(crate) fn successes(&self) -> u32 {
        self.recorded.saturating_add(self.number(Fate::Succeeded))
    }

    /// Gives a slot. The list is ordered by id, so that equal sets are equal lists.
    pub(crate) fn insert(&mut self, probe: Probe) {
        let at = self.probes.iter().position(|other| other.id > probe.id).unwrap_or(self.probes.len());
        self.probes.insert(at, probe);
    }

    pub(crate) fn in_flight(&self) -> u32 {
        self.number(Fate::InFlight)
    }

    /// How many came to this.
    #[inline(never)]
    pub(crate) fn number(&self, fate: Fate) -> u32 {
        self.probes.iter().filter(|probe| probe.fate == fate).count() as u32
    }

    #[inline(never)]
    fn find(&mut self, id: u32) -> Option<&mut Probe> {
        self.probes.iter_mut().find(|probe| probe.id == id)
    }

    /// Frees the slot of this probe; false when it does not hold one.
    pub(crate) fn free(&mut self, id: u32) -> bool {
        let first = self.probes.iter().position(|probe| probe.fate == Fate::Freed);
        let first = first.filter(|_| self.number(Fate::Freed) >= MAX_FREED);
        let Some(probe) = self.find(id).filter(|probe| probe.fate == Fate::InFlight) else { return false };
        probe.fate = Fate::Freed;
        if let Some(first) = first {
            self.probes.remove(first);
        }
        true
    }

    /// Counts a success: of this probe, which gave its slot back, or of none.
    pub(crate) fn succeed(&mut self, id: Option<u32>) {
        match id.and_then(|id| self.find(id)) {
            Some(probe) => *probe = Probe { lease_until: None, fate: Fate::Succeeded, ..*probe },
            None => self.recorded = self.recorded.saturating_add(1),
        }
    }

    /// Frees every slot.
    pub(crate) fn free_all(&mut self) {
        for probe in &mut self.probes {
            probe.fate = probe.fate.max(Fate::Freed);
        }
    }

    /// When the next slot becomes free by time alone.
    pub(crate) fn earliest_end(&self) -> Option<Time> {
        self.probes.iter().filter(|probe| probe.fate == Fate::InFlight).filter_map(|probe| probe.lease_until).min()
    }

    /// Takes over what another copy of the same period knows; true when something was new. The order of merging does not matter.
    pub(crate) fn merge(&mut self, other: &Probing) -> bool {
        let mut news = other.recorded > self.recorded;
        self.recorded = self.recorded.max(other.recorded);
        for theirs in &other.probes {
            match self.find(theirs.id) {
                None => {
                    news = true;
                    self.insert(*theirs);
                }
                Some(mine) => {
                    news |= theirs.fate > mine.fate;
                    mine.fate = mine.fate.max(theirs.fate);
                    mine.lease_until =
                        if mine.fate == Fate::Succeeded { None } else { sooner(mine.lease_until, theirs.lease_until) };
                }
            }
        }
        news
    }

    /// The clock was corrected by so much, and no lease lasts longer than a new one would.
    pub(crate) fn fit(&mut self, by: i64, latest: Option<Time>) {
        for probe in self.probes.iter_mut().filter(|probe| probe.fate != Fate::Succeeded) {
            probe.lease_until = sooner(probe.lease_until.map(|end| end.moved(by)), latest);
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
