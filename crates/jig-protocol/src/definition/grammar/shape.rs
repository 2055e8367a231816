//! What the table is made of.

/// A map with fixed keys.
pub(in super::super) struct Object {
    /// What it is called in messages.
    pub(in super::super) what: &'static str,
    pub(in super::super) fields: &'static [Field],
}

/// One key of an object.
pub(in super::super) struct Field {
    pub(in super::super) name: &'static str,
    pub(in super::super) required: bool,
    pub(in super::super) shape: Shape,
    pub(in super::super) doc: &'static str,
}

/// What a value may be.
pub(in super::super) enum Shape {
    Text,
    Name,
    Bool,
    /// A whole number within bounds.
    Count(u32, u32),
    /// An amount of dollars; whether zero is allowed.
    Dollars(bool),
    Duration,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// The name of a runtime.
    Runtime,
    List(&'static Shape),
    /// A map from names to values.
    Names(&'static Shape),
    /// A map from texts to texts.
    Texts,
    Object(&'static Object),
}

impl Object {
    pub(in super::super) fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

pub(super) const fn need(name: &'static str, shape: Shape, doc: &'static str) -> Field {
    Field {
        name,
        required: true,
        shape,
        doc,
    }
}

pub(super) const fn may(name: &'static str, shape: Shape, doc: &'static str) -> Field {
    Field {
        name,
        required: false,
        shape,
        doc,
    }
}
