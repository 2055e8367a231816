//! Bringing an attempt's result into the lender: imported, not fetched, so that
//! nothing that either configuration names is run.

use std::collections::BTreeSet;

use gix::ObjectId;
use gix::objs::Kind;
use jig_protocol::limits;

use crate::attempt_repo::{AttemptRepo, AttemptRepoError, update_ref};
use crate::commit::CommitError;
use crate::history::commits_since;
use crate::objects::Objects;
use crate::parallel;
use crate::pinned_tree::PinnedKind;
use crate::repository::{RefFormat, RepositoryError};
use crate::run::{Input, Invocation};
use crate::tree::compare_trees;

/// A result that the lender has now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// The branch's short name.
    pub branch: String,
    /// Its commit.
    pub commit: ObjectId,
}

impl AttemptRepo {
    /// Copies `commit` and what it needs into the lender, then makes the branch
    /// `jig/<job>/<n>` there. Doing it twice is the same as doing it once.
    ///
    /// Nothing else of the lender changes. The objects are checked on the way
    /// and once more where they arrived; the branch appears last, so a crash
    /// leaves at most unused objects.
    ///
    /// # Errors
    /// When git fails, when the branch exists and is another commit, or when
    /// the lender answers with other content than was delivered.
    pub async fn import(&self, commit: ObjectId) -> Result<Imported, CommitError> {
        let Some(name) = self.branch().filter(|_| !self.is_in_place()) else {
            let why = "work in place has no branch to deliver".to_owned();
            let path = self.tree().to_owned();
            return Err(AttemptRepoError::NotInPlace { path, why }.into());
        };
        let name = name.to_owned();
        let imported = Imported {
            branch: name.trim_start_matches("refs/heads/").to_owned(),
            commit,
        };
        if self.branch_in_lender(&name).await? == Some(commit) {
            return Ok(imported);
        }
        let directory = self.directory().join("import");
        let io = |source| CommitError::Io {
            path: directory.clone(),
            source,
        };
        crate::removal::remove_tree(&directory).map_err(|error| io(error.into()))?;
        std::fs::create_dir_all(&directory).map_err(io)?;
        let pack = self.pack(commit, &directory).await?;
        let run = Invocation::new(["index-pack", "--strict", "--stdin"])
            .git_dir(self.git_dir())
            .env("GIT_OBJECT_DIRECTORY", self.lender().objects_dir())
            .input(Input::File(pack))
            .timeout(limits::UNWIND_TIMEOUT);
        self.git().run(run).await?;
        crate::removal::remove_tree(&directory).map_err(|error| io(error.into()))?;
        self.check_arrived(commit).await?;
        let zero = ObjectId::null(commit.kind());
        update_ref(self.git(), self.lender(), &name, commit, Some(zero)).await?;
        Ok(imported)
    }

    /// Packs `commit` without what the base has; gives the pack's file.
    async fn pack(
        &self,
        commit: ObjectId,
        directory: &std::path::Path,
    ) -> Result<std::path::PathBuf, CommitError> {
        let mut revisions = format!("{commit}\n");
        if let Some(base) = self.base().commit() {
            revisions.push_str(&format!("^{base}\n"));
        }
        let prefix = directory.join("result");
        let args = [
            std::ffi::OsStr::new("pack-objects"),
            "--revs".as_ref(),
            "--quiet".as_ref(),
            prefix.as_os_str(),
        ];
        let run = Invocation::new(args)
            .git_dir(self.git_dir())
            .input(Input::Bytes(revisions.into_bytes()))
            .timeout(limits::UNWIND_TIMEOUT);
        let answer = self.git().run(run).await?;
        let hash = String::from_utf8_lossy(answer.trim_ascii()).into_owned();
        Ok(directory.join(format!("result-{hash}.pack")))
    }

    /// Reads everything new from the lender. What was there before was not
    /// copied, and may be an object that lies under a wrong name.
    async fn check_arrived(&self, commit: ObjectId) -> Result<(), CommitError> {
        let repo = self.clone();
        tokio::task::spawn_blocking(move || check_arrived(&repo, commit))
            .await
            .unwrap_or(Err(CommitError::Interrupted))
    }

    async fn branch_in_lender(&self, name: &str) -> Result<Option<ObjectId>, CommitError> {
        let lender = self.lender();
        if lender.ref_format == RefFormat::Reftable {
            let run = Invocation::new(["rev-parse", "--verify", "--quiet", name])
                .git_dir(&lender.common_dir);
            let output = self.git().run_any(run).await?;
            return Ok(ObjectId::from_hex(output.stdout.trim_ascii()).ok());
        }
        lender.refs().resolve(name).map_err(|source| {
            let path = lender.common_dir.join(name);
            CommitError::Repository(RepositoryError::Unreadable { path, source }.into())
        })
    }
}

fn check_arrived(repo: &AttemptRepo, commit: ObjectId) -> Result<(), CommitError> {
    let lender = Objects::open(repo.lender().objects_dir(), commit.kind())?;
    let mut arrived = BTreeSet::new();
    for (new, parent) in commits_since(repo, repo.base().commit(), commit)? {
        let after = lender.commit_tree(&new)?;
        let before = match parent {
            Some(parent) => lender.commit_tree(&parent)?,
            None => ObjectId::empty_tree(commit.kind()),
        };
        for change in compare_trees((&lender, before), (&lender, after))? {
            if let Some((kind, id)) = change.right
                && kind != PinnedKind::Submodule
            {
                arrived.insert(id);
            }
        }
    }
    let arrived: Vec<ObjectId> = arrived.into_iter().collect();
    parallel::for_each(
        &arrived,
        || (lender.handle(), Vec::new()),
        |(handle, buffer), id| lender.check(handle, id, Kind::Blob, buffer),
    )?;
    Ok(())
}
