//! Where an attempt works: a repository of its own that borrows the lender's
//! objects, or the operator's checkout itself.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use gix::ObjectId;
use jig_protocol::ids::{AttemptId, JobId};
use jig_protocol::limits;

use crate::changes::{GuardOptions, TreeGuard};
use crate::conversions::EolSettings;
use crate::objects::{ObjectError, Objects};
use crate::pinned_tree::PinnedTree;
use crate::repository::{Base, Head, RefFormat, Repository, RepositoryError};
use crate::run::{Git, GitError, Invocation};
use crate::skeleton::write_repository;

/// Why an attempt's repository could not be made or used.
#[derive(Debug, thiserror::Error)]
pub enum AttemptRepoError {
    /// A file or directory could not be made, read or removed.
    #[error("could not prepare {}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// Something lies where the repository should be made.
    #[error("{} is in the way", path.display())]
    InTheWay {
        /// What lies there.
        path: PathBuf,
    },
    /// The attempt's directory is not an absolute path.
    #[error("{} is not absolute", path.display())]
    NotAbsolute {
        /// The directory.
        path: PathBuf,
    },
    /// The lender lacks objects of the base (a partial clone).
    #[error(
        "{} lacks files of the base (the first is object {example}); fetch them, for example by checking the commit out",
        lender.display()
    )]
    MissingObjects {
        /// The lender.
        lender: PathBuf,
        /// One of the missing blobs.
        example: ObjectId,
    },
    /// A checkout that cannot be worked in directly.
    #[error("cannot work in place in {}: {why}", path.display())]
    NotInPlace {
        /// The repository.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The lender cannot be used.
    #[error(transparent)]
    Repository(#[from] RepositoryError),
    /// An object cannot be read or written.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// git failed.
    #[error(transparent)]
    Git(#[from] GitError),
}

/// What to prepare.
#[derive(Debug, Clone)]
pub struct AttemptPlan {
    /// The attempt's directory, an absolute path, which exists; `tree` and `git` are made in it.
    pub directory: PathBuf,
    /// The attempt.
    pub attempt: AttemptId,
    /// Its job.
    pub job: JobId,
    /// Which attempt at the job it is, from 1.
    pub number: u32,
    /// What it starts from, in the lender.
    pub base: Base,
}

impl AttemptPlan {
    /// The branch's short name.
    #[must_use]
    pub fn branch(&self) -> String {
        format!("jig/{}/{}", self.job, self.number)
    }

    /// The reference that keeps the base alive in the lender.
    #[must_use]
    pub fn pin(&self) -> String {
        format!("refs/jig/pins/{}", self.attempt)
    }
}

/// A repository that an attempt works in. Cheap to clone.
#[derive(Debug, Clone)]
pub struct AttemptRepo {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    git: Git,
    lender: Repository,
    base: Base,
    /// The full name of the branch that results go to.
    branch: Option<String>,
    pin: Option<String>,
    directory: PathBuf,
    tree: PathBuf,
    git_dir: PathBuf,
    common_dir: PathBuf,
    in_place: bool,
    /// Set until the first capture after the checkout was taken.
    fresh: AtomicBool,
    pinned: Arc<PinnedTree>,
    objects: Objects,
}

impl AttemptRepo {
    /// Makes the attempt's repository and checks the base out.
    ///
    /// The lender gains one reference, the pin. After an error nothing is left.
    /// A deadline of `git` ends the preparation, not what is done later.
    ///
    /// # Errors
    /// When the lender cannot lend, the place is taken, or git fails.
    pub async fn prepare(
        git: &Git,
        lender: &Repository,
        plan: &AttemptPlan,
    ) -> Result<Self, AttemptRepoError> {
        if !plan.directory.is_absolute() {
            let path = plan.directory.clone();
            return Err(AttemptRepoError::NotAbsolute { path });
        }
        lender.check_branch_names(git).await?;
        for name in ["tree", "git"] {
            let path = plan.directory.join(name);
            if path.symlink_metadata().is_ok() {
                return Err(AttemptRepoError::InTheWay { path });
            }
        }
        if lender.is_partial {
            let pinned = read_pinned(lender, plan.base).await?;
            if let [example, ..] = pinned.missing(1).as_slice() {
                let lender = lender.path().to_owned();
                return Err(AttemptRepoError::MissingObjects {
                    lender,
                    example: *example,
                });
            }
        }
        let made = Self::make(git, lender, plan).await;
        if made.is_err() {
            for name in ["tree", "git"] {
                // The first error is the one to report.
                let _ = crate::removal::remove_tree(&plan.directory.join(name));
            }
            let _ = delete_ref(&git.lasting(), lender, &plan.pin()).await;
        }
        made
    }

    async fn make(
        git: &Git,
        lender: &Repository,
        plan: &AttemptPlan,
    ) -> Result<Self, AttemptRepoError> {
        if let Some(commit) = plan.base.commit() {
            update_ref(git, lender, &plan.pin(), commit, None).await?;
        }
        write_repository(lender, plan)?;
        // Both to their end, so that after an error nothing is written any more.
        let (pinned, checked_out) =
            tokio::join!(read_pinned(lender, plan.base), Self::check_out(git, plan));
        checked_out?;
        let repo = Self::at(git, lender, plan, Arc::new(pinned?))?;
        repo.inner.fresh.store(true, Ordering::Relaxed);
        Ok(repo)
    }

    async fn check_out(git: &Git, plan: &AttemptPlan) -> Result<(), AttemptRepoError> {
        let Some(commit) = plan.base.commit() else {
            return Ok(());
        };
        let workers = crate::parallel::threads();
        let run = Invocation::new([
            OsString::from("-c"),
            format!("checkout.workers={workers}").into(),
            "-c".into(),
            "checkout.thresholdForParallelism=100".into(),
            "reset".into(),
            "--hard".into(),
            "--quiet".into(),
            commit.to_string().into(),
        ])
        .git_dir(&plan.directory.join("git"))
        .work_tree(&plan.directory.join("tree"))
        .timeout(limits::UNWIND_TIMEOUT);
        git.run(run).await?;
        Ok(())
    }

    fn at(
        git: &Git,
        lender: &Repository,
        plan: &AttemptPlan,
        pinned: Arc<PinnedTree>,
    ) -> Result<Self, AttemptRepoError> {
        let git_dir = plan.directory.join("git");
        let objects = Objects::open(&git_dir.join("objects"), lender.object_format)?;
        let inner = Inner {
            git: git.lasting(),
            lender: lender.clone(),
            base: plan.base,
            branch: Some(format!("refs/heads/{}", plan.branch())),
            pin: plan.base.commit().map(|_| plan.pin()),
            directory: plan.directory.clone(),
            tree: plan.directory.join("tree"),
            common_dir: git_dir.clone(),
            git_dir,
            in_place: false,
            fresh: AtomicBool::new(false),
            pinned,
            objects,
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// Opens a repository that [`AttemptRepo::prepare`] made earlier, perhaps in
    /// another process, with the same plan.
    ///
    /// # Errors
    /// When it is not there, or the lender no longer has the base.
    pub async fn reopen(
        git: &Git,
        lender: &Repository,
        plan: &AttemptPlan,
    ) -> Result<Self, AttemptRepoError> {
        let pinned = Arc::new(read_pinned(lender, plan.base).await?);
        Self::at(git, lender, plan, pinned)
    }

    /// Uses the operator's checkout itself, on the branch that is checked out;
    /// `directory` is where jig keeps what it must remember.
    ///
    /// # Errors
    /// When the repository is bare, has no commit, or is in the middle of an
    /// operation. Whether it is clean is the caller's question
    /// ([`Repository::dirty_paths`]).
    pub async fn in_place(
        git: &Git,
        repository: &Repository,
        directory: &Path,
    ) -> Result<Self, AttemptRepoError> {
        let refuse = |why: &str| AttemptRepoError::NotInPlace {
            path: repository.path().to_owned(),
            why: why.to_owned(),
        };
        let tree = repository
            .work_tree
            .clone()
            .ok_or_else(|| refuse("it is a bare repository"))?;
        if let Some(operation) = repository.operation {
            return Err(refuse(&format!(
                "it is in the middle of a {}",
                operation.as_str()
            )));
        }
        let branch = match &repository.head {
            Head::Branch { name, .. } => Some(name.clone()),
            Head::Detached { .. } => None,
            Head::Unborn { .. } => return Err(refuse("it has no commit yet")),
        };
        let base = repository.resolve_base(git, None).await?;
        let pinned = Arc::new(read_pinned(repository, base).await?);
        let inner = Inner {
            git: git.lasting(),
            lender: repository.clone(),
            base,
            branch,
            pin: None,
            directory: directory.to_owned(),
            tree,
            git_dir: repository.git_dir.clone(),
            common_dir: repository.common_dir.clone(),
            in_place: true,
            fresh: AtomicBool::new(false),
            pinned,
            objects: repository.objects().clone(),
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// The work tree.
    #[must_use]
    pub fn tree(&self) -> &Path {
        &self.inner.tree
    }

    /// The git directory.
    #[must_use]
    pub fn git_dir(&self) -> &Path {
        &self.inner.git_dir
    }

    /// The directory that jig keeps its own things about the attempt in.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.inner.directory
    }

    /// The repository that lends the objects.
    #[must_use]
    pub fn lender(&self) -> &Repository {
        &self.inner.lender
    }

    /// What the attempt started from.
    #[must_use]
    pub fn base(&self) -> Base {
        self.inner.base
    }

    /// The full name of the branch that is checked out; `None` when `HEAD` is
    /// detached (in place only).
    #[must_use]
    pub fn branch(&self) -> Option<&str> {
        self.inner.branch.as_deref()
    }

    /// Whether this is the operator's own checkout.
    #[must_use]
    pub fn is_in_place(&self) -> bool {
        self.inner.in_place
    }

    /// The base's tree.
    #[must_use]
    pub fn pinned(&self) -> &Arc<PinnedTree> {
        &self.inner.pinned
    }

    /// A guard of the work tree. One guard serves a whole attempt.
    ///
    /// # Errors
    /// When the tree or the private store cannot be opened.
    pub fn guard(&self, options: GuardOptions) -> Result<TreeGuard, AttemptRepoError> {
        TreeGuard::new(self, options)
    }

    /// Whether nothing but the checkout has happened to the tree yet; asked
    /// once.
    pub(crate) fn take_fresh(&self) -> bool {
        self.inner.fresh.swap(false, Ordering::Relaxed)
    }

    /// What the configuration says of line ends: nothing, unless it is the
    /// operator's own.
    pub(crate) fn eol_settings(&self) -> EolSettings {
        if self.is_in_place() {
            EolSettings::read(&self.common_dir().join("config"))
        } else {
            EolSettings::default()
        }
    }

    /// Whether the executable bit on disk is the one that counts.
    pub(crate) fn file_mode(&self) -> bool {
        !self.is_in_place() || self.lender().file_mode
    }

    pub(crate) fn git(&self) -> &Git {
        &self.inner.git
    }

    pub(crate) fn objects(&self) -> &Objects {
        &self.inner.objects
    }

    pub(crate) fn common_dir(&self) -> &Path {
        &self.inner.common_dir
    }

    /// A run of git in this repository.
    pub(crate) fn invocation<A: AsRef<std::ffi::OsStr>>(
        &self,
        args: impl IntoIterator<Item = A>,
    ) -> Invocation {
        Invocation::new(args)
            .git_dir(self.git_dir())
            .work_tree(self.tree())
    }

    /// The commit that `HEAD` stands for; `None` while there is none.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn head_commit(&self) -> Result<Option<ObjectId>, AttemptRepoError> {
        if self.is_in_place() && self.lender().ref_format == RefFormat::Reftable {
            let run = self.invocation(["rev-parse", "--verify", "--quiet", "HEAD"]);
            let output = self.git().run_any(run).await?;
            return Ok(ObjectId::from_hex(output.stdout.trim_ascii()).ok());
        }
        let refs = crate::refs::Refs::new(self.git_dir(), self.common_dir());
        let path = self.git_dir().join("HEAD");
        refs.resolve("HEAD")
            .map_err(|source| AttemptRepoError::Io { path, source })
    }

    /// Lets the lender forget the base again, once the repository is removed.
    ///
    /// # Errors
    /// When git fails. A pin that is gone already is fine.
    pub async fn release_pin(&self) -> Result<(), AttemptRepoError> {
        match &self.inner.pin {
            Some(pin) => Ok(delete_ref(self.git(), self.lender(), pin).await?),
            None => Ok(()),
        }
    }
}

/// Lets the lender forget an attempt's base; for an attempt that is no longer
/// on disk.
///
/// # Errors
/// When git fails. A pin that is gone already is fine.
pub async fn release_pin(
    git: &Git,
    lender: &Repository,
    attempt: AttemptId,
) -> Result<(), GitError> {
    delete_ref(git, lender, &format!("refs/jig/pins/{attempt}")).await
}

async fn read_pinned(lender: &Repository, base: Base) -> Result<PinnedTree, AttemptRepoError> {
    let objects = lender.objects().clone();
    tokio::task::spawn_blocking(move || PinnedTree::read(&objects, base.tree()))
        .await
        .map_err(|error| AttemptRepoError::Io {
            path: lender.path().to_owned(),
            source: std::io::Error::other(error),
        })?
        .map_err(Into::into)
}

/// Moves one of jig's references in the lender. `expected`: what it must hold
/// now; `None` accepts anything.
pub(crate) async fn update_ref(
    git: &Git,
    lender: &Repository,
    name: &str,
    to: ObjectId,
    expected: Option<ObjectId>,
) -> Result<(), GitError> {
    let mut args = vec![
        "-c".to_owned(),
        "core.logAllRefUpdates=false".to_owned(),
        "update-ref".to_owned(),
        "--no-deref".to_owned(),
        name.to_owned(),
        to.to_string(),
    ];
    args.extend(expected.map(|id| id.to_string()));
    git.run(Invocation::new(args).git_dir(&lender.common_dir))
        .await
        .map(drop)
}

async fn delete_ref(git: &Git, lender: &Repository, name: &str) -> Result<(), GitError> {
    let run = Invocation::new(["update-ref", "--no-deref", "-d", name]).git_dir(&lender.common_dir);
    git.run(run).await.map(drop)
}
