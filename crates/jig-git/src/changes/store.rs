//! Content kept for exact restore, by its hash, in a directory of jig's own.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::entry::FileTime;
use super::fingerprint::hash_file;

/// How much a store may hold.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Budget {
    pub(crate) bytes: u64,
    pub(crate) files: usize,
}

impl Budget {
    /// What ignored files and build outputs may fill: a quarter stays free of
    /// them, since a build can fill any budget and source is worth more.
    pub(crate) fn for_uncommitted(self) -> Self {
        Self {
            bytes: self.bytes - self.bytes / 4,
            files: self.files - self.files / 4,
        }
    }
}

/// Files by the BLAKE3 hash of their content.
#[derive(Debug)]
pub(crate) struct ContentStore {
    directory: PathBuf,
    budget: Budget,
    held: Mutex<Held>,
    counter: AtomicU64,
}

#[derive(Debug, Default)]
struct Held {
    sizes: HashMap<[u8; 32], u64>,
    bytes: u64,
}

impl ContentStore {
    /// Opens the store, making its directory when it is not there.
    pub(crate) fn open(directory: &Path, budget: Budget) -> std::io::Result<Self> {
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)?;
        let mut held = Held::default();
        for entry in std::fs::read_dir(directory)? {
            let entry = entry?;
            let hash = entry
                .file_name()
                .to_str()
                .and_then(|name| blake3::Hash::from_hex(name).ok());
            if let Some(hash) = hash {
                held.add(*hash.as_bytes(), entry.metadata()?.len());
            }
        }
        Ok(Self {
            directory: directory.to_owned(),
            budget,
            held: Mutex::new(held),
            counter: AtomicU64::new(0),
        })
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// What time the file system has now.
    pub(crate) fn clock(&self) -> std::io::Result<FileTime> {
        let path = self.directory.join("clock");
        let _ = std::fs::remove_file(&path);
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&path)?;
        let meta = file.metadata()?;
        Ok(FileTime {
            seconds: meta.ctime(),
            nanos: u32::try_from(meta.ctime_nsec()).unwrap_or(0),
        })
    }

    pub(crate) fn holds(&self, hash: &[u8; 32]) -> bool {
        self.lock().sizes.contains_key(hash)
    }

    pub(crate) const fn budget(&self) -> Budget {
        self.budget
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lock().sizes.is_empty()
    }

    /// Keeps the content of `source`, which hashes to `hash`. False when all
    /// together would be more than `within`, or the file has other content by
    /// now.
    pub(crate) fn keep(
        &self,
        source: &mut File,
        hash: [u8; 32],
        size: u64,
        within: Budget,
    ) -> std::io::Result<bool> {
        // Reserved at once: others may be keeping theirs at the same time.
        {
            let mut held = self.lock();
            if held.sizes.contains_key(&hash) {
                return Ok(true);
            }
            if held.bytes.saturating_add(size) > within.bytes || held.sizes.len() >= within.files {
                return Ok(false);
            }
            held.add(hash, size);
        }
        let kept = self.copy(source, &hash);
        if !matches!(kept, Ok(true)) {
            self.lock().remove(&hash);
        }
        kept
    }

    /// Copies `source` into place; false when it no longer hashes to `hash`.
    fn copy(&self, source: &mut File, hash: &[u8; 32]) -> std::io::Result<bool> {
        let number = self.counter.fetch_add(1, Ordering::Relaxed);
        let temporary = self
            .directory
            .join(format!("incoming-{}-{number}", std::process::id()));
        let mut copy = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&temporary)?;
        source.seek(SeekFrom::Start(0))?;
        clone_or_copy(source, &mut copy)?;
        copy.seek(SeekFrom::Start(0))?;
        if hash_file(&copy)? != *hash {
            std::fs::remove_file(&temporary)?;
            return Ok(false);
        }
        std::fs::rename(&temporary, self.path(hash))?;
        Ok(true)
    }

    /// Gives kept content a second name, which stays when the store forgets it.
    pub(crate) fn link_to(&self, hash: &[u8; 32], name: &Path) -> std::io::Result<()> {
        std::fs::hard_link(self.path(hash), name)
    }

    /// Opens kept content, after checking that it still is what it was.
    pub(crate) fn open_kept(&self, hash: &[u8; 32]) -> std::io::Result<Option<File>> {
        let mut file = match File::open(self.path(hash)) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        if hash_file(&file)? != *hash {
            return Ok(None);
        }
        file.seek(SeekFrom::Start(0))?;
        Ok(Some(file))
    }

    /// Reads kept content, when it still is what it was: `size` bytes that hash
    /// to `hash`.
    pub(crate) fn read_kept(&self, hash: &[u8; 32], size: u64) -> std::io::Result<Option<Vec<u8>>> {
        match File::open(self.path(hash)) {
            Ok(file) => read_as(file, hash, size),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Forgets content that `wanted` does not name.
    pub(crate) fn retain(&self, wanted: &dyn Fn(&[u8; 32]) -> bool) -> std::io::Result<()> {
        let mut held = self.lock();
        let unwanted: Vec<[u8; 32]> = held
            .sizes
            .keys()
            .filter(|hash| !wanted(hash))
            .copied()
            .collect();
        for hash in unwanted {
            match std::fs::remove_file(self.path(&hash)) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            held.remove(&hash);
        }
        Ok(())
    }

    fn path(&self, hash: &[u8; 32]) -> PathBuf {
        self.directory
            .join(blake3::Hash::from_bytes(*hash).to_hex().as_str())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    fn add(&mut self, hash: [u8; 32], size: u64) {
        if self.sizes.insert(hash, size).is_none() {
            self.bytes += size;
        }
    }

    fn remove(&mut self, hash: &[u8; 32]) {
        if let Some(size) = self.sizes.remove(hash) {
            self.bytes -= size;
        }
    }
}

/// Reads a file, when it holds `size` bytes that hash to `hash`.
pub(crate) fn read_as(file: File, hash: &[u8; 32], size: u64) -> std::io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
    // Whatever it has grown to is not read.
    file.take(size.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok((blake3::hash(&bytes).as_bytes() == hash).then_some(bytes))
}

/// Shares the blocks where the file system can, else copies.
pub(crate) fn clone_or_copy(source: &mut File, target: &mut File) -> std::io::Result<()> {
    #[cfg(target_os = "linux")]
    if rustix::fs::ioctl_ficlone(&*target, &*source).is_ok() {
        return Ok(());
    }
    std::io::copy(source, target).map(drop)
}
