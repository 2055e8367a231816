//! Capture and compare of an unchanged tree against `git status`, preparing an
//! attempt against `git worktree add`, committing thousands of new files against
//! `git commit`, and a restore against `git reset` and `git clean`, on generated
//! trees of 10,000 and 50,000 files. Each ratio is of the best times of two that took turns in one
//! run: what else the machine does only ever adds.
//!
//! `cargo bench -p jig-git`; `JIG_BENCH_FILES=10000` limits the sizes.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark stops at the first surprise and prints what it measured"
)]

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion};
use jig_git::changes::{GuardOptions, Selection};
use jig_git::{AttemptPlan, AttemptRepo, Git, GitConfig, Repository};
use jig_protocol::ids::{AttemptId, JobId};
use jig_protocol::time::Timestamp;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let mut criterion = Criterion::default().configure_from_args().sample_size(10);
    let wanted = std::env::var("JIG_BENCH_FILES").ok();
    for files in [10_000, 50_000] {
        if wanted
            .as_ref()
            .is_some_and(|wanted| *wanted != files.to_string())
        {
            continue;
        }
        let place = Place::new(files);
        runtime.block_on(place.report());
        place.detail(&runtime, &mut criterion);
    }
    criterion.final_summary();
}

struct Place {
    dir: tempfile::TempDir,
    files: usize,
    git: Git,
}

impl Place {
    /// A repository of `files` small files, ten to a directory.
    fn new(files: usize) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let lender = dir.path().join("lender");
        std::fs::create_dir(&lender).unwrap();
        git(&lender, &["init", "--quiet", "--initial-branch=main"]);
        for n in 0..files {
            let directory = lender.join(format!("d{}/e{}", n / 1000, n / 10 % 100));
            std::fs::create_dir_all(&directory).unwrap();
            std::fs::write(
                directory.join(format!("file{n}.txt")),
                format!("{n}\n").repeat(60),
            )
            .unwrap();
        }
        git(&lender, &["add", "--all"]);
        git(&lender, &["commit", "--quiet", "-m", "base"]);
        git(&lender, &["gc", "--quiet"]);
        let git = Git::new(GitConfig::new(std::env::var_os("PATH").unwrap()));
        Self { dir, files, git }
    }

    fn lender(&self) -> PathBuf {
        self.dir.path().join("lender")
    }

    async fn prepare(&self, n: u8) -> AttemptRepo {
        let lender = Repository::discover(&self.git, &self.lender())
            .await
            .unwrap();
        let attempt = AttemptId::from_parts(Timestamp::EPOCH, [n; 10]);
        let directory = self.dir.path().join(attempt.to_string());
        std::fs::create_dir_all(&directory).unwrap();
        let plan = AttemptPlan {
            directory,
            attempt,
            job: JobId::from_parts(Timestamp::EPOCH, [0; 10]),
            number: u32::from(n),
            base: lender.resolve_base(&self.git, None).await.unwrap(),
        };
        AttemptRepo::prepare(&self.git, &lender, &plan)
            .await
            .unwrap()
    }

    /// Measures every pair in turns and prints the ratios.
    async fn report(&self) {
        self.unchanged().await;
        self.preparing().await;
        self.new_files().await;
        self.restoring().await;
    }

    async fn unchanged(&self) {
        let repo = self.prepare(1).await;
        let guard = repo.guard(GuardOptions::default()).unwrap();
        let before = guard.capture(None).await.unwrap();
        // Past the clock's granularity, which for git is a second: nothing is
        // racy any more, for neither.
        tokio::time::sleep(Duration::from_millis(1_100)).await;
        let mut before = guard.capture(Some(&before)).await.unwrap();
        git(repo.tree(), &["status", "--porcelain"]);
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..25 {
            theirs.push(timed(|| status(repo.tree())));
            let start = Instant::now();
            let after = guard.capture(Some(&before)).await.unwrap();
            assert!(guard.compare(&before, &after).is_empty());
            ours.push(start.elapsed());
            before = after;
        }
        self.print("capture + compare", "git status", ours, theirs);
    }

    /// Nothing is removed meanwhile: some file systems make files slowly for a
    /// while after many were removed.
    async fn preparing(&self) {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for n in 2..5 {
            let name = format!("linked-{n}");
            let path = self.dir.path().join(&name);
            let path = path.to_str().unwrap();
            theirs.push(timed(|| {
                git(
                    &self.lender(),
                    &["worktree", "add", "--quiet", "-b", &name, path],
                )
            }));
            let start = Instant::now();
            self.prepare(n).await;
            ours.push(start.elapsed());
        }
        self.print("prepare", "git worktree add", ours, theirs);
    }

    /// An entry that leaves 10,000 new files: they are found, kept and committed.
    async fn new_files(&self) {
        let (repo, theirs) = (self.prepare(5).await, self.prepare(6).await);
        let guard = repo.guard(GuardOptions::default()).unwrap();
        let mut before = guard.capture(None).await.unwrap();
        let reference = theirs.tree().to_owned();
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for round in 0..3 {
            let now = Timestamp::from_millis(round);
            let number = u32::try_from(round).unwrap();
            write_new(&reference, &format!("their {round}"));
            theirs.push(timed(|| {
                git(&reference, &["add", "--all"]);
                git(&reference, &["commit", "--quiet", "-m", "new"]);
            }));
            write_new(repo.tree(), &format!("our {round}"));
            let start = Instant::now();
            let after = guard.capture(Some(&before)).await.unwrap();
            assert_eq!(guard.compare(&before, &after).paths.len(), NEW_FILES);
            repo.checkpoint(&guard, &after, "new", number, now)
                .await
                .unwrap();
            ours.push(start.elapsed());
            before = after;
        }
        self.print("10,000 new files", "git add + commit", ours, theirs);
    }

    /// A tenth of the files written to, a tenth removed, as many added.
    async fn restoring(&self) {
        let repo = self.prepare(7).await;
        let guard = repo.guard(GuardOptions::default()).unwrap();
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..3 {
            self.change(repo.tree());
            theirs.push(timed(|| {
                git(repo.tree(), &["reset", "--quiet", "--hard"]);
                git(repo.tree(), &["clean", "--quiet", "-d", "--force"]);
            }));
            let before = guard.capture(None).await.unwrap();
            self.change(repo.tree());
            let start = Instant::now();
            let now = guard.capture(Some(&before)).await.unwrap();
            let report = guard.restore(&before, &now, Selection::All).await.unwrap();
            ours.push(start.elapsed());
            assert!(report.is_complete());
            // The next reset need not read what was restored here.
            git(repo.tree(), &["status", "--porcelain"]);
        }
        self.print("restore", "git reset + clean", ours, theirs);
    }

    fn change(&self, tree: &Path) {
        for n in (0..self.files).step_by(10) {
            let path = |n: usize| tree.join(format!("d{}/e{}/file{n}.txt", n / 1000, n / 10 % 100));
            std::fs::write(path(n), "changed\n").unwrap();
            std::fs::remove_file(path(n + 1)).unwrap();
            let new = tree.join(format!("new/{}", n / 1000));
            std::fs::create_dir_all(&new).unwrap();
            std::fs::write(new.join(n.to_string()), "new\n").unwrap();
        }
    }

    fn print(&self, what: &str, reference: &str, ours: Vec<Duration>, theirs: Vec<Duration>) {
        let (ours, theirs) = (best(&ours), best(&theirs));
        println!(
            "{} files: {what} {ours:.1?}, {reference} {theirs:.1?}, ratio {:.2}",
            self.files,
            ours.as_secs_f64() / theirs.as_secs_f64()
        );
    }

    fn detail(&self, runtime: &tokio::runtime::Runtime, criterion: &mut Criterion) {
        let repo = runtime.block_on(self.prepare(9));
        let guard = repo.guard(GuardOptions::default()).unwrap();
        let before = runtime.block_on(guard.capture(None)).unwrap();
        let mut group = criterion.benchmark_group("boundary");
        group.bench_function(
            BenchmarkId::new("capture_and_compare", self.files),
            |bencher| {
                bencher.iter(|| {
                    let after = runtime.block_on(guard.capture(Some(&before))).unwrap();
                    black_box(guard.compare(&before, &after))
                });
            },
        );
        group.bench_function(BenchmarkId::new("git_status", self.files), |bencher| {
            bencher.iter(|| status(repo.tree()));
        });
        group.finish();
    }
}

const NEW_FILES: usize = 10_000;

fn write_new(tree: &Path, word: &str) {
    for n in 0..NEW_FILES {
        let directory = tree.join(format!("{word}/{}", n / 100));
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(
            directory.join(n.to_string()),
            format!("{word} {n}\n").repeat(30),
        )
        .unwrap();
    }
}

fn timed(act: impl FnOnce()) -> Duration {
    let start = Instant::now();
    act();
    start.elapsed()
}

fn best(times: &[Duration]) -> Duration {
    times.iter().min().copied().unwrap_or_default()
}

fn status(tree: &Path) {
    git(tree, &["--no-optional-locks", "status", "--porcelain"]);
}

fn git(directory: &Path, args: &[&str]) {
    let output = Command::new("git")
        .args(["-c", "gc.auto=0", "-c", "maintenance.auto=false"])
        .args(args)
        .current_dir(directory)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_AUTHOR_NAME", "Op")
        .env("GIT_AUTHOR_EMAIL", "op@example.com")
        .env("GIT_COMMITTER_NAME", "Op")
        .env("GIT_COMMITTER_EMAIL", "op@example.com")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "git {args:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}
