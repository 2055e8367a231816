//! Phases, their gates and their repair edges.

use super::super::code::Code;
use super::super::cursor::{Context, Fields, Path};
use super::super::diagnostic::quoted;
use super::super::grammar;
use super::super::model::{
    CodePhase, Exhausted, Gate, GateName, Phase, PhaseKind, RepairEdge, Rerun,
};
use super::super::name::Name;
use super::super::pattern::PathPattern;
use super::super::yaml::Node;
use super::top::Slot;
use crate::predicate::{Guard, Predicate};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Agent,
    Code,
}

/// One entry of `phases`.
pub(super) fn phase(cx: &mut Context<'_>, node: &Node, path: &Path) -> Slot {
    let Some(fields) = Fields::open(cx, node, path, &grammar::PHASE) else {
        return Slot {
            name: None,
            phase: None,
        };
    };
    let name: Option<Name> = fields.parsed(cx, "name", Code::Name);
    let kind = fields.choice(cx, "kind", &[Kind::Agent, Kind::Code]);
    let guard = fields.parsed::<Guard>(cx, "if", Code::Predicate);
    if let Some(Guard::Predicate(predicate)) = &guard {
        literal(cx, predicate, &fields.at("if"));
    }
    let gates = gates(cx, &fields);
    let on_fail = edge(cx, &fields, kind);
    let kind = match kind {
        Some(Kind::Agent) => agent(cx, &fields),
        Some(Kind::Code) => code(cx, &fields),
        None => {
            of_either_kind(cx, &fields);
            None
        }
    };
    let phase = name.clone().zip(kind).map(|(name, kind)| Phase {
        name,
        kind,
        guard,
        gates,
        on_fail,
    });
    Slot { name, phase }
}

fn agent(cx: &mut Context<'_>, fields: &Fields<'_>) -> Option<PhaseKind> {
    for key in grammar::CODE_KEYS {
        if fields.has(key) {
            let problem = cx.at(
                Code::WrongKind,
                &fields.at(key),
                format!("an agent phase has no `{key}`"),
            );
            problem.help(match key {
                "writes" => "what an agent may write is stated in its role",
                _ => "use `kind: code` for a phase that runs a command",
            });
        }
    }
    if !fields.has("owner") {
        cx.at(
            Code::Missing,
            &fields.at("owner"),
            "an agent phase needs an `owner`",
        )
        .help("name the role of the roster that acts");
    }
    let owner = fields.parsed(cx, "owner", Code::Name)?;
    Some(PhaseKind::Agent { owner })
}

fn code(cx: &mut Context<'_>, fields: &Fields<'_>) -> Option<PhaseKind> {
    if !fields.has("command") {
        cx.at(
            Code::Missing,
            &fields.at("command"),
            "a code phase needs a `command`",
        );
    }
    let owner = fields.parsed(cx, "owner", Code::Name);
    let command = fields.words(cx, "command");
    let reports_fields = fields.flag(cx, "reports_fields").unwrap_or_default();
    let writes = fields.parsed_list(cx, "writes", Code::Pattern);
    Some(PhaseKind::Code(CodePhase {
        owner,
        command: runnable(cx, &fields.at("command"), command?)?,
        reports_fields,
        writes,
    }))
}

/// What a phase of an unknown kind states, checked as far as it can be: all
/// problems are told at once.
fn of_either_kind(cx: &mut Context<'_>, fields: &Fields<'_>) {
    let _owner: Option<Name> = fields.parsed(cx, "owner", Code::Name);
    if let Some(command) = fields.words(cx, "command") {
        runnable(cx, &fields.at("command"), command);
    }
    fields.flag(cx, "reports_fields");
    let _writes: Option<Vec<PathPattern>> = fields.parsed_list(cx, "writes", Code::Pattern);
}

/// A command that can be handed to a shell.
fn runnable(cx: &mut Context<'_>, path: &Path, command: String) -> Option<String> {
    if command.contains('\0') {
        cx.at(Code::Blank, path, "a command cannot contain NUL");
        return None;
    }
    Some(command)
}

fn gates(cx: &mut Context<'_>, fields: &Fields<'_>) -> Vec<Gate> {
    let Some(items) = fields.list(cx, "gates") else {
        return Vec::new();
    };
    items
        .into_iter()
        .filter_map(|(node, path)| gate(cx, node, &path))
        .collect()
}

fn gate(cx: &mut Context<'_>, node: &Node, path: &Path) -> Option<Gate> {
    let fields = Fields::open(cx, node, path, &grammar::GATE)?;
    let name = fields.choice(cx, "name", &GateName::ALL);
    let command = fields.words(cx, "command");
    let budget = fields.count(cx, "budget").unwrap_or_default();
    let allow = allow(cx, &fields);
    let name = name?;
    match (name, fields.has("command")) {
        (GateName::TestsPass, false) => {
            cx.at(
                Code::GateField,
                path,
                "the gate `tests_pass` needs a `command`",
            );
        }
        (GateName::TestsPass, true) => {}
        (_, true) => {
            cx.at(
                Code::GateField,
                &fields.at("command"),
                format!("the gate `{name}` takes no `command`"),
            );
        }
        (_, false) => {}
    }
    if name != GateName::TestsIntact && fields.has("allow") {
        cx.at(
            Code::GateField,
            &fields.at("allow"),
            format!("the gate `{name}` takes no `allow`; only `tests_intact` does"),
        );
    }
    Some(Gate {
        name,
        command: command.and_then(|command| runnable(cx, &fields.at("command"), command)),
        budget,
        allow,
    })
}

fn allow(cx: &mut Context<'_>, fields: &Fields<'_>) -> Vec<String> {
    let mut globs = Vec::new();
    for (glob, path) in fields.texts(cx, "allow").unwrap_or_default() {
        match shell_glob(&glob) {
            Ok(()) => globs.push(glob),
            Err(why) => {
                cx.at(
                    Code::AllowGlob,
                    &path,
                    format!("{} is not a glob of test files: {why}", quoted(&glob)),
                );
            }
        }
    }
    globs
}

/// Checks a shell-style glob whose `*` stops at `/`: `*`, `?`, classes, escapes.
fn shell_glob(glob: &str) -> Result<(), &'static str> {
    if glob.trim().is_empty() {
        return Err("it is blank");
    }
    if glob.chars().any(char::is_control) {
        return Err("it contains a control character");
    }
    if glob.starts_with('/') {
        return Err("it is absolute");
    }
    let mut chars = glob.chars();
    let mut last = None;
    while let Some(c) = chars.next() {
        match c {
            '*' if last == Some('*') => {
                return Err("`**` is not supported; `*` stops at `/`");
            }
            '\\' => {
                chars.next().ok_or("it ends in a backslash")?;
            }
            '[' => class(&mut chars)?,
            _ => {}
        }
        last = Some(c);
    }
    Ok(())
}

/// The rest of a class after its `[`.
fn class(chars: &mut std::str::Chars<'_>) -> Result<(), &'static str> {
    const OPEN: &str = "a `[` is not closed";
    let mut next = chars.next().ok_or(OPEN)?;
    if matches!(next, '^' | '!') {
        next = chars.next().ok_or(OPEN)?;
    }
    if next == ']' {
        return Err("a class is empty");
    }
    loop {
        let low = if next == '\\' {
            chars.next().ok_or(OPEN)?
        } else {
            next
        };
        next = chars.next().ok_or(OPEN)?;
        if next == '-' {
            let mut high = chars.next().ok_or(OPEN)?;
            if high == ']' {
                return Err("a range has no end");
            }
            if high == '\\' {
                high = chars.next().ok_or(OPEN)?;
            }
            if high < low {
                return Err("a range ends before it starts");
            }
            next = chars.next().ok_or(OPEN)?;
        }
        if next == ']' {
            return Ok(());
        }
    }
}

fn edge(cx: &mut Context<'_>, phase: &Fields<'_>, kind: Option<Kind>) -> Option<RepairEdge> {
    let path = phase.at("on_fail");
    let fields = Fields::open(cx, phase.get("on_fail")?, &path, &grammar::EDGE)?;
    match (kind, fields.has("when")) {
        (Some(Kind::Agent), false) => {
            cx.at(
                Code::Missing,
                &fields.at("when"),
                "the repair edge of an agent phase needs `when`",
            )
            .help("say which answer counts as failing, like `when: approved == false`");
        }
        (Some(Kind::Code), true) => {
            cx.at(
                Code::WrongKind,
                &fields.at("when"),
                "the repair edge of a code phase has no `when`",
            )
            .help("a command fails by its exit code; remove `when`");
        }
        _ => {}
    }
    let when = predicate(cx, &fields, "when");
    let run = fields.parsed(cx, "run", Code::Name);
    let then = fields.choice(cx, "then", &[Rerun::RerunSelf, Rerun::RerunChain]);
    let budget = fields.count(cx, "budget");
    let exhausted = fields.choice(cx, "exhausted", &[Exhausted::FailJob, Exhausted::Proceed]);
    Some(RepairEdge {
        when,
        run: run?,
        then: then?,
        budget: budget?,
        exhausted: exhausted.unwrap_or_default(),
    })
}

/// A predicate whose literal fits the field it is compared with.
pub(super) fn predicate(cx: &mut Context<'_>, fields: &Fields<'_>, key: &str) -> Option<Predicate> {
    let predicate = fields.parsed(cx, key, Code::Predicate)?;
    literal(cx, &predicate, &fields.at(key));
    Some(predicate)
}

fn literal(cx: &mut Context<'_>, predicate: &Predicate, path: &Path) {
    if let Some(expected) = crate::predicate::wrong_literal(predicate) {
        cx.at(
            Code::Literal,
            path,
            format!(
                "`{}` never equals {}",
                predicate.field,
                quoted(&predicate.literal.to_string())
            ),
        )
        .help(format!("`{}` is {expected}", predicate.field));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allow_globs() {
        for good in [
            "a/*_test.go",
            "x?.py",
            "[a-z]*.rb",
            "[^ab].js",
            "a\\*b",
            "[\\]]x",
        ] {
            assert_eq!(shell_glob(good), Ok(()), "{good}");
        }
        for bad in [
            "", " ", "**", "a/**/b", "[a", "[]", "[z-a]", "a\\", "[a-", "[a-]", "/x", "a\nb", "[^",
        ] {
            assert!(shell_glob(bad).is_err(), "{bad:?}");
        }
    }
}
