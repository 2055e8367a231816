//! Bounded text: every cut is on a character boundary and never silent.

/// The longest start of `text` that fits into `max` bytes without splitting a
/// character.
#[must_use]
pub fn head(text: &str, max: usize) -> &str {
    text.get(..text.floor_char_boundary(max)).unwrap_or(text)
}

/// The longest end of `text` that fits into `max` bytes without splitting a
/// character.
#[must_use]
pub fn tail(text: &str, max: usize) -> &str {
    let start = text.len().saturating_sub(max);
    text.get(text.ceil_char_boundary(start)..).unwrap_or(text)
}

/// `bytes` as text, with replacement characters where they are not UTF-8.
#[must_use]
pub fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn cuts_fit_and_never_split(text in "\\PC{0,40}", max in 0_usize..60) {
            let (start, end) = (head(&text, max), tail(&text, max));
            proptest::prop_assert!(start.len() <= max && text.starts_with(start));
            proptest::prop_assert!(end.len() <= max && text.ends_with(end));
            proptest::prop_assert!(text.len() <= max || start.len() + 4 > max);
            proptest::prop_assert!(text.len() <= max || end.len() + 4 > max);
        }
    }
}
