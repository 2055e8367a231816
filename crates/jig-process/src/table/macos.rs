//! The table of processes as `libproc` shows it.

#![expect(unsafe_code, reason = "libproc is a C interface")]

use std::io;
use std::mem::{MaybeUninit, size_of};
use std::path::PathBuf;

use rustix::process::Pid;

use super::Entry;

/// The state of a process of which only the exit status is left.
const ZOMBIE: u32 = 5;

/// The moment the machine was started.
pub(crate) fn boot_id() -> io::Result<String> {
    let mut moment = MaybeUninit::<libc::timeval>::zeroed();
    let mut size = size_of::<libc::timeval>();
    // SAFETY: the name ends with NUL; the buffer is as large as `size` says.
    let result = unsafe {
        libc::sysctlbyname(
            c"kern.boottime".as_ptr(),
            moment.as_mut_ptr().cast(),
            &raw mut size,
            std::ptr::null_mut(),
            0,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: zeroed memory is a valid `timeval`, and the call filled it.
    let moment = unsafe { moment.assume_init() };
    Ok(format!("{}.{:06}", moment.tv_sec, moment.tv_usec))
}

/// One process; `None` when there is no such process.
pub(crate) fn entry(pid: Pid) -> io::Result<Option<Entry>> {
    let raw = pid.as_raw_pid();
    let Some(info) = info::<libc::proc_bsdinfo>(raw, libc::PROC_PIDTBSDINFO)? else {
        return Ok(None);
    };
    let session = rustix::process::getsid(Some(pid)).map_or(0, Pid::as_raw_pid);
    Ok(Some(Entry {
        pid,
        parent: i32::try_from(info.pbi_ppid).unwrap_or(0),
        group: i32::try_from(info.pbi_pgid).unwrap_or(0),
        session,
        start_time: info.pbi_start_tvsec * 1_000_000 + info.pbi_start_tvusec,
        zombie: info.pbi_status == ZOMBIE,
        threads: 1,
    }))
}

/// All processes. Not one moment: processes come and go while it is read.
pub(crate) fn snapshot() -> io::Result<Vec<Entry>> {
    let mut pids = vec![0_i32; 16_384];
    loop {
        let size = i32::try_from(pids.len() * size_of::<i32>()).map_err(io::Error::other)?;
        // SAFETY: the buffer is as large as `size` says.
        let found = unsafe { libc::proc_listallpids(pids.as_mut_ptr().cast(), size) };
        let found = usize::try_from(found).map_err(|_| io::Error::last_os_error())?;
        if found < pids.len() {
            pids.truncate(found);
            break;
        }
        pids.resize(pids.len() * 2, 0);
    }
    let mut entries = Vec::new();
    for pid in pids.into_iter().filter_map(Pid::from_raw) {
        // Those of other users cannot be looked at and are never below us.
        if let Ok(Some(entry)) = entry(pid) {
            entries.push(entry);
        }
    }
    Ok(entries)
}

/// A process's executable for people to read.
pub(crate) fn command_line(pid: Pid) -> String {
    let mut path = vec![0_u8; 4096];
    // SAFETY: the buffer is as large as is said.
    let length = unsafe { libc::proc_pidpath(pid.as_raw_pid(), path.as_mut_ptr().cast(), 4096) };
    path.truncate(usize::try_from(length).unwrap_or(0));
    String::from_utf8_lossy(&path).into_owned()
}

/// Where a process works; `None` when it cannot be seen.
pub(crate) fn working_directory(pid: Pid) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStringExt;
    let info =
        info::<libc::proc_vnodepathinfo>(pid.as_raw_pid(), libc::PROC_PIDVNODEPATHINFO).ok()??;
    let bytes: Vec<u8> = info
        .pvi_cdir
        .vip_path
        .iter()
        .flatten()
        .map(|c| c.to_ne_bytes()[0])
        .take_while(|byte| *byte != 0)
        .collect();
    Some(PathBuf::from(std::ffi::OsString::from_vec(bytes)))
}

/// A variable of the environment that a process was started with. The system
/// has no documented way to ask; nothing is found by it here.
pub(crate) const fn start_variable(_: Pid, _: &str) -> Option<std::ffi::OsString> {
    None
}

fn info<T>(pid: i32, flavor: libc::c_int) -> io::Result<Option<T>> {
    let mut info = MaybeUninit::<T>::zeroed();
    let size = i32::try_from(size_of::<T>()).map_err(io::Error::other)?;
    // SAFETY: the buffer is as large as `size` says, and `T` is the structure
    // of this flavor.
    let filled = unsafe { libc::proc_pidinfo(pid, flavor, 0, info.as_mut_ptr().cast(), size) };
    if filled == size {
        // SAFETY: the call filled all of it.
        return Ok(Some(unsafe { info.assume_init() }));
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::ESRCH) => Ok(None),
        _ => Err(error),
    }
}
