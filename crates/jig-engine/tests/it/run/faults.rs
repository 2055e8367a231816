//! Every step fails once, and panics once: the attempt always ends properly.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use jig_engine::fault::{Fault, FaultPoint, Step};
use jig_protocol::definition::RuntimeName;
use jig_protocol::event::EventKind;
use jig_protocol::outcome::AttemptEnd;
use jig_runtime::{
    AgentRuntime, BoxFuture, Capabilities, OperatorHome, ProbeError, Seed, SeedError, SendControl,
    SendReport, SendRequest, Session,
};
use jig_runtime_scripted::{Script, ScriptedRuntime};
use jig_testkit::processes::assert_none_marked;
use jig_testkit::wait_until_async;

use super::world::World;

/// Lets the `at`-th step fail.
struct At {
    at: usize,
    panics: bool,
    seen: AtomicUsize,
    hit: std::sync::Mutex<Option<Step>>,
}

impl At {
    fn new(at: usize, panics: bool) -> Arc<Self> {
        Arc::new(Self {
            at,
            panics,
            seen: AtomicUsize::new(0),
            hit: std::sync::Mutex::default(),
        })
    }
}

impl FaultPoint for At {
    fn reach(&self, step: Step) -> Result<(), Fault> {
        if self.seen.fetch_add(1, Ordering::SeqCst) + 1 != self.at {
            return Ok(());
        }
        *self.hit.lock().unwrap() = Some(step);
        assert!(!self.panics, "a fault was injected as a panic at {step}");
        Err(Fault(step))
    }
}

const ROSTER: &str = "
roster:
  planner: {model: m, system_prompt: s, user_prompt: u, writes: []}
  builder: {model: m, system_prompt: s, user_prompt: u, writes: [\"src/**\"]}
";

/// A death, a gate correction, a failing command, a repair, a command that
/// leaves something behind.
fn whole_road() -> World {
    World::new(
        &[("src/a", "bad\n")],
        &format!(
            "
name: road
{ROSTER}
phases:
  - {{name: plan, kind: agent, owner: planner}}
  - name: build
    kind: agent
    owner: builder
    gates: [{{name: tests_pass, command: test -e src/b}}, {{name: artifacts_exist}}]
  - name: test
    kind: code
    command: 'sleep 600 & grep -q good src/a'
    on_fail: {{run: build, then: rerun-self, budget: 1}}
"
        ),
        r#"
roles:
  planner: [{emit: {status: success, summary: p}}]
  builder:
    - {write: {src/a: "torn\n"}, spawn: sleep 600, end: crash}
    - {write: {src/a: "worse\n"}, emit: {status: success, summary: b, artifacts: []}}
    - {write: {src/b: "x\n"}, emit: {status: success, summary: b, artifacts: [src/b]}}
    - {write: {src/a: "good\n"}, spawn: sleep 600, setsid: true, emit: {status: success, summary: b, artifacts: [src/a]}}
"#,
    )
}

async fn loop_over(
    make: fn() -> World,
    panics: bool,
    stride: usize,
    check: fn(&super::world::Ran, Step),
) -> usize {
    let mut steps = 0;
    for at in (1..).step_by(stride) {
        let mut world = make();
        let faults = At::new(at, panics);
        world.faults = Some(Arc::<At>::clone(&faults));
        let before = world.repo.refs();
        let ran = world.run().await;
        assert_none_marked(&world.data.path().to_string_lossy());
        // The operator's repository: pins and result branches aside.
        let visible = |refs: String| -> Vec<String> {
            refs.lines()
                .filter(|line| !line.contains("refs/jig/") && !line.contains("refs/heads/jig/"))
                .map(str::to_owned)
                .collect()
        };
        assert_eq!(visible(world.repo.refs()), visible(before));
        let Some(step) = *faults.hit.lock().unwrap() else {
            break;
        };
        steps = at;
        assert!(
            ran.error().contains("fault was injected"),
            "{step}: {}",
            ran.error()
        );
        check(&ran, step);
    }
    steps
}

fn ended_properly(ran: &super::world::Ran, step: Step) {
    assert_eq!(
        ran.outcome.end,
        AttemptEnd::Infrastructure,
        "{step}: {}",
        ran.error()
    );
    assert_eq!(
        ran.named("engine_error").len(),
        1,
        "{step}: {}",
        ran.shape()
    );
    // A dead entry's work never stays, unless undoing it is what failed.
    if step != Step::Restore && !ran.of(EventKind::PhaseDeath).is_empty() {
        assert_ne!(ran.file("src/a").as_deref(), Some("torn\n"), "{step}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_step_of_the_road_can_fail() {
    let steps = loop_over(whole_road, false, 1, ended_properly).await;
    assert!(steps > 35, "the road has {steps} steps");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_step_of_the_road_can_panic() {
    // A panic takes the same way out as a failure from there on; the long run
    // proves it for every step.
    let stride = if jig_testkit::long() { 1 } else { 3 };
    let steps = loop_over(whole_road, true, stride, ended_properly).await;
    assert!(steps > 35, "the road has {steps} steps");
}

fn hostile() -> World {
    World::new(
        &[("src/a", "1\n")],
        &format!(
            "name: bad\n{ROSTER}\nphases:\n  - {{name: build, kind: agent, owner: builder, gates: [{{name: artifacts_exist}}]}}\n"
        ),
        r#"
roles:
  builder:
    - {write: {stray: "x\n"}, emit: {status: success, summary: b, artifacts: [no]}}
    - {emit: {status: success, summary: b, artifacts: []}}
"#,
    )
}

fn never_unjudged(ran: &super::world::Ran, step: Step) {
    let stray = ran.file("stray").is_some();
    if step == Step::Enforce {
        // It could not be judged, so it is nobody's result.
        assert_eq!(ran.outcome.end, AttemptEnd::Infrastructure);
    } else {
        assert!(!stray, "{step}: {}", ran.shape());
    }
    if !ran.named("write_boundary_breach").is_empty() {
        assert_eq!(ran.outcome.end, AttemptEnd::Breach, "{step}");
    }
    assert_eq!(ran.of(EventKind::AttemptEnd).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_failure_lets_a_breach_through() {
    assert!(loop_over(hostile, false, 1, never_unjudged).await >= 8);
    assert!(loop_over(hostile, true, 1, never_unjudged).await >= 8);
}

/// Panics in the middle of a send, as soon as a file is there.
#[derive(Debug)]
struct Breaks {
    inner: ScriptedRuntime,
    once: &'static str,
}

impl AgentRuntime for Breaks {
    fn name(&self) -> RuntimeName {
        self.inner.name()
    }

    fn probe(&self) -> BoxFuture<'_, Result<Capabilities, ProbeError>> {
        self.inner.probe()
    }

    fn seed<'a>(&'a self, home: &'a OperatorHome) -> BoxFuture<'a, Result<Seed, SeedError>> {
        self.inner.seed(home)
    }

    fn send<'a>(
        &'a self,
        session: &'a mut Session,
        request: SendRequest,
        control: SendControl,
    ) -> BoxFuture<'a, SendReport> {
        let awaited = request.work_tree.join(self.once);
        Box::pin(async move {
            tokio::select! {
                report = self.inner.send(session, request, control) => report,
                () = wait_until_async("the agent's work", || awaited.exists()) => {
                    panic!("a fault was injected in the middle of a send")
                }
            }
        })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_during_a_send_waits_until_nothing_is_running() {
    let script = r#"
roles:
  builder:
    - {spawn: "trap '' TERM; while :; do echo x > stray; echo y > src/new; sleep 0.01; done", end: hang}
"#;
    let world = World::with_runtime(
        &[("src/a", "1\n")],
        &format!(
            "name: bad\n{ROSTER}\nphases:\n  - {{name: build, kind: agent, owner: builder}}\n"
        ),
        Breaks {
            inner: ScriptedRuntime::new(jig_testkit::host(), Script::parse(script).unwrap()),
            once: "src/new",
        },
    );
    let ran = world.run().await;
    // Judged while the writer was alive, the stray file would be back by now.
    assert_none_marked(&world.data.path().to_string_lossy());
    assert_eq!(ran.outcome.end, AttemptEnd::Breach, "{}", ran.error());
    assert!(
        ran.error().contains("fault was injected"),
        "{}",
        ran.error()
    );
    assert_eq!(ran.file("stray"), None);
    assert!(ran.file("src/new").is_some(), "what was permitted stays");
    let manifest = ran.outcome.prepared.manifest.current();
    assert!(manifest.process_groups.is_empty());
}
