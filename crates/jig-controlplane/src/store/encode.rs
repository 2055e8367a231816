//! Writing structured values.

/// A value of ours as JSON. Values of ours always have a JSON form; should one
/// not, the row says so and its reader fails.
pub(crate) fn encode<T: serde::Serialize + ?Sized>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_else(|error| format!("unencodable: {error}"))
}
