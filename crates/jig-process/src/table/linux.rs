//! The table of processes as `/proc` shows it.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;
use std::sync::OnceLock;

use rustix::process::Pid;

use super::Entry;

/// The most of a command line that is shown.
const COMMAND_LINE_BYTES: usize = 200;

/// The identity of this boot.
pub(crate) fn boot_id() -> io::Result<String> {
    static BOOT: OnceLock<String> = OnceLock::new();
    if let Some(boot) = BOOT.get() {
        return Ok(boot.clone());
    }
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id")?
        .trim()
        .to_owned();
    Ok(BOOT.get_or_init(|| boot).clone())
}

/// One process; `None` when there is no such process.
pub(crate) fn entry(pid: Pid) -> io::Result<Option<Entry>> {
    let path = format!("/proc/{}/stat", pid.as_raw_pid());
    match fs::read(&path) {
        Ok(stat) => parse(&stat)
            .map(Some)
            .ok_or_else(|| io::Error::other(format!("{path} is not understood"))),
        Err(error) if is_gone(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// All processes. Not one moment: processes come and go while it is read.
pub(crate) fn snapshot() -> io::Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for item in fs::read_dir("/proc")? {
        let name = item?.file_name();
        let Some(pid) = name.to_str().and_then(|n| n.parse().ok()) else {
            continue;
        };
        if let Some(pid) = Pid::from_raw(pid)
            && let Some(entry) = entry(pid)?
        {
            entries.push(entry);
        }
    }
    Ok(entries)
}

/// A process's command line for people to read, or its short name.
pub(crate) fn command_line(pid: Pid) -> String {
    let raw = pid.as_raw_pid();
    let mut bytes = fs::read(format!("/proc/{raw}/cmdline")).unwrap_or_default();
    if bytes.is_empty() {
        bytes = fs::read(format!("/proc/{raw}/comm")).unwrap_or_default();
    }
    let words: Vec<_> = bytes
        .split(|b| *b == 0)
        .map(|word| String::from_utf8_lossy(word).trim().to_owned())
        .collect();
    let line = words.join(" ").trim().to_owned();
    let end = line.floor_char_boundary(COMMAND_LINE_BYTES);
    line[..end].to_owned()
}

/// Where a process works; `None` when it cannot be seen.
pub(crate) fn working_directory(pid: Pid) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{}/cwd", pid.as_raw_pid())).ok()
}

/// A variable of the environment that a process was started with; `None` when
/// it has none of that name, or cannot be asked.
pub(crate) fn start_variable(pid: Pid, name: &str) -> Option<OsString> {
    let environ = fs::read(format!("/proc/{}/environ", pid.as_raw_pid())).ok()?;
    environ.split(|byte| *byte == 0).find_map(|pair| {
        let value = pair.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
        Some(OsString::from_vec(value.to_vec()))
    })
}

fn is_gone(error: &io::Error) -> bool {
    // ESRCH: it ended between opening and reading.
    error.kind() == io::ErrorKind::NotFound
        || error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error())
}

/// Parses the one line of `/proc/<pid>/stat`.
fn parse(stat: &[u8]) -> Option<Entry> {
    // The name is in parentheses and may hold anything, also parentheses.
    let open = stat.iter().position(|b| *b == b'(')?;
    let close = stat.iter().rposition(|b| *b == b')')?;
    let pid = std::str::from_utf8(&stat[..open])
        .ok()?
        .trim()
        .parse()
        .ok()?;
    let rest = std::str::from_utf8(stat.get(close + 1..)?).ok()?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    Some(Entry {
        pid: Pid::from_raw(pid)?,
        zombie: matches!(*fields.first()?, "Z" | "X"),
        parent: fields.get(1)?.parse().ok()?,
        group: fields.get(2)?.parse().ok()?,
        session: fields.get(3)?.parse().ok()?,
        threads: fields.get(17)?.parse().ok()?,
        start_time: fields.get(19)?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_anything() {
        let stat =
            b"4711 (a) Z 1 (x\n) S 42 4711 4700 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 3 0 987654 0";
        let entry = parse(stat).unwrap();
        assert_eq!(entry.pid.as_raw_pid(), 4711);
        assert_eq!((entry.parent, entry.group, entry.session), (42, 4711, 4700));
        assert_eq!((entry.threads, entry.start_time), (3, 987_654));
        assert!(!entry.zombie);
        assert_eq!(parse(b"4711 (cut"), None);
    }

    #[test]
    fn this_process_is_in_the_snapshot() {
        let me = rustix::process::getpid();
        let found = snapshot()
            .unwrap()
            .into_iter()
            .find(|e| e.pid == me)
            .unwrap();
        assert_eq!(
            Some(found.start_time),
            entry(me).unwrap().map(|e| e.start_time)
        );
        let parent = rustix::process::getppid().unwrap();
        assert_eq!(found.parent, parent.as_raw_pid());
        assert!(!command_line(me).is_empty());
    }
}
