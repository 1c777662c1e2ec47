//! `time`: buckets aligned to the epoch; the current one and those before it that fit the window count.

use alloc::vec::Vec;
use core::num::NonZeroU64;

use crate::{Counts, Time};

pub(crate) const MAX_BUCKETS: u32 = 100;

/// A ring of buckets with a running total, so that no call scans. The ring is made by the first outcome: an idle circuit has none.
// In this order: the tag of `Window` then fits into the ring's capacity also where pointers are half as long as instants.
#[derive(Clone, PartialEq, Eq, Debug)]
#[repr(C)]
pub(crate) struct TimeWindow {
    ring: Vec<Counts>,
    buckets: u16,
    newest: u16,
    /// The length of one bucket.
    width: NonZeroU64,
    /// The instant at which the newest bucket ends, a multiple of a bucket's length.
    end: u64,
    total: Counts,
}

impl TimeWindow {
    pub(crate) fn new(ms: u64, buckets: u32) -> TimeWindow {
        let width = ms.checked_div(buckets.into()).and_then(NonZeroU64::new).unwrap_or(NonZeroU64::MIN);
        TimeWindow { width, end: 0, total: Counts::default(), ring: Vec::new(), buckets: buckets as u16, newest: 0 }
    }

    fn end_of_bucket_at(&self, now: Time) -> u64 {
        (now.as_millis() / self.width + 1) * self.width.get()
    }

    fn allocate(&mut self) {
        self.ring.resize(self.buckets.into(), Counts::default());
    }

    fn step(&mut self) {
        self.newest = if self.newest + 1 >= self.buckets { 0 } else { self.newest + 1 };
    }

    pub(crate) fn clear(&mut self) {
        self.total = Counts::default();
        self.ring.fill(Counts::default());
    }

    #[inline(always)]
    pub(crate) fn roll(&mut self, now: Time) {
        if now.as_millis() < self.end || self.ring.is_empty() {
            return;
        }
        self.turn(now);
    }

    #[cold]
    #[inline(never)]
    fn turn(&mut self, now: Time) {
        let steps = (now.as_millis() - self.end) / self.width + 1;
        if steps >= self.buckets.into() || self.total.calls == 0 {
            self.clear();
        } else {
            for _ in 0..steps {
                self.step();
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
            self.begin(now);
        }
        if let Some(bucket) = self.ring.get_mut(usize::from(self.newest)) {
            bucket.add(failed, slow);
            self.total.add(failed, slow);
        }
    }

    #[cold]
    #[inline(never)]
    fn begin(&mut self, now: Time) {
        self.allocate();
        self.end = self.end_of_bucket_at(now);
    }

    pub(crate) fn counts(&self) -> Counts {
        self.total
    }

    pub(crate) fn ms(&self) -> u64 {
        self.width.get() * self.buckets()
    }

    pub(crate) fn buckets(&self) -> u64 {
        self.buckets.into()
    }

    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// The bucket that many places behind the newest.
    pub(crate) fn bucket(&self, back: u16) -> Counts {
        self.ring.get(self.place(back)).copied().unwrap_or_default()
    }

    fn place(&self, back: u16) -> usize {
        usize::from(if back <= self.newest { self.newest - back } else { self.newest + self.buckets - back })
    }

    /// How many buckets there are from the oldest one that counts to the newest.
    pub(crate) fn used(&self) -> u16 {
        (0..self.buckets).rev().find(|back| self.bucket(*back).calls > 0).map_or(0, |back| back + 1)
    }

    /// Adds a stored bucket, from the oldest to the newest, of a window whose newest bucket ends at `end`.
    pub(crate) fn restore(&mut self, counts: Counts, end: u64) {
        self.allocate();
        self.end = end / self.width * self.width.get();
        self.step();
        if let Some(bucket) = self.ring.get_mut(usize::from(self.newest)) {
            *bucket = counts;
            self.total = self.total.plus(counts);
        }
    }

    /// Adds what `mine` has counted beyond `base`, bucket by bucket, and gives it.
    pub(crate) fn absorb(&mut self, mine: &mut TimeWindow, base: &mut TimeWindow) -> Counts {
        self.allocate();
        let latest = Time::from_millis(self.end.max(mine.end).saturating_sub(1));
        for window in [&mut *self, &mut *mine, &mut *base] {
            window.roll(latest);
        }
        let mut added = Counts::default();
        for back in 0..self.buckets {
            let own = mine.bucket(back).minus(base.bucket(back));
            added = added.plus(own);
            let at = self.place(back);
            if let Some(bucket) = self.ring.get_mut(at) {
                *bucket = bucket.plus(own);
            }
        }
        self.total = self.total.plus(added);
        added
    }

    pub(crate) fn next_change_at(&self) -> Option<Time> {
        let oldest = self.used().checked_sub(1)?;
        let ahead = self.width.get() * u64::from(self.buckets - 1 - oldest);
        Some(Time::from_millis(self.end + ahead))
    }

    pub(crate) fn fit(&mut self, by: i64, latest: Time) {
        if !self.ring.is_empty() {
            let last_instant = Time::from_millis(self.end.saturating_sub(1));
            self.end = self.end_of_bucket_at(last_instant.moved(by).min(latest));
        }
    }
}
