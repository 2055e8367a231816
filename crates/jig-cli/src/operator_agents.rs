//! The operator's `runtimes.toml`: which agents of the Agent Client Protocol
//! there are.

use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use jig_protocol::limits;
use jig_runtime_acp::{AcpConfig, AcpRuntime, Agents};

use crate::compose::Machine;
use crate::exit_code::CommandError;

/// A larger file is none of this kind.
const MAX_FILE: u64 = 1024 * 1024;

/// What the file says; nothing when there is none.
#[derive(Debug, Default)]
pub(crate) struct OperatorAgents {
    path: PathBuf,
    agents: Agents,
}

impl OperatorAgents {
    /// Reads the file of a data directory.
    ///
    /// # Errors
    ///
    /// When it cannot be read, when somebody else could have written it (it
    /// names programs that jig starts), and when it is wrong, with the place.
    pub(crate) fn read(data: &Path) -> anyhow::Result<Self> {
        let path = data.join("runtimes.toml");
        let said = read(&path).with_context(|| format!("{} is not used", path.display()))?;
        let agents = Agents::parse(&said.unwrap_or_default())
            .with_context(|| format!("{} is not used", path.display()))?;
        Ok(Self { path, agents })
    }

    /// The agents' names, sorted.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.agents.acp.keys().map(|name| name.as_str())
    }

    /// The adapter of one of them.
    pub(crate) fn runtime(&self, machine: &Machine, name: &str) -> Option<AcpRuntime> {
        let (name, agent) = self.agents.acp.get_key_value(name)?;
        let program = agent.command.program();
        let found = match program.is_absolute() {
            true => Some(program.to_owned()),
            false => program.to_str().and_then(|name| machine.find_program(name)),
        };
        Some(AcpRuntime::new(AcpConfig {
            name: name.clone(),
            agent: agent.clone(),
            program: found.unwrap_or_else(|| program.to_owned()),
            asker: machine.asker(),
            patience: limits::HANDSHAKE_TIMEOUT,
        }))
    }

    /// What to say of a name that is not there.
    pub(crate) fn missing(&self, name: &str) -> CommandError {
        let all: Vec<&str> = self.names().collect();
        let has = match all.as_slice() {
            [] => "it describes no agent".to_owned(),
            all => format!("it has {}", all.join(", ")),
        };
        CommandError::usage(anyhow!(
            "there is no [acp.{name}] in {}; {has}",
            self.path.display()
        ))
        .hint("docs/acp.md says how an agent is described there; jig doctor asks all of them who they are")
    }
}

fn is_absent(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory)
}

fn read(path: &Path) -> anyhow::Result<Option<String>> {
    // Opening a pipe that somebody put there must not wait.
    let flags = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or(0);
    let opened = std::fs::File::options()
        .read(true)
        .custom_flags(flags)
        .open(path);
    let file = match opened {
        Err(error) if is_absent(&error) => return Ok(None),
        opened => opened?,
    };
    let meta = file.metadata()?;
    if !meta.is_file() || meta.len() > MAX_FILE {
        return Err(anyhow!("it is no regular file of at most 1 MiB"));
    }
    let own = [0, rustix::process::geteuid().as_raw()];
    if !own.contains(&meta.uid()) || meta.mode() & 0o022 != 0 {
        return Err(anyhow!(
            "others can write it, and it names programs that jig starts; make it yours (chown, chmod 600)"
        ));
    }
    let mut said = String::new();
    file.take(MAX_FILE).read_to_string(&mut said)?;
    Ok(Some(said))
}
