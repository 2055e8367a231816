//! Questions to a snapshot of the table.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::Path;

use rustix::process::Pid;

use crate::identity::ProcessIdentity;

/// One process, as it was when looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) pid: Pid,
    pub(crate) parent: i32,
    pub(crate) group: i32,
    pub(crate) session: i32,
    pub(crate) start_time: u64,
    /// Only the exit status is left, of the process or of its main thread.
    pub(crate) zombie: bool,
    pub(crate) threads: u32,
}

impl Entry {
    /// Whether nothing of the process can act any more. A main thread that
    /// ended looks like a zombie while other threads live on.
    pub(crate) const fn is_dead(&self) -> bool {
        self.zombie && self.threads <= 1
    }
}

/// The processes below `root` (not itself), parents before children.
pub(crate) fn descendants(root: Pid, table: &[Entry]) -> Vec<Entry> {
    let mut children: HashMap<i32, Vec<&Entry>> = HashMap::new();
    for entry in table {
        children.entry(entry.parent).or_default().push(entry);
    }
    let mut found = Vec::new();
    let mut seen = HashSet::from([root.as_raw_pid()]);
    let mut open = vec![root.as_raw_pid()];
    while let Some(parent) = open.pop() {
        for child in children.get(&parent).into_iter().flatten() {
            // A snapshot is not one moment, so it may hold a circle.
            if seen.insert(child.pid.as_raw_pid()) {
                found.push(**child);
                open.push(child.pid.as_raw_pid());
            }
        }
    }
    found
}

/// A process that was found by where it works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundProcess {
    /// Who it is.
    pub identity: ProcessIdentity,
    /// Its command line, cut to a readable length.
    pub command_line: String,
}

/// The live processes whose working directory is `directory` or below it:
/// what must be empty before a tree is removed. Processes of other users
/// cannot be seen.
///
/// # Errors
///
/// When the table of processes cannot be read.
pub fn processes_inside(directory: &Path) -> io::Result<Vec<FoundProcess>> {
    let directory = directory.canonicalize()?;
    let mut found = Vec::new();
    for entry in super::snapshot()? {
        if entry.is_dead() || entry.pid.as_raw_pid() <= 1 {
            continue;
        }
        let inside = super::working_directory(entry.pid).is_some_and(|d| d.starts_with(&directory));
        if !inside {
            continue;
        }
        let command_line = super::command_line(entry.pid);
        let pid = u32::try_from(entry.pid.as_raw_pid()).map_err(io::Error::other)?;
        if let Some(identity) = ProcessIdentity::of(pid)? {
            found.push(FoundProcess {
                identity,
                command_line,
            });
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(pid: i32, parent: i32) -> Entry {
        Entry {
            pid: Pid::from_raw(pid).unwrap(),
            parent,
            group: pid,
            session: pid,
            start_time: 1,
            zombie: false,
            threads: 1,
        }
    }

    #[test]
    fn descendants_are_found_at_any_depth_and_circles_end() {
        let table = [
            entry(12, 11),
            entry(11, 10),
            entry(13, 10),
            entry(20, 1),
            entry(31, 32),
            entry(32, 31),
        ];
        let pids = |root| {
            let mut pids: Vec<_> = descendants(Pid::from_raw(root).unwrap(), &table)
                .iter()
                .map(|e| e.pid.as_raw_pid())
                .collect();
            pids.sort_unstable();
            pids
        };
        assert_eq!(pids(10), [11, 12, 13]);
        assert_eq!(pids(31), [32]);
        assert_eq!(pids(20), [0; 0]);
    }

    #[test]
    fn a_process_is_found_by_its_working_directory() {
        // Tests run in the crate's directory.
        let here = std::env::current_dir().unwrap();
        let found = processes_inside(&here).unwrap();
        let me = std::process::id();
        assert!(found.iter().any(|f| f.identity.pid() == me), "{found:?}");
        let elsewhere = tempfile::tempdir().unwrap();
        assert_eq!(processes_inside(elsewhere.path()).unwrap(), []);
    }
}
