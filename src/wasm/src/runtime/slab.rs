//! Circuits by handle; a handle is used again once its circuit is gone.

use alloc::boxed::Box;
use alloc::vec::Vec;

use tripcurve::{Policy, Snapshot, Tally};

use super::state::Proposal;

/// One circuit and the token that is out for it.
pub(super) struct Circuit {
    pub(super) snapshot: Snapshot,
    pub(super) policy: &'static Policy,
    /// For ordinary calls of this generation; those of its probes are later ones.
    pub(super) token: i32,
    /// Where it is counted with others.
    pub(super) tally: Option<Box<Tally>>,
    /// An outcome that is to be in the store before it holds here.
    pub(super) proposal: Option<Box<Proposal>>,
}

/// Boxed, so that a hundred thousand circuits never have to be copied to make room for one more.
pub(super) struct Slab {
    circuits: Vec<Option<Box<Circuit>>>,
    free: Vec<u32>,
}

impl Slab {
    pub(super) const fn new() -> Slab {
        Slab { circuits: Vec::new(), free: Vec::new() }
    }

    pub(super) fn insert(&mut self, circuit: Circuit) -> u32 {
        let circuit = Some(Box::new(circuit));
        let free = self.free.pop().unwrap_or(u32::MAX);
        if let Some(slot) = self.circuits.get_mut(free as usize) {
            *slot = circuit;
            return free;
        }
        self.circuits.push(circuit);
        self.circuits.len() as u32 - 1
    }

    pub(super) fn get(&mut self, handle: u32) -> Option<&mut Circuit> {
        self.circuits.get_mut(handle as usize)?.as_deref_mut()
    }

    pub(super) fn remove(&mut self, handle: u32) {
        if self.circuits.get_mut(handle as usize).and_then(Option::take).is_some() {
            self.free.push(handle);
        }
    }
}
