//! Download caches that outlive an attempt.
//!
//! The commands of one repository share theirs; every agent role has its own.
//! Only downloads are shared, never a tool's configuration or programs.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use jig_process::environment::{CACHES, CacheKind, cache_links};

use crate::host::layout::make_private_dir;

/// Cargo's locks lie beside its downloads. Sharing the one without the other
/// would let two attempts unpack the same crate at once.
const CARGO_LOCKS: [&str; 2] = [".package-cache", ".package-cache-mutate"];

/// The name of a repository's directory below `<data>/caches/`: readable, and
/// different for every path.
#[must_use]
pub fn repository_key(repository: &Path) -> String {
    let digest = blake3::hash(repository.as_os_str().as_bytes()).to_hex();
    let checkout = if repository.file_name() == Some(".git".as_ref()) {
        repository.parent().unwrap_or(repository)
    } else {
        repository
    };
    let name: String = checkout
        .file_name()
        .map(|name| name.to_string_lossy())
        .unwrap_or_default()
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || "-_.".contains(*c))
        .take(40)
        .collect();
    let name = name.trim_start_matches('.');
    let short = digest.get(..16).unwrap_or(&digest);
    if name.is_empty() {
        short.to_owned()
    } else {
        format!("{name}-{short}")
    }
}

/// The caches of the commands of a repository.
pub(super) fn of_commands(repository: &Path) -> PathBuf {
    repository.join("commands")
}

/// The caches of one role of a repository.
pub(super) fn of_role(repository: &Path, role: &str) -> PathBuf {
    repository.join("roles").join(role)
}

/// Makes the cache directories, and the links by which a new, still private
/// HOME reaches them.
pub(super) fn link_into(home: &Path, caches: &Path) -> io::Result<()> {
    for cache in CACHES {
        if matches!(cache.kind, CacheKind::Whole) {
            make_private_dir(&caches.join(cache.tool))?;
        }
    }
    for link in cache_links(home, caches) {
        make_private_dir(&link.target)?;
        if let Some(parent) = link.link.parent() {
            make_private_dir(parent)?;
        }
        symlink(&link.target, &link.link)?;
    }
    for lock in CARGO_LOCKS {
        symlink(
            caches.join("cargo").join(lock),
            home.join(".cargo").join(lock),
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_readable_safe_and_distinct() {
        let key = repository_key(Path::new("/home/me/pro jects/my app/.git"));
        assert!(key.starts_with("myapp-"), "{key}");
        assert_ne!(
            repository_key(Path::new("/a/x/.git")),
            repository_key(Path::new("/b/x/.git"))
        );
        let dots = repository_key(Path::new("/a/..."));
        assert!(!dots.contains('.') && dots.len() == 16, "{dots}");
    }

    #[test]
    fn downloads_are_shared_and_configuration_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let caches = dir.path().join("caches");
        let homes = [dir.path().join("one"), dir.path().join("two")];
        for home in &homes {
            std::fs::create_dir(home).unwrap();
            link_into(home, &caches).unwrap();
        }
        std::fs::write(homes[0].join(".cargo/registry/crate"), "downloaded").unwrap();
        std::fs::write(homes[0].join(".cargo/config.toml"), "planted").unwrap();
        std::fs::write(homes[0].join(".cargo/.package-cache"), "").unwrap();
        assert!(homes[1].join(".cargo/registry/crate").exists());
        std::fs::create_dir_all(homes[0].join(".npm/_npx/x")).unwrap();
        std::fs::write(homes[0].join(".npm/_cacache/x"), "downloaded").unwrap();
        assert!(homes[1].join(".npm/_cacache/x").exists());
        assert!(
            !homes[1].join(".npm/_npx").exists(),
            "programs are not shared"
        );
        assert!(!homes[1].join(".cargo/config.toml").exists());
        assert!(homes[1].join(".cargo/.package-cache").exists());
    }
}
