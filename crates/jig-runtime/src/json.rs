//! Reading the JSON of agents, which is not always JSON.

use serde_json::Value;

/// The value of a line; `None` when it is none.
///
/// Bytes that are no UTF-8, and escapes of half a character (`\ud83d` without
/// its second part, as JavaScript writes text that was cut), become U+FFFD: a
/// broken letter must not cost the line that holds the answer.
#[must_use]
pub fn parse(line: &[u8]) -> Option<Value> {
    let line = String::from_utf8_lossy(line);
    let line = line.trim();
    serde_json::from_str(line)
        .ok()
        .or_else(|| serde_json::from_str(&whole_characters(line)?).ok())
}

/// The text with halves of characters replaced; `None` when there are none.
fn whole_characters(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut replaced = false;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        let taken = match (unit(escape), escape.get(6..).and_then(unit)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
            (Some(0xd800..=0xdfff), _) => {
                out.push('\u{fffd}');
                replaced = true;
                rest = escape.get(6..).unwrap_or("");
                continue;
            }
            // The character behind it belongs to the escape, be it a backslash.
            _ => 1 + escape.chars().nth(1).map_or(0, char::len_utf8),
        };
        let (escape, after) = escape.split_at_checked(taken).unwrap_or((escape, ""));
        out.push_str(escape);
        rest = after;
    }
    out.push_str(rest);
    replaced.then_some(out)
}

/// The number of a `\uXXXX` at the start of `text`.
fn unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn halves_of_characters_are_replaced_and_nothing_else_is() {
        for (line, expected) in [
            (r#"{"a":"\ud83d\ude00"}"#, "\u{1f600}"),
            (r#"{"a":"cut \ud83d"}"#, "cut \u{fffd}"),
            (r#"{"a":"\ude00 late"}"#, "\u{fffd} late"),
            (r#"{"a":"\ud83d\ud83d\ude00"}"#, "\u{fffd}\u{1f600}"),
            (r#"{"a":"\ud83dx\ude00"}"#, "\u{fffd}x\u{fffd}"),
            (r#"{"a":"\\ud83d \ud83d"}"#, "\\ud83d \u{fffd}"),
            (r#"{"a":"\"\ud83d\n"}"#, "\"\u{fffd}\n"),
        ] {
            assert_eq!(
                parse(line.as_bytes()),
                Some(json!({"a": expected})),
                "{line}"
            );
        }
        assert_eq!(parse(b"{\"a\":\"\xff\"}"), Some(json!({"a": "\u{fffd}"})));
    }

    #[test]
    fn what_is_no_json_stays_none() {
        for line in [
            "",
            "text",
            r#"{"a":"\ud83d"#,
            r#"\ud83d"#,
            r#"{"a":\u00e9}"#,
            "\\",
            "{\"\\",
        ] {
            assert_eq!(parse(line.as_bytes()), None, "{line}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_line_is_read_without_a_panic(line in "[\\\\u dcef0-9\"{}:é]{0,40}") {
            let _ = parse(line.as_bytes());
        }
    }
}
