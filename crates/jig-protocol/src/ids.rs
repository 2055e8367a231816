//! Identifiers of the things jig keeps: runs, jobs, attempts.
//!
//! An id is a UUID version 7 in its hyphenated lower-case form. This crate has
//! no clock and no random source, so whoever makes an id hands both in; ids
//! made later sort later.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::time::Timestamp;

/// A text that is not an id in its one accepted spelling.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a {what} id (a hyphenated lower-case UUID is expected)")]
pub struct InvalidId {
    /// Which kind of id was expected.
    pub what: &'static str,
    /// The text that was refused.
    pub text: String,
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(uuid::Uuid);

        impl $name {
            /// Makes an id from the moment of its making and 10 random bytes.
            #[must_use]
            pub fn from_parts(at: Timestamp, random: [u8; 10]) -> Self {
                let millis = u64::try_from(at.as_millis()).unwrap_or(0);
                Self(uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.as_hyphenated().fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($what, ":{}"), self.0.as_hyphenated())
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;

            fn from_str(text: &str) -> Result<Self, InvalidId> {
                let refuse = || InvalidId { what: $what, text: text.to_owned() };
                let id = uuid::Uuid::try_parse(text).map_err(|_| refuse())?;
                // One spelling only: ids become path parts and branch names.
                if id.as_hyphenated().to_string() == text { Ok(Self(id)) } else { Err(refuse()) }
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidId;

            fn try_from(text: String) -> Result<Self, InvalidId> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.to_string()
            }
        }
    };
}

id!(
    /// One invocation of a definition: it fans out to one job per repository.
    RunId, "run"
);
id!(
    /// The work of one run in one repository.
    JobId, "job"
);
id!(
    /// One try at a job, in its own work tree at the pinned commit.
    AttemptId, "attempt"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_ids_sort_later_and_round_trip() {
        let early = RunId::from_parts(Timestamp::from_millis(1_000), [0xff; 10]);
        let late = RunId::from_parts(Timestamp::from_millis(2_000), [0; 10]);
        assert!(early < late);
        assert_eq!(early.to_string().parse::<RunId>().unwrap(), early);
    }

    #[test]
    fn other_spellings_are_refused() {
        let id = JobId::from_parts(Timestamp::from_millis(1), [0xab; 10]).to_string();
        for text in [
            id.to_uppercase(),
            id.replace('-', ""),
            format!("{{{id}}}"),
            "../x".into(),
        ] {
            assert!(text.parse::<JobId>().is_err(), "{text}");
        }
    }
}
