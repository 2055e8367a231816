//! Small workspaces in temporary directories, clean until a test plants something.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use xtask::finding::Finding;
use xtask::source::{self, Source};
use xtask::workspace::Workspace;

/// A workspace whose third-party packages lie in a directory of its own, so that
/// cargo resolves it with neither network nor registry.
pub(crate) struct Fixture {
    directory: TempDir,
}

impl Fixture {
    /// A workspace with no crate yet.
    pub(crate) fn empty() -> Self {
        let fixture = Self {
            directory: tempfile::tempdir().unwrap(),
        };
        fixture.write(
            "Cargo.toml",
            "[workspace]\nresolver = \"3\"\nmembers = [\"crates/*\"]\n[workspace.dependencies]\n",
        );
        fixture.write(
            ".cargo/config.toml",
            "[source.crates-io]\nreplace-with = \"vendored\"\n\
             [source.vendored]\ndirectory = \"../vendor\"\n[net]\noffline = true\n",
        );
        fs::create_dir_all(fixture.path("../vendor")).unwrap();
        fs::create_dir_all(fixture.path("crates")).unwrap();
        fixture
    }

    /// protocol ← engine ← worker, protocol ← controlplane, a development-only kit,
    /// and rules under which all of that is fine.
    pub(crate) fn layered() -> Self {
        let fixture = Self::empty();
        fixture.package("protocol", "");
        fixture.package("engine", "[dependencies]\nprotocol = { path = \"../protocol\" }\n[dev-dependencies]\nkit = { path = \"../kit\" }\n");
        fixture.package(
            "worker",
            "[dependencies]\nprotocol = { path = \"../protocol\" }\nengine = { path = \"../engine\" }\n",
        );
        fixture.package(
            "controlplane",
            "[dependencies]\nprotocol = { path = \"../protocol\" }\nsqlx = \"1\"\n",
        );
        fixture.package(
            "kit",
            "[dependencies]\nprotocol = { path = \"../protocol\" }\n",
        );
        fixture.vendored("sqlx", "[features]\nmacros = []\n");
        fixture.vendored("harmless", "");
        fixture.layers(LAYERS);
        fixture.lock();
        fixture
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.directory.path().join("workspace").join(path)
    }

    pub(crate) fn workspace(&self) -> Workspace {
        Workspace::at(self.path("")).quiet()
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap()
    }

    /// Replaces the one occurrence of `old`.
    pub(crate) fn edit(&self, path: &str, old: &str, new: &str) {
        let text = self.read(path);
        assert_eq!(text.matches(old).count(), 1, "{old:?} in {path}:\n{text}");
        self.write(path, &text.replace(old, new));
    }

    /// A crate under `crates/` whose description is `duty of <name>`.
    pub(crate) fn package(&self, name: &str, sections: &str) {
        self.write(
            &format!("crates/{name}/Cargo.toml"),
            &format!(
                "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\
                 description = \"duty of {name}\"\n[lints]\nworkspace = true\n{sections}"
            ),
        );
        self.write(
            &format!("crates/{name}/src/lib.rs"),
            &format!("//! Duty of {name}.\n\n#![warn(missing_docs)]\n"),
        );
        let root = self.read("Cargo.toml");
        if !root.contains("[workspace.lints") {
            self.write(
                "Cargo.toml",
                &format!("{root}[workspace.lints.rust]\nunsafe_code = \"deny\"\n"),
            );
        }
    }

    /// A third-party package, version 1.0.0.
    pub(crate) fn vendored(&self, name: &str, sections: &str) {
        let directory = format!("../vendor/{name}");
        self.write(
            &format!("{directory}/Cargo.toml"),
            &format!(
                "[package]\nname = \"{name}\"\nversion = \"1.0.0\"\nedition = \"2024\"\n{sections}"
            ),
        );
        self.write(&format!("{directory}/src/lib.rs"), "");
        self.write(
            &format!("{directory}/.cargo-checksum.json"),
            "{\"files\":{}}",
        );
    }

    pub(crate) fn layers(&self, text: &str) {
        self.write("xtask/rules/layers.toml", text);
    }

    /// Writes the lock file anew.
    pub(crate) fn lock(&self) {
        self.workspace()
            .cargo_output(&["generate-lockfile", "--offline"])
            .unwrap();
    }

    pub(crate) fn sources(&self) -> Vec<Source> {
        source::read_all(&self.workspace()).unwrap()
    }

    pub(crate) fn boundary(&self) -> Vec<Finding> {
        xtask::boundary::check(&self.workspace()).unwrap()
    }

    /// A program that stands in for cargo or rustc.
    pub(crate) fn program(&self, name: &str, script: &str) -> PathBuf {
        let path = self.path(name);
        self.write(name, &format!("#!/bin/sh\n{script}\n"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }
}

/// The rules of [`Fixture::layered`].
pub(crate) const LAYERS: &str = r#"
dev_only = ["kit"]

[[crate]]
name = "protocol"
duty = "duty of protocol"
never_reach = ["sqlx"]

[[crate]]
name = "engine"
duty = "duty of engine"
may_use = ["protocol"]
never_reach = ["controlplane", "sqlx"]

[[crate]]
name = "worker"
duty = "duty of worker"
may_use = ["protocol", "engine"]
never_reach = ["controlplane", "sqlx"]
never_name = ["harmless"]

[[crate]]
name = "controlplane"
duty = "duty of controlplane"
may_use = ["protocol"]
never_reach = ["engine", "worker"]
never_feature = ["sqlx/macros"]

[[crate]]
name = "kit"
duty = "duty of kit"
may_use = ["protocol"]
"#;

/// The one finding, of that rule, at that file.
#[track_caller]
pub(crate) fn only<'a>(findings: &'a [Finding], rule: &str, file: &str) -> &'a Finding {
    assert_eq!(findings.len(), 1, "{}", listed(findings));
    named(findings, rule, file)
}

/// A finding of that rule at that file.
#[track_caller]
pub(crate) fn named<'a>(findings: &'a [Finding], rule: &str, file: &str) -> &'a Finding {
    let finding = findings
        .iter()
        .find(|f| f.rule == rule && f.place.split(':').next() == Some(file))
        .unwrap_or_else(|| panic!("no {rule} at {file} among:\n{}", listed(findings)));
    assert!(!finding.remedy.is_empty());
    finding
}

/// No finding at all.
#[track_caller]
pub(crate) fn none(findings: &[Finding]) {
    assert!(findings.is_empty(), "{}", listed(findings));
}

fn listed(findings: &[Finding]) -> String {
    findings
        .iter()
        .map(|finding| format!("{finding}\n"))
        .collect()
}

/// The root of the repository that these tests belong to.
pub(crate) fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}
