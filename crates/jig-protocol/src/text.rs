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

/// An error and everything behind it, on one line.
#[must_use]
pub fn with_causes(error: &(dyn std::error::Error + '_)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}

/// `text` in backticks for a message: cut to 60 characters, with what could
/// drive a terminal escaped.
#[must_use]
pub fn quoted(text: &str) -> String {
    const MOST: usize = 60;
    let mut out = String::from("`");
    for (at, c) in text.chars().enumerate() {
        if at == MOST {
            out.push('…');
            break;
        }
        if c.is_control() || reorders(c) {
            out.extend(c.escape_debug());
        } else {
            out.push(c);
        }
    }
    out.push('`');
    out
}

/// A URL without the name and password some people write into it.
#[must_use]
pub fn without_userinfo(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else {
        // A proxy may be written without a scheme.
        return text
            .rsplit_once('@')
            .map_or(text, |(_, host)| host)
            .to_owned();
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    format!("{scheme}://{host}{path}")
}

/// Whether a character changes the order in which the text around it is shown.
#[must_use]
pub fn reorders(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{61c}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_text_is_short_and_harmless() {
        assert_eq!(quoted("a\u{1b}[2Jb\n"), "`a\\u{1b}[2Jb\\n`");
        assert_eq!(quoted("\u{202e}x"), "`\\u{202e}x`");
        assert_eq!(quoted("\u{61c}x"), "`\\u{61c}x`");
        assert_eq!(quoted(&"é".repeat(1000)).chars().count(), 63);
    }

    #[test]
    fn every_cause_of_an_error_is_told_in_order() {
        #[derive(Debug, thiserror::Error)]
        #[error("outer")]
        struct Outer(#[source] std::fmt::Error);
        let cause = std::fmt::Error.to_string();
        assert_eq!(with_causes(&std::fmt::Error), cause);
        assert_eq!(
            with_causes(&Outer(std::fmt::Error)),
            format!("outer: {cause}")
        );
    }

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
