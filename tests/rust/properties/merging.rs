//! Copies of one circuit become one, in whatever order they meet.

use proptest::prelude::*;
use tripcurve::{Admission, Adoption, CallOutcome, Permit, PermitKind, Policy, Snapshot, State, Time};

use crate::cases;
use crate::given::{held, outcome, policy, state, T0};
use crate::lockstep::at;

#[derive(Clone, Copy, Debug)]
enum Deed {
    Begin,
    End(usize, CallOutcome),
    Record(CallOutcome),
    Force(State),
    Hold(tripcurve::Held),
    Release,
    Reset,
    /// Reads what another participant would have written.
    Meet(usize),
    /// Reads what somebody, perhaps itself, wrote earlier; which: modulo the number of texts so far.
    MeetOld(usize),
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        6 => Just(Deed::Begin),
        6 => (any::<usize>(), outcome()).prop_map(|(which, outcome)| Deed::End(which, outcome)),
        4 => outcome().prop_map(Deed::Record),
        1 => state().prop_map(Deed::Force),
        1 => held().prop_map(Deed::Hold),
        1 => Just(Deed::Release),
        1 => Just(Deed::Reset),
        4 => (0usize..3).prop_map(Deed::Meet),
        2 => any::<usize>().prop_map(Deed::MeetOld),
    ]
}

struct Participant {
    circuit: Snapshot,
    permits: Vec<Permit>,
    /// Probes whose result it has seen.
    settled: Vec<u32>,
    /// What its clock shows more than the true time, less an hour.
    ahead: u64,
}

struct Group {
    policy: Policy,
    all: Vec<Participant>,
    t: u64,
    /// Every text so far, and whose it was.
    written: Vec<(usize, String)>,
}

impl Group {
    fn new(policy: Policy, ahead: [u64; 3]) -> Group {
        let participant = |(i, ahead)| Participant {
            circuit: Snapshot::closed(&policy, i as u32 + 1, at(T0 + ahead)),
            permits: Vec::new(),
            settled: Vec::new(),
            ahead,
        };
        Group { policy, all: ahead.into_iter().enumerate().map(participant).collect(), t: T0, written: Vec::new() }
    }

    fn now(&self, i: usize) -> Time {
        at(self.t + self.all[i].ahead)
    }

    fn meet(&mut self, i: usize, j: usize) -> Adoption {
        let now = self.now(i);
        let text = self.all[j].circuit.encode();
        let found = self.read(i, &text, now);
        self.written.push((j, text));
        found
    }

    fn read(&mut self, i: usize, text: &str, now: Time) -> Adoption {
        let theirs = read(&self.policy, text);
        let before = self.all[i].circuit.clone();
        let mine = &mut self.all[i].circuit;
        let found = mine.adopt(&self.policy, theirs, now);
        let nothing_to_fence = before.state() == State::Open;
        assert!(found.adopted || nothing_to_fence || mine.generation() == before.generation(), "fenced for nothing");
        let not_due = mine.inspect(&self.policy, now).until.is_some();
        assert_eq!(found.repair, found.behind && not_due);
        if !matches!(self.policy.options().probe_lease, tripcurve::Lease::Never) {
            let mut then = mine.clone();
            then.at(&self.policy, now);
            assert!(!self.all[i].settled.iter().any(|id| then.is_probing(*id)), "a probe came back");
        }
        found
    }

    fn run(&mut self, script: &[(usize, u64, Deed)]) {
        for (i, ms, deed) in script {
            self.t += ms;
            let now = self.now(*i);
            let policy = &self.policy;
            let Participant { circuit, permits, settled, .. } = &mut self.all[*i];
            match *deed {
                Deed::Begin => {
                    // Ids are drawn at random by participants; here they only need to differ.
                    let id = (*i as u32 + 1) * 1_000 + permits.len() as u32;
                    if let Admission::Admitted(permit) = circuit.admit(policy, id, now).admission {
                        permits.push(permit);
                    }
                }
                Deed::End(which, outcome) => {
                    if let Some(permit) = permits.get(which.checked_rem(permits.len()).unwrap_or(0)) {
                        if !circuit.settle(policy, *permit, outcome, now).stale && permit.kind == PermitKind::Probe {
                            settled.push(permit.id);
                        }
                    }
                }
                Deed::Record(outcome) => drop(circuit.record(policy, outcome, now)),
                Deed::Force(state) => drop(circuit.force(policy, state, None, now)),
                Deed::Hold(held) => drop(circuit.hold(policy, held, now)),
                Deed::Release => drop(circuit.release(policy, now)),
                Deed::Reset => drop(circuit.reset(policy, now)),
                Deed::Meet(j) if j == *i => {}
                Deed::Meet(j) => drop(self.meet(*i, j)),
                Deed::MeetOld(which) => {
                    let Some((by, text)) = self.written.get(which.checked_rem(self.written.len()).unwrap_or(0)).cloned() else {
                        continue;
                    };
                    let found = self.read(*i, &text, now);
                    assert!(by != *i || !found.adopted, "its own past is no news");
                }
            }
        }
    }

    fn texts(&self) -> Vec<String> {
        self.all.iter().map(|one| one.circuit.encode()).collect()
    }
}

fn read(policy: &Policy, text: &str) -> Snapshot {
    let (circuit, problem) = Snapshot::decode(policy, text, Snapshot::closed(policy, 0, Time::ZERO));
    assert_eq!(problem, None);
    circuit
}

/// What travels: the verdict (half-open is an open one that is due) with its level and stamp, and the hold.
fn registers(circuit: &Snapshot) -> [String; 4] {
    let text = circuit.encode();
    let fields: Vec<&str> = text.split(';').collect();
    [fields[1].replace('H', "O"), fields[5].to_owned(), fields[7].to_owned(), fields[8].to_owned()]
}

/// The probes of a half-open period and how many succeeded.
fn probing(circuit: &Snapshot) -> String {
    circuit.encode().split(';').nth(9).unwrap().to_owned()
}

fn script() -> impl Strategy<Value = Vec<(usize, u64, Deed)>> {
    let ms = prop_oneof![3 => Just(0u64), 3 => 1u64..=50, 1 => 51u64..=4_000];
    proptest::collection::vec((0usize..3, ms, deed()), 0..80)
}

/// Close together, or anywhere up to `most` apart.
fn clocks(most: u64) -> impl Strategy<Value = [u64; 3]> {
    let ahead = || prop_oneof![Just(0u64), 0u64..=3, 0u64..5_000, 0..most];
    [ahead(), ahead(), ahead()]
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn merging_is_commutative_associative_and_idempotent(policy in policy(), script in script()) {
        let mut group = Group::new(policy, [0; 3]);
        group.run(&script);
        let now = at(group.t);
        let texts = group.texts();
        let one = |i: usize| read(&policy, &texts[i]);
        let merge = |mut into: Snapshot, other: Snapshot| {
            let found = into.adopt(&policy, other, now);
            (into, found)
        };
        for (a, b, c) in [(0, 1, 2), (1, 2, 0), (2, 0, 1), (1, 0, 2)] {
            let (ab, _) = merge(one(a), one(b));
            let (ba, _) = merge(one(b), one(a));
            prop_assert_eq!(registers(&ab), registers(&ba), "a b and b a");
            if registers(&one(a)) == registers(&one(b)) {
                prop_assert_eq!(probing(&ab), probing(&ba), "the probes of one period");
            }
            let (left, _) = merge(ab.clone(), one(c));
            let (right, _) = merge(one(a), merge(one(b), one(c)).0);
            prop_assert_eq!(registers(&left), registers(&right), "(a b) c and a (b c)");

            let (again, found) = merge(ab.clone(), one(b));
            prop_assert!(!found.adopted && !found.updated);
            prop_assert_eq!(again.encode(), ab.encode(), "a b and a b b");
            let (same, found) = merge(one(a), one(a));
            prop_assert_eq!((registers(&same), found), (registers(&one(a)), Adoption::default()));
        }
    }

    /// Whatever the clocks say (within an hour): when all have met all, all hold the same, and meeting again fences nobody.
    #[test]
    fn whoever_meets_agrees_and_is_left_alone(
        policy in policy(),
        ahead in clocks(3_600_000),
        script in script(),
    ) {
        let mut group = Group::new(policy, ahead);
        group.run(&script);
        let pairs = [(0, 1), (1, 2), (2, 0), (1, 0), (2, 1), (0, 2)];
        for _ in 0..3 {
            for (i, j) in pairs {
                group.meet(i, j);
            }
        }
        let generations = |group: &Group| group.all.iter().map(|one| one.circuit.generation()).collect::<Vec<_>>();
        let before = generations(&group);
        for (i, j) in pairs {
            let found = group.meet(i, j);
            prop_assert!(!found.adopted && !found.behind, "{:?}", found);
        }
        prop_assert_eq!(before, generations(&group));
        let all: Vec<_> = group.all.iter().map(|one| registers(&one.circuit)).collect();
        prop_assert!(all[0] == all[1] && all[1] == all[2], "{:?}", all);
    }

    /// Cause precedes effect: a decision taken after meeting another one beats it, however far behind the clock is.
    #[test]
    fn what_was_decided_after_meeting_wins(
        policy in policy(),
        ahead in clocks(36_000_000),
        script in script(),
        to in state(),
    ) {
        let mut group = Group::new(policy, ahead);
        group.run(&script);
        group.meet(0, 1);
        let now = group.now(0);
        group.all[0].circuit.force(&policy, to, None, now);
        let found = group.meet(1, 0);
        prop_assert!(found.adopted && !found.behind);
        // Not the instants: a clock far behind cuts an open time to what its policy allows, which is a verdict of its own.
        let [theirs, mine] = [0, 1].map(|i| (group.all[i].circuit.state(), group.all[i].circuit.held()));
        prop_assert_eq!(mine, theirs);
    }

    #[test]
    fn a_newcomer_erases_nothing_and_takes_over(policy in policy(), script in script(), ms in 0u64..5_000) {
        let mut group = Group::new(policy, [0; 3]);
        group.run(&script);
        group.t += ms;
        let now = at(group.t);
        group.all[0].circuit.at(&policy, now);
        let before = group.all[0].circuit.encode();
        let circuit = Snapshot::closed(&policy, 77, now);
        group.all[2] = Participant { circuit, permits: Vec::new(), settled: Vec::new(), ahead: 0 };
        let found = group.meet(0, 2);
        prop_assert!(!found.adopted);
        prop_assert_eq!(group.all[0].circuit.encode(), before);
        let old = group.all[0].circuit.inspect(&policy, now);
        prop_assert_eq!(found.repair, found.behind && old.until.is_some());
        group.meet(2, 0);
        let new = group.all[2].circuit.inspect(&policy, now);
        prop_assert_eq!((new.state, new.held, new.until, new.admits), (old.state, old.held, old.until, old.admits));
    }
}

/// The first verdict a circuit meets is a closed one: its tally stays, and calls in flight still count.
#[test]
fn a_first_closed_verdict_fences_nothing() {
    let policy = Policy::default();
    let mut here = Snapshot::closed(&policy, 1, at(0));
    let Admission::Admitted(permit) = here.admit(&policy, 1, at(1)).admission else { panic!("closed") };
    here.record(&policy, CallOutcome::failure(), at(2));
    let mut there = Snapshot::closed(&policy, 2, at(0));
    there.force(&policy, State::Open, None, at(1));
    there.reset(&policy, at(3));
    assert!(here.adopt(&policy, there, at(4)).adopted);
    assert!(here.settle(&policy, permit, CallOutcome::failure(), at(5)).counted);
    assert_eq!(here.inspect(&policy, at(5)).counts.failures, 2);
}

/// An outage that is over elsewhere is over here, with its refusals.
#[test]
fn an_adopted_closing_ends_the_count_of_refusals() {
    let policy = Policy::default();
    let mut there = Snapshot::closed(&policy, 2, at(0));
    there.force(&policy, State::Open, None, at(1));
    let mut here = Snapshot::closed(&policy, 1, at(0));
    here.adopt(&policy, there.clone(), at(2));
    here.admit(&policy, 1, at(3));
    assert_eq!(here.inspect(&policy, at(3)).rejected, 1);
    there.reset(&policy, at(4));
    here.adopt(&policy, there, at(5));
    assert_eq!(here.inspect(&policy, at(5)).rejected, 0);
}

/// A copy from before a probe ended does not bring it back.
#[test]
fn a_settled_probe_stays_settled() {
    let policy = Policy::parse(tripcurve::PolicyOptions { probe_successes: 2, ..Default::default() }).unwrap();
    let mut circuit = Snapshot::closed(&policy, 1, at(0));
    circuit.force(&policy, State::HalfOpen, None, at(1));
    let Admission::Admitted(probe) = circuit.admit(&policy, 11, at(2)).admission else { panic!("a free slot") };
    let old = circuit.clone();
    circuit.settle(&policy, probe, CallOutcome::success(), at(3));
    assert!(!circuit.adopt(&policy, old, at(4)).updated && !circuit.is_probing(11));
    assert!(circuit.inspect(&policy, at(4)).admits);
}

/// Two probes of one period, in two places: each copy learns of the other's, and neither is fenced.
#[test]
fn the_same_period_is_shared_without_fencing() {
    let policy =
        Policy::parse(tripcurve::PolicyOptions { probe_limit: Some(2), probe_successes: 2, ..Default::default() }).unwrap();
    let mut here = Snapshot::closed(&policy, 1, at(0));
    here.force(&policy, State::HalfOpen, None, at(1));
    let mut there = Snapshot::closed(&policy, 2, at(0));
    there.adopt(&policy, here.clone(), at(2));
    let [Admission::Admitted(mine), Admission::Admitted(theirs)] =
        [here.admit(&policy, 11, at(3)).admission, there.admit(&policy, 22, at(3)).admission]
    else {
        panic!("a slot each")
    };
    assert!(here.adopt(&policy, there.clone(), at(4)).updated && there.adopt(&policy, here.clone(), at(4)).updated);
    assert!(!here.inspect(&policy, at(4)).admits && !there.inspect(&policy, at(4)).admits);
    assert!(here.settle(&policy, mine, CallOutcome::success(), at(5)).counted);
    there.adopt(&policy, here.clone(), at(6));
    assert!(there.settle(&policy, theirs, CallOutcome::success(), at(7)).counted);
    assert_eq!(there.state(), State::Closed);
}
