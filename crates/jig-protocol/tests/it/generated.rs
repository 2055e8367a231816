//! Files that are made from the code; `JIG_BLESS=1` writes them anew.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use jig_protocol::definition::{Code, duration, json_schema};
use jig_protocol::limits::{ALL, LimitValue};

fn docs(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs")
        .join(name)
}

/// Compares a file with what it should hold, or writes it.
fn in_step(name: &str, expected: &str) {
    let path = docs(name);
    if std::env::var_os("JIG_BLESS").is_some_and(|value| value == "1") {
        std::fs::write(&path, expected).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap();
    assert!(
        found == expected,
        "docs/{name} is out of step; run `JIG_BLESS=1 cargo test -p jig-protocol generated_`"
    );
}

#[test]
fn generated_schema() {
    let mut text = serde_json::to_string_pretty(&json_schema()).unwrap();
    text.push('\n');
    in_step("definition.schema.json", &text);
}

#[test]
fn generated_limits() {
    let mut text = String::from(
        "# Limits\n\n\
         Made from `crates/jig-protocol/src/limits.rs`; do not edit. Hitting a limit names it and\n\
         its value.\n\n\
         | Limit | Value | Why |\n|---|---|---|\n",
    );
    for limit in ALL {
        let value = match limit.value {
            LimitValue::Count(count) => count.to_string(),
            LimitValue::Bytes(bytes) => size(bytes),
            LimitValue::Time(time) => duration::show(time),
        };
        let name = limit.name.to_ascii_lowercase();
        let _ = writeln!(text, "| `{name}` | {value} | {} |", limit.why);
    }
    in_step("LIMITS.md", &text);
}

fn size(bytes: u64) -> String {
    for (unit, size) in [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)] {
        if bytes >= size && bytes.is_multiple_of(size) {
            return format!("{} {unit}", bytes / size);
        }
    }
    format!("{bytes} B")
}

/// The table of codes inside `docs/definition.md`, between two markers.
#[test]
fn generated_codes() {
    const BEGIN: &str = "<!-- codes: made from code.rs, do not edit -->\n";
    const END: &str = "<!-- end of codes -->\n";
    let found = std::fs::read_to_string(docs("definition.md")).unwrap();
    let (before, rest) = found
        .split_once(BEGIN)
        .expect("the marker before the codes");
    let (_, after) = rest.split_once(END).expect("the marker after the codes");
    let mut table = String::from("| Code | Meaning |\n|---|---|\n");
    for code in Code::ALL {
        let _ = writeln!(table, "| `{code}` | {} |", code.meaning());
    }
    in_step(
        "definition.md",
        &format!("{before}{BEGIN}{table}{END}{after}"),
    );
}

#[test]
fn codes_are_unique_and_ordered() {
    let codes: Vec<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
    let mut sorted = codes.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(codes, sorted);
    assert!(Code::ALL.iter().all(|code| code.meaning().ends_with('.')));
}
