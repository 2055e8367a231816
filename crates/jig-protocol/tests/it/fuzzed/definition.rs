//! The parser and validator of definitions.

use jig_protocol::definition::{Parsed, bounds, explain, parse};

pub(crate) fn check(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        survive(text);
    }
}

/// Parses, renders everything that was said, and checks what holds for any text.
pub(crate) fn survive(text: &str) -> Parsed {
    let parsed = parse(text);
    assert!(
        parsed.diagnostics.len() <= 100,
        "{} problems",
        parsed.diagnostics.len()
    );
    for problem in &parsed.diagnostics {
        assert!(problem.message.len() < 2_000, "{}", problem.message.len());
        assert!(problem.path.len() < 5_000);
        let span = problem.span;
        assert!(span.start <= span.end && span.end <= text.len(), "{span:?}");
        assert!(text.is_char_boundary(span.start) && text.is_char_boundary(span.end));
        assert!(span.line >= 1 && span.column >= 1);
        let shown = problem.render("a\u{1b}[2J.yaml", text, false);
        assert!(shown.contains(problem.code.as_str()));
        assert!(!shown.contains('\u{1b}'), "an escape reached the terminal");
        let json = serde_json::to_value(problem.to_json()).unwrap();
        assert_eq!(json["code"], problem.code.as_str());
    }
    let refused = parsed
        .diagnostics
        .iter()
        .any(|problem| problem.code.as_str().starts_with('E'));
    assert_eq!(parsed.definition.is_none(), refused);
    if let Some(definition) = &parsed.definition {
        accepted(definition);
    }
    let again = parse(text);
    assert_eq!(again.definition, parsed.definition);
    assert_eq!(again.diagnostics, parsed.diagnostics);
    parsed
}

/// What everything behind the parser relies on.
fn accepted(definition: &jig_protocol::definition::Definition) {
    assert!(!definition.phases.is_empty());
    for phase in &definition.phases {
        if let jig_protocol::definition::PhaseKind::Agent { owner } = &phase.kind {
            assert!(definition.roster.contains_key(owner), "{owner} is no role");
        }
    }
    let bounds = bounds(definition);
    assert_eq!(bounds.phases.len(), definition.phases.len());
    let explained = explain(definition);
    for phase in &definition.phases {
        assert!(explained.text.contains(phase.name.as_str()));
    }
}
