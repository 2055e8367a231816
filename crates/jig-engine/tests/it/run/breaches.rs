//! Breaches that no single path shows, and those found after the last phase.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use jig_engine::fault::{Fault, FaultPoint, Step};
use jig_protocol::event::EventKind;
use jig_protocol::outcome::{AttemptEnd, Cause};
use serde_json::{Value, json};

use super::world::{DEV, Ran, World};

const DONE: &str = "emit: {status: success, summary: x}";

/// One agent that acts so, and a command that does nothing.
fn world(acts: &str) -> World {
    let definition = format!(
        "name: two\n{DEV}\nphases:\n  - {{name: build, kind: agent, owner: dev}}\n  \
         - {{name: check, kind: code, command: 'true'}}\n"
    );
    let script = format!("roles:\n  dev:\n    - {{{acts}}}\n");
    World::new(&[("src/a", "1\n")], &definition, &script)
}

/// The one breach event, whose list holds every path it has.
#[track_caller]
fn breach(ran: &Ran) -> &Value {
    assert_eq!(ran.outcome.end, AttemptEnd::Breach, "{}", ran.error());
    assert_eq!(ran.outcome.cause, Some(Cause::Breach));
    assert_eq!(ran.outcome.delivery.branch, None);
    let found = ran.named("write_boundary_breach");
    assert_eq!(found.len(), 1);
    let payload = found[0].payload.as_ref().unwrap();
    let list = std::fs::read_to_string(payload["list"].as_str().unwrap()).unwrap();
    assert_eq!(json!(list.lines().count()), payload["total"]);
    for shown in payload["breaches"].as_array().unwrap() {
        let line = format!(
            "{}\t{}",
            shown["path"].as_str().unwrap(),
            shown["outcome"].as_str().unwrap()
        );
        assert!(list.lines().any(|other| other == line), "{line}: {list}");
    }
    let end = ran.payload(0, EventKind::AttemptEnd);
    assert_eq!(end["cause"], "breach");
    payload
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tree_that_its_agent_replaced_is_a_breach() {
    for (ends, then) in [
        (DONE, "true"),
        ("end: crash", "true"),
        (DONE, "rm -r ../tree"),
    ] {
        let acts = format!("run: 'mv ../tree ../moved && mkdir ../tree && {then}', {ends}");
        let world = world(&acts);
        let ran = world.run().await;
        let payload = breach(&ran);
        assert_eq!(payload["total"], 1);
        let outcome = payload["breaches"][0]["outcome"].as_str().unwrap();
        assert!(outcome.contains("no longer the directory"), "{outcome}");
        assert_eq!(ran.of(EventKind::PhaseStart).len(), 1, "never retried");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_may_not_replace_the_tree_either() {
    let definition = format!(
        "name: one\n{DEV}\nphases:\n  \
         - {{name: check, kind: code, command: 'mv ../tree ../moved && mkdir ../tree'}}\n"
    );
    let world = World::new(&[("src/a", "1\n")], &definition, "roles: {}\n");
    let ran = world.run().await;
    assert_eq!(breach(&ran)["role"], "check");
}

/// Somebody who acts in the attempt's tree at a step.
#[derive(Debug)]
struct Meddles {
    data: PathBuf,
    at: Step,
    script: &'static str,
}

impl FaultPoint for Meddles {
    fn reach(&self, step: Step) -> Result<(), Fault> {
        if step == self.at {
            let tree = only_tree(&self.data);
            let done = Command::new("/bin/sh")
                .args(["-ec", self.script])
                .current_dir(tree)
                .output()
                .unwrap();
            assert!(done.status.success(), "{done:?}");
        }
        Ok(())
    }
}

fn only_tree(data: &Path) -> PathBuf {
    let mut attempts = std::fs::read_dir(data.join("attempts")).unwrap();
    let tree = attempts.next().unwrap().unwrap().path().join("tree");
    assert!(attempts.next().is_none());
    tree
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_changed_after_the_last_phase_is_a_breach_of_nobody() {
    let mut world = world(DONE);
    world.faults = Some(Arc::new(Meddles {
        data: world.data.path().to_owned(),
        at: Step::FinalCheck,
        script: "for n in $(seq 1 30); do echo x > stray-$n; done",
    }));
    let ran = world.run().await;
    let payload = breach(&ran);
    assert_eq!(
        (&payload["total"], &payload["role"]),
        (&json!(30), &json!(""))
    );
    assert_eq!(payload["breaches"].as_array().unwrap().len(), 20);
    let error = ran.error();
    assert!(
        error.contains("30 paths") && error.contains("and 10 more"),
        "{error}"
    );
}
