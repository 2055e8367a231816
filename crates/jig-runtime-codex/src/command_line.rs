//! The command line and the private files of one send.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use jig_protocol::definition::{Effort, OutputMode};
use jig_runtime::{Invocation, Program, SendRequest, structured};

use crate::operator::Operator;
use crate::settings;

/// The CLI's own directory below a role's HOME.
pub(crate) const HOME: &str = ".codex";

/// Its configuration, which jig writes anew for every send.
pub(crate) const CONFIG: &str = ".codex/config.toml";

/// Texts that the CLI would put before every prompt. Nobody but the definition
/// says what a role is told, so they are empty.
const INSTRUCTIONS: [&str; 2] = [".codex/AGENTS.md", ".codex/AGENTS.override.md"];

/// What the answer has to look like.
const SCHEMA: &str = ".codex/jig-answer.json";

/// Options of both shapes that every send uses.
pub(crate) const NEEDED_FLAGS: [&str; 3] = [
    "--json",
    "--skip-git-repo-check",
    "--dangerously-bypass-approvals-and-sandbox",
];

/// What is started for a thread's first send (`None`) or to continue one.
pub(crate) fn invocation(
    program: &Path,
    thread: Option<&str>,
    request: &SendRequest,
    operator: &Operator,
) -> Invocation {
    let mut args: Vec<OsString> = Vec::new();
    let mut private_files = vec![(
        CONFIG.to_owned(),
        settings::config(&request.system_prompt, operator).into_bytes(),
    )];
    private_files.extend(INSTRUCTIONS.map(|name| (name.to_owned(), Vec::new())));
    if let Some(effort) = request.effort {
        let setting = format!("model_reasoning_effort=\"{}\"", level(effort));
        args.extend(["-c".into(), setting.into()]);
    }
    args.push("exec".into());
    if thread.is_some() {
        args.push("resume".into());
    }
    args.extend(NEEDED_FLAGS.map(OsString::from));
    if thread.is_none() {
        // Continuing one does not know the option.
        args.extend(["--color".into(), "never".into()]);
    }
    if !request.model.is_empty() {
        args.extend(["--model".into(), OsString::from(&request.model)]);
    }
    if request.output == OutputMode::Structured {
        let schema = structured::strict_envelope_schema().to_string();
        private_files.push((SCHEMA.to_owned(), schema.into_bytes()));
        args.extend(["--output-schema".into(), request.home.join(SCHEMA).into()]);
    }
    args.extend(thread.map(OsString::from));
    // The prompt comes on stdin.
    args.push("-".into());
    Invocation {
        program: Program::At(program.to_owned()),
        args,
        // Also over a variable of the operator's, whose directory it would name.
        env: vec![("CODEX_HOME".into(), request.home.join(HOME).into())],
        stdin: request.prompt.clone().into_bytes(),
        keep_stdin: false,
        private_files,
    }
}

/// The CLI's word for an effort. It has none above `xhigh`.
const fn level(effort: Effort) -> &'static str {
    match effort {
        Effort::Max => Effort::Xhigh.as_str(),
        other => other.as_str(),
    }
}

/// A login's file below a role's HOME.
pub(crate) fn login_file() -> PathBuf {
    Path::new(HOME).join("auth.json")
}

#[cfg(test)]
mod tests {
    use jig_runtime::{Confinement, Environment};

    use super::*;

    const THREAD: &str = "01a22e49-6317-7481-ad91-f4f22aeff366";

    fn request() -> SendRequest {
        SendRequest {
            role: "builder".into(),
            prompt: "USER".into(),
            system_prompt: String::new(),
            model: String::new(),
            effort: None,
            budget_usd: None,
            tools: None,
            output: OutputMode::Text,
            work_tree: PathBuf::from("/tree"),
            home: PathBuf::from("/home"),
            env: Environment::empty().with("CODEX_HOME", "/operators/own"),
            remove_at_end: Vec::new(),
            confinement: Confinement::None,
        }
    }

    fn full() -> SendRequest {
        SendRequest {
            system_prompt: "SYSTEM".into(),
            model: "gpt-5.5".into(),
            effort: Some(Effort::High),
            output: OutputMode::Structured,
            ..request()
        }
    }

    fn made(thread: Option<&str>, request: &SendRequest) -> Invocation {
        invocation(
            Path::new("/bin/codex"),
            thread,
            request,
            &Operator::default(),
        )
    }

    fn words(thread: Option<&str>, request: &SendRequest) -> Vec<String> {
        let args = made(thread, request).args;
        args.into_iter()
            .map(|word| word.into_string().unwrap())
            .collect()
    }

    #[test]
    fn the_least_and_the_most_of_a_first_send() {
        let least = [
            "exec",
            "--json",
            "--skip-git-repo-check",
            "--dangerously-bypass-approvals-and-sandbox",
            "--color",
            "never",
            "-",
        ];
        assert_eq!(words(None, &request()), least);
        let most = [
            "-c",
            "model_reasoning_effort=\"high\"",
            "exec",
            "--json",
            "--skip-git-repo-check",
            "--dangerously-bypass-approvals-and-sandbox",
            "--color",
            "never",
            "--model",
            "gpt-5.5",
            "--output-schema",
            "/home/.codex/jig-answer.json",
            "-",
        ];
        assert_eq!(words(None, &full()), most);
    }

    #[test]
    fn the_least_and_the_most_of_a_later_send() {
        let least = [
            "exec",
            "resume",
            "--json",
            "--skip-git-repo-check",
            "--dangerously-bypass-approvals-and-sandbox",
            THREAD,
            "-",
        ];
        assert_eq!(words(Some(THREAD), &request()), least);
        let most = [
            "-c",
            "model_reasoning_effort=\"high\"",
            "exec",
            "resume",
            "--json",
            "--skip-git-repo-check",
            "--dangerously-bypass-approvals-and-sandbox",
            "--model",
            "gpt-5.5",
            "--output-schema",
            "/home/.codex/jig-answer.json",
            THREAD,
            "-",
        ];
        assert_eq!(words(Some(THREAD), &full()), most);
    }

    #[test]
    fn every_effort_has_a_word_of_the_clis() {
        for (effort, word) in [
            (Effort::Low, "low"),
            (Effort::Medium, "medium"),
            (Effort::High, "high"),
            (Effort::Xhigh, "xhigh"),
            (Effort::Max, "xhigh"),
        ] {
            assert_eq!(level(effort), word);
        }
    }

    #[test]
    fn prompts_are_no_arguments_and_the_directory_is_the_roles_own() {
        let made = made(None, &full());
        assert_eq!(made.stdin, b"USER");
        assert!(!made.keep_stdin);
        assert_eq!(
            made.env,
            [("CODEX_HOME".into(), OsString::from("/home/.codex"))]
        );
        let names: Vec<_> = made.private_files.iter().map(|(name, _)| name).collect();
        assert_eq!(
            names,
            [
                ".codex/config.toml",
                ".codex/AGENTS.md",
                ".codex/AGENTS.override.md",
                ".codex/jig-answer.json"
            ]
        );
        assert!(made.private_files[1].1.is_empty() && made.private_files[2].1.is_empty());
        let schema: serde_json::Value = serde_json::from_slice(&made.private_files[3].1).unwrap();
        assert_eq!(schema, structured::strict_envelope_schema());
    }
}
