//! `calls`: the last outcomes, two bits each; with an age limit, an instant each as well.

use alloc::vec::Vec;

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
    pairs: Vec<u8>,
    /// When each ended; empty without an age limit.
    times: Vec<Time>,
}

impl CallsWindow {
    pub(crate) fn new(last: u32, within_ms: Option<u64>) -> CallsWindow {
        CallsWindow { within_ms, last: last as u16, next: 0, total: Counts::default(), pairs: Vec::new(), times: Vec::new() }
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

    /// How many of the newest entries fit into that many bytes of stored text.
    pub(crate) fn fitting(&self, mut bytes: usize) -> u32 {
        let mut newer = None;
        for back in 1..=self.total.calls {
            let at = self.entry(back).at;
            let mut age = newer.unwrap_or(at).since(at);
            while age > 0 {
                age /= 36;
                bytes = bytes.saturating_sub(1);
            }
            bytes = bytes.saturating_sub(1);
            if bytes == 0 {
                return back - 1;
            }
            newer = Some(at);
        }
        self.total.calls
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
        self.pairs.resize(last.div_ceil(4), 0);
        if self.within_ms.is_some() {
            self.times.resize(last, Time::ZERO);
        }
    }

    fn oldest(&self) -> Entry {
        self.entry(self.total.calls)
    }

    /// The entry that many places behind the next free one.
    pub(crate) fn entry(&self, back: u32) -> Entry {
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
        self.shape() == other.shape()
            && self.total == other.total
            && (1..=self.total.calls).all(|back| self.entry(back) == other.entry(back))
    }
}

impl Eq for CallsWindow {}
