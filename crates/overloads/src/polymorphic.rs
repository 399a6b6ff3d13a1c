//! Resolution of polymorphic argument types.

use super::{Type, ValueType, common_type};

/// The types that the pseudo-types of a call resolve to.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Solution {
    /// The type of `anyelement`, which is the element type of `anyarray`.
    element: Option<ValueType>,
    /// The type of `anyarray`.
    array: Option<ValueType>,
    /// The type of `anycompatible`: text if all arguments are literals.
    compatible: Option<ValueType>,
    /// Whether an argument belongs to the family of `anyelement`.
    is_polymorphic: bool,
}

/// Resolves the pseudo-types for these arguments; `None` if the arguments disagree. Other arguments
/// are ignored.
pub(super) fn solve(given: &[ValueType], declared: &[ValueType]) -> Option<Solution> {
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
    let is_array = |ty: Option<ValueType>| ty.is_some_and(ValueType::is_array);
    let refuses =
        |declared: &ValueType| declared.ty == Type::AnyNonArray && is_array(solution.element);
    (!declared.iter().take(given.len()).any(refuses)).then_some(solution)
}

/// Returns the element type of an array; nested arrays hold arrays.
fn elements(array: ValueType) -> ValueType {
    array.elements().unwrap_or(ValueType::of(Type::Array))
}

fn agree(known: &mut Option<ValueType>, ty: ValueType) -> Option<()> {
    match known {
        Some(known) => (*known == ty).then_some(()),
        None => {
            *known = Some(ty);
            Some(())
        }
    }
}

impl Solution {
    /// Returns whether all polymorphic arguments are untyped literals.
    pub(super) fn is_indeterminate(&self) -> bool {
        self.is_polymorphic && self.element.is_none()
    }

    /// Resolves a declared type; `any` resolves to the given type.
    pub(super) fn resolved(&self, declared: ValueType, given: ValueType) -> ValueType {
        let compatible = self.compatible.unwrap_or(ValueType::of(Type::Text));
        match declared.ty {
            Type::Any => given,
            Type::AnyElement | Type::AnyNonArray => self.element.unwrap_or(given),
            Type::AnyArray => self.array.or(self.element.map(ValueType::in_array)).unwrap_or(given),
            Type::AnyCompatible => compatible,
            Type::AnyCompatibleArray => compatible.in_array(),
            _ => declared,
        }
    }
}
