//! What the unit tests of this crate share.

use jig_protocol::definition::Definition;

/// A definition from its text; panics with the diagnostics.
pub(crate) fn definition(text: &str) -> Definition {
    match jig_protocol::definition::parse(text) {
        Ok(parsed) => parsed,
        Err(problems) => panic!("{problems:?}"),
    }
}
