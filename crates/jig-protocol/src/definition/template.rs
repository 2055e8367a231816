//! Placeholders of prompt templates: `{{name}}`.
//!
//! One pass over the template; inserted text is never looked at again, and a
//! placeholder nobody knows stays as it is.

use std::ops::Range;

/// The placeholders that need no declaration.
pub const BUILT_IN: [&str; 4] = ["prompt", "previous_envelope", "handoff_dir", "base_sha"];

/// Every `{{name}}` of a template, with its bytes (braces included).
pub fn placeholders(template: &str) -> impl Iterator<Item = (Range<usize>, &str)> {
    let mut from = 0;
    std::iter::from_fn(move || {
        loop {
            let start = from + template.get(from..)?.find("{{")?;
            let inner = template.get(start + 2..)?;
            let end = inner.find(|c: char| !is_name_character(c))?;
            let name = inner.get(..end)?;
            if !name.is_empty() && inner.get(end..)?.starts_with("}}") {
                let stop = start + 2 + end + 2;
                from = stop;
                return Some((start..stop, name));
            }
            // Step by one brace, so that `{{{prompt}}` still holds a placeholder.
            from = start + 1;
        }
    })
}

/// The template with every placeholder that `value` knows replaced.
pub fn substitute<'v>(template: &str, mut value: impl FnMut(&str) -> Option<&'v str>) -> String {
    let mut out = String::with_capacity(template.len());
    let mut done = 0;
    for (range, name) in placeholders(template) {
        if let Some(text) = value(name) {
            out.push_str(template.get(done..range.start).unwrap_or_default());
            out.push_str(text);
            done = range.end;
        }
    }
    out.push_str(template.get(done..).unwrap_or_default());
    out
}

fn is_name_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_where_they_stand() {
        let names = |text| placeholders(text).map(|(_, name)| name).collect::<Vec<_>>();
        assert_eq!(names("{{a}} and {{b-c}}{{d_1}}"), ["a", "b-c", "d_1"]);
        assert_eq!(names("{{{prompt}}}"), ["prompt"]);
        for none in [
            "{{}}",
            "{{ a }}",
            "{{a}",
            "{a}}",
            "{{a.b}}",
            "{{",
            "{{\"a\":1}}",
        ] {
            assert!(names(none).is_empty(), "{none}");
        }
    }

    #[test]
    fn inserted_text_is_not_looked_at_again() {
        let value = |name: &str| match name {
            "a" => Some("{{b}}"),
            "b" => Some("never"),
            _ => None,
        };
        assert_eq!(substitute("<{{a}}|{{x}}>", value), "<{{b}}|{{x}}>");
    }

    proptest::proptest! {
        #[test]
        fn nothing_known_changes_nothing(text in "[{}a ]{0,40}") {
            proptest::prop_assert_eq!(substitute(&text, |_| None), text);
        }
    }
}
