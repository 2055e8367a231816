//! A run that something happens to, and what it leaves behind.

use std::io::BufRead as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::env::{Done, Env, finish, processes_with, wait_for};

/// How long what a dead jig started may take to be gone. The promise is five
/// seconds on a machine with nothing else to do.
const GONE: Duration = Duration::from_secs(60);

/// One role that may write `src/**`, in one phase.
pub(crate) const ONE_AGENT: &str = "
name: one-agent
roster:
  builder:
    model: haiku
    writes: [\"src/**\"]
    env: [PATH]
    system_prompt: You build.
    user_prompt: \"{{prompt}}\"
phases:
  - {name: build, kind: agent, owner: builder}
acceptance: [all_phases_passed]
";

/// An answer that says the work is done.
pub(crate) const DONE: &str = "emit: {status: success, summary: done}";

/// A definition, a script and a repository in a sealed environment.
pub(crate) struct Trial {
    pub(crate) env: Env,
    pub(crate) repo: PathBuf,
    pub(crate) definition: PathBuf,
    pub(crate) script: PathBuf,
}

impl Trial {
    /// `@DIR@` in either text stands for the environment's directory, whose
    /// name no other process mentions.
    pub(crate) fn new(definition: &str, script: &str) -> Self {
        let env = Env::new();
        let files = [
            ("src/a.txt", "one\n"),
            ("src/b.txt", "beside\n"),
            ("keep.txt", "keep\n"),
        ];
        let repo = env.repo("repo", &files);
        let mut trial = Self {
            definition: env.path("definition.yaml"),
            script: env.path("script.yaml"),
            repo,
            env,
        };
        trial.definition(definition);
        trial.script(script);
        trial
    }

    /// What processes of this trial are known by.
    pub(crate) fn marker(&self) -> String {
        self.env
            .path("")
            .to_str()
            .unwrap()
            .trim_end_matches('/')
            .to_owned()
    }

    fn filled(&self, name: &str, text: &str) -> PathBuf {
        self.env.file(name, &text.replace("@DIR@", &self.marker()))
    }

    pub(crate) fn definition(&mut self, text: &str) {
        self.definition = self.filled("definition.yaml", text);
    }

    pub(crate) fn script(&mut self, text: &str) {
        self.script = self.filled("script.yaml", text);
    }

    fn args<'a>(&'a self, flags: &[&'a str]) -> Vec<&'a str> {
        let mut args = vec!["run", "--json", "--def", text(&self.definition)];
        if !flags.contains(&"--runtime") {
            args.extend(["--runtime", "scripted", "--script", text(&self.script)]);
        }
        args.extend_from_slice(flags);
        args.extend([text(&self.repo), "Do the work"]);
        args
    }

    pub(crate) fn start(&self) -> Child {
        self.start_with(&[])
    }

    pub(crate) fn start_with(&self, flags: &[&str]) -> Child {
        self.env.start(&self.env.path("home"), &self.args(flags))
    }

    /// What [`Trial::start`] starts.
    pub(crate) fn command(&self) -> std::process::Command {
        self.env.command(&self.env.path("home"), &self.args(&[]))
    }

    pub(crate) fn run(&self) -> Done {
        finish(self.start())
    }

    /// The lines of another command's machine output.
    pub(crate) fn ask(&self, args: &[&str]) -> Vec<Value> {
        let mut all = vec!["--json"];
        all.extend_from_slice(args);
        let done = self.env.jig(&self.env.path("home"), &all);
        done.expect(0);
        let lines = done.stdout.lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// The directories of every attempt, oldest first.
    pub(crate) fn attempts(&self) -> Vec<PathBuf> {
        let Ok(list) = std::fs::read_dir(self.env.data().join("attempts")) else {
            return Vec::new();
        };
        let mut dirs: Vec<_> = list.map(|entry| entry.unwrap().path()).collect();
        dirs.sort();
        dirs
    }

    /// Waits until the script or a command has made a file.
    pub(crate) fn wait_for_file(&self, name: &str) {
        let path = self.env.path(name);
        wait_for(name, || path.exists().then_some(()));
    }

    /// Nothing that was started here is left, in a bounded time.
    #[track_caller]
    pub(crate) fn assert_nobody_left(&self) {
        let end = Instant::now() + GONE;
        loop {
            let left = processes_with(&self.marker());
            if left.is_empty() {
                return;
            }
            assert!(Instant::now() < end, "still there: {left:#?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Store and trace of an attempt hold the same events, gapless, with
    /// exactly one end, which is the last. Gives them.
    #[track_caller]
    pub(crate) fn assert_whole_record(&self, attempt: &str) -> Vec<Value> {
        let stored = self.ask(&["attempt", "events", attempt]);
        let traced = trace(&self.env.data().join("attempts").join(attempt));
        assert_eq!(stored, traced, "store and trace differ");
        let ends: Vec<_> = (stored.iter())
            .filter(|event| event["type"] == "attempt_end")
            .collect();
        assert_eq!(ends.len(), 1, "{stored:#?}");
        assert_eq!(stored.last(), Some(ends[0]));
        stored
    }

    /// What no attempt keeps is gone, and so are the markers of runs.
    #[track_caller]
    pub(crate) fn assert_tidy(&self, attempt: &Path) {
        for name in ["roles", "run", "members", "commands", "handoff", "content"] {
            let dir = attempt.join(name);
            assert!(dir.symlink_metadata().is_err(), "{} stayed", dir.display());
        }
        let markers: Vec<_> = std::fs::read_dir(self.env.data().join("runs"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert!(markers.is_empty(), "{markers:?}");
    }

    /// The next run on the same data directory does its work.
    #[track_caller]
    pub(crate) fn assert_next_run_works(&mut self) -> Done {
        self.definition(ONE_AGENT);
        self.script(&format!(
            "roles: {{builder: [{{write: {{src/a.txt: \"next\\n\"}}, {DONE}}}]}}"
        ));
        let done = self.run();
        assert_eq!(done.expect(0).json()["state"], "accepted_unpublished");
        done
    }
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// The whole lines of an attempt's trace; a last line without its end is not
/// one.
pub(crate) fn trace(attempt: &Path) -> Vec<Value> {
    let read = std::fs::read_to_string(attempt.join("trace.jsonl")).unwrap_or_default();
    let whole = read.rfind('\n').map_or("", |end| &read[..end]);
    let lines = whole.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Sends a signal to a jig that this test has started and not yet reaped.
pub(crate) fn signal(child: &Child, name: &str) {
    let pid = child.id().to_string();
    let sent = Command::new("kill")
        .args([&format!("-{name}"), &pid])
        .status();
    assert!(sent.unwrap().success(), "kill -{name} {pid}");
}

/// Waits until a line of a running jig's stderr contains `words`, and gives the
/// stream on.
pub(crate) fn wait_for_words(child: &mut Child, words: &str) -> std::thread::JoinHandle<()> {
    let stderr = child.stderr.take().unwrap();
    let mut lines = std::io::BufReader::new(stderr).lines();
    let found = lines
        .by_ref()
        .map_while(Result::ok)
        .any(|line| line.contains(words));
    assert!(found, "stderr ended without {words:?}");
    std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop))
}
