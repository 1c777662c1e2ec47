//! Participants that count together through a text with compare-and-set: each outcome counts once, whatever happens to the writes.

use proptest::prelude::*;
use tripcurve::{CallOutcome, Counts, Policy, PolicyOptions, Rate, Snapshot, State, Tally, Verdict, WindowOptions};

use crate::cases;
use crate::given::T0;
use crate::lockstep::at;

#[derive(Clone, Copy, Debug)]
enum Deed {
    Count {
        failed: bool,
        slow: bool,
    },
    Exchange(Answer),
    /// Hears of a text that was stored earlier; which: modulo the number of texts so far.
    Hear(usize),
}

/// What becomes of a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Answer {
    Ok,
    /// Stored, but nobody says so.
    Lost,
    /// Not stored, and nobody says so.
    Never,
    /// Nobody says so, and it is stored after the next read.
    Late,
}

fn deed() -> impl Strategy<Value = (usize, Deed)> {
    let answer = prop_oneof![4 => Just(Answer::Ok), 1 => Just(Answer::Lost), 1 => Just(Answer::Never), 1 => Just(Answer::Late)];
    let deed = prop_oneof![
        6 => (any::<bool>(), any::<bool>()).prop_map(|(failed, slow)| Deed::Count { failed, slow }),
        4 => answer.prop_map(Deed::Exchange),
        1 => any::<usize>().prop_map(Deed::Hear),
    ];
    (0usize..4, deed)
}

/// One that forgets nothing during a test.
fn window() -> impl Strategy<Value = WindowOptions> {
    prop_oneof![
        Just(WindowOptions::Fixed { ms: 1_000_000_000 }),
        Just(WindowOptions::Time { ms: 1_000_000_000, buckets: Some(10) }),
        Just(WindowOptions::Time { ms: 10_000, buckets: Some(100) }),
        Just(WindowOptions::Calls { last: 10_000, within_ms: None }),
        Just(WindowOptions::Calls { last: 10_000, within_ms: Some(1_000_000_000) }),
    ]
}

struct Participant {
    circuit: Snapshot,
    tally: Tally,
    /// A text of unknown fate, and the version it was to replace.
    uncertain: Option<(usize, String)>,
}

struct World {
    policy: Policy,
    all: Vec<Participant>,
    /// Every text that was ever stored; the version is how many there are.
    stored: Vec<String>,
    /// Sent, not yet arrived.
    late: Vec<(usize, String)>,
    t: u64,
    counted: Counts,
}

impl World {
    fn new(policy: Policy) -> World {
        let participant = |seed| {
            let circuit = Snapshot::closed(&policy, seed, at(T0));
            Participant { tally: Tally::of(&circuit), circuit, uncertain: None }
        };
        let all = (1..=4).map(participant).collect();
        World { policy, all, stored: Vec::new(), late: Vec::new(), t: T0, counted: Counts::default() }
    }

    fn count(&mut self, i: usize, failed: bool, slow: bool) {
        let verdict = if failed { Verdict::Failure } else { Verdict::Success };
        let outcome = CallOutcome { verdict, duration_ms: Some(if slow { 101 } else { 0 }), retry_at: None };
        self.all[i].circuit.record(&self.policy, outcome, at(self.t));
        self.counted.calls += 1;
        self.counted.failures += u32::from(failed);
        self.counted.slow += u32::from(slow);
    }

    fn meet(&mut self, i: usize, text: &str) {
        let Participant { circuit, tally, .. } = &mut self.all[i];
        tally.meet(&self.policy, circuit, text, at(self.t)).expect("a text of our own");
    }

    fn exchange(&mut self, i: usize, answer: Answer) {
        let version = self.stored.len();
        if let Some(text) = self.stored.last().cloned() {
            self.meet(i, &text);
        }
        for (expected, text) in std::mem::take(&mut self.late) {
            if expected == self.stored.len() {
                self.stored.push(text);
            }
        }
        let Participant { circuit, tally, uncertain } = &mut self.all[i];
        let text = match uncertain.take() {
            Some((sent, text)) if sent == version => text,
            _ => tally.seal(circuit),
        };
        let wins = version == self.stored.len();
        match answer {
            Answer::Ok if wins => {
                self.stored.push(text.clone());
                self.meet(i, &text);
            }
            Answer::Ok => {}
            Answer::Lost if wins => {
                self.all[i].uncertain = Some((version, text.clone()));
                self.stored.push(text);
            }
            Answer::Lost | Answer::Never => self.all[i].uncertain = Some((version, text)),
            Answer::Late => {
                self.all[i].uncertain = Some((version, text.clone()));
                self.late.push((version, text));
            }
        }
    }

    fn run(&mut self, script: &[(usize, Deed)]) {
        for (i, deed) in script {
            self.t += 7;
            match *deed {
                Deed::Count { failed, slow } => self.count(*i, failed, slow),
                Deed::Exchange(answer) => self.exchange(*i, answer),
                Deed::Hear(which) => {
                    if let Some(text) = self.stored.get(which.checked_rem(self.stored.len()).unwrap_or(0)).cloned() {
                        self.meet(*i, &text);
                    }
                }
            }
        }
        for _ in 0..2 {
            for i in 0..self.all.len() {
                self.exchange(i, Answer::Ok);
                self.exchange(i, Answer::Ok);
            }
        }
    }
}

fn policy(window: WindowOptions, failures: u32) -> Policy {
    let options = PolicyOptions {
        window,
        failure_rate: Rate::Off,
        failures: Some(failures),
        slow_ms: Some(100),
        minimum_calls: Some(10_000),
        ..Default::default()
    };
    Policy::parse(options).expect("a good policy")
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn every_outcome_counts_once(window in window(), script in prop::collection::vec(deed(), 1..120)) {
        let mut world = World::new(policy(window, 10_000));
        world.run(&script);
        for one in &world.all {
            prop_assert_eq!(one.circuit.counts(), world.counted);
        }
    }

    #[test]
    fn together_they_open_at_the_threshold(window in window(), threshold in 1u32..30, script in prop::collection::vec(deed(), 1..120)) {
        let mut world = World::new(policy(window, threshold));
        let before = script.iter().map(|(_, deed)| u32::from(matches!(deed, Deed::Count { failed: true, .. }))).sum::<u32>();
        world.run(&script);
        for one in &world.all {
            let opened = one.circuit.state() != State::Closed;
            prop_assert_eq!(opened, before >= threshold, "{} failures, {} open it", before, threshold);
        }
    }
}

#[test]
fn a_success_of_one_ends_the_failures_in_a_row_of_all() {
    let policy = policy(WindowOptions::Consecutive { within_ms: None }, 3);
    let mut world = World::new(policy);
    for (i, failed) in [(0, true), (1, true), (0, false), (1, true), (1, true)] {
        world.t += 7;
        world.exchange(i, Answer::Ok);
        world.count(i, failed, false);
        world.exchange(i, Answer::Ok);
    }
    world.exchange(0, Answer::Ok);
    assert!(world.all[..2].iter().all(|one| one.circuit.state() == State::Closed && one.circuit.counts().failures == 2));
    world.count(0, true, false);
    assert_eq!(world.all[0].circuit.state(), State::Open);
}

#[test]
fn what_was_counted_before_a_late_first_exchange_counts() {
    let mut world = World::new(policy(WindowOptions::Calls { last: 10_000, within_ms: None }, 10_000));
    world.count(0, true, false);
    world.exchange(0, Answer::Ok);
    let (policy, now) = (world.policy, at(world.t + 1));
    world.all[0].circuit.reset(&policy, now);
    world.counted = Counts::default();
    // The closing is stored as the outcome of a probe is, without a batch; then the others are the first to exchange.
    world.stored.push(world.all[0].circuit.encode());
    for _ in 0..20 {
        world.count(0, true, false);
    }
    for i in [1, 0, 1] {
        world.exchange(i, Answer::Ok);
        world.count(i, true, false);
        world.exchange(i, Answer::Ok);
    }
    world.exchange(0, Answer::Ok);
    for one in &world.all[..2] {
        assert_eq!(one.circuit.counts(), world.counted);
    }
}

#[test]
fn a_window_that_began_in_the_future_by_a_fast_clock_counts_and_ends() {
    let options = PolicyOptions {
        window: WindowOptions::Fixed { ms: 10_000 },
        failure_rate: Rate::Off,
        failures: Some(4),
        ..Default::default()
    };
    let policy = Policy::parse(options).expect("a good policy");
    let mut fast = Snapshot::closed(&policy, 1, at(T0 + 3_600_000));
    let mut first = Tally::of(&fast);
    fast.record(&policy, CallOutcome::failure(), at(T0 + 3_600_000));
    let text = first.seal(&fast);

    let mut circuit = Snapshot::closed(&policy, 2, at(T0));
    let mut tally = Tally::of(&circuit);
    tally.meet(&policy, &mut circuit, &text, at(T0)).expect("a text of our own");
    assert_eq!(circuit.counts().failures, 1);
    circuit.at(&policy, at(T0 + 10_000));
    assert_eq!(circuit.counts().failures, 0);
}
