//! The allocator: free blocks kept by size, so that taking and giving back is one step however many circuits there are.
//!
//! Small sizes are multiples of 8 bytes, large ones powers of two; memory is taken from the host in pages and never given back.

use core::alloc::{GlobalAlloc, Layout};
use core::arch::wasm32::memory_grow;
use core::cell::UnsafeCell;
use core::ptr::null_mut;

const PAGE: usize = 65_536;
const STEP: usize = 8;
/// Multiples of a step below this, powers of two from here.
const LARGE: usize = 1_024;
const SMALL_CLASSES: usize = LARGE / STEP;

/// Classes of small sizes, then one for each power of two.
const CLASSES: usize = SMALL_CLASSES + usize::BITS as usize;

pub(crate) struct Blocks(UnsafeCell<State>);

struct State {
    /// The free blocks of each class: a list that is linked through the blocks themselves.
    free: [*mut u8; CLASSES],
    /// Where memory begins that was never given out, and where it ends.
    fresh: usize,
    end: usize,
}

// SAFETY: the module has one thread.
unsafe impl Sync for Blocks {}

impl Blocks {
    pub(crate) const fn new() -> Blocks {
        Blocks(UnsafeCell::new(State { free: [null_mut(); CLASSES], fresh: 0, end: 0 }))
    }
}

/// The class of this size, and how large its blocks are.
fn class(size: usize) -> (usize, usize) {
    if size < LARGE {
        let steps = size.div_ceil(STEP);
        return (steps, steps * STEP);
    }
    let size = size.next_power_of_two();
    (SMALL_CLASSES + size.trailing_zeros() as usize, size)
}

// SAFETY: a block is in one list or in use, never both; all of them are multiples of 8 bytes from the start of a page, and nothing here
// asks for a stricter alignment. No reference to the state outlives a call, and no call runs within another.
unsafe impl GlobalAlloc for Blocks {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let state = unsafe { &mut *self.0.get() };
        let (class, size) = class(layout.size());
        let Some(free) = state.free.get_mut(class) else { return null_mut() };
        let block = *free;
        if !block.is_null() {
            *free = unsafe { block.cast::<*mut u8>().read() };
            return block;
        }
        if state.end - state.fresh < size {
            let pages = size.div_ceil(PAGE);
            let grown = memory_grow(0, pages);
            if grown == usize::MAX {
                return null_mut();
            }
            if grown * PAGE != state.end {
                state.fresh = grown * PAGE;
            }
            state.end = (grown + pages) * PAGE;
        }
        let block = state.fresh;
        state.fresh += size;
        block as *mut u8
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let state = unsafe { &mut *self.0.get() };
        let Some(free) = state.free.get_mut(class(layout.size()).0) else { return };
        unsafe { block.cast::<*mut u8>().write(*free) };
        *free = block;
    }
}
