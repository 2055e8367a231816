//! No form of a secret survives, whatever surrounds it.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE, URL_SAFE_NO_PAD};
use jig_engine::redact::{Redactor, TextJoiner};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::fuzzed::redactor::{forms, hex, json_text, percent};

const SECRET: &str = "s3cr\"t/pä ss\\w\n+?";

fn redactor() -> Redactor {
    Redactor::new([("TOKEN", SECRET)])
}

#[test]
fn every_form_is_found_in_the_middle_of_anything() {
    let redactor = redactor();
    for (name, form) in forms(SECRET) {
        for (before, after) in [("", ""), ("x", "y"), ("\\", "\\"), ("%", "%"), ("\"", "\"")] {
            let text = format!("{before}{form}{after}");
            let out = redactor.text(&text);
            assert!(out.contains("[redacted:TOKEN]"), "{name}: {text} -> {out}");
            assert!(!out.contains(&form), "{name}: {out}");
        }
    }
}

#[test]
fn base64_is_found_at_all_alignments_in_both_alphabets() {
    let redactor = redactor();
    for before in 0..6 {
        for after in 0..4 {
            let mut bytes = vec![b'<'; before];
            bytes.extend_from_slice(SECRET.as_bytes());
            bytes.extend(std::iter::repeat_n(b'>', after));
            for text in [
                STANDARD.encode(&bytes),
                URL_SAFE.encode(&bytes),
                URL_SAFE_NO_PAD.encode(&bytes),
                STANDARD.encode(&bytes).replace('/', "\\/"),
                percent(&STANDARD.encode(&bytes), true, false),
            ] {
                let out = redactor.text(&text);
                assert!(
                    out.contains("[redacted:TOKEN]"),
                    "{before} {after} {text} -> {out}"
                );
            }
        }
    }
}

#[test]
fn wrapped_encodings_are_found() {
    let secret = "a-long-enough-secret-to-be-wrapped-by-every-encoder-there-is-0123456789";
    let redactor = Redactor::new([("LONG", secret)]);
    for wrap in ["\n", "\r\n", "\\n", "\\\\n"] {
        let encoded: Vec<char> = STANDARD.encode(secret).chars().collect();
        let lines: Vec<String> = encoded
            .chunks(20)
            .map(|line| line.iter().collect())
            .collect();
        let out = redactor.text(&lines.join(wrap)).into_owned();
        assert!(out.contains("[redacted:LONG]"), "{out}");
        let digits = hex(secret.as_bytes(), "");
        let lines: Vec<&str> = digits
            .as_bytes()
            .chunks(60)
            .map(|line| std::str::from_utf8(line).unwrap())
            .collect();
        let out = redactor.text(&lines.join(wrap)).into_owned();
        assert_eq!(out, "[redacted:LONG]");
    }
}

#[test]
fn the_longest_secret_names_the_place() {
    let redactor = Redactor::new([("SHORT", "sesame"), ("LONG", "open-sesame-now")]);
    assert_eq!(redactor.text("<open-sesame-now>"), "<[redacted:LONG]>");
    assert_eq!(redactor.text("<sesame>"), "<[redacted:SHORT]>");
    // Overlapping ones go together: no rest of either remains.
    let redactor = Redactor::new([("A", "abcdef"), ("B", "xxxabc")]);
    assert_eq!(redactor.text("1xxxabcdef2"), "1[redacted:A]2");
}

#[test]
fn short_values_are_left_alone_and_marks_never_show_a_secret() {
    let redactor = Redactor::new([("SHORT", "abc"), ("redacted", "redacted")]);
    assert_eq!(redactor.text("abc redacted"), "abc ***");
    assert!(Redactor::new([("X", "")]).is_empty());
    assert!(!format!("{:?}", Redactor::new([("X", "s3cret")])).contains("s3cret"));
}

#[test]
fn a_secret_that_is_no_text_is_found() {
    let secret = b"\xff\xfeabc\x80".to_vec();
    let redactor = Redactor::new([("BIN", secret.clone())]);
    let lossy = String::from_utf8_lossy(&secret).into_owned();
    assert_eq!(redactor.text(&lossy), "[redacted:BIN]");
    assert_eq!(redactor.bytes(&secret).as_ref(), b"[redacted:BIN]");
    assert_eq!(redactor.text(&hex(&secret, "")), "[redacted:BIN]");
}

#[test]
fn what_a_foreign_cut_left_of_a_secret_is_found() {
    let redactor = Redactor::new([("KEY", "correct-horse-battery")]);
    let long = "x".repeat(600);
    let out = redactor.text(&format!("{long}correct-horse")).into_owned();
    assert!(out.ends_with("x[redacted:KEY]"), "{out}");
    let out = redactor.text(&format!("battery{long}")).into_owned();
    assert!(out.starts_with("[redacted:KEY]x"), "{out}");
}

#[test]
fn a_secret_of_many_lines_is_found_line_by_line_too() {
    let key =
        "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhk\r\nAgEAAoIBAQC7VJTUt9\n}\n-----END KEY-----\n";
    let redactor = Redactor::new([("PEM", key)]);
    assert_eq!(
        redactor.text(&format!("<{key}>")),
        "<[redacted:PEM]>",
        "as one"
    );
    // As a reader with line numbers shows it, and a tool that stopped halfway.
    assert_eq!(
        redactor.text("2\tMIIEvQIBADANBgkqhk\n3\tAgEAAoIBAQC7VJTUt9\n4\t}\n"),
        "2\t[redacted:PEM]\n3\t[redacted:PEM]\n4\t}\n"
    );
    let half = hex(b"EvQIBADANBgkqhk\r\nAgEAAoIBAQC7VJTUt9\n}", "");
    assert_eq!(
        redactor.text(&half),
        format!(
            "{}[redacted:PEM]{}",
            hex(b"EvQIBADANBgkqhk\r\n", ""),
            hex(b"\n}", "")
        )
    );
}

#[test]
fn keys_strings_and_numbers_of_json_are_cleaned() {
    let redactor = Redactor::new([("KEY", "sesame"), ("PIN", "48151623")]);
    let mut value = json!({"sesame": [{"a": "x sesame"}], "n": 48_151_623, "m": 4_815_162});
    redactor.value(&mut value);
    assert_eq!(
        value,
        json!({"[redacted:KEY]": [{"a": "x [redacted:KEY]"}], "n": "[redacted:PIN]", "m": 4_815_162})
    );
}

#[test]
fn deltas_are_joined_before_they_are_judged() {
    let redactor = redactor();
    let mut joiner = TextJoiner::default();
    for part in ["before ", "s3cr\"t", "/pä ", "ss\\w\n", "+?", " after"] {
        assert_eq!(joiner.push(&redactor, part), None);
    }
    let whole = joiner.finish(&redactor).unwrap();
    assert_eq!(whole, "before [redacted:TOKEN] after");
    assert_eq!(joiner.finish(&redactor), None);
}

/// Secrets without characters of the marks themselves.
fn secrets() -> impl Strategy<Value = String> {
    "[a-z0-9 /+\"\\\\é\n%=&]{4,24}"
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_form_survives(
        secret in secrets(),
        before in "\\PC{0,20}",
        after in "\\PC{0,20}",
    ) {
        let redactor = Redactor::new([("K", secret.as_str())]);
        for (name, form) in forms(&secret) {
            let text = format!("{before}{form}{after}");
            let out = redactor.text(&text);
            prop_assert!(!out.contains(&form), "{}: {:?} -> {:?}", name, text, out);
            let marked = out.contains("[redacted:K]") || out.contains("***");
            prop_assert!(marked, "{}: {:?} -> {:?}", name, text, out);
        }
        for lead in 0..3 {
            let bytes = [vec![0; lead], secret.clone().into_bytes()].concat();
            let text = format!("{before} {}", STANDARD.encode(bytes));
            let out = redactor.text(&text);
            prop_assert!(out != text, "{}", text);
        }
    }

    #[test]
    fn text_without_a_secret_is_untouched(text in "[A-Z ,.]{0,2000}", secret in "[a-z]{8,20}") {
        prop_assume!(!text.to_lowercase().contains(&secret));
        let redactor = Redactor::new([("K", secret.as_str())]);
        let out = redactor.text(&text);
        prop_assert_eq!(&out, &text);
    }

    #[test]
    fn a_stream_says_the_same_however_it_is_split(
        secret in "[a-z]{6,12}",
        parts in proptest::collection::vec("[ A-Z]{0,3000}", 1..40),
        cuts in proptest::collection::vec(0_usize..400, 1..200),
    ) {
        let redactor = Redactor::new([("K", secret.as_str())]);
        let whole = parts.join(&secret);
        let (mut joiner, mut out, mut rest) = (TextJoiner::default(), String::new(), whole.as_str());
        let mut sizes = cuts.iter().cycle();
        while !rest.is_empty() {
            let size = (*sizes.next().unwrap() + 1).min(rest.len());
            let (now, later) = rest.split_at(size);
            out.extend(joiner.push(&redactor, now));
            rest = later;
        }
        out.extend(joiner.finish(&redactor));
        let expected = redactor.text(&whole).into_owned();
        prop_assert_eq!(out, expected);
    }

    #[test]
    fn json_values_never_show_it(secret in secrets(), key in "[A-Z]{0,5}", note in "\\PC{0,10}") {
        let redactor = Redactor::new([("K", secret.as_str())]);
        let inner = json!({&key: format!("{note}{secret}")}).to_string();
        let mut value = json!({
            format!("{key}{secret}"): [secret, {"nested": inner, "deeper": json!(inner).to_string()}],
        });
        redactor.value(&mut value);
        fn clean(value: &Value, secret: &str) -> bool {
            match value {
                Value::String(text) => !text.contains(secret),
                Value::Array(items) => items.iter().all(|item| clean(item, secret)),
                Value::Object(map) => map.iter().all(|(k, v)| !k.contains(secret) && clean(v, secret)),
                _ => true,
            }
        }
        prop_assert!(clean(&value, &secret), "{value}");
        let text = value.to_string();
        prop_assert!(!text.contains(&json_text(&json_text(&secret))), "{}", text);
    }
}
