//! Redaction: no secret value reaches anything that is kept or shown.
//!
//! A [`Redactor`] is built from the values of the `sensitive_env` names. It
//! finds them literally and in the forms that programs turn text into
//! (escaped, percent-encoded, hexadecimal, base64) and puts
//! `[redacted:<NAME>]` in their place. It runs before every cut, because half a
//! secret is found by nobody; [`TextJoiner`] puts streamed text together first.

mod filter;
mod matcher;
mod redactor;
mod stream;

pub use filter::RedactingFilter;
pub use redactor::Redactor;
pub use stream::TextJoiner;
