//! The risk classifier of the factory, one change per row, under every awk of
//! this machine.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::shell::{Place, command_of, printed, which};

/// The awks of this machine, each as what `awk` is linked to.
fn awks(place: &Place) -> Vec<PathBuf> {
    let mut found: Vec<_> = ["awk", "mawk", "gawk", "original-awk"]
        .into_iter()
        .filter_map(which)
        .collect();
    if let Some(busybox) = which("busybox") {
        let wrapper = place.handoff().join("busybox-awk");
        place.script(
            &wrapper,
            &format!("#!/bin/sh\nexec {} awk \"$@\"\n", busybox.display()),
        );
        found.push(wrapper);
    }
    assert!(!found.is_empty(), "the classifier needs awk");
    found
}

/// Scores what `change` does to what `base` made; every awk must agree.
fn score(base: impl FnOnce(&Place), change: impl FnOnce(&Place)) -> Value {
    let place = Place::repository();
    base(&place);
    let from = place.commit("before");
    change(&place);
    let to = place.commit("after");
    // Never HEAD: it is somewhere else by now.
    place.write("decoy/auth.rs", "x");
    place.commit("decoy");
    let mut answers: Vec<(PathBuf, Value)> = awks(&place)
        .into_iter()
        .map(|awk| {
            let report = report(&place, &awk, (&from, &to));
            (awk, report)
        })
        .collect();
    let (first, report) = answers.swap_remove(0);
    for (other, answer) in answers {
        assert_eq!(
            answer,
            report,
            "{} and {}",
            other.display(),
            first.display()
        );
    }
    report
}

/// What the classifier reports of the change between two commits.
fn report(place: &Place, awk: &Path, (from, to): (&str, &str)) -> Value {
    place.link("awk", awk);
    let env = [("JIG_BASE_SHA", from), ("JIG_HEAD_SHA", to)];
    let output = place.shell(&command_of("factory", "classify-risk"), &env);
    assert!(
        output.status.success(),
        "{}: {}",
        awk.display(),
        printed(&output)
    );
    assert!(
        output.stderr.is_empty(),
        "{}: {}",
        awk.display(),
        printed(&output)
    );
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2, "an explanation and a report: {text}");
    assert!(lines[1].len() < 32 * 1024);
    serde_json::from_str(lines[1])
        .unwrap_or_else(|error| panic!("{}: {error}: {}", awk.display(), lines[1]))
}

/// Adds each path in a commit of its own; what each commit is reported as, and
/// all of them together under every awk.
fn each(paths: &[&str]) -> (Vec<Value>, Value) {
    let place = Place::repository();
    let awk = which("awk").unwrap();
    let base = place.git(&["rev-parse", "HEAD"]);
    let mut before = base.clone();
    let mut reports = Vec::new();
    for path in paths {
        place.write(path, "one\n");
        let after = place.commit(path);
        reports.push(report(&place, &awk, (&before, &after)));
        before = after;
    }
    let all = awks(&place)
        .into_iter()
        .map(|awk| report(&place, &awk, (&base, &before)))
        .reduce(|one, other| {
            assert_eq!(one, other);
            one
        });
    (reports, all.unwrap())
}

fn nothing(_: &Place) {}

/// The risk of adding one file of one line.
fn adding(path: impl AsRef<Path>) -> Value {
    score(nothing, |place| place.write(path, "one\n"))
}

fn lines(count: usize) -> String {
    (0..count).map(|n| format!("line {n}\n")).collect()
}

#[test]
fn ordinary_changes_are_low() {
    let paths = [
        "src/lib.rs",
        "README.md",
        "a b/c d.txt",
        "src/author.rs",
        "src/authors/list.go",
        "src/monkey.js",
        "docs/catalog_index.md",
        "src/tests_helper.rs",
        "src/latest.go",
        "tests/adding.rs",
        "pkg/x_test.go",
        "src/x.spec.ts",
        "test_x.py",
        "src/encode.rs",
        "locket.txt",
        "src/lock.rs",
        "makefile.md",
        "src/build.rs.txt",
    ];
    let (reports, all) = each(&paths);
    for (path, report) in paths.iter().zip(reports) {
        assert_eq!(report["risk"], "low", "{path}: {report}");
        assert_eq!(report["changed_lines"], 1, "{path}");
        assert_eq!(report["risky_paths"], json!([]), "{path}");
    }
    assert_eq!(
        (&all["risk"], &all["changed_lines"]),
        (&json!("low"), &json!(paths.len()))
    );
}

#[test]
fn sensitive_paths_are_high_in_any_case_and_form() {
    let paths = [
        // As ever.
        "auth/x.go",
        "src/login.rs",
        "pkg/session_store.go",
        "token.py",
        "db/migrations/1.sql",
        "schema.graphql",
        "deploy/prod.yaml",
        "infra/main",
        "terraform/a",
        "helm/values.yaml",
        "k8s/pod.yaml",
        ".github/workflows/ci.yml",
        "Dockerfile",
        "Dockerfile.dev",
        "go.mod",
        "package.json",
        "package-lock.json",
        // Case, plurals, longer words, words inside of names.
        "src/AUTH.md",
        "Auth/x",
        "src/userAuth.ts",
        "src/HTTPAuth.java",
        "src/OAuthClient.kt",
        "tokens.go",
        "src/secrets/x",
        "src/authentication.rs",
        "src/authorization.rb",
        "src/authorise.py",
        "src/passwords.txt",
        "src/passwd.c",
        "src/encryption.go",
        "src/cryptography.rs",
        "user_sessions.rb",
        "src/refresh-token.ts",
        "credentials.ini",
        "db/Schemas/x",
        "deployment.yaml",
        "Infrastructure/x",
        "main.tf",
        "prod.tfvars",
        // Manifests and lock files of every kind.
        "Cargo.toml",
        "Cargo.lock",
        "crates/a/Cargo.toml",
        "pyproject.toml",
        "requirements.txt",
        "requirements-dev.txt",
        "setup.py",
        "setup.cfg",
        "Pipfile",
        "Pipfile.lock",
        "poetry.lock",
        "uv.lock",
        "Gemfile",
        "Gemfile.lock",
        "x.gemspec",
        "yarn.lock",
        "pnpm-lock.yaml",
        "bun.lockb",
        "composer.json",
        "composer.lock",
        "go.sum",
        "flake.lock",
        "pom.xml",
        "build.gradle.kts",
        "mix.exs",
        // What decides whether checks pass.
        ".golangci.yml",
        ".eslintrc",
        ".prettierrc.json",
        ".stylelintrc",
        ".flake8",
        ".pylintrc",
        ".rubocop.yml",
        "jest.config.js",
        "vitest.config.ts",
        "karma.config.js",
        "playwright.config.ts",
        "eslint.config.mjs",
        "pytest.ini",
        "tox.ini",
        ".pre-commit-config.yaml",
        "ruff.toml",
        "clippy.toml",
        ".clippy.toml",
        "rustfmt.toml",
        ".cargo/config.toml",
        "rust-toolchain.toml",
        "build.rs",
        "Makefile",
        "justfile",
        "script/test",
        "test.sh",
        ".gitlab-ci.yml",
        ".circleci/config.yml",
        "Jenkinsfile",
        "compose.yaml",
        ".gitattributes",
        ".gitmodules.bak",
    ];
    let (reports, all) = each(&paths);
    for (path, report) in paths.iter().zip(reports) {
        assert_eq!(report["risk"], "high", "{path}: {report}");
        assert_eq!(report["risky_paths"], json!([path]), "{path}");
        assert_eq!(
            report["risk_reason"], "1 sensitive path(s) changed",
            "{path}"
        );
    }
    assert_eq!(all["risky_paths_total"], paths.len());
}

#[test]
fn tests_that_shrink_are_high_and_tests_that_grow_are_not() {
    let place = Place::repository();
    let awk = which("awk").unwrap();
    let change = |make: &dyn Fn(&Place)| {
        make(&place);
        place.commit("change")
    };
    for path in [
        "a_test.go",
        "a_test.py",
        "test_a.py",
        "conftest.py",
        "a_spec.rb",
        "a_test.rb",
        "src/a.test.ts",
        "src/a.spec.mjs",
        "src/a.test.tsx",
        "tests/a.rs",
        "crates/x/tests/a.rs",
        "src/a_test.rs",
        "src/tests.rs",
        "src/a/test.rs",
        "benches/a.rs",
        "spec/a",
        "__tests__/a.js",
        "Tests/A.cs",
        "src/a_tests.rs",
    ] {
        let commits = [
            change(&|place| place.write(path, lines(3))),
            change(&|place| place.write(path, lines(4))),
            change(&|place| place.write(path, lines(2))),
            change(&|place| fs::remove_file(place.tree().join(path)).unwrap()),
        ];
        let risks: Vec<Value> = commits
            .windows(2)
            .map(|pair| report(&place, &awk, (&pair[0], &pair[1])))
            .collect();
        assert_eq!(risks[0]["risk"], "low", "{path} grown: {}", risks[0]);
        for shrunk in &risks[1..] {
            assert_eq!(shrunk["risk"], "high", "{path} shrunk or deleted: {shrunk}");
            assert_eq!(shrunk["risky_paths"], json!([path]));
        }
    }
}

#[test]
fn a_renamed_away_test_is_a_deleted_test() {
    let report = score(
        |place| place.write("tests/a.rs", lines(30)),
        |place| {
            fs::rename(
                place.tree().join("tests/a.rs"),
                place.tree().join("old.txt"),
            )
            .unwrap();
        },
    );
    assert_eq!(report["risk"], "high", "{report}");
    assert_eq!(report["changed_lines"], 60);
}

#[test]
fn tests_inside_of_rust_sources_count() {
    let source = |tests: &[&str]| -> String {
        let tests: String = tests
            .iter()
            .enumerate()
            .map(|(n, attribute)| format!("    #[{attribute}]\n    fn t{n}() {{}}\n"))
            .collect();
        format!("fn f() {{}}\n#[cfg(test)]\nmod tests {{\n{tests}}}\n")
    };
    let change = |before: &[&str], after: &[&str]| {
        let (before, after) = (source(before), source(after));
        let report = score(
            |place| place.write("src/lib.rs", before),
            // More lines than before: only the attributes tell.
            |place| place.write("src/lib.rs", after + &lines(20)),
        );
        report["risk"].as_str().unwrap().to_owned()
    };
    assert_eq!(change(&["test", "test"], &["test"]), "high");
    assert_eq!(change(&["test"], &["ignore"]), "high");
    assert_eq!(change(&["tokio::test"], &[]), "high");
    assert_eq!(change(&["rstest"], &[]), "high");
    assert_eq!(change(&["test"], &["test", "test"]), "low");
    assert_eq!(change(&["test"], &["tokio::test"]), "low");
}

#[test]
fn size_counts_added_and_deleted_lines_binary_files_too() {
    let size = |before: &str, after: &str| {
        let report = score(
            |place| place.write("a.txt", before),
            |place| place.write("a.txt", after),
        );
        (report["risk"].clone(), report["changed_lines"].clone())
    };
    assert_eq!(size("", &lines(400)), (json!("low"), json!(400)));
    assert_eq!(size("", &lines(401)), (json!("high"), json!(401)));
    let other = lines(201).replace("line", "LINE");
    assert_eq!(size(&lines(200), &other), (json!("high"), json!(401)));
    let report = score(nothing, |place| {
        let mut bytes = b"\0\x01\xff".to_vec();
        bytes.extend("\n\0".repeat(500).bytes());
        place.write("image.bin", bytes);
    });
    assert_eq!(report["risk"], "high", "{report}");
    let hidden = score(
        |place| place.write("src/.gitattributes.txt", "x"),
        |place| {
            place.write("a.dat", lines(500));
            place.write(".git/info/attributes", "*.dat binary\n");
        },
    );
    assert_eq!(
        hidden["risk"], "high",
        "an attribute hides nothing: {hidden}"
    );
}

#[test]
fn modes_links_and_submodules_are_high() {
    let mode = score(
        |place| place.write("run", "x\n"),
        |place| {
            let path = place.tree().join("run");
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        },
    );
    assert_eq!(
        (&mode["risk"], &mode["changed_lines"]),
        (&json!("high"), &json!(0))
    );
    let link = score(nothing, |place| {
        symlink("/etc/passwd", place.tree().join("x")).unwrap()
    });
    assert_eq!(link["risk"], "high", "{link}");
    let module = score(nothing, |place| {
        let id = place.git(&["rev-parse", "HEAD"]);
        place.git(&[
            "update-index",
            "--add",
            "--cacheinfo",
            &format!("160000,{id},sub"),
        ]);
        fs::create_dir(place.tree().join("sub")).unwrap();
        place.git(&["init", "--quiet", "sub"]);
        place.git(&[
            "-C",
            "sub",
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@t",
            "commit",
            "-q",
            "--allow-empty",
            "-m",
            "x",
        ]);
    });
    assert_eq!(module["risk"], "high", "{module}");
    assert_eq!(module["risky_paths"], json!(["sub"]));
}

/// Names of any bytes: each is found sensitive, and reported as jig writes
/// paths in JSON.
#[test]
fn any_name_is_judged_and_reported_exactly() {
    for (name, shown) in [
        (&b"token with spaces"[..], "token with spaces"),
        (b"token\"quote", "token\"quote"),
        (b"\"token", "\"\\\"token\""),
        (b"token\\back", "token\\back"),
        (b"token\nline", "\"token\\nline\""),
        (b"token\ttab", "\"token\\ttab\""),
        (b"token\x01\x7f", "\"token\\001\\177\""),
        (b"token\xff\xfe", "\"token\\377\\376\""),
        ("token-é-漢-🦀".as_bytes(), "token-é-漢-🦀"),
        ("token\u{85}".as_bytes(), "\"token\\302\\205\""),
        (b"token\xed\xa0\x80", "\"token\\355\\240\\200\""),
        (b"token\xc0\xaf", "\"token\\300\\257\""),
        (b"token\xe2\x82", "\"token\\342\\202\""),
        (b"--token", "--token"),
        (b"token'; exit 1 #$(x)`y`", "token'; exit 1 #$(x)`y`"),
        (b":token", ":token"),
        ("é/token".as_bytes(), "é/token"),
    ] {
        let report = adding(OsStr::from_bytes(name));
        assert_eq!(report["risk"], "high", "{shown}: {report}");
        assert_eq!(report["risky_paths"], json!([shown]), "{report}");
        // What jig itself writes for the same name.
        let path = jig_protocol::repo_path::RepoPath::from_bytes(name);
        assert_eq!(path.to_string(), shown);
    }
    // An ordinary name of odd bytes is ordinary.
    assert_eq!(adding(OsStr::from_bytes(b"x y\n\xff"))["risk"], "low");
}

#[test]
fn a_flood_of_paths_stays_a_report() {
    let report = score(nothing, |place| {
        for n in 0..60 {
            let long = format!("auth/{}\n{n}", "\u{1}".repeat(200));
            place.write(long, "x\n");
        }
    });
    assert_eq!(report["risky_paths_total"], 60);
    let shown = report["risky_paths"].as_array().unwrap().len();
    assert!((10..=20).contains(&shown), "{shown} paths are named");
}

#[test]
fn several_reasons_are_all_given() {
    let report = score(
        |place| place.write("tests/a.rs", "#[test]\nfn t() {}\n"),
        |place| {
            place.write("tests/a.rs", "");
            place.write("src/auth.rs", lines(500));
        },
    );
    assert_eq!(
        report["risk_reason"],
        "1 Rust file(s) lost tests; 1 test file(s) lost more lines than they gained; \
         1 sensitive path(s) changed; 502 changed lines are more than 400"
    );
}

#[test]
fn nothing_changed_is_low() {
    let report = score(nothing, nothing);
    assert_eq!(
        (&report["risk"], &report["changed_lines"]),
        (&json!("low"), &json!(0))
    );
}

/// No score is better than a wrong one: the phase fails.
#[test]
fn it_fails_closed() {
    let place = Place::repository();
    place.link("awk", &which("awk").unwrap());
    let command = command_of("factory", "classify-risk");
    let head = place.git(&["rev-parse", "HEAD"]);
    let absent = "0123456789012345678901234567890123456789";
    for env in [
        &[][..],
        &[("JIG_BASE_SHA", head.as_str())],
        &[("JIG_HEAD_SHA", head.as_str())],
        &[("JIG_BASE_SHA", ""), ("JIG_HEAD_SHA", head.as_str())],
        &[("JIG_BASE_SHA", absent), ("JIG_HEAD_SHA", head.as_str())],
        &[("JIG_BASE_SHA", head.as_str()), ("JIG_HEAD_SHA", absent)],
    ] {
        let output = place.shell(&command, env);
        assert!(!output.status.success(), "{env:?}");
        assert!(!printed(&output).contains("\"risk\""), "{env:?}");
    }
    let twice = [
        ("JIG_BASE_SHA", head.as_str()),
        ("JIG_HEAD_SHA", head.as_str()),
    ];
    assert!(place.shell(&command, &twice).status.success());
}
