//! Circuits by handle. In chunks, so that a hundred thousand circuits never have to be copied to make room for one more.

use alloc::vec::Vec;

use tripcurve::Snapshot;

/// One circuit and the tokens that are out for it.
pub(super) struct Circuit {
    pub(super) snapshot: Snapshot,
    pub(super) policy: u32,
    /// For ordinary calls of this generation.
    pub(super) token: i32,
    /// For the probes this module let in: token and probe id.
    pub(super) probes: Vec<(i32, u32)>,
}

#[derive(Default)]
pub(super) struct Slab {
    chunks: Vec<Vec<Option<Circuit>>>,
    free: Vec<u32>,
}

const CHUNK: usize = 64;

impl Slab {
    pub(super) const fn new() -> Slab {
        Slab { chunks: Vec::new(), free: Vec::new() }
    }

    pub(super) fn insert(&mut self, circuit: Circuit) -> u32 {
        if let Some(handle) = self.free.pop() {
            if let Some(slot) = self.slot(handle) {
                *slot = Some(circuit);
            }
            return handle;
        }
        let index = match self.chunks.last() {
            Some(chunk) if chunk.len() < CHUNK => self.chunks.len() - 1,
            _ => {
                self.chunks.push(Vec::with_capacity(CHUNK));
                self.chunks.len() - 1
            }
        };
        let Some(chunk) = self.chunks.get_mut(index) else { return u32::MAX };
        chunk.push(Some(circuit));
        (index * CHUNK + chunk.len() - 1) as u32
    }

    pub(super) fn get(&self, handle: u32) -> Option<&Circuit> {
        self.chunks.get(handle as usize / CHUNK)?.get(handle as usize % CHUNK)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, handle: u32) -> Option<&mut Circuit> {
        self.slot(handle)?.as_mut()
    }

    pub(super) fn remove(&mut self, handle: u32) {
        if self.slot(handle).and_then(Option::take).is_some() {
            self.free.push(handle);
        }
    }

    fn slot(&mut self, handle: u32) -> Option<&mut Option<Circuit>> {
        self.chunks.get_mut(handle as usize / CHUNK)?.get_mut(handle as usize % CHUNK)
    }
}
