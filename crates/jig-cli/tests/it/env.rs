//! A sealed environment: its own HOME, data directory, PATH and repository.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{Seek as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Longest a single command of a test may take. Generous: machines are loaded.
pub(crate) const BOUND: Duration = Duration::from_secs(180);

/// A sealed place to run `jig` in.
pub(crate) struct Env {
    dir: tempfile::TempDir,
    pub(crate) vars: BTreeMap<OsString, OsString>,
}

/// What a finished `jig` left.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) code: Option<i32>,
    pub(crate) signal: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Env {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for sub in ["home", "tmp"] {
            std::fs::create_dir(dir.path().join(sub)).unwrap();
        }
        let mut vars = BTreeMap::new();
        let mut set = |name: &str, value: OsString| vars.insert(OsString::from(name), value);
        set("HOME", dir.path().join("home").into());
        set("TMPDIR", dir.path().join("tmp").into());
        set("PATH", std::env::var_os("PATH").unwrap());
        set("JIG_HOME", dir.path().join("data").into());
        Self { dir, vars }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.path("data")
    }

    /// Writes a file below the environment's root.
    pub(crate) fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    /// A repository with the given files committed on `main`.
    pub(crate) fn repo(&self, name: &str, files: &[(&str, &str)]) -> PathBuf {
        let path = self.path(name);
        self.git(
            self.dir.path(),
            &["init", "-q", "-b", "main", path.to_str().unwrap()],
        );
        for (file, content) in files {
            self.file(&format!("{name}/{file}"), content);
        }
        self.git(&path, &["add", "-A"]);
        self.git(&path, &["commit", "-q", "--allow-empty", "-m", "start"]);
        path
    }

    /// Runs git isolated from everyone's configuration.
    pub(crate) fn git(&self, cwd: &Path, args: &[&str]) -> String {
        let output = Command::new("git")
            .args(args)
            .current_dir(cwd)
            .env_clear()
            .env("PATH", &self.vars[&OsString::from("PATH")])
            .env("HOME", self.path("home"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_AUTHOR_NAME", "Op")
            .env("GIT_AUTHOR_EMAIL", "op@example.invalid")
            .env("GIT_COMMITTER_NAME", "Op")
            .env("GIT_COMMITTER_EMAIL", "op@example.invalid")
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "git {args:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) fn command(&self, cwd: &Path, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_jig"));
        command
            .args(args)
            .current_dir(cwd)
            .env_clear()
            .envs(&self.vars)
            .stdin(Stdio::null());
        command
    }

    /// Runs `jig` to its end.
    pub(crate) fn jig(&self, cwd: &Path, args: &[&str]) -> Done {
        let child = self.start(cwd, args);
        finish(child)
    }

    /// Runs `jig` to its end with something on standard input.
    pub(crate) fn jig_with_input(&self, cwd: &Path, args: &[&str], input: &str) -> Done {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(input.as_bytes()).unwrap();
        file.rewind().unwrap();
        let mut command = self.command(cwd, args);
        command
            .stdin(file)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        finish(command.spawn().unwrap())
    }

    /// Starts `jig` with both streams captured.
    pub(crate) fn start(&self, cwd: &Path, args: &[&str]) -> Child {
        self.command(cwd, args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }
}

/// Waits for a `jig` that was started, within [`BOUND`].
pub(crate) fn finish(child: Child) -> Done {
    let pid = child.id();
    let (sender, receiver) = std::sync::mpsc::channel();
    let waiter = std::thread::spawn(move || sender.send(child.wait_with_output()));
    let output: Output = match receiver.recv_timeout(BOUND) {
        Ok(output) => output.unwrap(),
        Err(_) => {
            let _ = Command::new("kill")
                .args(["-KILL", &pid.to_string()])
                .status();
            panic!("jig (pid {pid}) did not end within {BOUND:?}");
        }
    };
    waiter.join().unwrap().unwrap();
    Done {
        code: output.status.code(),
        signal: output.status.signal(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

impl Done {
    /// The one line of `--json`, parsed; fails unless it is exactly one line.
    pub(crate) fn json(&self) -> Value {
        let mut lines = self.stdout.lines();
        let line = lines
            .next()
            .unwrap_or_else(|| panic!("stdout is empty; stderr: {}", self.stderr));
        assert_eq!(
            lines.next(),
            None,
            "more than one line on stdout: {}",
            self.stdout
        );
        serde_json::from_str(line).unwrap()
    }

    #[track_caller]
    pub(crate) fn expect(&self, code: i32) -> &Self {
        assert_eq!(
            self.code,
            Some(code),
            "exit code; stdout:\n{}\nstderr:\n{}",
            self.stdout,
            self.stderr
        );
        self
    }
}

/// Waits until `ready` answers something, within [`BOUND`].
#[track_caller]
pub(crate) fn wait_for<T>(what: &str, mut ready: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + BOUND;
    loop {
        if let Some(value) = ready() {
            return value;
        }
        assert!(Instant::now() < end, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Every live process whose command line or environment mentions `marker`.
pub(crate) fn processes_with(marker: &str) -> Vec<String> {
    let me = std::process::id().to_string();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let pid = entry.file_name().to_string_lossy().into_owned();
        if !pid.bytes().all(|byte| byte.is_ascii_digit()) || pid == me {
            continue;
        }
        let dir = entry.path();
        let read = |name: &str| std::fs::read(dir.join(name)).unwrap_or_default();
        let cwd = std::fs::read_link(dir.join("cwd")).unwrap_or_default();
        let hay = [
            read("cmdline"),
            read("environ"),
            cwd.into_os_string().into_encoded_bytes(),
        ]
        .concat();
        let zombie = String::from_utf8_lossy(&read("stat"))
            .rsplit(')')
            .next()
            .is_some_and(|rest| rest.trim_start().starts_with('Z'));
        if !zombie
            && hay
                .windows(marker.len())
                .any(|window| window == marker.as_bytes())
        {
            found.push(format!(
                "{pid}: {}",
                String::from_utf8_lossy(&read("cmdline")).replace('\0', " ")
            ));
        }
    }
    found
}
