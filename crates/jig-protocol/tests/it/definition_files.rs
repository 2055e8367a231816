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
    let corpus = corpus();
    for code in Code::ALL {
        // Too large to keep as a file; `hostile` tests it.
        if matches!(code, Code::TooLarge) {
            continue;
        }
        let code = code.as_str();
        let tested = corpus.iter().any(|(name, text)| {
            name.starts_with(code) && expected(text).iter().any(|line| line.starts_with(code))
        });
        assert!(tested, "no file tests {code}");
    }
    for (name, text) in &corpus {
        let claimed = name.split('-').next().unwrap();
        let kept = claimed == "ok" && expected(text).is_empty()
            || expected(text).iter().any(|line| line.starts_with(claimed));
        assert!(kept, "{name} is not about what its name says");
    }
}

#[test]
fn shown_to_people_with_both_places_and_what_to_do() {
    let text = "name: a\nroster: {}\nphases:\n  - name: b\n    kind: code\n    on_fial: {}\n    kind: code\n    command: x\n";
    let shown: Vec<String> = parse(text)
        .diagnostics
        .iter()
        .map(|problem| problem.render("flow.yaml", text, false))
        .collect();
    insta::assert_snapshot!(shown.join("\n\n"));
    let colored = parse(text).diagnostics[0].render("flow.yaml", text, true);
    assert!(colored.contains('\u{1b}'));
}

#[test]
fn shown_to_machines_with_stable_names() {
    let text = "name: é\nphases: [{name: ü, kind: code}]\n";
    let problems: Vec<_> = parse(text)
        .diagnostics
        .iter()
        .map(|problem| serde_json::to_value(problem.to_json()).unwrap())
        .collect();
    // Columns count characters, not bytes.
    assert_eq!(problems[2]["column"], 17);
    assert_eq!(problems[2]["end_column"], 18);
    assert_eq!(
        problems[1],
        serde_json::json!({
            "code": "E012",
            "severity": "error",
            "message": "a code phase needs a `command`",
            "line": 2,
            "column": 10,
            "end_line": 2,
            "end_column": 31,
            "path": "phases[0].command",
        })
    );
}

/// What people get wrong in writing YAML itself or a type, with what they are
/// told to do: place of the first problem, and a part of its help.
#[test]
fn the_first_problem_says_where_and_what_to_do() {
    let phase = "phases:\n  - {name: p, kind: code, command: x";
    let chain = format!("{phase}}}\n");
    let rows: &[(String, &str, &str)] = &[
        (
            format!("name: t\n{phase}, gates: [tests_pass]}}\n"),
            "E011 3:47",
            "write it as `{name: tests_pass}`",
        ),
        (
            format!("name: t\n{phase}, writes: src/a.txt}}\n"),
            "E011 3:47",
            "for a list of one, write `[src/a.txt]`",
        ),
        (
            format!("name: t\nacceptance: all_phases_passed\n{chain}"),
            "E011 2:13",
            "write `[all_phases_passed]`",
        ),
        (
            format!("name: t\nbudget_usd: \"5\"\n{chain}"),
            "E011 2:13",
            "remove them",
        ),
        (
            format!("name: t\n{phase}, reports_fields: \"true\"}}\n"),
            "E011 3:55",
            "remove them",
        ),
        (
            format!("name: t\n{phase}, reports_fields: yes}}\n"),
            "E011 3:55",
            "`true` and `false`",
        ),
        (
            format!(
                "name: t\n{phase}, gates: [{{name: tests_pass, command: x, budget: \"2\"}}]}}\n"
            ),
            "E011 3:86",
            "remove them",
        ),
        (format!("name: 5\n{chain}"), "E011 1:7", "quote it: \"5\""),
        (
            format!("name:\n{chain}"),
            "E011 1:5",
            "give the key a value or remove it",
        ),
        (
            format!("name: t\nlimits: {{phase_timeout: 5}}\n{chain}"),
            "E018 2:25",
            "`30m`",
        ),
        (
            format!("name: t\nruntime: cluade-code\n{chain}"),
            "E013 2:10",
            "did you mean `claude-code`?",
        ),
        (
            format!("name: t\nacceptence: []\n{chain}"),
            "E010 2:1",
            "did you mean `acceptance`?",
        ),
        (
            format!("name: t\n{phase}, on_fial: {{}}}}\n"),
            "E010 3:39",
            "did you mean `on_fail`?",
        ),
        (
            "name: t\nphases:\n\t- name: p\n".to_owned(),
            "E001 3:2",
            "indent with spaces",
        ),
        (
            "name: t\ndescription: a: b\n".to_owned(),
            "E001 2:15",
            "must be quoted",
        ),
        (
            "name: t\r\nphases: 5\r\n".to_owned(),
            "E011 2:9",
            "write `[5]`",
        ),
    ];
    for (text, place, help) in rows {
        let parsed = parse(text);
        assert_eq!(
            found(text).first().map(String::as_str),
            Some(*place),
            "{text}"
        );
        let told = parsed.diagnostics[0].help.as_deref().unwrap_or_default();
        assert!(told.contains(help), "{text}\n{told:?} lacks {help:?}");
    }
}

#[test]
fn a_number_out_of_range_names_its_key() {
    let text = "name: t\nphases:\n  - {name: p, kind: code, command: x, on_fail: {run: q, then: rerun-self, budget: 21}}\n  - {name: q, kind: code, command: x}\n";
    let problems = parse(text).diagnostics;
    assert_eq!(problems[0].message, "`budget` must be from 1 to 20");
    assert_eq!(problems.len(), 1, "{problems:#?}");
}
