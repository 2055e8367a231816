//! The manifest as the record of live supervisors.

use std::io;

use jig_process::{LiveSupervisors, ProcessIdentity};

use crate::host::manifest::ManifestFile;

/// Records supervisors in the attempt's manifest while they live.
#[derive(Debug)]
pub(crate) struct RecordedLive(pub(crate) ManifestFile);

impl LiveSupervisors for RecordedLive {
    fn opened(&self, supervisor: &ProcessIdentity) -> io::Result<()> {
        self.0.record(supervisor).map_err(io::Error::other)
    }

    fn closed(&self, supervisor: &ProcessIdentity) {
        // A process that stays on the list is looked for and not found.
        let _ = self.0.forget(supervisor);
    }
}
