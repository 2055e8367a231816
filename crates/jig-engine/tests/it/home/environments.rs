//! Environments: exactly what was asked for, and nothing of the operator's.

use std::os::unix::fs::symlink;

use super::{command, printed};
use crate::fixture::{Fixture, PLAIN};

fn fixture() -> Fixture {
    let text = PLAIN.replace("writes:", "env: [API_KEY, HOME, GIT_DIR, MISSING], writes:");
    let mut fixture = Fixture::new(&[("a", "a\n")]).defined(&text).supervised();
    for (name, value) in [
        ("API_KEY", "asked-for"),
        ("AWS_SECRET_ACCESS_KEY", "not-asked-for"),
        ("GIT_DIR", "/evil"),
        ("LD_PRELOAD", "/evil"),
    ] {
        fixture
            .config
            .operator
            .env
            .insert(name.into(), value.into());
    }
    fixture
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_sees_its_owners_names_and_a_home_of_its_own() {
    let fixture = fixture();
    let attempt = fixture.attempt().await;
    let root = attempt.prepared.dirs.root.display().to_string();
    for (owner, has_key) in [(Some("builder"), true), (None, false)] {
        let outcome = command(&fixture, &attempt, owner, "env").await;
        let env = printed(&outcome);
        let of = |name: &str| {
            let prefix = format!("{name}=");
            env.lines().find_map(|line| line.strip_prefix(&prefix))
        };
        assert_eq!(of("API_KEY"), has_key.then_some("asked-for"), "{env}");
        assert_eq!(of("AWS_SECRET_ACCESS_KEY"), None);
        assert!(!env.contains("/evil"), "{env}");
        for name in [
            "HOME",
            "XDG_CONFIG_HOME",
            "XDG_CACHE_HOME",
            "TMPDIR",
            "JIG_HANDOFF",
        ] {
            let value = of(name).unwrap();
            assert!(
                value.starts_with(&root) && !value.contains("roles"),
                "{name}={value}"
            );
        }
        assert_eq!(
            of("JIG_BASE_SHA"),
            Some(attempt.prepared.base_sha().as_str())
        );
        assert_eq!(of("JIG_HEAD_SHA"), Some("feedface"));
        assert_eq!(of("JIG_ATTEMPT_ID"), Some("the-attempt"));
        assert_eq!(of("JIG_PHASE"), Some("check"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_sees_its_own_home_and_no_variable_of_commands() {
    let fixture = fixture();
    let attempt = fixture.attempt().await;
    let role = &fixture.definition.roster["builder"];
    let env = attempt.prepared.homes.agent_env("builder", role);
    let home = attempt.prepared.dirs.role_home("builder");
    assert_eq!(env.get("HOME").unwrap(), home.as_os_str());
    assert_eq!(env.get("API_KEY").unwrap(), "asked-for");
    let runtime = std::path::PathBuf::from(env.get("XDG_RUNTIME_DIR").unwrap());
    assert_eq!(runtime, attempt.prepared.dirs.root.join("run/0"));
    // What the name of a socket may need, `/cc-socks/4194304.sock`.
    let below_data = runtime
        .strip_prefix(&fixture.config.data_dir)
        .unwrap()
        .as_os_str()
        .len();
    assert!(below_data + 22 <= 75, "{}", runtime.display());
    for name in [
        "JIG_BASE_SHA",
        "JIG_HANDOFF",
        "GIT_DIR",
        "LD_PRELOAD",
        "AWS_SECRET_ACCESS_KEY",
    ] {
        assert_eq!(env.get(name), None, "{name}");
    }
    // Nothing of a role's HOME is where commands look.
    std::fs::write(home.join(".gitconfig"), "[alias]\nx = !false").unwrap();
    let outcome = command(
        &fixture,
        &attempt,
        Some("builder"),
        "ls -A $HOME; ls -A $TMPDIR",
    )
    .await;
    assert_eq!(printed(&outcome), ".cargo\n.npm\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_parents_environment_cannot_be_read_by_a_command() {
    let fixture = fixture();
    let attempt = fixture.attempt().await;
    let line = "cat /proc/$PPID/environ 2>/dev/null | tr '\\0' '\\n' | grep -c . || true";
    let outcome = command(&fixture, &attempt, None, line).await;
    assert_eq!(printed(&outcome).trim(), "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn caches_outlive_an_attempt_only_when_they_are_shared() {
    for (policy, shared) in [("shared", true), ("off", false)] {
        let fixture = fixture().defined(&format!("{PLAIN}\ncaches: {policy}\n"));
        let attempt = fixture.attempt().await;
        let line = "mkdir -p $HOME/.cargo/registry; echo x > $HOME/.cargo/registry/crate; \
            echo planted > $HOME/.cargo/config.toml; echo \"${GOMODCACHE-unset}\"";
        let outcome = command(&fixture, &attempt, None, line).await;
        let go = printed(&outcome).trim().to_owned();
        assert_eq!(go != "unset", shared, "{go}");
        let caches = fixture.config.data_dir.join("caches");
        assert_eq!(caches.exists(), shared);
        // A role does not see what commands downloaded.
        let role_home = attempt.prepared.dirs.role_home("builder");
        assert!(!role_home.join(".cargo/registry/crate").exists());
        crate::host::dispose::forget(&fixture, &attempt.prepared).await;
        let next = fixture.attempt().await;
        let home = next.prepared.dirs.command_home();
        assert_eq!(home.join(".cargo/registry/crate").exists(), shared);
        assert!(!home.join(".cargo/config.toml").exists());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operators_sources_are_copied_and_its_tokens_are_not() {
    let fixture = fixture();
    let cargo = fixture.config.operator.home.join(".cargo");
    std::fs::create_dir(&cargo).unwrap();
    let config =
        "[registries.ours]\nindex = \"sparse+https://ours.example/\"\ntoken = \"hunter2\"\n";
    std::fs::write(cargo.join("real.toml"), config).unwrap();
    symlink("real.toml", cargo.join("config.toml")).unwrap();
    std::fs::write(
        cargo.join("credentials.toml"),
        "[registry]\ntoken = \"hunter2\"\n",
    )
    .unwrap();
    let attempt = fixture.attempt().await;
    for home in [
        attempt.prepared.dirs.command_home(),
        attempt.prepared.dirs.role_home("builder"),
    ] {
        let copied = std::fs::read_to_string(home.join(".cargo/config.toml")).unwrap();
        assert!(
            copied.contains("ours.example") && !copied.contains("hunter2"),
            "{copied}"
        );
        assert!(!home.join(".cargo/credentials.toml").exists());
    }
}
