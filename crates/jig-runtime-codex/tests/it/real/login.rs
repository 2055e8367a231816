//! What of a login the program needs, and what it leaves of it.

use std::path::PathBuf;

use jig_runtime::{AgentRuntime as _, OperatorHome, Session};
use jig_testkit::model::Step;
use jig_testkit::streams::files_with;
use serde_json::json;

use super::lab::{lab_with, request};

const KEY: &str = "sk-KEY-OF-THE-OPERATOR";

/// A key of `codex login` is copied for the send, works, and nothing of it is
/// left.
#[tokio::test]
async fn the_copy_of_a_login_works_and_goes() {
    let by_login = |config: String| {
        config.replace("env_key = \"LOOPBACK_KEY\"", "requires_openai_auth = true")
    };
    let Some(lab) = lab_with([Step::text("one"), Step::text("two")], by_login) else {
        return;
    };
    let operator = lab.stub.dir().join("operator");
    std::fs::create_dir_all(operator.join(".codex")).unwrap();
    let file = operator.join(".codex/auth.json");
    std::fs::write(&file, json!({"OPENAI_API_KEY": KEY}).to_string()).unwrap();
    let home = OperatorHome {
        home: operator,
        env: Default::default(),
    };
    let seed = lab.runtime.seed(&home).await.unwrap();
    let mut session = Session::new("s");
    for said in ["one", "two"] {
        let mut request = request(&lab);
        request.env = lab.stub.request().env;
        for (path, content) in &seed.files {
            let path = request.home.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        request.remove_at_end = seed.files.iter().map(|(path, _)| path.clone()).collect();
        let sent = lab.send_as(&mut session, request).await;
        assert_eq!(sent.answer(), said);
        let turn = lab.server.turns().pop().unwrap();
        assert!(turn.headers.contains_key("authorization"), "{turn:#?}");
        let left = files_with(&lab.stub.dir().join("home"), KEY.as_bytes());
        assert_eq!(left, Vec::<PathBuf>::new());
    }
}
