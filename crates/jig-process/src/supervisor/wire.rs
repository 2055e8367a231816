//! What jig and the supervisor say to each other: one JSON value per line.

use std::ffi::OsString;
use std::io;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::confinement::Confinement;
use crate::supervised::StartStage;

/// A command to run. Paths are of any bytes, so they travel as `OsString`.
#[derive(Serialize, Deserialize)]
pub(crate) struct Job {
    pub(crate) program: OsString,
    pub(crate) args: Vec<OsString>,
    pub(crate) cwd: OsString,
    pub(crate) env: Vec<(OsString, OsString)>,
    /// Files to remove at the end: a directory, and a path below it.
    pub(crate) remove_at_end: Vec<(OsString, OsString)>,
    pub(crate) grace_ms: u64,
    pub(crate) confinement: Confinement,
}

/// From jig to the supervisor.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Request {
    Start(Box<Job>),
    Stop { grace_ms: u64 },
}

/// From the supervisor to jig.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Report {
    /// It takes a job now.
    Ready,
    /// The command runs.
    Started,
    /// The command could not be started.
    NotStarted { stage: StartStage, errno: i32 },
    /// The command's first process ended.
    Exited { code: i32 },
    /// The command's first process was ended by a signal.
    Signalled { signal: i32 },
    /// Nothing is left of the command, or what is left cannot be ended.
    Gone {
        leftovers: Vec<String>,
        survivors: Vec<String>,
        not_removed: Vec<OsString>,
    },
}

/// One value as a line.
pub(crate) fn line(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    Ok(line)
}

/// The most bytes of one line: a job with a very large environment.
const LINE_BYTES: usize = 64 * 1024 * 1024;

/// Bytes that become lines.
#[derive(Default)]
pub(crate) struct Lines {
    bytes: Vec<u8>,
    /// So many of them are known to hold no line end.
    searched: usize,
}

impl Lines {
    pub(crate) fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.bytes.len() + bytes.len() > LINE_BYTES {
            return Err(io::Error::other("a message is too long"));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// The next whole value.
    pub(crate) fn next<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        let unsearched = &self.bytes[self.searched..];
        let Some(end) = unsearched.iter().position(|byte| *byte == b'\n') else {
            self.searched = self.bytes.len();
            return Ok(None);
        };
        let end = self.searched + end;
        let value = serde_json::from_slice(&self.bytes[..end])?;
        self.bytes.drain(..=end);
        self.searched = 0;
        Ok(Some(value))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    #[test]
    fn any_bytes_survive_in_any_pieces() {
        let odd = OsString::from_vec(b"a\n\xff\"b".to_vec());
        let job = Job {
            program: odd.clone(),
            args: vec![odd.clone()],
            cwd: odd.clone(),
            env: vec![(odd.clone(), odd.clone())],
            remove_at_end: vec![(odd.clone(), odd.clone())],
            grace_ms: 7,
            confinement: Confinement::None,
        };
        let bytes = line(&Request::Start(Box::new(job))).unwrap();
        let mut lines = Lines::default();
        for piece in bytes.chunks(3) {
            assert!(lines.next::<Request>().unwrap().is_none());
            lines.push(piece).unwrap();
        }
        let Some(Request::Start(job)) = lines.next().unwrap() else {
            panic!("not a job");
        };
        assert_eq!(job.program, odd);
        assert_eq!(job.env, [(odd.clone(), odd.clone())]);
        assert_eq!(job.remove_at_end, [(odd.clone(), odd)]);
        assert!(lines.next::<Request>().unwrap().is_none());
    }
}
