//! The arguments and variables of one send.

use std::ffi::OsString;

use jig_protocol::definition::OutputMode;
use jig_runtime::{Invocation, Program, SendRequest, structured};

/// Variables that keep the CLI from updating itself or reporting home, and that
/// let it skip its permission prompts also as root: jig confines it, no prompt
/// could be answered.
const SWITCHES: [&str; 5] = [
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
    "DISABLE_AUTOUPDATER",
    "DISABLE_ERROR_REPORTING",
    "DISABLE_TELEMETRY",
    "IS_SANDBOX",
];

/// Where the CLI keeps everything, instead of HOME.
const CONFIG_DIR: &str = "CLAUDE_CONFIG_DIR";

/// The file in HOME that holds the system prompt during a send. A file, because
/// arguments are visible to every user and end at 128 KiB.
pub(crate) const SYSTEM_PROMPT_FILE: &str = ".jig-system-prompt";

/// The flags without which jig does not start this CLI, as its help spells them.
pub(crate) const NEEDED_FLAGS: [&str; 12] = [
    "--print",
    "--output-format",
    "--verbose",
    "--include-partial-messages",
    "--permission-mode",
    "--setting-sources",
    "--strict-mcp-config",
    "--session-id",
    "--resume",
    "--system-prompt",
    "--tools",
    "--max-budget-usd",
];

/// Which conversation a send belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Conversation<'a> {
    /// A new one, under an id of jig's choosing.
    New(&'a str),
    /// One that the CLI knows.
    Known(&'a str),
}

/// What to start. Everything but the id flag is the same for every send of a
/// conversation: the CLI does not remember it.
pub(crate) fn invocation(
    program: &std::path::Path,
    conversation: Conversation<'_>,
    request: &SendRequest,
) -> Invocation {
    let mut args = Args::default();
    args.flag("--print");
    args.pair("--output-format", "stream-json");
    args.flag("--verbose");
    // Keeps bytes coming while a long message is being written.
    args.flag("--include-partial-messages");
    args.pair("--permission-mode", "bypassPermissions");
    // Settings, hooks and servers of the tree or the user have no say.
    args.pair("--setting-sources", "");
    args.flag("--strict-mcp-config");
    match conversation {
        Conversation::New(id) => args.pair("--session-id", id),
        Conversation::Known(id) => args.pair("--resume", id),
    }
    if !request.model.is_empty() {
        args.pair("--model", &request.model);
    }
    if let Some(effort) = request.effort {
        args.pair("--effort", effort.as_str());
    }
    if let Some(budget) = request.budget_usd.filter(|budget| *budget > 0.0) {
        // Display of a float is its shortest decimal, never with an exponent.
        args.pair("--max-budget-usd", budget.to_string());
    }
    let mut private_files = Vec::new();
    if !request.system_prompt.is_empty() {
        args.pair(
            "--system-prompt-file",
            request.home.join(SYSTEM_PROMPT_FILE),
        );
        private_files.push((
            SYSTEM_PROMPT_FILE.to_owned(),
            request.system_prompt.clone().into_bytes(),
        ));
    }
    if request.output == OutputMode::Structured {
        args.pair("--json-schema", structured::envelope_schema().to_string());
    }
    // Last, because it takes any number of values.
    if let Some(tools) = &request.tools {
        args.pair("--tools", tools.join(","));
    }
    Invocation {
        program: Program::At(program.to_owned()),
        args: args.0,
        env: switches(request),
        stdin: request.prompt.clone().into_bytes(),
        keep_stdin: false,
        private_files,
    }
}

/// The switches that the request does not set itself.
fn switches(request: &SendRequest) -> Vec<(OsString, OsString)> {
    let mut switches: Vec<(OsString, OsString)> = SWITCHES
        .iter()
        .filter(|name| request.env.get(name).is_none())
        .map(|name| (OsString::from(name), OsString::from("1")))
        .collect();
    if request.env.get(CONFIG_DIR).is_some() {
        // The operator's own directory is no place for a role.
        let own = request.home.join(".claude");
        switches.push((CONFIG_DIR.into(), own.into()));
    }
    switches
}

#[derive(Default)]
struct Args(Vec<OsString>);

impl Args {
    fn flag(&mut self, name: &str) {
        self.0.push(name.into());
    }

    fn pair(&mut self, name: &str, value: impl AsRef<std::ffi::OsStr>) {
        self.0.push(name.into());
        self.0.push(value.as_ref().to_owned());
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use jig_protocol::definition::Effort;
    use jig_runtime::{Confinement, Environment};

    use super::*;

    fn request() -> SendRequest {
        SendRequest {
            role: "builder".into(),
            prompt: "do it".into(),
            system_prompt: String::new(),
            model: "sonnet".into(),
            effort: None,
            budget_usd: None,
            tools: None,
            output: OutputMode::Text,
            work_tree: PathBuf::from("/tree"),
            home: PathBuf::from("/home"),
            env: Environment::empty().with("IS_SANDBOX", "0"),
            remove_at_end: Vec::new(),
            confinement: Confinement::None,
        }
    }

    fn words(conversation: Conversation<'_>, request: &SendRequest) -> Vec<String> {
        invocation(Path::new("/bin/claude"), conversation, request)
            .args
            .into_iter()
            .map(|word| word.into_string().unwrap())
            .collect()
    }

    const HEAD: [&str; 9] = [
        "--print",
        "--output-format",
        "stream-json",
        "--verbose",
        "--include-partial-messages",
        "--permission-mode",
        "bypassPermissions",
        "--setting-sources",
        "",
    ];

    #[test]
    fn the_least_and_the_most() {
        let least = words(Conversation::New("ID"), &request());
        let mut expected = HEAD.to_vec();
        expected.extend([
            "--strict-mcp-config",
            "--session-id",
            "ID",
            "--model",
            "sonnet",
        ]);
        assert_eq!(least, expected);

        let most = SendRequest {
            effort: Some(Effort::Xhigh),
            budget_usd: Some(0.1 + 0.2),
            tools: Some(vec!["Read".into(), "Bash".into()]),
            system_prompt: "You are it.".into(),
            output: OutputMode::Structured,
            ..request()
        };
        let schema = structured::envelope_schema().to_string();
        let mut expected = HEAD.to_vec();
        expected.extend([
            "--strict-mcp-config",
            "--resume",
            "ID",
            "--model",
            "sonnet",
            "--effort",
            "xhigh",
            "--max-budget-usd",
            "0.30000000000000004",
            "--system-prompt-file",
            "/home/.jig-system-prompt",
            "--json-schema",
            &schema,
            "--tools",
            "Read,Bash",
        ]);
        assert_eq!(words(Conversation::Known("ID"), &most), expected);
    }

    /// What is always used is asked for by the probe; the rest only where a
    /// definition asks for it, or under a name that the help page abbreviates.
    #[test]
    fn every_option_is_asked_for_by_the_probe_or_optional() {
        let most = SendRequest {
            effort: Some(Effort::Max),
            budget_usd: Some(1.0),
            tools: Some(vec![]),
            system_prompt: "s".into(),
            output: OutputMode::Structured,
            ..request()
        };
        let mut used: Vec<String> = [Conversation::New("i"), Conversation::Known("i")]
            .into_iter()
            .flat_map(|conversation| words(conversation, &most))
            .filter(|word| word.starts_with("--"))
            .collect();
        used.sort();
        used.dedup();
        let optional = [
            "--effort",
            "--json-schema",
            "--model",
            "--system-prompt-file",
        ];
        let mut known: Vec<&str> = NEEDED_FLAGS.into_iter().chain(optional).collect();
        // Listed as `--system-prompt[-file]`.
        known.retain(|flag| *flag != "--system-prompt");
        known.sort_unstable();
        assert_eq!(used, known);
    }

    #[test]
    fn budgets_are_shortest_decimals() {
        for (budget, expected) in [
            (0.5, "0.5"),
            (2.0, "2"),
            (1e-7, "0.0000001"),
            (1e21, "1000000000000000000000"),
        ] {
            let args = words(
                Conversation::New("i"),
                &SendRequest {
                    budget_usd: Some(budget),
                    ..request()
                },
            );
            assert_eq!(args.last().unwrap(), expected);
        }
        let none = words(
            Conversation::New("i"),
            &SendRequest {
                budget_usd: Some(0.0),
                ..request()
            },
        );
        assert!(!none.iter().any(|word| word == "--max-budget-usd"));
    }

    #[test]
    fn an_empty_allowlist_is_no_tools_and_no_allowlist_is_no_flag() {
        let none = words(
            Conversation::New("i"),
            &SendRequest {
                tools: Some(vec![]),
                ..request()
            },
        );
        assert_eq!(none[none.len() - 2..], ["--tools", ""]);
        assert!(
            !words(Conversation::New("i"), &request())
                .iter()
                .any(|word| word == "--tools")
        );
    }

    #[test]
    fn prompts_are_never_arguments_and_switches_never_override() {
        let request = SendRequest {
            system_prompt: "SYSTEM".into(),
            prompt: "USER".into(),
            ..request()
        };
        let made = invocation(Path::new("/bin/claude"), Conversation::New("i"), &request);
        assert!(
            !made
                .args
                .iter()
                .any(|word| word == "SYSTEM" || word == "USER")
        );
        assert_eq!(made.stdin, b"USER");
        assert_eq!(
            made.private_files,
            [(SYSTEM_PROMPT_FILE.to_owned(), b"SYSTEM".to_vec())]
        );
        let names: Vec<_> = made
            .env
            .iter()
            .map(|(name, _)| name.to_str().unwrap())
            .collect();
        assert_eq!(names, SWITCHES[..4]);
    }

    #[test]
    fn a_role_never_works_in_the_operators_own_directory() {
        let request = SendRequest {
            env: Environment::empty().with(CONFIG_DIR, "/operators/own"),
            ..request()
        };
        let made = invocation(Path::new("/bin/claude"), Conversation::New("i"), &request);
        let own = (CONFIG_DIR.into(), OsString::from("/home/.claude"));
        assert_eq!(made.env.last(), Some(&own));
    }
}
