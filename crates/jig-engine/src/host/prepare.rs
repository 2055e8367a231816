//! From a repository and a base commit to an attempt that can run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jig_git::repository::{Base, Head, Repository, RepositoryError};
use jig_git::{AttemptPlan, AttemptRepo, AttemptRepoError, Git, GitError, ObjectError, ObjectId};
use jig_process::Host;
use jig_protocol::definition::{Definition, DirGrant};
use jig_protocol::ids::{AttemptId, JobId, RunId};
use jig_protocol::repo_path::RepoPath;
use jig_protocol::time::Clock;
use jig_runtime::OperatorHome;

use super::checkout_lock::CheckoutLock;
use super::layout::AttemptDirs;
use super::manifest::{MANIFEST_SCHEMA, Manifest, ManifestError, ManifestFile, ManifestMode};
use super::prompts::{PromptError, RolePrompts, check_prompts};
use super::retention::remove_off_thread;
use super::saved_index::SavedIndex;
use crate::home::{HomeError, Homes};

/// What hosting attempts takes, the same for every attempt of a process.
#[derive(Debug, Clone)]
pub struct HostConfig {
    /// Where jig keeps everything; absolute.
    pub data_dir: PathBuf,
    /// How git is run.
    pub git: Git,
    /// Where time comes from.
    pub clock: Arc<dyn Clock>,
    /// The operator's home and environment.
    pub operator: OperatorHome,
    /// The executable with the hidden modes.
    pub host: Host,
}

/// Where an attempt works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// In a tree of its own, which borrows objects from the lender.
    OwnTree,
    /// In the operator's checkout.
    InPlace {
        /// Whether uncommitted changes there are fine.
        allow_dirty: bool,
    },
}

/// What to prepare.
#[derive(Debug, Clone)]
pub struct PrepareSpec<'a> {
    /// The run.
    pub run_id: RunId,
    /// Its job.
    pub job_id: JobId,
    /// The attempt.
    pub attempt_id: AttemptId,
    /// Which attempt at the job, from 1.
    pub attempt_number: u32,
    /// A path in the repository that lends its objects.
    pub lender: &'a Path,
    /// The pinned base: a commit in hex, or the empty tree of a repository
    /// without a commit.
    pub base: &'a str,
    /// Where to work.
    pub mode: Mode,
    /// What will run.
    pub definition: &'a Definition,
}

/// Why an attempt could not be prepared. Nothing of it is left.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// git is missing or too old.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The lender cannot be used.
    #[error(transparent)]
    Repository(#[from] RepositoryError),
    /// The attempt's repository could not be made.
    #[error(transparent)]
    AttemptRepo(#[from] AttemptRepoError),
    /// The base could not be read.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// A prompt cannot be used.
    #[error(transparent)]
    Prompt(#[from] PromptError),
    /// A HOME could not be made.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// The manifest could not be written.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// The attempt's directory could not be made.
    #[error("could not make {}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The checkout has uncommitted changes.
    #[error(
        "{} has uncommitted changes ({}); commit them, or allow them with --allow-dirty",
        path.display(),
        shown(paths)
    )]
    Dirty {
        /// The checkout.
        path: PathBuf,
        /// What is changed.
        paths: Vec<RepoPath>,
    },
    /// Another attempt works in the checkout.
    #[error("another run works in {} in place; wait until it has ended, or run without --in-place", path.display())]
    Occupied {
        /// The checkout.
        path: PathBuf,
    },
    /// The checkout was moved after the run was admitted.
    #[error("{} is at {found}, but the run was admitted at {expected}", path.display())]
    Moved {
        /// The checkout.
        path: PathBuf,
        /// The base that was pinned.
        expected: String,
        /// What is checked out.
        found: String,
    },
}

fn shown(paths: &[RepoPath]) -> String {
    let named: Vec<String> = paths.iter().take(3).map(ToString::to_string).collect();
    match paths.len().saturating_sub(named.len()) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

/// An attempt that is ready to run.
#[derive(Debug)]
pub struct PreparedAttempt {
    /// Its directory.
    pub dirs: AttemptDirs,
    /// The root of the tree it works in.
    pub work_tree: PathBuf,
    /// What it started from.
    pub base: Base,
    /// The full name of the branch that is checked out; `None` for a detached
    /// `HEAD`, in place only.
    pub branch: Option<String>,
    /// Where it works.
    pub mode: Mode,
    /// Its repository.
    pub repo: AttemptRepo,
    /// Every role's prompts.
    pub prompts: BTreeMap<String, RolePrompts>,
    /// HOMEs and environments.
    pub homes: Homes,
    /// The manifest, open for live supervisors.
    pub manifest: ManifestFile,
    /// What a person should know before the run.
    pub warnings: Vec<String>,
    /// In place: the operator's index as it was.
    pub(crate) saved_index: Option<SavedIndex>,
    /// In place: nobody else of ours works in the checkout.
    #[expect(
        dead_code,
        reason = "what it does is to be held until the attempt is over"
    )]
    pub(crate) checkout_lock: Option<CheckoutLock>,
}

impl PreparedAttempt {
    /// The base as records and commands name it: the commit, else the empty
    /// tree; in hex.
    #[must_use]
    pub fn base_sha(&self) -> String {
        self.base.id().to_string()
    }

    /// Whether it works in the operator's checkout.
    #[must_use]
    pub const fn is_in_place(&self) -> bool {
        matches!(self.mode, Mode::InPlace { .. })
    }
}

/// Prepares an attempt: its directory, its repository checked out at the base,
/// its HOMEs, its manifest.
///
/// # Errors
/// When anything of that cannot be made; what was made is removed again, and
/// nothing of the lender was changed.
pub async fn prepare(
    config: &HostConfig,
    spec: &PrepareSpec<'_>,
) -> Result<PreparedAttempt, PrepareError> {
    config.git.check_version().await?;
    let lender = Repository::discover(&config.git, spec.lender).await?;
    let checkout_lock = match spec.mode {
        Mode::OwnTree => None,
        Mode::InPlace { .. } => Some(occupy(&lender)?),
    };
    let base = resolve_base(config, &lender, spec).await?;
    let prompts = check_prompts(spec.definition, &lender, base)?;
    let dirs = AttemptDirs::of(&config.data_dir, spec.attempt_id);
    dirs.make().map_err(|source| PrepareError::Directory {
        path: dirs.root.clone(),
        source,
    })?;
    match fill(config, spec, &lender, base, prompts, dirs.clone()).await {
        Ok(made) => Ok(PreparedAttempt {
            checkout_lock,
            ..made
        }),
        Err(error) => {
            // The first error is the one to report; what stays is an attempt
            // without a work tree, which garbage collection knows.
            let _ = remove_off_thread(dirs.root).await;
            Err(error)
        }
    }
}

/// Takes the operator's checkout for one attempt.
fn occupy(lender: &Repository) -> Result<CheckoutLock, PrepareError> {
    let taken = CheckoutLock::take(&lender.git_dir).map_err(|source| AttemptRepoError::Io {
        path: lender.git_dir.clone(),
        source,
    })?;
    taken.ok_or_else(|| PrepareError::Occupied {
        path: lender.path().to_owned(),
    })
}

/// The pinned base in the lender.
///
/// # Errors
/// When the commit is not there, or in place something else is checked out.
async fn resolve_base(
    config: &HostConfig,
    lender: &Repository,
    spec: &PrepareSpec<'_>,
) -> Result<Base, PrepareError> {
    let empty = ObjectId::empty_tree(lender.object_format);
    let base = if ObjectId::from_hex(spec.base.as_bytes()).is_ok_and(|id| id == empty) {
        Base::Empty { tree: empty }
    } else {
        lender.resolve_base(&config.git, Some(spec.base)).await?
    };
    let Mode::InPlace { allow_dirty } = spec.mode else {
        return Ok(base);
    };
    let found = lender.head.commit();
    if found != base.commit() {
        return Err(PrepareError::Moved {
            path: lender.path().to_owned(),
            expected: spec.base.to_owned(),
            found: found.map_or_else(|| "no commit".to_owned(), |id| id.to_string()),
        });
    }
    check_clean(config, lender, allow_dirty).await?;
    Ok(base)
}

/// Refuses a checkout with uncommitted changes, unless they are allowed. A
/// repository that cannot be worked in place for other reasons is refused when
/// it is opened.
///
/// # Errors
/// [`PrepareError::Dirty`], naming the paths.
pub async fn check_clean(
    config: &HostConfig,
    repository: &Repository,
    allow_dirty: bool,
) -> Result<(), PrepareError> {
    if allow_dirty || repository.is_bare() || matches!(repository.head, Head::Unborn { .. }) {
        return Ok(());
    }
    let paths = repository.dirty_paths(&config.git).await?;
    if paths.is_empty() {
        return Ok(());
    }
    Err(PrepareError::Dirty {
        path: repository.path().to_owned(),
        paths,
    })
}

async fn fill(
    config: &HostConfig,
    spec: &PrepareSpec<'_>,
    lender: &Repository,
    base: Base,
    prompts: BTreeMap<String, RolePrompts>,
    dirs: AttemptDirs,
) -> Result<PreparedAttempt, PrepareError> {
    let plan = AttemptPlan {
        directory: dirs.root.clone(),
        attempt: spec.attempt_id,
        job: spec.job_id,
        number: spec.attempt_number,
        base,
    };
    // Written before there is anything to find: whoever finds the directory
    // of a jig that died here knows whose it is.
    let manifest = ManifestFile::create(dirs.manifest(), manifest(spec, lender, &plan))?;
    let repo = match spec.mode {
        Mode::OwnTree => AttemptRepo::prepare(&config.git, lender, &plan).await?,
        Mode::InPlace { .. } => AttemptRepo::in_place(&config.git, lender, &dirs.root).await?,
    };
    match furnish(config, spec, lender, &dirs, &repo) {
        Ok((homes, saved_index, warnings)) => Ok(PreparedAttempt {
            work_tree: repo.tree().to_owned(),
            branch: repo.branch().map(ToOwned::to_owned),
            warnings,
            mode: spec.mode,
            dirs,
            base,
            repo,
            prompts,
            homes,
            manifest,
            saved_index,
            checkout_lock: None,
        }),
        Err(error) => {
            // The first error is the one to report.
            let _ = repo.release_pin().await;
            Err(error)
        }
    }
}

/// What an attempt has besides its repository: HOMEs, in place the operator's
/// index, and what a person should know.
fn furnish(
    config: &HostConfig,
    spec: &PrepareSpec<'_>,
    lender: &Repository,
    dirs: &AttemptDirs,
    repo: &AttemptRepo,
) -> Result<(Homes, Option<SavedIndex>, Vec<String>), PrepareError> {
    let outputs = &spec.definition.build_outputs;
    let lines: Vec<String> = outputs.iter().map(DirGrant::ignore_line).collect();
    repo.exclude(&lines)?;
    let saved_index = match spec.mode {
        Mode::OwnTree => None,
        Mode::InPlace { .. } => {
            let saved = SavedIndex::take(repo.git_dir(), &dirs.root);
            Some(saved.map_err(|source| PrepareError::Directory {
                path: repo.git_dir().join("index"),
                source,
            })?)
        }
    };
    let homes = Homes::new(
        dirs.clone(),
        &config.data_dir,
        &lender.common_dir,
        config.operator.clone(),
        spec.definition,
    );
    homes.make()?;
    Ok((homes, saved_index, warnings(repo)?))
}

fn manifest(spec: &PrepareSpec<'_>, lender: &Repository, plan: &AttemptPlan) -> Manifest {
    let path = |path: &Path| {
        use std::os::unix::ffi::OsStrExt;
        RepoPath::from_bytes(path.as_os_str().as_bytes())
    };
    let (mode, branch, work_tree) = match spec.mode {
        Mode::OwnTree => (
            ManifestMode::OwnTree,
            Some(format!("refs/heads/{}", plan.branch())),
            plan.directory.join("tree"),
        ),
        Mode::InPlace { .. } => (
            ManifestMode::InPlace,
            match &lender.head {
                Head::Branch { name, .. } => Some(name.clone()),
                _ => None,
            },
            lender.path().to_owned(),
        ),
    };
    Manifest {
        schema: MANIFEST_SCHEMA,
        run_id: spec.run_id,
        job_id: spec.job_id,
        attempt_id: spec.attempt_id,
        attempt_number: spec.attempt_number,
        lender: path(&lender.git_dir),
        base: plan.base.id().to_string(),
        branch,
        mode,
        work_tree: path(&work_tree),
        sensitive_env: Some(spec.definition.sensitive_environment()),
        process_groups: Vec::new(),
    }
}

/// What the tree lacks though the repository has it.
fn warnings(repo: &AttemptRepo) -> Result<Vec<String>, ObjectError> {
    if repo.is_in_place() {
        return Ok(Vec::new());
    }
    let mut warnings = Vec::new();
    let submodules: Vec<RepoPath> = repo.pinned().submodules().iter().cloned().collect();
    if !submodules.is_empty() {
        let paths = shown(&submodules);
        warnings.push(format!(
            "submodules are not checked out in the attempt's tree: {paths}"
        ));
    }
    let lfs = repo.pinned().lfs_attribute_files()?;
    if !lfs.is_empty() {
        let paths = shown(&lfs);
        warnings.push(format!(
            "git LFS files are left as pointers in the attempt's tree (named by {paths})"
        ));
    }
    Ok(warnings)
}
