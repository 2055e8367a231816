//! Placeholders in the prompts of the roster.

use super::super::code::Code;
use super::super::cursor::{Context, Path};
use super::super::decode::Draft;
use super::super::diagnostic::quoted;
use super::super::model::PromptSource;
use super::super::suggest::nearest;
use super::super::template::{BUILT_IN, placeholders};

/// Warns of placeholders in a system prompt, which is no template.
fn system(cx: &mut Context<'_>, prompt: &PromptSource, path: &Path) {
    let PromptSource::Inline(text) = prompt else {
        return;
    };
    if let Some((range, _)) = placeholders(text).next() {
        let whole = text.get(range).unwrap_or_default();
        let span = cx.find_in(path, whole);
        cx.span(
            Code::Placeholder,
            span,
            path,
            format!(
                "{} stays as text: a system prompt is no template",
                quoted(whole)
            ),
        )
        .help("move it to the user prompt");
    }
}

/// Warns of placeholders that only a parameter of the run could fill.
fn user(cx: &mut Context<'_>, prompt: &PromptSource, path: &Path) {
    let PromptSource::Inline(text) = prompt else {
        return;
    };
    let mut seen = std::collections::HashSet::new();
    for (_, name) in placeholders(text) {
        if BUILT_IN.contains(&name) || !seen.insert(name) {
            continue;
        }
        let whole = format!("{{{{{name}}}}}");
        let span = cx.find_in(path, &whole);
        let problem = cx.span(
            Code::Placeholder,
            span,
            path,
            format!("{} is no built-in placeholder", quoted(&whole)),
        );
        match nearest(name, &BUILT_IN) {
            Some(near) => problem.help(format!("did you mean `{{{{{near}}}}}`?")),
            None => problem.help(format!(
                "it stays as text unless the run passes a parameter `{name}`"
            )),
        };
    }
}

/// Looks at every prompt of the roster.
pub(super) fn check(cx: &mut Context<'_>, draft: &Draft) {
    for (name, role) in &draft.roster {
        let Some(role) = role else { continue };
        let path = Path::default().key("roster").key(name.as_str());
        system(cx, &role.system_prompt, &path.key("system_prompt"));
        user(cx, &role.user_prompt, &path.key("user_prompt"));
    }
}
