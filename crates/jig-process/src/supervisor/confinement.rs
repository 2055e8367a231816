//! What a command may do, enforced by the kernel.

use std::io;

use serde::{Deserialize, Serialize};

/// The kernel's confinement of a command, entered by the command's own first
/// process between `fork` and `exec`, never by the supervisor: inside, the
/// command could end it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Confinement {
    /// None: the command may do what its user may.
    #[default]
    None,
}

impl Confinement {
    /// Enters it, for good. Called in a forked child: system calls only.
    #[expect(
        clippy::unnecessary_wraps,
        reason = "entering a kernel sandbox can fail, and a failure must stop the exec"
    )]
    pub(crate) fn apply(&self) -> io::Result<()> {
        match self {
            Self::None => Ok(()),
        }
    }
}
