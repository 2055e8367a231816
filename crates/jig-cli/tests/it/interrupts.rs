//! Ctrl-C, and what means the same.

use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use crate::env::finish;
use crate::support::Untouched;
use crate::trial::{DONE, ONE_AGENT, Trial, signal, wait_for_words};

/// An agent that writes, then a gate, then a code phase. Each can be made to
/// take long.
const THREE_PLACES: &str = "
name: three-places
roster:
  builder:
    model: haiku
    writes: [\"src/**\"]
    env: [PATH]
    system_prompt: You build.
    user_prompt: \"{{prompt}}\"
phases:
  - name: build
    kind: agent
    owner: builder
    gates: [{name: tests_pass, command: 'GATE'}]
  - {name: check, kind: code, owner: builder, command: 'CODE'}
acceptance: [all_phases_passed]
";

/// Takes long, and has others take long: one in a session of its own.
const LONG: &str = "(setsid sleep 600 &) ; touch @DIR@/ready; sleep 600";

fn held_up_in(place: &str) -> Trial {
    let at = |name: &str| if place == name { LONG } else { "true" };
    let definition = THREE_PLACES
        .replace("GATE", at("gate"))
        .replace("CODE", at("code"));
    let send = at("send");
    let script = format!(
        "roles: {{builder: [{{write: {{src/a.txt: \"two\\n\"}}, run: '{send}', {DONE}}}]}}"
    );
    Trial::new(&definition, &script)
}

#[track_caller]
fn interrupt(place: &str, name: &str) {
    let mut trial = held_up_in(place);
    let before = Untouched::of(&trial.repo);
    let jig = trial.start();
    trial.wait_for_file("ready");
    signal(&jig, name);
    let done = finish(jig);
    let report = done.expect(3).json();
    assert_eq!(report["state"], "cancelled", "{report}");
    assert_eq!(report["outcome"], "rejected");
    assert_eq!(report["cause"], "cancelled");
    assert_eq!(report["publish"], "not_attempted");
    assert_eq!(report["changed_paths"], serde_json::json!(["src/a.txt"]));
    let phase = if place == "code" { "check" } else { "build" };
    let last = report["phases"].as_array().unwrap().last().unwrap();
    assert_eq!(
        (&last["phase"], &last["status"]),
        (&phase.into(), &"fail".into())
    );
    trial.assert_nobody_left();
    assert_eq!(Untouched::of(&trial.repo), before);
    let refs = ["for-each-ref", "refs/heads/jig"];
    assert_eq!(trial.env.git(&trial.repo, &refs), "", "delivered");

    let attempt = report["attempt_id"].as_str().unwrap();
    let events = trial.assert_whole_record(attempt);
    let end = &events.last().unwrap()["payload"];
    assert_eq!(
        (&end["end"], &end["state"]),
        (&"cancelled".into(), &"cancelled".into())
    );
    let record = &trial.ask(&["attempt", "show", attempt])[0];
    assert_eq!(record["state"], "cancelled", "{record}");
    let result = &record["result"];
    assert_eq!(result["changed_paths"], report["changed_paths"], "{record}");
    assert_eq!(
        result["phases"].as_array().map(Vec::len),
        report["phases"].as_array().map(Vec::len)
    );

    // The work is kept where it is, and named.
    let directory = trial.attempts().remove(0);
    trial.assert_tidy(&directory);
    let tree = report["tree"].as_str().unwrap();
    assert_eq!(
        std::fs::read(format!("{tree}/src/a.txt")).unwrap(),
        b"two\n"
    );
    let kept = trial.ask(&["worktree", "list"]);
    assert!(
        kept.iter().any(|row| row.to_string().contains(tree)),
        "{kept:?}"
    );
    trial.assert_next_run_works();
    trial.assert_nobody_left();
}

#[test]
fn an_interrupt_during_a_send_ends_it_in_order() {
    for name in ["INT", "TERM", "HUP"] {
        interrupt("send", name);
    }
}

#[test]
fn an_interrupt_during_a_gate_ends_it_in_order() {
    for name in ["INT", "HUP"] {
        interrupt("gate", name);
    }
}

#[test]
fn an_interrupt_during_a_code_phase_ends_it_in_order() {
    for name in ["INT", "TERM"] {
        interrupt("code", name);
    }
}

#[test]
fn an_interrupted_attempt_that_changed_nothing_leaves_no_tree() {
    let script = format!("roles: {{builder: [{{run: 'touch @DIR@/ready; sleep 600', {DONE}}}]}}");
    let trial = Trial::new(ONE_AGENT, &script);
    let jig = trial.start();
    trial.wait_for_file("ready");
    signal(&jig, "INT");
    let report = finish(jig).expect(3).json();
    assert_eq!(report["state"], "cancelled");
    assert_eq!(report.get("tree"), None, "{report}");
    let directory = trial.attempts().remove(0);
    assert!(!directory.join("tree").exists());
    trial.assert_tidy(&directory);
    trial.assert_nobody_left();
}

#[test]
fn a_forbidden_write_of_an_interrupted_agent_is_undone() {
    let script = format!(
        "roles: {{builder: [{{write: {{keep.txt: \"mine\\n\", src/a.txt: \"two\\n\"}}, \
         run: 'touch @DIR@/ready; sleep 600', {DONE}}}]}}"
    );
    let trial = Trial::new(ONE_AGENT, &script);
    let jig = trial.start();
    trial.wait_for_file("ready");
    signal(&jig, "TERM");
    let report = finish(jig).expect(3).json();
    let tree = trial.attempts().remove(0).join("tree");
    assert_eq!(
        std::fs::read(tree.join("keep.txt")).unwrap(),
        b"keep\n",
        "{report}"
    );
    trial.assert_whole_record(report["attempt_id"].as_str().unwrap());
    trial.assert_nobody_left();
}

/// Puts a git on PATH that holds up what the shell pattern names; the PATH of
/// before.
fn hold_up_git(trial: &mut Trial, arguments: &str) -> std::ffi::OsString {
    let usual_path = std::env::var("PATH").unwrap();
    let script = format!(
        "#!/bin/sh\ncase \" $* \" in {arguments}) touch {dir}/ready; sleep 600;; esac\n\
         PATH={usual_path} exec git \"$@\"\n",
        dir = trial.marker()
    );
    let git = trial.env.file("bin/git", &script);
    std::fs::set_permissions(&git, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}/bin:{usual_path}", trial.marker());
    trial.env.vars.insert("PATH".into(), path.into()).unwrap()
}

#[test]
fn an_interrupt_during_the_checkout_ends_the_attempt() {
    for name in ["INT", "TERM", "HUP"] {
        let mut trial = Trial::new(ONE_AGENT, "roles: {builder: [{emit: x}]}");
        let usual = hold_up_git(&mut trial, "*' reset --hard '*");
        let jig = trial.start();
        trial.wait_for_file("ready");
        signal(&jig, name);
        let done = finish(jig);
        let report = done.expect(3).json();
        assert_eq!(report["state"], "cancelled", "{report}");
        assert_eq!(report["cause"], "cancelled");
        assert_eq!(report["publish"], "not_attempted");
        assert_eq!(report["phases"], serde_json::json!([]));
        trial.assert_nobody_left();
        let directory = trial.attempts().remove(0);
        assert!(!directory.join("tree").exists());
        assert!(!directory.join("git").exists());
        let args = ["for-each-ref", "refs/jig", "refs/heads/jig"];
        let pins = trial.env.git(&trial.repo, &args);
        assert_eq!(pins, "", "the operator's repository keeps nothing of it");
        let attempt = report["attempt_id"].as_str().unwrap();
        let events = trial.assert_whole_record(attempt);
        assert_eq!(events.last().unwrap()["payload"]["end"], "cancelled");
        let record = &trial.ask(&["attempt", "show", attempt])[0];
        assert_eq!(record["result"]["cause"], "cancelled", "{record}");
        trial.env.vars.insert("PATH".into(), usual);
        trial.assert_next_run_works();
    }
}

#[test]
fn an_interrupt_before_admission_records_nothing() {
    for name in ["INT", "TERM", "HUP"] {
        let mut trial = Trial::new(ONE_AGENT, "roles: {builder: [{emit: x}]}");
        let usual = hold_up_git(&mut trial, "*");
        let jig = trial.start();
        trial.wait_for_file("ready");
        signal(&jig, name);
        let done = finish(jig);
        assert_eq!(done.expect(3).stdout, "");
        assert!(
            done.stderr.contains("before anything was started"),
            "{}",
            done.stderr
        );
        assert_eq!(trial.attempts(), Vec::<std::path::PathBuf>::new());
        trial.assert_nobody_left();
        trial.env.vars.insert("PATH".into(), usual);
        trial.assert_next_run_works();
        assert_eq!(trial.attempts().len(), 1);
    }
}

#[test]
fn a_second_interrupt_ends_jig_at_once_and_leaves_nobody() {
    // It does not end on TERM, so that unwinding takes its whole grace.
    let script = format!(
        "roles: {{builder: [{{write: {{src/a.txt: \"two\\n\"}}, \
         run: \"trap '' TERM; (trap '' TERM; setsid sleep 600 &); touch @DIR@/ready; sleep 600\", {DONE}}}]}}"
    );
    let mut trial = Trial::new(ONE_AGENT, &script);
    let mut jig = trial.start();
    trial.wait_for_file("ready");
    signal(&jig, "INT");
    let rest = wait_for_words(&mut jig, "a second Ctrl-C ends jig at once");
    let asked = Instant::now();
    signal(&jig, "INT");
    let done = finish(jig);
    let took = asked.elapsed();
    rest.join().unwrap();
    assert_eq!((done.code, done.signal), (Some(130), None));
    assert_eq!(done.stdout, "");
    // Unwinding would have taken 3 s and more.
    assert!(took < Duration::from_millis(2_500), "took {took:?}");
    trial.assert_nobody_left();

    // It is what a killed run leaves, and put in order like one.
    let first = trial.attempts().remove(0);
    let next = trial.assert_next_run_works();
    let id = first.file_name().unwrap().to_str().unwrap();
    assert!(next.stderr.contains(id), "{}", next.stderr);
    assert_eq!(trial.ask(&["attempt", "show", id])[0]["state"], "lost");
    trial.assert_tidy(&first);
    assert_eq!(
        std::fs::read(first.join("tree/src/a.txt")).unwrap(),
        b"two\n"
    );
}
