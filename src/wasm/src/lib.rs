//! The boundary between the core and JavaScript. Two builds: the numeric runtime that guards calls, and, with the feature `objects`,
//! the pure core on plain objects. Neither decides anything: each function unwraps its arguments, calls the core, wraps the answer.
#![cfg_attr(all(target_arch = "wasm32", not(feature = "objects")), no_std)]

extern crate alloc;

#[cfg(target_arch = "wasm32")]
mod memory;
#[cfg(feature = "objects")]
mod objects;
#[cfg(not(feature = "objects"))]
mod runtime;
mod slots;

#[cfg(target_arch = "wasm32")]
#[global_allocator]
static ALLOCATOR: memory::Blocks = memory::Blocks::new();

#[cfg(all(target_arch = "wasm32", not(feature = "objects")))]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    core::arch::wasm32::unreachable()
}
