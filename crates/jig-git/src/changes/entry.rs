//! One thing in a work tree, as found on disk.

use std::cmp::Ordering;
use std::sync::Arc;

use jig_protocol::repo_path::RepoPath;

/// What kind of thing lies at a path. Links are never followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A symbolic link.
    Link,
    /// A directory.
    Directory,
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
    /// A block or character device.
    Device,
    /// Something that is there but cannot be read.
    Unreadable,
}

impl EntryKind {
    /// Whether git could never store it: a pipe, a socket, a device.
    #[must_use]
    pub const fn is_special(self) -> bool {
        matches!(self, Self::Fifo | Self::Socket | Self::Device)
    }

    /// The word messages have for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Link => "link",
            Self::Directory => "directory",
            Self::Fifo => "named pipe",
            Self::Socket => "socket",
            Self::Device => "device",
            Self::Unreadable => "unreadable entry",
        }
    }
}

/// What a file holds, as far as a capture had to find out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    /// Nothing to hash: no regular file.
    None,
    /// The checkout form of the blob that the base has at this path.
    Pinned,
    /// These bytes, by their BLAKE3 hash.
    Hash([u8; 32]),
}

/// A moment as a file system records it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FileTime {
    pub(crate) seconds: i64,
    pub(crate) nanos: u32,
}

/// What the file system says about an entry besides its content.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) device: u64,
    pub(crate) inode: u64,
    pub(crate) size: u64,
    pub(crate) modified: FileTime,
    pub(crate) changed: FileTime,
    pub(crate) user: u32,
    pub(crate) group: u32,
}

/// One thing in a work tree.
#[derive(Clone)]
pub struct Entry {
    /// Where, relative to the tree's root.
    pub path: RepoPath,
    /// What it is.
    pub kind: EntryKind,
    /// The permission bits, with the set-id and sticky bits.
    pub mode: u32,
    /// How many names the file has (1 for anything but a hard link; not
    /// counted for directories).
    pub links: u64,
    /// Where a link points to, as it is written there.
    pub target: Option<Box<[u8]>>,
    pub(crate) stat: Stat,
    pub(crate) content: Content,
    /// Changed so close to the capture that a later write could leave the same
    /// times.
    pub(crate) racy: bool,
}

impl Entry {
    /// The size in bytes.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.stat.size
    }

    /// Whether the file is executable for its owner.
    #[must_use]
    pub const fn is_executable(&self) -> bool {
        self.mode & 0o100 != 0
    }

    /// Whether two entries of one path are the same thing with the same
    /// content: what restore makes equal and compare calls unchanged.
    pub(crate) fn same(&self, other: &Self) -> bool {
        self.kind == other.kind
            && self.mode == other.mode
            && self.target == other.target
            && self.content == other.content
            && (self.kind == EntryKind::Directory || self.links == other.links)
            && self.stat.user == other.stat.user
            && self.stat.group == other.stat.group
    }
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:o} {}", self.kind.as_str(), self.mode, self.path)
    }
}

const STEP: usize = 8;

/// The order of a capture: a directory right before what lies in it, siblings
/// by name.
pub(crate) fn tree_order(left: &[u8], right: &[u8]) -> Ordering {
    // Neighbours share most of their path: that is skipped in large steps.
    let steps = left.chunks_exact(STEP).zip(right.chunks_exact(STEP));
    let shared = steps.take_while(|(l, r)| l == r).count() * STEP;
    let (left, right) = (
        left.get(shared..).unwrap_or_default(),
        right.get(shared..).unwrap_or_default(),
    );
    match left.iter().zip(right).find(|(l, r)| l != r) {
        None => left.len().cmp(&right.len()),
        Some((l, r)) => {
            let rank = |byte: u8| if byte == b'/' { 0 } else { u16::from(byte) + 1 };
            rank(*l).cmp(&rank(*r))
        }
    }
}

/// The entries of a tree in [`tree_order`].
#[derive(Debug, Clone, Default)]
pub(crate) struct Entries(pub(crate) Arc<Vec<Entry>>);

impl Entries {
    pub(crate) fn get(&self, path: &[u8]) -> Option<&Entry> {
        let at = self
            .0
            .binary_search_by(|entry| tree_order(entry.path.as_bytes(), path))
            .ok()?;
        self.0.get(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_comes_right_before_its_content() {
        let mut paths = ["a.b", "a", "a/x", "a-b", "a/x/y", "b", "a/\u{1}"];
        paths.sort_by(|l, r| tree_order(l.as_bytes(), r.as_bytes()));
        assert_eq!(paths, ["a", "a/\u{1}", "a/x", "a/x/y", "a-b", "a.b", "b"]);
    }

    #[test]
    fn the_order_is_the_same_however_much_two_paths_share() {
        for shared in 0..40 {
            let path = |rest: &str| format!("{}{rest}", "s".repeat(shared)).into_bytes();
            let sorted = ["", "/", "/x", "/x/y", "-", "."].map(path);
            for (l, left) in sorted.iter().enumerate() {
                for (r, right) in sorted.iter().enumerate() {
                    assert_eq!(tree_order(left, right), l.cmp(&r), "{left:?} {right:?}");
                }
            }
        }
    }
}
