//! Properties of the core, for random policies, calls and clocks. Failing cases are kept in `regressions.txt` and tried first.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod given;
mod inputs;
mod lockstep;
mod machine;
mod merging;
mod model;
mod tallying;

use proptest::test_runner::{Config, FileFailurePersistence};

/// `PROPTEST_CASES` overrides the number.
fn cases(cases: u32) -> Config {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(cases);
    let regressions = concat!(env!("CARGO_MANIFEST_DIR"), "/properties/regressions.txt");
    Config { cases, failure_persistence: Some(Box::new(FileFailurePersistence::Direct(regressions))), ..Config::default() }
}
