//! Preparing: what is made, what is refused, and what was left untouched.

use std::os::unix::fs::{PermissionsExt, symlink};

use jig_engine::host::{Manifest, Mode, PrepareError, PromptError, check_prompts};
use jig_git::repository::Repository;
use jig_git::{Git, GitConfig};
use jig_testkit::Repo;

use crate::fixture::{Fixture, PLAIN};

/// Nothing of the operator's, and nothing of an attempt.
fn assert_untouched(fixture: &Fixture, before: &str) {
    assert_eq!(fixture.operator_state(), before);
    let attempts = fixture.config.data_dir.join("attempts");
    let left = std::fs::read_dir(attempts).map_or(0, Iterator::count);
    assert_eq!(left, 0, "an attempt directory was left");
    assert!(!fixture.repo.refs().contains("refs/jig/"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_is_checked_out_and_nothing_of_the_operators_changes() {
    let fixture = Fixture::new(&[("src/a.rs", "a\n"), ("dir/with space", "x")]);
    fixture.repo.write("dirty", "not committed");
    let before = fixture.operator_state();
    let attempt = fixture.attempt().await;
    assert_eq!(fixture.operator_state(), before);
    assert_eq!(attempt.read("src/a.rs"), "a\n");
    assert!(!attempt.exists("dirty"));
    assert_eq!(attempt.git(&["status", "--porcelain"]), "");
    let branch = attempt.git(&["symbolic-ref", "HEAD"]);
    assert_eq!(Some(branch), attempt.prepared.branch.clone());
    assert_eq!(attempt.git(&["rev-parse", "HEAD"]), fixture.repo.head());
    assert!(fixture.repo.refs().contains("refs/jig/pins/"));

    let dirs = &attempt.prepared.dirs;
    for dir in [
        dirs.root.clone(),
        dirs.role_home("builder"),
        dirs.role_tmp("builder"),
        dirs.role_runtime(0),
        dirs.command_home(),
        dirs.handoff(),
        dirs.logs(),
    ] {
        let mode = std::fs::metadata(&dir).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{}", dir.display());
    }
    let manifest = Manifest::read(&dirs.manifest()).unwrap().unwrap();
    assert_eq!(manifest.base, fixture.repo.head());
    assert_eq!(manifest.branch, attempt.prepared.branch);
    assert!(manifest.process_groups.is_empty());
}

/// Whatever git run fails, and also what comes after the last one.
#[tokio::test(flavor = "multi_thread")]
async fn a_preparation_that_fails_anywhere_leaves_nothing() {
    let mut fixture = Fixture::new(&[("src/a.rs", "a\n")]);
    let before = fixture.operator_state();
    let dir = fixture.repo.scratch().join("bin");
    std::fs::create_dir(&dir).unwrap();
    let path = crate::fixture::path_env().into_string().unwrap();
    let script = format!(
        "#!/bin/sh\nPATH={path}\nread -r n < {dir}/left; n=$((n - 1)); echo $n > {dir}/left\n\
         [ $n = 0 ] && {{ echo broken >&2; exit 1; }}\nexec git \"$@\"\n",
        dir = dir.display()
    );
    std::fs::write(dir.join("git"), script).unwrap();
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(dir.join("git"), mode).unwrap();
    fixture.config.git = Git::new(GitConfig::new(format!("{}:{path}", dir.display())));
    let mut failed = 0;
    loop {
        std::fs::write(dir.join("left"), format!("{}\n", failed + 1)).unwrap();
        let repo = fixture.repo.path();
        match fixture.try_prepare(Mode::OwnTree, &repo).await {
            Ok(prepared) => {
                std::fs::write(dir.join("left"), "1000\n").unwrap();
                prepared.repo.release_pin().await.unwrap();
                std::fs::remove_dir_all(&prepared.dirs.root).unwrap();
                break;
            }
            Err(_) => assert_untouched(&fixture, &before),
        }
        failed += 1;
    }
    assert!(failed >= 3, "version, pin and checkout: {failed}");

    let caches = fixture.config.data_dir.join("caches");
    std::fs::remove_dir_all(&caches).unwrap();
    std::fs::write(&caches, "in the way").unwrap();
    let error = fixture
        .try_prepare(Mode::OwnTree, &fixture.repo.path())
        .await
        .unwrap_err();
    assert!(matches!(error, PrepareError::Home(_)), "{error:?}");
    assert_untouched(&fixture, &before);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_repository_works() {
    let with_commit = |repo: Repo| {
        repo.write("src/a.rs", "a\n");
        repo.commit("first");
        repo
    };
    let sha256 = with_commit(Repo::init(&[
        "--object-format=sha256",
        "--initial-branch=main",
    ]));
    let detached = with_commit(Repo::new());
    detached.git(&["checkout", "--quiet", "--detach"]);
    let shallow = {
        let origin = with_commit(Repo::new());
        origin.commit("second");
        let repo = Repo::new();
        let url = format!("file://{}", origin.path().display());
        repo.git(&["fetch", "--quiet", "--depth=1", &url, "main"]);
        repo.git(&["reset", "--hard", "--quiet", "FETCH_HEAD"]);
        assert!(repo.path().join(".git/shallow").exists());
        repo
    };
    let packed = with_commit(Repo::new());
    packed.git(&["gc", "--quiet"]);
    for (what, repo) in [
        ("sha256", sha256),
        ("detached", detached),
        ("shallow", shallow),
        ("packed", packed),
    ] {
        let fixture = Fixture::on(repo);
        let mut attempt = fixture.attempt().await;
        let verdict = attempt
            .entry(crate::fixture::BUILDER, "echo b > src/a.rs")
            .await;
        assert!(verdict.breaches.is_empty(), "{what}: {verdict:?}");
        let delivery = crate::host::deliver::deliver(&fixture, &attempt)
            .await
            .unwrap();
        let commit = delivery.commit.unwrap();
        let changed = fixture
            .repo
            .git(&["diff", "--name-only", &fixture.base(), &commit]);
        assert_eq!(changed, "src/a.rs", "{what}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repository_without_a_commit_starts_from_nothing() {
    let fixture = Fixture::on(Repo::new());
    let mut attempt = fixture.attempt().await;
    let verdict = attempt
        .entry(crate::fixture::BUILDER, "mkdir src; echo a > src/a")
        .await;
    assert!(verdict.breaches.is_empty(), "{verdict:?}");
    let delivery = crate::host::deliver::deliver(&fixture, &attempt)
        .await
        .unwrap();
    let commit = delivery.commit.unwrap();
    assert_eq!(fixture.repo.git(&["show", &format!("{commit}:src/a")]), "a");
    assert_eq!(fixture.repo.git(&["rev-list", "--count", &commit]), "1");
    // The operator's branch is as unborn as before.
    assert!(
        !fixture
            .repo
            .try_git(&["rev-parse", "--verify", "HEAD"])
            .status
            .success()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bare_repository_lends_too() {
    let source = Repo::with_files(&[("src/a.rs", "a\n")]);
    let bare = Repo::init(&["--bare", "--initial-branch=main"]);
    source.git(&[
        "push",
        "--quiet",
        &bare.path().display().to_string(),
        "main",
    ]);
    let fixture = Fixture::on(bare);
    let mut attempt = fixture.attempt().await;
    let verdict = attempt
        .entry(crate::fixture::BUILDER, "echo b > src/a.rs")
        .await;
    assert!(verdict.breaches.is_empty(), "{verdict:?}");
    let delivery = crate::host::deliver::deliver(&fixture, &attempt)
        .await
        .unwrap();
    let commit = delivery.commit.unwrap();
    assert_eq!(
        fixture.repo.git(&["show", &format!("{commit}:src/a.rs")]),
        "b"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn any_way_to_the_repository_leads_there() {
    let fixture = Fixture::new(&[("src/deep/a.rs", "a\n")]);
    let odd = fixture.repo.scratch().join("a \"quoted\" 'path' \u{e9}");
    symlink(fixture.repo.path(), &odd).unwrap();
    for path in [
        odd.clone(),
        fixture.repo.path().join("src/deep"),
        odd.join("src"),
        fixture.repo.path().join(".git"),
    ] {
        let prepared = fixture.try_prepare(Mode::OwnTree, &path).await.unwrap();
        assert!(
            prepared.work_tree.join("src/deep/a.rs").exists(),
            "{}",
            path.display()
        );
        crate::host::dispose::forget(&fixture, &prepared).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_branch_in_the_way_is_named_before_anything_is_made() {
    for branch in ["jig", "JIG", "Jig/x"] {
        let fixture = Fixture::new(&[("a", "a\n")]);
        fixture.repo.git(&["branch", branch]);
        let before = fixture.operator_state();
        let error = fixture
            .try_prepare(Mode::OwnTree, &fixture.repo.path())
            .await
            .unwrap_err();
        assert!(error.to_string().contains(branch), "{error}");
        assert_untouched(&fixture, &before);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn prompts_come_from_the_base_commit_and_nowhere_else() {
    let text = PLAIN.replace("user_prompt: u", "user_prompt_path: prompts/build.md");
    let fixture = Fixture::new(&[("prompts/build.md", "as committed\n")]).defined(&text);
    fixture.repo.write("prompts/build.md", "as edited\n");
    let attempt = fixture.attempt().await;
    let prompts = &attempt.prepared.prompts["builder"];
    assert_eq!(
        (prompts.system.as_str(), prompts.user.as_str()),
        ("s", "as committed\n")
    );
    let digest = blake3::hash(b"as committed\n").to_hex().to_string();
    assert_eq!(prompts.files[0].digest, digest);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_that_is_no_small_text_file_is_refused_by_name() {
    let large = "x".repeat(jig_protocol::limits::PROMPT_FILE_BYTES + 1);
    let fixture = Fixture::new(&[("real", "text"), ("large", &large), ("dir/x", "x")]);
    fixture.repo.write("binary", [0xff_u8, 0xfe]);
    std::fs::write(fixture.repo.scratch().join("secret"), "outside").unwrap();
    symlink("../secret", fixture.repo.path().join("link")).unwrap();
    symlink("dir", fixture.repo.path().join("linked-dir")).unwrap();
    fixture.repo.commit("second");
    let repository = Repository::discover(&fixture.config.git, &fixture.repo.path())
        .await
        .unwrap();
    let base = repository
        .resolve_base(&fixture.config.git, None)
        .await
        .unwrap();
    for (path, expected) in [
        ("missing", "is not in the base commit"),
        ("link", "is a link"),
        ("dir", "is a directory"),
        ("linked-dir/x", "is not in the base commit"),
        ("large", "PROMPT_FILE_BYTES"),
        ("binary", "not UTF-8"),
    ] {
        let text = PLAIN.replace("user_prompt: u", &format!("user_prompt_path: {path}"));
        let definition = crate::fixture::definition(&text);
        let error = check_prompts(&definition, &repository, base).unwrap_err();
        let shown = error.to_string();
        assert!(shown.contains(expected) && shown.contains(path), "{shown}");
        assert!(
            shown.contains("builder") && !shown.contains("outside"),
            "{shown}"
        );
    }
    let before = fixture.operator_state();
    let text = PLAIN.replace("user_prompt: u", "user_prompt_path: link");
    let fixture = fixture.defined(&text);
    let error = fixture
        .try_prepare(Mode::OwnTree, &fixture.repo.path())
        .await
        .unwrap_err();
    assert!(
        matches!(error, PrepareError::Prompt(PromptError::NotAFile { .. })),
        "{error}"
    );
    assert_untouched(&fixture, &before);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_tree_lacks_is_told() {
    let inner = Repo::with_files(&[("x", "x")]);
    let fixture = Fixture::new(&[(
        ".gitattributes",
        "*.bin filter=lfs diff=lfs merge=lfs -text\n",
    )]);
    let url = inner.path().display().to_string();
    fixture.repo.git(&[
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
        &url,
        "sub",
    ]);
    fixture.repo.commit("with a submodule");
    let attempt = fixture.attempt().await;
    let warnings = attempt.prepared.warnings.join("\n");
    assert!(
        warnings.contains("sub") && warnings.contains("LFS"),
        "{warnings}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_git_is_refused_before_anything_is_made() {
    let mut fixture = Fixture::new(&[("a", "a\n")]);
    let old = fixture.repo.scratch().join("old-git");
    std::fs::write(&old, "#!/bin/sh\necho git version 2.34.1\n").unwrap();
    std::fs::set_permissions(&old, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut config = jig_git::GitConfig::new(crate::fixture::path_env());
    config.program = old;
    fixture.config.git = jig_git::Git::new(config);
    let before = fixture.operator_state();
    let error = fixture
        .try_prepare(Mode::OwnTree, &fixture.repo.path())
        .await
        .unwrap_err();
    assert!(error.to_string().contains("2.34.1"), "{error}");
    assert_untouched(&fixture, &before);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_the_repository_names_is_run() {
    let fixture = Fixture::new(&[("a.txt", "a\n"), (".gitattributes", "* filter=x\n")]);
    let (program, mark) = (
        fixture.repo.scratch().join("recorder"),
        fixture.repo.scratch().join("was-run"),
    );
    let text = format!("#!/bin/sh\necho \"$0 $*\" >> '{}'\ncat\n", mark.display());
    std::fs::write(&program, text).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let program = program.display().to_string();
    for key in [
        "core.fsmonitor",
        "filter.x.clean",
        "filter.x.smudge",
        "core.sshCommand",
    ] {
        fixture.repo.git(&["config", key, &program]);
    }
    let hooks = fixture.repo.path().join(".git/hooks");
    std::fs::create_dir_all(&hooks).unwrap();
    for hook in ["post-checkout", "reference-transaction", "post-commit"] {
        std::fs::copy(&program, hooks.join(hook)).unwrap();
    }
    let mut attempt = fixture.attempt().await;
    let verdict = attempt.entry(crate::fixture::FREE, "echo b > a.txt").await;
    assert!(verdict.breaches.is_empty(), "{verdict:?}");
    crate::host::deliver::deliver(&fixture, &attempt)
        .await
        .unwrap();
    crate::host::dispose::forget(&fixture, &attempt.prepared).await;
    assert_eq!(std::fs::read_to_string(mark).unwrap_or_default(), "");
}
