//! The stored text: a circuit on one line of printable ASCII, versioned, at most 32 kB, read without trust.
//!
//! Eleven fields joined by `;`, numbers in base 36:
//!
//! ```text
//! 1 ; phase+until ; since ; generation ; seed ; level ; rejected ; since.by ; hold at.by ; successes,id.lease[!] ; window
//! ```
//!
//! Phase is `c`, `o` or `h`; hold is `n`, `o` or `c`; `!` marks a settled probe. An empty field is "never" or "none". A window is its
//! kind with its size, then `:` and its counts: see `print_window`.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use crate::merge::{Hold, Stamp};
use crate::policy::MAX_COUNT;
use crate::probes::{Probe, Probing};
use crate::snapshot::{Phase, MAX_LEVEL};
use crate::window::{CallsWindow, ConsecutiveWindow, Entry, FixedWindow, TimeWindow, Window};
use crate::{Counts, Held, Policy, Snapshot, StoredProblem, Time};

/// Probes that are written; no limit of a policy is larger.
const MAX_PROBES: usize = 1_000;

impl Snapshot {
    /// The longest stored text. Of a window of calls with an age limit the oldest entries are left out where they would not fit.
    pub const MAX_TEXT_BYTES: usize = 32 * 1024;

    /// The stored text. It ends with the window, which is empty unless the circuit is closed.
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
        let mut out = String::with_capacity(64);
        out.push_str("1;");
        let probing = match &self.phase {
            Phase::Closed => {
                out.push('c');
                None
            }
            Phase::Open { until } => {
                out.push('o');
                number(&mut out, until.as_millis());
                None
            }
            Phase::HalfOpen { until, probing } => {
                out.push('h');
                number(&mut out, until.as_millis());
                Some(probing)
            }
        };
        for field in [self.since.as_millis(), self.generation.into(), self.seed.into(), self.level.into(), self.rejected.into()] {
            out.push(';');
            number(&mut out, field);
        }
        out.push(';');
        if self.stamp != Stamp::NONE {
            pair(&mut out, self.stamp.since.as_millis(), self.stamp.by.into());
        }
        out.push(';');
        if let Some(hold) = &self.hold {
            out.push(match hold.value {
                None => 'n',
                Some(Held::Open) => 'o',
                Some(Held::Closed) => 'c',
            });
            pair(&mut out, hold.at.as_millis(), hold.by.into());
        }
        out.push(';');
        if let Some(probing) = probing {
            number(&mut out, probing.successes.into());
            for probe in probing.probes.iter().take(MAX_PROBES) {
                out.push(',');
                number(&mut out, probe.id.into());
                out.push('.');
                if let Some(end) = probe.lease_until {
                    number(&mut out, end.as_millis());
                }
                if probe.settled {
                    out.push('!');
                }
            }
        }
        out.push(';');
        self.encode_window(&mut out);
        out
    }

    /// The window's own part of the stored text.
    pub fn encode_window(&self, out: &mut String) {
        match &self.window {
            Window::Fixed(window) => print_fixed(out, window),
            Window::Time(window) => print_time(out, window),
            Window::Calls(window) => print_calls(out, 'n', 'w', window),
            Window::Consecutive(window) => print_calls(out, 'k', 'q', window.as_calls()),
        }
    }

    /// Reads a stored text without trust. What cannot be read gives `fresh` instead, what cannot be is clamped, and a window of
    /// another kind or size is dropped; the problem says which. Never panics, and never looks at more than 32 kB.
    ///
    /// An open time that is longer than `max_open_ms`, and whatever lies ahead of the clock, is cut at the first use: the instant of
    /// reading may not be known (an edge worker's clock reads 0 while it starts).
    pub fn decode(policy: &Policy, text: &str, fresh: Snapshot) -> (Snapshot, Option<StoredProblem>) {
        if text.len() > Snapshot::MAX_TEXT_BYTES {
            return (fresh, Some(StoredProblem::TooLong));
        }
        if !text.starts_with("1;") {
            return (fresh, Some(StoredProblem::UnknownVersion));
        }
        match (Reader { policy, problem: None }).circuit(text) {
            Some(read) => read,
            None => (fresh, Some(StoredProblem::Malformed)),
        }
    }
}

struct Reader<'a> {
    policy: &'a Policy,
    problem: Option<StoredProblem>,
}

impl Reader<'_> {
    fn circuit(mut self, text: &str) -> Option<(Snapshot, Option<StoredProblem>)> {
        let mut fields = text.split(';').skip(1);
        let phase = fields.next()?;
        let since = time(fields.next()?)?;
        let generation = int(fields.next()?)?;
        let seed = int(fields.next()?)?;
        let level: u32 = int(fields.next()?)?;
        let rejected = int(fields.next()?)?;
        let stamp = match fields.next()? {
            "" => Stamp::NONE,
            text => {
                let (since, by) = stamp(text)?;
                Stamp { since, by }
            }
        };
        let hold = match fields.next()? {
            "" => None,
            text => {
                let (letter, rest) = split_letter(text)?;
                let (at, by) = self::stamp(rest)?;
                let value = match letter {
                    'n' => None,
                    'o' => Some(Held::Open),
                    'c' => Some(Held::Closed),
                    _ => return None,
                };
                Some(Box::new(Hold { value, at, by }))
            }
        };
        let probing = fields.next()?;
        let window_text = fields.next()?;
        if fields.next().is_some() {
            return None;
        }
        let phase = match (split_letter(phase)?, probing) {
            (('c', ""), "") => Phase::Closed,
            (('o', until), "") => Phase::Open { until: time(until)? },
            (('h', until), probing) => Phase::HalfOpen { until: time(until)?, probing: Box::new(self.probing(probing)?) },
            _ => return None,
        };
        let window = self.window(window_text, since)?;
        let snapshot = Snapshot {
            phase,
            stamp,
            hold,
            window,
            since,
            seen: Time::ZERO,
            generation,
            seed,
            level: self.at_most(level, MAX_LEVEL),
            rejected,
        };
        Some((self.consistent(snapshot), self.problem))
    }

    /// Only a closed circuit has counts.
    fn consistent(&mut self, mut snapshot: Snapshot) -> Snapshot {
        if snapshot.state() != crate::State::Closed && snapshot.window.counts() != Counts::default() {
            self.problem = Some(StoredProblem::Clamped);
            snapshot.window.clear(snapshot.since);
        }
        snapshot
    }

    fn probing(&mut self, text: &str) -> Option<Probing> {
        let mut parts = text.split(',');
        let successes = int(parts.next()?)?;
        let successes = self.at_most(successes, self.policy.probe_successes - 1);
        let mut probes = Vec::new();
        for part in parts {
            if probes.len() >= MAX_PROBES {
                return None;
            }
            let (id, lease) = part.split_once('.')?;
            let settled = lease.ends_with('!');
            let lease = lease.strip_suffix('!').unwrap_or(lease);
            let lease_until = if lease.is_empty() { None } else { Some(time(lease)?) };
            probes.push(Probe { id: int(id)?, lease_until, settled });
        }
        Some(Probing { probes, successes })
    }

    fn window(&mut self, text: &str, since: Time) -> Option<Window> {
        let fresh = Window::new(self.policy, since);
        if text.is_empty() {
            return Some(fresh);
        }
        let (kind, rest) = split_letter(text)?;
        let (shape, data) = rest.split_once(':')?;
        let mut sizes = shape.split('.').map(long);
        let size = sizes.next()??;
        let other_size = match sizes.next() {
            Some(size) => size?,
            None => 0,
        };
        let read = match (&fresh, kind) {
            (Window::Fixed(window), 'f') if window.ms() == size => self.fixed(size, data)?,
            (Window::Time(window), 't') if window.shape() == (size, other_size as u32) => self.time(window, data)?,
            (Window::Calls(window), 'n') if window.shape() == (size as u32, None) => Window::Calls(bits(window, data)?),
            (Window::Calls(window), 'w') if window.shape() == (size as u32, Some(other_size)) => {
                Window::Calls(stamped(window, data)?)
            }
            (Window::Consecutive(window), 'k') if window.as_calls().shape().1.is_none() => {
                Window::Consecutive(ConsecutiveWindow::restored(bits(window.as_calls(), data)?))
            }
            (Window::Consecutive(window), 'q') if window.as_calls().shape().1 == Some(other_size) => {
                Window::Consecutive(ConsecutiveWindow::restored(stamped(window.as_calls(), data)?))
            }
            _ => {
                self.problem = Some(StoredProblem::OtherWindow);
                return Some(fresh);
            }
        };
        Some(read)
    }

    fn fixed(&mut self, ms: u64, data: &str) -> Option<Window> {
        let (start, counts) = data.split_once('.')?;
        Some(Window::Fixed(FixedWindow::restored(ms, time(start)?, self.counts(counts)?)))
    }

    fn time(&mut self, window: &TimeWindow, data: &str) -> Option<Window> {
        let mut parts = data.split(',');
        let end = long(parts.next()?)?;
        let (ms, buckets) = window.shape();
        let mut counts = Vec::new();
        for part in parts {
            if counts.len() >= buckets as usize {
                return None;
            }
            counts.push(if part.is_empty() { Counts::default() } else { self.counts(part)? });
        }
        Some(Window::Time(TimeWindow::restored(ms, buckets, end, counts.into_iter())))
    }

    fn counts(&mut self, text: &str) -> Option<Counts> {
        let mut parts = text.split('.');
        let calls = int(parts.next()?)?;
        let mut next = || parts.next().map_or(Some(0), int);
        let (failures, slow): (u32, u32) = (next()?, next()?);
        if parts.next().is_some() {
            return None;
        }
        Some(Counts { calls, failures: self.at_most(failures, calls), slow: self.at_most(slow, calls) })
    }

    fn at_most(&mut self, value: u32, most: u32) -> u32 {
        if value > most {
            self.problem = Some(StoredProblem::Clamped);
        }
        value.min(most)
    }
}

/// `f<ms>:<start>.<calls>.<failures>.<slow>`
fn print_fixed(out: &mut String, window: &FixedWindow) {
    out.push('f');
    number(out, window.ms());
    out.push(':');
    number(out, window.start().as_millis());
    out.push('.');
    print_counts(out, window.counts());
}

/// `t<ms>.<buckets>:<end>,<counts>,…` from the newest bucket back; an empty bucket is empty, those after the last are left out.
fn print_time(out: &mut String, window: &TimeWindow) {
    if window.counts().calls == 0 {
        return;
    }
    out.push('t');
    let (ms, buckets) = window.shape();
    pair(out, ms, buckets.into());
    out.push(':');
    number(out, window.end().min(Time::MAX.as_millis()));
    let mut empty = 0;
    for counts in window.newest_first() {
        if counts.calls == 0 {
            empty += 1;
            continue;
        }
        for _ in 0..=empty {
            out.push(',');
        }
        empty = 0;
        print_counts(out, counts);
    }
}

/// `n<last>:<count>.<pairs>`, or with an age limit `w<last>.<within>:<instant><mark><age><mark>…` from the newest entry back, each age
/// counted from the entry before it and left out when 0; a mark is `A` success, `B` failure, `C` slow success, `D` slow failure. Six
/// outcomes a character where none is slow (`-`), else three (`=`).
fn print_calls(out: &mut String, plain: char, aged: char, window: &CallsWindow) {
    let calls = window.counts().calls;
    if calls == 0 {
        return;
    }
    let (last, within_ms) = window.shape();
    let Some(within_ms) = within_ms else {
        out.push(plain);
        number(out, last.into());
        out.push(':');
        number(out, calls.into());
        let any_slow = window.counts().slow > 0;
        out.push(if any_slow { '=' } else { '-' });
        let (width, full) = if any_slow { (2, 6) } else { (1, 6) };
        let (mut sextet, mut used) = (0u8, 0);
        for entry in window.newest_first() {
            sextet |= (u8::from(entry.failed) | u8::from(entry.slow) << 1) << used;
            used += width;
            if used >= full {
                out.push(sextet_to_char(sextet));
                (sextet, used) = (0, 0);
            }
        }
        if used > 0 {
            out.push(sextet_to_char(sextet));
        }
        return;
    };
    out.push(aged);
    pair(out, last.into(), within_ms);
    out.push(':');
    let mut newer: Option<Time> = None;
    for entry in window.newest_first() {
        if out.len() + 12 > Snapshot::MAX_TEXT_BYTES {
            break;
        }
        match newer {
            None => number(out, entry.at.as_millis()),
            Some(newer) if newer > entry.at => number(out, newer.since(entry.at)),
            Some(_) => {}
        }
        newer = Some(entry.at);
        out.push(match (entry.failed, entry.slow) {
            (false, false) => 'A',
            (true, false) => 'B',
            (false, true) => 'C',
            (true, true) => 'D',
        });
    }
}

fn bits(like: &CallsWindow, data: &str) -> Option<CallsWindow> {
    let slow = data.contains('=');
    let (count, pairs) = data.split_once(if slow { '=' } else { '-' })?;
    let count: u32 = int(count)?;
    let per_char = if slow { 3 } else { 6 };
    if count > MAX_COUNT || pairs.len() != (count as usize).div_ceil(per_char) {
        return None;
    }
    let mut entries = Vec::new();
    let mut left = count;
    for char in pairs.chars() {
        let mut sextet = char_to_sextet(char)?;
        for _ in 0..per_char.min(left as usize) {
            entries.push(Entry { failed: sextet & 1 != 0, slow: slow && sextet & 2 != 0, at: Time::ZERO });
            sextet >>= if slow { 2 } else { 1 };
            left -= 1;
        }
    }
    Some(refill(like, entries))
}

fn stamped(like: &CallsWindow, data: &str) -> Option<CallsWindow> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut rest = data;
    while let Some(mark_at) = rest.find(|c: char| c.is_ascii_uppercase()) {
        if entries.len() >= MAX_COUNT as usize {
            return None;
        }
        let (digits, tail) = rest.split_at_checked(mark_at)?;
        let (mark, tail) = split_letter(tail)?;
        let value = if digits.is_empty() { 0 } else { long(digits)? };
        let at = match entries.last() {
            Some(newer) => newer.at.before(value),
            None => Time::from_millis(value),
        };
        let (failed, slow) = match mark {
            'A' => (false, false),
            'B' => (true, false),
            'C' => (false, true),
            'D' => (true, true),
            _ => return None,
        };
        entries.push(Entry { failed, slow, at });
        rest = tail;
    }
    rest.is_empty().then(|| refill(like, entries))
}

fn refill(like: &CallsWindow, newest_first: Vec<Entry>) -> CallsWindow {
    let (last, within_ms) = like.shape();
    let mut window = CallsWindow::new(last, within_ms);
    for entry in newest_first.iter().rev() {
        window.add(entry.failed, entry.slow, entry.at);
    }
    window
}

/// `calls.failures.slow`, without zeros at the end.
fn print_counts(out: &mut String, counts: Counts) {
    number(out, counts.calls.into());
    if counts.failures > 0 || counts.slow > 0 {
        out.push('.');
        number(out, counts.failures.into());
    }
    if counts.slow > 0 {
        out.push('.');
        number(out, counts.slow.into());
    }
}

fn pair(out: &mut String, first: u64, second: u64) {
    number(out, first);
    out.push('.');
    number(out, second);
}

fn number(out: &mut String, value: u64) {
    let rest = value / 36;
    if rest > 0 {
        number(out, rest);
    }
    let digit = (value % 36) as u8;
    out.push(char::from(if digit < 10 { b'0' + digit } else { b'a' + digit - 10 }));
}

/// A number of at most 2^53 − 1.
fn long(text: &str) -> Option<u64> {
    if text.is_empty() || text.len() > 11 {
        return None;
    }
    let mut value = 0u64;
    for byte in text.bytes() {
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'z' => byte - b'a' + 10,
            _ => return None,
        };
        value = value * 36 + u64::from(digit);
    }
    (value <= Time::MAX.as_millis()).then_some(value)
}

fn int(text: &str) -> Option<u32> {
    long(text)?.try_into().ok()
}

fn time(text: &str) -> Option<Time> {
    long(text).map(Time::from_millis)
}

fn stamp(text: &str) -> Option<(Time, u32)> {
    let (since, by) = text.split_once('.')?;
    Some((time(since)?, int(by)?))
}

fn split_letter(text: &str) -> Option<(char, &str)> {
    let mut chars = text.chars();
    let letter = chars.next()?;
    Some((letter, chars.as_str()))
}

fn sextet_to_char(sextet: u8) -> char {
    char::from(match sextet {
        0..=25 => b'A' + sextet,
        26..=51 => b'a' + sextet - 26,
        52..=61 => b'0' + sextet - 52,
        62 => b'_',
        _ => b'~',
    })
}

fn char_to_sextet(char: char) -> Option<u8> {
    Some(match char {
        'A'..='Z' => char as u8 - b'A',
        'a'..='z' => char as u8 - b'a' + 26,
        '0'..='9' => char as u8 - b'0' + 52,
        '_' => 62,
        '~' => 63,
        _ => return None,
    })
}
