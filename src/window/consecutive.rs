//! `consecutive`: failures since the last success.

use super::calls::CallsWindow;
use crate::{Counts, Time};

/// A window of calls that holds failures only: any success, fast or slow, empties it and is not entered.
#[derive(Clone, Debug)]
pub(crate) struct ConsecutiveWindow {
    failures: CallsWindow,
    /// Successes ever, around the end of its range.
    successes: u32,
}

impl ConsecutiveWindow {
    pub(crate) fn new(enough: u32, within_ms: Option<u64>) -> ConsecutiveWindow {
        ConsecutiveWindow { failures: CallsWindow::new(enough, within_ms), successes: 0 }
    }

    pub(crate) fn as_calls(&self) -> &CallsWindow {
        &self.failures
    }

    pub(crate) fn as_calls_mut(&mut self) -> &mut CallsWindow {
        &mut self.failures
    }

    pub(crate) fn clear(&mut self) {
        self.failures.clear();
    }

    pub(crate) fn roll(&mut self, now: Time) {
        self.failures.roll(now);
    }

    pub(crate) fn add(&mut self, failed: bool, slow: bool, now: Time) {
        if failed {
            self.failures.add(failed, slow, now);
        } else {
            self.failures.clear();
            self.successes = self.successes.wrapping_add(1);
        }
    }

    /// Adds what `mine` has counted beyond `base`, and gives it.
    pub(crate) fn absorb(&mut self, mine: &ConsecutiveWindow, base: &ConsecutiveWindow) -> Counts {
        if mine.successes != base.successes {
            self.failures.clear();
            self.successes = self.successes.wrapping_add(1);
        }
        self.failures.absorb(&mine.failures, &base.failures)
    }

    pub(crate) fn counts(&self) -> Counts {
        self.failures.counts()
    }

    pub(crate) fn next_change_at(&self) -> Option<Time> {
        self.failures.next_change_at()
    }

    pub(crate) fn fit(&mut self, by: u64, latest: Time) {
        self.failures.fit(by, latest);
    }
}

impl PartialEq for ConsecutiveWindow {
    fn eq(&self, other: &ConsecutiveWindow) -> bool {
        self.failures == other.failures
    }
}

impl Eq for ConsecutiveWindow {}
