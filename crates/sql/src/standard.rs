//! DataFusion's functions by their names, collected once: there are some hundreds, and a short statement is planned in a millisecond.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use datafusion_expr::{AggregateUDF, ScalarUDF, WindowUDF};

/// Functions, by name and alias.
pub(crate) struct Standard {
    pub(crate) scalars: HashMap<String, Arc<ScalarUDF>>,
    pub(crate) aggregates: HashMap<String, Arc<AggregateUDF>>,
    pub(crate) windows: HashMap<String, Arc<WindowUDF>>,
}

/// Those of DataFusion.
pub(crate) static STANDARD: LazyLock<Standard> = LazyLock::new(|| {
    let scalars = datafusion_functions::all_default_functions();
    let scalars = scalars.into_iter().chain(datafusion_functions_nested::all_default_nested_functions());
    let aggregates = datafusion_functions_aggregate::all_default_aggregate_functions();
    let windows = datafusion_functions_window::all_default_window_functions();
    let mut aggregates = by_name(aggregates, |function| function.name(), |function| function.aliases());
    // The name that the standard has for it.
    if let Some(all) = aggregates.get("bool_and").cloned() {
        aggregates.insert("every".to_string(), all);
    }
    Standard {
        scalars: by_name(scalars, |function| function.name(), |function| function.aliases()),
        aggregates,
        windows: by_name(windows, |function| function.name(), |function| function.aliases()),
    }
});

fn by_name<T>(
    functions: impl IntoIterator<Item = Arc<T>>,
    name: impl Fn(&T) -> &str,
    aliases: impl Fn(&T) -> &[String],
) -> HashMap<String, Arc<T>> {
    let mut named = HashMap::new();
    for function in functions {
        for alias in aliases(&function) {
            named.insert(alias.clone(), function.clone());
        }
        named.insert(name(&function).to_string(), function);
    }
    named
}
