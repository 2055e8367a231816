//! What an agent may not write, through the whole road: undone exactly, named,
//! not retried, not run, not delivered.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::env::{Done, finish};
use crate::support::Untouched;
use crate::trial::{ONE_AGENT, Trial, trace};

const FILES: [(&str, &str); 5] = [
    (".gitignore", "*.log\nbuild/\n"),
    ("dir/inner.txt", "inner\n"),
    ("run.sh", "#!/bin/sh\n"),
    ("src/deep/c.txt", "c\n"),
    ("with space.txt", "s\n"),
];

/// A script whose only step runs `shell`, which must succeed.
fn runs(shell: &str) -> String {
    let shell: String = shell
        .lines()
        .map(|line| format!("        {line}\n"))
        .collect();
    format!(
        "roles:\n  builder:\n    - run: |\n{shell}      run_must_succeed: true\n      \
         emit: {{status: success, summary: done, changed_files: [src/a.txt]}}\n"
    )
}

/// A trial whose agent runs `shell`. `PROGRAM` in it leaves a mark when anybody
/// runs it, `$G` is the attempt's repository, `$L` the operator's.
fn trial(definition: &str, shell: &str) -> Trial {
    let prelude = "G=$(git rev-parse --absolute-git-dir)\n\
                   read -r L < \"$G/objects/info/alternates\"\nL=${L%/objects}\nset -e\n";
    let shell = format!("{prelude}{}", shell.replace("PROGRAM", "@DIR@/recorder"));
    let trial = Trial::new(definition, &runs(&shell));
    for (name, content) in FILES {
        trial.env.file(&format!("repo/{name}"), content);
    }
    chmod(&trial.repo.join("run.sh"), 0o755);
    trial.env.git(&trial.repo, &["add", "-A"]);
    trial.env.git(&trial.repo, &["commit", "-qm", "more"]);
    let recorder = format!(
        "#!/bin/sh\necho \"$0 $*\" >> {}/was-run\ncat\n",
        trial.marker()
    );
    chmod(&trial.env.file("recorder", &recorder), 0o755);
    trial
}

fn chmod(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// Every entry of a tree but git's own: kind, mode, content or target.
fn picture(root: &Path) -> BTreeMap<PathBuf, String> {
    let mut seen = BTreeMap::new();
    let mut open = vec![root.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().to_owned();
            if name == Path::new(".git") {
                continue;
            }
            let meta = path.symlink_metadata().unwrap();
            let mode = meta.permissions().mode();
            let is = if meta.is_symlink() {
                format!("-> {}", std::fs::read_link(&path).unwrap().display())
            } else if meta.is_dir() {
                open.push(path);
                format!("directory {mode:o}")
            } else if meta.is_file() {
                format!("{mode:o} {}", std::fs::read(&path).unwrap().escape_ascii())
            } else {
                format!("special {mode:o}")
            };
            seen.insert(name, is);
        }
    }
    seen
}

/// What is to be seen of every breach.
struct Breached {
    error: String,
    tree: PathBuf,
    attempt: PathBuf,
}

#[track_caller]
fn assert_breach(trial: &Trial, done: &Done, what: &str) -> Breached {
    assert_eq!(done.code, Some(3), "{what}: {}{}", done.stdout, done.stderr);
    let report = done.json();
    assert_eq!(
        (&report["cause"], &report["state"], &report["outcome"]),
        (&"breach".into(), &"failed".into(), &"rejected".into()),
        "{what}: {report}"
    );
    assert_eq!(report["publish"], "not_attempted", "{what}");
    let attempt = trial.attempts().pop().unwrap();
    let events = trial.assert_whole_record(report["attempt_id"].as_str().unwrap());
    let starts = |event: &&Value| event["type"] == "agent_start";
    assert_eq!(events.iter().filter(starts).count(), 1, "{what}: retried");
    assert_eq!(report["spend"]["sends"], 1, "{what}: sent again");
    let refs = trial
        .env
        .git(&trial.repo, &["for-each-ref", "refs/heads/jig"]);
    assert_eq!(refs, "", "{what}: delivered");
    let ran = std::fs::read_to_string(trial.env.path("was-run")).unwrap_or_default();
    assert_eq!(ran, "", "{what}: a planted program was run");
    Breached {
        error: report["error"].as_str().unwrap().to_owned(),
        tree: attempt.join("tree"),
        attempt,
    }
}

/// What one role with `src/**` may not do, and what the report must name.
const FORBIDDEN: [(&str, &[&str]); 30] = [
    ("echo x > new.txt", &["new.txt"]),
    ("echo x >> keep.txt", &["keep.txt"]),
    ("rm keep.txt", &["keep.txt"]),
    ("mv keep.txt moved.txt", &["keep.txt", "moved.txt"]),
    ("mv src/b.txt out.txt", &["out.txt"]),
    ("mv keep.txt src/in.txt", &["keep.txt"]),
    ("git mv keep.txt src/in.txt", &["keep.txt"]),
    ("chmod 755 keep.txt", &["keep.txt"]),
    ("chmod 644 run.sh", &["run.sh"]),
    ("ln -s /etc/passwd link", &["link"]),
    ("rm keep.txt; ln -s run.sh keep.txt", &["keep.txt"]),
    ("rm -r dir; ln -s /tmp dir", &["dir", "dir/inner.txt"]),
    ("echo x > trace.log", &["trace.log"]),
    ("mkdir -p build/x; echo x > build/x/y", &["build/x/y"]),
    ("mkdir empty", &["empty"]),
    ("echo x > \"$(printf 'new\\nline')\"", &["\"new\\nline\""]),
    ("echo x > \"$(printf 'bad\\377')\"", &["\"bad\\377\""]),
    ("echo x > ./-rf; echo x > ./--help", &["-rf", "--help"]),
    ("echo x > ':(glob)*'", &[":(glob)*"]),
    ("echo x >> 'with space.txt'", &["with space.txt"]),
    (
        "git update-index --assume-unchanged keep.txt; echo x > keep.txt",
        &["keep.txt"],
    ),
    (
        "git update-index --skip-worktree keep.txt; echo x > keep.txt",
        &["keep.txt"],
    ),
    (
        "echo '*.sneaky' >> .gitignore; echo x > a.sneaky",
        &[".gitignore", "a.sneaky"],
    ),
    (
        "echo '*.sneaky' >> $G/info/exclude; echo x > a.sneaky",
        &["info/exclude"],
    ),
    (
        "echo x > src/a.txt; git add -A; git commit -qm sneaky",
        &["refs/heads/jig/"],
    ),
    (
        "git update-ref refs/heads/other HEAD",
        &["refs/heads/other"],
    ),
    ("git checkout -q --detach", &["HEAD"]),
    (
        "touch src/a.txt; mkdir -p .claude; echo '{}' > .claude/settings.json",
        &[".claude"],
    ),
    ("mkfifo pipe", &["pipe"]),
    ("git init -q nested; echo x > nested/x", &["nested"]),
];

#[test]
fn what_is_written_outside_is_undone_exactly_and_named() {
    for (shell, named) in FORBIDDEN {
        let trial = trial(ONE_AGENT, shell);
        let expected = picture(&trial.repo);
        let before = Untouched::of(&trial.repo);
        let done = finish(trial.start_with(&["--keep"]));
        let breached = assert_breach(&trial, &done, shell);
        for name in named {
            assert!(breached.error.contains(name), "{shell}: {}", breached.error);
        }
        // Each path is named with what became of it.
        let told = ["(restored", "(deleted)"];
        assert!(
            told.iter().any(|it| breached.error.contains(it)),
            "{shell}: {}",
            breached.error
        );
        let mut now = picture(&breached.tree);
        // What was permitted stays: the files below `src`.
        let mut expected = expected;
        let is_permitted = |path: &PathBuf| path.starts_with("src") && path != Path::new("src");
        now.retain(|path, _| !is_permitted(path));
        expected.retain(|path, _| !is_permitted(path));
        assert_eq!(now, expected, "{shell}");
        assert_eq!(Untouched::of(&trial.repo), before, "{shell}");
        trial.assert_tidy(&breached.attempt);
        trial.assert_nobody_left();
    }
}

/// What nobody may do, whatever the allowlist says.
const NEVER: [(&str, &str); 12] = [
    ("mkfifo src/pipe", "src/pipe"),
    (
        "git init -q src/nested; echo x > src/nested/x",
        "src/nested",
    ),
    (
        "mkdir -p $G/hooks; cp PROGRAM $G/hooks/post-commit; cp PROGRAM $G/hooks/post-checkout",
        "hooks/post-c",
    ),
    ("git config core.fsmonitor PROGRAM", "config"),
    ("git config core.hooksPath @DIR@", "config"),
    (
        "git config core.sshCommand PROGRAM; git config url.x.insteadOf y",
        "config",
    ),
    (
        "git config filter.x.clean PROGRAM; git config filter.x.smudge PROGRAM; \
         echo '* filter=x' > .gitattributes; echo c > src/a.txt",
        "config",
    ),
    (
        "mkdir -p $G/info; echo '* filter=x' > $G/info/attributes",
        "info/attributes",
    ),
    ("echo /tmp >> $G/objects/info/alternates", "alternates"),
    ("rm .git; git init -q .", ".git"),
    (
        "git config -f $L/config url.ext::PROGRAM.insteadOf x; git config -f $L/config core.sshCommand PROGRAM",
        "config",
    ),
    (
        "mkdir -p $L/hooks; cp PROGRAM $L/hooks/reference-transaction",
        "hooks/reference-transaction",
    ),
];

#[test]
fn what_could_steer_git_is_a_breach_for_everybody_and_runs_nothing() {
    let anything = ONE_AGENT.replace("src/**", "**");
    for (shell, named) in NEVER {
        let trial = trial(&anything, shell);
        let done = finish(trial.start());
        let breached = assert_breach(&trial, &done, shell);
        assert!(
            breached.error.contains(named),
            "{shell}: {}",
            breached.error
        );
        trial.assert_tidy(&breached.attempt);
    }
}

#[test]
fn many_breaches_are_counted_the_first_named_and_all_listed() {
    let shell = "i=10; while [ $i -lt 45 ]; do echo x > new-$i; i=$((i+1)); done";
    let trial = trial(ONE_AGENT, shell);
    let done = finish(trial.start());
    let breached = assert_breach(&trial, &done, shell);
    let names = (10..45).map(|n| format!("new-{n}"));
    let named = names
        .clone()
        .filter(|name| breached.error.contains(name.as_str()))
        .count();
    assert_eq!(named, 20, "{}", breached.error);
    assert!(breached.error.contains("35"), "{}", breached.error);
    let log = breached
        .error
        .split_whitespace()
        .find(|word| word.contains("/logs/"));
    let log = log.unwrap_or_else(|| panic!("no list is named: {}", breached.error));
    let log =
        log.trim_matches(|c: char| !(c.is_alphanumeric() || c == '/' || c == '_' || c == '-'));
    let list = std::fs::read_to_string(log).unwrap();
    for name in names {
        assert!(list.contains(&name), "{name}: {list}");
    }
}

/// An agent, then a command that commits what it finds.
const COMMITTED: &str = "
name: committed
roster:
  builder:
    model: haiku
    writes: [\"src/**\"]
    env: [PATH]
    system_prompt: You build.
    user_prompt: \"{{prompt}}\"
phases:
  - {name: build, kind: agent, owner: builder}
  - {name: commit, kind: code, owner: builder, command: 'git add src && git commit -qm done'}
acceptance: [all_phases_passed]
";

#[test]
fn a_blob_planted_in_the_index_is_delivered_to_nobody() {
    let plant = |path: &str| {
        format!(
            "id=$(echo evil | git hash-object -w --stdin)\n\
             git update-index --add --cacheinfo 100644,$id,{path}\necho two > src/a.txt"
        )
    };
    // Where it may write, an earlier state of its own work looks the same.
    let trial_of = trial(COMMITTED, &plant("src/planted.txt"));
    let report = finish(trial_of.start()).expect(0).json();
    let branch = report["branch"].as_str().unwrap();
    let args = ["diff", "--name-only", "main", branch];
    let changed = trial_of.env.git(&trial_of.repo, &args);
    assert_eq!(changed, "src/a.txt\n");

    for path in ["keep.txt", "planted.txt"] {
        let trial = trial(COMMITTED, &plant(path));
        let report = finish(trial.start()).expect(3).json();
        assert_eq!(report["cause"], "breach", "{report}");
        assert_eq!(report["publish"], "not_attempted");
        let error = report["error"].as_str().unwrap();
        assert!(error.contains(path) && error.contains("planted"), "{error}");
        let refs = trial.env.git(&trial.repo, &["for-each-ref", "refs/heads"]);
        assert_eq!(refs.lines().count(), 1, "nothing is delivered: {refs}");
    }
}

#[test]
fn an_edit_of_one_line_is_a_diff_of_one_line_whatever_the_attributes() {
    let script = "sed -i 's/second/2nd/' src/crlf.txt src/ident.txt\n\
                  iconv -f UTF-16LE -t UTF-8 src/wide.txt | sed 's/second/2nd/' > ~/t\n\
                  iconv -f UTF-8 -t UTF-16LE ~/t > src/wide.txt";
    let mut trial = trial(ONE_AGENT, "true");
    trial.script(&runs(script));
    let attributes = "src/crlf.txt text eol=crlf\nsrc/ident.txt ident\n\
                      src/wide.txt text working-tree-encoding=UTF-16LE\n";
    trial.env.file("repo/.gitattributes", attributes);
    trial
        .env
        .file("repo/src/crlf.txt", "first\r\nsecond\r\nthird\r\n");
    trial
        .env
        .file("repo/src/ident.txt", "$Id$\nsecond\nthird\n");
    let wide: Vec<u8> = "first\nsecond\nthird\n"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    std::fs::write(trial.repo.join("src/wide.txt"), wide).unwrap();
    trial.env.git(&trial.repo, &["add", "-A"]);
    trial.env.git(&trial.repo, &["commit", "-qm", "attributes"]);
    let report = finish(trial.start()).expect(0).json();
    let branch = report["branch"].as_str().unwrap();
    let diff = trial
        .env
        .git(&trial.repo, &["diff", "--numstat", "main", branch]);
    assert_eq!(
        diff,
        "1\t1\tsrc/crlf.txt\n1\t1\tsrc/ident.txt\n1\t1\tsrc/wide.txt\n"
    );
}

#[test]
fn a_crash_over_earlier_work_is_undone_exactly_and_begun_afresh() {
    let definition = ONE_AGENT.replace(
        "acceptance:",
        "  - {name: polish, kind: agent, owner: builder}\nacceptance:",
    );
    let good = "emit: {status: success, summary: done}";
    let script = format!(
        "roles:\n  builder:\n    - {{write: {{src/a.txt: \"phase one\\n\", src/new.txt: \"new\\n\"}}, \
         chmod: {{src/b.txt: \"755\"}}, {good}}}\n    \
         - {{write: {{src/a.txt: \"half\", src/stray.txt: x}}, delete: [src/new.txt], \
         chmod: {{src/b.txt: \"600\"}}, end: crash}}\n    \
         - run: 'test \"$(cat src/a.txt)\" = \"phase one\" && test ! -e src/stray.txt && \
         test \"$(cat src/new.txt)\" = new && test \"$(stat -c %a src/b.txt)\" = 755'\n      \
         run_must_succeed: true\n      write: {{src/b.txt: \"polished\\n\"}}\n      {good}\n"
    );
    let trial = Trial::new(&definition, &script);
    let report = finish(trial.start()).expect(0).json();
    assert_eq!(report["budgets"]["deaths"], 1, "{report}");
    let events = trace(&trial.attempts()[0]);
    let sessions: Vec<&str> = (events.iter())
        .filter(|event| event["type"] == "agent_start" && event["phase"] == "polish")
        .map(|event| event["payload"]["session"].as_str().unwrap())
        .collect();
    assert_eq!(sessions.len(), 2);
    assert_ne!(
        sessions[0], sessions[1],
        "the session of the dead is not continued"
    );
    let branch = report["branch"].as_str().unwrap();
    let show = |file: &str| {
        trial
            .env
            .git(&trial.repo, &["show", &format!("{branch}:{file}")])
    };
    assert_eq!(
        (show("src/a.txt").as_str(), show("src/b.txt").as_str()),
        ("phase one\n", "polished\n")
    );
    let names = trial
        .env
        .git(&trial.repo, &["diff", "--name-only", "main", branch]);
    assert_eq!(names, "src/a.txt\nsrc/b.txt\nsrc/new.txt\n");
}

#[test]
fn what_an_agent_leaves_running_cannot_write_after_it() {
    // Each would write where it may not, a moment after the agent has answered.
    let script = "roles:\n  builder:\n    - write: {src/a.txt: \"two\\n\"}\n      \
        spawn: 'trap \"\" TERM HUP; sleep 1; while :; do echo late > keep.txt; echo late > late.txt; done'\n      \
        setsid: true\n      run: '(trap \"\" TERM; sleep 1; while :; do echo late >> keep.txt; done) > /dev/null 2>&1 &'\n      \
        emit: {status: success, summary: done}\n";
    let trial = Trial::new(ONE_AGENT, script);
    let before = Untouched::of(&trial.repo);
    let done = finish(trial.start_with(&["--keep"]));
    let report = done.json();
    trial.assert_nobody_left();
    // They are stopped with a grace and may have written in it, which is then
    // judged: but never after the look, and never into what is delivered.
    let tree = trial.attempts()[0].join("tree");
    assert_eq!(
        std::fs::read(tree.join("keep.txt")).unwrap(),
        b"keep\n",
        "{report}"
    );
    assert!(!tree.join("late.txt").exists());
    let stopped = trace(&trial.attempts()[0]);
    assert!(
        stopped
            .iter()
            .any(|event| event["name"] == "leftovers_stopped"),
        "{stopped:?}"
    );
    assert_eq!(Untouched::of(&trial.repo), before);
    assert!([Some(0), Some(3)].contains(&done.code), "{done:?}");
}
