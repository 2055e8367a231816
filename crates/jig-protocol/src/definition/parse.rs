//! The way in: from text to a definition, or to everything that is wrong with it.

use super::code::Severity;
use super::cursor::Context;
use super::decode::{self, Draft};
use super::diagnostic::Diagnostic;
use super::model::Definition;
use super::{validate, yaml};

/// What came of parsing a definition.
#[derive(Debug, Clone)]
pub struct Parsed {
    /// The definition; `Some` exactly when there is no error.
    pub definition: Option<Definition>,
    /// Errors and warnings in the order of the text; at most 100.
    pub diagnostics: Vec<Diagnostic>,
}

impl Parsed {
    /// Whether anything was said that is not an error.
    #[must_use]
    pub fn has_warnings(&self) -> bool {
        self.diagnostics
            .iter()
            .any(|problem| problem.severity() == Severity::Warning)
    }
}

/// Reads a definition strictly and judges it whole.
///
/// Every problem is reported, not only the first; only a text that is no YAML
/// ends the reading early. The text may be hostile: work and memory are bounded.
#[must_use]
pub fn parse(text: &str) -> Parsed {
    let mut problems = Vec::new();
    let Some(root) = yaml::load(text, &mut problems) else {
        return Parsed {
            definition: None,
            diagnostics: problems,
        };
    };
    let mut cx = Context::new(text, root, problems);
    let draft = decode::definition(&mut cx);
    if let Some(draft) = &draft {
        validate::check(&mut cx, draft);
    }
    let failed = cx.failed();
    Parsed {
        definition: draft.filter(|_| !failed).and_then(finish),
        diagnostics: cx.into_problems(),
    }
}

/// A draft without problems has no holes.
fn finish(draft: Draft) -> Option<Definition> {
    Some(Definition {
        name: draft.name?,
        description: draft.description,
        runtime: draft.runtime,
        roster: draft
            .roster
            .into_iter()
            .map(|(name, role)| Some((name, role?)))
            .collect::<Option<_>>()?,
        phases: draft
            .phases
            .into_iter()
            .map(|slot| slot.phase)
            .collect::<Option<_>>()?,
        parallel: draft.parallel.into_iter().map(|(name, _)| name).collect(),
        parallel_writers: draft.writers,
        acceptance: draft
            .acceptance
            .iter()
            .map(|(text, _)| validate::acceptance_check(text))
            .collect::<Option<_>>()?,
        publish: draft.publish,
        build_outputs: draft.build_outputs,
        caches: draft.caches,
        budget_usd: draft.budget_usd,
        limits: draft.limits,
        sandbox: draft.sandbox,
    })
}
