//! The shape of `parallel_writers`; how it fits the chain is judged later.

use std::collections::BTreeMap;

use super::super::code::Code;
use super::super::cursor::{Context, Fields, Path, count, report_repeated, text};
use super::super::diagnostic::quoted;
use super::super::grammar;
use super::super::lock::Lock;
use super::super::model::{
    Baseline, ConflictExhausted, OnConflict, OnIneligible, ParallelWriters, SharedMerge,
    WriterCheck, WriterMember,
};
use super::super::name::Name;
use super::super::yaml::{Kind, Node};
use super::roster::portable_path;
use crate::limits::PHASE_TIMEOUT_MAX;
use crate::predicate::is_field_name;
use crate::repo_path::RepoPath;

/// `parallel_writers`.
pub(super) fn writers(cx: &mut Context<'_>, top: &Fields<'_>) -> Option<ParallelWriters> {
    let path = top.at("parallel_writers");
    let fields = Fields::open(cx, top.get("parallel_writers")?, &path, &grammar::WRITERS)?;
    let members = fields
        .list(cx, "members")
        .unwrap_or_default()
        .into_iter()
        .filter_map(|(node, path)| member(cx, node, &path))
        .collect();
    let merges = [
        SharedMerge::Adjacent,
        SharedMerge::Clean,
        SharedMerge::Never,
    ];
    Some(ParallelWriters {
        members,
        shared: owned_paths(cx, &fields, "shared"),
        shared_merge: fields
            .choice(cx, "shared_merge", &merges)
            .unwrap_or_default(),
        on_conflict: conflict(cx, &fields),
        on_ineligible: fields
            .choice(
                cx,
                "on_ineligible",
                &[OnIneligible::Sequential, OnIneligible::FailJob],
            )
            .unwrap_or_default(),
        require_sandbox: fields.flag(cx, "require_sandbox").unwrap_or_default(),
    })
}

fn member(cx: &mut Context<'_>, node: &Node, path: &Path) -> Option<WriterMember> {
    let fields = Fields::open(cx, node, path, &grammar::MEMBER)?;
    let phase = fields.parsed(cx, "phase", Code::Name);
    let owns = owned_paths(cx, &fields, "owns");
    if fields
        .get("owns")
        .is_some_and(|node| matches!(&node.kind, Kind::List(items) if items.is_empty()))
    {
        cx.at(
            Code::Blank,
            &fields.at("owns"),
            "a writer owns at least one file",
        );
    }
    let locks = locks(cx, &fields);
    let checks = checks(cx, &fields);
    Some(WriterMember {
        phase: phase?,
        owns,
        locks,
        checks,
    })
}

/// Paths of files that can be owned on every file system.
fn owned_paths(cx: &mut Context<'_>, fields: &Fields<'_>, key: &str) -> Vec<RepoPath> {
    let mut paths = Vec::new();
    for (text, path) in fields.texts(cx, key).unwrap_or_default() {
        match ownable(&text) {
            Ok(owned) => paths.push(owned),
            Err(why) => {
                cx.at(
                    Code::WriterPath,
                    &path,
                    format!("{} cannot be owned: {why}", quoted(&text)),
                )
                .help("name single tracked files, `/`-separated, as they stand in the repository");
            }
        }
    }
    paths
}

fn ownable(text: &str) -> Result<RepoPath, &'static str> {
    if text.ends_with('/') {
        return Err("it is a directory");
    }
    let path = portable_path(text)?;
    if text.contains(['*', '?', '[']) {
        return Err("wildcards are not supported");
    }
    for part in text.split('/') {
        if part.contains([':', '<', '>', '"', '|']) {
            return Err("a part holds a character that not every file system can store");
        }
        if part.ends_with(['.', ' ']) || part.starts_with(' ') {
            return Err("a part starts with a space, or ends with a dot or a space");
        }
        let stem = part.split('.').next().unwrap_or(part).to_ascii_lowercase();
        if is_device(&stem) {
            return Err("a part is the name of a device on some systems");
        }
    }
    Ok(path)
}

fn is_device(stem: &str) -> bool {
    let numbered = stem
        .strip_prefix("com")
        .or_else(|| stem.strip_prefix("lpt"))
        .is_some_and(|number| matches!(number.as_bytes(), [b'1'..=b'9']));
    numbered || ["con", "prn", "aux", "nul"].contains(&stem)
}

fn locks(cx: &mut Context<'_>, fields: &Fields<'_>) -> Vec<String> {
    let mut locks: Vec<(String, Lock)> = Vec::new();
    for (text, path) in fields.texts(cx, "locks").unwrap_or_default() {
        match text.parse::<Lock>() {
            Err(error) => {
                cx.at(Code::WriterLock, &path, error.to_string());
            }
            Ok(lock) if locks.iter().any(|(_, held)| held.overlaps(&lock)) => {
                cx.at(
                    Code::WriterLock,
                    &path,
                    format!("the member holds {} twice", quoted(&text)),
                );
            }
            Ok(lock) => locks.push((text, lock)),
        }
    }
    locks.into_iter().map(|(text, _)| text).collect()
}

fn checks(cx: &mut Context<'_>, fields: &Fields<'_>) -> Vec<WriterCheck> {
    let mut checks: Vec<WriterCheck> = Vec::new();
    for (node, path) in fields.list(cx, "checks").unwrap_or_default() {
        let Some(check) = check(cx, node, &path) else {
            continue;
        };
        let same = |other: &WriterCheck| other.id.as_str().eq_ignore_ascii_case(check.id.as_str());
        if checks.iter().any(same) {
            cx.at(
                Code::WriterCheck,
                &path.key("id"),
                format!("the member has two checks {}", quoted(check.id.as_str())),
            );
        }
        checks.push(check);
    }
    checks
}

fn check(cx: &mut Context<'_>, node: &Node, path: &Path) -> Option<WriterCheck> {
    let fields = Fields::open(cx, node, path, &grammar::CHECK)?;
    let id: Option<Name> = fields.parsed(cx, "id", Code::Name);
    let command = fields.words(cx, "command");
    let env = variables(cx, &fields);
    let baseline = fields
        .choice(cx, "baseline", &[Baseline::MustPass, Baseline::MayFail])
        .unwrap_or_default();
    let fail_exits = fail_exits(cx, &fields);
    match (baseline, fields.has("fail_exits")) {
        (Baseline::MayFail, false) => {
            cx.at(
                Code::WriterCheck,
                path,
                "`baseline: may_fail` needs `fail_exits`",
            )
            .help("list the exit codes that mean failed tests; anything else is a broken check");
        }
        (Baseline::MustPass, true) => {
            cx.at(
                Code::WriterCheck,
                &fields.at("fail_exits"),
                "`fail_exits` needs `baseline: may_fail`",
            );
        }
        _ => {}
    }
    let timeout = fields.duration(
        cx,
        "timeout",
        (std::time::Duration::from_millis(1), PHASE_TIMEOUT_MAX),
    );
    Some(WriterCheck {
        id: id?,
        command: command?,
        env,
        baseline,
        fail_exits,
        timeout,
    })
}

fn fail_exits(cx: &mut Context<'_>, fields: &Fields<'_>) -> Vec<i32> {
    let mut exits = Vec::new();
    for (node, path) in fields.list(cx, "fail_exits").unwrap_or_default() {
        if let Some(exit) = count(cx, node, &path, "an exit code", (1, 255)) {
            exits.push(i32::try_from(exit).unwrap_or(i32::MAX));
        }
    }
    exits
}

fn variables(cx: &mut Context<'_>, fields: &Fields<'_>) -> BTreeMap<String, String> {
    let mut variables = BTreeMap::new();
    let Some(node) = fields.get("env") else {
        return variables;
    };
    let path = fields.at("env");
    let Kind::Map(entries) = &node.kind else {
        cx.at(
            Code::WrongType,
            &path,
            "expected a map from variable names to texts",
        );
        return variables;
    };
    report_repeated(cx, entries, &path);
    for entry in entries {
        let at = path.key(&entry.key);
        if !is_field_name(&entry.key) {
            cx.span(
                Code::WriterCheck,
                entry.key_span,
                &at,
                format!("{} is not the name of a variable", quoted(&entry.key)),
            );
        } else if let Some(value) = text(cx, &entry.value, &at) {
            variables.insert(entry.key.clone(), value);
        }
    }
    variables
}

fn conflict(cx: &mut Context<'_>, writers: &Fields<'_>) -> Option<OnConflict> {
    let path = writers.at("on_conflict");
    let fields = Fields::open(cx, writers.get("on_conflict")?, &path, &grammar::CONFLICT)?;
    let run = fields.parsed(cx, "run", Code::Name);
    let budget = fields.count(cx, "budget");
    let exhausted = fields.choice(
        cx,
        "exhausted",
        &[ConflictExhausted::Hold, ConflictExhausted::FailJob],
    );
    Some(OnConflict {
        run: run?,
        budget: budget?,
        exhausted: exhausted.unwrap_or_default(),
    })
}
