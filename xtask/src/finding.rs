//! What a rule has to say when it is broken.

use std::fmt;

/// One broken rule at one place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The rule's short name, such as `boundary/arrow`.
    pub rule: &'static str,
    /// `file` or `file:line`, relative to the root of the workspace.
    pub place: String,
    /// What is wrong, as one sentence without a full stop.
    pub problem: String,
    /// What to do about it, as one sentence without a full stop.
    pub remedy: String,
}

impl Finding {
    /// A finding for a whole file, or with `file:line` as its place.
    pub fn new(
        rule: &'static str,
        place: impl Into<String>,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            rule,
            place: place.into(),
            problem: problem.into(),
            remedy: remedy.into(),
        }
    }

    /// A finding at one line (counted from 1) of a file.
    pub fn at(
        rule: &'static str,
        file: &str,
        line: usize,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self::new(rule, format!("{file}:{line}"), problem, remedy)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "[{}] {}: {}\n    do: {}",
            self.rule, self.place, self.problem, self.remedy
        )
    }
}
