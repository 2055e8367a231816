//! What an entry did beside its permitted changes, and how it is told.

use std::sync::{Arc, Mutex};

use jig_engine::fault::{Fault, FaultPoint, Step};
use jig_process::StopReason;
use jig_protocol::event::{Event, EventKind};
use jig_protocol::outcome::{AttemptEnd, Cause, FailureClass};
use serde_json::{Value, json};

use super::world::{Ran, Watch, World};

const DONE: &str = "emit: {status: success, summary: x, artifacts: []}";

/// A builder and a reader; a tree with a build output and an ignored kind.
fn world(phases: &str, script: &str) -> World {
    let definition = format!(
        "
name: told
roster:
  builder: {{model: m, system_prompt: s, user_prompt: u, writes: ['src/**']}}
  reader: {{model: m, system_prompt: s, user_prompt: u, writes: []}}
build_outputs: ['target/**']
phases:
{phases}
"
    );
    let files = [("src/a", "1\n"), (".gitignore", "*.log\n")];
    World::new(&files, &definition, script)
}

/// The payloads of the log entries of this name.
fn told(ran: &Ran, name: &str) -> Vec<Value> {
    let events = ran.named(name).into_iter();
    events
        .map(|event| event.payload.clone().unwrap_or_default())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn outputs_are_told_with_whoever_made_them() {
    let script = format!(
        "roles:\n  reader: [{{write: {{target/r: \"r\\n\"}}, {DONE}}}]\n  \
         builder: [{{write: {{src/a: \"2\\n\", target/b: \"b\\n\"}}, {DONE}}}]\n"
    );
    let phases = "
  - {name: read, kind: agent, owner: reader}
  - {name: build, kind: agent, owner: builder}
  - {name: check, kind: code, command: 'echo c > target/c'}
";
    let ran = world(phases, &script).run().await;
    assert_eq!(ran.outcome.end, AttemptEnd::Completed, "{}", ran.error());
    let expected = [("reader", "r"), ("builder", "b"), ("check", "c")]
        .map(|(role, name)| json!({"role": role, "paths": [format!("target/{name}")]}));
    assert_eq!(told(&ran, "build_outputs_touched"), expected);
    let touched = told(&ran, "paths_touched");
    assert_eq!(touched, [json!({"role": "builder", "paths": ["src/a"]})]);
}

#[tokio::test(flavor = "multi_thread")]
async fn outputs_are_told_also_of_an_entry_that_fails() {
    let script =
        format!("roles:\n  builder: [{{write: {{target/b: \"b\\n\"}}, {DONE}}}, {{{DONE}}}]\n");
    let phases = "
  - {name: build, kind: agent, owner: builder, gates: [{name: tests_pass, command: 'false', budget: 1}]}
";
    let ran = world(phases, &script).run().await;
    assert_eq!(ran.outcome.cause, Some(Cause::Gate), "{}", ran.error());
    let outputs = told(&ran, "build_outputs_touched");
    assert_eq!(outputs, [json!({"role": "builder", "paths": ["target/b"]})]);
    assert_eq!(told(&ran, "write_boundary_breach"), [] as [Value; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn outputs_are_told_also_of_an_entry_that_is_cancelled() {
    let script = "roles:\n  builder: [{write: {target/b: \"b\\n\"}, end: hang}]\n";
    let phases = "  - {name: build, kind: agent, owner: builder}\n";
    let world = world(phases, script);
    let input = world.input().await;
    let (made, cancel) = (
        input.prepared.dirs.tree().join("target/b"),
        world.cancel.clone(),
    );
    let canceller = std::thread::spawn(move || {
        jig_testkit::wait_until("the output", || {
            std::fs::read(&made).is_ok_and(|text| text == b"b\n")
        });
        cancel.raise(StopReason::Cancelled);
    });
    let ran = Ran::read(world.engine().run(input).await);
    canceller.join().unwrap();
    assert_eq!(ran.outcome.end, AttemptEnd::Cancelled, "{}", ran.error());
    let outputs = told(&ran, "build_outputs_touched");
    assert_eq!(outputs, [json!({"role": "builder", "paths": ["target/b"]})]);
    assert_eq!(ran.outcome.result.changed_paths, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn ignored_files_are_counted_and_are_no_change() {
    let script = format!(
        "roles:\n  builder: [{{run: 'for n in $(seq 1 25); do echo x > src/$n.log; done', {DONE}}}]\n"
    );
    let phases = "  - {name: build, kind: agent, owner: builder}\n";
    let ran = world(phases, &script).run().await;
    assert_eq!(ran.outcome.end, AttemptEnd::Completed, "{}", ran.error());
    let ignored = told(&ran, "ignored_touched");
    assert_eq!((ignored.len(), &ignored[0]["count"]), (1, &json!(25)));
    let first = ignored[0]["first"].as_array().unwrap();
    assert_eq!((first.len(), &first[0]), (20, &json!("src/1.log")));
    assert_eq!(ran.outcome.result.changed_paths, []);
}

/// Another file of the same name and content.
const REPLACED: &str = "cp -p src/a copy && mv copy src/a";

#[tokio::test(flavor = "multi_thread")]
async fn written_and_written_back_is_told_and_a_breach_of_a_reader() {
    for (role, breaches) in [("builder", false), ("reader", true)] {
        let script = format!("roles:\n  {role}: [{{run: '{REPLACED}', {DONE}}}]\n");
        let phases = format!("  - {{name: act, kind: agent, owner: {role}}}\n");
        let ran = world(&phases, &script).run().await;
        let transient = told(&ran, "transient_write");
        if breaches {
            assert_eq!(ran.outcome.end, AttemptEnd::Breach);
            assert!(ran.error().contains("src/a"), "{}", ran.error());
        } else {
            assert_eq!(ran.outcome.end, AttemptEnd::Completed, "{}", ran.error());
            assert_eq!(transient, [json!({"paths": ["src/a"]})]);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sandbox_is_told_once_before_anything_runs() {
    let script = format!("roles:\n  builder: [{{{DONE}}}]\n");
    let phases = "  - {name: build, kind: agent, owner: builder}\n";
    let ran = world(phases, &script).run().await;
    let sandbox = told(&ran, "sandbox");
    assert_eq!((sandbox.len(), &sandbox[0]["tier"]), (1, &json!("none")));
    let told = ran.outcome.result.sandbox.unwrap();
    assert_eq!(sandbox[0]["not_covered"], json!(told.not_covered));
    let place = |found: &dyn Fn(&jig_protocol::event::Event) -> bool| {
        ran.events.iter().position(found).unwrap()
    };
    let sandbox = place(&|event| event.name.as_deref() == Some("sandbox"));
    assert!(sandbox < place(&|event| event.kind == EventKind::PhaseStart));
}

#[derive(Debug)]
struct FailsAt(Step);

impl FaultPoint for FailsAt {
    fn reach(&self, step: Step) -> Result<(), Fault> {
        if step == self.0 {
            Err(Fault(step))
        } else {
            Ok(())
        }
    }
}

const CRASHES: &str = "roles:\n  builder:\n    \
    - {run: 'echo half > target/old; rm target/gone; echo n > target/new; echo half > src/a', end: crash}\n    \
    - {run: 'ls target; cat target/* src/a', emit: {status: success, summary: x, artifacts: []}}\n";

const OUTPUT_FIRST: &str = "
  - {name: make, kind: code, command: 'mkdir target; echo old > target/old; echo gone > target/gone'}
  - {name: build, kind: agent, owner: builder}
";

#[tokio::test(flavor = "multi_thread")]
async fn an_undoing_that_fails_is_told_and_ends_the_attempt() {
    let mut world = world(OUTPUT_FIRST, CRASHES);
    world.faults = Some(Arc::new(FailsAt(Step::Restore)));
    let ran = world.run().await;
    assert_eq!(ran.outcome.end, AttemptEnd::Infrastructure);
    let failed = told(&ran, "rollback_failed");
    assert_eq!(failed.len(), 1);
    assert!(ran.error().contains(failed[0]["error"].as_str().unwrap()));
    assert_eq!(ran.of(EventKind::PhaseDeath).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_death_gives_an_output_directory_back_as_it_was() {
    let world = world(OUTPUT_FIRST, CRASHES);
    let ran = world.run().await;
    assert_eq!(ran.outcome.end, AttemptEnd::Completed, "{}", ran.error());
    assert_eq!(ran.file("target/old").as_deref(), Some("old\n"));
    assert_eq!(ran.file("target/gone").as_deref(), Some("gone\n"));
    assert_eq!(ran.file("target/new"), None);
    assert_eq!(ran.file("src/a").as_deref(), Some("1\n"));
    let deaths = ran.of(EventKind::PhaseDeath);
    assert_eq!(deaths[0].payload.as_ref().unwrap()["class"], "crashed");
    let classes = ran.outcome.result.phases.iter().map(|phase| phase.class);
    let expected = [None, Some(FailureClass::Crashed), None];
    assert_eq!(classes.collect::<Vec<_>>(), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trace_that_somebody_else_wrote_to_is_told() {
    let forge = r#"echo {\"seq\":99} >> ../trace.jsonl"#;
    let in_place = "dd if=/dev/zero of=../trace.jsonl bs=1 count=1 conv=notrunc";
    let replace = "cp ../trace.jsonl ../copy && mv ../copy ../trace.jsonl";
    for (act, says) in [
        ("true", None),
        (forge, Some("what something other than jig wrote")),
        (in_place, Some("what something other than jig wrote")),
        (replace, Some("removed or replaced")),
        ("rm ../trace.jsonl", Some("removed or replaced")),
        (
            "rm ../trace.jsonl; mkfifo ../trace.jsonl",
            Some("removed or replaced"),
        ),
    ] {
        let script = format!("roles:\n  builder:\n    - run: '{act}'\n      {DONE}\n");
        let phases = "  - {name: build, kind: agent, owner: builder}\n";
        let mut world = world(phases, &script);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&seen);
        world.sink = Arc::new(Watch(move |event: &Event| {
            kept.lock().unwrap().push(event.clone())
        }));
        let input = world.input().await;
        let outcome = world.engine().run(input).await;
        assert_eq!(outcome.end, AttemptEnd::Completed);
        let seen = seen.lock().unwrap();
        let found = seen
            .iter()
            .find(|event| event.name.as_deref() == Some("trace_altered"));
        let text = found.map(|event| event.payload.as_ref().unwrap()["text"].to_string());
        let problem = outcome.trace_problem.clone().unwrap_or_default();
        match says {
            Some(says) => assert!(
                text.unwrap().contains(says) && problem.contains(says),
                "{act}: {problem}"
            ),
            None => assert_eq!((text, problem.as_str()), (None, "")),
        }
        assert_eq!(seen.last().unwrap().kind, EventKind::AttemptEnd);
    }
}
