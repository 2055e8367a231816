//! The definition parser against files with known problems.

use std::fmt::Write as _;
use std::path::Path;

use jig_protocol::definition::{Code, parse};

/// `code line:col` of every diagnostic, in order.
fn found(text: &str) -> Vec<String> {
    parse(text)
        .diagnostics
        .iter()
        .map(|problem| {
            format!(
                "{} {}:{}",
                problem.code, problem.span.line, problem.span.column
            )
        })
        .collect()
}

/// The `# expect:` lines a file starts with.
fn expected(text: &str) -> Vec<String> {
    text.lines()
        .map_while(|line| line.strip_prefix("# expect: "))
        .map(str::to_owned)
        .collect()
}

fn corpus() -> Vec<(String, String)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/definitions");
    let mut files: Vec<_> = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "yaml"))
        .collect();
    files.sort();
    files
        .into_iter()
        .map(|path| {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            let text = String::from_utf8(std::fs::read(&path).unwrap()).unwrap();
            (name, text)
        })
        .collect()
}

#[test]
fn every_file_has_exactly_its_problems() {
    let mut wrong = String::new();
    for (name, text) in corpus() {
        let (expected, found) = (expected(&text), found(&text));
        if expected != found {
            let _ = writeln!(
                wrong,
                "{name}\n  expected {expected:?}\n  found    {found:?}"
            );
            for problem in parse(&text).diagnostics {
                let _ = writeln!(wrong, "{}", problem.render(&name, &text, false));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn a_definition_comes_out_exactly_when_nothing_is_wrong() {
    for (name, text) in corpus() {
        let parsed = parse(&text);
        let errors = parsed
            .diagnostics
            .iter()
            .any(|problem| problem.code.as_str().starts_with('E'));
        assert_eq!(parsed.definition.is_none(), errors, "{name}");
    }
}

#[test]
fn every_code_has_a_file() {
    let seen: String = corpus()
        .iter()
        .map(|(name, _)| format!("{name}\n"))
        .collect();
    for code in Code::ALL {
        // Too large to keep as a file; see `limits` below.
        if matches!(code, Code::TooLarge) {
            continue;
        }
        assert!(
            seen.lines().any(|name| name.starts_with(code.as_str())),
            "no file tests {code}"
        );
    }
}
