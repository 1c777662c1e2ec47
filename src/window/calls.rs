//! `calls`: the last outcomes, two bits each; with an age limit, a word each, which holds the instant as well.
//! `consecutive`: the same of failures only; any success, fast or slow, empties it and is not entered.

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
    /// 0: any age.
    within_ms: u64,
    total: Counts,
    /// Marks of two bits (1 failed, 2 slow): 32 in a word, or one under the milliseconds of its instant.
    ring: Vec<u64>,
    last: u16,
    next: u16,
    /// Outcomes added since it was cleared, around the end of its range: what one copy has counted beyond another.
    added: u32,
    /// How often a success emptied it, likewise.
    emptied: u32,
}

impl CallsWindow {
    pub(crate) fn new(last: u32, within_ms: Option<u64>) -> CallsWindow {
        let (within_ms, last) = (within_ms.unwrap_or(0), last as u16);
        CallsWindow { within_ms, total: Counts::default(), ring: Vec::new(), last, next: 0, added: 0, emptied: 0 }
    }

    pub(crate) fn clear(&mut self) {
        (self.next, self.total, self.added, self.emptied) = (0, Counts::default(), 0, 0);
    }

    #[inline(always)]
    pub(crate) fn roll(&mut self, now: Time) {
        if self.is_aged() {
            self.drop_aged(now);
        }
    }

    #[cold]
    #[inline(never)]
    fn drop_aged(&mut self, now: Time) {
        while self.total.calls > 0 && now.since(self.oldest().at) > self.within_ms {
            self.drop_oldest();
        }
    }

    pub(crate) fn add(&mut self, failed: bool, slow: bool, now: Time) {
        let mark = u64::from(failed) | u64::from(slow) << 1;
        let (at, shift) = self.place(self.next.into());
        let aged = self.is_aged();
        let Some(word) = self.ring.get_mut(at) else { return self.add_first(failed, slow, now) };
        // In a full ring the oldest lies where the newest goes.
        let full = self.total.calls >= self.last.into();
        let oldest = if full { *word >> shift } else { 0 };
        *word = if aged { now.as_millis() << 2 | mark } else { *word & !(3 << shift) | mark << shift };
        self.next = if self.next + 1 >= self.last { 0 } else { self.next + 1 };
        self.added = self.added.wrapping_add(1);
        let Counts { calls, failures, slow } = self.total;
        self.total = Counts {
            calls: calls + u32::from(!full),
            failures: failures.wrapping_add((mark & 1) as u32).wrapping_sub((oldest & 1) as u32),
            slow: slow.wrapping_add((mark >> 1) as u32).wrapping_sub((oldest >> 1 & 1) as u32),
        };
    }

    #[cold]
    #[inline(never)]
    fn add_first(&mut self, failed: bool, slow: bool, now: Time) {
        let last = usize::from(self.last);
        self.ring.resize(if self.is_aged() { last } else { last.div_ceil(32) }, 0);
        if !self.ring.is_empty() {
            self.add(failed, slow, now);
        }
    }

    /// A success after failures that were consecutive.
    pub(crate) fn empty(&mut self) {
        (self.next, self.total) = (0, Counts::default());
        self.emptied = self.emptied.wrapping_add(1);
    }

    /// Adds what `mine` has counted beyond `base`, and gives it. An instant before the newest entry's becomes that one.
    pub(crate) fn absorb(&mut self, mine: &CallsWindow, base: &CallsWindow) -> Counts {
        if mine.emptied != base.emptied {
            self.empty();
        }
        let mut own = Counts::default();
        for back in (1..=mine.added.wrapping_sub(base.added).min(mine.total.calls)).rev() {
            let Entry { failed, slow, at } = mine.entry(back);
            own.add(failed, slow);
            self.add(failed, slow, at.max(self.newest()));
        }
        own
    }

    fn newest(&self) -> Time {
        if self.total.calls == 0 {
            return Time::ZERO;
        }
        self.entry(1).at
    }

    pub(crate) fn counts(&self) -> Counts {
        self.total
    }

    pub(crate) fn last(&self) -> u32 {
        self.last.into()
    }

    /// The age limit; 0: none.
    pub(crate) fn within_ms(&self) -> u64 {
        self.within_ms
    }

    pub(crate) fn is_aged(&self) -> bool {
        self.within_ms > 0
    }

    /// How many of the newest entries fit into that many bytes of stored text.
    pub(crate) fn fitting(&self, mut bytes: usize) -> u32 {
        let mut newer = Time::ZERO;
        for back in 1..=self.total.calls {
            let at = self.entry(back).at;
            let mut age = newer.since(at);
            while age > 0 {
                age /= 36;
                bytes = bytes.saturating_sub(1);
            }
            bytes = bytes.saturating_sub(1);
            if bytes == 0 {
                return back - 1;
            }
            newer = at;
        }
        self.total.calls
    }

    pub(crate) fn next_change_at(&self) -> Option<Time> {
        (self.is_aged() && self.total.calls > 0).then(|| self.oldest().at.after(self.within_ms).after(1))
    }

    pub(crate) fn fit(&mut self, by: i64, latest: Time) {
        if self.is_aged() {
            for word in &mut self.ring {
                let at = Time::from_millis(*word >> 2).moved(by).min(latest);
                *word = at.as_millis() << 2 | *word & 3;
            }
        }
    }

    fn oldest(&self) -> Entry {
        self.entry(self.total.calls)
    }

    /// The entry that many places behind the next free one.
    pub(crate) fn entry(&self, back: u32) -> Entry {
        let (next, last) = (u32::from(self.next), u32::from(self.last));
        let (word, shift) = self.place(if next >= back { next - back } else { next + last - back });
        let word = self.ring.get(word).copied().unwrap_or(0);
        let at = Time::from_millis(if self.is_aged() { word >> 2 } else { 0 });
        Entry { failed: word >> shift & 1 != 0, slow: word >> shift & 2 != 0, at }
    }

    /// The word that holds this place of the ring, and where in it the mark is.
    fn place(&self, index: u32) -> (usize, u32) {
        if self.is_aged() {
            (index as usize, 0)
        } else {
            (index as usize / 32, index % 32 * 2)
        }
    }

    fn drop_oldest(&mut self) {
        let Entry { failed, slow, .. } = self.oldest();
        self.total = self.total.minus(Counts { calls: 1, failures: failed.into(), slow: slow.into() });
    }
}

impl PartialEq for CallsWindow {
    /// The same entries, wherever in the ring they lie.
    fn eq(&self, other: &CallsWindow) -> bool {
        (self.last, self.within_ms, self.total) == (other.last, other.within_ms, other.total)
            && (1..=self.total.calls).all(|back| self.entry(back) == other.entry(back))
    }
}

impl Eq for CallsWindow {}
