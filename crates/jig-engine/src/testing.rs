//! What the unit tests of this crate share.

use jig_protocol::definition::Definition;

/// A definition from its text; panics with the diagnostics.
pub(crate) fn definition(text: &str) -> Definition {
    let parsed = jig_protocol::definition::parse(text);
    match parsed.definition {
        Some(definition) => definition,
        None => panic!("{:?}", parsed.diagnostics),
    }
}
