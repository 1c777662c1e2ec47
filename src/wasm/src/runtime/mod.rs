//! The numeric runtime: circuits in a slab, named by handles; numbers in, numbers out; nothing is allocated to admit or settle.
//!
//! A token is a serial of the whole module, shifted left, with bit 0 set for a probe. Every generation of every circuit has its own
//! for ordinary calls and every probe has a later one, so a late one never fits another circuit, generation or slot.
//! What does not fit into the returned number (transitions, inspections, policies) goes through one block of numbers: `scratch`.

mod slab;
mod state;

use alloc::boxed::Box;
use alloc::string::String;

use tripcurve::{
    Admission, CallOutcome, Counts, Held, Inspection, Met, Permit, PermitKind, Policy, RefusalReason, Snapshot, State,
    StoredProblem, Tally, Time, Transition, Verdict,
};
use wasm_bindgen::prelude::wasm_bindgen;

use slab::Circuit;
use state::{with, Proposal};

/// A transition waits in the queue.
const MOVED: u32 = 1;
/// The result was stale: it changed nothing.
const STALE: u32 = 2;
/// A refusal in shadow mode is the refusal less this.
const SHADOW: i32 = 16;
/// No such circuit: let the call through uncounted.
const NO_CIRCUIT: i32 = -100;

/// Where the block of numbers lies in memory.
#[wasm_bindgen]
pub fn scratch() -> *const f64 {
    with(|runtime| runtime.scratch.as_ptr())
}

/// Parses the policy in the block: its handle, or −1 − slot, and the block says what is wrong.
#[wasm_bindgen]
pub fn policy() -> i32 {
    with(|runtime| match runtime.policy() {
        Ok(handle) => handle as i32,
        Err(refused) => {
            runtime.answer(refused.why);
            -1 - refused.slot
        }
    })
}

/// Makes a closed circuit.
#[wasm_bindgen]
pub fn create(policy: u32, now: f64) -> u32 {
    with(|runtime| runtime.create(policy, now))
}

/// Forgets a circuit. Results that arrive later are stale.
#[wasm_bindgen]
pub fn drop(handle: u32) {
    with(|runtime| runtime.circuits.remove(handle));
}

/// The token of every call of this closed circuit, or −1: ask `admit`.
#[wasm_bindgen]
pub fn closed_token(handle: u32) -> i32 {
    with(|runtime| match runtime.circuits.get(handle) {
        Some(circuit) if circuit.snapshot.admits_without_asking() => circuit.token,
        _ => -1,
    })
}

/// A token, or why not: −1 open, −2 held open, −3 probes busy; in shadow mode 16 less, and the call goes ahead.
#[wasm_bindgen]
pub fn admit(handle: u32, now: f64) -> i32 {
    with(|runtime| {
        let Some(visit) = &mut runtime.visit(handle, now) else { return NO_CIRCUIT };
        if visit.circuit.snapshot.admits_without_asking() {
            return visit.circuit.token;
        }
        // Time first, by itself: a generation that it begins has its token before its first probe has one.
        let due = visit.circuit.snapshot.at(visit.circuit.policy, visit.now);
        visit.finish(due.as_ref());
        let admitted = visit.circuit.snapshot.admit(visit.circuit.policy, visit.probe_id(), visit.now);
        match admitted.admission {
            Admission::Admitted(Permit { kind: PermitKind::Allowed, .. }) => visit.circuit.token,
            Admission::Admitted(Permit { kind: PermitKind::Probe, .. }) => visit.probe_token(),
            Admission::Refused(refusal) => code(refusal.reason),
            Admission::Shadowed(refusal) => code(refusal.reason) - SHADOW,
        }
    })
}

/// The earliest instant at which a refused call may be let in; NaN: not known.
#[wasm_bindgen]
pub fn retry_at(handle: u32, now: f64) -> f64 {
    with(|runtime| {
        let Some(visit) = &mut runtime.visit(handle, now) else { return f64::NAN };
        let now = visit.circuit.snapshot.inspect(visit.circuit.policy, visit.now);
        number(match now.state {
            State::Closed => None,
            State::Open => now.until,
            State::HalfOpen => now.next_change_at,
        })
    })
}

/// Outcome 0 success, 1 failure, else ignored; duration NaN: not measured; now NaN: the last one seen. Returns `MOVED | STALE`.
#[wasm_bindgen]
pub fn settle(handle: u32, token: i32, outcome: u32, duration: f64, now: f64) -> u32 {
    if outcome == 0 && with(|runtime| runtime.succeed(handle, token, duration, now)) {
        return 0;
    }
    settle_until(handle, token, outcome, duration, now, f64::NAN)
}

/// The same with the instant the service asked for.
#[wasm_bindgen]
pub fn settle_until(handle: u32, token: i32, outcome: u32, duration: f64, now: f64, until: f64) -> u32 {
    with(|runtime| {
        // The hot path: nothing larger than a number is moved until something happened.
        let Some(visit) = &mut runtime.visit_here(handle, now) else { return STALE };
        let Some(permit) = visit.permit(token) else { return STALE };
        let outcome = call_outcome(outcome, duration, until);
        let settled = visit.circuit.snapshot.settle(visit.circuit.policy, permit, outcome, visit.now);
        match &settled.transition {
            Some(moved) => visit.finish(Some(moved)),
            None if settled.stale => STALE,
            None => 0,
        }
    })
}

/// An outcome without a permit, judged in whatever state the circuit is.
#[wasm_bindgen]
pub fn record(handle: u32, outcome: u32, duration: f64, until: f64, now: f64) -> u32 {
    with(|runtime| {
        let Some(visit) = &mut runtime.visit(handle, now) else { return STALE };
        let recorded = visit.circuit.snapshot.record(visit.circuit.policy, call_outcome(outcome, duration, until), visit.now);
        recorded.transitions.iter().fold(0, |bits, moved| bits | visit.finish(moved.as_ref()))
    })
}

/// State 0 closed, 1 open, else half-open; until NaN: the policy's open time.
#[wasm_bindgen]
pub fn force(handle: u32, state: u32, until: f64, now: f64) -> u32 {
    let state = match state {
        0 => State::Closed,
        1 => State::Open,
        _ => State::HalfOpen,
    };
    command(handle, now, &|circuit, policy, now| circuit.force(policy, state, state::instant(until), now))
}

/// 0 open, else closed.
#[wasm_bindgen]
pub fn hold(handle: u32, held: u32, now: f64) -> u32 {
    let held = if held == 0 { Held::Open } else { Held::Closed };
    command(handle, now, &|circuit, policy, now| circuit.hold(policy, held, now))
}

/// Ends a hold.
#[wasm_bindgen]
pub fn release(handle: u32, now: f64) -> u32 {
    command(handle, now, &|circuit, policy, now| circuit.release(policy, now))
}

/// Closed and empty.
#[wasm_bindgen]
pub fn reset(handle: u32, now: f64) -> u32 {
    command(handle, now, &|circuit, policy, now| circuit.reset(policy, now))
}

/// An operator's command. Rare, so one way for all of them: not a copy of it each.
fn command(handle: u32, now: f64, verb: &dyn Fn(&mut Snapshot, &Policy, Time) -> Option<Transition>) -> u32 {
    with(|runtime| {
        let Some(visit) = &mut runtime.visit(handle, now) else { return 0 };
        let moved = verb(&mut visit.circuit.snapshot, visit.circuit.policy, visit.now);
        visit.finish(moved.as_ref())
    })
}

/// Puts the next transition into the block: handle, from, to, reason, at, generation, calls, failures, slow, until. 0: none is left.
#[wasm_bindgen]
pub fn next_transition() -> u32 {
    with(|runtime| {
        let Some((handle, moved)) = runtime.next_transition() else { return 0 };
        runtime.answer([
            handle.into(),
            f64::from(moved.from as u8),
            f64::from(moved.to as u8),
            f64::from(moved.reason as u8),
            moved.at.as_millis() as f64,
            moved.generation.into(),
            moved.counts.calls.into(),
            moved.counts.failures.into(),
            moved.counts.slow.into(),
            number(moved.until),
        ]);
        1
    })
}

/// Puts into the block: state, held, admits, since, until, calls, failures, slow, probes in flight, probe successes, rejected,
/// generation, next change, the reason that decided (NaN: none), when, calls, failures, slow.
#[wasm_bindgen]
pub fn inspect(handle: u32, now: f64) {
    with(|runtime| {
        let Some(visit) = &mut runtime.visit(handle, now) else { return };
        let found: Inspection = visit.circuit.snapshot.inspect(visit.circuit.policy, visit.now);
        let held = match found.held {
            None => 0u8,
            Some(Held::Open) => 1,
            Some(Held::Closed) => 2,
        };
        let counts = found.why.map_or(Counts::default(), |why| why.counts);
        runtime.answer([
            f64::from(found.state as u8),
            held.into(),
            u8::from(found.admits).into(),
            found.since.as_millis() as f64,
            number(found.until),
            found.counts.calls.into(),
            found.counts.failures.into(),
            found.counts.slow.into(),
            found.probes_in_flight.into(),
            found.probe_successes.into(),
            found.rejected.into(),
            found.generation.into(),
            number(found.next_change_at),
            found.why.map_or(f64::NAN, |why| f64::from(why.reason as u8)),
            number(found.why.map(|why| why.at)),
            counts.calls.into(),
            counts.failures.into(),
            counts.slow.into(),
        ]);
    });
}

/// The stored text.
#[wasm_bindgen]
pub fn encode(handle: u32) -> String {
    with(|runtime| runtime.circuits.get(handle).map_or_else(String::new, |circuit| circuit.snapshot.encode()))
}

/// Replaces the circuit by a stored one: 0, or what was wrong (1 too long, 2 unknown version, 3 malformed, 4 clamped, 5 other window).
#[wasm_bindgen]
pub fn restore(handle: u32, text: &str, now: f64) -> u32 {
    with(|runtime| {
        let Some(visit) = &mut runtime.visit(handle, now) else { return 0 };
        let fresh = Snapshot::closed(visit.circuit.policy, visit.circuit.snapshot.seed(), visit.now);
        let (snapshot, problem) = Snapshot::decode(visit.circuit.policy, text, fresh);
        visit.replace(snapshot);
        match problem {
            None => 0,
            Some(StoredProblem::TooLong) => 1,
            Some(StoredProblem::UnknownVersion) => 2,
            Some(StoredProblem::Malformed) => 3,
            Some(StoredProblem::Clamped) => 4,
            Some(StoredProblem::OtherWindow) => 5,
        }
    })
}

/// Merges a stored text: `MOVED`, 2 theirs was newer, 4 mine is, 16 the text could not be read, 32 news of
/// the same verdict.
#[wasm_bindgen]
pub fn adopt(handle: u32, text: &str, now: f64) -> u32 {
    with(|runtime| {
        let Some(visit) = &mut runtime.visit(handle, now) else { return 0 };
        let Circuit { snapshot, policy, tally, .. } = visit.circuit;
        let met = match tally {
            Some(tally) => tally.meet(policy, snapshot, text, visit.now),
            None => Snapshot::read(policy, text)
                .map(|theirs| Met { adoption: snapshot.adopt(policy, theirs, visit.now), decided: None }),
        };
        let Ok(Met { adoption, decided }) = met else { return 16 };
        let concluded = snapshot.conclude(policy, visit.now);
        let bit = |condition: bool, bit: u32| if condition { bit } else { 0 };
        visit.finish(adoption.transition.as_ref())
            | visit.finish(decided.or(concluded).as_ref())
            | bit(adoption.adopted, 2)
            | bit(adoption.behind, 4)
            | bit(adoption.updated, 32)
    })
}

/// The circuit by another clock, which shows so many milliseconds more.
#[wasm_bindgen]
pub fn shift(handle: u32, by: f64) {
    with(|runtime| {
        if let Some(circuit) = runtime.circuits.get(handle) {
            circuit.snapshot.shift(by as i64);
        }
    });
}

/// From now on what it counts is counted together with others.
#[wasm_bindgen]
pub fn share_tally(handle: u32) {
    with(|runtime| {
        if let Some(circuit) = runtime.circuits.get(handle) {
            circuit.tally = Some(Box::new(Tally::of(&circuit.snapshot)));
        }
    });
}

/// The text to store; with a shared tally it carries what was counted here.
#[wasm_bindgen]
pub fn seal(handle: u32) -> String {
    with(|runtime| match runtime.circuits.get(handle) {
        Some(Circuit { snapshot, tally: Some(tally), .. }) => tally.seal(snapshot),
        Some(Circuit { snapshot, tally: None, .. }) => snapshot.encode(),
        None => String::new(),
    })
}

/// The text as it would be with this outcome of a probe; empty if the outcome is stale. It holds here once `commit` is called.
#[wasm_bindgen]
pub fn propose(handle: u32, token: i32, outcome: u32, duration: f64, now: f64, until: f64) -> String {
    with(|runtime| {
        let Some(visit) = &mut runtime.visit(handle, now) else { return String::new() };
        let Some(permit) = visit.permit(token) else { return String::new() };
        let outcome = call_outcome(outcome, duration, until);
        let settled = visit.circuit.snapshot.settled(visit.circuit.policy, permit, outcome, visit.now);
        let Some((then, transition)) = settled else { return String::new() };
        let text = then.encode();
        visit.circuit.proposal = Some(Box::new(Proposal { then, transition, generation: permit.generation }));
        text
    })
}

/// The store has what was proposed last: `MOVED | STALE`.
#[wasm_bindgen]
pub fn commit(handle: u32, now: f64) -> u32 {
    with(|runtime| {
        let Some(visit) = &mut runtime.visit(handle, now) else { return STALE };
        let Circuit { snapshot, policy, proposal, .. } = visit.circuit;
        let Some(proposal) = proposal.take().filter(|proposal| proposal.generation == snapshot.generation()) else { return STALE };
        let adopted = snapshot.adopt(policy, proposal.then, visit.now).transition;
        // The move is the probe's, not one that came from somebody else.
        visit.finish(adopted.and(proposal.transition).as_ref())
    })
}

fn call_outcome(outcome: u32, duration: f64, until: f64) -> CallOutcome {
    CallOutcome {
        verdict: match outcome {
            0 => Verdict::Success,
            1 => Verdict::Failure,
            _ => Verdict::Ignored,
        },
        duration_ms: state::length(duration),
        retry_at: state::instant(until),
    }
}

fn code(reason: RefusalReason) -> i32 {
    match reason {
        RefusalReason::Open => -1,
        RefusalReason::HeldOpen => -2,
        RefusalReason::ProbesBusy => -3,
    }
}

fn number(at: Option<tripcurve::Time>) -> f64 {
    at.map_or(f64::NAN, |at| at.as_millis() as f64)
}
