//! What of the language a definition uses, by name.

use super::model::{Definition, GateName};

/// Parts of the language that validate but that no engine can run yet. A run
/// refuses a definition that uses one, before anything is started.
pub const NOT_YET_RUNNABLE: [&str; 3] = ["tests_intact", "parallel", "parallel_writers"];

/// The gates and the groups a definition uses, each once, sorted.
#[must_use]
pub fn features_in_use(definition: &Definition) -> Vec<&'static str> {
    let mut features: Vec<&'static str> = definition
        .phases
        .iter()
        .flat_map(|phase| &phase.gates)
        .map(|gate| GateName::as_str(gate.name))
        .collect();
    if !definition.parallel.is_empty() {
        features.push("parallel");
    }
    if definition.parallel_writers.is_some() {
        features.push("parallel_writers");
    }
    features.sort_unstable();
    features.dedup();
    features
}

/// The parts of [`NOT_YET_RUNNABLE`] that a definition uses.
#[must_use]
pub fn not_yet_runnable(definition: &Definition) -> Vec<&'static str> {
    features_in_use(definition)
        .into_iter()
        .filter(|feature| NOT_YET_RUNNABLE.contains(feature))
        .collect()
}
