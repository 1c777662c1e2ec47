//! What the module remembers: policies, circuits, transitions that wait, serials, and entropy.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cell::UnsafeCell;

use tripcurve::{Permit, PermitKind, Policy, Snapshot, Tally, Time, Transition};

use super::slab::{Circuit, Slab};
use crate::slots::{self, Refused, SLOTS};

pub(super) struct Runtime {
    pub(super) scratch: [f64; SLOTS],
    policies: Vec<&'static Known>,
    pub(super) circuits: Slab,
    /// In order, with the handles of their circuits.
    transitions: Vec<(u32, Transition)>,
    tokens: Tokens,
}

/// A policy and the numbers it was made of.
struct Known {
    numbers: [f64; SLOTS],
    policy: Policy,
}

struct OneThread(UnsafeCell<Runtime>);

// SAFETY: WebAssembly without threads has one thread.
unsafe impl Sync for OneThread {}

static RUNTIME: OneThread = OneThread(UnsafeCell::new(Runtime {
    scratch: [0.0; SLOTS],
    policies: Vec::new(),
    circuits: Slab::new(),
    transitions: Vec::new(),
    tokens: Tokens { serial: 0, entropy: None },
}));

pub(super) fn with<T>(f: impl FnOnce(&mut Runtime) -> T) -> T {
    // SAFETY: one thread, and no export runs within another: none of them calls back into code that could call an export.
    f(unsafe { &mut *RUNTIME.0.get() })
}

impl Runtime {
    /// The handle of the policy in the block, or what is wrong with it. The same numbers get the same one, which lives as long as the
    /// module.
    pub(super) fn policy(&mut self) -> Result<usize, Refused> {
        let numbers = self.scratch;
        let is_same = |known: &&Known| known.numbers.iter().zip(&numbers).all(|(a, b)| a.to_bits() == b.to_bits());
        if let Some(handle) = self.policies.iter().position(is_same) {
            return Ok(handle);
        }
        let policy = slots::parse(&numbers)?;
        self.policies.push(Box::leak(Box::new(Known { numbers, policy })));
        Ok(self.policies.len() - 1)
    }

    pub(super) fn create(&mut self, policy: u32, now: f64) -> u32 {
        let Some(Known { policy, .. }) = self.policies.get(policy as usize) else { return u32::MAX };
        // The seed is drawn by the first verb: where a worker starts there is no randomness yet.
        let snapshot = Snapshot::closed(policy, 0, instant(now).unwrap_or_default());
        self.circuits.insert(Circuit { snapshot, policy, token: self.tokens.next(false), tally: None, proposal: None })
    }

    /// One verb on one circuit; a bad `now` is the last one seen.
    #[inline(never)]
    pub(super) fn visit(&mut self, handle: u32, now: f64) -> Option<Visit<'_>> {
        self.visit_here(handle, now)
    }

    /// The same for the hot path, where the answer must not go through memory.
    #[inline(always)]
    pub(super) fn visit_here(&mut self, handle: u32, now: f64) -> Option<Visit<'_>> {
        let circuit = self.circuits.get(handle)?;
        if circuit.snapshot.seed() == 0 {
            circuit.snapshot.set_seed(self.tokens.seed());
        }
        let now = instant(now).unwrap_or(circuit.snapshot.last_seen());
        let generation = circuit.snapshot.generation();
        Some(Visit { circuit, now, handle, generation, transitions: &mut self.transitions, tokens: &mut self.tokens })
    }

    /// The call that most calls are: an ordinary one of this generation that succeeded, where all there is to do is to count it.
    pub(super) fn succeed(&mut self, handle: u32, token: i32, duration: f64, now: f64) -> bool {
        let Some(circuit) = self.circuits.get(handle) else { return false };
        let now = instant(now).unwrap_or(circuit.snapshot.last_seen());
        token == circuit.token
            && circuit.snapshot.seed() != 0
            && circuit.snapshot.count_success(circuit.policy, length(duration), now)
    }

    pub(super) fn next_transition(&mut self) -> Option<(u32, Transition)> {
        (!self.transitions.is_empty()).then(|| self.transitions.remove(0))
    }

    pub(super) fn answer<const N: usize>(&mut self, numbers: [f64; N]) {
        if let Some(block) = self.scratch.first_chunk_mut() {
            *block = numbers;
        }
    }
}

/// The circuit as it will be once the store has it.
pub(super) struct Proposal {
    pub(super) then: Snapshot,
    pub(super) transition: Option<Transition>,
    pub(super) generation: u32,
}

/// What a verb on one circuit needs, borrowed apart.
pub(super) struct Visit<'a> {
    pub(super) circuit: &'a mut Circuit,
    pub(super) now: Time,
    handle: u32,
    generation: u32,
    transitions: &'a mut Vec<(u32, Transition)>,
    tokens: &'a mut Tokens,
}

impl Visit<'_> {
    /// After a verb: queues the transition, and voids the tokens of the generation that ended. Returns `MOVED` or 0.
    pub(super) fn finish(&mut self, transition: Option<&Transition>) -> u32 {
        if self.circuit.snapshot.generation() != self.generation {
            self.generation = self.circuit.snapshot.generation();
            self.circuit.token = self.tokens.next(false);
        }
        let Some(transition) = transition else { return 0 };
        self.transitions.push((self.handle, *transition));
        super::MOVED
    }

    /// Whatever the generation of the new one is, the tokens of the old one are void.
    pub(super) fn replace(&mut self, snapshot: Snapshot) {
        self.circuit.tally = self.circuit.tally.take().map(|_| Box::new(Tally::of(&snapshot)));
        self.circuit.snapshot = snapshot;
        self.circuit.token = self.tokens.next(false);
    }

    /// The permit a token of this generation stands for.
    #[inline(always)]
    pub(super) fn permit(&self, token: i32) -> Option<Permit> {
        let later = token.wrapping_sub(self.circuit.token) & i32::MAX;
        let (kind, id) = match token & 1 {
            0 if later == 0 => (PermitKind::Allowed, 0),
            1 if later < 1 << 30 => (PermitKind::Probe, self.tokens.probe_id(token)),
            _ => return None,
        };
        Some(Permit { generation: self.generation, kind, id, admitted_at: self.now })
    }

    /// What a probe let in now would be named. Its token has to be drawn if it is.
    pub(super) fn probe_id(&self) -> u32 {
        self.tokens.probe_id(self.tokens.coming(true))
    }

    pub(super) fn probe_token(&mut self) -> i32 {
        self.tokens.next(true)
    }
}

/// Serials of 30 bits: one for the ordinary calls of each generation, one for each probe. They come round after a thousand million.
struct Tokens {
    serial: u32,
    /// Drawn once from the host, so that seeds and probes are named apart from those of other modules.
    entropy: Option<u32>,
}

impl Tokens {
    fn next(&mut self, probe: bool) -> i32 {
        let token = self.coming(probe);
        self.serial = token as u32 >> 1;
        token
    }

    fn coming(&self, probe: bool) -> i32 {
        let serial = (self.serial + 1) & 0x3fff_ffff;
        (serial << 1 | u32::from(probe)) as i32
    }

    fn probe_id(&self, token: i32) -> u32 {
        self.entropy.unwrap_or(0).wrapping_add(token as u32)
    }

    /// Where a worker starts the host refuses to draw: 0, and the next verb tries again.
    fn seed(&mut self) -> u32 {
        self.entropy = self.entropy.or_else(|| getrandom::u32().ok());
        let Some(entropy) = self.entropy else { return 0 };
        entropy.wrapping_add((self.next(false) as u32).wrapping_mul(0x9e37_79b9)).max(1)
    }
}

/// An instant from the host's clock; `None` for what cannot be one (NaN, infinite, negative, beyond 2^53 − 1).
pub(super) fn instant(millis: f64) -> Option<Time> {
    if millis >= 0.0 {
        Time::checked(millis as u64)
    } else {
        None
    }
}

/// A duration, rounded up so that a fraction of a millisecond too long is too long; `None`: not measured.
pub(super) fn length(millis: f64) -> Option<u64> {
    if millis.is_nan() {
        return None;
    }
    let whole = millis as u64;
    Some(if (whole as f64) < millis { whole.saturating_add(1) } else { whole })
}
