//! The redactor: no form of a secret survives, wherever a stream is cut.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use jig_engine::redact::{RedactingFilter, Redactor, TextJoiner};
use jig_process::capture::StreamFilter as _;

/// What secrets are made of: everything that some encoding treats specially.
/// Nothing of the marks that take their place, so that finding it is a leak.
const ALPHABET: &[u8] = b"bfghjkmnpquvwxyz0123456789 /+\"\\\n%=&-_.";

/// The first bytes choose the secret's length and the cuts, the next ones are
/// the secret, the rest is the text around it.
pub(crate) fn check(data: &[u8]) {
    let [length, cut, lead, rest @ ..] = data else {
        return;
    };
    let length = usize::from(*length) % 40 + 4;
    let Some((secret, around)) = rest.split_at_checked(length) else {
        return;
    };
    let secret: String = secret
        .iter()
        .map(|byte| char::from(ALPHABET[usize::from(*byte) % ALPHABET.len()]))
        .collect();
    let (before, after) = around.split_at(around.len() / 2);
    let (before, after) = (
        String::from_utf8_lossy(before),
        String::from_utf8_lossy(after),
    );
    let redactor = Arc::new(Redactor::new([("K", secret.as_str())]));
    let step = usize::from(*cut) % 23 + 1;
    let mut all = forms(&secret);
    all.extend(base64_forms(&secret, usize::from(*lead) % 3));
    let chosen = usize::from(*lead) / 3 % all.len();
    for (at, (name, form)) in all.into_iter().enumerate() {
        let text = format!("{before}{form}{after}");
        let gone = |out: &str, how: &str| {
            assert!(!out.contains(&form), "{name}, {how}: {text:?} -> {out:?}");
        };
        gone(&redactor.text(&text), "as text");
        gone(
            &String::from_utf8_lossy(&redactor.bytes(text.as_bytes())),
            "as bytes",
        );
        gone(&joined(&redactor, &text, step), "in deltas");
        gone(&filtered(&redactor, &text, step), "as a stream");
        // A long text takes long to judge: one form of all, which the data choose.
        if at == chosen {
            let text = far(&redactor, &text, *cut);
            gone(&filtered(&redactor, &text, 4096), "far down a stream");
        }
    }
}

/// The core of base64 text: the characters that the secret alone decides.
fn base64_forms(secret: &str, lead: usize) -> [(&'static str, String); 2] {
    let bytes = [&b"\0\0"[..lead], secret.as_bytes()].concat();
    let whole = bytes.len() * 4 / 3;
    let first = (lead * 4).div_ceil(3);
    let core = |text: String| text[first..whole].to_owned();
    [
        ("base64", core(STANDARD.encode(&bytes))),
        ("base64 for addresses", core(URL_SAFE_NO_PAD.encode(&bytes))),
    ]
}

fn joined(redactor: &Redactor, text: &str, step: usize) -> String {
    let mut joiner = TextJoiner::default();
    let mut out = String::new();
    let characters: Vec<char> = text.chars().collect();
    for part in characters.chunks(step) {
        let part: String = part.iter().collect();
        out.extend(joiner.push(redactor, &part));
    }
    out.extend(joiner.finish(redactor));
    out
}

fn filtered(redactor: &Arc<Redactor>, text: &str, step: usize) -> String {
    let mut filter = RedactingFilter::new(Arc::clone(redactor));
    let mut out = Vec::new();
    for part in text.as_bytes().chunks(step) {
        out.extend(filter.push(part));
    }
    out.extend(filter.finish());
    String::from_utf8_lossy(&out).into_owned()
}

/// The text where a filter has to let go of what it holds.
fn far(redactor: &Redactor, text: &str, cut: u8) -> String {
    let before = 32 * 1024 - text.len().min(usize::from(cut));
    let after = redactor.margin() + 4096;
    format!("{}{text}{}", ".".repeat(before), ".".repeat(after))
}

pub(crate) fn percent(text: &str, upper: bool, everything: bool) -> String {
    text.bytes()
        .map(|byte| {
            if !everything && byte.is_ascii_alphanumeric() {
                char::from(byte).to_string()
            } else if upper {
                format!("%{byte:02X}")
            } else {
                format!("%{byte:02x}")
            }
        })
        .collect()
}

pub(crate) fn hex(bytes: &[u8], between: &str) -> String {
    let pairs: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    pairs.join(between)
}

pub(crate) fn json_text(text: &str) -> String {
    let quoted = serde_json::to_string(text).unwrap();
    quoted[1..quoted.len() - 1].to_owned()
}

fn ascii_json(text: &str) -> String {
    text.encode_utf16()
        .map(|unit| format!("\\u{unit:04x}"))
        .collect()
}

/// Every form the redactor promises to find, by name.
pub(crate) fn forms(secret: &str) -> Vec<(&'static str, String)> {
    let once = json_text(secret);
    let octal: String = secret.bytes().map(|byte| format!("\\{byte:03o}")).collect();
    let hexed: String = secret
        .bytes()
        .map(|byte| format!("\\x{byte:02x}"))
        .collect();
    vec![
        ("literal", secret.to_owned()),
        ("json", once.clone()),
        ("json in json", json_text(&once)),
        ("json in json in json", json_text(&json_text(&once))),
        ("ascii json", ascii_json(secret)),
        ("ascii json in json", json_text(&ascii_json(secret))),
        ("slash escaped", once.replace('/', "\\/")),
        ("octal", octal),
        ("hex escapes", hexed),
        ("percent upper", percent(secret, true, false)),
        ("percent lower", percent(secret, false, false)),
        ("percent all", percent(secret, true, true)),
        (
            "percent twice",
            percent(&percent(secret, true, false), true, false),
        ),
        ("form", percent(secret, true, false).replace("%20", "+")),
        ("hex", hex(secret.as_bytes(), "")),
        ("hex upper", hex(secret.as_bytes(), "").to_uppercase()),
        ("hex dump", hex(secret.as_bytes(), " ")),
        ("hex colons", hex(secret.as_bytes(), ":")),
    ]
}
