//! Repositories of every kind: jig works on them, or says why not; it never
//! touches more than it says.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::env::{Done, Env};
use crate::support::{Untouched, branch, example, sample, text};

/// A definition whose builder writes `made.txt`, and its script.
struct Small {
    definition: PathBuf,
    script: PathBuf,
}

impl Small {
    fn new(env: &Env) -> Self {
        Self {
            definition: env.file(
                "small.yaml",
                "name: small\nroster:\n  builder:\n    model: m\n    writes: [made.txt]\n    \
                 system_prompt: s\n    user_prompt: \"{{prompt}}\"\nphases:\n  \
                 - {name: build, kind: agent, owner: builder, gates: [{name: diff_matches_claims}]}\n  \
                 - {name: see, kind: code, writes: [], command: 'ls'}\n\
                 acceptance: [all_phases_passed]\n",
            ),
            script: env.file(
                "small.script.yaml",
                "roles:\n  builder:\n    - write: {made.txt: \"made\\n\"}\n      emit: {status: success, \
                 summary: s, artifacts: [made.txt], changed_files: [made.txt], notes_for_next_agent: ''}\n",
            ),
        }
    }

    /// Runs it in `cwd` with these words after the flags.
    fn run(&self, env: &Env, cwd: &Path, words: &[&str]) -> Done {
        let (definition, script) = (text(&self.definition), text(&self.script));
        let flags = ["--runtime", "scripted", "--script", script, "--json"];
        env.jig(
            cwd,
            &[&["run", "--def", definition], &flags[..], words].concat(),
        )
    }
}

/// Runs the small definition on `repo` and looks at what came of it.
#[track_caller]
fn works(env: &Env, cwd: &Path, repo: &str, home_of_branch: &Path) -> Value {
    let before = Untouched::of(home_of_branch);
    let report = Small::new(env)
        .run(env, cwd, &[repo, "Do it"])
        .expect(0)
        .json();
    let branch = branch(env, home_of_branch, &report);
    let made = env.git(home_of_branch, &["show", &format!("{branch}:made.txt")]);
    assert_eq!(made, "made\n");
    assert_eq!(report["changed_paths"], json!(["made.txt"]));
    assert_eq!(Untouched::of(home_of_branch), before);
    report
}

/// Refuses `repo` with 2, names it, makes and touches nothing.
#[track_caller]
fn refused(env: &Env, cwd: &Path, repo: &str, says: &[&str]) {
    let done = Small::new(env).run(env, cwd, &[repo, "Do it"]);
    done.expect(2);
    assert_eq!(done.stdout, "");
    for what in says {
        assert!(
            done.stderr.contains(what),
            "{what:?} is not in:\n{}",
            done.stderr
        );
    }
    assert!(!env.data().exists(), "the data directory was made");
}

#[test]
fn a_place_that_would_mix_jigs_files_with_the_operators() {
    let env = Env::new();
    let repo = sample(&env, "repo");
    let before = Untouched::of(&repo);
    let home = env.path("home");
    std::os::unix::fs::symlink(&repo, env.path("link")).unwrap();
    for place in ["repo/.jig", "repo/.git/jig", "link/a/b"] {
        let place = env.path(place);
        let args = [text(&repo), "Do it", "--data", text(&place)];
        let done = Small::new(&env).run(&env, &home, &args);
        done.expect(2);
        let says = [text(&place), "is inside the repository", "--data"];
        assert!(
            says.iter().all(|what| done.stderr.contains(what)),
            "{}",
            done.stderr
        );
        assert!(!place.exists());
    }
    assert_eq!(Untouched::of(&repo), before);
    // Neither in another checkout of it, nor by a way that is not there yet.
    let linked = env.path("linked");
    env.git(&repo, &["worktree", "add", "-q", "--detach", text(&linked)]);
    let roundabout = env.path("none/../repo/x");
    let others = [
        (&repo, linked.join("x")),
        (&linked, repo.join("x")),
        (&repo, roundabout),
    ];
    for (of, place) in others {
        let args = [text(of), "Do it", "--data", text(&place)];
        let done = Small::new(&env).run(&env, &home, &args);
        done.expect(2);
        assert!(
            done.stderr.contains("is inside the repository"),
            "{}",
            done.stderr
        );
    }
    assert!(!repo.join("x").exists() && !linked.join("x").exists());
    env.git(&repo, &["worktree", "remove", text(&linked)]);
    let before = Untouched::of(&repo);
    // The tree of an attempt is not the operator's to lend.
    let kept = Small::new(&env).run(&env, &home, &[text(&repo), "Do it", "--keep"]);
    let tree = kept.expect(0).json()["tree"].as_str().unwrap().to_owned();
    let done = Small::new(&env).run(&env, &home, &[&tree, "Do it"]);
    done.expect(2);
    assert!(
        done.stderr.contains("belongs to an attempt"),
        "{}",
        done.stderr
    );
    assert_eq!(Untouched::of(&repo), before);
}

#[test]
#[cfg(target_os = "linux")]
fn a_path_that_is_no_text() {
    use std::os::unix::ffi::OsStrExt as _;
    let env = Env::new();
    let repo = env
        .path("home")
        .join(std::ffi::OsStr::from_bytes(b"r\xff \"x"));
    std::fs::rename(sample(&env, "repo"), &repo).unwrap();
    let report = works(&env, &repo, ".", &repo);
    let attempt = report["attempt_id"].as_str().unwrap();
    let args = ["attempt", "show", attempt, "--json"];
    let shown = env.jig(&repo, &args).expect(0).json();
    let named = shown["repository"].as_str().unwrap();
    assert!(named.ends_with("r\\377 \\\"x\""), "{named}");
}

#[test]
fn a_checkout_that_does_not_lead_to_its_repository() {
    let env = Env::new();
    let repo = sample(&env, "repo");
    std::fs::create_dir(env.path("elsewhere")).unwrap();
    let elsewhere = env.path("elsewhere");
    env.git(&repo, &["config", "core.worktree", text(&elsewhere)]);
    refused(
        &env,
        &env.path("home"),
        text(&repo),
        &["core.worktree", "clone"],
    );
}

#[test]
fn an_ordinary_checkout_dirty_or_seen_from_inside() {
    let env = Env::new();
    let repo = sample(&env, "repo");
    works(&env, &env.path("home"), text(&repo), &repo);
    // Uncommitted work is neither part of the run nor in its way.
    std::fs::write(repo.join("greet.sh"), "broken\n").unwrap();
    std::fs::write(repo.join("made.txt"), "mine\n").unwrap();
    let report = works(&env, &env.path("home"), text(&repo), &repo);
    let tree = env.git(
        &repo,
        &[
            "ls-tree",
            "-r",
            "--name-only",
            report["commit"].as_str().unwrap(),
        ],
    );
    assert!(tree.contains("made.txt") && tree.contains("greet.sh"));
    assert_eq!(
        std::fs::read_to_string(repo.join("made.txt")).unwrap(),
        "mine\n"
    );
    works(&env, &repo.join("tests"), ".", &repo);
    works(&env, &repo, "tests", &repo);
}

#[test]
fn the_repository_defaults_to_where_one_stands() {
    let env = Env::new();
    let repo = sample(&env, "repo");
    let report = Small::new(&env)
        .run(&env, &repo.join("script"), &["Do it"])
        .expect(0)
        .json();
    branch(&env, &repo, &report);
}

#[test]
fn paths_with_spaces_and_quotes_and_links_to_them() {
    let env = Env::new();
    let repo = sample(&env, "it's a \"repo\" $(touch oops) \\ é");
    works(&env, &env.path("home"), text(&repo), &repo);
    let link = env.path("link");
    std::os::unix::fs::symlink(&repo, &link).unwrap();
    works(&env, &env.path("home"), text(&link), &repo);
    works(&env, &env.path(""), "link/tests", &repo);
    assert!(!env.path("home/oops").exists() && !repo.join("oops").exists());
}

#[test]
fn a_detached_head() {
    let env = Env::new();
    let repo = sample(&env, "repo");
    env.git(&repo, &["checkout", "-q", "--detach"]);
    works(&env, &env.path("home"), text(&repo), &repo);
}

#[test]
fn a_bare_repository() {
    let env = Env::new();
    let repo = sample(&env, "repo");
    let bare = env.path("bare.git");
    env.git(&repo, &["clone", "-q", "--bare", ".", text(&bare)]);
    works(&env, &env.path("home"), text(&bare), &bare);
}

#[test]
fn a_shallow_clone() {
    let env = Env::new();
    let repo = sample(&env, "repo");
    let shallow = env.path("shallow");
    let url = format!("file://{}", repo.display());
    env.git(
        &repo,
        &["clone", "-q", "--depth", "1", &url, text(&shallow)],
    );
    assert!(shallow.join(".git/shallow").exists());
    works(&env, &env.path("home"), text(&shallow), &shallow);
}

#[test]
fn a_linked_worktree() {
    let env = Env::new();
    let repo = sample(&env, "repo");
    let linked = env.path("linked");
    env.git(
        &repo,
        &["worktree", "add", "-q", "-b", "side", text(&linked)],
    );
    std::fs::write(linked.join("side.txt"), "side\n").unwrap();
    env.git(&linked, &["add", "-A"]);
    env.git(&linked, &["commit", "-qm", "side"]);
    let checkout = Untouched::of(&linked);
    let report = works(&env, &env.path("home"), text(&linked), &repo);
    assert_eq!(Untouched::of(&linked), checkout);
    // It starts from what is checked out there.
    let parent = env.git(
        &repo,
        &[
            "log",
            "-1",
            "--format=%s",
            &format!("{}^", report["commit"].as_str().unwrap()),
        ],
    );
    assert_eq!(parent, "side\n");
}

#[test]
fn a_repository_of_sha256_objects() {
    let env = Env::new();
    let repo = env.path("repo");
    env.git(
        &env.path("home"),
        &[
            "init",
            "-q",
            "-b",
            "main",
            "--object-format=sha256",
            text(&repo),
        ],
    );
    std::fs::write(repo.join("a"), "a\n").unwrap();
    env.git(&repo, &["add", "-A"]);
    env.git(&repo, &["commit", "-qm", "start"]);
    let report = works(&env, &env.path("home"), text(&repo), &repo);
    assert_eq!(report["commit"].as_str().unwrap().len(), 64);
}

#[test]
fn a_repository_without_a_commit() {
    let env = Env::new();
    let repo = env.path("repo");
    env.git(
        &env.path("home"),
        &["init", "-q", "-b", "main", text(&repo)],
    );
    let report = works(&env, &env.path("home"), text(&repo), &repo);
    let log = env.git(
        &repo,
        &["log", "--format=%P", report["commit"].as_str().unwrap()],
    );
    assert_eq!(log, "\n", "one commit, without a parent");
}

#[test]
fn a_branch_named_jig_is_in_the_way() {
    for name in ["jig", "JIG"] {
        let env = Env::new();
        let repo = sample(&env, "repo");
        env.git(&repo, &["branch", name]);
        let before = Untouched::of(&repo);
        refused(&env, &repo, ".", &[name, "rename"]);
        assert_eq!(Untouched::of(&repo), before);
    }
}

#[test]
fn no_repository_is_named_and_left_alone() {
    let env = Env::new();
    std::fs::create_dir(env.path("plain")).unwrap();
    env.file("file", "x");
    let home = env.path("home");
    let broken = env.repo("broken", &[("a", "a\n")]);
    std::fs::write(broken.join(".git/HEAD"), "ref: refs/heads/gone\n").unwrap();
    std::fs::remove_dir_all(broken.join(".git/refs")).unwrap();
    for path in ["plain", "file", "missing", "broken"] {
        let path = env.path(path);
        refused(&env, &home, text(&path), &[text(&path)]);
    }
    refused(
        &env,
        &env.path("plain"),
        ".",
        &["git repository", "REPO PROMPT"],
    );
    assert_eq!(std::fs::read_dir(env.path("plain")).unwrap().count(), 0);
}

#[test]
fn prompt_files_must_be_in_the_base_commit() {
    let env = Env::new();
    let repo = sample(&env, "repo");
    std::os::unix::fs::symlink("/etc/passwd", repo.join("link.md")).unwrap();
    env.git(&repo, &["add", "-A"]);
    env.git(&repo, &["commit", "-qm", "link"]);
    std::fs::write(repo.join("late.md"), "not committed").unwrap();
    let before = Untouched::of(&repo);
    for prompt in ["late.md", "link.md", "missing.md", "tests"] {
        let definition = env.file(
            "p.yaml",
            &format!(
                "name: p\nroster: {{a: {{model: m, writes: [], system_prompt: s, user_prompt_path: {prompt}}}}}\n\
                 phases: [{{name: p, kind: agent, owner: a}}]\n"
            ),
        );
        let script = env.file("p.script.yaml", "roles: {a: [{emit: x}]}\n");
        let small = Small { definition, script };
        let done = small.run(&env, &repo, &["Do it"]);
        assert!(done.expect(2).stderr.contains(prompt), "{}", done.stderr);
        assert_eq!(done.stdout, "");
        assert!(!env.data().exists());
    }
    assert_eq!(Untouched::of(&repo), before);
}

#[test]
fn in_place_works_in_the_checkout_itself() {
    let env = Env::new();
    let repo = sample(&env, "repo");
    let small = Small::new(&env);
    let head = env.git(&repo, &["rev-parse", "HEAD"]);
    let report = small
        .run(&env, &repo, &["--in-place", "Do it"])
        .expect(0)
        .json();
    assert_eq!(report["publish"], "not_attempted");
    assert_eq!(report["branch"], Value::Null);
    assert_eq!(report["changed_paths"], json!(["made.txt"]));
    assert_eq!(
        std::fs::read_to_string(repo.join("made.txt")).unwrap(),
        "made\n"
    );
    assert_eq!(env.git(&repo, &["status", "--porcelain"]), "?? made.txt\n");
    assert_eq!(env.git(&repo, &["rev-parse", "HEAD"]), head);
    assert_eq!(env.git(&repo, &["branch", "--list"]), "* main\n");
}

#[test]
fn in_place_refuses_uncommitted_work_unless_told_and_then_keeps_it() {
    let env = Env::new();
    let repo = sample(&env, "repo");
    std::fs::write(repo.join("greet.sh"), "half a thought\n").unwrap();
    std::fs::write(repo.join("idea.txt"), "an idea\n").unwrap();
    env.git(&repo, &["add", "idea.txt"]);
    std::fs::write(repo.join("idea.txt"), "a better idea\n").unwrap();
    let before = Untouched::of(&repo);
    let small = Small::new(&env);
    let done = small.run(&env, &repo, &["--in-place", "Do it"]);
    done.expect(2);
    assert!(
        done.stderr.contains("greet.sh") || done.stderr.contains("uncommitted"),
        "{}",
        done.stderr
    );
    assert!(done.stderr.contains("--allow-dirty"), "{}", done.stderr);
    assert_eq!((done.stdout.as_str(), env.data().exists()), ("", false));
    assert_eq!(Untouched::of(&repo), before);

    small
        .run(&env, &repo, &["--in-place", "--allow-dirty", "Do it"])
        .expect(0);
    let read = |name: &str| std::fs::read_to_string(repo.join(name)).unwrap();
    assert_eq!(read("greet.sh"), "half a thought\n");
    assert_eq!(read("idea.txt"), "a better idea\n");
    assert_eq!(read("made.txt"), "made\n");
    assert_eq!(
        env.git(&repo, &["show", ":idea.txt"]),
        "an idea\n",
        "what was staged still is"
    );
}

#[test]
fn a_breach_in_place_leaves_the_checkout_as_it_was() {
    let env = Env::new();
    let repo = sample(&env, "repo");
    std::fs::write(repo.join("greet.sh"), "half a thought\n").unwrap();
    let mut small = Small::new(&env);
    small.script = env.file(
        "breach.yaml",
        "roles:\n  builder:\n    - write: {greet.sh: \"mine now\\n\", stray: x}\n      emit: {status: success, \
         summary: s, artifacts: [], changed_files: [greet.sh], notes_for_next_agent: ''}\n",
    );
    let report = small
        .run(&env, &repo, &["--in-place", "--allow-dirty", "Do it"])
        .expect(3)
        .json();
    assert_eq!(report["cause"], "breach");
    assert_eq!(
        std::fs::read_to_string(repo.join("greet.sh")).unwrap(),
        "half a thought\n"
    );
    assert!(!repo.join("stray").exists());
    assert_eq!(env.git(&repo, &["status", "--porcelain"]), " M greet.sh\n");
}

#[test]
fn in_place_refuses_what_has_no_checkout_to_work_in() {
    let env = Env::new();
    let repo = sample(&env, "repo");
    let small = Small::new(&env);
    let bare = env.path("bare.git");
    env.git(&repo, &["clone", "-q", "--bare", ".", text(&bare)]);
    let unborn = env.path("unborn");
    env.git(&repo, &["init", "-q", text(&unborn)]);
    let merging = env.repo("merging", &[("a", "a\n")]);
    let head = env.git(&merging, &["rev-parse", "HEAD"]);
    std::fs::write(merging.join(".git/MERGE_HEAD"), head).unwrap();
    for (path, says) in [(&bare, "bare"), (&unborn, "no commit"), (&merging, "merge")] {
        let before = Untouched::of(path);
        let done = small.run(&env, &repo, &["--in-place", text(path), "Do it"]);
        assert!(done.expect(2).stderr.contains(says), "{}", done.stderr);
        assert!(
            done.stderr.contains("hint: run without --in-place"),
            "{}",
            done.stderr
        );
        assert_eq!((done.stdout.as_str(), env.data().exists()), ("", false));
        assert_eq!(Untouched::of(path), before);
    }
}

#[test]
fn a_commit_phase_in_place_commits_on_the_branch_that_is_checked_out() {
    let env = Env::new();
    let repo = sample(&env, "repo");
    let definition = example("definitions/simple-sdlc.yaml");
    let small = Small {
        definition,
        script: example("scripts/simple-sdlc.yaml"),
    };
    let report = small
        .run(&env, &repo, &["--in-place", "Do it"])
        .expect(0)
        .json();
    assert_eq!(report["publish"], "not_attempted");
    assert_eq!(
        env.git(&repo, &["log", "--format=%s", "main"]),
        "Keep a name with a space in one piece\nGreet more than one name\nGreet people\nstart\n"
    );
    assert_eq!(env.git(&repo, &["status", "--porcelain"]), "");
}
