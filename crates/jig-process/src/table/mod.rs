//! The system's table of processes: who is whose child, and since when.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;
mod tree;

#[cfg(target_os = "linux")]
pub(crate) use linux::{boot_id, command_line, entry, snapshot, start_variable, working_directory};
#[cfg(target_os = "macos")]
pub(crate) use macos::{boot_id, command_line, entry, snapshot, start_variable, working_directory};
pub(crate) use tree::{Entry, descendants};
pub use tree::{FoundProcess, processes_inside};
