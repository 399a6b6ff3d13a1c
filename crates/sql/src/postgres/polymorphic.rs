//! The types that polymorphic arguments stand for.

use super::{Given, Type, common_type};

/// What the pseudo-types of a call stand for.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Solution {
    /// `anyelement`; the element of `anyarray`.
    element: Option<Given>,
    array: Option<Given>,
    /// `anycompatible`: text where all are literals.
    compatible: Option<Given>,
    /// Whether an argument is of the family of `anyelement`.
    is_polymorphic: bool,
}

/// The solution for arguments of some types, if they agree. An argument that is not polymorphic is
/// not looked at.
pub(super) fn solve(given: &[Given], declared: &[Given]) -> Option<Solution> {
    let mut solution = Solution::default();
    let mut compatible = Vec::new();
    for (given, declared) in given.iter().zip(declared) {
        use Type::{AnyArray, AnyElement, AnyNonArray};
        solution.is_polymorphic |= matches!(declared.ty, AnyArray | AnyElement | AnyNonArray);
        if given.is_unknown() {
            continue;
        }
        match declared.ty {
            AnyElement | AnyNonArray => agree(&mut solution.element, *given)?,
            AnyArray => agree(&mut solution.array, *given)?,
            Type::AnyCompatible => compatible.push(*given),
            Type::AnyCompatibleArray if given.is_array() => compatible.push(elements(*given)),
            Type::AnyCompatibleArray => return None,
            _ => {}
        }
    }
    match solution.array {
        Some(array) if !array.is_array() => return None,
        Some(array) => agree(&mut solution.element, elements(array))?,
        None => {}
    }
    if !compatible.is_empty() {
        solution.compatible = Some(common_type(&compatible)?);
    }
    let is_array = |ty: Option<Given>| ty.is_some_and(Given::is_array);
    let refuses = |declared: &Given| declared.ty == Type::AnyNonArray && is_array(solution.element);
    (!declared.iter().take(given.len()).any(refuses)).then_some(solution)
}

/// What an array holds; arrays in arrays hold arrays.
fn elements(array: Given) -> Given {
    array.elements().unwrap_or(Given::of(Type::Array))
}

fn agree(known: &mut Option<Given>, ty: Given) -> Option<()> {
    match known {
        Some(known) => (*known == ty).then_some(()),
        None => {
            *known = Some(ty);
            Some(())
        }
    }
}

impl Solution {
    /// Whether all polymorphic arguments are literals, so that nothing says what they are.
    pub(super) fn is_indeterminate(&self) -> bool {
        self.is_polymorphic && self.element.is_none()
    }

    /// The type that a declared one stands for. `any` stands for what is given.
    pub(super) fn resolved(&self, declared: Given, given: Given) -> Given {
        let compatible = self.compatible.unwrap_or(Given::of(Type::Text));
        match declared.ty {
            Type::Any => given,
            Type::AnyElement | Type::AnyNonArray => self.element.unwrap_or(given),
            Type::AnyArray => self.array.or(self.element.map(Given::in_array)).unwrap_or(given),
            Type::AnyCompatible => compatible,
            Type::AnyCompatibleArray => compatible.in_array(),
            _ => declared,
        }
    }
}
