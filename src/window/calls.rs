//! `calls`: the last outcomes, two bits each; with an age limit, an instant each as well.

use alloc::boxed::Box;
use alloc::vec;

use crate::{Counts, Time};

/// One remembered outcome. `at` is [`Time::ZERO`] where there is no age limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Entry {
    pub(crate) failed: bool,
    pub(crate) slow: bool,
    pub(crate) at: Time,
}

/// A ring with running totals. It is made by the first outcome: an idle circuit has none.
#[derive(Clone, Debug)]
pub(crate) struct CallsWindow {
    within_ms: Option<u64>,
    last: u16,
    next: u16,
    total: Counts,
    /// Bit 0 of each pair: failed; bit 1: slow.
    pairs: Box<[u8]>,
    /// When each ended; empty without an age limit.
    times: Box<[Time]>,
}

impl CallsWindow {
    pub(crate) fn new(last: u32, within_ms: Option<u64>) -> CallsWindow {
        CallsWindow {
            within_ms,
            last: last as u16,
            next: 0,
            total: Counts::default(),
            pairs: Box::default(),
            times: Box::default(),
        }
    }

    pub(crate) fn clear(&mut self) {
        self.next = 0;
        self.total = Counts::default();
    }

    pub(crate) fn roll(&mut self, now: Time) {
        let Some(ms) = self.within_ms else { return };
        while self.total.calls > 0 && now.since(self.oldest().at) > ms {
            self.drop_oldest();
        }
    }

    pub(crate) fn add(&mut self, failed: bool, slow: bool, now: Time) {
        if self.pairs.is_empty() {
            self.allocate();
        }
        if self.total.calls >= self.last.into() {
            self.drop_oldest();
        }
        let shift = (self.next & 3) * 2;
        if let Some(byte) = self.pairs.get_mut(usize::from(self.next >> 2)) {
            *byte = *byte & !(3 << shift) | (u8::from(failed) | u8::from(slow) << 1) << shift;
        }
        if let Some(slot) = self.times.get_mut(usize::from(self.next)) {
            *slot = now;
        }
        self.next = if self.next + 1 >= self.last { 0 } else { self.next + 1 };
        self.total.add(failed, slow);
    }

    pub(crate) fn counts(&self) -> Counts {
        self.total
    }

    pub(crate) fn shape(&self) -> (u32, Option<u64>) {
        (self.last.into(), self.within_ms)
    }

    /// From the newest entry back.
    pub(crate) fn newest_first(&self) -> impl Iterator<Item = Entry> + '_ {
        (1..=self.total.calls).map(|back| self.entry_back(back))
    }

    pub(crate) fn next_change_at(&self) -> Option<Time> {
        let ms = self.within_ms?;
        (self.total.calls > 0).then(|| self.oldest().at.after(ms).after(1))
    }

    pub(crate) fn move_back(&mut self, by: u64) {
        for at in &mut self.times {
            *at = at.before(by);
        }
    }

    pub(crate) fn anchor(&mut self, now: Time) {
        for at in &mut self.times {
            *at = now.min(*at);
        }
    }

    fn allocate(&mut self) {
        let last = usize::from(self.last);
        self.pairs = vec![0; last.div_ceil(4)].into_boxed_slice();
        if self.within_ms.is_some() {
            self.times = vec![Time::ZERO; last].into_boxed_slice();
        }
    }

    fn oldest(&self) -> Entry {
        self.entry_back(self.total.calls)
    }

    /// The entry that many places behind the next free one.
    fn entry_back(&self, back: u32) -> Entry {
        let (next, last) = (u32::from(self.next), u32::from(self.last));
        let at = (if next >= back { next - back } else { next + last - back }) as usize;
        let pair = self.pairs.get(at >> 2).map_or(0, |byte| byte >> ((at & 3) * 2));
        Entry { failed: pair & 1 != 0, slow: pair & 2 != 0, at: self.times.get(at).copied().unwrap_or_default() }
    }

    fn drop_oldest(&mut self) {
        let Entry { failed, slow, .. } = self.oldest();
        self.total = self.total.minus(Counts { calls: 1, failures: failed.into(), slow: slow.into() });
    }
}

impl PartialEq for CallsWindow {
    /// The same entries, wherever in the ring they lie.
    fn eq(&self, other: &CallsWindow) -> bool {
        self.shape() == other.shape() && self.newest_first().eq(other.newest_first())
    }
}

impl Eq for CallsWindow {}
