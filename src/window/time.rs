//! `time`: buckets aligned to the epoch; the current one and those before it that fit the window count.

use alloc::boxed::Box;
use alloc::vec;

use crate::{Counts, Time};

pub(crate) const MAX_BUCKETS: u32 = 100;

/// A ring of buckets with a running total, so that no call scans. The ring is made by the first outcome: an idle circuit has none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct TimeWindow {
    ms: u64,
    /// The instant at which the newest bucket ends, a multiple of a bucket's length.
    end: u64,
    total: Counts,
    buckets: u16,
    newest: u16,
    ring: Box<[Counts]>,
}

impl TimeWindow {
    pub(crate) fn new(ms: u64, buckets: u32) -> TimeWindow {
        TimeWindow { ms, end: 0, total: Counts::default(), buckets: buckets as u16, newest: 0, ring: Box::default() }
    }

    /// `counts`: from the newest bucket back.
    pub(crate) fn restored(ms: u64, buckets: u32, end: u64, counts: impl Iterator<Item = Counts>) -> TimeWindow {
        let mut window = TimeWindow::new(ms, buckets);
        window.allocate();
        let width = window.width();
        window.end = end / width * width;
        for (slot, bucket) in window.ring.iter_mut().rev().zip(counts) {
            *slot = bucket;
            window.total = window.total.plus(bucket);
        }
        window.newest = window.buckets.saturating_sub(1);
        window
    }

    /// The length of one bucket.
    fn width(&self) -> u64 {
        self.ms / u64::from(self.buckets).max(1)
    }

    fn end_of_bucket_at(&self, now: Time) -> u64 {
        (now.as_millis() / self.width() + 1) * self.width()
    }

    fn allocate(&mut self) {
        self.ring = vec![Counts::default(); self.buckets.into()].into_boxed_slice();
    }

    pub(crate) fn clear(&mut self) {
        self.total = Counts::default();
        self.ring.fill(Counts::default());
    }

    pub(crate) fn roll(&mut self, now: Time) {
        if now.as_millis() < self.end || self.ring.is_empty() {
            return;
        }
        let steps = (now.as_millis() - self.end) / self.width() + 1;
        if steps >= self.buckets.into() || self.total.calls == 0 {
            self.clear();
        } else {
            for _ in 0..steps {
                self.newest = if self.newest + 1 >= self.buckets { 0 } else { self.newest + 1 };
                if let Some(oldest) = self.ring.get_mut(usize::from(self.newest)) {
                    self.total = self.total.minus(*oldest);
                    *oldest = Counts::default();
                }
            }
        }
        self.end = self.end_of_bucket_at(now);
    }

    pub(crate) fn add(&mut self, failed: bool, slow: bool, now: Time) {
        if self.ring.is_empty() {
            self.allocate();
            self.end = self.end_of_bucket_at(now);
        }
        if let Some(bucket) = self.ring.get_mut(usize::from(self.newest)) {
            bucket.add(failed, slow);
            self.total.add(failed, slow);
        }
    }

    pub(crate) fn counts(&self) -> Counts {
        self.total
    }

    pub(crate) fn shape(&self) -> (u64, u32) {
        (self.ms, self.buckets.into())
    }

    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// From the newest bucket back.
    pub(crate) fn newest_first(&self) -> impl Iterator<Item = Counts> + '_ {
        let (newer, older) = self.ring.split_at((usize::from(self.newest) + 1).min(self.ring.len()));
        newer.iter().rev().chain(older.iter().rev()).copied()
    }

    pub(crate) fn next_change_at(&self) -> Option<Time> {
        let mut leaves = None;
        let mut at = self.end.saturating_add(self.ms - self.width());
        for bucket in self.newest_first() {
            if bucket.calls > 0 {
                leaves = Some(Time::from_millis(at));
            }
            at = at.saturating_sub(self.width());
        }
        leaves
    }

    pub(crate) fn move_back(&mut self, by: u64) {
        let last_instant = Time::from_millis(self.end.saturating_sub(1)).before(by);
        self.end = self.end_of_bucket_at(last_instant);
    }

    pub(crate) fn anchor(&mut self, now: Time) {
        self.end = self.end.min(self.end_of_bucket_at(now));
    }
}
