//! What jig adds to a send of a genuine agent: a phase of `jig run`, from its
//! start to its result, against the same command line started alone, in turns.
//! The model is scripted on loopback and answers at once.
//!
//! `cargo bench -p jig-cli --bench sends`; an agent that is not installed is
//! skipped with a line that says so. `JIG_BENCH_SENDS` sets how many.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark stops at the first surprise and prints what it measured"
)]

use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use jig_protocol::time::Timestamp;
use jig_testkit::Repo;
use jig_testkit::model::{KEY, ModelServer, Script, Step};
use serde_json::{Value, json};

const JIG: &str = env!("CARGO_BIN_EXE_jig");

/// Not counted: they bring the programs into the page cache.
const WARM: usize = 2;

const CLAUDE_ARGS: &str = "--print --output-format stream-json --verbose \
    --include-partial-messages --permission-mode bypassPermissions --setting-sources= \
    --strict-mcp-config --model haiku";
const CODEX_ARGS: &str = "exec --json --skip-git-repo-check \
    --dangerously-bypass-approvals-and-sandbox --color never --model gpt-5.5 -";

fn main() {
    let count = std::env::var("JIG_BENCH_SENDS")
        .ok()
        .map_or(20, |text| text.parse().unwrap());
    if let Some(program) = jig_testkit::real::claude() {
        Bench::claude(&program).measure(count);
    }
    if let Some(program) = jig_testkit::real::codex() {
        Bench::codex(&program).measure(count);
    }
}

/// One agent, and all it needs.
struct Bench {
    name: &'static str,
    program: PathBuf,
    args: &'static str,
    /// The variables of the agent that are neither places nor PATH.
    vars: Vec<(String, String)>,
    /// Its configuration, below a HOME.
    config: Option<(&'static str, String)>,
    server: ModelServer,
    repo: Repo,
    dir: tempfile::TempDir,
}

impl Bench {
    fn claude(program: &Path) -> Self {
        let answer = Step::text(envelope()).repeated();
        let server = ModelServer::start(Script::new().anthropic([answer]));
        let vars = server.claude_env().into_iter();
        let vars = vars
            .map(|(name, value)| (text(name), text(value)))
            .collect();
        let names = "ANTHROPIC_BASE_URL, CLAUDE_CODE_MAX_RETRIES, ANTHROPIC_API_KEY";
        let definition = definition("claude-code", "haiku", names, "ANTHROPIC_API_KEY");
        Self::new(
            "claude",
            program,
            CLAUDE_ARGS,
            vars,
            None,
            definition,
            server,
        )
    }

    fn codex(program: &Path) -> Self {
        let answer = Step::text(envelope()).repeated();
        let server = ModelServer::start(Script::new().openai([answer]));
        // What jig adds to the operator's model provider.
        let switches = "plugins = false\nhooks = false\nshell_snapshot = false";
        let config = format!(
            "project_doc_max_bytes = 0\n{}\n[history]\npersistence = \"none\"\n\
             [skills]\ninclude_instructions = false\n",
            server.codex_config().replace("plugins = false", switches)
        );
        let vars = vec![("LOOPBACK_KEY".to_owned(), KEY.to_owned())];
        let definition = definition("codex", "gpt-5.5", "LOOPBACK_KEY", "LOOPBACK_KEY");
        let config = Some((".codex/config.toml", config));
        Self::new(
            "codex", program, CODEX_ARGS, vars, config, definition, server,
        )
    }
}

impl Bench {
    fn new(
        name: &'static str,
        program: &Path,
        args: &'static str,
        vars: Vec<(String, String)>,
        config: Option<(&'static str, String)>,
        definition: String,
        server: ModelServer,
    ) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for sub in ["home", "tmp", "bin"] {
            std::fs::create_dir(dir.path().join(sub)).unwrap();
        }
        symlink(program, dir.path().join("bin").join(name)).unwrap();
        std::fs::write(dir.path().join("definition.yaml"), definition).unwrap();
        if let Some((path, content)) = &config {
            write(&dir.path().join("home").join(path), content);
        }
        Self {
            name,
            program: program.to_owned(),
            args,
            vars,
            config,
            server,
            repo: Repo::with_files(&[("src/a.txt", "one\n")]),
            dir,
        }
    }

    /// Prints the medians; what jig adds is the median of the differences.
    fn measure(self, count: usize) {
        let (mut alone, mut ours, mut adds, mut runs) = (vec![], vec![], vec![], vec![]);
        for number in 0..WARM + count {
            let reference = self.alone();
            let (send, run) = self.run();
            if number >= WARM {
                alone.push(reference);
                ours.push(send);
                adds.push(millis(send) - millis(reference));
                runs.push(run);
            }
        }
        let (alone, ours, runs) = (median(alone), median(ours), median(runs));
        adds.sort_unstable_by(f64::total_cmp);
        println!(
            "{}, {count} sends: alone {:.1} ms, in jig {:.1} ms, ratio {:.2}; jig adds {:.1} ms \
             (from {:.1} to {:.1}); the whole of jig run {:.1} ms",
            self.name,
            millis(alone),
            millis(ours),
            ours.as_secs_f64() / alone.as_secs_f64(),
            adds[adds.len() / 2],
            adds[adds.len() / 10],
            adds[adds.len() * 9 / 10],
            millis(runs)
        );
        self.server.finish();
    }

    /// The agent without jig, with places of its own.
    fn alone(&self) -> Duration {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        for sub in ["home", "tmp", "run"] {
            std::fs::create_dir(at(sub)).unwrap();
        }
        if let Some((path, content)) = &self.config {
            write(&at("home").join(path), content);
        }
        let mut command = Command::new(&self.program);
        command
            .args(self.args.split_whitespace())
            .current_dir(self.repo.path())
            .env_clear()
            .envs(self.vars.iter().map(|(name, value)| (name, value)))
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", at("home"))
            .env("TMPDIR", at("tmp"))
            .env("XDG_RUNTIME_DIR", at("run"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let began = Instant::now();
        let mut child = command.spawn().unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(b"Do the work")
            .unwrap();
        let output = child.wait_with_output().unwrap();
        let taken = began.elapsed();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{said}");
        assert!(said.contains("nothing to do"), "{said}");
        taken
    }

    /// A run of one phase: from the phase's start to the agent's result, and the
    /// whole of it.
    fn run(&self) -> (Duration, Duration) {
        let at = |name: &str| self.dir.path().join(name);
        let path = [
            at("bin").into_os_string(),
            std::env::var_os("PATH").unwrap(),
        ];
        let mut command = Command::new(JIG);
        command
            .args(["run", "--json", "--no-seed-auth", "--def"])
            .arg(at("definition.yaml"))
            .arg(self.repo.path())
            .arg("Do the work")
            .env_clear()
            .envs(self.vars.iter().map(|(name, value)| (name, value)))
            .env("PATH", path.join(":".as_ref()))
            .env("HOME", at("home"))
            .env("TMPDIR", at("tmp"))
            .env("JIG_HOME", at("data"))
            .stdin(Stdio::null());
        let began = Instant::now();
        let output = command.output().unwrap();
        let taken = began.elapsed();
        assert!(output.status.success(), "{output:?}");
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let trace = std::fs::read_to_string(report["trace_path"].as_str().unwrap()).unwrap();
        let when = |kind: &str| -> Timestamp {
            let events = trace
                .lines()
                .map(|line| serde_json::from_str(line).unwrap());
            let event: Value = events
                .into_iter()
                .find(|it: &Value| it["type"] == kind)
                .unwrap();
            serde_json::from_value(event["started_at"].clone()).unwrap()
        };
        (
            when("agent_end").saturating_since(when("agent_start")),
            taken,
        )
    }
}

fn envelope() -> String {
    json!({
        "status": "success", "summary": "nothing to do", "artifacts": [], "changed_files": [],
        "notes_for_next_agent": "",
    })
    .to_string()
}

fn definition(runtime: &str, model: &str, names: &str, key: &str) -> String {
    format!(
        "name: send\nroster:\n  dev:\n    runtime: {runtime}\n    model: {model}\n    \
         writes: []\n    env: [{names}]\n    sensitive_env: [{key}]\n    system_prompt: s\n    \
         user_prompt: '{{{{prompt}}}}'\nphases:\n  - {{name: send, kind: agent, owner: dev}}\n\
         acceptance: [all_phases_passed]\n"
    )
}

fn write(path: &Path, content: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

fn text(value: std::ffi::OsString) -> String {
    value.into_string().unwrap()
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
