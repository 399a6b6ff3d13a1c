//! What the unit tests of this room share.

pub(crate) use tessera_operator::testing::*;

/// A plan under construction, of the sub-operators of this room.
pub(crate) fn test_plan() -> TestPlan {
    TestPlan::new(crate::register)
}
