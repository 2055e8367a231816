//! `jig def validate` on files as editors, other systems and accidents make
//! them.

use serde_json::Value;

use crate::env::Env;

const GOOD: &str = "name: t\nphases:\n  - {name: p, kind: code, command: x}\n";

/// The answer for one file, by `--json`, and what people are told.
fn validate(content: &[u8], code: i32) -> (Value, String) {
    let env = Env::new();
    let path = env.path("file.yaml");
    std::fs::write(&path, content).unwrap();
    let args = ["def", "validate", "file.yaml"];
    let prose = env.jig(&env.path(""), &args);
    let told = format!("{}{}", prose.expect(code).stdout, prose.stderr);
    let done = env.jig(&env.path(""), &[&args[..], &["--json"]].concat());
    let mut answers = done.expect(code).json();
    assert_eq!(done.stderr, "", "machines are told on stdout alone");
    assert_eq!(answers[0]["ok"], code == 0, "{answers}");
    (answers[0].take(), told)
}

#[test]
fn line_ends_and_byte_order_marks_change_nothing() {
    for good in [
        GOOD.to_owned(),
        GOOD.replace('\n', "\r\n"),
        format!("\u{feff}{GOOD}"),
        format!("---\n{GOOD}...\n"),
        format!("%YAML 1.2\n---\n{GOOD}"),
        GOOD.trim_end().to_owned(),
    ] {
        let (answer, told) = validate(good.as_bytes(), 0);
        assert_eq!(
            (&answer["phases"], &answer["roles"]),
            (&1.into(), &0.into())
        );
        assert_eq!(told, "ok file.yaml: t, 1 phase, 0 roles\n");
    }
}

#[test]
fn what_is_wrong_stands_where_an_editor_shows_it() {
    let wrong = GOOD.replace("kind: code", "kind: cod");
    let rows = [
        (wrong.clone(), (3, 21), "E013"),
        (wrong.replace('\n', "\r\n"), (3, 21), "E013"),
        (format!("\u{feff}{wrong}"), (3, 21), "E013"),
        // A byte order mark is no column.
        (
            format!("\u{feff}{}", GOOD.replace("name: t", "nmae: t")),
            (1, 1),
            "E010",
        ),
        // Columns are characters, not bytes.
        (
            wrong.replace("{name: p", "{name: \"日本語\""),
            (3, 12),
            "E015",
        ),
        (format!("{GOOD}---\n{GOOD}"), (4, 1), "E005"),
        (String::new(), (1, 1), "E005"),
        ("# nothing\n".to_owned(), (1, 1), "E005"),
        ("just words\n".to_owned(), (1, 1), "E011"),
        ("name: t\0\n".to_owned(), (1, 8), "E001"),
        (format!("{GOOD}<<: {{}}\n"), (4, 1), "E008"),
        (format!("{GOOD}description: *nowhere\n"), (4, 14), "E001"),
    ];
    for (text, place, code) in rows {
        let (answer, told) = validate(text.as_bytes(), 2);
        let first = &answer["diagnostics"][0];
        let found = (&first["line"], &first["column"], &first["code"]);
        assert_eq!(
            found,
            (&place.0.into(), &place.1.into(), &code.into()),
            "{text}"
        );
        let (line, column) = place;
        assert!(
            told.contains(&format!("file.yaml:{line}:{column}\n")),
            "{told}"
        );
        assert!(told.contains(&format!("error[{code}]")), "{told}");
    }
}

#[test]
fn a_file_that_is_no_text_or_too_much_of_it_is_diagnosed_too() {
    let utf16: Vec<u8> = GOOD.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let utf16 = [&[0xff, 0xfe], &utf16[..]].concat();
    let large = format!("{GOOD}# {}\n", "x".repeat(1 << 20));
    // Cut inside a character: it is too large all the same.
    let wide = format!("{GOOD}# {}\n", "ä".repeat(1 << 19));
    let not_text = "the text is not UTF-8";
    let too_large = "the file has more than 1048576 bytes";
    for (bytes, code, place, says) in [
        (utf16, "E001", (1, 1), not_text),
        (
            b"name: t\ndescription: \xc3\xa4\xe9\n".to_vec(),
            "E001",
            (2, 15),
            not_text,
        ),
        (large.into_bytes(), "E002", (1, 1), too_large),
        (wide.into_bytes(), "E002", (1, 1), too_large),
    ] {
        let (answer, told) = validate(&bytes, 2);
        let first = &answer["diagnostics"][0];
        let found = (&first["line"], &first["column"], &first["code"]);
        assert_eq!(found, (&place.0.into(), &place.1.into(), &code.into()));
        assert_eq!(answer.get("error"), None);
        assert!(told.contains(says), "{told:.2000}");
    }
}

#[test]
fn what_cannot_be_read_is_no_diagnosis() {
    let env = Env::new();
    let args = ["def", "validate", "missing.yaml", "home", "--json"];
    let answers = env.jig(&env.path(""), &args).expect(2).json();
    for (answer, says) in answers
        .as_array()
        .unwrap()
        .iter()
        .zip(["No such file", "a directory"])
    {
        assert_eq!(answer["diagnostics"], Value::Array(Vec::new()));
        assert!(answer["error"].as_str().unwrap().contains(says), "{answer}");
    }
}
