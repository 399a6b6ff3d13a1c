//! Passes: plain functions from plan to plan.
