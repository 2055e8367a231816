//! An attempt on a real repository, and somebody who acts in its tree.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use jig_engine::boundary::{Boundary, EntryKind, Judge, JudgeKind, Verdict};
use jig_engine::host::{HostConfig, Mode, PrepareError, PrepareSpec, PreparedAttempt, prepare};
use jig_engine::redact::Redactor;
use jig_git::{Git, GitConfig};
use jig_process::{Host, SystemClock};
use jig_protocol::definition::{Definition, PathPattern};
use jig_protocol::ids::{AttemptId, JobId, RunId};
use jig_protocol::repo_path::RepoPath;
use jig_protocol::time::Timestamp;
use jig_runtime::OperatorHome;
use jig_testkit::Repo;

/// What every test of the host side starts from.
pub(crate) struct Fixture {
    pub(crate) repo: Repo,
    pub(crate) config: HostConfig,
    pub(crate) definition: Definition,
}

/// A definition that parses; the roster and phases of most tests.
pub(crate) const PLAIN: &str = "
name: plain
roster:
  builder: {model: m, system_prompt: s, user_prompt: u, writes: ['src/**']}
phases:
  - {name: build, kind: agent, owner: builder}
build_outputs: ['target/**']
";

pub(crate) fn definition(text: &str) -> Definition {
    let parsed = jig_protocol::definition::parse(text);
    match parsed.definition {
        Some(definition) => definition,
        None => panic!("{:#?}", parsed.diagnostics),
    }
}

pub(crate) fn path_env() -> OsString {
    std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into())
}

impl Fixture {
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        Self::on(Repo::with_files(files))
    }

    pub(crate) fn on(repo: Repo) -> Self {
        let home = repo.scratch().join("operator");
        std::fs::create_dir_all(&home).unwrap();
        let env: BTreeMap<OsString, OsString> = [
            ("PATH".into(), path_env()),
            ("HOME".into(), home.clone().into()),
        ]
        .into();
        let config = HostConfig {
            data_dir: repo.scratch().join("data"),
            git: Git::new(GitConfig::new(path_env())),
            clock: Arc::new(SystemClock::new()),
            operator: OperatorHome { home, env },
            // Any program: nothing is run below it until a test asks.
            host: Host::at(std::env::current_exe().unwrap()).unwrap(),
        };
        Self {
            repo,
            config,
            definition: definition(PLAIN),
        }
    }

    pub(crate) fn defined(mut self, text: &str) -> Self {
        self.definition = definition(text);
        self
    }

    /// With a host that can supervise commands.
    pub(crate) fn supervised(mut self) -> Self {
        self.config.host = jig_testkit::host();
        self
    }

    /// The base as whoever admits a run pins it.
    pub(crate) fn base(&self) -> String {
        let head = self
            .repo
            .try_git(&["rev-parse", "--verify", "--quiet", "HEAD"]);
        if head.status.success() {
            return String::from_utf8(head.stdout).unwrap().trim().to_owned();
        }
        self.repo.git(&["hash-object", "-t", "tree", "/dev/null"])
    }

    pub(crate) async fn try_prepare(
        &self,
        mode: Mode,
        path: &Path,
    ) -> Result<PreparedAttempt, PrepareError> {
        self.try_prepare_in(&self.config, mode, path).await
    }

    pub(crate) async fn try_prepare_in(
        &self,
        config: &HostConfig,
        mode: Mode,
        path: &Path,
    ) -> Result<PreparedAttempt, PrepareError> {
        let base = self.base();
        let spec = PrepareSpec {
            run_id: RunId::from_parts(NOW, [1; 10]),
            job_id: JobId::from_parts(NOW, [2; 10]),
            attempt_id: AttemptId::from_parts(NOW, [3; 10]),
            attempt_number: 1,
            lender: path,
            base: &base,
            mode,
            definition: &self.definition,
        };
        prepare(config, &spec).await
    }

    pub(crate) async fn attempt(&self) -> Attempt {
        self.attempt_in(Mode::OwnTree).await
    }

    pub(crate) async fn attempt_in(&self, mode: Mode) -> Attempt {
        let prepared = self.try_prepare(mode, &self.repo.path()).await.unwrap();
        let clock = Arc::clone(&self.config.clock);
        let boundary = Boundary::open(&prepared, &self.definition, clock)
            .await
            .unwrap();
        Attempt { prepared, boundary }
    }

    /// Everything of the operator's repository that jig must leave alone.
    pub(crate) fn operator_state(&self) -> String {
        let git_dir = self.repo.path().join(".git");
        let read = |name: &str| std::fs::read(git_dir.join(name)).unwrap_or_default();
        let refs: String = self
            .repo
            .refs()
            .lines()
            .filter(|line| !line.starts_with("refs/jig/") && !line.starts_with("refs/heads/jig/"))
            .map(|line| format!("{line}\n"))
            .collect();
        format!(
            "{}\n{refs}\nconfig {}\nindex {}\nfetch head {}",
            self.repo.status(),
            blake3::hash(&read("config")),
            blake3::hash(&read("index")),
            git_dir.join("FETCH_HEAD").exists(),
        )
    }
}

pub(crate) const NOW: Timestamp = Timestamp::from_millis(1_767_225_600_000);

/// A prepared attempt and its boundary.
pub(crate) struct Attempt {
    pub(crate) prepared: PreparedAttempt,
    pub(crate) boundary: Boundary,
}

/// Who acts, as a test says it.
#[derive(Clone, Copy)]
pub(crate) struct Actor<'a> {
    pub(crate) kind: EntryKind,
    pub(crate) writes: Option<&'a [&'a str]>,
    pub(crate) commits: bool,
}

/// An agent that may write below `src/`.
pub(crate) const BUILDER: Actor<'static> = Actor {
    kind: EntryKind::Agent,
    writes: Some(&["src/**"]),
    commits: false,
};

/// An agent that may write anything.
pub(crate) const FREE: Actor<'static> = Actor {
    writes: None,
    ..BUILDER
};

/// An agent that may write nothing.
pub(crate) const READER: Actor<'static> = Actor {
    writes: Some(&[]),
    ..BUILDER
};

/// A command of the operator.
pub(crate) const COMMAND: Actor<'static> = Actor {
    kind: EntryKind::Code,
    writes: None,
    commits: true,
};

impl Attempt {
    pub(crate) fn tree(&self) -> &Path {
        &self.prepared.work_tree
    }

    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.tree().join(path)
    }

    pub(crate) fn read(&self, path: &str) -> String {
        match std::fs::read(self.at(path)) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) => panic!("{path}: {error}"),
        }
    }

    /// Whether anything is there, links not followed.
    pub(crate) fn exists(&self, path: &str) -> bool {
        self.at(path).symlink_metadata().is_ok()
    }

    /// Runs a shell script in the tree as an agent would: with everything that
    /// git lets it do, and nothing of jig's.
    #[track_caller]
    pub(crate) fn act(&self, script: &str) {
        let output = Command::new("/bin/sh")
            .args(["-ec", script])
            .current_dir(self.tree())
            .env_clear()
            .env("PATH", path_env())
            .env("HOME", self.prepared.dirs.command_home())
            .env("GIT_DIR_OF_ATTEMPT", self.prepared.repo.git_dir())
            .env("LENDER", self.prepared.repo.lender().common_dir.as_os_str())
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{script}\n{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
    }

    /// One entry: the script acts, then it is judged.
    pub(crate) async fn entry(&mut self, actor: Actor<'_>, script: &str) -> Verdict {
        let before = self.boundary.before_entry(actor.kind).await.unwrap();
        self.act(script);
        self.judge(actor, &before).await
    }

    pub(crate) async fn judge(
        &mut self,
        actor: Actor<'_>,
        before: &jig_engine::boundary::Before,
    ) -> Verdict {
        let writes: Option<Vec<PathPattern>> = actor
            .writes
            .map(|texts| texts.iter().map(|text| text.parse().unwrap()).collect());
        let outputs = vec!["target/**".parse().unwrap()];
        let rules = Judge {
            role: "tester",
            writes: writes.as_deref(),
            build_outputs: &outputs,
            commits: actor.commits,
            kind: match actor.kind {
                EntryKind::Agent => JudgeKind::Agent,
                EntryKind::Code => JudgeKind::Code,
            },
        };
        self.boundary.after_entry(before, rules).await.unwrap()
    }

    /// Git in the attempt's repository, for assertions.
    #[track_caller]
    pub(crate) fn git(&self, args: &[&str]) -> String {
        let output = Command::new("git")
            .args(args)
            .current_dir(self.tree())
            .env_clear()
            .env("PATH", path_env())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "git {args:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout)
            .trim_end()
            .to_owned()
    }
}

/// The paths of a verdict's breaches with their outcomes, one per line.
pub(crate) fn breaches(verdict: &Verdict) -> Vec<(String, String)> {
    verdict
        .breaches
        .iter()
        .map(|breach| (breach.path.to_string(), breach.outcome.clone()))
        .collect()
}

pub(crate) fn paths(list: &[RepoPath]) -> Vec<String> {
    list.iter().map(ToString::to_string).collect()
}

pub(crate) fn no_secrets() -> Redactor {
    Redactor::new(Vec::<(String, Vec<u8>)>::new())
}
