//! Where the parts meet: runtimes, host, engine and store, made from settings.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::anyhow;
use jig_controlplane::random::RandomSource;
use jig_engine::host::HostConfig;
use jig_git::{Git, GitConfig};
use jig_process::{Environment, Host, SystemClock};
use jig_protocol::definition::RuntimeName;
use jig_protocol::limits;
use jig_protocol::time::Clock;
use jig_runtime::probe::Asker;
use jig_runtime::{AgentRuntime, OperatorHome, Runtimes};
use jig_runtime_acp::AcpRuntime;
use jig_runtime_claude::{ClaudeConfig, ClaudeRuntime};
use jig_runtime_codex::{CodexConfig, CodexRuntime, Operator};
use jig_runtime_scripted::ScriptedRuntime;

use crate::exit_code::CommandError;
use crate::settings::Settings;

/// The machine as every part of a command sees it.
#[derive(Debug, Clone)]
pub(crate) struct Machine {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) host: Host,
    pub(crate) git: Git,
    pub(crate) operator: OperatorHome,
    /// An empty home for programs that are only asked who they are.
    empty_home: Arc<tempfile::TempDir>,
}

impl Machine {
    /// Finds the machine's parts; starts nothing.
    pub(crate) fn find(settings: &Settings) -> Result<Self, CommandError> {
        let host = Host::this_program().map_err(CommandError::infrastructure)?;
        let path = settings
            .env
            .get(OsStr::new("PATH"))
            .cloned()
            .unwrap_or_default();
        let home = settings
            .home
            .clone()
            .unwrap_or_else(|| PathBuf::from("/nonexistent"));
        let empty_home = tempfile::Builder::new().prefix("jig-asks-").tempdir();
        let empty_home = empty_home.map_err(|error| {
            CommandError::infrastructure(error)
                .hint("jig needs a directory for temporary files: $TMPDIR, else /tmp")
        })?;
        Ok(Self {
            clock: Arc::new(SystemClock::new()),
            host,
            git: Git::new(GitConfig {
                home: settings.home.clone(),
                ..GitConfig::new(path)
            }),
            operator: OperatorHome {
                home,
                env: settings.env.clone(),
            },
            empty_home: Arc::new(empty_home),
        })
    }

    /// A program on the operator's PATH, as an absolute path.
    pub(crate) fn find_program(&self, name: &str) -> Option<PathBuf> {
        use std::os::unix::fs::PermissionsExt as _;
        let path = self.operator.env.get(OsStr::new("PATH"))?;
        std::env::split_paths(path)
            .filter(|dir| dir.is_absolute())
            .map(|dir| dir.join(name))
            .find(|file| {
                file.metadata()
                    .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
            })
    }

    /// The same, or the bare name of one that is not there: its probe finds it
    /// missing, and names it.
    fn program(&self, name: &str) -> PathBuf {
        self.find_program(name)
            .unwrap_or_else(|| PathBuf::from(name))
    }

    /// The least environment a program needs.
    fn environment_in(&self, home: &std::path::Path) -> Environment {
        let path = self
            .operator
            .env
            .get(OsStr::new("PATH"))
            .cloned()
            .unwrap_or_default();
        Environment::empty()
            .with("PATH", path)
            .with("HOME", home)
            .with("TMPDIR", home)
            .with("LANG", "C.UTF-8")
            .with("TERM", "dumb")
    }

    /// How agent CLIs are asked who they are: with nothing of the operator's.
    pub(crate) fn asker(&self) -> Asker {
        let home = self.empty_home.path();
        Asker {
            host: self.host.clone(),
            clock: Arc::clone(&self.clock),
            dir: home.to_owned(),
            env: self.environment_in(home),
            bound: limits::PROBE_TIMEOUT,
        }
    }

    /// What hosting attempts in `data_dir` takes.
    pub(crate) fn host_config(&self, data_dir: PathBuf) -> HostConfig {
        HostConfig {
            data_dir,
            git: self.git.clone(),
            clock: Arc::clone(&self.clock),
            operator: self.operator.clone(),
            host: self.host.clone(),
        }
    }
}

/// Every runtime this build has; `scripted` only with a script, and of the
/// operator's agents those that are in use.
pub(crate) fn runtimes(
    machine: &Machine,
    scripted: Option<Arc<ScriptedRuntime>>,
    agents: Vec<AcpRuntime>,
) -> Runtimes {
    let mut all: Vec<Arc<dyn AgentRuntime>> =
        vec![Arc::new(claude(machine)), Arc::new(codex(machine))];
    if let Some(scripted) = scripted {
        all.push(scripted);
    }
    for agent in agents {
        all.push(Arc::new(agent));
    }
    all.into_iter()
        .map(|runtime| (runtime.name(), runtime))
        .collect::<BTreeMap<_, _>>()
}

/// The Claude Code adapter.
pub(crate) fn claude(machine: &Machine) -> ClaudeRuntime {
    ClaudeRuntime::new(ClaudeConfig {
        program: machine.program("claude"),
        asker: machine.asker(),
        random: Arc::new(|| {
            let mut bytes = [0; 16];
            SystemRandom.fill(&mut bytes);
            bytes
        }),
    })
}

/// The Codex adapter.
pub(crate) fn codex(machine: &Machine) -> CodexRuntime {
    CodexRuntime::new(CodexConfig {
        program: machine.program("codex"),
        asker: machine.asker(),
        operator: Operator::read(&machine.operator),
    })
}

/// The names `--runtime` takes.
pub(crate) fn runtime_named(name: &str) -> Result<RuntimeName, CommandError> {
    RuntimeName::parse(name).map_err(|wrong| {
        let why = match wrong {
            Some(wrong) => format!("the runtime {name:?} names no agent: {wrong}"),
            None => format!(
                "the runtime {name:?} is not available; there are {} and acp:<name>",
                RuntimeName::KNOWN.join(", ")
            ),
        };
        CommandError::infrastructure(anyhow!(why))
    })
}

/// Random bytes from the operating system.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SystemRandom;

impl RandomSource for SystemRandom {
    fn fill(&self, bytes: &mut [u8]) {
        // Predictable bytes would be worse than a panic, which is caught.
        if let Err(error) = getrandom::fill(bytes) {
            panic!("the system gives no random bytes: {error}");
        }
    }
}

/// A number for the spreading of waits.
pub(crate) fn random_number() -> u64 {
    let mut bytes = [0; 8];
    SystemRandom.fill(&mut bytes);
    u64::from_le_bytes(bytes)
}
