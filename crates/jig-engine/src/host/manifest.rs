//! `manifest.json`: what somebody who finds an attempt's directory must know.
//!
//! It is written whole each time, to a temporary file that takes the old one's
//! place, so that a reader sees the old text or the new one and a power loss
//! leaves either. A supervisor is recorded before what it supervises can do
//! anything, and forgotten after everything it supervised is gone.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jig_process::ProcessIdentity;
use jig_protocol::ids::{AttemptId, JobId, RunId};
use jig_protocol::repo_path::RepoPath;
use serde::{Deserialize, Serialize};

/// The layout of the file that this version writes and reads.
pub const MANIFEST_SCHEMA: u32 = 1;

/// The largest manifest that is read.
const MANIFEST_BYTES: u64 = 1024 * 1024;

/// Where an attempt works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ManifestMode {
    /// In a tree of its own.
    OwnTree,
    /// In the operator's checkout.
    InPlace,
}

/// The content of `manifest.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// [`MANIFEST_SCHEMA`].
    pub schema: u32,
    /// The run.
    pub run_id: RunId,
    /// The job.
    pub job_id: JobId,
    /// The attempt; also the directory's name.
    pub attempt_id: AttemptId,
    /// Which attempt at the job, from 1.
    pub attempt_number: u32,
    /// The git directory that objects are borrowed from; absolute.
    pub lender: RepoPath,
    /// The base commit, or the empty tree; in hex.
    pub base: String,
    /// The full name of the attempt branch; in place, the branch that was
    /// checked out, if any.
    pub branch: Option<String>,
    /// Where the attempt works.
    pub mode: ManifestMode,
    /// The work tree; absolute.
    pub work_tree: RepoPath,
    /// The names whose values are secret; absent when that is not known.
    #[serde(default)]
    pub sensitive_env: Option<BTreeSet<String>>,
    /// Live supervisors.
    pub process_groups: Vec<ProcessIdentity>,
}

/// Why a manifest could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// The file system refused.
    #[error("could not {act} {}", path.display())]
    Io {
        /// `read` or `write`.
        act: &'static str,
        /// The manifest.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The text is no manifest.
    #[error("{} is malformed", path.display())]
    Malformed {
        /// The manifest.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
    /// Another version of jig wrote it.
    #[error("{} has schema {found}, this jig reads {MANIFEST_SCHEMA}", path.display())]
    Schema {
        /// The manifest.
        path: PathBuf,
        /// Its schema.
        found: u64,
    },
}

impl Manifest {
    /// Reads the manifest at `path`; `None` when there is none.
    ///
    /// # Errors
    /// When it cannot be read, is malformed, or has another schema. Never a
    /// part of it.
    pub fn read(path: &Path) -> Result<Option<Self>, ManifestError> {
        let failed = |source| ManifestError::Io {
            act: "read",
            path: path.to_owned(),
            source,
        };
        let malformed = |source| ManifestError::Malformed {
            path: path.to_owned(),
            source,
        };
        let text = match read_bounded(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        let value: serde_json::Value = serde_json::from_str(&text).map_err(malformed)?;
        match value.get("schema").and_then(serde_json::Value::as_u64) {
            Some(found) if found != u64::from(MANIFEST_SCHEMA) => {
                return Err(ManifestError::Schema {
                    path: path.to_owned(),
                    found,
                });
            }
            _ => {}
        }
        // From the text, not the value: a repeated key is an error only there.
        serde_json::from_str(&text).map(Some).map_err(malformed)
    }
}

fn read_bounded(path: &Path) -> io::Result<String> {
    let file = std::fs::OpenOptions::new()
        .read(true)
        .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits() as _)
        .open(path)?;
    if file.metadata()?.len() > MANIFEST_BYTES {
        return Err(io::Error::other("too large for a manifest"));
    }
    io::read_to_string(file)
}

/// The manifest of a running attempt. Clones share it; every change is on disk
/// when the call returns.
#[derive(Debug, Clone)]
pub struct ManifestFile {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    path: PathBuf,
    manifest: Mutex<Manifest>,
}

impl ManifestFile {
    /// Writes the first version.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn create(path: PathBuf, manifest: Manifest) -> Result<Self, ManifestError> {
        write(&path, &manifest)?;
        Ok(Self {
            shared: Arc::new(Shared {
                path,
                manifest: Mutex::new(manifest),
            }),
        })
    }

    /// Records a live supervisor.
    ///
    /// # Errors
    /// When the manifest cannot be written; what is supervised must then not go
    /// on.
    pub fn record(&self, process: &ProcessIdentity) -> Result<(), ManifestError> {
        let mut manifest = self.lock();
        if manifest.process_groups.contains(process) {
            return Ok(());
        }
        manifest.process_groups.push(process.clone());
        let written = write(&self.shared.path, &manifest);
        if written.is_err() {
            manifest.process_groups.pop();
        }
        written
    }

    /// Forgets a supervisor of which nothing is left.
    ///
    /// # Errors
    /// When the manifest cannot be written. The process is forgotten in memory
    /// and goes from disk with the next change.
    pub fn forget(&self, process: &ProcessIdentity) -> Result<(), ManifestError> {
        let mut manifest = self.lock();
        let before = manifest.process_groups.len();
        manifest.process_groups.retain(|other| other != process);
        if manifest.process_groups.len() == before {
            return Ok(());
        }
        write(&self.shared.path, &manifest)
    }

    /// What the file says now.
    #[must_use]
    pub fn current(&self) -> Manifest {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Manifest> {
        // Every change is one push, pop or retain; none leaves it half made.
        self.shared
            .manifest
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

fn write(path: &Path, manifest: &Manifest) -> Result<(), ManifestError> {
    let text = serde_json::to_vec_pretty(manifest).map_err(io::Error::other);
    text.and_then(|text| replace_file(path, &text))
        .map_err(|source| ManifestError::Io {
            act: "write",
            path: path.to_owned(),
            source,
        })
}

/// Puts `content` in the place of the file at `path`, 0600, so that it is there
/// whole or not at all, also after a power loss.
pub(crate) fn replace_file(path: &Path, content: &[u8]) -> io::Result<()> {
    let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
    let dir = path.parent().ok_or_else(invalid)?;
    let mut name = path.file_name().ok_or_else(invalid)?.to_owned();
    name.push(".new");
    let temporary = dir.join(name);
    let mut file = File::options()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits() as _)
        .open(&temporary)?;
    file.write_all(content)?;
    file.sync_all()?;
    std::fs::rename(&temporary, path)?;
    File::open(dir)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use jig_protocol::time::Timestamp;

    fn manifest() -> Manifest {
        let at = Timestamp::from_millis(1);
        Manifest {
            schema: MANIFEST_SCHEMA,
            run_id: RunId::from_parts(at, [1; 10]),
            job_id: JobId::from_parts(at, [2; 10]),
            attempt_id: AttemptId::from_parts(at, [3; 10]),
            attempt_number: 1,
            lender: RepoPath::from_bytes(b"/re\xffpo/.git".to_vec()),
            base: "0".repeat(40),
            branch: Some("refs/heads/jig/x/1".into()),
            mode: ManifestMode::OwnTree,
            work_tree: "/tree".into(),
            sensitive_env: None,
            process_groups: Vec::new(),
        }
    }

    #[test]
    fn what_is_recorded_is_on_disk_until_it_is_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("manifest.json");
        assert!(Manifest::read(&path).unwrap().is_none());
        let file = ManifestFile::create(path.clone(), manifest()).unwrap();
        assert_eq!(Manifest::read(&path).unwrap().unwrap(), manifest());
        let me = ProcessIdentity::current().unwrap();
        file.record(&me).unwrap();
        file.record(&me).unwrap();
        let recorded = Manifest::read(&path).unwrap().unwrap().process_groups;
        assert_eq!(recorded, std::slice::from_ref(&me));
        file.forget(&me).unwrap();
        assert!(
            Manifest::read(&path)
                .unwrap()
                .unwrap()
                .process_groups
                .is_empty()
        );
    }

    #[test]
    fn concurrent_records_are_all_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("manifest.json");
        let file = ManifestFile::create(path.clone(), manifest()).unwrap();
        let barrier = std::sync::Barrier::new(8);
        std::thread::scope(|scope| {
            for pid in 0..8_u32 {
                let (file, barrier) = (file.clone(), &barrier);
                scope.spawn(move || {
                    let json = format!(r#"{{"boot_id":"b","pid":{},"start_time":1}}"#, pid + 100);
                    barrier.wait();
                    file.record(&serde_json::from_str(&json).unwrap()).unwrap();
                });
            }
        });
        assert_eq!(
            Manifest::read(&path).unwrap().unwrap().process_groups.len(),
            8
        );
    }

    #[test]
    fn a_part_of_a_manifest_is_never_taken_for_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("manifest.json");
        let whole = serde_json::to_string(&manifest()).unwrap();
        for bad in [
            String::new(),
            whole[..whole.len() - 1].to_owned(),
            whole.replace("\"process_groups\":[]", "\"process_groups\":[{\"pid\":1}]"),
            whole.replace(",\"process_groups\":[]", ""),
            whole.replacen('{', "{\"unknown\":1,", 1),
            whole.replacen('{', "{\"base\":\"x\",", 1),
        ] {
            std::fs::write(&path, &bad).unwrap();
            let error = Manifest::read(&path).unwrap_err();
            assert!(
                matches!(error, ManifestError::Malformed { .. }),
                "{bad}: {error}"
            );
        }
        std::fs::write(&path, whole.replace("\"schema\":1", "\"schema\":2")).unwrap();
        let error = Manifest::read(&path).unwrap_err();
        assert!(
            matches!(error, ManifestError::Schema { found: 2, .. }),
            "{error}"
        );
    }
}
