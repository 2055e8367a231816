//! The roster: what each role is and may do.

use std::collections::{BTreeMap, HashSet};

use super::super::code::Code;
use super::super::cursor::{Context, Fields, Path, report_repeated};
use super::super::diagnostic::quoted;
use super::super::grammar;
use super::super::model::{Effort, OutputMode, PromptSource, Role};
use super::super::name::Name;
use super::super::yaml::{Kind, Node};
use super::top::runtime;
use crate::predicate::is_field_name;
use crate::repo_path::RepoPath;

/// The roles by name; `None` for one that is declared but wrong.
pub(super) fn roster(cx: &mut Context<'_>, top: &Fields<'_>) -> BTreeMap<Name, Option<Role>> {
    let mut roles = BTreeMap::new();
    let Some(node) = top.get("roster") else {
        return roles;
    };
    let path = top.at("roster");
    let Kind::Map(entries) = &node.kind else {
        cx.at(
            Code::WrongType,
            &path,
            "expected a map from role names to roles",
        );
        return roles;
    };
    report_repeated(cx, entries, &path);
    let mut folded: BTreeMap<String, String> = BTreeMap::new();
    for entry in entries {
        let at = path.key(&entry.key);
        let name = match entry.key.parse::<Name>() {
            Ok(name) => name,
            Err(error) => {
                cx.span(Code::Name, entry.key_span, &at, error.to_string());
                continue;
            }
        };
        match folded.insert(entry.key.to_ascii_lowercase(), entry.key.clone()) {
            Some(before) if before != entry.key => {
                cx.span(
                    Code::RepeatedName,
                    entry.key_span,
                    &at,
                    format!(
                        "the role {} differs from {} only in case",
                        quoted(&entry.key),
                        quoted(&before)
                    ),
                )
                .help("role names become names of directories; not every file system tells case apart");
            }
            // A repeated key is reported above; the first one counts.
            Some(_) => continue,
            None => {}
        }
        let role = role(cx, &entry.value, &at);
        roles.insert(name, role);
    }
    roles
}

fn role(cx: &mut Context<'_>, node: &Node, path: &Path) -> Option<Role> {
    let fields = Fields::open(cx, node, path, &grammar::ROLE)?;
    if fields.has("thinking") {
        cx.at(
            Code::Thinking,
            &fields.at("thinking"),
            "`thinking` does nothing",
        )
        .help("use `effort` to say how hard the model should think");
    }
    if !fields.has("writes") {
        let name = path.to_string();
        let name = name.rsplit('.').next().unwrap_or_default();
        cx.at(
            Code::Unrestricted,
            path,
            format!(
                "the role {} may write anywhere in the work tree",
                quoted(name)
            ),
        )
        .help("state `writes`: `[]` for a role that only reads, `[\"**\"]` if anywhere is meant");
    }
    let model = fields.words(cx, "model");
    let system_prompt = prompt(cx, &fields, "system_prompt", "system_prompt_path");
    let user_prompt = prompt(cx, &fields, "user_prompt", "user_prompt_path");
    let (env, sensitive_env) = variables(cx, &fields);
    let runtime = runtime(cx, &fields);
    let effort = fields.choice(cx, "effort", &Effort::ALL);
    let budget_usd = fields.dollars(cx, "budget_usd");
    let tools = tools(cx, &fields);
    let writes = fields.parsed_list(cx, "writes", Code::Pattern);
    let output = fields.choice(cx, "output", &[OutputMode::Text, OutputMode::Structured]);
    let commits = fields.flag(cx, "commits");
    Some(Role {
        model: model?,
        runtime,
        effort,
        budget_usd,
        system_prompt: system_prompt?,
        user_prompt: user_prompt?,
        tools,
        writes,
        output: output.unwrap_or_default(),
        commits: commits.unwrap_or_default(),
        env,
        sensitive_env,
    })
}

/// Exactly one of an inline prompt and the path of one.
fn prompt(
    cx: &mut Context<'_>,
    fields: &Fields<'_>,
    inline: &str,
    by_path: &str,
) -> Option<PromptSource> {
    match (fields.has(inline), fields.has(by_path)) {
        (true, true) => {
            cx.at(
                Code::Prompt,
                &fields.at(by_path),
                format!("a role has `{inline}` or `{by_path}`, not both"),
            );
            None
        }
        (false, false) => {
            cx.at(
                Code::Prompt,
                &fields.path,
                format!("the role needs `{inline}` or `{by_path}`"),
            );
            None
        }
        (true, false) => fields.words(cx, inline).map(PromptSource::Inline),
        (false, true) => {
            let text = fields.words(cx, by_path)?;
            match portable_path(&text) {
                Ok(path) => Some(PromptSource::Path(path)),
                Err(why) => {
                    cx.at(
                        Code::PromptPath,
                        &fields.at(by_path),
                        format!(
                            "{} is not a path of a file in the repository: {why}",
                            quoted(&text)
                        ),
                    );
                    None
                }
            }
        }
    }
}

/// Reads a repository-relative path of a file, as written: nothing is folded away.
pub(super) fn portable_path(text: &str) -> Result<RepoPath, &'static str> {
    if text.trim().is_empty() {
        return Err("it is blank");
    }
    if text.chars().any(char::is_control) {
        return Err("it contains a control character");
    }
    if text.starts_with('/') {
        return Err("it is absolute");
    }
    if text.contains('\\') {
        return Err("it contains a backslash; parts are separated by `/`");
    }
    for part in text.split('/') {
        match part {
            "" => return Err("it contains an empty part"),
            "." | ".." => return Err("it contains a `.` or `..` part"),
            part if part.eq_ignore_ascii_case(".git") => return Err("it leads into `.git`"),
            _ => {}
        }
    }
    Ok(RepoPath::from(text))
}

/// `env` and, as a subset of it, `sensitive_env`.
fn variables(cx: &mut Context<'_>, fields: &Fields<'_>) -> (Vec<String>, Vec<String>) {
    let names = |list: Vec<(String, Path)>| list.into_iter().map(|(name, _)| name).collect();
    let env: Vec<String> = names(environment(cx, fields, "env"));
    let sensitive = environment(cx, fields, "sensitive_env");
    let known: HashSet<&str> = env.iter().map(String::as_str).collect();
    for (name, path) in &sensitive {
        if !known.contains(name.as_str()) {
            cx.at(
                Code::Sensitive,
                path,
                format!("{} is not in `env`", quoted(name)),
            )
            .help("a variable must be in `env` for the role to receive it at all");
        }
    }
    let sensitive = names(sensitive);
    (env, sensitive)
}

/// Names of variables, each once, with their paths.
fn environment(cx: &mut Context<'_>, fields: &Fields<'_>, key: &str) -> Vec<(String, Path)> {
    let mut names: Vec<(String, Path)> = Vec::new();
    let mut seen = HashSet::new();
    for (name, path) in fields.texts(cx, key).unwrap_or_default() {
        if !is_field_name(&name) {
            cx.at(
                Code::Environment,
                &path,
                format!("{} is not the name of a variable", quoted(&name)),
            )
            .help("list names, not values: letters, digits and `_`, the first no digit");
        } else if seen.insert(name.clone()) {
            names.push((name, path));
        } else {
            cx.at(
                Code::Environment,
                &path,
                format!("{} is listed twice", quoted(&name)),
            );
        }
    }
    names
}

fn tools(cx: &mut Context<'_>, fields: &Fields<'_>) -> Option<Vec<String>> {
    let texts = fields.texts(cx, "tools")?;
    let mut tools = Vec::with_capacity(texts.len());
    for (tool, path) in texts {
        if tool.trim().is_empty() || tool.chars().any(char::is_control) {
            cx.at(
                Code::Blank,
                &path,
                "a tool's name is blank or holds a control character",
            );
        } else {
            tools.push(tool);
        }
    }
    Some(tools)
}
