//! What it costs to start `jig`, against starting a program that does nothing,
//! and how much memory a whole run takes on a tree of 50,000 files.
//!
//! `cargo bench -p jig-cli`; `JIG_BENCH_FILES` sets another size.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark stops at the first surprise and prints what it measured"
)]

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use criterion::Criterion;

const JIG: &str = env!("CARGO_BIN_EXE_jig");

/// Two phases: what a run holds is not only its first capture.
const DEFINITION: &str = "\
name: memory
roster:
  dev: {model: m, system_prompt: s, user_prompt: '{{prompt}}', writes: [d0/**]}
phases:
  - {name: write, kind: agent, owner: dev}
  - {name: check, kind: code, command: 'true'}
";

const SCRIPT: &str = "\
roles:
  dev:
    - write: {d0/new.txt: \"new\\n\"}
      emit: {status: success, summary: done, artifacts: [d0/new.txt], changed_files: [d0/new.txt]}
";

fn main() {
    start();
    memory();
    let mut criterion = Criterion::default().configure_from_args().sample_size(50);
    criterion.bench_function("jig --help", |bencher| bencher.iter(|| run(JIG, "--help")));
    criterion.bench_function("true", |bencher| bencher.iter(|| run("/bin/true", "")));
    criterion.final_summary();
}

/// Prints the medians of both programs, started in turns.
fn start() {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..100 {
        theirs.push(timed(|| run("/bin/true", "")));
        ours.push(timed(|| run(JIG, "--help")));
    }
    let (ours, theirs) = (median(ours), median(theirs));
    println!(
        "jig --help {ours:.1?}, /bin/true {theirs:.1?}, ratio {:.2}",
        ours.as_secs_f64() / theirs.as_secs_f64()
    );
}

fn run(program: &str, argument: &str) {
    let status = Command::new(program)
        .arg(argument)
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
}

/// Prints the most memory that `jig run`, and that `git status`, held at once on
/// the same tree.
fn memory() {
    let files = std::env::var("JIG_BENCH_FILES")
        .ok()
        .map_or(50_000, |text| text.parse().unwrap());
    let dir = tempfile::tempdir().unwrap();
    let repo = dir.path().join("repo");
    repository(&repo, files);
    let (definition, script) = (dir.path().join("d.yaml"), dir.path().join("s.yaml"));
    std::fs::write(&definition, DEFINITION).unwrap();
    std::fs::write(&script, SCRIPT).unwrap();
    let mut jig = Command::new(JIG);
    jig.args(["run", "--runtime", "scripted", "--def"])
        .arg(&definition)
        .arg("--script")
        .arg(&script)
        .arg("--data")
        .arg(dir.path().join("data"))
        .arg(&repo)
        .arg("Write it.");
    let mut status = git(&repo);
    status.args(["status", "--porcelain"]);
    let (Some(ours), Some(theirs)) = (peak(jig), peak(status)) else {
        println!("{files} files: no /proc here, memory is not measured");
        return;
    };
    println!(
        "{files} files: jig run {:.1} MB, git status {:.1} MB, ratio {:.2}",
        ours as f64 / 1e6,
        theirs as f64 / 1e6,
        ours as f64 / theirs as f64
    );
}

/// The most memory that the program itself held, in bytes, as the kernel counts
/// it; looked at until it ends.
fn peak(mut command: Command) -> Option<u64> {
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let path = format!("/proc/{}/status", child.id());
    let mut peak = None;
    loop {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        if let Some(kib) = text.lines().find_map(high_water) {
            peak = peak.max(Some(kib * 1024));
        }
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success(), "{command:?} ended with {status}");
            return peak;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn high_water(line: &str) -> Option<u64> {
    let value = line.strip_prefix("VmHWM:")?.trim();
    value.strip_suffix(" kB")?.parse().ok()
}

/// A repository of `files` small files, ten to a directory.
fn repository(root: &Path, files: usize) {
    for n in 0..files {
        let directory = root.join(format!("d{}/e{}", n / 1000, n / 10 % 100));
        std::fs::create_dir_all(&directory).unwrap();
        let content = format!("{n}\n").repeat(60);
        std::fs::write(directory.join(format!("file{n}.txt")), content).unwrap();
    }
    for arguments in [
        &["init", "--quiet", "--initial-branch=main"][..],
        &["add", "--all"],
        &["commit", "--quiet", "--message=base"],
        &["gc", "--quiet"],
    ] {
        assert!(git(root).args(arguments).status().unwrap().success());
    }
}

fn git(directory: &Path) -> Command {
    let mut command = Command::new("git");
    command
        // `git gc` is refused while one is running behind the commit.
        .args(["-c", "gc.auto=0", "-c", "maintenance.auto=false"])
        .current_dir(directory)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_AUTHOR_NAME", "Op")
        .env("GIT_AUTHOR_EMAIL", "op@example.com")
        .env("GIT_COMMITTER_NAME", "Op")
        .env("GIT_COMMITTER_EMAIL", "op@example.com");
    command
}

fn timed(act: impl FnOnce()) -> Duration {
    let start = Instant::now();
    act();
    start.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
