//! The stored text: a circuit on one line of printable ASCII, versioned, at most 32 kB, read without trust.
//!
//! Eleven fields joined by `;`, numbers in base 36 with lower-case digits, tags in upper case:
//!
//! ```text
//! 1 ; phase until ; since ; generation ; seed ; level ; rejected ; since.by why counts ; hold at.by ; recorded,id.lease ; window
//! ```
//!
//! Phase is `C`, `O` or `H`. The stamp and the hold are empty until there is one; why is a letter from `A`, in the order of
//! `Reason::DECISIONS`; hold is `N` (none any more), `O` or `C`. A probe is
//! `id.lease`, without lease `id.`, followed by `X` when its slot is free again and by `S` when it succeeded; before the probes stands
//! how many successes were recorded without one. The window is one of
//!
//! ```text
//! F ms : start . counts                          fixed
//! T ms . buckets : end , counts , counts …       time, from the oldest bucket that counts to the newest
//! N last . within : entries                      calls; K for consecutive
//! ```
//!
//! In a shared tally `#` and the last batch of each participant, `by.number`, follow.
//!
//! Counts are `calls.failures.slow` without zeros at the end, and an entry is a mark (`A` success, `B` failure, `C` slow
//! success, `D` slow failure) after a number: how many more of it follow, or with an age limit the milliseconds since the entry before.

use alloc::string::String;
use alloc::vec::Vec;
use core::mem;

use crate::merge::{Hold, Stamp};
use crate::policy::MAX_COUNT;
use crate::probes::{Fate, Probe, Probing};
use crate::snapshot::{Phase, MAX_LEVEL};
use crate::tally::{Batch, MAX_BATCHES};
use crate::window::{CallsWindow, FixedWindow, TimeWindow, Window};
use crate::{Counts, Held, Policy, Reason, Snapshot, State, StoredProblem, Time};

/// Probes that are written: as many as can be in flight, have succeeded and are freed.
const MAX_PROBES: usize = 2_063;
const MAX: u64 = Time::MAX.as_millis();
/// Room for the batches of a shared tally.
const BATCHES_BYTES: usize = 1_024;

impl Snapshot {
    /// The longest stored text. Of a window of calls with an age limit the oldest entries are left out where they would not fit.
    pub const MAX_TEXT_BYTES: usize = 32 * 1024;

    /// The stored text.
    ///
    /// ```
    /// use tripcurve::{Policy, Snapshot, Time};
    /// let policy = Policy::default();
    /// let circuit = Snapshot::closed(&policy, 7, Time::from_millis(1_000));
    /// let text = circuit.encode();
    /// let (again, problem) = Snapshot::decode(&policy, &text, Snapshot::closed(&policy, 0, Time::from_millis(0)));
    /// assert_eq!((again.encode(), problem), (text, None));
    /// ```
    pub fn encode(&self) -> String {
        let mut out = Writer(String::with_capacity(64));
        out.tag('1');
        out.tag(';');
        match &self.phase {
            Phase::Closed => out.tag('C'),
            Phase::Open { until } => out.tagged('O', until.as_millis()),
            Phase::HalfOpen { until, .. } => out.tagged('H', until.as_millis()),
        }
        for field in [self.since.as_millis(), self.generation.into(), self.seed.into(), self.level.into(), self.rejected.into()] {
            out.tagged(';', field);
        }
        out.tag(';');
        if self.stamp != Stamp::NONE {
            out.number(self.stamp.since.as_millis());
            out.tagged('.', self.stamp.by.into());
            if let Some((reason, counts)) = self.why {
                let index = Reason::DECISIONS.iter().position(|other| *other == reason).unwrap_or_default();
                out.tag(char::from(b'A' + index as u8));
                out.counts(counts);
            }
        }
        out.tag(';');
        if self.hold != Hold::NONE {
            let tag = match self.hold.value {
                None => 'N',
                Some(Held::Open) => 'O',
                Some(Held::Closed) => 'C',
            };
            out.tagged(tag, self.hold.at.as_millis());
            out.tagged('.', self.hold.by.into());
        }
        out.tag(';');
        if let Phase::HalfOpen { probing, .. } = &self.phase {
            out.number(probing.recorded.into());
            for probe in probing.probes.iter().take(MAX_PROBES) {
                out.tagged(',', probe.id.into());
                out.tag('.');
                if let Some(end) = probe.lease_until {
                    out.number(end.as_millis());
                }
                match probe.fate {
                    Fate::InFlight => {}
                    Fate::Freed => out.tag('X'),
                    Fate::Succeeded => out.tag('S'),
                }
            }
        }
        out.tag(';');
        match &self.window {
            Window::Fixed(window) => out.fixed(window),
            Window::Time(window) => out.time(window),
            Window::Calls(window) => out.calls('N', window),
            Window::Consecutive(window) => out.calls('K', window),
        }
        out.0
    }

    /// Reads a stored text without trust. What cannot be read gives `fresh` instead, what cannot be is clamped, and a window of
    /// another kind or size is dropped; the problem says which. Never panics, and never looks at more than 32 kB.
    ///
    /// An open time that is longer than `max_open_ms`, and whatever lies ahead of the clock, is cut at the first use: the instant of
    /// reading may not be known (an edge worker's clock reads 0 while it starts).
    pub fn decode(policy: &Policy, text: &str, fresh: Snapshot) -> (Snapshot, Option<StoredProblem>) {
        Snapshot::parse(policy, text).unwrap_or_else(|problem| (fresh, Some(problem)))
    }

    /// Reads what somebody else stored; `Err` where there is nothing to be had from it.
    pub fn read(policy: &Policy, text: &str) -> Result<Snapshot, StoredProblem> {
        Snapshot::parse(policy, text).map(|(read, _)| read)
    }

    #[inline(never)]
    fn parse(policy: &Policy, text: &str) -> Result<(Snapshot, Option<StoredProblem>), StoredProblem> {
        if text.len() > Snapshot::MAX_TEXT_BYTES {
            return Err(StoredProblem::TooLong);
        }
        let rest = parts(text).0.strip_prefix(b"1;").ok_or(StoredProblem::UnknownVersion)?;
        let mut reader = Reader { rest, problem: None };
        let snapshot = reader.circuit(policy);
        match reader.problem {
            Some(StoredProblem::Malformed) => Err(StoredProblem::Malformed),
            problem => Ok((snapshot, problem)),
        }
    }
}

/// A text with the batches that are in its tally: the latest at the end, one of each participant.
pub(crate) fn with_batches(text: String, batches: &[Batch], latest: Batch) -> String {
    let mut out = Writer(text);
    let mut before = '#';
    let kept = batches.iter().skip((batches.len() + 1).saturating_sub(MAX_BATCHES));
    for batch in kept.filter(|batch| batch.by != latest.by) {
        out.tagged(mem::replace(&mut before, ','), batch.by.into());
        out.tagged('.', batch.number.into());
    }
    out.tagged(before, latest.by.into());
    out.tagged('.', latest.number.into());
    out.0
}

/// The batches in a text; none from what cannot be read.
pub(crate) fn batches(text: &str) -> Vec<Batch> {
    let mut reader = Reader { rest: parts(text).1, problem: None };
    let mut batches = Vec::new();
    while batches.len() < MAX_BATCHES && (reader.take(b'#') || reader.take(b',')) {
        batches.push(Batch { by: reader.int(), number: reader.int_after(b'.') });
    }
    batches
}

/// The circuit in a text, and the batches of its tally.
fn parts(text: &str) -> (&[u8], &[u8]) {
    let circuit = text.bytes().take_while(|byte| *byte != b'#').count();
    text.as_bytes().split_at(circuit)
}

struct Writer(String);

impl Writer {
    fn tag(&mut self, tag: char) {
        self.0.push(tag);
    }

    fn tagged(&mut self, tag: char, value: u64) {
        self.tag(tag);
        self.number(value);
    }

    fn number(&mut self, value: u64) {
        let rest = value / 36;
        if rest > 0 {
            self.number(rest);
        }
        let digit = (value % 36) as u8;
        self.tag(char::from(if digit < 10 { b'0' + digit } else { b'a' + digit - 10 }));
    }

    fn counts(&mut self, counts: Counts) {
        self.number(counts.calls.into());
        if counts.failures > 0 || counts.slow > 0 {
            self.tagged('.', counts.failures.into());
        }
        if counts.slow > 0 {
            self.tagged('.', counts.slow.into());
        }
    }

    fn fixed(&mut self, window: &FixedWindow) {
        self.tagged('F', window.ms());
        self.tagged(':', window.start().as_millis());
        self.tag('.');
        self.counts(window.counts());
    }

    fn time(&mut self, window: &TimeWindow) {
        if window.counts().calls == 0 {
            return;
        }
        self.tagged('T', window.ms());
        self.tagged('.', window.buckets());
        self.tagged(':', window.end());
        for back in (0..window.used()).rev() {
            self.tag(',');
            self.counts(window.bucket(back));
        }
    }

    fn calls(&mut self, kind: char, window: &CallsWindow) {
        let mut back = window.counts().calls;
        if back == 0 {
            return;
        }
        self.tagged(kind, window.last().into());
        self.tagged('.', window.within_ms());
        self.tag(':');
        let aged = window.is_aged();
        if aged {
            back = window.fitting(Snapshot::MAX_TEXT_BYTES - BATCHES_BYTES - self.0.len() - 12);
        }
        let mut before = Time::ZERO;
        while back > 0 {
            let entry = window.entry(back);
            let mut number = entry.at.since(before);
            before = entry.at;
            while !aged && back > 1 && window.entry(back - 1) == entry {
                number += 1;
                back -= 1;
            }
            if number > 0 {
                self.number(number);
            }
            self.tag(char::from(b'A' + (u8::from(entry.failed) | u8::from(entry.slow) << 1)));
            back -= 1;
        }
    }
}

/// A cursor whose failures stick, so that what reads a field need not look: after the first one everything reads as 0.
struct Reader<'a> {
    rest: &'a [u8],
    problem: Option<StoredProblem>,
}

impl Reader<'_> {
    fn circuit(&mut self, policy: &Policy) -> Snapshot {
        let phase = self.byte();
        let until = if phase == b'C' { Time::ZERO } else { self.time() };
        self.expect(b';');
        let since = self.time();
        let mut read = Snapshot::closed(policy, 0, since);
        read.seen = Time::ZERO;
        read.generation = self.int_after(b';');
        read.seed = self.int_after(b';');
        read.level = self.int_after(b';');
        read.rejected = self.int_after(b';');
        self.expect(b';');
        if self.at_digit() {
            read.stamp = self.stamp();
            if self.rest.first() != Some(&b';') {
                read.why = self.why();
            }
        }
        self.expect(b';');
        if !self.take(b';') {
            read.hold = self.hold();
            self.expect(b';');
        }
        read.phase = match phase {
            b'C' => Phase::Closed,
            b'O' => Phase::Open { until },
            b'H' => Phase::HalfOpen { until, probing: self.probing(policy) },
            _ => self.malformed(Phase::Closed),
        };
        if phase != b'C' && read.stamp == Stamp::NONE {
            self.malformed(()); // nobody opened it
        }
        self.expect(b';');
        if !self.rest.is_empty() {
            self.window(&mut read.window);
        }
        read.level = self.at_most(read.level, MAX_LEVEL);
        if read.state() != State::Closed && read.window.counts() != Counts::default() {
            self.note(StoredProblem::Clamped); // only a closed circuit counts
            read.window.clear(since);
        }
        read
    }

    fn stamp(&mut self) -> Stamp {
        Stamp { since: self.time(), by: self.int_after(b'.') }
    }

    fn why(&mut self) -> Option<(Reason, Counts)> {
        let index = self.byte().wrapping_sub(b'A');
        match Reason::DECISIONS.get(usize::from(index)) {
            Some(reason) => Some((*reason, self.counts())),
            None => self.malformed(None),
        }
    }

    fn hold(&mut self) -> Hold {
        let value = match self.byte() {
            b'N' => None,
            b'O' => Some(Held::Open),
            b'C' => Some(Held::Closed),
            _ => self.malformed(None),
        };
        let Stamp { since: at, by } = self.stamp();
        Hold { at, by, value }
    }

    fn probing(&mut self, policy: &Policy) -> Probing {
        let mut probing = Probing { probes: Vec::new(), recorded: self.int() };
        while probing.probes.len() < MAX_PROBES && self.take(b',') {
            let id = self.int();
            self.expect(b'.');
            let lease_until = if self.at_digit() { Some(self.time()) } else { None };
            let fate = match () {
                () if self.take(b'X') => Fate::Freed,
                () if self.take(b'S') => Fate::Succeeded,
                () => Fate::InFlight,
            };
            probing.insert(Probe { id, lease_until, fate });
        }
        // One success more would have closed it.
        let most = policy.options.probe_successes - 1;
        let succeeded = probing.number(Fate::Succeeded);
        if succeeded > most {
            self.note(StoredProblem::Clamped);
            probing.probes.retain(|probe| probe.fate != Fate::Succeeded);
        }
        probing.recorded = self.at_most(probing.recorded, most - succeeded.min(most));
        probing
    }

    /// Into a fresh one, if it is of the same kind and size.
    fn window(&mut self, window: &mut Window) {
        let kind = self.byte();
        let size = self.number(MAX);
        let second = if self.take(b'.') { self.number(MAX) } else { 0 };
        self.expect(b':');
        match window {
            Window::Fixed(window) if kind == b'F' && window.ms() == size => self.fixed(window),
            Window::Time(window) if kind == b'T' && (window.ms(), window.buckets()) == (size, second) => self.buckets(window),
            Window::Calls(window) if kind == b'N' && (u64::from(window.last()), window.within_ms()) == (size, second) => {
                self.entries(window, false);
            }
            Window::Consecutive(window) if kind == b'K' && window.within_ms() == second => self.entries(window, true),
            _ => return self.note(StoredProblem::OtherWindow),
        }
        if !self.rest.is_empty() {
            self.malformed(());
        }
    }

    fn fixed(&mut self, window: &mut FixedWindow) {
        let start = self.time();
        self.expect(b'.');
        window.restore(start, self.counts());
    }

    fn buckets(&mut self, window: &mut TimeWindow) {
        let end = self.number(2 * MAX);
        for _ in 0..window.buckets() {
            if self.take(b',') {
                window.restore(self.counts(), end);
            }
        }
    }

    fn entries(&mut self, window: &mut CallsWindow, failures_only: bool) {
        let mut at = Time::ZERO;
        let mut entries = 0;
        while !self.rest.is_empty() {
            let number = if self.at_digit() { self.number(MAX) } else { 0 };
            let mark = self.byte().wrapping_sub(b'A');
            let mut more = number;
            if window.is_aged() {
                at = at.after(number);
                more = 0;
            }
            entries += more + 1;
            if mark > 3 || (failures_only && mark & 1 == 0) || entries > MAX_COUNT.into() {
                return self.malformed(());
            }
            for _ in 0..=more {
                window.add(mark & 1 != 0, mark & 2 != 0, at);
            }
        }
    }

    fn counts(&mut self) -> Counts {
        let calls = self.int();
        let mut part = || {
            let part = if self.take(b'.') { self.int() } else { 0 };
            self.at_most(part, calls)
        };
        Counts { calls, failures: part(), slow: part() }
    }

    fn at_most(&mut self, value: u32, most: u32) -> u32 {
        if value > most {
            self.note(StoredProblem::Clamped);
        }
        value.min(most)
    }

    fn time(&mut self) -> Time {
        Time::from_millis(self.number(MAX))
    }

    fn int_after(&mut self, byte: u8) -> u32 {
        self.expect(byte);
        self.int()
    }

    fn int(&mut self) -> u32 {
        self.number(u32::MAX.into()) as u32
    }

    fn number(&mut self, most: u64) -> u64 {
        if !self.at_digit() {
            self.malformed(());
        }
        let mut value = 0;
        while self.at_digit() {
            let byte = self.byte();
            value = value * 36 + u64::from(if byte <= b'9' { byte - b'0' } else { byte - b'a' + 10 });
            if value > most {
                return self.malformed(0);
            }
        }
        value
    }

    #[inline(never)]
    fn at_digit(&self) -> bool {
        matches!(self.rest.first(), Some(b'0'..=b'9' | b'a'..=b'z'))
    }

    fn expect(&mut self, byte: u8) {
        if !self.take(byte) {
            self.malformed(());
        }
    }

    /// Steps over the next byte if it is this one.
    #[inline(never)]
    fn take(&mut self, byte: u8) -> bool {
        let found = self.rest.first() == Some(&byte);
        if found {
            self.byte();
        }
        found
    }

    /// The next byte; 0 at the end.
    #[inline(never)]
    fn byte(&mut self) -> u8 {
        let Some((byte, rest)) = self.rest.split_first() else { return 0 };
        self.rest = rest;
        *byte
    }

    /// The first problem stays, unless nothing can be read at all.
    #[inline(never)]
    fn note(&mut self, problem: StoredProblem) {
        self.problem = self.problem.or(Some(problem));
    }

    fn malformed<T>(&mut self, value: T) -> T {
        self.problem = Some(StoredProblem::Malformed);
        self.rest = &[];
        value
    }
}
