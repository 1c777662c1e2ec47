//! Any input at all: nothing panics, and what comes out is a circuit that can be used.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use tripcurve::{
    Admission, CallOutcome, Counts, Factor, JudgeOn, Key, Lease, Permit, PermitKind, Policy, PolicyOptions, Rate, Share, Snapshot,
    State, StoredProblem, Time, Verdict, WindowOptions,
};

use crate::cases;
use crate::given::{forgotten_after, held, policy, script, state};
use crate::lockstep::{at, Pair};

/// What hurts: nothing, next to nothing, both sides of every bound.
fn edge() -> impl Strategy<Value = u64> {
    const MAX: u64 = (1 << 53) - 1;
    prop_oneof![
        0u64..=3,
        proptest::sample::select(vec![10_000, 10_001, 300_000, 1_000_000_000, u32::MAX.into(), MAX - 1, MAX, MAX + 1, u64::MAX]),
        any::<u64>(),
    ]
}

fn edge32() -> impl Strategy<Value = u32> {
    prop_oneof![4 => 0u32..=12, 1 => edge().prop_map(|value| value as u32)]
}

fn any_options() -> impl Strategy<Value = PolicyOptions> {
    let length = || proptest::option::of(edge());
    let window = prop_oneof![
        edge().prop_map(|ms| WindowOptions::Fixed { ms }),
        (edge(), proptest::option::of(edge32())).prop_map(|(ms, buckets)| WindowOptions::Time { ms, buckets }),
        (edge32(), length()).prop_map(|(last, within_ms)| WindowOptions::Calls { last, within_ms }),
        length().prop_map(|within_ms| WindowOptions::Consecutive { within_ms }),
    ];
    let share = || (edge32(), edge32()).prop_map(|(a, b)| Share::new(a, b));
    let rate =
        prop_oneof![Just(Rate::Default), Just(Rate::Off), share().prop_map(|share| share.map_or(Rate::Default, Rate::Share)),];
    let judging = (rate, proptest::option::of(edge32()), proptest::option::of(edge32()), length(), share(), any::<bool>());
    let factor = (edge(), edge32()).prop_map(|(a, b)| Factor::new(a, b).unwrap_or(Factor::TWO));
    let opening = (edge(), factor, share(), length());
    let lease = prop_oneof![Just(Lease::Default), Just(Lease::Never), edge().prop_map(Lease::Ms)];
    let probing = (proptest::option::of(edge32()), edge32(), lease, any::<bool>());
    (window, judging, opening, probing).prop_map(
        |(
            window,
            (failure_rate, failures, minimum_calls, slow_ms, slow_rate, any),
            (open_ms, backoff, jitter, max_open_ms),
            (probe_limit, probe_successes, probe_lease, shadow),
        )| PolicyOptions {
            window,
            failure_rate,
            failures,
            minimum_calls,
            slow_ms,
            slow_rate: slow_rate.unwrap_or(Share::ALL),
            judge_on: if any { JudgeOn::Any } else { JudgeOn::Failure },
            open_ms,
            backoff,
            jitter,
            max_open_ms,
            probe_limit,
            probe_successes,
            probe_lease,
            shadow,
        },
    )
}

#[derive(Clone, Copy, Debug)]
enum Call {
    Admit(u32),
    Settle(Permit, CallOutcome),
    SettleLast(CallOutcome),
    Record(CallOutcome),
    At,
    Force(State, Option<Time>),
    Hold(tripcurve::Held),
    Release,
    Reset,
    Inspect,
    Reload,
    Adopt(u64),
}

fn any_call() -> impl Strategy<Value = Call> {
    let time = || edge().prop_map(Time::from_millis);
    let verdict = prop_oneof![Just(Verdict::Success), Just(Verdict::Failure), Just(Verdict::Ignored)];
    let outcome = (verdict, proptest::option::of(edge()), proptest::option::of(time()))
        .prop_map(|(verdict, duration_ms, retry_at)| CallOutcome { verdict, duration_ms, retry_at });
    let outcome = outcome.boxed();
    let permit = (edge32(), any::<bool>(), edge32(), time()).prop_map(|(generation, probe, id, admitted_at)| Permit {
        generation,
        kind: if probe { PermitKind::Probe } else { PermitKind::Allowed },
        id,
        admitted_at,
    });
    prop_oneof![
        4 => edge32().prop_map(Call::Admit),
        2 => (permit, outcome.clone()).prop_map(|(permit, outcome)| Call::Settle(permit, outcome)),
        4 => outcome.clone().prop_map(Call::SettleLast),
        2 => outcome.prop_map(Call::Record),
        1 => Just(Call::At),
        1 => (state(), proptest::option::of(time())).prop_map(|(state, until)| Call::Force(state, until)),
        1 => held().prop_map(Call::Hold),
        1 => Just(Call::Release),
        1 => Just(Call::Reset),
        1 => Just(Call::Inspect),
        1 => Just(Call::Reload),
        1 => edge().prop_map(Call::Adopt),
    ]
}

fn perform(policy: &Policy, circuit: &mut Snapshot, calls: &[(u64, Call)]) {
    let mut last = None;
    for (t, call) in calls {
        let now = at(*t);
        match *call {
            Call::Admit(id) => {
                if let Admission::Admitted(permit) = circuit.admit(policy, id, now).admission {
                    last = Some(permit);
                }
            }
            Call::Settle(permit, outcome) => drop(circuit.settle(policy, permit, outcome, now)),
            Call::SettleLast(outcome) => drop(last.map(|permit| circuit.settle(policy, permit, outcome, now))),
            Call::Record(outcome) => drop(circuit.record(policy, outcome, now)),
            Call::At => drop(circuit.at(policy, now)),
            Call::Force(state, until) => drop(circuit.force(policy, state, until, now)),
            Call::Hold(held) => drop(circuit.hold(policy, held, now)),
            Call::Release => drop(circuit.release(policy, now)),
            Call::Reset => drop(circuit.reset(policy, now)),
            Call::Inspect => drop(circuit.inspect(policy, now)),
            Call::Reload => *circuit = Snapshot::decode(policy, &circuit.encode(), circuit.clone()).0,
            Call::Adopt(seen) => {
                let mut other = circuit.clone();
                other.set_seed(9);
                other.force(policy, State::Open, None, at(seen));
                circuit.adopt(policy, other, now);
            }
        }
    }
}

/// It has a text, its text is its own, nothing in it lies ahead, others are heard, and left alone it lets a call in unless somebody
/// holds it open.
fn is_usable(policy: &Policy, mut circuit: Snapshot, now: Time) {
    let now = now.max(at(1)); // 0 is no clock yet: what lies ahead of it is only cut by the first real instant
    circuit.at(policy, now);
    let text = circuit.encode();
    assert!(text.len() <= Snapshot::MAX_TEXT_BYTES && text.is_ascii());
    let (again, problem) = Snapshot::decode(policy, &text, Snapshot::closed(policy, 0, Time::ZERO));
    assert_eq!((again.encode(), problem), (text, None));

    let options = policy.options();
    let seen = circuit.last_seen();
    assert!(circuit.inspect(policy, seen).since <= seen && circuit.window_since() <= seen);
    if seen < at(1 << 52) {
        // Before time ends.
        if let Some(ms) = forgotten_after(options.window) {
            assert_eq!(circuit.inspect(policy, seen.after(ms)).counts, Counts::default(), "{ms} ms after all that was counted");
        }
        let mut other = Snapshot::closed(policy, 8, seen);
        other.adopt(policy, circuit.clone(), seen);
        other.force(policy, State::Closed, None, seen.after(1));
        assert!(circuit.clone().adopt(policy, other, seen.after(1)).adopted, "{circuit:?} hears nobody");
    }

    circuit.release(policy, now);
    if let Lease::Ms(lease_ms) = options.probe_lease {
        let later = circuit.last_seen().after(options.max_open_ms.unwrap().max(lease_ms));
        assert!(matches!(circuit.clone().admit(policy, 1, later).admission, Admission::Admitted(_)), "{circuit:?} at {later:?}");
    }
    circuit.reset(policy, now);
    assert!(matches!(circuit.admit(policy, 1, now).admission, Admission::Admitted(_)));
}

fn key_char() -> impl Strategy<Value = char> {
    prop_oneof![
        6 => proptest::sample::select(vec!['a', 'z', '0', '9']),
        2 => proptest::sample::select(vec!['.', '_', '-']),
        1 => proptest::sample::select(vec!['A', 'é', ' ', '`', '{', '/', ':']),
    ]
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn a_policy_is_refused_or_is_its_own_options(options in any_options()) {
        match Policy::parse(options) {
            Ok(policy) => prop_assert_eq!(Policy::parse(policy.options()), Ok(policy)),
            Err(error) => prop_assert!(error.to_string().starts_with(error.field.as_str())),
        }
    }

    #[test]
    fn no_input_panics(
        policy in policy(),
        seed: u32,
        t0 in edge(),
        calls in proptest::collection::vec((edge(), any_call()), 0..60),
    ) {
        let mut circuit = Snapshot::closed(&policy, seed, at(t0));
        perform(&policy, &mut circuit, &calls);
        is_usable(&policy, circuit, at(t0));
    }

    /// Lengths of 2^53 − 1 and such.
    #[test]
    fn no_policy_makes_an_input_panic(
        options in proptest::collection::vec(any_options(), 6),
        seed: u32,
        calls in proptest::collection::vec((edge(), any_call()), 0..30),
    ) {
        for policy in options.into_iter().filter_map(|options| Policy::parse(options).ok()) {
            let mut circuit = Snapshot::closed(&policy, seed, at(0));
            perform(&policy, &mut circuit, &calls);
            circuit.encode();
        }
    }

    #[test]
    fn a_key_is_segments_joined_by_single_separators(chars in proptest::collection::vec(key_char(), 0..12), repeat in 1usize..12) {
        let text: String = std::iter::repeat_n(chars, repeat).flatten().collect();
        let segment = |part: &str| !part.is_empty() && part.chars().all(|c| matches!(c, 'a'..='z' | '0'..='9'));
        let legal = text.len() <= 87 && text.split(['.', '_', '-']).all(segment);
        prop_assert_eq!(Key::parse(&text).is_ok(), legal);
    }

    #[test]
    fn a_share_is_compared_as_in_the_large(
        part: u32,
        whole: u32,
        numerator in 1u32..=Share::MAX_DENOMINATOR,
        denominator in 1u32..=Share::MAX_DENOMINATOR,
    ) {
        let share = Share::new(numerator, denominator);
        prop_assert_eq!(share.is_some(), numerator <= denominator);
        let Some(share) = share else { return Ok(()) };
        let exact = u128::from(part) * u128::from(denominator) >= u128::from(whole) * u128::from(numerator);
        prop_assert_eq!(share.met_by(part, whole), exact);
    }
}

// -- hostile texts --

#[derive(Clone, Debug)]
enum Damage {
    Cut(usize),
    Delete(usize),
    Insert(usize, char),
    Replace(usize, char),
    /// A whole field becomes something else.
    Field(usize, String),
    /// A run of characters, again and again.
    Repeat(usize, usize, usize),
    Append(String),
}

fn hostile_char() -> impl Strategy<Value = char> {
    let telling: Vec<char> = "019azAZCOHNXFTKBD.,;:!-_~\n\0é😀".chars().collect();
    prop_oneof![8 => proptest::sample::select(telling), 1 => any::<char>()]
}

fn hostile_field() -> impl Strategy<Value = String> {
    let chosen = [
        "",
        "0",
        "zzzzzzzzzzz",
        "2gosa7pa2gv",
        "2gosa7pa2gw",
        "1z141z3",
        "1z141z4",
        "00",
        "-1",
        "C",
        "O",
        "H",
        "OO",
        "N0.0",
        "O2gosa7pa2gv.0",
        "+1",
        "1e9",
        "99999999999999999999999999",
    ];
    prop_oneof![
        proptest::sample::select(chosen.map(str::to_owned).to_vec()),
        proptest::collection::vec(hostile_char(), 0..30).prop_map(|chars| chars.into_iter().collect()),
    ]
}

fn damage() -> impl Strategy<Value = Damage> {
    let place = any::<usize>;
    prop_oneof![
        place().prop_map(Damage::Cut),
        place().prop_map(Damage::Delete),
        (place(), hostile_char()).prop_map(|(at, c)| Damage::Insert(at, c)),
        (place(), hostile_char()).prop_map(|(at, c)| Damage::Replace(at, c)),
        (place(), hostile_field()).prop_map(|(at, text)| Damage::Field(at, text)),
        (place(), place(), 2usize..200).prop_map(|(at, length, times)| Damage::Repeat(at, length, times)),
        hostile_field().prop_map(Damage::Append),
    ]
}

fn spoil(text: &str, damage: &Damage) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    let place = |at: &usize| at.checked_rem(chars.len()).unwrap_or(0);
    match damage {
        Damage::Cut(at) => chars.truncate(place(at)),
        Damage::Delete(at) if !chars.is_empty() => drop(chars.remove(place(at))),
        Damage::Delete(_) => {}
        Damage::Insert(at, c) => chars.insert(place(at), *c),
        Damage::Replace(at, c) if !chars.is_empty() => {
            let at = place(at);
            chars[at] = *c;
        }
        Damage::Replace(..) => {}
        Damage::Field(at, with) => {
            let mut fields: Vec<&str> = text.split(';').collect();
            let at = at % fields.len();
            fields[at] = with;
            return fields.join(";");
        }
        Damage::Repeat(at, length, times) => {
            let at = place(at);
            let end = chars.len().min(at + length % 20);
            let run = chars[at..end].repeat(*times);
            chars.splice(at..end, run);
        }
        Damage::Append(more) => chars.extend(more.chars()),
    }
    chars.into_iter().collect()
}

/// Reads it, in bounded time, and goes on with what came out.
fn read(policy: &Policy, text: &str, now: Time) -> Option<StoredProblem> {
    let fresh = Snapshot::closed(policy, 7, Time::ZERO);
    let begun = Instant::now();
    let (circuit, problem) = Snapshot::decode(policy, text, fresh.clone());
    let took = begun.elapsed();
    // Optimised it is well under 5 ms; this may be a debug build on a busy machine.
    assert!(took < Duration::from_millis(500), "{took:?} for {} bytes", text.len());
    let unread = matches!(problem, Some(StoredProblem::TooLong | StoredProblem::UnknownVersion | StoredProblem::Malformed));
    assert!(!unread || circuit == fresh);
    is_usable(policy, circuit, now);
    problem
}

proptest! {
    #![proptest_config(cases(512))]

    #[test]
    fn any_damage_to_a_text_gives_a_usable_circuit(
        policy in policy(),
        seed: u32,
        script in script(40),
        damage in proptest::collection::vec(damage(), 1..5),
        now in edge(),
    ) {
        let mut pair = Pair::new(policy, seed);
        pair.run(&script);
        let mut text = pair.core.encode();
        for damage in damage {
            text = spoil(&text, &damage);
            read(&policy, &text, at(now));
        }
    }

    #[test]
    fn any_bytes_give_a_usable_circuit(policy in policy(), bytes in proptest::collection::vec(any::<u8>(), 0..300), now in edge()) {
        let text = String::from_utf8_lossy(&bytes);
        for text in [text.to_string(), format!("1;{text}"), format!("1;C;0;0;0;0;0;;;;{text}")] {
            read(&policy, &text, at(now));
        }
    }

    /// A text of one policy is read under another: state, level, leases and hold are kept, a tally of another window is not.
    #[test]
    fn a_text_of_another_policy_gives_a_usable_circuit(policy in policy(), other in policy(), seed: u32, script in script(60)) {
        let mut pair = Pair::new(other, seed);
        pair.run(&script);
        let problem = read(&policy, &pair.core.encode(), at(pair.model.seen));
        prop_assert!(matches!(problem, None | Some(StoredProblem::OtherWindow | StoredProblem::Clamped)));
    }
}

#[test]
fn texts_that_are_far_too_long_cost_nothing() {
    let policy = Policy::default();
    let valid = Snapshot::closed(&policy, 1, at(1)).encode();
    for part in [valid.as_str(), "1;", ";", "A", "0", ".", ",", "zzzzzzzzzzz,"] {
        let text = format!("1;{}", part.repeat(5_000_000 / part.len()));
        assert_eq!(read(&policy, &text, at(1)), Some(StoredProblem::TooLong));
        let text: String = text.chars().take(Snapshot::MAX_TEXT_BYTES).collect();
        read(&policy, &text, at(1)); // the longest that is looked at
    }
}

/// The longest texts there are: 10,000 outcomes, 1000 probes, 100 buckets of large numbers.
#[test]
fn the_largest_circuits_fit_their_text() {
    let calls = |within_ms| PolicyOptions {
        window: WindowOptions::Calls { last: 10_000, within_ms },
        failures: Some(10_000),
        failure_rate: Rate::Off,
        slow_ms: Some(100),
        ..PolicyOptions::default()
    };
    let time = PolicyOptions {
        window: WindowOptions::Time { ms: 100_000, buckets: Some(100) },
        failures: Some(10_000),
        ..Default::default()
    };
    let probes = PolicyOptions { probe_limit: Some(1_000), probe_successes: 1_000, ..PolicyOptions::default() };
    let consecutive = PolicyOptions { window: WindowOptions::Consecutive { within_ms: Some(1 << 52) }, ..calls(None) };
    for options in [calls(None), calls(Some(1_000_000_000)), time, probes, consecutive] {
        let policy = Policy::parse(options).unwrap();
        let mut circuit = Snapshot::closed(&policy, u32::MAX, at(1));
        let mut t = 1 << 50;
        for n in 0..9_999u64 {
            t += 97 * (n % 7);
            let outcome = if n % 3 == 0 { CallOutcome::failure() } else { CallOutcome::success() };
            circuit.record(&policy, outcome.took(n * 37 % 200), at(t));
            if circuit.state() != State::Closed {
                circuit.reset(&policy, at(t));
            }
        }
        let counts = circuit.inspect(&policy, at(t)).counts;
        let text = circuit.encode();
        assert!(text.len() <= Snapshot::MAX_TEXT_BYTES, "{} bytes", text.len());
        let (again, problem) = Snapshot::decode(&policy, &text, Snapshot::closed(&policy, 0, at(0)));
        assert_eq!((again.encode(), problem), (text, None));
        let read = again.inspect(&policy, at(t)).counts;
        assert!(read == counts || (read.calls < counts.calls && read.calls > 2_000), "{read:?} of {counts:?}");

        circuit.force(&policy, State::HalfOpen, None, at(t));
        for id in 0..1_000 {
            circuit.admit(&policy, u32::MAX - id, at(t));
        }
        let text = circuit.encode();
        assert!(text.len() <= Snapshot::MAX_TEXT_BYTES, "{} bytes", text.len());
        let (again, problem) = Snapshot::decode(&policy, &text, Snapshot::closed(&policy, 0, at(0)));
        assert_eq!((again.encode(), problem), (text, None));
    }
}
