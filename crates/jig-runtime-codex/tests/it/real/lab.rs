//! The place in which the sends are made.

use jig_runtime::SendRequest;
use jig_runtime_codex::{CodexConfig, CodexRuntime, Operator};
use jig_testkit::model::{ModelServer, Script, Step};

pub(super) type Lab = jig_testkit::lab::Lab<CodexRuntime>;

/// `None`, after a line that says so, where the program is not installed.
pub(super) fn lab(steps: impl IntoIterator<Item = Step>) -> Option<Lab> {
    lab_with(steps, |config| config)
}

/// The same with another configuration of the operator's.
pub(super) fn lab_with(
    steps: impl IntoIterator<Item = Step>,
    edit: impl FnOnce(String) -> String,
) -> Option<Lab> {
    let program = jig_testkit::real::codex()?;
    let server = ModelServer::start(Script::new().openai(steps));
    let env = server.codex_env();
    Some(Lab::new(server, env, |stub, server| {
        CodexRuntime::new(CodexConfig {
            program,
            asker: stub.asker(),
            operator: Operator::parse(&edit(server.codex_config())).unwrap(),
        })
    }))
}

pub(super) fn request(lab: &Lab) -> SendRequest {
    SendRequest {
        model: "gpt-5.5".into(),
        ..lab.request()
    }
}
