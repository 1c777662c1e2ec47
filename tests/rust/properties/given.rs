//! Random policies, operations and steps of time.

use proptest::prelude::*;
use tripcurve::{
    CallOutcome, Factor, Held, JudgeOn, Lease, Policy, PolicyOptions, Rate, Share, State, Time, Verdict, WindowOptions,
};

pub const T0: u64 = 1_000_000_000;

pub fn share() -> impl Strategy<Value = Share> {
    (1u32..=20, 1u32..=20).prop_map(|(a, b)| Share::new(a.min(b), a.max(b)).unwrap())
}

fn length() -> impl Strategy<Value = u64> {
    prop_oneof![Just(1), Just(2), 3u64..=50, Just(100), 101u64..=2_000]
}

pub fn window() -> impl Strategy<Value = WindowOptions> {
    let within_ms = || proptest::option::of(length());
    prop_oneof![
        length().prop_map(|ms| WindowOptions::Fixed { ms }),
        (length(), 1u32..=12).prop_map(|(width, n)| WindowOptions::Time { ms: width * u64::from(n), buckets: Some(n) }),
        (1u32..=12, within_ms()).prop_map(|(last, within_ms)| WindowOptions::Calls { last, within_ms }),
        within_ms().prop_map(|within_ms| WindowOptions::Consecutive { within_ms }),
    ]
}

/// How long after an outcome nothing of it is left; `None`: time alone never does that.
pub fn forgotten_after(window: WindowOptions) -> Option<u64> {
    match window {
        WindowOptions::Fixed { ms } | WindowOptions::Time { ms, .. } => Some(ms),
        WindowOptions::Calls { within_ms, .. } | WindowOptions::Consecutive { within_ms } => within_ms.map(|ms| ms + 1),
    }
}

/// Valid policies of every kind, small enough that random calls trip them.
pub fn policy() -> impl Strategy<Value = Policy> {
    let trip = prop_oneof![
        (1u32..=6).prop_map(|failures| (Rate::Off, Some(failures))),
        share().prop_map(|rate| (Rate::Share(rate), None)),
        Just((Rate::Off, None)), // slow calls only
    ];
    let judging = (trip, 1u32..=6, proptest::option::of(prop_oneof![Just(1u64), 2u64..=200]), share(), any::<bool>());
    let opening = (
        prop_oneof![Just(0u64), Just(1), 2u64..=100, 100u64..=3_000],
        prop_oneof![3 => Just((1, 1)), 1 => Just((3, 2)), 1 => Just((2, 1)), 1 => Just((10, 1))]
            .prop_map(|(numerator, denominator)| Factor::new(numerator, denominator).unwrap()),
        prop_oneof![3 => Just(None), 1 => share().prop_map(Some)],
        prop_oneof![2 => Just(None), 1 => (0u64..=5_000).prop_map(Some)],
    );
    let probing = (
        prop_oneof![1 => Just(None), 4 => (1u32..=4).prop_map(Some)],
        1u32..=4,
        prop_oneof![1 => Just(Lease::Default), 1 => Just(Lease::Never), 4 => length().prop_map(Lease::Ms)],
    );
    (window(), judging, opening, probing, prop_oneof![5 => Just(false), 1 => Just(true)]).prop_map(
        |(
            window,
            (trip, minimum, slow_ms, slow_rate, any),
            (open_ms, backoff, jitter, more),
            (probe_limit, successes, lease),
            shadow,
        )| {
            let most = match window {
                WindowOptions::Calls { last, .. } => last,
                _ => u32::MAX,
            };
            let (failure_rate, failures) = trip;
            let options = PolicyOptions {
                window,
                failure_rate,
                failures: failures.map(|failures: u32| failures.min(most)),
                minimum_calls: Some(minimum.min(most)),
                slow_ms: slow_ms.or(if failures.is_none() && failure_rate == Rate::Off { Some(10) } else { None }),
                slow_rate,
                judge_on: if any { JudgeOn::Any } else { JudgeOn::Failure },
                open_ms,
                backoff,
                jitter,
                max_open_ms: more.map(|more| open_ms + more),
                probe_limit,
                probe_successes: successes,
                probe_lease: lease,
                shadow,
            };
            Policy::parse(options).unwrap_or_else(|error| panic!("{error}: {options:?}"))
        },
    )
}

#[derive(Clone, Copy, Debug)]
pub enum Op {
    Begin,
    /// Ends one of the calls begun so far; which: modulo their number. It may be stale, and it may have been ended before.
    End(usize, CallOutcome),
    Record(CallOutcome),
    At,
    Force(State, Option<u64>),
    Hold(Held),
    Release,
    Reset,
    /// Through the stored text and back.
    Reload,
}

pub fn outcome() -> impl Strategy<Value = CallOutcome> {
    let verdict = prop_oneof![3 => Just(Verdict::Success), 4 => Just(Verdict::Failure), 1 => Just(Verdict::Ignored)];
    let duration = prop_oneof![1 => Just(None), 2 => (0u64..=300).prop_map(Some)];
    let retry_at = prop_oneof![6 => Just(None), 1 => (0u64..=10_000).prop_map(|ms| Some(Time::from_millis(T0 + ms)))];
    (verdict, duration, retry_at).prop_map(|(verdict, duration_ms, retry_at)| CallOutcome { verdict, duration_ms, retry_at })
}

pub fn state() -> impl Strategy<Value = State> {
    prop_oneof![Just(State::Closed), Just(State::Open), Just(State::HalfOpen)]
}

pub fn held() -> impl Strategy<Value = Held> {
    prop_oneof![Just(Held::Open), Just(Held::Closed)]
}

pub fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        12 => Just(Op::Begin),
        12 => (any::<usize>(), outcome()).prop_map(|(which, outcome)| Op::End(which, outcome)),
        4 => outcome().prop_map(Op::Record),
        2 => Just(Op::At),
        1 => (state(), proptest::option::of(T0..T0 + 10_000)).prop_map(|(state, until)| Op::Force(state, until)),
        1 => held().prop_map(Op::Hold),
        1 => Just(Op::Release),
        1 => Just(Op::Reset),
        2 => Just(Op::Reload),
    ]
}

/// How the clock moves before an operation.
#[derive(Clone, Copy, Debug)]
pub enum Pace {
    Stays,
    Ahead(u64),
    /// To one of the instants at which something ends, or a millisecond beside it; which: modulo their number.
    Around(usize, i64),
    /// Back, by less than would be taken for a correction.
    Back(u64),
}

pub fn pace() -> impl Strategy<Value = Pace> {
    prop_oneof![
        4 => Just(Pace::Stays),
        4 => prop_oneof![4 => 0u64..=50, 1 => 51u64..=5_000, 1 => Just(10_000_000)].prop_map(Pace::Ahead),
        6 => (any::<usize>(), -1i64..=1).prop_map(|(which, off)| Pace::Around(which, off)),
        1 => (0u64..=30).prop_map(Pace::Back),
    ]
}

pub fn script(length: usize) -> impl Strategy<Value = Vec<(Pace, Op)>> {
    proptest::collection::vec((pace(), op()), 0..length)
}
