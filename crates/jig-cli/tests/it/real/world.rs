//! A place of its own for runs with genuine agent programs: PATH, HOME, TMPDIR,
//! repository, data directory, and the loopback model they talk to.

use std::collections::BTreeSet;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Child;

use jig_testkit::model::{KEY, ModelServer, Script, Step, Usage, Vendor};
use serde_json::json;

use crate::env::{Done, finish};
use crate::support::Untouched;
use crate::trial::Trial;

/// A genuine agent program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Agent {
    Claude,
    Codex,
}

impl Agent {
    /// Where it is installed, or `None` after a line that says so.
    fn program(self) -> Option<PathBuf> {
        match self {
            Self::Claude => jig_testkit::real::claude(),
            Self::Codex => jig_testkit::real::codex(),
        }
    }

    fn command(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
        }
    }

    /// What definitions and `--runtime` call it.
    pub(super) fn runtime(self) -> &'static str {
        match self {
            Self::Claude => "claude-code",
            Self::Codex => "codex",
        }
    }

    /// The model it asks for.
    pub(super) fn model(self) -> &'static str {
        match self {
            Self::Claude => "haiku",
            Self::Codex => "gpt-5.5",
        }
    }

    /// The names that a role of its lists in `env`, the key last.
    pub(super) fn variables(self) -> &'static [&'static str] {
        match self {
            Self::Claude => &[
                "ANTHROPIC_BASE_URL",
                "CLAUDE_CODE_MAX_RETRIES",
                "ANTHROPIC_API_KEY",
            ],
            Self::Codex => &["LOOPBACK_KEY"],
        }
    }

    /// The lines of a role that let it see its variables, and nobody else the
    /// key.
    pub(super) fn role_env(self) -> String {
        let names = self.variables();
        let key = names.last().unwrap();
        format!(
            "env: [PATH, {}]\n    sensitive_env: [{key}]",
            names.join(", ")
        )
    }

    /// What its model does, turn by turn.
    pub(super) fn plays(self, script: Script, steps: impl IntoIterator<Item = Step>) -> Script {
        match self {
            Self::Claude => script.anthropic(steps),
            Self::Codex => script.openai(steps),
        }
    }

    /// The model has the agent run a shell command.
    pub(super) fn runs(self, command: &str) -> Step {
        match self {
            Self::Claude => Step::tool("Bash", json!({"command": command})),
            Self::Codex => Step::tool("exec_command", json!({"cmd": command})),
        }
    }

    /// The model has the agent make a file with its own tool for that. The
    /// content is one line.
    pub(super) fn writes(self, path: &str, line: &str) -> Step {
        match self {
            Self::Claude => Step::tool(
                "Write",
                json!({"file_path": path, "content": format!("{line}\n")}),
            ),
            Self::Codex => Step::custom_tool(
                "apply_patch",
                format!("*** Begin Patch\n*** Add File: {path}\n+{line}\n*** End Patch\n"),
            ),
        }
    }

    /// The model has the agent change a line of a file with its own tools.
    pub(super) fn edits(self, path: &str, old: &str, new: &str) -> Vec<Step> {
        match self {
            Self::Claude => vec![
                Step::tool("Read", json!({"file_path": path})),
                Step::tool(
                    "Edit",
                    json!({"file_path": path, "old_string": old, "new_string": new}),
                ),
            ],
            Self::Codex => vec![Step::custom_tool(
                "apply_patch",
                format!(
                    "*** Begin Patch\n*** Update File: {path}\n@@\n-{old}\n+{new}\n*** End Patch\n"
                ),
            )],
        }
    }
}

/// The answer that says that the work is done and what it changed.
pub(super) fn answer(changed: &[&str]) -> Step {
    let envelope = json!({
        "status": "success",
        "summary": "did it",
        "artifacts": [],
        "changed_files": changed,
        "notes_for_next_agent": "",
    });
    Step::text(envelope.to_string())
}

/// One role that may write `src/**` and no more, in one phase without gates.
/// `@ROLE@` stands for what depends on the agent.
pub(super) const ONE_AGENT: &str = "
name: one-agent
roster:
  builder:
    writes: [\"src/**\"]
    @ROLE@
    system_prompt: You build.
    user_prompt: \"{{prompt}}\"
phases:
  - {name: build, kind: agent, owner: builder}
acceptance: [all_phases_passed]
";

/// The place.
pub(super) struct World {
    pub(super) trial: Trial,
    pub(super) server: ModelServer,
    agent: Agent,
    outside: BTreeSet<PathBuf>,
    repository: Untouched,
}

impl World {
    /// A place with these agents on PATH; `None` when one is not installed.
    /// The first is the default of roles that name none, and the one whose
    /// lines `@ROLE@` in the definition stands for.
    pub(super) fn new(agents: &[Agent], definition: &str, script: Script) -> Option<Self> {
        let programs: Option<Vec<PathBuf>> = agents.iter().map(|agent| agent.program()).collect();
        let programs = programs?;
        let agent = agents[0];
        let role = format!("model: {}\n    {}", agent.model(), agent.role_env());
        let mut trial = Trial::new(&definition.replace("@ROLE@", &role), "roles: {}");
        std::fs::create_dir(trial.env.path("bin")).unwrap();
        for (agent, program) in agents.iter().zip(programs) {
            symlink(program, trial.env.path("bin").join(agent.command())).unwrap();
        }
        let path = format!("{}/bin:{}", trial.marker(), std::env::var("PATH").unwrap());
        let server = ModelServer::start(script);
        let vars = &mut trial.env.vars;
        vars.insert("PATH".into(), path.into());
        vars.extend(server.claude_env());
        vars.extend(server.codex_env());
        // jig repeats by itself what the vendor turned down.
        vars.insert("CLAUDE_CODE_MAX_RETRIES".into(), "0".into());
        if agents.contains(&Agent::Codex) {
            trial
                .env
                .file("home/.codex/config.toml", &server.codex_config());
        }
        let mut world = Self {
            outside: BTreeSet::new(),
            repository: Untouched::of(&trial.repo),
            trial,
            server,
            agent,
        };
        world.settle();
        Some(world)
    }

    /// What is there now is what was there before: for a test that has changed
    /// the operator's files itself.
    pub(super) fn settle(&mut self) {
        self.outside = outside(&self.trial);
        self.repository = Untouched::of(&self.trial.repo);
    }

    /// The flags of a run with genuine agents.
    pub(super) fn flags(&self) -> [&'static str; 3] {
        ["--runtime", self.agent.runtime(), "--no-seed-auth"]
    }

    pub(super) fn start(&self) -> Child {
        self.trial.start_with(&self.flags())
    }

    pub(super) fn run(&self) -> Done {
        finish(self.start())
    }

    /// Nothing is left running, the operator's HOME, TMPDIR and repository are
    /// as they were, and the data directory holds what it is documented to.
    #[track_caller]
    pub(super) fn assert_nothing_left(&self) {
        self.trial.assert_nobody_left();
        assert_eq!(outside(&self.trial), self.outside);
        assert_eq!(Untouched::of(&self.trial.repo), self.repository);
        for attempt in self.trial.attempts() {
            self.trial.assert_tidy(&attempt);
        }
        let kept = names(&self.trial.env.data());
        let documented = ["attempts", "caches", "jig.db", "jig.db.lock", "runs"];
        assert_eq!(kept, documented);
    }

    /// The key that the agents were given is nowhere in what jig keeps.
    #[track_caller]
    pub(super) fn assert_key_nowhere(&self) {
        let mut searched = 0;
        each_file(&self.trial.env.data(), &mut |path| {
            let bytes = std::fs::read(path).unwrap();
            let found = bytes.windows(KEY.len()).any(|part| part == KEY.as_bytes());
            assert!(!found, "the key is in {}", path.display());
            searched += 1;
        });
        assert!(searched > 3, "hardly anything was searched: {searched}");
    }

    /// What the agents' vendors have served so far.
    pub(super) fn served(&self) -> Usage {
        [Vendor::Anthropic, Vendor::OpenAi]
            .map(|vendor| self.server.usage_served(vendor))
            .into_iter()
            .sum()
    }
}

/// Every path of the operator outside the data directory and the repository.
fn outside(trial: &Trial) -> BTreeSet<PathBuf> {
    let root = trial.env.path("");
    let mut found: BTreeSet<PathBuf> = names(&root).into_iter().map(PathBuf::from).collect();
    for dir in ["home", "tmp"] {
        each_path(&root.join(dir), &mut |path| {
            if !is_left_by_a_killed_jig(path) {
                found.insert(path.strip_prefix(&root).unwrap().to_owned());
            }
        });
    }
    found.remove(Path::new("data"));
    found
}

/// The one thing that a killed jig leaves there, as documented: where agents
/// were asked who they are. Nothing is in it.
fn is_left_by_a_killed_jig(path: &Path) -> bool {
    let name = path.file_name().unwrap().to_str().unwrap_or("");
    name.starts_with("jig-asks-") && names(path).is_empty()
}

/// The names in a directory, sorted; temporary files of the store aside, which
/// come and go.
pub(super) fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Every path below a directory.
pub(super) fn each_path(dir: &Path, seen: &mut impl FnMut(&Path)) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        seen(&path);
        if path.symlink_metadata().unwrap().is_dir() {
            each_path(&path, seen);
        }
    }
}

/// Every regular file below a directory.
pub(super) fn each_file(dir: &Path, seen: &mut impl FnMut(&Path)) {
    each_path(dir, &mut |path| {
        if path.symlink_metadata().unwrap().is_file() {
            seen(path);
        }
    });
}
