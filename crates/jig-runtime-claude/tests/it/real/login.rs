//! What of a login the program needs, and what it leaves of it.

use jig_protocol::outcome::FailureClass;
use jig_runtime::{AgentRuntime as _, OperatorHome, Session};
use jig_testkit::model::Step;
use jig_testkit::streams::files_with;
use serde_json::json;

use super::lab::{Lab, lab};

const TOKEN: &str = "ACCESS-TOKEN-OF-THE-OPERATOR";

/// The copy that a role gets of a login that is good until then, in the HOME of
/// the sends.
async fn seeded(lab: &Lab, until: i64) -> Vec<std::path::PathBuf> {
    let operator = tempfile::tempdir().unwrap();
    let login = json!({"claudeAiOauth": {"accessToken": TOKEN, "refreshToken": "REFRESH",
        "expiresAt": until, "scopes": ["user:inference"], "subscriptionType": "max"}});
    std::fs::create_dir(operator.path().join(".claude")).unwrap();
    let file = operator.path().join(".claude/.credentials.json");
    std::fs::write(file, login.to_string()).unwrap();
    let operator = OperatorHome {
        home: operator.path().to_owned(),
        env: Default::default(),
    };
    let seed = lab.runtime.seed(&operator).await.unwrap();
    let home = lab.stub.dir().join("home");
    for dir in &seed.dirs {
        std::fs::create_dir_all(home.join(dir)).unwrap();
    }
    for (path, content) in &seed.files {
        std::fs::write(home.join(path), content).unwrap();
    }
    seed.files.into_iter().map(|(path, _)| path).collect()
}

/// The copy without a refresh token is enough, also for one that says it has
/// expired: the vendor decides. At the end nothing of it is left.
#[tokio::test]
async fn the_copy_of_a_login_without_its_refresh_token_is_enough() {
    for until in [4_102_444_800_000, 1_000] {
        let Some(lab) = lab([Step::text("one"), Step::text("two")]) else {
            return;
        };
        let mut session = Session::new("s");
        for said in ["one", "two"] {
            let files = seeded(&lab, until).await;
            let mut request = lab.request();
            // An empty one is none.
            request.env.set("ANTHROPIC_API_KEY", "");
            request.remove_at_end = files;
            let sent = lab.send_as(&mut session, request).await;
            assert_eq!(sent.answer(), said);
            let turn = lab.server.turns().pop().unwrap();
            assert!(turn.headers.contains_key("authorization"), "{turn:#?}");
            assert!(!turn.headers.contains_key("x-api-key"), "{turn:#?}");
            let left = files_with(lab.stub.dir(), TOKEN.as_bytes());
            assert_eq!(left, Vec::<std::path::PathBuf>::new());
        }
    }
}

/// A refused login is not renewed, and ends the send with what to do.
#[tokio::test]
async fn a_login_that_is_refused_is_told() {
    let Some(lab) = lab([Step::error(401).repeated()]) else {
        return;
    };
    let files = seeded(&lab, 4_102_444_800_000).await;
    let mut request = lab.request();
    request.env.set("ANTHROPIC_API_KEY", "");
    request.remove_at_end = files;
    let sent = lab.send_as(&mut Session::new("s"), request).await;
    let (class, message, advised) = sent.failure();
    assert_eq!((class, advised), (FailureClass::Auth, true), "{message}");
    let paths: Vec<_> = lab
        .server
        .requests()
        .iter()
        .map(|it| it.path.clone())
        .collect();
    assert!(
        paths.iter().all(|path| path.starts_with("/v1/messages")),
        "{paths:?}"
    );
}

/// A key goes before a login.
#[tokio::test]
async fn a_key_goes_before_a_login() {
    let Some(lab) = lab([Step::text("one")]) else {
        return;
    };
    seeded(&lab, 4_102_444_800_000).await;
    let sent = lab.send(&mut Session::new("s")).await;
    assert_eq!(sent.answer(), "one");
    let turn = lab.server.turns().pop().unwrap();
    assert!(turn.headers.contains_key("x-api-key") && !turn.headers.contains_key("authorization"));
}
