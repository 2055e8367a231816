//! The host executable and its hidden modes.
//!
//! jig needs small helper processes, and it should not need a second program
//! on disk for them: the executable that embeds jig is started again with a
//! marker as its first argument.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::supervisor;

/// The first argument of a hidden mode. Nobody types this by accident.
const MARKER: &str = "--jig-hidden-mode-5b1f0c9e";

/// The supervisor's mode.
pub(crate) const SUPERVISOR: &str = "supervisor";

/// Whether [`supervisor_main`] ran: whether this program, started again, would
/// become a supervisor rather than do whatever it usually does.
static IS_HOST: AtomicBool = AtomicBool::new(false);

/// The executable that has the hidden modes. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Host(Arc<Program>);

#[derive(Debug)]
enum Program {
    /// This program: held open, so that replacing or removing the file on disk
    /// changes nothing for a jig that is running.
    #[cfg(target_os = "linux")]
    Opened(std::os::fd::OwnedFd),
    At(PathBuf),
}

/// Why there is no host.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// This program did not call [`supervisor_main`]; started again it would
    /// not be a supervisor.
    #[error("supervisor_main was not called first in main")]
    NotAHost,
    /// The executable could not be opened.
    #[error("cannot open the program's own executable")]
    Open(#[source] io::Error),
    /// The path is not absolute or names no file.
    #[error("{} is no absolute path of a program", .0.display())]
    NotAProgram(PathBuf),
}

impl Host {
    /// The running program. To be made once, early.
    ///
    /// # Errors
    ///
    /// When [`supervisor_main`] was not called, or the executable cannot be
    /// opened.
    pub fn this_program() -> Result<Self, HostError> {
        if !IS_HOST.load(Ordering::SeqCst) {
            return Err(HostError::NotAHost);
        }
        #[cfg(target_os = "linux")]
        {
            use rustix::fs::{Mode, OFlags, open};
            let flags = OFlags::PATH | OFlags::CLOEXEC;
            let opened = open("/proc/self/exe", flags, Mode::empty());
            let opened = opened.map_err(|error| HostError::Open(error.into()))?;
            Ok(Self(Arc::new(Program::Opened(opened))))
        }
        #[cfg(target_os = "macos")]
        {
            let path = std::env::current_exe().map_err(HostError::Open)?;
            Ok(Self(Arc::new(Program::At(path))))
        }
    }

    /// Another program, whose `main` calls [`supervisor_main`] first.
    ///
    /// # Errors
    ///
    /// When `path` is not absolute or names no file.
    pub fn at(path: impl Into<PathBuf>) -> Result<Self, HostError> {
        let path = path.into();
        if path.is_absolute() && path.is_file() {
            Ok(Self(Arc::new(Program::At(path))))
        } else {
            Err(HostError::NotAProgram(path))
        }
    }

    /// What this process executes to start the host.
    pub(crate) fn executable(&self) -> PathBuf {
        match &*self.0 {
            #[cfg(target_os = "linux")]
            Program::Opened(opened) => {
                use std::os::fd::AsRawFd;
                // "self" is the forked child, which has the same descriptors.
                PathBuf::from(format!("/proc/self/fd/{}", opened.as_raw_fd()))
            }
            Program::At(path) => path.clone(),
        }
    }

    /// What a supervisor, which is the host itself, executes to start it again.
    pub(crate) fn executable_from_supervisor(&self) -> PathBuf {
        match &*self.0 {
            #[cfg(target_os = "linux")]
            Program::Opened(_) => PathBuf::from("/proc/self/exe"),
            Program::At(path) => path.clone(),
        }
    }

    /// The arguments that start hidden mode `mode`, before the mode's own.
    pub(crate) fn mode_args(mode: &str) -> [OsString; 2] {
        [MARKER.into(), mode.into()]
    }
}

/// The arguments of hidden mode `name`, when this process was started in it.
///
/// For programs that host further modes; they look before they parse their
/// own arguments.
#[must_use]
pub fn hidden_mode(name: &str) -> Option<Vec<OsString>> {
    let mut args = std::env::args_os().skip(1);
    let is_marked = args.next().as_deref() == Some(OsStr::new(MARKER));
    (is_marked && args.next().as_deref() == Some(OsStr::new(name))).then(|| args.collect())
}

/// To be called first in `main`, before arguments are parsed, threads are
/// started or files are opened.
///
/// Started as a supervisor, this runs it and exits the process. Otherwise it
/// prepares the process to be jig: a child subreaper, so that what a killed
/// supervisor leaves behind comes here and is found; and closed to the eyes
/// of other processes of the same user, so that a command cannot read the
/// operator's environment from `/proc` (this also switches core dumps off).
pub fn supervisor_main() {
    if let Some(args) = hidden_mode(SUPERVISOR) {
        let descriptor = args
            .first()
            .and_then(|arg| arg.to_str())
            .and_then(|arg| arg.parse().ok());
        std::process::exit(descriptor.map_or(64, supervise));
    }
    become_reaper();
    hide();
    IS_HOST.store(true, Ordering::SeqCst);
}

fn supervise(descriptor: RawFd) -> i32 {
    hide();
    become_reaper();
    let _ = std::env::set_current_dir(Path::new("/"));
    let Ok(control) = crate::fork::adopt_control(descriptor) else {
        return 64;
    };
    match supervisor::run(control) {
        Ok(()) => 0,
        Err(_) => 70,
    }
}

/// Makes orphans among the descendants this process's children.
pub(crate) fn become_reaper() {
    #[cfg(target_os = "linux")]
    {
        // Every kernel that runs this has it; without it orphans go elsewhere.
        let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    }
}

fn hide() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
}
