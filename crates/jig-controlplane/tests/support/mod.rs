//! What the tests of this crate share: a real clock, bytes from a counter, and
//! an executor that does what a test tells it, with a real trace file.
//!
//! Part of two test programs, neither of which uses all of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::future::Future;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use jig_controlplane::direct::DirectRequest;
use jig_controlplane::executor::{AttemptOrder, Completion, DeadAttempt, EventSink, RetainedTree};
use jig_controlplane::store::OpenOptions;
use jig_controlplane::{AttemptExecutor, RandomSource, Store};
use jig_protocol::event::{Event, EventKind};
use jig_protocol::lifecycle::Outcome;
use jig_protocol::time::{Clock, Monotonic, Sleep, Timestamp};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// The system's time, passing `speed` times as fast for who waits.
#[derive(Debug)]
pub(crate) struct TestClock {
    start: Instant,
    speed: u32,
}

impl TestClock {
    pub(crate) fn real() -> Arc<Self> {
        Self::faster(1)
    }

    pub(crate) fn faster(speed: u32) -> Arc<Self> {
        Arc::new(Self {
            start: Instant::now(),
            speed,
        })
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        Timestamp::from_micros(i64::try_from(now.as_micros()).unwrap())
    }

    fn monotonic(&self) -> Monotonic {
        Monotonic::from_start(self.start.elapsed() * self.speed)
    }

    fn sleep_until(&self, deadline: Monotonic) -> Sleep {
        let wait = deadline.saturating_since(self.monotonic()) / self.speed;
        Box::pin(tokio::time::sleep(wait))
    }
}

/// Bytes that never repeat, in this process or another.
#[derive(Debug, Default)]
pub(crate) struct CountingRandom(AtomicU64);

impl RandomSource for CountingRandom {
    fn fill(&self, bytes: &mut [u8]) {
        let count = self.0.fetch_add(1, Ordering::SeqCst).to_be_bytes();
        let process = std::process::id().to_be_bytes();
        let address = (std::ptr::from_ref(self).addr() as u64).to_be_bytes();
        let source = count.iter().rev().chain(&process).chain(&address);
        for (byte, from) in bytes.iter_mut().zip(source.cycle()) {
            *byte = *from;
        }
    }
}

pub(crate) async fn open(data: &Path) -> Store {
    Store::open(data, TestClock::real(), &OpenOptions::default())
        .await
        .unwrap()
}

pub(crate) const BASE: &str = "0123456789abcdef0123456789abcdef01234567";

pub(crate) fn request(repository: &str) -> DirectRequest {
    DirectRequest {
        definition_name: "smoke".parse().unwrap(),
        definition_source: "name: smoke\n".to_owned(),
        parameters: BTreeMap::from([("prompt".to_owned(), "do it".to_owned())]),
        repository: repository.to_owned(),
        base_ref: Some("main".to_owned()),
        base_sha: BASE.to_owned(),
        environment_names: BTreeSet::from(["API_KEY".to_owned()]),
        runtimes: BTreeSet::from(["scripted".to_owned()]),
    }
}

/// The trace of an attempt: `phases` phases with a gate and an invalid answer.
pub(crate) fn trace(phases: u64) -> Vec<Event> {
    let mut events = Vec::new();
    let mut say = |kind: EventKind, phase: Option<String>, name: Option<&str>, payload: Value| {
        events.push(Event {
            seq: events.len() as u64 + 1,
            kind,
            phase,
            name: name.map(str::to_owned),
            payload: (!payload.is_null()).then_some(payload),
            started_at: Timestamp::from_millis(1_700_000_000_000),
        });
    };
    let start = json!({
        "attempt_id": "a", "job_id": "j", "attempt_number": 1, "definition": "smoke",
        "definition_digest": "d", "base": BASE, "prompts": [],
        "runtimes": [{"name": "scripted", "version": "1", "can_resume": true}],
    });
    say(EventKind::Log, None, Some("attempt_start"), start);
    for number in 1..=phases {
        let phase = Some(format!("phase-{number}"));
        say(
            EventKind::PhaseStart,
            phase.clone(),
            None,
            json!({"kind": "agent"}),
        );
        let invalid = json!({"role": "r", "parse_attempt": 1, "error": "no JSON", "raw": "hm"});
        say(
            EventKind::Log,
            phase.clone(),
            Some("invalid_envelope"),
            invalid,
        );
        let round = json!({"attempt": 1, "position": 0, "violations": [], "checks": [
            {"item": "a.txt", "ok": true, "note": "exists"},
            {"item": "b.txt", "ok": true, "note": "exists"}]});
        say(
            EventKind::GatePass,
            phase.clone(),
            Some("artifacts_exist"),
            round,
        );
        say(
            EventKind::PhaseEnd,
            phase,
            None,
            json!({"status": "success"}),
        );
    }
    say(
        EventKind::AttemptEnd,
        None,
        None,
        json!({"end": "completed"}),
    );
    events
}

/// What the executor does after its events.
#[derive(Debug, Clone)]
pub(crate) enum Then {
    End(Outcome),
    Panic,
    /// Waits to be cancelled, says so, and ends.
    WaitForCancel,
    /// Hands itself over and waits until it may end.
    Meet(Arc<tokio::sync::Barrier>),
    /// Kills this process after so many events.
    KillAfter(u64),
}

/// Writes a trace and ends as told.
#[derive(Debug)]
pub(crate) struct Scripted {
    pub(crate) phases: u64,
    pub(crate) then: Then,
    /// What is told to clean up.
    pub(crate) reclaimed: Mutex<Vec<DeadAttempt>>,
    pub(crate) reclaim_fails: Mutex<Option<String>>,
    /// Fired once the events were emitted.
    pub(crate) emitted: CancellationToken,
    /// Emitted events reach the sink only with this.
    pub(crate) deliver: bool,
}

impl Scripted {
    pub(crate) fn new(phases: u64, then: Then) -> Arc<Self> {
        Arc::new(Self::plain(phases, then))
    }

    pub(crate) fn plain(phases: u64, then: Then) -> Self {
        Self {
            phases,
            then,
            reclaimed: Mutex::default(),
            reclaim_fails: Mutex::default(),
            emitted: CancellationToken::new(),
            deliver: true,
        }
    }
}

fn end(outcome: Outcome) -> Completion {
    let good = outcome == Outcome::AcceptedUnpublished;
    Completion {
        outcome,
        result: None,
        error: (!good).then(|| format!("ended {outcome}")),
        retained: None,
    }
}

struct Pen {
    file: File,
    sink: Option<EventSink>,
}

impl Pen {
    fn write(&mut self, event: Event) {
        let mut line = serde_json::to_vec(&event).unwrap();
        line.push(b'\n');
        self.file.write_all(&line).unwrap();
        if let Some(sink) = &self.sink {
            sink.emit(event);
        }
    }
}

impl AttemptExecutor for Scripted {
    type Report = &'static str;

    async fn execute(
        &self,
        order: AttemptOrder,
        events: EventSink,
        cancel: CancellationToken,
    ) -> (Completion, &'static str) {
        fs::create_dir_all(order.directory.join("tree")).unwrap();
        let file = File::create(order.directory.join("trace.jsonl")).unwrap();
        let mut pen = Pen {
            file,
            sink: self.deliver.then_some(events),
        };
        let all = trace(self.phases);
        let next = all.len() as u64 + 1;
        for event in all {
            let seq = event.seq;
            pen.write(event);
            if matches!(self.then, Then::KillAfter(last) if last == seq) {
                kill_self();
            }
            tokio::task::yield_now().await;
        }
        self.emitted.cancel();
        match &self.then {
            Then::End(outcome) => (end(*outcome), "report"),
            Then::Panic => panic!("the scripted executor panics"),
            Then::WaitForCancel => {
                cancel.cancelled().await;
                let mut last = trace(0).remove(1);
                (last.kind, last.seq) = (EventKind::Log, next);
                last.name = Some("attempt_cancelled".to_owned());
                pen.write(last);
                (end(Outcome::Cancelled), "report")
            }
            Then::Meet(barrier) => {
                barrier.wait().await;
                (end(Outcome::AcceptedUnpublished), "report")
            }
            Then::KillAfter(_) => (end(Outcome::AcceptedUnpublished), "report"),
        }
    }

    async fn reclaim(&self, dead: DeadAttempt) -> Result<Option<RetainedTree>, String> {
        let tree = dead.directory.join("tree");
        self.reclaimed.lock().unwrap().push(dead);
        if let Some(problem) = self.reclaim_fails.lock().unwrap().clone() {
            return Err(problem);
        }
        let reason = "its run died".to_owned();
        Ok(tree.exists().then_some(RetainedTree { path: tree, reason }))
    }
}

pub(crate) fn kill_self() -> ! {
    let own = rustix::process::getpid();
    rustix::process::kill_process(own, rustix::process::Signal::KILL).unwrap();
    unreachable!("killed");
}

/// Runs one test of this binary in a child process, told `what` to do.
pub(crate) fn child(test: &str, what: &[(&str, String)]) -> std::process::Command {
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]);
    command.stdout(std::process::Stdio::null());
    command.stderr(std::process::Stdio::piped());
    for (name, value) in what {
        command.env(name, value);
    }
    command
}

/// What a child was told; `None` in a normal run of the tests.
pub(crate) fn told(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The events of a trace file, whole lines only.
pub(crate) fn jsonl(path: &Path) -> Vec<Event> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Waits until it holds, with a generous bound.
pub(crate) async fn eventually<F: Future<Output = bool>>(what: &str, check: impl Fn() -> F) {
    let started = Instant::now();
    while !check().await {
        assert!(
            started.elapsed() < Duration::from_secs(60),
            "{what} did not happen"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

pub(crate) fn markers(data: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(data.join("runs")).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}
