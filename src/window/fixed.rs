//! `fixed`: one set of counters that starts again when its length is over.

use crate::{Counts, Time};

/// The first operation at or after its end starts it afresh at that operation's own instant, even when it was empty (phil).
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct FixedWindow {
    ms: u64,
    start: Time,
    counts: Counts,
}

impl FixedWindow {
    pub(crate) fn new(ms: u64, now: Time) -> FixedWindow {
        FixedWindow { ms, start: now, counts: Counts::default() }
    }

    pub(crate) fn restore(&mut self, start: Time, counts: Counts) {
        self.start = start;
        self.counts = counts;
    }

    pub(crate) fn clear(&mut self, now: Time) {
        self.start = now;
        self.counts = Counts::default();
    }

    pub(crate) fn roll(&mut self, now: Time) {
        if now.since(self.start) >= self.ms {
            self.clear(now);
        }
    }

    pub(crate) fn add(&mut self, failed: bool, slow: bool) {
        self.counts.add(failed, slow);
    }

    /// Adds what `mine` has counted beyond `base`, and gives it.
    pub(crate) fn absorb(&mut self, mine: &FixedWindow, base: &FixedWindow) -> Counts {
        let own = if mine.start == base.start { mine.counts.minus(base.counts) } else { mine.counts };
        self.counts = self.counts.plus(own);
        own
    }

    pub(crate) fn counts(&self) -> Counts {
        self.counts
    }

    pub(crate) fn ms(&self) -> u64 {
        self.ms
    }

    pub(crate) fn start(&self) -> Time {
        self.start
    }

    pub(crate) fn next_change_at(&self) -> Option<Time> {
        (self.counts.calls > 0).then_some(self.start.after(self.ms))
    }

    pub(crate) fn fit(&mut self, by: i64, latest: Time) {
        self.start = self.start.moved(by).min(latest);
    }
}
