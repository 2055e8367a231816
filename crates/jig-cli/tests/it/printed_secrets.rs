//! The value of a sensitive variable is nowhere after a run: not in the data
//! directory, not in what is printed, in whatever form an agent wrote it.

use std::ffi::OsString;
use std::path::Path;

use crate::env::Env;

/// Short enough to fit a line, with characters that every encoding changes.
const SECRET: &str = "s3cr3t/+\"key\\ with=signs&more";
/// As long as a private key, over many lines.
fn long_secret() -> String {
    (0..40)
        .map(|line| format!("LINE{line:02}-{}", "Zq9x".repeat(13)))
        .collect::<Vec<_>>()
        .join("\n")
}

const DEFINITION: &str = "\
name: leaks
roster:
  worker:
    model: none
    writes: ['**']
    env: [PATH, TOKEN, PEM]
    sensitive_env: [TOKEN, PEM]
    system_prompt: Work.
    user_prompt: '{{prompt}}'
phases:
  - name: work
    kind: agent
    owner: worker
    gates: [{name: tests_pass, command: 'printf %s \"$TOKEN\"; printf %s \"$PEM\" >&2'}]
  - {name: check, kind: code, owner: worker, command: 'printf %s \"$PEM\"; printf %s \"$TOKEN\" >&2; exit 1'}
";

/// Prints the secrets in the forms tools print them in.
const LEAK: &str = r#"
      run: |
        printf '%s\n' "$TOKEN" >&2; printf '%s\n' "$PEM" >&2
        printf '%s' "$TOKEN" > ~/../../../handoff/notes; printf '%s' "$PEM" >> ~/../../../handoff/notes
        printf '%s' "$TOKEN" | base64 -w0; echo
        printf 'x%s' "$TOKEN" | base64 -w0; echo
        printf 'xy%s' "$TOKEN" | base64 -w0 | tr '+/' '-_'; echo
        printf '%s' "$TOKEN" | od -An -v -tx1 | tr -d ' \n'; echo
        printf '%s' "$PEM"
"#;

fn haystacks(dir: &Path, found: &mut Vec<(String, Vec<u8>)>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        found.push((
            path.display().to_string(),
            path.as_os_str().as_encoded_bytes().to_vec(),
        ));
        if path.is_symlink() {
            continue;
        }
        if path.is_dir() {
            haystacks(&path, found);
        } else if let Ok(bytes) = std::fs::read(&path) {
            found.push((path.display().to_string(), bytes));
        }
    }
}

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

/// Forms that must not occur; parts of the long one stand for all of it.
fn needles() -> Vec<String> {
    let long = long_secret();
    let mut needles = vec![
        SECRET.to_owned(),
        SECRET.replace('\\', "\\\\").replace('"', "\\\""),
        hex(SECRET),
        hex(SECRET).to_uppercase(),
        // The middle of each base64 alignment.
        "czNjcjN0LysiaGV5".replace("aGV5", "a2V5"),
    ];
    needles.extend(long.lines().map(str::to_owned));
    needles
}

#[test]
fn a_printed_secret_is_nowhere_after_the_run() {
    for end in [
        "      emit: {status: success, summary: done, artifacts: []}\n",
        "      end: {exit: 3}\n",
    ] {
        let mut env = Env::new();
        env.vars.insert(OsString::from("TOKEN"), SECRET.into());
        env.vars.insert(OsString::from("PEM"), long_secret().into());
        let repo = env.repo("repo", &[("a.txt", "one\n")]);
        let def = env.file("def.yaml", DEFINITION);
        let (start, rest) = SECRET.split_at(11);
        let quoted = |text: &str| serde_json::to_string(text).unwrap();
        let step = format!(
            "    -{}      text: [{}, {}]\n      tools: [{{name: Bash, input: {{command: {}}}}}]\n{end}",
            LEAK.trim_start_matches('\n').replacen("     ", "", 1),
            quoted(&format!("the token is {start}")),
            quoted(&format!("{rest}, and that is it")),
            quoted(&format!("curl -H {SECRET}")),
        );
        let script = env.file(
            "script.yaml",
            &format!("roles:\n  worker:\n{step}{step}{step}"),
        );
        let args = [
            "run",
            "--json",
            "--def",
            def.to_str().unwrap(),
            "--runtime",
            "scripted",
            "--script",
            script.to_str().unwrap(),
            "Work",
        ];
        let done = env.jig(&repo, &args);
        let report = done.expect(3).json();
        assert!(
            ["command", "death"].contains(&report["cause"].as_str().unwrap()),
            "{report}"
        );
        let mut places = vec![
            ("stdout".to_owned(), done.stdout.clone().into_bytes()),
            ("stderr".to_owned(), done.stderr.clone().into_bytes()),
        ];
        haystacks(&env.data(), &mut places);
        assert!(places.iter().any(|(name, _)| name.ends_with("jig.db")));
        for needle in needles() {
            let holding: Vec<&str> = places
                .iter()
                .filter(|(_, bytes)| {
                    bytes
                        .windows(needle.len())
                        .any(|window| window == needle.as_bytes())
                })
                .map(|(name, _)| name.as_str())
                .collect();
            assert!(holding.is_empty(), "{needle:?} is in {holding:?}");
        }
        let trace = std::fs::read_to_string(report["trace_path"].as_str().unwrap()).unwrap();
        assert!(
            trace.contains("[redacted:TOKEN]"),
            "something was there to redact"
        );
    }
}
