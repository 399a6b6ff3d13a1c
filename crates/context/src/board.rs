//! Values that the nodes of a plan publish for each other during one run.
//!
//! A board carries what cannot follow the edges of the plan, such as a runtime filter that a build
//! publishes for the scan of its probe side. Both nodes name the value. A value may be missing or
//! late: it only saves work and never changes a result.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use crate::context::lock;

type Shared = Arc<dyn Any + Send + Sync>;

/// Published values by type and name. Values of different types may share a name.
#[derive(Default)]
pub struct Board {
    values: Mutex<HashMap<TypeId, HashMap<Arc<str>, Shared>>>,
}

impl fmt::Debug for Board {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Board").finish_non_exhaustive()
    }
}

impl Board {
    /// Publishes a value and replaces the previous one of this type and name.
    pub fn publish<T: Any + Send + Sync>(&self, name: &Arc<str>, value: Arc<T>) {
        lock(&self.values).entry(TypeId::of::<T>()).or_default().insert(name.clone(), value);
    }

    /// Returns the value of this type and name, if one was published.
    pub fn find<T: Any + Send + Sync>(&self, name: &str) -> Option<Arc<T>> {
        let value = lock(&self.values).get(&TypeId::of::<T>())?.get(name)?.clone();
        value.downcast().ok()
    }

    /// Returns the value of this type and name; publishes a default one if there is none yet.
    pub fn find_or_publish<T: Any + Send + Sync + Default>(&self, name: &Arc<str>) -> Arc<T> {
        let mut values = lock(&self.values);
        let named = values.entry(TypeId::of::<T>()).or_default();
        let value = named.entry(name.clone()).or_insert_with(|| Arc::new(T::default())).clone();
        // The map of a type holds only values of that type.
        value.downcast().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_by_type_and_name() {
        let board = Board::default();
        let (a, b): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
        board.publish(&a, Arc::new(1_i64));
        board.publish(&a, Arc::new("text"));
        assert_eq!(board.find::<i64>("a").as_deref(), Some(&1));
        assert_eq!(board.find::<&str>("a").as_deref(), Some(&"text"));
        assert_eq!(board.find::<i64>("b"), None);
        board.publish(&a, Arc::new(2_i64));
        assert_eq!(*board.find_or_publish::<i64>(&a), 2);
        assert!(Arc::ptr_eq(&board.find_or_publish::<i64>(&b), &board.find_or_publish::<i64>(&b)));
    }
}
