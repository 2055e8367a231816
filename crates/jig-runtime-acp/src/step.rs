//! The requests of a send, in their order.

use crate::settings::Setting;

/// A request that is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Who are you?
    Initialize,
    /// Only where the operator says so.
    Authenticate,
    /// A session begins.
    New,
    /// A session goes on, after everything in it was repeated.
    Load,
    /// A session goes on.
    Resume,
    /// Only where something else than what is in force is wanted.
    Choose(Setting),
    /// The work.
    Prompt,
}

impl Step {
    /// As errors name it.
    pub(crate) const fn method(self) -> &'static str {
        match self {
            Self::Initialize => "initialize",
            Self::Authenticate => "authenticate",
            Self::New => "session/new",
            Self::Load => "session/load",
            Self::Resume => "session/resume",
            Self::Choose(Setting::Mode) => "the choice of its mode",
            Self::Choose(Setting::Model) => "the choice of its model",
            Self::Prompt => "session/prompt",
        }
    }
}
