//! The program that hosts the hidden modes in tests.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::SystemTime;

use jig_process::Host;

const NAME: &str = "jig-test-host";

/// The workspace crates that the program is made of.
const CRATES: &[&str] = &[
    "jig-protocol",
    "jig-process",
    "jig-git",
    "jig-runtime",
    "jig-runtime-scripted",
    "jig-testkit",
];

/// The test host, as what the engine and `jig-process` take.
///
/// # Panics
///
/// When it cannot be built.
#[must_use]
pub fn host() -> Host {
    match Host::at(host_path()) {
        Ok(host) => host,
        Err(error) => panic!("{error}"),
    }
}

/// The path of the test host program, which is built when it is missing or
/// older than what it is made of. Beside the running test, so with the same
/// profile and target directory. Safe to call from many test processes.
///
/// # Panics
///
/// When it cannot be built.
#[must_use]
pub fn host_path() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| Place::of_running_test().built())
}

/// Where the running test lives.
struct Place {
    /// `<target>[/<triple>]/<profile>`
    profile_dir: PathBuf,
    target_dir: PathBuf,
    triple: Option<String>,
    profile: String,
}

impl Place {
    fn of_running_test() -> Self {
        let test = or_panic(std::env::current_exe(), "the path of the running test");
        let profile_dir = test
            .ancestors()
            .skip(1)
            .find(|dir| !matches!(name_of(dir), "deps" | "examples"))
            .unwrap_or(Path::new("/"))
            .to_owned();
        let profile = match name_of(&profile_dir) {
            "debug" => "dev".to_owned(),
            other => other.to_owned(),
        };
        let above = profile_dir.parent().unwrap_or(Path::new("/"));
        // Only the target directory itself is marked as a cache.
        let is_target = above.join("CACHEDIR.TAG").exists();
        let (target_dir, triple) = match (is_target, above.parent()) {
            (false, Some(parent)) => (parent.to_owned(), Some(name_of(above).to_owned())),
            _ => (above.to_owned(), None),
        };
        Self {
            profile_dir,
            target_dir,
            triple,
            profile,
        }
    }

    fn built(self) -> PathBuf {
        let program = self.profile_dir.join(NAME);
        let stamp = self.profile_dir.join(".jig-test-host.stamp");
        let lock = self.profile_dir.join(".jig-test-host.lock");
        let lock = or_panic(File::create(lock), "the lock file of the test host");
        or_panic(lock.lock(), "the lock of the test host");
        if !is_fresh(&program, &stamp) {
            // Stamped with the moment before the build: what changes during it
            // is newer.
            let before = SystemTime::now();
            self.build();
            let file = or_panic(File::create(&stamp), "the stamp of the test host");
            or_panic(file.set_modified(before), "the stamp of the test host");
        }
        program
    }

    fn build(&self) {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command
            .current_dir(workspace())
            .args(["build", "--quiet", "--locked", "--package", "jig-testkit"])
            .args(["--bin", NAME, "--profile", &self.profile])
            .arg("--target-dir")
            .arg(&self.target_dir);
        if let Some(triple) = &self.triple {
            command.args(["--target", triple]);
        }
        // Of the package under test, not of the one to be built.
        for (name, _) in std::env::vars_os() {
            if name.to_str().is_some_and(|n| n.starts_with("CARGO_PKG_")) {
                command.env_remove(name);
            }
        }
        let output = or_panic(command.output(), "cargo");
        assert!(
            output.status.success(),
            "the test host does not build:\n{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

fn is_fresh(program: &Path, stamp: &Path) -> bool {
    let Some(built) = modified(stamp).filter(|_| program.exists()) else {
        return false;
    };
    let workspace = workspace();
    let crates = workspace.join("crates");
    let sources = CRATES.iter().map(|name| crates.join(name).join("src"));
    let manifests = CRATES
        .iter()
        .map(|name| crates.join(name).join("Cargo.toml"));
    let shared = ["Cargo.toml", "Cargo.lock"].map(|name| workspace.join(name));
    sources
        .chain(manifests)
        .chain(shared)
        .all(|path| newest(&path).is_some_and(|changed| changed < built))
}

/// When `path` or anything below it last changed.
fn newest(path: &Path) -> Option<SystemTime> {
    let mut newest = modified(path)?;
    if path.is_dir() {
        for entry in fs::read_dir(path).ok()? {
            newest = newest.max(self::newest(&entry.ok()?.path())?);
        }
    }
    Some(newest)
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|meta| meta.modified()).ok()
}

fn workspace() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here)
}

fn name_of(path: &Path) -> &str {
    path.file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default()
}

#[track_caller]
fn or_panic<T>(result: std::io::Result<T>, what: &str) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("{what}: {error}"),
    }
}
