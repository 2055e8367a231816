//! Durations as definitions write them: sequences of `<n>ms|s|m|h`.

use std::fmt::Write as _;
use std::time::Duration;

/// Reads a duration: `500ms`, `90s`, `1h30m`. Units may come in any order, each
/// at most once.
///
/// # Errors
///
/// Says what is wrong with the text.
pub fn parse(text: &str) -> Result<Duration, &'static str> {
    if text.is_empty() {
        return Err("it is empty");
    }
    let mut rest = text;
    let mut seen: Vec<&str> = Vec::new();
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, tail) = rest.split_at(digits);
        if number.is_empty() {
            return Err("a number is missing");
        }
        let letters = tail.len()
            - tail
                .trim_start_matches(|c: char| c.is_ascii_lowercase())
                .len();
        let (unit, tail) = tail.split_at(letters);
        let milliseconds: u64 = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            "" => return Err("a unit is missing"),
            _ => return Err("the units are `ms`, `s`, `m` and `h`"),
        };
        if seen.contains(&unit) {
            return Err("a unit occurs twice");
        }
        seen.push(unit);
        let part = number
            .parse::<u64>()
            .ok()
            .and_then(|number| number.checked_mul(milliseconds))
            .ok_or("a number is too large")?;
        total = total.saturating_add(Duration::from_millis(part));
        rest = tail;
    }
    Ok(total)
}

/// A duration in the form [`parse`] reads, rounded down to milliseconds.
#[must_use]
pub fn show(duration: Duration) -> String {
    let mut left = duration.as_millis();
    let mut out = String::new();
    for (unit, size) in [("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)] {
        if left >= size {
            let _ = write!(out, "{}{unit}", left / size);
            left %= size;
        }
    }
    if out.is_empty() {
        out.push_str("0s");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table() {
        for (text, expected) in [
            ("500ms", Some(500)),
            ("90s", Some(90_000)),
            ("1h30m", Some(5_400_000)),
            ("0s", Some(0)),
            ("", None),
            ("soon", None),
            ("30", None),
            ("1d", None),
            ("1.5h", None),
            ("-1s", None),
            ("1 s", None),
            ("1m1m", None),
            ("99999999999999999999s", None),
            ("99999999999999999s", None),
        ] {
            assert_eq!(
                parse(text).ok(),
                expected.map(Duration::from_millis),
                "{text:?}"
            );
        }
    }

    proptest::proptest! {
        #[test]
        fn shown_durations_read_back(ms in 0_u64..100_000_000) {
            let duration = Duration::from_millis(ms);
            proptest::prop_assert_eq!(parse(&show(duration)), Ok(duration));
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,20}") {
            let _ = parse(&text);
        }
    }
}
