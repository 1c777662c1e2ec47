//! Replays `tests/vectors` on the core: five published breakers and our own rules, one small adapter each.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::float_arithmetic)]

mod circuit;
mod fenced;
mod fractions;
mod fuse;
mod phil;
mod rasuvaeff;
mod reqtide;
mod trace;
mod utopia;

/// The figures of the README's conformance table: `cargo test --package tripcurve-tests --test conformance summary -- --nocapture`.
#[test]
fn summary() {
    for summary in [
        trace::replay_all::<phil::Phil>(),
        trace::replay_all::<reqtide::Reqtide>(),
        trace::replay_all::<rasuvaeff::Rasuvaeff>(),
        trace::replay_all::<utopia::Utopia>(),
        trace::replay_all::<fuse::Fuse>(),
        trace::replay_all::<fenced::Fenced>(),
    ] {
        println!("{summary}");
    }
}
