//! `time`: buckets aligned to the epoch; the current one and those before it that fit the window count.

use alloc::vec::Vec;

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
    ring: Vec<Counts>,
}

impl TimeWindow {
    pub(crate) fn new(ms: u64, buckets: u32) -> TimeWindow {
        TimeWindow { ms, end: 0, total: Counts::default(), buckets: buckets as u16, newest: 0, ring: Vec::new() }
    }

    /// The length of one bucket.
    fn width(&self) -> u64 {
        self.ms / u64::from(self.buckets).max(1)
    }

    fn end_of_bucket_at(&self, now: Time) -> u64 {
        (now.as_millis() / self.width() + 1) * self.width()
    }

    fn allocate(&mut self) {
        self.ring.resize(self.buckets.into(), Counts::default());
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

    /// The bucket that many places behind the newest.
    pub(crate) fn bucket(&self, back: u16) -> Counts {
        let at = if back <= self.newest { self.newest - back } else { self.newest + self.buckets - back };
        self.ring.get(usize::from(at)).copied().unwrap_or_default()
    }

    /// How many buckets there are from the oldest one that counts to the newest.
    pub(crate) fn used(&self) -> u16 {
        (0..self.buckets).rev().find(|back| self.bucket(*back).calls > 0).map_or(0, |back| back + 1)
    }

    /// Adds a stored bucket, from the oldest to the newest, of a window whose newest bucket ends at `end`.
    pub(crate) fn restore(&mut self, counts: Counts, end: u64) {
        self.allocate();
        self.end = end / self.width() * self.width();
        self.newest = if self.newest + 1 >= self.buckets { 0 } else { self.newest + 1 };
        if let Some(bucket) = self.ring.get_mut(usize::from(self.newest)) {
            *bucket = counts;
            self.total = self.total.plus(counts);
        }
    }

    pub(crate) fn next_change_at(&self) -> Option<Time> {
        let oldest = self.used().checked_sub(1)?;
        let older = self.width() * u64::from(oldest);
        Some(Time::from_millis((self.end + self.ms).saturating_sub(self.width() + older)))
    }

    pub(crate) fn move_back(&mut self, by: u64) {
        let last_instant = Time::from_millis(self.end.saturating_sub(1)).before(by);
        self.end = self.end_of_bucket_at(last_instant);
    }

    pub(crate) fn anchor(&mut self, now: Time) {
        self.end = self.end.min(self.end_of_bucket_at(now));
    }
}
