//! What the module remembers: policies, circuits, transitions that wait, serials, and entropy.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::cell::UnsafeCell;

use tripcurve::{Permit, PermitKind, Policy, Snapshot, Time, Transition};

use super::slab::{Circuit, Slab};
use crate::slots::SLOTS;

pub(super) struct Runtime {
    pub(super) scratch: [f64; SLOTS],
    policies: Vec<Policy>,
    pub(super) circuits: Slab,
    pub(super) transitions: VecDeque<(u32, Transition)>,
    tokens: Tokens,
    entropy: Entropy,
}

struct OneThread(UnsafeCell<Runtime>);

// SAFETY: WebAssembly without threads has one thread.
unsafe impl Sync for OneThread {}

static RUNTIME: OneThread = OneThread(UnsafeCell::new(Runtime {
    scratch: [0.0; SLOTS],
    policies: Vec::new(),
    circuits: Slab::new(),
    transitions: VecDeque::new(),
    tokens: Tokens { serial: 0 },
    entropy: Entropy { state: None },
}));

pub(super) fn with<T>(f: impl FnOnce(&mut Runtime) -> T) -> T {
    // SAFETY: one thread, and no export runs within another: none of them calls back into code that could call an export.
    f(unsafe { &mut *RUNTIME.0.get() })
}

impl Runtime {
    /// Its number; equal policies have one.
    pub(super) fn policy(&mut self, policy: Policy) -> usize {
        self.policies.iter().position(|known| *known == policy).unwrap_or_else(|| {
            self.policies.push(policy);
            self.policies.len() - 1
        })
    }

    pub(super) fn create(&mut self, policy: u32, now: f64) -> u32 {
        let Some(parsed) = self.policies.get(policy as usize) else { return u32::MAX };
        // The seed is drawn by the first verb: where a worker starts there is no randomness yet.
        let snapshot = Snapshot::closed(parsed, 0, instant(now).unwrap_or_default());
        self.circuits.insert(Circuit { snapshot, policy, token: self.tokens.next(false), probes: Vec::new() })
    }

    /// One verb on one circuit; a bad `now` is the last one seen.
    pub(super) fn visit(&mut self, handle: u32, now: f64) -> Option<Visit<'_>> {
        let circuit = self.circuits.get_mut(handle)?;
        let policy = self.policies.get(circuit.policy as usize)?;
        if circuit.snapshot.seed() == 0 {
            circuit.snapshot.set_seed(self.entropy.next().max(1));
        }
        let now = instant(now).unwrap_or(circuit.snapshot.last_seen());
        let generation = circuit.snapshot.generation();
        let (transitions, tokens, entropy) = (&mut self.transitions, &mut self.tokens, &mut self.entropy);
        Some(Visit { circuit, policy, now, handle, generation, transitions, tokens, entropy })
    }

    pub(super) fn answer<const N: usize>(&mut self, numbers: [f64; N]) {
        for (slot, number) in self.scratch.iter_mut().zip(numbers) {
            *slot = number;
        }
    }
}

/// What a verb on one circuit needs, borrowed apart.
pub(super) struct Visit<'a> {
    pub(super) circuit: &'a mut Circuit,
    pub(super) policy: &'a Policy,
    pub(super) now: Time,
    handle: u32,
    generation: u32,
    transitions: &'a mut VecDeque<(u32, Transition)>,
    tokens: &'a mut Tokens,
    entropy: &'a mut Entropy,
}

impl Visit<'_> {
    /// After a verb: queues the transition, and voids the tokens of the generation that ended. Returns `MOVED` or 0.
    pub(super) fn finish(&mut self, transition: Option<Transition>) -> u32 {
        if self.circuit.snapshot.generation() != self.generation {
            self.generation = self.circuit.snapshot.generation();
            self.circuit.token = self.tokens.next(false);
            self.circuit.probes.clear();
        }
        let Some(transition) = transition else { return 0 };
        self.transitions.push_back((self.handle, transition));
        super::MOVED
    }

    pub(super) fn replace(&mut self, snapshot: Snapshot) {
        self.circuit.snapshot = snapshot;
        self.generation = self.circuit.snapshot.generation().wrapping_add(1); // whatever the new one is, the tokens are void
        self.finish(None);
    }

    /// The permit a token stands for. A probe's token is good once.
    pub(super) fn permit(&mut self, token: i32) -> Option<Permit> {
        let (kind, id) = if token & 1 == 0 {
            if token != self.circuit.token {
                return None;
            }
            (PermitKind::Allowed, 0)
        } else {
            let at = self.circuit.probes.iter().position(|(probe, _)| *probe == token)?;
            (PermitKind::Probe, self.circuit.probes.swap_remove(at).1)
        };
        Some(Permit { generation: self.generation, kind, id, admitted_at: self.now })
    }

    /// 30 random bits for a probe, if this admission may become one.
    pub(super) fn probe_id(&mut self) -> u32 {
        if self.circuit.snapshot.admits_without_asking() {
            0
        } else {
            self.entropy.next() >> 2
        }
    }

    /// A token for this probe. Those of probes whose lease is over are forgotten.
    pub(super) fn probe_token(&mut self, id: u32) -> i32 {
        let snapshot = &self.circuit.snapshot;
        self.circuit.probes.retain(|(_, id)| snapshot.is_probing(*id));
        let token = self.tokens.next(true);
        self.circuit.probes.push((token, id));
        token
    }
}

/// Serials of 30 bits; they come round after a thousand million generations and probes.
struct Tokens {
    serial: u32,
}

impl Tokens {
    fn next(&mut self, probe: bool) -> i32 {
        self.serial = (self.serial + 1) & 0x3fff_ffff;
        ((self.serial << 1) | u32::from(probe)) as i32
    }
}

/// Numbers for seeds and probe ids: drawn once from the host, then stretched (SplitMix64), so that a probe costs no trip to the host.
struct Entropy {
    state: Option<u64>,
}

impl Entropy {
    fn next(&mut self) -> u32 {
        let state = match self.state {
            Some(state) => state,
            // Refused where a worker starts; tried again by the next verb.
            None => match getrandom::u64() {
                Ok(drawn) => drawn,
                Err(_) => return 1,
            },
        };
        let state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.state = Some(state);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 16) as u32
    }
}

/// An instant from the host's clock; `None` for what cannot be one (NaN, infinite, negative, beyond 2^53 − 1).
pub(super) fn instant(millis: f64) -> Option<Time> {
    (0.0..=Time::MAX.as_millis() as f64).contains(&millis).then(|| Time::from_millis(millis as u64))
}

/// A duration, rounded up so that a fraction of a millisecond too long is too long; `None`: not measured.
pub(super) fn length(millis: f64) -> Option<u64> {
    if millis.is_nan() {
        return None;
    }
    let whole = millis as u64;
    Some(if (whole as f64) < millis { whole.saturating_add(1) } else { whole })
}
