//! A secret that an agent prints in every form is nowhere in the data
//! directory afterwards.

use std::path::Path;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jig_protocol::outcome::AttemptEnd;

use super::world::{Watch, World};

const SECRET: &str = "hunter2-correct-horse";

fn assert_nowhere(dir: &Path, needles: &[String]) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = entry.path();
        // What agents wrote themselves is theirs: the tree, its objects, HOMEs.
        if ["tree", "git", "roles", "commands", "handoff", "content"].contains(&name.as_str()) {
            continue;
        }
        assert!(!name.contains(SECRET), "{}", path.display());
        if path.is_dir() {
            assert_nowhere(&path, needles);
        } else if path.is_file() {
            let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
            for needle in needles {
                assert!(
                    !text.contains(needle.as_str()),
                    "{needle} in {}",
                    path.display()
                );
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_printed_secret_is_nowhere() {
    let hex: String = SECRET.bytes().map(|byte| format!("{byte:02x}")).collect();
    let b64 = STANDARD.encode(SECRET);
    let mut world = World::new(
        &[("src/a", "1\n")],
        "
name: leak
roster:
  dev: {model: m, system_prompt: s, user_prompt: u, writes: [\"src/**\"], env: [TOKEN], sensitive_env: [TOKEN]}
phases:
  - name: build
    kind: agent
    owner: dev
    gates: [{name: tests_pass, command: 'echo $TOKEN; echo $TOKEN >&2; test -e src/ok'}]
  - {name: dump, kind: code, owner: dev, command: 'env; printf %s \"$TOKEN\" | base64; echo \"{\\\"leak\\\": \\\"$TOKEN\\\"}\"', reports_fields: true}
  - {name: bad, kind: code, owner: dev, command: 'echo $TOKEN; exit 7'}
",
        &format!(
            r#"
roles:
  dev:
    - text: ["it is hunt", "er2-corr", "ect-horse, yes"]
      tools: [{{name: Bash, input: {{command: "curl -H {SECRET}", {SECRET}: [{b64}, "{hex}"]}}}}]
      write: {{"src/{SECRET}": x}}
      emit: "{SECRET} is no envelope"
    - emit: {{status: success, summary: "{SECRET}", artifacts: ["src/{SECRET}"], more: {b64}}}
    - write: {{src/ok: x}}
      emit: {{status: success, summary: "{SECRET}", artifacts: ["src/{SECRET}"]}}
"#
        ),
    );
    world.operator_env.insert("TOKEN".into(), SECRET.into());
    let seen = Arc::new(Mutex::new(String::new()));
    let sink = Arc::clone(&seen);
    world.sink = Arc::new(Watch(move |event: &jig_protocol::event::Event| {
        sink.lock()
            .unwrap()
            .push_str(&serde_json::to_string(event).unwrap());
    }));
    let ran = world.run().await;
    assert_eq!(ran.outcome.end, AttemptEnd::Failed);
    let needles = [
        SECRET.to_owned(),
        b64,
        hex.clone(),
        hex.to_uppercase(),
        "er2-correct-horse".to_owned(),
        "hunter2-corr".to_owned(),
    ];
    assert_nowhere(&world.data.path().join("attempts"), &needles);
    let result = serde_json::to_string(&ran.outcome.result).unwrap();
    for text in [&*seen.lock().unwrap(), &result, ran.error()] {
        for needle in &needles {
            assert!(!text.contains(needle.as_str()), "{needle} in {text}");
        }
    }
    assert!(result.contains("src/[redacted:TOKEN]"), "{result}");
    assert!(ran.error().contains("[redacted:TOKEN]"), "{}", ran.error());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_breach_of_a_path_that_spells_a_secret_does_not_spell_it() {
    let mut world = World::new(
        &[("src/a", "1\n")],
        "
name: leak
roster:
  dev: {model: m, system_prompt: s, user_prompt: u, writes: [], env: [TOKEN], sensitive_env: [TOKEN]}
phases:
  - {name: build, kind: agent, owner: dev}
",
        &format!("roles: {{dev: [{{write: {{\"{SECRET}\": x}}, emit: {{status: success, summary: x}}}}]}}"),
    );
    world.operator_env.insert("TOKEN".into(), SECRET.into());
    let ran = world.run().await;
    assert_eq!(ran.outcome.end, AttemptEnd::Breach);
    assert_nowhere(&world.data.path().join("attempts"), &[SECRET.to_owned()]);
    assert!(ran.error().contains("[redacted:TOKEN]"), "{}", ran.error());
}

// The pipe that the agent talks into can be opened by name on Linux.
const LEAKING_STEP: &str = r#"
    - run: 'test ! -e /proc/$PPID/fd/1 || printf "%0300d%s\n" 0 "$(printf %s "$KEY" | base64 | tr -d "\n")" > /proc/$PPID/fd/1; for i in 1 2 3 4 5 6 7 8; do printf %s "$KEY" >&2; done'
      end: crash
"#;

/// A key of 40 lines on stderr, whose end alone an error shows; the same key
/// encoded, across the place where a line that makes no sense is cut.
#[tokio::test(flavor = "multi_thread")]
async fn a_secret_longer_than_what_is_kept_of_a_stream_is_nowhere() {
    let line = |n: usize| format!("line-{n:02}-of-a-private-key-{}", "k".repeat(40));
    let key = (0..40).map(line).collect::<Vec<_>>().join("\n");
    let encoded = STANDARD.encode(&key);
    let mut world = World::new(
        &[("src/a", "1\n")],
        "
name: leak
roster:
  dev: {model: m, system_prompt: s, user_prompt: u, writes: [], env: [KEY], sensitive_env: [KEY]}
phases:
  - {name: build, kind: agent, owner: dev}
",
        &format!("roles:\n  dev:\n{}", LEAKING_STEP.repeat(4)),
    );
    world.operator_env.insert("KEY".into(), key.clone().into());
    let ran = world.run().await;
    assert_eq!(ran.outcome.end, AttemptEnd::Failed);
    assert!(ran.error().contains("[redacted:KEY]"), "{}", ran.error());
    let logs = ran.named("unparsed_line");
    assert_eq!(logs.is_empty(), cfg!(not(target_os = "linux")));
    let needles: Vec<String> = (0..40)
        .map(line)
        .chain([encoded[..40].to_owned(), encoded[100..140].to_owned()])
        .collect();
    assert_nowhere(&world.data.path().join("attempts"), &needles);
    for text in [
        serde_json::to_string(&ran.outcome.result).unwrap(),
        ran.error().to_owned(),
    ] {
        assert!(!text.contains("of-a-private-key"), "{text}");
    }
}

/// What a scripted command says is cut by whoever knows the secrets.
#[tokio::test(flavor = "multi_thread")]
async fn an_encoded_secret_across_the_cut_of_a_commands_output_is_nowhere() {
    let key = "k3y-".repeat(15);
    let encoded = STANDARD.encode(&key);
    let script = r#"
roles:
  dev:
    - run: 'printf %s "$KEY" | base64 -w 0; head -c 4056 /dev/zero | tr "\\0" x'
      emit: {status: success, summary: x}
"#;
    let mut world = World::new(
        &[("src/a", "1\n")],
        "
name: leak
roster:
  dev: {model: m, system_prompt: s, user_prompt: u, writes: [], env: [PATH, KEY], sensitive_env: [KEY]}
phases:
  - {name: build, kind: agent, owner: dev}
",
        script,
    );
    world.operator_env.insert("KEY".into(), key.into());
    let ran = world.run().await;
    let said = ran.named("run")[0].payload.as_ref().unwrap()["detail"]["stdout"].clone();
    assert!(said.as_str().unwrap().ends_with("xxx"), "{said}");
    assert!(said.as_str().unwrap().len() <= 4096, "{said}");
    let needle = encoded[encoded.len() - 30..encoded.len() - 2].to_owned();
    assert_nowhere(&world.data.path().join("attempts"), &[needle]);
}
