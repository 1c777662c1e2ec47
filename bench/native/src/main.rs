//! The native core beside `recloser`: one admission and its outcome, nanoseconds a call, in rounds that take turns.
//!
//! Not like for like: `recloser` is shared by many threads (atomics, epochs) and reads a clock when open; a `Snapshot` is `&mut`,
//! belongs to one thread and is told the time. `clock` rows read one for us too.
//!
//! `tripcurve-bench [rounds] [milliseconds a round]` prints JSON: scenario → guard → { rounds }.

use std::hint::black_box;
use std::time::{Duration, Instant};

use recloser::Recloser;
use tripcurve::{Admission, CallOutcome, Policy, PolicyOptions, Rate, Share, Snapshot, Time, WindowOptions};

const BATCH: u64 = 1_000;
const LAST: u32 = 100;

/// Which calls fail: those whose number, masked with this, is 1.
const NONE: u64 = 0;
const ONE_OF_8: u64 = 7;

/// A call. Only its number is hidden from the optimiser: hiding the whole result would make every guard read it back from memory,
/// which costs more than the guard.
fn call(i: u64, fail_mask: u64) -> Result<u64, u64> {
    let i = black_box(i);
    if i & fail_mask == 1 {
        Err(i)
    } else {
        Ok(i)
    }
}

struct Ours {
    policy: Policy,
    circuit: Snapshot,
}

impl Ours {
    fn new(window: WindowOptions) -> Ours {
        let options = PolicyOptions {
            window,
            failure_rate: Rate::Share(Share::percent(50).expect("50 % is a share")),
            open_ms: 1_000_000_000,
            ..PolicyOptions::default()
        };
        let policy = Policy::parse(options).expect("the policy is valid");
        let circuit = Snapshot::closed(&policy, 1, Time::from_millis(0));
        Ours { policy, circuit }
    }

    fn run(&mut self, f: impl FnOnce() -> Result<u64, u64>, now: Time) -> Option<Result<u64, u64>> {
        let Admission::Admitted(permit) = self.circuit.admit(&self.policy, 1, now).admission else {
            return None;
        };
        let result = f();
        let outcome = match result {
            Ok(_) => CallOutcome::success(),
            Err(_) => CallOutcome::failure(),
        };
        black_box(self.circuit.settle(&self.policy, permit, outcome, now).counted);
        Some(result)
    }
}

type Batch = Box<dyn FnMut(u64)>;

/// `clock` gives the time of the call with that number.
fn ours(window: WindowOptions, clock: impl Fn(u64) -> u64 + 'static, fail_mask: u64, trip: bool) -> Batch {
    let mut ours = Ours::new(window);
    let start = Time::from_millis(clock(0));
    for i in 0..if trip { 1_000 } else { 0 } {
        ours.run(|| Err(i), start);
    }
    assert_eq!(ours.run(|| Ok(0), start).is_none(), trip, "tripcurve is in the wrong state");
    let mut calls = 0;
    Box::new(move |n| {
        for i in calls..calls + n {
            let now = Time::from_millis(clock(i));
            black_box(ours.run(|| call(i, fail_mask), now).is_some());
        }
        calls += n;
    })
}

fn theirs(fail_mask: u64, trip: bool) -> Batch {
    let recloser = Recloser::custom()
        .error_rate(0.5)
        .closed_len(LAST as usize)
        .half_open_len(10)
        .open_wait(Duration::from_secs(1_000_000))
        .build();
    for i in 0..if trip { 1_000 } else { 0 } {
        let _ = recloser.call(|| Err::<u64, u64>(i));
    }
    assert_eq!(recloser.call(|| Ok::<u64, u64>(0)).is_err(), trip, "recloser is in the wrong state");
    Box::new(move |n| {
        for i in 0..n {
            black_box(recloser.call(|| call(i, fail_mask)).is_ok());
        }
    })
}

fn round(batch: &mut Batch, length: Duration) -> f64 {
    let start = Instant::now();
    let mut calls = 0;
    loop {
        batch(BATCH);
        calls += BATCH;
        let elapsed = start.elapsed();
        if elapsed >= length {
            return elapsed.as_nanos() as f64 / calls as f64;
        }
    }
}

fn scenario(name: &str, fail_mask: u64, trip: bool, rounds: usize, length: Duration) -> String {
    let calls = WindowOptions::Calls { last: LAST, within_ms: None };
    let time = WindowOptions::Time { ms: 10_000, buckets: Some(10) };
    let told = |i| i >> 10;
    let epoch = Instant::now();
    let read = move |_| epoch.elapsed().as_millis() as u64;
    let mut guards: Vec<(&str, Batch)> = vec![
        (
            "no guard",
            Box::new(move |n| {
                for i in 0..n {
                    black_box(call(i, fail_mask).is_ok());
                }
            }),
        ),
        ("recloser", theirs(fail_mask, trip)),
        ("tripcurve calls", ours(calls, told, fail_mask, trip)),
        ("tripcurve calls, clock", ours(calls, read, fail_mask, trip)),
        ("tripcurve time", ours(time, told, fail_mask, trip)),
    ];
    for (_, batch) in &mut guards {
        round(batch, length);
    }
    let mut measured = vec![Vec::new(); guards.len()];
    for turn in 0..rounds {
        for i in 0..guards.len() {
            let at = (i + turn) % guards.len();
            measured[at].push(round(&mut guards[at].1, length));
        }
    }
    let results: Vec<String> =
        guards.iter().zip(&measured).map(|((guard, _), rounds)| format!("{guard:?}:{{\"rounds\":{rounds:.3?}}}")).collect();
    format!("{name:?}:{{{}}}", results.join(","))
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|word| word.parse::<u64>().expect("rounds and milliseconds are numbers"));
    let rounds = arguments.next().unwrap_or(21) as usize;
    let length = Duration::from_millis(arguments.next().unwrap_or(30));
    let scenarios = [
        scenario("closed", NONE, false, rounds, length),
        scenario("1 of 8 fails", ONE_OF_8, false, rounds, length),
        scenario("refused", NONE, true, rounds, length),
    ];
    println!("{{{}}}", scenarios.join(","));
}
