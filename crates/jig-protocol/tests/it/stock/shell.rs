//! Running the commands of definitions, with nothing of the machine's own
//! configuration in reach.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use jig_protocol::definition::{Definition, PhaseKind, parse};
use tempfile::TempDir;

/// A stock definition by name.
pub(crate) fn stock(name: &str) -> Definition {
    let text = fs::read_to_string(directory().join(format!("{name}.yaml"))).unwrap();
    parse(&text)
        .definition
        .expect("a stock definition is valid")
}

/// Where the stock definitions are.
pub(crate) fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/definitions")
}

/// The command of a code phase.
pub(crate) fn command_of(definition: &str, phase: &str) -> String {
    let definition = stock(definition);
    let (_, phase) = definition.phase(phase).expect("the phase exists");
    match &phase.kind {
        PhaseKind::Code(code) => code.command.clone(),
        PhaseKind::Agent { .. } => panic!("{} is no code phase", phase.name),
    }
}

/// A program of this machine.
pub(crate) fn which(name: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|dir| dir.join(name))
        .find(|path| path.is_file())
}

/// An empty directory to work in, and a PATH of its own.
pub(crate) struct Place {
    root: TempDir,
}

impl Place {
    /// With the programs every system has, and git.
    pub(crate) fn new() -> Self {
        let place = Self {
            root: TempDir::new().unwrap(),
        };
        for dir in ["bin", "home", "handoff", "tree"] {
            fs::create_dir(place.root.path().join(dir)).unwrap();
        }
        for name in [
            "sh", "cat", "tr", "od", "rm", "mktemp", "grep", "find", "head", "env", "git", "mkdir",
        ] {
            place.link(
                name,
                &which(name).unwrap_or_else(|| panic!("{name} is needed")),
            );
        }
        place
    }

    pub(crate) fn tree(&self) -> PathBuf {
        self.root.path().join("tree")
    }

    pub(crate) fn handoff(&self) -> PathBuf {
        self.root.path().join("handoff")
    }

    fn bin(&self) -> PathBuf {
        self.root.path().join("bin")
    }

    /// Puts a program on the PATH.
    pub(crate) fn link(&self, name: &str, program: &Path) {
        let at = self.bin().join(name);
        let _ = fs::remove_file(&at);
        symlink(program, at).unwrap();
    }

    /// Puts a program on the PATH that says how it was called.
    pub(crate) fn stub(&self, name: &str, exit: u8) {
        let text = format!("#!/bin/sh\necho \"called: {name} $*\"\nexit {exit}\n");
        self.script(&self.bin().join(name), &text);
    }

    /// Writes an executable script.
    pub(crate) fn script(&self, path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Writes a file of the tree.
    pub(crate) fn write(&self, path: impl AsRef<Path>, text: impl AsRef<[u8]>) {
        let path = self.tree().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// A program in the tree with this PATH and nothing else of the machine.
    pub(crate) fn program(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.tree())
            .env_clear()
            .env("PATH", self.bin())
            .env("HOME", self.root.path().join("home"))
            .env("TMPDIR", self.root.path().join("home"))
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("JIG_HANDOFF", self.handoff());
        command
    }

    /// `sh -c`, as a code phase is run.
    pub(crate) fn shell(&self, command: &str, env: &[(&str, &str)]) -> Output {
        self.program("/bin/sh")
            .arg("-c")
            .arg(command)
            .envs(env.iter().copied())
            .output()
            .unwrap()
    }

    /// A git command that must succeed; its output.
    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        let output = self
            .program(self.bin().join("git"))
            .args(arguments)
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "git {arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout)
            .trim_end()
            .to_owned()
    }

    /// A repository with one empty commit.
    pub(crate) fn repository() -> Self {
        let place = Self::new();
        place.git(&["init", "--quiet", "--initial-branch=main"]);
        place.commit("base");
        place
    }

    /// Commits everything; the new commit.
    pub(crate) fn commit(&self, message: &str) -> String {
        self.git(&["add", "-A"]);
        self.git(&[
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@t",
            "commit",
            "--quiet",
            "--allow-empty",
            "-m",
            message,
        ]);
        self.git(&["rev-parse", "HEAD"])
    }
}

/// What a command printed, both streams.
pub(crate) fn printed(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}
