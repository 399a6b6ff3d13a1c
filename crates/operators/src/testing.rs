//! Helpers for the unit tests of this crate.

use tessera_operator::testing::TestPlan;

/// A plan under construction, with the sub-operators of this crate and those that read and write
/// collections.
pub(crate) fn test_plan() -> TestPlan {
    TestPlan::new(|registry| {
        crate::register(registry);
        tessera_formats::register(registry);
    })
}
