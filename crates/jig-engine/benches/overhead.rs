//! What the engine adds to a phase: a scripted agent that answers at once, on a
//! tree of 10,000 files, process start, capture, judgement and checkpoint
//! included. The reference is `git status` on the same tree in the same run.
//!
//! `cargo bench -p jig-engine`; `JIG_BENCH_FILES` sets another size.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark stops at the first surprise and prints what it measured"
)]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::Criterion;
use jig_engine::host::{HostConfig, Mode, PrepareSpec, prepare};
use jig_engine::{AttemptInput, Engine, EngineConfig, NoSink};
use jig_git::{Git, GitConfig};
use jig_process::{StopSignal, SystemClock};
use jig_protocol::definition;
use jig_protocol::event::{Event, EventKind};
use jig_protocol::ids::{AttemptId, JobId, RunId};
use jig_protocol::lifecycle::attempt::AttemptState;
use jig_protocol::time::Timestamp;
use jig_runtime::{AgentRuntime, OperatorHome};
use jig_runtime_scripted::{Script, ScriptedRuntime};
use jig_testkit::Repo;

/// Phases of one measured attempt; the first is not counted.
const PHASES: usize = 11;
const NEW_FILES: usize = 10_000;

/// What an agent says that has nothing to do.
const DONE: &str = "{emit: {status: success, summary: done}}";

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let files: usize = std::env::var("JIG_BENCH_FILES")
        .ok()
        .map_or(10_000, |text| text.parse().unwrap());
    let place = Place::new(files);
    for kind in [Kind::Agent, Kind::Code] {
        let mut phases = runtime.block_on(place.phases(kind));
        phases.extend(runtime.block_on(place.phases(kind)));
        let phase = median(phases);
        let status = median((0..10).map(|_| git_status(&place.repo.path())).collect());
        println!(
            "{} phase, {files} files: {:.1} ms; git status: {:.1} ms; ratio {:.2}",
            kind.word(),
            millis(phase),
            millis(status),
            phase.as_secs_f64() / status.as_secs_f64()
        );
    }
    place.new_files(&runtime);
    let mut criterion = Criterion::default().configure_from_args().sample_size(10);
    criterion.bench_function(&format!("agent phase/{files}"), |bencher| {
        bencher.iter_custom(|wanted| {
            let mut taken = Vec::new();
            while (taken.len() as u64) < wanted {
                taken.extend(runtime.block_on(place.phases(Kind::Agent)));
            }
            taken.iter().take(usize::try_from(wanted).unwrap()).sum()
        });
    });
    criterion.final_summary();
}

#[derive(Clone, Copy)]
enum Kind {
    Agent,
    Code,
}

impl Kind {
    const fn word(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Code => "code",
        }
    }

    fn phase(self, n: usize) -> String {
        match self {
            Self::Agent => format!("  - {{name: p{n}, kind: agent, owner: dev}}\n"),
            Self::Code => format!("  - {{name: p{n}, kind: code, command: 'true'}}\n"),
        }
    }
}

struct Place {
    repo: Repo,
    data: tempfile::TempDir,
    next: std::cell::Cell<u8>,
}

impl Place {
    /// A repository of `files` small files, ten to a directory.
    fn new(files: usize) -> Self {
        let repo = Repo::new();
        for n in 0..files {
            let path = format!("d{}/e{}/file{n}.txt", n / 1000, n / 10 % 100);
            repo.write(&path, format!("{n}\n").repeat(60));
        }
        // What git would else do behind the commit would be measured as well.
        repo.git(&["config", "gc.auto", "0"]);
        repo.git(&["config", "maintenance.auto", "false"]);
        repo.commit("base");
        repo.git(&["gc", "--quiet"]);
        Self {
            repo,
            data: tempfile::tempdir().unwrap(),
            next: std::cell::Cell::new(0),
        }
    }

    /// The time of each phase of an attempt but the first.
    async fn phases(&self, kind: Kind) -> Vec<Duration> {
        let phases: String = (0..PHASES).map(|n| kind.phase(n)).collect();
        let steps = format!("{DONE}, ").repeat(PHASES);
        self.attempt(&phases, &steps).await.split_off(1)
    }

    /// An entry that leaves 10,000 new files, against git committing the same.
    fn new_files(&self, runtime: &tokio::runtime::Runtime) {
        let new = self.repo.scratch().join("new");
        for n in 0..NEW_FILES {
            let directory = new.join((n / 100).to_string());
            std::fs::create_dir_all(&directory).unwrap();
            std::fs::write(directory.join(n.to_string()), format!("{n}\n").repeat(60)).unwrap();
        }
        let copy = |to: &str| format!("cp -r {} {to}", new.display());
        let steps = format!("{{run: '{}', {}, {DONE}", copy("d0/new"), &DONE[1..]);
        let phases: String = (0..2).map(|n| Kind::Agent.phase(n)).collect();
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for n in 0..3 {
            ours.extend(runtime.block_on(self.attempt(&phases, &steps)));
            let clone = self.repo.scratch().join(format!("clone-{n}"));
            let clone = clone.to_str().unwrap();
            self.repo.git(&["clone", "--quiet", "--shared", ".", clone]);
            let started = Instant::now();
            let copied = Command::new("sh")
                .args(["-c", &copy(&format!("{clone}/d0/new"))])
                .status()
                .unwrap();
            assert!(copied.success());
            self.repo.git(&["-C", clone, "add", "--all"]);
            self.repo
                .git(&["-C", clone, "commit", "--quiet", "--message=new"]);
            theirs.push(started.elapsed());
        }
        let (ours, theirs) = (best(&ours), best(&theirs));
        println!(
            "entry with {NEW_FILES} new files: {:.0} ms; git add + commit: {:.0} ms; ratio {:.2}",
            millis(ours),
            millis(theirs),
            ours.as_secs_f64() / theirs.as_secs_f64()
        );
    }

    /// Runs an attempt; the time from each phase's start to the next one's.
    async fn attempt(&self, phases: &str, steps: &str) -> Vec<Duration> {
        let snapshot = format!(
            "name: bench\nroster:\n  dev: {{model: m, system_prompt: s, user_prompt: u, writes: ['d0/**']}}\nphases:\n{phases}"
        );
        let script = Script::parse(&format!("roles: {{dev: [{steps}]}}")).unwrap();
        let host = jig_testkit::host();
        let runtime: Arc<dyn AgentRuntime> = Arc::new(ScriptedRuntime::new(host.clone(), script));
        let path = std::env::var_os("PATH").unwrap();
        let config = HostConfig {
            data_dir: self.data.path().canonicalize().unwrap(),
            git: Git::new(GitConfig::new(path.clone())),
            clock: Arc::new(SystemClock::new()),
            operator: OperatorHome {
                home: self.repo.home(),
                env: BTreeMap::from([("PATH".into(), path)]),
            },
            host,
        };
        self.next.set(self.next.get().wrapping_add(1));
        let (at, random) = (Timestamp::from_millis(1), [self.next.get(); 10]);
        let parsed = definition::parse(&snapshot).definition.unwrap();
        let spec = PrepareSpec {
            run_id: RunId::from_parts(at, random),
            job_id: JobId::from_parts(at, random),
            attempt_id: AttemptId::from_parts(at, random),
            attempt_number: 1,
            lender: &self.repo.path(),
            base: &self.repo.head(),
            mode: Mode::OwnTree,
            definition: &parsed,
        };
        let prepared = prepare(&config, &spec).await.unwrap();
        let trace = prepared.dirs.trace();
        let name = runtime.name();
        let runtimes = BTreeMap::from([(name.clone(), runtime)]);
        let engine = Engine::new(EngineConfig::new(runtimes, config, Arc::new(|| 0)));
        let outcome = engine
            .run(AttemptInput {
                run_id: RunId::from_parts(at, random),
                job_id: JobId::from_parts(at, random),
                attempt_id: AttemptId::from_parts(at, random),
                attempt_number: 1,
                snapshot,
                parameters: BTreeMap::new(),
                prepared,
                cancel: StopSignal::new(),
                sink: Arc::new(NoSink),
                seed_auth: false,
                runtime_override: Some(name),
                default_runtime: None,
            })
            .await;
        assert_eq!(
            outcome.state,
            AttemptState::AcceptedUnpublished,
            "{:?}",
            outcome.error
        );
        let taken = between_starts(&trace);
        std::fs::remove_dir_all(&outcome.prepared.dirs.root).unwrap();
        taken
    }
}

fn between_starts(trace: &Path) -> Vec<Duration> {
    let text = std::fs::read_to_string(trace).unwrap();
    let starts: Vec<Timestamp> = text
        .lines()
        .map(|line| serde_json::from_str::<Event>(line).unwrap())
        .filter(|event| event.kind == EventKind::PhaseStart)
        .map(|event| event.started_at)
        .collect();
    starts
        .windows(2)
        .map(|pair| pair[1].saturating_since(pair[0]))
        .collect()
}

fn git_status(tree: &Path) -> Duration {
    let started = Instant::now();
    let status = Command::new("git")
        .args(["status", "--porcelain"])
        .current_dir(tree)
        .output()
        .unwrap();
    assert!(status.status.success() && status.stdout.is_empty());
    started.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn best(times: &[Duration]) -> Duration {
    times.iter().min().copied().unwrap_or_default()
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
