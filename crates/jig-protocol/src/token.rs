//! Lease tokens, and the digests that are all a store keeps of them.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest, Sha256};

/// The secret that proves whose lease it is; made by its holder, never stored.
#[derive(Clone, PartialEq, Eq)]
pub struct LeaseToken(String);

/// A text whose length no lease token may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a lease token has 32 to 1024 bytes, not {0}")]
pub struct InvalidLeaseToken(pub usize);

impl LeaseToken {
    /// Makes a token of 32 random bytes.
    #[must_use]
    pub fn from_random(bytes: [u8; 32]) -> Self {
        Self(hex(&bytes))
    }

    /// What may be stored of it.
    #[must_use]
    pub fn digest(&self) -> TokenDigest {
        TokenDigest(hex(&Sha256::digest(self.0.as_bytes())))
    }

    /// The secret itself, for the request that presents it.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl FromStr for LeaseToken {
    type Err = InvalidLeaseToken;

    fn from_str(text: &str) -> Result<Self, InvalidLeaseToken> {
        match text.len() {
            32..=1024 => Ok(Self(text.to_owned())),
            other => Err(InvalidLeaseToken(other)),
        }
    }
}

impl fmt::Debug for LeaseToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LeaseToken(…)")
    }
}

/// The SHA-256 of a [`LeaseToken`], as 64 lower-case hex digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenDigest(String);

impl TokenDigest {
    /// The digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut out, byte| {
        for nibble in [byte >> 4, byte & 0xf] {
            out.push(char::from_digit(u32::from(nibble), 16).unwrap_or('0'));
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_is_sha_256_and_the_secret_is_not_shown() {
        let token: LeaseToken = "a".repeat(64).parse().unwrap();
        assert_eq!(
            token.digest().as_str(),
            "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb"
        );
        assert!(!format!("{token:?}").contains("aaa"));
        assert_eq!(
            LeaseToken::from_random([0xab; 32]).reveal(),
            "ab".repeat(32)
        );
    }

    #[test]
    fn lengths_are_bounded() {
        assert_eq!(
            "a".repeat(31).parse::<LeaseToken>(),
            Err(InvalidLeaseToken(31))
        );
        assert!("a".repeat(32).parse::<LeaseToken>().is_ok());
        assert!("a".repeat(1024).parse::<LeaseToken>().is_ok());
        assert_eq!(
            "a".repeat(1025).parse::<LeaseToken>(),
            Err(InvalidLeaseToken(1025))
        );
    }
}
