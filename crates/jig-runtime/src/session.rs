//! A conversation with an agent, over one or more sends.

use crate::usage::Ledger;

/// One role's conversation. The engine makes it, the adapter fills it in.
#[derive(Debug, Clone, PartialEq)]
pub struct Session {
    /// The engine's key, unique in the attempt: `<attempt>-<role>[-r<n>]`.
    pub key: String,
    /// The CLI's own id, once it is known.
    pub native_id: Option<String>,
    /// Sends started.
    pub sends: u32,
    /// Turns cumulative figures into figures per send.
    pub ledger: Ledger,
}

impl Session {
    /// A conversation that has not begun.
    #[must_use]
    pub fn new(key: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            native_id: None,
            sends: 0,
            ledger: Ledger::default(),
        }
    }
}
