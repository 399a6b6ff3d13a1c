//! What the unit tests of this room share.

use tessera_operator::testing::TestPlan;

/// A plan under construction, of the sub-operators of this room.
pub(crate) fn test_plan() -> TestPlan {
    TestPlan::new(crate::register)
}
