//! What the machine promises, whatever the policy and whatever happens.

use proptest::prelude::*;
use tripcurve::{Admission, CallOutcome, Inspection, JudgeOn, RefusalReason, Snapshot, State, Time, Why, WindowOptions};

use crate::cases;
use crate::given::{forgotten_after, policy, script, Op, Pace, T0};
use crate::lockstep::{at, Pair};

proptest! {
    #![proptest_config(cases(256))]

    /// Also: probes in flight never exceed the limit, and a stale permit changes nothing (see `lockstep.rs`).
    #[test]
    fn the_core_does_what_the_model_does(policy in policy(), seed: u32, script in script(120)) {
        Pair::new(policy, seed).run(&script);
    }

    /// However it got there: once nothing is held and no lease is left, a call gets in, and good calls close the circuit.
    #[test]
    fn nothing_stays_open_or_half_open_for_ever(policy in policy(), seed: u32, script in script(60)) {
        let mut pair = Pair::new(policy, seed);
        pair.run(&script);
        pair.release();
        pair.now = pair.model.seen + pair.model.max_open_ms().max(pair.model.lease_ms().unwrap_or(0));
        if pair.model.lease_ms().is_none() {
            // Without leases a probe holds its slot until its call ends: let them all end.
            pair.step(Op::At);
            for which in 0..pair.permits.len() {
                pair.step(Op::End(which, CallOutcome::ignored()));
            }
        }
        // Where a fast success is judged too, it may well open a circuit that had failures before.
        let good_calls_only_close = policy.options().judge_on == JudgeOn::Failure;
        for _ in 0..if good_calls_only_close { policy.options().probe_successes + 1 } else { 1 } {
            let given = pair.permits.len();
            pair.step(Op::Begin);
            prop_assert_eq!(pair.permits.len(), given + 1);
            pair.step(Op::End(given, CallOutcome::success()));
        }
        if good_calls_only_close {
            prop_assert_eq!(pair.core.state(), State::Closed);
        }
    }

    #[test]
    fn by_another_clock_it_is_the_same_circuit(policy in policy(), seed: u32, script in script(60), by in -9_000i64..9_000, ms in 0u64..9_000) {
        let mut pair = Pair::new(policy, seed);
        pair.run(&script);
        let by = match policy.options().window {
            WindowOptions::Time { ms, .. } => by / 100 * ms as i64, // its buckets are aligned to the clock
            _ => by,
        };
        let moved = |t: Time| at(t.as_millis().saturating_add_signed(by));
        let mut other = pair.core.clone();
        other.shift(by);
        let then = at(pair.model.seen + ms);
        let here = pair.core.inspect(&policy, then);
        let there = other.inspect(&policy, moved(then));
        let expected = Inspection {
            since: moved(here.since),
            until: here.until.map(moved),
            next_change_at: here.next_change_at.map(moved),
            why: here.why.map(|why| Why { at: moved(why.at), ..why }),
            ..here
        };
        prop_assert_eq!(there, expected);
        let admission = |circuit: &Snapshot, t: Time| match circuit.clone().admit(&policy, u32::MAX, t).admission {
            Admission::Admitted(_) => None,
            Admission::Refused(refusal) | Admission::Shadowed(refusal) => Some(refusal.reason),
        };
        prop_assert_eq!(admission(&other, moved(then)), admission(&pair.core, then));
    }

    #[test]
    fn a_retry_time_is_exact(policy in policy(), seed: u32, script in script(60)) {
        let mut pair = Pair::new(policy, seed);
        for (pace, op) in script {
            pair.pass(pace);
            pair.step(op);
            let admit = |t: Time| pair.core.clone().admit(&policy, u32::MAX, t).admission;
            let (Admission::Refused(refusal) | Admission::Shadowed(refusal)) = admit(at(pair.now)) else { continue };
            let Some(retry_at) = refusal.retry_at else {
                let never_ends = refusal.reason == RefusalReason::HeldOpen || pair.model.lease_ms().is_none();
                prop_assert!(never_ends && !matches!(admit(Time::MAX), Admission::Admitted(_)));
                continue;
            };
            prop_assert!(retry_at.as_millis() > pair.model.seen);
            prop_assert!(!matches!(admit(at(retry_at.as_millis() - 1)), Admission::Admitted(_)));
            prop_assert!(matches!(admit(retry_at), Admission::Admitted(_)));
        }
    }

    /// Between now and `next_change_at` a reader sees the same; at it, something else. Where there is none, the same for ever.
    #[test]
    fn a_screen_may_sleep_until_the_next_change(policy in policy(), seed: u32, script in script(40)) {
        let mut pair = Pair::new(policy, seed);
        for (pace, op) in script {
            pair.pass(pace);
            pair.step(op);
            let shown = |t: Time| Inspection { next_change_at: None, ..pair.core.inspect(&policy, t) };
            let now = at(pair.model.seen);
            match pair.core.inspect(&policy, now).next_change_at {
                None => prop_assert_eq!(shown(now), shown(now.after(1_000_000_000_000))),
                Some(next) => {
                    prop_assert!(next > now);
                    prop_assert_eq!(shown(now), shown(at(next.as_millis() - 1)));
                    prop_assert_ne!(shown(now), shown(next));
                }
            }
        }
    }

    /// Reading moves nothing: the same text, and the same answers afterwards.
    #[test]
    fn reading_changes_nothing(policy in policy(), seed: u32, script in script(30), then in 0u64..20_000) {
        let mut pair = Pair::new(policy, seed);
        pair.run(&script);
        let before = pair.core.clone();
        pair.core.inspect(&policy, at(T0 + then));
        prop_assert_eq!(&before, &pair.core);
    }

    /// More than `max_open_ms` back is a correction: all that is remembered moves back with the clock.
    #[test]
    fn a_corrected_clock_moves_everything_back(policy in policy(), seed: u32, script in script(40), more in 1u64..100_000_000) {
        let mut pair = Pair::new(policy, seed);
        pair.run(&script);
        pair.pass(Pace::Stays);
        pair.step(Op::At);
        let seen = pair.model.seen;
        let by = pair.model.max_open_ms() + more;
        let back = |t: Time| at(t.as_millis() - by);
        let before = pair.core.inspect(&policy, at(seen));
        let after = pair.core.inspect(&policy, at(seen - by));
        prop_assert_eq!(
            Inspection { next_change_at: None, ..after },
            Inspection { since: back(before.since), until: before.until.map(back), next_change_at: None, why: after.why, ..before }
        );
        let refusal = |t| match pair.core.clone().admit(&policy, u32::MAX, t).admission {
            Admission::Admitted(_) => None,
            Admission::Refused(refusal) | Admission::Shadowed(refusal) => Some((refusal.reason, refusal.retry_at)),
        };
        let moved = refusal(at(seen)).map(|(reason, retry_at)| (reason, retry_at.map(back)));
        prop_assert_eq!(refusal(at(seen - by)), moved);
    }
}

/// A gap that outlasts every remembered outcome leaves nothing of it, for every kind of window that forgets by time.
mod idle {
    use super::*;
    use crate::given::{op, outcome};
    use tripcurve::{Factor, Policy, PolicyOptions};

    proptest! {
        #![proptest_config(cases(256))]

        #[test]
        fn a_long_gap_equals_a_fresh_window(
            policy in policy(),
            seed: u32,
            before in proptest::collection::vec((0u64..200, outcome()), 1..40),
            extra in prop_oneof![Just(0u64), Just(1), 0u64..10_000_000],
            after in proptest::collection::vec((0u64..200, op()), 1..30),
        ) {
            let Some(gap) = forgotten_after(policy.options().window) else { return Ok(()) };
            let plain = PolicyOptions { backoff: Factor::ONE, jitter: None, ..policy.options() };
            let policy = Policy::parse(plain).unwrap();
            let mut old = Snapshot::closed(&policy, seed, at(T0));
            let mut t = T0;
            for (ms, outcome) in before {
                t += ms;
                old.record(&policy, outcome, at(t));
            }
            if old.state() != State::Closed {
                return Ok(()); // its window is another story
            }
            t += gap + extra;
            old.at(&policy, at(t)); // a fixed window restarts when somebody comes
            let mut fresh = Snapshot::closed(&policy, seed, at(t));
            let mut permits = Vec::new();
            for (ms, op) in after {
                let t = at({ t += ms; t });
                let news = [&mut old, &mut fresh].map(|circuit| match op {
                    Op::Begin => match circuit.admit(&policy, 1, t).admission {
                        Admission::Admitted(permit) => { permits.push(permit); (true, None) }
                        Admission::Refused(refusal) | Admission::Shadowed(refusal) => (false, refusal.retry_at),
                    },
                    Op::End(_, outcome) | Op::Record(outcome) => (circuit.record(&policy, outcome, t).counted, None),
                    _ => (false, circuit.at(&policy, t).map(|moved| moved.at)),
                });
                prop_assert_eq!(news[0], news[1]);
                let [a, b] = [&old, &fresh].map(|circuit| {
                    let seen = circuit.inspect(&policy, t);
                    (seen.state, seen.counts, seen.until, seen.probes_in_flight, seen.probe_successes, seen.next_change_at)
                });
                prop_assert_eq!(a, b);
            }
        }
    }
}

/// Ends that random scripts seldom hit to the millisecond.
mod ends {
    use super::*;
    use tripcurve::{Factor, Policy, PolicyOptions, Rate};

    fn options() -> PolicyOptions {
        PolicyOptions { failure_rate: Rate::Off, failures: Some(1), open_ms: 100, backoff: Factor::TWO, ..PolicyOptions::default() }
    }

    #[test]
    fn a_closed_period_as_long_as_the_open_time_ends_the_backoff() {
        let policy = Policy::parse(options()).unwrap();
        for (closed_ms, open_ms) in [(99, 200), (100, 100), (101, 100)] {
            let mut circuit = Snapshot::closed(&policy, 1, at(T0));
            circuit.record(&policy, CallOutcome::failure(), at(T0)); // opens for 100
            circuit.record(&policy, CallOutcome::failure(), at(T0 + 100)); // reopens for 200
            circuit.record(&policy, CallOutcome::success(), at(T0 + 300)); // closes
            let t = T0 + 300 + closed_ms;
            let opened = circuit.record(&policy, CallOutcome::failure(), at(t)).transitions[1].unwrap();
            assert_eq!(opened.until, Some(at(t + open_ms)), "closed for {closed_ms} ms");
        }
    }

    #[test]
    fn a_clock_may_go_back_by_the_longest_open_time_and_no_further() {
        let policy = Policy::parse(PolicyOptions { max_open_ms: Some(500), ..options() }).unwrap();
        let mut circuit = Snapshot::closed(&policy, 1, at(T0));
        circuit.record(&policy, CallOutcome::failure(), at(T0));
        for (back, until) in [(499, T0 + 100), (500, T0 + 100), (501, T0 + 100 - 501)] {
            assert_eq!(circuit.inspect(&policy, at(T0 - back)).until, Some(at(until)), "{back} ms back");
        }
    }

    #[test]
    fn a_retry_after_counts_only_where_it_opens_and_within_the_cap() {
        let policy = Policy::parse(PolicyOptions { failures: Some(2), max_open_ms: Some(500), ..options() }).unwrap();
        for (asked, until) in [(0, 100), (99, 100), (101, 101), (500, 500), (501, 500), (1 << 52, 500)] {
            let mut circuit = Snapshot::closed(&policy, 1, at(T0));
            let busy = CallOutcome::failure().retry_at(at(T0 + asked));
            assert_eq!(circuit.record(&policy, busy, at(T0)).transitions, [None, None]);
            assert_eq!(
                circuit.record(&policy, busy, at(T0)).transitions[1].unwrap().until,
                Some(at(T0 + until)),
                "asked for {asked}"
            );
        }
    }
}
