//! Logins: there while a send runs, and nowhere else.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use jig_protocol::definition::RuntimeName;
use jig_protocol::outcome::FailureClass;
use jig_runtime::{
    AgentRuntime, BoxFuture, Capabilities, OperatorHome, ProbeError, Seed, SeedError, SendControl,
    SendEnd, SendReport, SendRequest, Session,
};

use crate::fixture::Fixture;

/// A runtime with a login and nothing else.
#[derive(Debug, Default)]
struct WithLogin {
    reads: AtomicUsize,
    logged_out: bool,
}

impl AgentRuntime for WithLogin {
    fn name(&self) -> RuntimeName {
        RuntimeName::new("with-login")
    }

    fn probe(&self) -> BoxFuture<'_, Result<Capabilities, ProbeError>> {
        Box::pin(async {
            Err(ProbeError::NotFound {
                program: "with-login".into(),
            })
        })
    }

    fn seed<'a>(&'a self, _: &'a OperatorHome) -> BoxFuture<'a, Result<Seed, SeedError>> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        Box::pin(async {
            if self.logged_out {
                return Err(SeedError {
                    class: FailureClass::Auth,
                    message: "not logged in".into(),
                    hint: "log in".into(),
                });
            }
            Ok(Seed {
                files: vec![
                    (PathBuf::from(".agent/token"), b"s3cret".to_vec()),
                    (PathBuf::from(".agent.json"), b"{}".to_vec()),
                ],
                dirs: vec![PathBuf::from(".agent/sessions")],
                expires_at: None,
            })
        })
    }

    fn send<'a>(
        &'a self,
        _: &'a mut Session,
        _: SendRequest,
        _: SendControl,
    ) -> BoxFuture<'a, SendReport> {
        Box::pin(async {
            SendReport {
                end: SendEnd::NotStarted {
                    class: FailureClass::Other,
                    message: "it cannot".into(),
                },
                usage: None,
                leftovers: Vec::new(),
                survivors: Vec::new(),
                not_removed: Vec::new(),
            }
        })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_is_read_once_written_privately_and_removed() {
    let fixture = Fixture::new(&[("a", "a\n")]);
    let mut attempt = fixture.attempt().await;
    let runtime = WithLogin::default();
    let home = attempt.prepared.dirs.role_home("builder");
    for _ in 0..2 {
        attempt
            .prepared
            .homes
            .seed("builder", &runtime)
            .await
            .unwrap();
    }
    assert_eq!(runtime.reads.load(Ordering::SeqCst), 1);
    assert!(!home.join(".agent/token").exists(), "not before a send");
    let written = attempt.prepared.homes.write_seed("builder").unwrap();
    assert_eq!(
        written,
        [home.join(".agent/token"), home.join(".agent.json")]
    );
    for file in &written {
        let mode = std::fs::metadata(file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", file.display());
    }
    assert!(home.join(".agent/sessions").is_dir());
    attempt.prepared.homes.remove_seed("builder").unwrap();
    assert!(written.iter().all(|file| !file.exists()));
    assert!(
        home.join(".agent/sessions").is_dir(),
        "the session's directory stays"
    );
    // Nobody else's HOME ever held it.
    assert!(!attempt.prepared.dirs.command_home().join(".agent").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_planted_link_is_replaced_and_never_followed() {
    let fixture = Fixture::new(&[("a", "a\n")]);
    let mut attempt = fixture.attempt().await;
    attempt
        .prepared
        .homes
        .seed("builder", &WithLogin::default())
        .await
        .unwrap();
    let home = attempt.prepared.dirs.role_home("builder");
    // A directory where the login goes is put aside, however deep it is.
    std::fs::create_dir_all(home.join(".agent.json/below/it")).unwrap();
    attempt.prepared.homes.write_seed("builder").unwrap();
    assert!(home.join(".agent.json").is_file());
    attempt.prepared.homes.remove_seed("builder").unwrap();
    // One that the agent put there since is no login.
    std::fs::create_dir_all(home.join(".agent.json/below")).unwrap();
    attempt.prepared.homes.remove_seed("builder").unwrap();
    std::fs::remove_dir_all(home.join(".agent.json")).unwrap();
    std::fs::remove_dir_all(home.join(".agent")).unwrap();
    let elsewhere = fixture.repo.scratch().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    std::fs::write(elsewhere.join("token"), "theirs").unwrap();
    symlink(&elsewhere, home.join(".agent")).unwrap();
    symlink(elsewhere.join("token"), home.join(".agent.json")).unwrap();
    let written = attempt.prepared.homes.write_seed("builder").unwrap();
    assert_eq!(std::fs::read_to_string(&written[0]).unwrap(), "s3cret");
    assert_eq!(
        std::fs::read_to_string(elsewhere.join("token")).unwrap(),
        "theirs"
    );
    assert_eq!(std::fs::read_dir(&elsewhere).unwrap().count(), 1);
    // A link planted during the send does not lead the removal astray either.
    std::fs::remove_dir_all(home.join(".agent")).unwrap();
    symlink(&elsewhere, home.join(".agent")).unwrap();
    attempt.prepared.homes.remove_seed("builder").unwrap();
    assert_eq!(
        std::fs::read_to_string(elsewhere.join("token")).unwrap(),
        "theirs"
    );
    assert!(!home.join(".agent.json").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn no_login_is_an_error_with_a_hint_and_writes_nothing() {
    let fixture = Fixture::new(&[("a", "a\n")]);
    let mut attempt = fixture.attempt().await;
    let runtime = WithLogin {
        logged_out: true,
        ..WithLogin::default()
    };
    let error = attempt
        .prepared
        .homes
        .seed("builder", &runtime)
        .await
        .unwrap_err();
    let jig_engine::home::HomeError::Login(login) = error else {
        panic!("{error}")
    };
    assert_eq!(
        (login.class, login.hint.as_str()),
        (FailureClass::Auth, "log in")
    );
    assert!(
        attempt
            .prepared
            .homes
            .write_seed("builder")
            .unwrap()
            .is_empty()
    );
}
