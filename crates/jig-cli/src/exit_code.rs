//! Exit codes: the one place that maps what happened to a number.

use std::process::ExitCode;

use serde::{Serialize, Serializer};

/// How the program ends. See `jig --help`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// Accepted, or done.
    Done = 0,
    /// No verdict: something broke in or below jig.
    Infrastructure = 1,
    /// The command line or a definition is wrong; nothing was started.
    Usage = 2,
    /// jig worked and the answer is no.
    Rejected = 3,
    /// A second interrupt while unwinding.
    Interrupted = 130,
}

/// As its number.
impl Serialize for Exit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(*self as u8)
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// An error on its way out, with the code it ends with and what to do about it.
#[derive(Debug)]
pub(crate) struct CommandError {
    /// The code the program ends with.
    pub(crate) exit: Exit,
    /// What happened, the causes included.
    pub(crate) error: anyhow::Error,
    /// What to do.
    pub(crate) hint: Option<String>,
}

impl CommandError {
    /// The command line, or what it points at, is wrong.
    pub(crate) fn usage(error: impl Into<anyhow::Error>) -> Self {
        Self {
            exit: Exit::Usage,
            error: error.into(),
            hint: None,
        }
    }

    /// Something broke.
    pub(crate) fn infrastructure(error: impl Into<anyhow::Error>) -> Self {
        Self {
            exit: Exit::Infrastructure,
            error: error.into(),
            hint: None,
        }
    }

    /// The same error with advice.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl From<anyhow::Error> for CommandError {
    fn from(error: anyhow::Error) -> Self {
        Self::infrastructure(error)
    }
}

/// What every command returns.
pub(crate) type CommandResult = Result<Exit, CommandError>;
