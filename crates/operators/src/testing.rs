//! What the unit tests of this room share.

use tessera_operator::testing::TestPlan;

/// A plan under construction, of the sub-operators of this room and those that read and write
/// collections.
pub(crate) fn test_plan() -> TestPlan {
    TestPlan::new(|registry| {
        crate::register(registry);
        tessera_formats::register(registry);
    })
}
