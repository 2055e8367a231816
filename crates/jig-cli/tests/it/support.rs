//! What the tests of the main road share: the examples, a snapshot of a
//! repository, a look at reports and traces.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::env::{Done, Env};

/// A path below `examples/`.
pub(crate) fn example(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples")
        .join(path)
        .canonicalize()
        .unwrap()
}

/// The names (without `.yaml`) of the files of a directory below `examples/`.
pub(crate) fn example_names(dir: &str) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(example(dir))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    names.sort();
    names
}

/// A repository with the files of `examples/sample`.
pub(crate) fn sample(env: &Env, name: &str) -> PathBuf {
    let repo = env.repo(name, &[]);
    copy(&example("sample"), &repo);
    env.git(&repo, &["add", "-A"]);
    env.git(&repo, &["commit", "-qm", "Greet people"]);
    repo
}

fn copy(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            std::fs::create_dir_all(&target).unwrap();
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), &target).unwrap();
            let shebang = std::fs::read(&target).unwrap().starts_with(b"#!");
            let mode = if shebang { 0o755 } else { 0o644 };
            std::fs::set_permissions(&target, std::fs::Permissions::from_mode(mode)).unwrap();
        }
    }
}

/// Runs a definition with a script on a repository; `--json` comes with it.
pub(crate) fn run(env: &Env, definition: &Path, script: &Path, repo: &Path) -> Done {
    run_with(env, definition, script, repo, &["--json"])
}

/// The same with other flags.
pub(crate) fn run_with(
    env: &Env,
    definition: &Path,
    script: &Path,
    repo: &Path,
    flags: &[&str],
) -> Done {
    let mut args = vec![
        "run",
        "--def",
        text(definition),
        "--runtime",
        "scripted",
        "--script",
        text(script),
        text(repo),
        "Do the work",
    ];
    args.extend(flags);
    env.jig(&env.path("home"), &args)
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A stock definition with its script.
pub(crate) fn run_stock(env: &Env, name: &str, repo: &Path) -> Done {
    let file = |dir: &str| example(&format!("{dir}/{name}.yaml"));
    run(env, &file("definitions"), &file("scripts"), repo)
}

/// Everything of a repository that nobody but its owner may change: every file
/// of the checkout and of git's directory (index, config, HEAD, FETCH_HEAD,
/// references, logs, hooks) byte for byte, except for objects and for what lies
/// below `refs/jig/` and `refs/heads/jig/`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Untouched(BTreeMap<PathBuf, String>);

impl Untouched {
    pub(crate) fn of(root: &Path) -> Self {
        let mut files = BTreeMap::new();
        collect(root, root, &mut files);
        Self(files)
    }
}

fn collect(root: &Path, dir: &Path, files: &mut BTreeMap<PathBuf, String>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.strip_prefix(root).unwrap().to_owned();
        let meta = path.symlink_metadata().unwrap();
        let mine = |tail: &str| name.ends_with(tail);
        if mine("objects") || mine("refs/jig") || mine("refs/heads/jig") {
            continue;
        }
        if meta.is_dir() {
            files.insert(name, format!("directory {:o}", meta.permissions().mode()));
            collect(root, &path, files);
        } else if meta.is_symlink() {
            let target = std::fs::read_link(&path).unwrap();
            files.insert(name, format!("link {}", target.display()));
        } else {
            let content = std::fs::read(&path).unwrap().escape_ascii().to_string();
            files.insert(name, format!("{:o} {content}", meta.permissions().mode()));
        }
    }
}

/// `phase:status` of every entry, in the order of their ends.
pub(crate) fn entries(report: &Value) -> Vec<String> {
    report["phases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|phase| {
            let text = |key: &str| phase[key].as_str().unwrap();
            format!("{}:{}", text("phase"), text("status"))
        })
        .collect()
}

/// The trace of a report, each line parsed; `seq` is gapless from 1.
pub(crate) fn trace(report: &Value) -> Vec<Value> {
    let path = report["trace_path"].as_str().unwrap();
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text.ends_with('\n'), "the last line is cut off");
    let events: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    for (index, event) in events.iter().enumerate() {
        assert_eq!(event["seq"], index as u64 + 1, "{event}");
    }
    events
}

/// The events of a type (and name, when given).
pub(crate) fn of_type<'a>(
    events: &'a [Value],
    kind: &'a str,
    name: Option<&'a str>,
) -> Vec<&'a Value> {
    events
        .iter()
        .filter(|event| event["type"] == kind)
        .filter(|event| name.is_none_or(|name| event["name"] == name))
        .collect()
}

/// The branch of an accepted run, and that it is where the report says.
#[track_caller]
pub(crate) fn branch(env: &Env, repo: &Path, report: &Value) -> String {
    let branch = report["branch"].as_str().unwrap().to_owned();
    let head = env.git(repo, &["rev-parse", &format!("refs/heads/{branch}")]);
    assert_eq!(head.trim(), report["commit"].as_str().unwrap());
    branch
}
