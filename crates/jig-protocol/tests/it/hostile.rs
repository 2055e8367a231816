//! Definitions written by an attacker: no panic, no endless work, no flood.

use jig_protocol::definition::Code;
use jig_protocol::limits::DEFINITION_BYTES;

use crate::fuzzed::definition::survive;

const SAMPLE: &str = include_str!("definitions/ok-everything.yaml");
const WRITERS: &str = include_str!("definitions/ok-writers.yaml");

fn codes(text: &str) -> Vec<Code> {
    survive(text)
        .diagnostics
        .iter()
        .map(|problem| problem.code)
        .collect()
}

#[test]
fn size_is_limited_in_bytes() {
    let fill = |size: usize| format!("name: a # {}", "x".repeat(size - 10));
    assert_eq!(codes(&fill(DEFINITION_BYTES + 1)), [Code::TooLarge]);
    assert_eq!(codes(&fill(DEFINITION_BYTES)), [Code::Missing]);
}

#[test]
fn depth_is_limited_exactly() {
    let deep = |lists: usize| {
        format!(
            "name: a\nphases: {}{}",
            "[".repeat(lists),
            "]".repeat(lists)
        )
    };
    assert!(!codes(&deep(31)).contains(&Code::TooDeep));
    assert_eq!(codes(&deep(32)), [Code::TooDeep]);
    let block: String = (0..40)
        .map(|depth| format!("{}a:\n", " ".repeat(depth)))
        .collect();
    assert_eq!(codes(&block), [Code::TooDeep]);
}

#[test]
fn values_are_counted_after_expansion() {
    // The map, its key, and the list are three.
    let many = |items: usize| format!("a: [{}]", "x,".repeat(items));
    assert!(!codes(&many(9_997)).contains(&Code::TooManyNodes));
    assert_eq!(codes(&many(9_998)), [Code::TooManyNodes]);
}

#[test]
fn nasty_texts() {
    let big = |part: &str| part.repeat(DEFINITION_BYTES / part.len());
    let roles: String = (0..3_000).map(|n| format!("  r{n}: {{}}\n")).collect();
    let locks: String = (0..9_000).map(|n| format!("port:{n},")).collect();
    for text in [
        String::new(),
        "\0".to_owned(),
        "\u{feff}name: a\r\nphases: []\r\n".to_owned(),
        "---\n---\n---\n".to_owned(),
        "%TAG ! tag:x,2000:\n---\n!y a".to_owned(),
        "? [complex]\n: value\n".to_owned(),
        "? |\n  block key\n: value\n".to_owned(),
        "*a".to_owned(),
        "&a".to_owned(),
        "&a &b c".to_owned(),
        "a: &x [*x]".to_owned(),
        "name: \"\\ud800\"".to_owned(),
        "name: \u{202e}evil".to_owned(),
        "\u{202e}: 1".to_owned(),
        "name: >\n folded\n\n  more\n".to_owned(),
        "phases: [[[[[".to_owned(),
        "name: 'a\n".to_owned(),
        "a\tb: c\t: d".to_owned(),
        "phases:\n - - - - name: x\n".to_owned(),
        format!("? {}\n: v\n", "k".repeat(100_000)),
        format!("name: a\n{}: b\n", "k".repeat(1_000)),
        format!("name: {}", "9".repeat(100_000)),
        format!("name: \"{}\"", "\\u001b[2J".repeat(1_000)),
        format!("name: a\nroster:\n{roles}phases: []\n"),
        format!("parallel_writers: {{members: [{{phase: a, owns: [b], locks: [{locks}]}}]}}"),
        big("a: b\n"),
        big("- "),
        big("["),
        big("{"),
        big("? "),
        big("&a "),
        big("*a "),
        big("!a "),
        big("\"\\x"),
        big("#\n"),
        big("- a\n"),
        big("|\n"),
        big("a:\n "),
        big("'"),
        big("x "),
        big("---\n"),
        big("é: ü\n"),
        format!("name: {}", big("x ").get(..DEFINITION_BYTES - 10).unwrap()),
    ] {
        assert!(
            survive(&text).definition.is_none(),
            "{}",
            text.get(..40).unwrap_or(&text)
        );
    }
}

#[test]
fn a_flood_of_problems_is_cut() {
    let text: String = (0..4_000).map(|n| format!("key{n}: 1\n")).collect();
    assert_eq!(survive(&text).diagnostics.len(), 100);
}

/// Every line of a good file removed, doubled, or replaced: whatever comes of
/// it, the parser answers.
#[test]
fn every_line_of_a_good_file_may_break() {
    for sample in [SAMPLE, WRITERS] {
        let lines: Vec<&str> = sample.lines().collect();
        for at in 0..lines.len() {
            for replacement in [vec![], vec![lines[at]; 2], vec!["  - {]"], vec!["    x: y"]] {
                let mut broken = lines.clone();
                broken.splice(at..=at, replacement);
                survive(&broken.join("\n"));
            }
        }
    }
}

proptest::proptest! {
    #[test]
    fn any_text(text in "[-a-z:{}\\[\\],&*!|>'\"#%@` \n\t~0-9é]{0,120}") {
        survive(&text);
    }

    #[test]
    fn any_change_of_a_good_file(
        at in 0..SAMPLE.len(),
        cut in 0_usize..12,
        insert in "[-a-z:{}\\[\\],&*!|>'\"# \n0-9]{0,6}",
    ) {
        let start = SAMPLE.floor_char_boundary(at);
        let end = SAMPLE.floor_char_boundary((at + cut).min(SAMPLE.len()));
        let text = format!("{}{insert}{}", &SAMPLE[..start], &SAMPLE[end.max(start)..]);
        survive(&text);
    }
}
