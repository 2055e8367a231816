//! The operator's repository: found from any path, looked at, never changed but
//! for references under `refs/jig/` and `refs/heads/jig/`.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use gix::ObjectId;
use gix::bstr::ByteSlice;
use gix::hash::Kind as HashKind;
use jig_protocol::repo_path::RepoPath;

use crate::config_file::ConfigFile;
use crate::objects::{ObjectError, Objects};
use crate::refs::{RefValue, Refs};
use crate::run::{Git, GitError, Invocation};

/// Why a repository cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RepositoryError {
    /// The path does not exist or cannot be read.
    #[error("could not look at {}", path.display())]
    Unreadable {
        /// The path as given, or the file in question.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// Nothing at or above the path is a repository.
    #[error("{} is not in a git repository", path.display())]
    NotARepository {
        /// The path as given.
        path: PathBuf,
    },
    /// A `.git` file or a repository's layout makes no sense.
    #[error("{} is broken: {why}", path.display())]
    Broken {
        /// The file or directory.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// A revision names no commit.
    #[error("{revision:?} names no commit in {}", path.display())]
    UnknownRevision {
        /// The repository.
        path: PathBuf,
        /// The revision as given.
        revision: String,
    },
    /// A branch makes `refs/heads/jig/…` impossible.
    #[error("the branch {branch:?} of {} is in the way of jig's own branches (jig/…); rename it", path.display())]
    BranchInTheWay {
        /// The repository.
        path: PathBuf,
        /// The branch.
        branch: String,
    },
    /// An object cannot be read.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// git failed.
    #[error(transparent)]
    Git(#[from] GitError),
}

/// What `HEAD` is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Head {
    /// A branch with a commit.
    Branch {
        /// The branch's full name.
        name: String,
        /// Its commit.
        commit: ObjectId,
    },
    /// A commit without a branch.
    Detached {
        /// The commit.
        commit: ObjectId,
    },
    /// A branch without a commit: an empty repository, or an orphan branch.
    Unborn {
        /// The branch's full name.
        name: String,
    },
}

impl Head {
    /// The commit, unless there is none yet.
    #[must_use]
    pub const fn commit(&self) -> Option<ObjectId> {
        match self {
            Self::Branch { commit, .. } | Self::Detached { commit } => Some(*commit),
            Self::Unborn { .. } => None,
        }
    }
}

/// What an attempt starts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base {
    /// A commit.
    Commit {
        /// The commit.
        commit: ObjectId,
        /// Its tree.
        tree: ObjectId,
    },
    /// The empty tree: the repository has no commit yet.
    Empty {
        /// The empty tree's name in the repository's object format.
        tree: ObjectId,
    },
}

impl Base {
    /// The tree's name.
    #[must_use]
    pub const fn tree(&self) -> ObjectId {
        match self {
            Self::Commit { tree, .. } | Self::Empty { tree } => *tree,
        }
    }

    /// The commit's name; `None` for the empty tree.
    #[must_use]
    pub const fn commit(&self) -> Option<ObjectId> {
        match self {
            Self::Commit { commit, .. } => Some(*commit),
            Self::Empty { .. } => None,
        }
    }

    /// What records call the base: the commit, else the empty tree.
    #[must_use]
    pub const fn id(&self) -> ObjectId {
        match self {
            Self::Commit { commit, .. } => *commit,
            Self::Empty { tree } => *tree,
        }
    }
}

/// An operation that a checkout is in the middle of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// `git merge`.
    Merge,
    /// `git rebase`, or `git am`.
    Rebase,
    /// `git cherry-pick`.
    CherryPick,
    /// `git revert`.
    Revert,
    /// `git bisect`.
    Bisect,
}

impl Operation {
    /// The word git has for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Merge => "merge",
            Self::Rebase => "rebase",
            Self::CherryPick => "cherry-pick",
            Self::Revert => "revert",
            Self::Bisect => "bisect",
        }
    }
}

/// How a repository keeps its references.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefFormat {
    /// One file per reference, and `packed-refs`.
    Files,
    /// Tables under `reftable/`.
    Reftable,
}

/// A repository as found on disk; a description, not a handle.
#[derive(Debug, Clone)]
pub struct Repository {
    /// The directory with `HEAD`, `index` and, for a linked worktree, little else.
    pub git_dir: PathBuf,
    /// The directory with `config`, `refs` and `objects`.
    pub common_dir: PathBuf,
    /// The root of the checkout; `None` for a bare repository.
    pub work_tree: Option<PathBuf>,
    /// SHA-1 or SHA-256.
    pub object_format: HashKind,
    /// How references are kept.
    pub ref_format: RefFormat,
    /// What is checked out.
    pub head: Head,
    /// Whether history is cut off.
    pub is_shallow: bool,
    /// Whether objects may be missing by design.
    pub is_partial: bool,
    /// What the checkout is in the middle of.
    pub operation: Option<Operation>,
    /// Whether the executable bit on disk means anything (`core.fileMode`).
    pub file_mode: bool,
    objects: Objects,
}

impl Repository {
    /// Finds and describes the repository that `path` lies in, following links.
    ///
    /// # Errors
    /// When there is none, or it is broken; the message names the path.
    pub async fn discover(git: &Git, path: &Path) -> Result<Self, RepositoryError> {
        let (git_dir, work_tree) = locate(path)?;
        Self::describe(git, git_dir, work_tree).await
    }

    async fn describe(
        git: &Git,
        git_dir: PathBuf,
        found_tree: Option<PathBuf>,
    ) -> Result<Self, RepositoryError> {
        let common_dir = common_dir(&git_dir)?;
        let config = ConfigFile::read(&common_dir.join("config"));
        let object_format = match config.string("extensions", "objectFormat") {
            None => HashKind::Sha1,
            Some(name) if name.eq_ignore_ascii_case(b"sha1") => HashKind::Sha1,
            Some(name) if name.eq_ignore_ascii_case(b"sha256") => HashKind::Sha256,
            Some(name) => {
                let why = format!("unknown object format {name:?}");
                return Err(RepositoryError::Broken {
                    path: common_dir.join("config"),
                    why,
                });
            }
        };
        let ref_format = match config.string("extensions", "refStorage") {
            Some(name) if name.eq_ignore_ascii_case(b"reftable") => RefFormat::Reftable,
            _ => RefFormat::Files,
        };
        let work_tree = work_tree(&git_dir, &common_dir, found_tree, &config);
        let objects = Objects::open(&common_dir.join("objects"), object_format)?;
        let head = head(git, &git_dir, &common_dir, ref_format).await?;
        Ok(Self {
            is_shallow: std::fs::metadata(common_dir.join("shallow"))
                .is_ok_and(|meta| meta.len() > 0),
            is_partial: config.string("extensions", "partialClone").is_some()
                || config.any_boolean("remote", "promisor"),
            operation: operation(&git_dir),
            file_mode: config.boolean("core", "fileMode").unwrap_or(true),
            git_dir,
            common_dir,
            work_tree,
            object_format,
            ref_format,
            head,
            objects,
        })
    }

    /// Whether there is no checkout.
    #[must_use]
    pub const fn is_bare(&self) -> bool {
        self.work_tree.is_none()
    }

    /// What messages call this repository: its checkout, else its directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.work_tree.as_deref().unwrap_or(&self.git_dir)
    }

    /// The `objects` directory.
    #[must_use]
    pub fn objects_dir(&self) -> &Path {
        self.objects.directory()
    }

    pub(crate) const fn objects(&self) -> &Objects {
        &self.objects
    }

    pub(crate) fn refs(&self) -> Refs {
        Refs::new(&self.git_dir, &self.common_dir)
    }

    /// Refuses a repository in which jig's branches cannot be made: a branch
    /// named `jig`, or one that differs from `jig/…` only by case.
    ///
    /// # Errors
    /// [`RepositoryError::BranchInTheWay`], naming the branch.
    pub async fn check_branch_names(&self, git: &Git) -> Result<(), RepositoryError> {
        for name in self.ref_names(git, "refs/heads/").await? {
            let branch = name.trim_start_matches("refs/heads/");
            let first = branch.split('/').next().unwrap_or(branch);
            if first.eq_ignore_ascii_case("jig") && !branch.starts_with("jig/") {
                let branch = branch.to_owned();
                return Err(RepositoryError::BranchInTheWay {
                    path: self.path().to_owned(),
                    branch,
                });
            }
        }
        Ok(())
    }

    /// Full names of the references below `prefix`, which ends with `/`.
    pub(crate) async fn ref_names(
        &self,
        git: &Git,
        prefix: &str,
    ) -> Result<Vec<String>, RepositoryError> {
        if self.ref_format == RefFormat::Files {
            return self
                .refs()
                .names_below(prefix)
                .map_err(|source| RepositoryError::Unreadable {
                    path: self.common_dir.join(prefix),
                    source,
                });
        }
        let pattern = prefix.trim_end_matches('/');
        let run = Invocation::new(["for-each-ref", "--format=%(refname)", pattern])
            .git_dir(&self.git_dir);
        let text = git.run(run).await?;
        Ok(text
            .lines()
            .map(|line| String::from_utf8_lossy(line).into_owned())
            .collect())
    }

    /// Pins what an attempt starts from: `revision`, or what is checked out.
    ///
    /// # Errors
    /// When the revision names no commit, or the commit is not there.
    pub async fn resolve_base(
        &self,
        git: &Git,
        revision: Option<&str>,
    ) -> Result<Base, RepositoryError> {
        let id = match revision {
            None => match self.head.commit() {
                Some(id) => id,
                None => {
                    return Ok(Base::Empty {
                        tree: ObjectId::empty_tree(self.object_format),
                    });
                }
            },
            Some(revision) => self.resolve(git, revision).await?,
        };
        let (commit, tree) = self.objects.peel_to_commit(&id)?;
        Ok(Base::Commit { commit, tree })
    }

    async fn resolve(&self, git: &Git, revision: &str) -> Result<ObjectId, RepositoryError> {
        let unknown = || RepositoryError::UnknownRevision {
            path: self.path().to_owned(),
            revision: revision.to_owned(),
        };
        if let Ok(id) = ObjectId::from_hex(revision.as_bytes())
            && id.kind() == self.object_format
        {
            return if self.objects.contains(&id) {
                Ok(id)
            } else {
                Err(unknown())
            };
        }
        let run = Invocation::new([
            "rev-parse",
            "--verify",
            "--quiet",
            "--end-of-options",
            &format!("{revision}^{{commit}}"),
        ])
        .git_dir(&self.git_dir);
        let output = git.run_any(run).await?;
        if output.code != Some(0) {
            return Err(unknown());
        }
        ObjectId::from_hex(output.stdout.trim()).map_err(|_| unknown())
    }

    /// Paths that `git status` lists: modified, staged, or untracked and not
    /// ignored. Filters of the repository's configuration are not run.
    ///
    /// # Errors
    /// When git fails. Empty for a bare repository.
    pub async fn dirty_paths(&self, git: &Git) -> Result<Vec<RepoPath>, RepositoryError> {
        let Some(tree) = &self.work_tree else {
            return Ok(Vec::new());
        };
        let run = Invocation::new([
            "status",
            "--porcelain",
            "-z",
            "--no-renames",
            "--untracked-files=all",
            "--ignore-submodules=dirty",
        ])
        .git_dir(&self.git_dir)
        .work_tree(tree);
        let output = git.run(self.without_filters(run)).await?;
        let mut paths = Vec::new();
        for record in output.split(|byte| *byte == 0) {
            if let Some(path) = record.get(3..) {
                paths.push(RepoPath::from_bytes(path));
            }
        }
        Ok(paths)
    }

    /// Switches off every filter driver that the configuration names.
    fn without_filters(&self, mut run: Invocation) -> Invocation {
        let mut names = std::collections::BTreeSet::new();
        for file in ["config", "config.worktree"] {
            names.extend(ConfigFile::read(&self.common_dir.join(file)).subsections("filter"));
        }
        let mut count = 0;
        for name in &names {
            for (key, value) in [
                ("clean", ""),
                ("smudge", ""),
                ("process", ""),
                ("required", "false"),
            ] {
                let mut full = std::ffi::OsString::from("filter.");
                full.push(std::ffi::OsStr::from_bytes(name));
                full.push(format!(".{key}"));
                run = run.env(&format!("GIT_CONFIG_KEY_{count}"), full);
                run = run.env(&format!("GIT_CONFIG_VALUE_{count}"), value);
                count += 1;
            }
        }
        run.env("GIT_CONFIG_COUNT", count.to_string())
    }
}

/// Finds the git directory and, unless it was given itself, the checkout.
fn locate(path: &Path) -> Result<(PathBuf, Option<PathBuf>), RepositoryError> {
    let unreadable = |source| RepositoryError::Unreadable {
        path: path.to_owned(),
        source,
    };
    let start = std::fs::canonicalize(path).map_err(unreadable)?;
    if !start.is_dir() {
        let why = "it is not a directory".to_owned();
        return Err(RepositoryError::Broken {
            path: path.to_owned(),
            why,
        });
    }
    for directory in start.ancestors() {
        let dot_git = directory.join(".git");
        match std::fs::metadata(&dot_git) {
            Ok(meta) if meta.is_dir() && looks_like_git_dir(&dot_git) => {
                return Ok((dot_git, Some(directory.to_owned())));
            }
            Ok(meta) if meta.is_file() => {
                return Ok((follow_pointer(&dot_git)?, Some(directory.to_owned())));
            }
            _ => {}
        }
        if looks_like_git_dir(directory) {
            return Ok((directory.to_owned(), None));
        }
    }
    Err(RepositoryError::NotARepository {
        path: path.to_owned(),
    })
}

fn looks_like_git_dir(directory: &Path) -> bool {
    let head = std::fs::symlink_metadata(directory.join("HEAD"));
    head.is_ok_and(|meta| !meta.is_dir())
        && (directory.join("commondir").is_file()
            || (directory.join("objects").is_dir() && directory.join("refs").is_dir()))
}

/// The directory a `.git` file points at.
pub(crate) fn follow_pointer(dot_git: &Path) -> Result<PathBuf, RepositoryError> {
    let broken = |why: &str| RepositoryError::Broken {
        path: dot_git.to_owned(),
        why: why.to_owned(),
    };
    let bytes = std::fs::read(dot_git).map_err(|source| RepositoryError::Unreadable {
        path: dot_git.to_owned(),
        source,
    })?;
    let target = bytes
        .strip_prefix(b"gitdir: ")
        .ok_or_else(|| broken("it is neither a directory nor a `gitdir:` file"))?
        .trim_end_with(|c| c == '\n' || c == '\r');
    let target = Path::new(std::ffi::OsStr::from_bytes(target));
    let target = dot_git.parent().unwrap_or(Path::new("/")).join(target);
    std::fs::canonicalize(&target)
        .ok()
        .filter(|path| looks_like_git_dir(path))
        .ok_or_else(|| broken("it points at no git directory"))
}

fn common_dir(git_dir: &Path) -> Result<PathBuf, RepositoryError> {
    let file = git_dir.join("commondir");
    match std::fs::read(&file) {
        Ok(bytes) => {
            let target = bytes.trim_end_with(|c| c == '\n' || c == '\r');
            let target = git_dir.join(std::ffi::OsStr::from_bytes(target));
            std::fs::canonicalize(&target).map_err(|source| RepositoryError::Unreadable {
                path: target,
                source,
            })
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(git_dir.to_owned()),
        Err(source) => Err(RepositoryError::Unreadable { path: file, source }),
    }
}

fn work_tree(
    git_dir: &Path,
    common_dir: &Path,
    found: Option<PathBuf>,
    config: &ConfigFile,
) -> Option<PathBuf> {
    // A linked worktree has its own `.git` file, whatever the main one is.
    if git_dir != common_dir {
        return found.or_else(|| {
            let bytes = std::fs::read(git_dir.join("gitdir")).ok()?;
            let target =
                std::ffi::OsStr::from_bytes(bytes.trim_end_with(|c| c == '\n' || c == '\r'));
            let dot_git = std::fs::canonicalize(git_dir.join(target)).ok()?;
            dot_git.parent().map(Path::to_owned)
        });
    }
    if config.boolean("core", "bare") == Some(true) {
        return None;
    }
    if let Some(path) = config.string("core", "worktree") {
        let path = git_dir.join(std::ffi::OsStr::from_bytes(&path));
        return std::fs::canonicalize(path).ok().or(found);
    }
    found.or_else(|| {
        let parent = git_dir.parent()?;
        git_dir.ends_with(".git").then(|| parent.to_owned())
    })
}

async fn head(
    git: &Git,
    git_dir: &Path,
    common_dir: &Path,
    format: RefFormat,
) -> Result<Head, RepositoryError> {
    if format == RefFormat::Reftable {
        return head_by_git(git, git_dir).await;
    }
    let path = git_dir.join("HEAD");
    let refs = Refs::new(git_dir, common_dir);
    let unreadable = |source| RepositoryError::Unreadable {
        path: path.clone(),
        source,
    };
    match refs.get("HEAD").map_err(unreadable)? {
        Some(RefValue::Object(commit)) => Ok(Head::Detached { commit }),
        Some(RefValue::Symbolic(name)) => Ok(match refs.resolve(&name).map_err(unreadable)? {
            Some(commit) => Head::Branch { name, commit },
            None => Head::Unborn { name },
        }),
        None => Err(RepositoryError::Broken {
            path,
            why: "it holds no reference".into(),
        }),
    }
}

async fn head_by_git(git: &Git, git_dir: &Path) -> Result<Head, RepositoryError> {
    let name = git
        .run_any(Invocation::new(["symbolic-ref", "-q", "HEAD"]).git_dir(git_dir))
        .await?;
    let name = String::from_utf8_lossy(name.stdout.trim()).into_owned();
    let run = Invocation::new(["rev-parse", "--verify", "--quiet", "HEAD"]).git_dir(git_dir);
    let commit = ObjectId::from_hex(git.run_any(run).await?.stdout.trim()).ok();
    match (name.is_empty(), commit) {
        (true, Some(commit)) => Ok(Head::Detached { commit }),
        (false, Some(commit)) => Ok(Head::Branch { name, commit }),
        (false, None) => Ok(Head::Unborn { name }),
        (true, None) => {
            let why = "it holds no reference".into();
            Err(RepositoryError::Broken {
                path: git_dir.join("HEAD"),
                why,
            })
        }
    }
}

fn operation(git_dir: &Path) -> Option<Operation> {
    [
        ("rebase-merge", Operation::Rebase),
        ("rebase-apply", Operation::Rebase),
        ("MERGE_HEAD", Operation::Merge),
        ("CHERRY_PICK_HEAD", Operation::CherryPick),
        ("REVERT_HEAD", Operation::Revert),
        ("BISECT_LOG", Operation::Bisect),
    ]
    .into_iter()
    .find(|(file, _)| git_dir.join(file).exists())
    .map(|(_, operation)| operation)
}
