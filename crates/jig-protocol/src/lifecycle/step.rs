//! What all machines share: the answer of a step, and the words of refusals.

/// What a step decided: the state to save and what else must happen with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step<S, E> {
    /// The state after the step; may equal the one before.
    pub next: S,
    /// What the caller must do in the same transaction, in this order.
    pub effects: Vec<E>,
}

impl<S, E> Step<S, E> {
    pub(super) fn to(next: S, effects: impl Into<Vec<E>>) -> Self {
        Self {
            next,
            effects: effects.into(),
        }
    }

    pub(super) fn unchanged(state: S) -> Self {
        Self {
            next: state,
            effects: Vec::new(),
        }
    }
}

/// An event that a state does not allow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{machine} is {from}: {event} is refused ({code})", code = refusal.as_str())]
pub struct IllegalTransition {
    /// Which machine refused: `attempt`, `job`, `lease`.
    pub machine: &'static str,
    /// The state it is in.
    pub from: &'static str,
    /// The event that was refused.
    pub event: &'static str,
    /// Why, as a stable code.
    pub refusal: Refusal,
}

/// A text that is none of the words a state may be stored as.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no state of {what}")]
pub struct UnknownWord {
    /// Whose state was expected.
    pub what: &'static str,
    /// The text that was found.
    pub text: String,
}

/// Declares a closed set of words with one spelling each.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident, $what:literal { $($(#[$vdoc:meta])* $variant:ident = $word:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $($(#[$vdoc])* #[serde(rename = $word)] $variant),*
        }

        impl $name {
            /// Every word, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The word as it is stored and sent.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),* }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::lifecycle::UnknownWord;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                match text {
                    $($word => Ok(Self::$variant),)*
                    _ => Err($crate::lifecycle::UnknownWord { what: $what, text: text.to_owned() }),
                }
            }
        }
    };
}
pub(super) use words;

words! {
    /// Why a transition is refused; the words are the API's error codes.
    Refusal, "a refusal" {
        /// The state does not allow the event.
        InvalidTransition = "invalid_transition",
        /// Someone else took it first.
        ClaimConflict = "claim_conflict",
        /// The lease was taken away; whoever held it must stop at once.
        LeaseNotOwner = "lease_not_owner",
        /// A later attempt of the job exists; the holder must stop at once.
        LeaseSuperseded = "lease_superseded",
        /// The attempt has ended; there is nothing left to renew.
        AttemptTransitioned = "attempt_transitioned",
        /// `accepted` claims a delivery that was never recorded.
        PublishProofRequired = "publish_proof_required",
        /// A cancellation was delivered before anything was published.
        CancelledByOperator = "cancelled_by_operator",
        /// Only a failed or cancelled job can be tried again.
        RetryNotAllowed = "retry_not_allowed",
        /// Only work that waits unpublished can be discarded.
        DiscardNotAllowed = "discard_not_allowed",
    }
}
