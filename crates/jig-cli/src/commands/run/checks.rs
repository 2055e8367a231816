//! What is looked at before a run is admitted: the repository and the agents.
//! Nothing is written.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context as _, anyhow};
use jig_engine::host::{HostConfig, Mode, check_clean, check_prompts};
use jig_git::Git;
use jig_git::repository::{Base, Head, Repository};
use jig_protocol::definition::RuntimeName;
use jig_runtime::{Capabilities, Runtimes};
use jig_runtime_acp::AcpRuntime;

use super::request::Request;
use crate::cancel::Interrupt;
use crate::compose::Machine;
use crate::exit_code::{CommandError, Exit};
use crate::operator_agents::OperatorAgents;

/// The repository, as far as the run is admitted on it.
#[derive(Debug)]
pub(crate) struct Pinned {
    /// The canonical path of the checkout, or of a bare repository.
    pub(crate) path: PathBuf,
    /// The pinned commit, or the empty tree; in hex.
    pub(crate) base: String,
    /// The branch that was checked out.
    pub(crate) base_ref: Option<String>,
}

/// Runs `look` unless an interrupt comes first; then nothing was started.
pub(crate) async fn or_interrupt<T>(
    interrupt: &mut Interrupt,
    look: impl Future<Output = Result<T, CommandError>>,
) -> Result<T, CommandError> {
    tokio::select! {
        biased;
        _ = interrupt.wait_for(|come| *come) => Err(cancelled()),
        answer = look => answer,
    }
}

/// The error of a run that was cancelled before it began.
pub(crate) fn cancelled() -> CommandError {
    CommandError {
        exit: Exit::Rejected,
        error: anyhow!("cancelled before anything was started"),
        hint: None,
    }
}

/// Refuses to go on without a git that jig can use.
pub(crate) async fn usable_git(git: &Git) -> Result<(), CommandError> {
    git.check_version().await.map(drop).map_err(|error| {
        CommandError::usage(error)
            .hint("jig needs git 2.41 or newer on PATH; jig doctor says what there is")
    })
}

/// Looks at the repository and pins the base.
pub(crate) async fn repository(
    host: &HostConfig,
    request: &Request,
) -> Result<Pinned, CommandError> {
    let git = &host.git;
    usable_git(git).await?;
    let repository = Repository::discover(git, &request.repo)
        .await
        .with_context(|| format!("{} cannot be worked on", request.repo.display()))
        .map_err(|error| {
            let error = CommandError::usage(error);
            if request.repo == Path::new(".") {
                return error.hint("another repository is named before the prompt: REPO PROMPT");
            }
            error
        })?;
    check_place(&repository, &host.data_dir)?;
    repository
        .check_branch_names(git)
        .await
        .map_err(CommandError::usage)?;
    let base = repository
        .resolve_base(git, None)
        .await
        .map_err(CommandError::usage)?;
    check_prompts(&request.definition, &repository, base).map_err(CommandError::usage)?;
    if let Mode::InPlace { allow_dirty } = request.mode {
        in_place(&repository)?;
        check_clean(host, &repository, allow_dirty)
            .await
            .map_err(CommandError::usage)?;
    }
    let path = repository.path();
    Ok(Pinned {
        path: path.canonicalize().unwrap_or_else(|_| path.to_owned()),
        base: match base {
            Base::Commit { commit, .. } => commit.to_string(),
            Base::Empty { tree } => tree.to_string(),
        },
        base_ref: match &repository.head {
            Head::Branch { name, .. } => Some(name.clone()),
            _ => None,
        },
    })
}

/// Refuses a repository that has jig's own directory in it, or is in an
/// attempt's, or cannot be found from its checkout.
fn check_place(repository: &Repository, data_dir: &Path) -> Result<(), CommandError> {
    let data = resolved(data_dir);
    let inside = |outer: &Path| data.starts_with(resolved(outer));
    let work_tree = repository.work_tree.as_deref();
    let holds_data = places_of(repository);
    if holds_data.iter().any(|place| inside(place)) {
        return Err(CommandError::usage(anyhow!(
            "the data directory {} is inside the repository {}",
            data_dir.display(),
            repository.path().display()
        ))
        .hint("choose another with --data or JIG_HOME: jig keeps its trees apart from yours"));
    }
    if resolved(repository.path()).starts_with(data.join("attempts")) {
        return Err(CommandError::usage(anyhow!(
            "{} belongs to an attempt of jig: garbage collection removes it",
            repository.path().display()
        ))
        .hint("clone it, or run on the repository that the attempt was made from"));
    }
    match work_tree {
        Some(tree) if tree.join(".git").symlink_metadata().is_err() => {
            Err(CommandError::usage(anyhow!(
                "the checkout {} of {} is elsewhere (core.worktree), which jig cannot work with",
                tree.display(),
                repository.git_dir.display()
            ))
            .hint("run on a clone of it"))
        }
        _ => Ok(()),
    }
}

/// Where a repository has something: its own directories, its checkout, and the
/// other checkouts of the same repository.
fn places_of(repository: &Repository) -> Vec<PathBuf> {
    let common = &repository.common_dir;
    let mut places = vec![repository.git_dir.clone(), common.clone()];
    places.extend(repository.work_tree.clone());
    if common.file_name() == Some(".git".as_ref()) {
        places.extend(common.parent().map(Path::to_owned));
    }
    let linked = std::fs::read_dir(common.join("worktrees"));
    for entry in linked.into_iter().flatten().flatten() {
        // The text is the path of the checkout's `.git`.
        let Ok(text) = std::fs::read(entry.path().join("gitdir")) else {
            continue;
        };
        let dot_git = Path::new(OsStr::from_bytes(text.trim_ascii()));
        places.extend(dot_git.parent().map(Path::to_owned));
    }
    places
}

/// A path without links and dots, as far as there is anything at it and beyond.
fn resolved(path: &Path) -> PathBuf {
    let mut real = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                real.pop();
            }
            other => real.push(other),
        }
        // What is not there yet is no link.
        if let Ok(there) = real.canonicalize() {
            real = there;
        }
    }
    real
}

/// Refuses what cannot be worked on in place.
fn in_place(repository: &Repository) -> Result<(), CommandError> {
    let why = match (&repository.head, repository.operation) {
        _ if repository.is_bare() => "it is bare: there is no checkout".to_owned(),
        (Head::Unborn { .. }, _) => "it has no commit yet".to_owned(),
        (_, Some(operation)) => format!("it is in the middle of a {}", operation.as_str()),
        _ => return Ok(()),
    };
    Err(CommandError::usage(anyhow!(
        "{} cannot be worked on in place: {why}",
        repository.path().display()
    ))
    .hint("run without --in-place: the work then happens in a tree of its own"))
}

/// The runtimes that the definition's agent phases will use.
pub(crate) fn runtimes_in_use(request: &Request) -> BTreeSet<RuntimeName> {
    let (replaces_all, replaces_default) = request.runtimes();
    let definition = &request.definition;
    definition
        .phases
        .iter()
        .filter(|phase| phase.is_agent())
        .filter_map(|phase| definition.roster.get(phase.owner()?))
        .map(|role| definition.runtime_of(role, replaces_all, replaces_default))
        .collect()
}

/// Those of the operator's agents that are in use.
pub(crate) fn agents_in_use(
    machine: &Machine,
    data_dir: &Path,
    in_use: &BTreeSet<RuntimeName>,
) -> Result<Vec<AcpRuntime>, CommandError> {
    let names: Vec<&str> = in_use.iter().filter_map(RuntimeName::acp_agent).collect();
    if names.is_empty() {
        // A file that nobody asks for may say what it likes.
        return Ok(Vec::new());
    }
    let agents = OperatorAgents::read(data_dir).map_err(CommandError::usage)?;
    let runtime = |name: &str| {
        let runtime = agents.runtime(machine, name);
        runtime.ok_or_else(|| agents.missing(name))
    };
    names.into_iter().map(runtime).collect()
}

/// Asks every runtime in use who it is.
pub(crate) async fn probe(
    runtimes: &Runtimes,
    in_use: &BTreeSet<RuntimeName>,
) -> Result<BTreeMap<RuntimeName, Capabilities>, CommandError> {
    let mut known = BTreeMap::new();
    for name in in_use {
        let runtime = runtimes.get(name).ok_or_else(|| {
            CommandError::infrastructure(anyhow!(
                "the runtime {name} is not available in this version"
            ))
        })?;
        let capabilities = runtime
            .probe()
            .await
            .with_context(|| format!("the runtime {name} cannot be used; nothing was started"))
            .map_err(|error| {
                CommandError::infrastructure(error)
                    .hint("jig doctor says what is missing; jig demo needs no agent at all")
            })?;
        known.insert(name.clone(), capabilities);
    }
    Ok(known)
}
