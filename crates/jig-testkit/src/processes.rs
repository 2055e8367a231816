//! Looks at the table of processes (Linux).

use std::fs;

use crate::wait::wait_until;

/// A text for the command line or environment of a process by which it and
/// all that inherit it are found again.
#[must_use]
pub fn unique_marker(test: &str) -> String {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("jig-mark-{test}-{}-{number}-", std::process::id())
}

/// The live processes, but this one, whose command line, environment or
/// executable's path holds `marker`. Zombies are not live. Other users' environments cannot be seen.
#[must_use]
pub fn marked(marker: &str) -> Vec<u32> {
    let mut found = Vec::new();
    let Ok(entries) = fs::read_dir("/proc") else {
        return found;
    };
    for entry in entries.flatten() {
        let pid = entry.file_name().to_str().and_then(|n| n.parse().ok());
        let Some(pid) = pid.filter(|pid| *pid != std::process::id()) else {
            continue;
        };
        let has_it = ["cmdline", "environ"].iter().any(|file| {
            let text = fs::read(entry.path().join(file)).unwrap_or_default();
            text.windows(marker.len()).any(|w| w == marker.as_bytes())
        });
        let runs_it = fs::read_link(entry.path().join("exe"))
            .is_ok_and(|exe| exe.to_string_lossy().contains(marker));
        if has_it || runs_it {
            found.push(pid);
        }
    }
    found
}

/// Waits until no live process is marked.
///
/// # Panics
///
/// When one still is after [`crate::BOUND`].
#[track_caller]
pub fn wait_none_marked(marker: &str) {
    wait_until("no marked process", || marked(marker).is_empty());
}

/// Panics when a live process is marked now.
///
/// # Panics
///
/// Then, with the command lines.
#[track_caller]
pub fn assert_none_marked(marker: &str) {
    let left: Vec<String> = marked(marker)
        .into_iter()
        .map(|pid| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            format!(
                "{pid}: {}",
                String::from_utf8_lossy(&line).replace('\0', " ")
            )
        })
        .collect();
    assert!(left.is_empty(), "left running: {left:#?}");
}

/// The children of this process, also those of which only the exit status is
/// left.
#[must_use]
pub fn own_children() -> Vec<u32> {
    let mut children = Vec::new();
    let Ok(tasks) = fs::read_dir("/proc/self/task") else {
        return children;
    };
    for task in tasks.flatten() {
        let list = fs::read_to_string(task.path().join("children")).unwrap_or_default();
        children.extend(
            list.split_whitespace()
                .filter_map(|pid| pid.parse::<u32>().ok()),
        );
    }
    children
}

/// How many descriptors this process has open.
#[must_use]
pub fn open_descriptors() -> usize {
    fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
}
