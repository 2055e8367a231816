//! The operator's repository: found from any path, looked at, never changed but
//! for references under `refs/jig/` and `refs/heads/jig/`.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use gix::ObjectId;
use gix::bstr::ByteSlice;
use gix::hash::Kind as HashKind;
use jig_protocol::repo_path::RepoPath;

use crate::config_file::ConfigFile;
use crate::discover::{common_dir, head, locate, operation, work_tree};
use crate::objects::{ObjectError, Objects};
use crate::refs::Refs;
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
