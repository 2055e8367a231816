//! The HOMEs of one attempt and the environments that lead to them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use jig_process::environment::{Composition, Environment};
use jig_protocol::definition::{CachePolicy, Definition, Role};
use jig_runtime::{OperatorHome, Seed};

use super::{caches, cargo_config};
use crate::host::layout::{AttemptDirs, make_private_dir};

/// The largest configuration of the operator's that is looked at.
const CONFIG_BYTES: u64 = 1024 * 1024;

/// Why a HOME could not be prepared or seeded.
#[derive(Debug, thiserror::Error)]
pub enum HomeError {
    /// A directory or file could not be made.
    #[error("could not prepare {}", path.display())]
    Make {
        /// The HOME in question.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A login could not be written into a role's HOME.
    #[error("could not write {} into the HOME of role {role:?}", path.display())]
    Seed {
        /// The role.
        role: String,
        /// The file, below HOME.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The operator's login could not be read.
    #[error(transparent)]
    Login(#[from] jig_runtime::SeedError),
}

/// What a command is told about where it stands.
#[derive(Debug, Clone)]
pub struct CommandVars {
    /// `JIG_BASE_SHA`: the base commit, or the empty tree.
    pub base_sha: String,
    /// `JIG_HEAD_SHA`: a commit of what is in the work tree, on no branch.
    pub head_sha: String,
    /// `JIG_ATTEMPT_ID`.
    pub attempt_id: String,
    /// `JIG_PHASE`.
    pub phase: String,
}

/// The HOMEs of one attempt.
#[derive(Debug)]
pub struct Homes {
    dirs: AttemptDirs,
    operator: OperatorHome,
    /// This repository's caches; `None` when each attempt has its own.
    caches: Option<PathBuf>,
    /// The names each role may see.
    roles: BTreeMap<String, Vec<String>>,
    /// The operator's login as it was read, by role.
    pub(super) seeds: BTreeMap<String, Seed>,
}

impl Homes {
    /// The HOMEs of the attempt in `dirs`, on `repository` (its git directory);
    /// nothing is made yet.
    #[must_use]
    pub fn new(
        dirs: AttemptDirs,
        data_dir: &Path,
        repository: &Path,
        operator: OperatorHome,
        definition: &Definition,
    ) -> Self {
        let caches = match definition.caches {
            CachePolicy::Shared => Some(
                data_dir
                    .join("caches")
                    .join(caches::repository_key(repository)),
            ),
            CachePolicy::Off => None,
        };
        let roles = definition
            .roster
            .iter()
            .map(|(name, role)| (name.as_str().to_owned(), role.env.clone()))
            .collect();
        Self {
            dirs,
            operator,
            caches,
            roles,
            seeds: BTreeMap::new(),
        }
    }

    /// Makes every role's HOME, TMPDIR and `XDG_RUNTIME_DIR`, and HOME and
    /// TMPDIR of commands.
    ///
    /// # Errors
    /// When a directory or file cannot be made; names the HOME.
    pub fn make(&self) -> Result<(), HomeError> {
        let config = self.cargo_config();
        for (place, role) in self.roles.keys().enumerate() {
            let caches = self.caches.as_deref();
            let home = self.dirs.role_home(role);
            let runtime = self.dirs.role_runtime(place);
            make_private_dir(&runtime).map_err(|source| HomeError::Make {
                path: home.clone(),
                source,
            })?;
            make_home(
                &home,
                &self.dirs.role_tmp(role),
                caches.map(|dir| caches::of_role(dir, role)).as_deref(),
                config.as_deref(),
            )?;
        }
        let caches = self.caches.as_deref().map(caches::of_commands);
        make_home(
            &self.dirs.command_home(),
            &self.dirs.command_tmp(),
            caches.as_deref(),
            config.as_deref(),
        )
    }

    /// The HOME of a role.
    #[must_use]
    pub fn role_home(&self, role: &str) -> PathBuf {
        self.dirs.role_home(role)
    }

    /// Where notes for later phases, and a commit message, are left.
    #[must_use]
    pub fn handoff(&self) -> PathBuf {
        self.dirs.handoff()
    }

    /// The environment of an agent.
    #[must_use]
    pub fn agent_env(&self, name: &str, role: &Role) -> Environment {
        let caches = self.caches.as_deref();
        let place = self.roles.keys().position(|role| role == name);
        let runtime = place.map(|place| self.dirs.role_runtime(place));
        self.compose(
            &self.dirs.role_home(name),
            &self.dirs.role_tmp(name),
            &role.env,
            caches.map(|dir| caches::of_role(dir, name)).as_deref(),
            runtime
                .map(|dir| (OsString::from("XDG_RUNTIME_DIR"), dir.into_os_string()))
                .as_slice(),
        )
    }

    /// The environment of a code phase or a gate; `owner`'s variables apply
    /// where there is one.
    #[must_use]
    pub fn command_env(&self, owner: Option<&Role>, vars: &CommandVars) -> Environment {
        let extra: [(OsString, OsString); 5] = [
            ("JIG_BASE_SHA".into(), vars.base_sha.clone().into()),
            ("JIG_HEAD_SHA".into(), vars.head_sha.clone().into()),
            ("JIG_ATTEMPT_ID".into(), vars.attempt_id.clone().into()),
            ("JIG_PHASE".into(), vars.phase.clone().into()),
            ("JIG_HANDOFF".into(), self.dirs.handoff().into()),
        ];
        let caches = self.caches.as_deref().map(caches::of_commands);
        self.compose(
            &self.dirs.command_home(),
            &self.dirs.command_tmp(),
            owner.map_or(&[], |role| role.env.as_slice()),
            caches.as_deref(),
            &extra,
        )
    }

    fn compose(
        &self,
        home: &Path,
        tmp: &Path,
        allow: &[String],
        caches: Option<&Path>,
        extra: &[(OsString, OsString)],
    ) -> Environment {
        // Toolchains are looked for where the operator's home really is, also
        // when nobody exported HOME.
        let mut operator = self.operator.env.clone();
        operator.insert("HOME".into(), self.operator.home.clone().into());
        Composition {
            operator: &operator,
            home,
            tmp,
            allow,
            caches,
            extra,
        }
        .compose(&|path| path.exists())
    }

    /// What every HOME's cargo configuration says, where there is something to
    /// say.
    fn cargo_config(&self) -> Option<String> {
        let home = match self.operator.env.get(std::ffi::OsStr::new("CARGO_HOME")) {
            Some(dir) if !dir.is_empty() => PathBuf::from(dir),
            _ => self.operator.home.join(".cargo"),
        };
        let relative_to = home.parent().unwrap_or(&home);
        ["config.toml", "config"].iter().find_map(|name| {
            let path = home.join(name);
            let small = path
                .metadata()
                .is_ok_and(|meta| meta.is_file() && meta.len() <= CONFIG_BYTES);
            let text = small
                .then(|| std::fs::read_to_string(&path).ok())
                .flatten()?;
            cargo_config::without_secrets(&text, relative_to)
        })
    }

    pub(super) fn dirs(&self) -> &AttemptDirs {
        &self.dirs
    }

    pub(super) fn operator(&self) -> &OperatorHome {
        &self.operator
    }
}

/// Makes one HOME while nothing can be running in it yet.
fn make_home(
    home: &Path,
    tmp: &Path,
    caches: Option<&Path>,
    cargo_config: Option<&str>,
) -> Result<(), HomeError> {
    let make = || -> io::Result<()> {
        make_private_dir(home)?;
        make_private_dir(tmp)?;
        if let Some(caches) = caches {
            caches::link_into(home, caches)?;
        }
        if let Some(config) = cargo_config {
            make_private_dir(&home.join(".cargo"))?;
            std::fs::write(home.join(".cargo").join("config.toml"), config)?;
        }
        Ok(())
    };
    make().map_err(|source| HomeError::Make {
        path: home.to_owned(),
        source,
    })
}
