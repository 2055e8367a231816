//! Two sends of each genuine agent against the loopback model.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use jig_testkit::model::{ModelServer, Request, Script, Step, Usage, Vendor};
use jig_testkit::real;
use serde_json::{Value, json};

/// Directories of one test, and what the model is asked to do in them.
struct Lab {
    dir: tempfile::TempDir,
    server: ModelServer,
}

/// How a send ended, and the objects it printed.
struct Sent {
    code: Option<i32>,
    events: Vec<Value>,
    stderr: String,
}

impl Lab {
    fn new(script: impl FnOnce(&Path) -> Script) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in ["home/.codex", "tmp", "work"] {
            std::fs::create_dir_all(dir.path().join(name)).unwrap();
        }
        let server = ModelServer::start(script(&dir.path().join("work")));
        let config = dir.path().join("home/.codex/config.toml");
        std::fs::write(config, server.codex_config()).unwrap();
        Self { dir, server }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn send(
        &self,
        program: &Path,
        env: Vec<(OsString, OsString)>,
        args: &[&str],
        prompt: &str,
    ) -> Sent {
        let input = self.path("prompt");
        std::fs::write(&input, prompt).unwrap();
        let output = Command::new(program)
            .args(args)
            .env_clear()
            .envs(env)
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", self.path("home"))
            .env("TMPDIR", self.path("tmp"))
            .current_dir(self.path("work"))
            .stdin(Stdio::from(std::fs::File::open(input).unwrap()))
            .output()
            .unwrap();
        let stdout = String::from_utf8(output.stdout).unwrap();
        let events = stdout
            .lines()
            .map(|line| serde_json::from_str(line).unwrap());
        Sent {
            code: output.status.code(),
            events: events.collect(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Sent {
    fn last(&self) -> &Value {
        assert_eq!(self.code, Some(0), "{:?} {}", self.events, self.stderr);
        self.events.last().unwrap()
    }
}

/// Which tools answered in each turn, to compare with the script.
fn results(turns: &[Request]) -> Vec<usize> {
    turns.iter().map(|turn| turn.tool_results().len()).collect()
}

const USAGE: Usage = Usage {
    input: 1000,
    output: 50,
    cached: 200,
    cache_creation: 0,
    reasoning: 0,
};

#[test]
fn claude_writes_a_file_resumes_and_counts_on() {
    let Some(claude) = real::claude() else { return };
    let lab = Lab::new(|work| {
        let file = json!({"file_path": work.join("hello.txt"), "content": "hello\n"});
        Script::new().anthropic([
            Step::text("I write.").and_tool("Write", file).usage(USAGE),
            Step::deltas(["{\"n\"", ": 1}"]).usage(USAGE),
            Step::from_request(|request| {
                Step::text(request.last_user_text().to_uppercase()).usage(USAGE)
            }),
        ])
    });
    let id = "5e55104e-0000-4000-8000-000000000001";
    let flags = [
        "-p",
        "--output-format",
        "stream-json",
        "--verbose",
        "--model",
        "sonnet",
        "--permission-mode",
        "bypassPermissions",
        "--setting-sources",
        "",
        "--strict-mcp-config",
    ];
    let send = |more: [&str; 2], prompt: &str| {
        let args: Vec<&str> = flags.into_iter().chain(more).collect();
        lab.send(&claude, lab.server.claude_env(), &args, prompt)
    };
    let first = send(["--session-id", id], "write it");
    assert_eq!(first.last()["result"], "{\"n\": 1}");
    assert_eq!(first.last()["session_id"], id);
    assert_eq!(
        std::fs::read_to_string(lab.path("work/hello.txt")).unwrap(),
        "hello\n"
    );
    let second = send(["--resume", id], "say it");
    assert_eq!(second.last()["session_id"], id);
    let said = second.last()["result"].as_str().unwrap();
    assert!(said.contains("SAY IT"), "{said}");

    let cost = |sent: &Sent| sent.last()["total_cost_usd"].as_f64().unwrap();
    let (one, both) = (cost(&first), cost(&second));
    assert!(one > 0.0 && (both - 1.5 * one).abs() < 1e-9, "{one} {both}");
    let tokens = &second.last()["usage"];
    assert_eq!(
        (&tokens["input_tokens"], &tokens["output_tokens"]),
        (&json!(1000), &json!(50))
    );

    let turns = lab.server.turns();
    assert_eq!(results(&turns), [0, 1, 0]);
    assert!(
        turns
            .iter()
            .all(|turn| turn.headers["x-api-key"] == "<masked>")
    );
    let served = lab.server.usage_served(Vendor::Anthropic);
    assert_eq!(
        (served.input, served.output, served.cached),
        (3000, 150, 600)
    );
    assert_eq!(lab.server.requests(), turns, "nothing else is asked");
    lab.server.finish();
}

#[test]
fn codex_patches_a_file_resumes_and_counts_on() {
    let Some(codex) = real::codex() else { return };
    let lab = Lab::new(|_| {
        let patch = "*** Begin Patch\n*** Add File: patched.txt\n+hello\n*** End Patch\n";
        Script::new().openai([
            Step::thinking("Which tool?")
                .and_text("I write.")
                .and_tool("exec_command", json!({"cmd": "echo hello > hello.txt"}))
                .usage(USAGE),
            Step::custom_tool("apply_patch", patch).usage(USAGE),
            Step::deltas(["{\"n\"", ": 1}"]).usage(USAGE),
            Step::from_request(|request| {
                Step::text(request.last_user_text().to_uppercase()).usage(USAGE)
            }),
        ])
    });
    let flags = [
        "--json",
        "--skip-git-repo-check",
        "--dangerously-bypass-approvals-and-sandbox",
    ];
    let send = |begin: &[&str], end: &[&str], prompt: &str| {
        let args: Vec<&str> = [begin, &flags, end].concat();
        lab.send(&codex, lab.server.codex_env(), &args, prompt)
    };
    let answer = |sent: &Sent| {
        let mut items = sent.events.iter().rev().map(|event| &event["item"]);
        let message = items.find(|item| item["type"] == "agent_message").unwrap();
        message["text"].as_str().unwrap().to_owned()
    };
    let first = send(&["exec"], &["-"], "write it");
    assert_eq!(first.last()["type"], "turn.completed", "{:?}", first.events);
    assert_eq!(answer(&first), "{\"n\": 1}");
    for file in ["hello.txt", "patched.txt"] {
        let text = std::fs::read_to_string(lab.path("work").join(file)).unwrap();
        assert_eq!(text, "hello\n");
    }
    let thread = first.events[0]["thread_id"].as_str().unwrap();
    let second = send(&["exec", "resume"], &[thread, "-"], "say it");
    assert_eq!(second.events[0]["thread_id"], thread);
    assert_eq!(answer(&second), "SAY IT");

    let usage = |sent: &Sent| sent.last()["usage"]["input_tokens"].as_u64();
    assert_eq!((usage(&first), usage(&second)), (Some(3000), Some(4000)));
    let turns = lab.server.turns();
    assert_eq!(results(&turns), [0, 1, 1, 0]);
    assert!(
        turns
            .iter()
            .all(|turn| turn.headers["authorization"] == "<masked>")
    );
    let served = lab.server.usage_served(Vendor::OpenAi);
    assert_eq!(
        (served.input, served.output, served.cached),
        (4000, 200, 800)
    );
    lab.server.finish();
}
