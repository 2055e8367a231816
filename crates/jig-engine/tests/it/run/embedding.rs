//! The example that embeds the engine does what it says.

use std::process::Command;

use jig_testkit::Repo;

#[test]
fn the_example_leaves_a_branch_and_nothing_else() {
    let repo = Repo::with_files(&[("a", "1\n")]);
    let data = tempfile::tempdir().unwrap();
    let (status, refs) = (repo.status(), repo.refs());
    let output = Command::new(env!("CARGO"))
        .args(["run", "--quiet", "--locked", "--package", "jig-engine"])
        .args(["--example", "embed", "--"])
        .args([repo.path().as_path(), data.path()])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let branch = said.trim();
    assert!(branch.contains("jig/"), "{said}");
    assert_eq!(repo.git(&["show", &format!("{branch}:hello.txt")]), "hello");
    assert_eq!(repo.status(), status);
    let others: Vec<String> = repo
        .refs()
        .lines()
        .filter(|line| !line.contains("/jig/"))
        .map(str::to_owned)
        .collect();
    assert_eq!(others, refs.lines().collect::<Vec<_>>());
}
