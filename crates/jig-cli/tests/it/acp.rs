//! Agents of the Agent Client Protocol: the operator's file of them, and whole
//! runs with one that is a script.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::{Value, json};

use crate::env::Done;
use crate::support::{entries, of_type, trace};
use crate::trial::Trial;

/// An agent: every prompt of a role is answered with the next file of those in
/// `@DIR@/answers`, after `@DIR@/work` was run. It says again what a session
/// held when it is loaded, as agents do.
const AGENT: &str = r#"#!/bin/sh
say() { printf '%s\n' "$1"; }
update() { say '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"S","update":'"$1"'}}'; }
chunk() { update '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":'"$1"'}}'; }
while IFS= read -r line; do
  id=${line#*\"id\":}; id=${id%%,*}
  printf '%s\n' "$line" >> @DIR@/heard
  case "$line" in
  *'"method":"initialize"'*)
    say '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":1,"agentInfo":{"name":"stub-agent","version":"1.2.3"},"agentCapabilities":{"loadSession":true}}}';;
  *'"method":"session/new"'*)
    say '{"jsonrpc":"2.0","id":'$id',"result":{"sessionId":"S"}}';;
  *'"method":"session/load"'*)
    chunk '"{\"status\":\"success\",\"summary\":\"an old answer\"}"'
    say '{"jsonrpc":"2.0","id":'$id',"result":{}}';;
  *'"method":"session/prompt"'*)
    n=$(ls "$HOME" | grep -c '^prompt-'); : > "$HOME/prompt-$n"
    sh @DIR@/work
    chunk "$(cat @DIR@/answers/$n)"
    say '{"jsonrpc":"2.0","id":'$id',"result":{"stopReason":"end_turn","usage":{"inputTokens":10,"outputTokens":2,"totalTokens":12}}}';;
  esac
done
"#;

const DEFINITION: &str = "
name: with-acp
roster:
  builder:
    runtime: acp:stub
    model: default
    writes: [\"src/**\"]
    system_prompt: You build.
    user_prompt: \"{{prompt}}\"
phases:
  - {name: build, kind: agent, owner: builder, gates: [{name: diff_matches_claims}]}
  - {name: verify, kind: code, writes: [], command: \"grep -q two src/a.txt\"}
acceptance: [all_phases_passed]
";

fn trial(answers: &[String]) -> Trial {
    let trial = Trial::new(DEFINITION, "roles: {}");
    let env = &trial.env;
    let agent = env.file("bin/stub-agent", &AGENT.replace("@DIR@", &trial.marker()));
    std::fs::set_permissions(&agent, std::fs::Permissions::from_mode(0o755)).unwrap();
    env.file("work", "echo two > src/a.txt");
    for (at, answer) in answers.iter().enumerate() {
        env.file(&format!("answers/{at}"), &json!(answer).to_string());
    }
    file(
        &trial,
        &format!("[acp.stub]\ncommand = [{:?}]\n", text(&agent)),
    );
    trial
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// The operator's file, as the operator makes it.
fn file(trial: &Trial, content: &str) {
    let path = trial.env.file("data/runtimes.toml", content);
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
}

fn envelope(changed: &[&str]) -> String {
    json!({"status": "success", "summary": "did it", "artifacts": [],
        "changed_files": changed, "notes_for_next_agent": ""})
    .to_string()
}

fn run(trial: &Trial, flags: &[&str]) -> Done {
    crate::env::finish(trial.start_with(flags))
}

#[test]
fn a_run_recovers_in_the_session_that_its_agent_loads_again() {
    let answers = [
        "all is well".to_owned(),
        envelope(&["src/a.txt", "src/never.txt"]),
        envelope(&["src/a.txt"]),
    ];
    let trial = trial(&answers);
    let report = run(&trial, &["--runtime", "acp:stub"]).expect(0).json();
    assert_eq!(report["state"], "accepted_unpublished", "{report}");
    assert_eq!(entries(&report), ["build:success", "verify:success"]);
    assert_eq!(report["budgets"]["parse_corrections"], 1);
    assert_eq!(report["budgets"]["gate_corrections"], 1);
    assert_eq!(report["budgets"]["deaths"], 0);
    let spend = &report["spend"];
    let figures = ["sends", "input_tokens", "output_tokens", "unmetered_sends"];
    assert_eq!(figures.map(|name| &spend[name]), [3, 30, 6, 0]);
    assert_eq!(report["changed_paths"], json!(["src/a.txt"]));

    let heard = std::fs::read_to_string(trial.env.path("heard")).unwrap();
    let methods: Vec<String> = heard
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter_map(|message| message["method"].as_str().map(str::to_owned))
        .collect();
    // The first is the question who it is.
    let expected = [
        "initialize",
        "initialize",
        "session/new",
        "session/prompt",
        "initialize",
        "session/load",
        "session/prompt",
        "initialize",
        "session/load",
        "session/prompt",
    ];
    assert_eq!(methods, expected);
    let events = trace(&report);
    let end = of_type(&events, "agent_end", None);
    assert_eq!(end.len(), 1, "one entry");
    assert_eq!(end[0]["payload"]["sends"], 3);
    let attempt = report["attempt_id"].as_str().unwrap();
    trial.assert_whole_record(attempt);
    trial.assert_nobody_left();
}

#[test]
fn what_is_wrong_with_the_operators_file_is_told_before_anything_starts() {
    let described = |command: &str| format!("[acp.stub]\ncommand = [\"{command}\"]\n");
    for (content, mode, code, named) in [
        ("", 0o600, 2, "there is no [acp.stub] in"),
        ("", 0o600, 2, "it describes no agent"),
        ("[acp.other]\ncommand = [\"x\"]\n", 0o600, 2, "it has other"),
        (
            "[acp.stub]\ncomand = [\"x\"]\n",
            0o600,
            2,
            "unknown field `comand`",
        ),
        ("[acp.stub]\ncomand = [\"x\"]\n", 0o600, 2, "line 2"),
        (&described("/bin/true"), 0o620, 2, "others can write it"),
        (&described("/bin/true"), 0o602, 2, "others can write it"),
        (
            &described("no-such-agent"),
            0o600,
            1,
            "no-such-agent was not found",
        ),
        (
            &described("/no/such/agent"),
            0o600,
            1,
            "/no/such/agent was not found",
        ),
        (&described("/bin/true"), 0o600, 1, "did not answer"),
    ] {
        let trial = trial(&[]);
        let path = trial.env.file("data/runtimes.toml", content);
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        let done = run(&trial, &["--runtime", "acp:stub"]);
        assert_eq!(done.code, Some(code), "{content}: {done:?}");
        assert!(done.stderr.contains(named), "{content}: {}", done.stderr);
        assert_eq!(trial.attempts(), Vec::<std::path::PathBuf>::new());
        trial.assert_nobody_left();
    }
}

/// Whatever lies in the file's place is told; nobody waits for it.
#[test]
fn what_is_no_file_in_the_files_place_holds_nobody_up() {
    let mut trial = trial(&[]);
    let path = trial.env.path("data/runtimes.toml");
    std::fs::remove_file(&path).unwrap();
    let made = std::process::Command::new("mkfifo").arg(&path).status();
    assert!(made.unwrap().success());
    for args in [&["doctor"][..], &["--json", "doctor"]] {
        let done = trial.env.jig(&trial.env.path("home"), args);
        assert!(done.stdout.contains("no regular file"), "{done:?}");
    }
    let done = run(&trial, &["--runtime", "acp:stub"]);
    assert_eq!(done.code, Some(2), "{done:?}");
    assert!(done.stderr.contains("no regular file"), "{done:?}");
    std::fs::remove_file(path).unwrap();
    trial.assert_next_run_works();
}

/// A file that no role asks for is nobody's business.
#[test]
fn a_broken_file_does_not_concern_other_runtimes() {
    let mut trial = trial(&[]);
    file(&trial, "not toml [");
    trial.assert_next_run_works();
}

#[test]
fn doctor_asks_every_agent_of_the_file() {
    let trial = trial(&[]);
    let env = &trial.env;
    let agent = env.path("bin/stub-agent");
    let mute = env.file("bin/mute", "#!/bin/sh\necho no-protocol\n");
    std::fs::set_permissions(&mute, std::fs::Permissions::from_mode(0o755)).unwrap();
    let agents = [
        ("good", text(&agent)),
        ("mute", text(&mute)),
        ("gone", "/gone"),
    ];
    let content: String = agents
        .iter()
        .map(|(name, command)| format!("[acp.{name}]\ncommand = [\"{command}\"]\n"))
        .collect();
    file(
        &trial,
        &format!(
            "{content}[acp.seeded]\ncommand = [\"{}\"]\nseed = [\".x/login\"]\n",
            text(&agent)
        ),
    );
    let findings = trial.ask(&["doctor"]);
    let of = |name: &str| {
        let found = findings.iter().find(|found| found["name"] == name).unwrap();
        let words = |field: &str| found[field].as_str().unwrap_or("").to_owned();
        [words("level"), words("detail"), words("advice")]
    };
    let good = of("acp:good");
    assert_eq!(good[..2], ["ok", "stub-agent 1.2.3, continues sessions"]);
    let mute = of("acp:mute");
    assert_eq!(mute[0], "warning");
    assert!(mute[1].contains("did not answer"), "{mute:?}");
    assert!(mute[2].contains("[acp.mute]"), "{mute:?}");
    let gone = of("acp:gone");
    assert!(gone[1].contains("/gone was not found"), "{gone:?}");
    assert!(
        gone[2].contains("correct `command` of [acp.gone]"),
        "{gone:?}"
    );
    let seeded = of("acp:seeded");
    assert!(seeded[1].contains(".x/login"), "{seeded:?}");
    trial.assert_nobody_left();

    file(&trial, "[acp.good]\n");
    let broken = trial.ask(&["doctor"]);
    let found = broken.iter().find(|found| found["name"] == "runtimes.toml");
    let detail = found.unwrap()["detail"].as_str().unwrap();
    assert!(detail.contains("missing field `command`"), "{detail}");
}
