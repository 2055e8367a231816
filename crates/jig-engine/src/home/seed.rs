//! The operator's login in a role's HOME: read once, there only while a send
//! runs.

use std::path::PathBuf;

use jig_protocol::time::Timestamp;
use jig_runtime::AgentRuntime;

use super::environments::{HomeError, Homes};
use crate::beneath;

impl Homes {
    /// Reads what `runtime` needs of the operator's login for `role`, unless
    /// that was done before. To be called serially, before any role acts.
    ///
    /// # Errors
    /// When there is no usable login; says what to do.
    pub async fn seed(&mut self, role: &str, runtime: &dyn AgentRuntime) -> Result<(), HomeError> {
        if self.seeds.contains_key(role) {
            return Ok(());
        }
        let seed = runtime.seed(self.operator()).await?;
        self.seeds.insert(role.to_owned(), seed);
        Ok(())
    }

    /// Until when the role's login is good, where it says so.
    #[must_use]
    pub fn login_expires_at(&self, role: &str) -> Option<Timestamp> {
        self.seeds.get(role)?.expires_at
    }

    /// Writes the login into the role's HOME, just before a send, and gives the
    /// files that must be gone after it. Nothing of the role may be running.
    ///
    /// The role has had its HOME to itself: whatever it left in the way is
    /// replaced, never followed.
    ///
    /// # Errors
    /// When a file cannot be written. What was written before is removed.
    pub fn write_seed(&self, role: &str) -> Result<Vec<PathBuf>, HomeError> {
        let Some(seed) = self.seeds.get(role) else {
            return Ok(Vec::new());
        };
        let home = self.dirs().role_home(role);
        let failed = |path: &PathBuf, source| HomeError::Seed {
            role: role.to_owned(),
            path: path.clone(),
            source,
        };
        for dir in &seed.dirs {
            beneath::make_dir_beneath(&home, dir).map_err(|source| failed(dir, source))?;
        }
        let mut written = Vec::new();
        for (path, content) in &seed.files {
            if let Err(source) = beneath::write_beneath(&home, path, content) {
                // The first error counts; what cannot be removed now is on no
                // list but dies with the HOME.
                let _ = self.remove_seed(role);
                return Err(failed(path, source));
            }
            written.push(home.join(path));
        }
        Ok(written)
    }

    /// Removes the login from the role's HOME, as the supervisor of the send
    /// has done already unless it was killed.
    ///
    /// # Errors
    /// When a file is there and cannot be removed.
    pub fn remove_seed(&self, role: &str) -> Result<(), HomeError> {
        let Some(seed) = self.seeds.get(role) else {
            return Ok(());
        };
        let home = self.dirs().role_home(role);
        let mut first = Ok(());
        for (path, _) in &seed.files {
            if let Err(source) = beneath::remove_beneath(&home, path) {
                first = first.and(Err(HomeError::Seed {
                    role: role.to_owned(),
                    path: path.clone(),
                    source,
                }));
            }
        }
        first
    }

    /// Removes every login that may still be in a HOME, and says what stays.
    pub(crate) fn remove_seeds(&self) -> Vec<String> {
        self.seeds
            .keys()
            .filter_map(|role| self.remove_seed(role).err())
            .map(|error| error.to_string())
            .collect()
    }
}
