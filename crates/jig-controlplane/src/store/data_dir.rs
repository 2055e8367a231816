//! The data directory on disk: its modes, its file system, where things lie.

use std::fs::{DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};

use jig_protocol::ids::AttemptId;

/// Only the owner may look into directories and files of jig.
pub(crate) const DIR_MODE: u32 = 0o700;
pub(crate) const FILE_MODE: u32 = 0o600;

/// Where an attempt keeps everything it has on disk.
#[must_use]
pub fn attempt_dir(data_dir: &Path, attempt: AttemptId) -> PathBuf {
    data_dir.join("attempts").join(attempt.to_string())
}

/// An attempt's trace: one event as JSON per line.
#[must_use]
pub fn trace_path(data_dir: &Path, attempt: AttemptId) -> PathBuf {
    attempt_dir(data_dir, attempt).join("trace.jsonl")
}

/// Makes a directory and its parents, private; an existing one is left as it is.
pub(crate) fn make_private_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(DIR_MODE)
        .create(path)
}

/// Opens a file for reading and writing, made private when it is missing and
/// when it is not private; never through a link.
pub(crate) fn open_private_file(path: &Path) -> io::Result<File> {
    let file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(FILE_MODE)
        .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
        .open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    if metadata.mode() & 0o077 != 0 {
        file.set_permissions(Permissions::from_mode(FILE_MODE))?;
    }
    Ok(file)
}

/// A network file system by name, as far as it can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NetworkFileSystem(pub &'static str);

/// Which network file system `path` lies on, if any.
#[cfg(target_os = "linux")]
pub(super) fn network_file_system(path: &Path) -> io::Result<Option<NetworkFileSystem>> {
    // The field's type differs between platforms; magic numbers have 32 bits.
    let kind = i128::from(rustix::fs::statfs(path)?.f_type) & 0xffff_ffff;
    let magic = u32::try_from(kind).unwrap_or_default();
    Ok(network_name(magic).map(NetworkFileSystem))
}

/// The kernel's magic numbers of file systems that other machines serve.
#[cfg(target_os = "linux")]
const fn network_name(magic: u32) -> Option<&'static str> {
    Some(match magic {
        0x0000_6969 => "NFS",
        0x0000_517b | 0xff53_4d42 | 0xfe53_4d42 => "SMB",
        0x0102_1997 => "9P",
        0x5346_414f | 0x6b41_4653 => "AFS",
        0x7375_7245 => "Coda",
        0x00c3_6400 => "Ceph",
        0x0bd0_0bd0 => "Lustre",
        0x4750_4653 => "GPFS",
        0x1983_0326 => "BeeGFS",
        0x0000_564c => "NCP",
        _ => return None,
    })
}

/// Which network file system `path` lies on, if any.
#[cfg(target_os = "macos")]
pub(super) fn network_file_system(path: &Path) -> io::Result<Option<NetworkFileSystem>> {
    // MNT_LOCAL of <sys/mount.h>.
    const LOCAL: u32 = 0x0000_1000;
    let flags = rustix::fs::statfs(path)?.f_flags;
    Ok((flags & LOCAL == 0).then_some(NetworkFileSystem("a network file system")))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn network_file_systems_are_known_by_their_magic() {
        assert_eq!(network_name(0x6969), Some("NFS"));
        assert_eq!(network_name(0xfe53_4d42), Some("SMB"));
        // ext4, tmpfs, overlayfs, btrfs
        for local in [0xef53, 0x0102_1994, 0x794c_7630, 0x9123_683e] {
            assert_eq!(network_name(local), None);
        }
    }
}
