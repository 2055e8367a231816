//! What an earlier jig left running.

use std::time::Duration;

use jig_process::{
    Liveness, ProcessIdentity, Reclaimed, Supervised, processes_inside, stop_by_home,
    stop_by_identity,
};
use jig_testkit::host;
use jig_testkit::processes::{assert_none_marked, unique_marker};
use rustix::process::Signal;

use crate::support::{NEVER, shell, signal, wait_marked};

const TREE: &str = "trap '' TERM; setsid sleep 600 & (setsid sleep 601 &); sleep 602";

async fn start(marker: &str) -> Supervised {
    let supervised = Supervised::start(&host(), shell(TREE, marker)).await;
    wait_marked(marker, 4).await;
    supervised.unwrap()
}

/// As a later jig would have it: from a file.
fn written_down(identity: &ProcessIdentity) -> ProcessIdentity {
    serde_json::from_str(&serde_json::to_string(identity).unwrap()).unwrap()
}

#[tokio::test]
async fn a_recorded_supervisor_is_stopped_with_its_tree() {
    let marker = unique_marker("recorded");
    let supervised = start(&marker).await;
    let identity = written_down(supervised.identity());
    assert_eq!(identity.liveness(), Liveness::Alive);
    let reclaimed = stop_by_identity(identity.clone(), Duration::from_secs(3)).await;
    assert_eq!(reclaimed, Reclaimed::Gone);
    assert_none_marked(&marker);
    assert_eq!(identity.liveness(), Liveness::Gone);
    let again = stop_by_identity(identity, NEVER).await;
    assert_eq!(again, Reclaimed::Gone);
}

#[tokio::test]
async fn a_recorded_supervisor_that_is_stuck_is_stopped_from_outside() {
    let marker = unique_marker("recorded-stuck");
    let supervised = start(&marker).await;
    let identity = written_down(supervised.identity());
    signal(identity.pid(), Signal::STOP);
    let reclaimed = stop_by_identity(identity.clone(), Duration::ZERO).await;
    assert_eq!(reclaimed, Reclaimed::Gone);
    assert_none_marked(&marker);
    assert_eq!(identity.liveness(), Liveness::Gone);
}

#[tokio::test]
async fn a_process_that_merely_has_the_pid_is_left_alone() {
    let mut bystander = std::process::Command::new("sleep")
        .arg("600")
        .spawn()
        .unwrap();
    let identity = ProcessIdentity::of(bystander.id()).unwrap().unwrap();
    let mut json = serde_json::to_value(&identity).unwrap();
    json["start_time"] = serde_json::json!(1);
    let other: ProcessIdentity = serde_json::from_value(json).unwrap();
    assert_eq!(other.liveness(), Liveness::Gone);
    assert_eq!(stop_by_identity(other, NEVER).await, Reclaimed::Gone);
    assert_eq!(bystander.try_wait().unwrap(), None, "it was signalled");

    bystander.kill().unwrap();
    // Only its exit status is left, and that is not life.
    jig_testkit::wait_until("its end", || identity.liveness() == Liveness::Gone);
    bystander.wait().unwrap();
    assert_eq!(identity.liveness(), Liveness::Gone);
}

#[tokio::test]
async fn processes_are_found_by_where_they_work() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("below")).unwrap();
    let marker = unique_marker("inside");
    let mut spec = shell("cd below; exec sleep 600", &marker);
    spec.cwd = dir.path().to_owned();
    let mut supervised = Supervised::start(&host(), spec).await.unwrap();
    jig_testkit::wait_until_async("the process", || {
        let found = processes_inside(dir.path()).unwrap();
        found.len() == 1 && found[0].command_line == "sleep 600"
    })
    .await;
    // A supervisor does not hold the directory.
    supervised.stop(NEVER).await;
    assert_eq!(processes_inside(dir.path()).unwrap(), []);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn who_lost_its_supervisor_is_found_by_its_home() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("roles/builder/home");
    std::fs::create_dir_all(&home).unwrap();
    let start = |home: &std::path::Path, line: &str| {
        std::process::Command::new("sh")
            .args(["-c", line])
            .env("HOME", home)
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap()
    };
    // It ignores TERM, and its child hides where it came from.
    let stubborn = "trap '' TERM; env -i sleep 611 & wait; sleep 612";
    let mut ours = start(&home, stubborn);
    let mut namesake = start(
        &dir.path().join("roles/builder/home-of-another"),
        "exec sleep 613",
    );
    // Who merely works there is not ours to end.
    let mut visitor = std::process::Command::new("sleep")
        .arg("614")
        .current_dir(&home)
        .env("HOME", "/")
        .spawn()
        .unwrap();
    jig_testkit::wait_until("the stubborn child", || {
        children_of(ours.id())
            .iter()
            .any(|line| line == "sleep 611")
    });
    let child = children_identities(ours.id());
    // Reaped here, as init would.
    let waiter = std::thread::spawn(move || ours.wait().unwrap());
    let (found, reclaimed) = stop_by_home(home.clone(), Duration::from_millis(200)).await;
    assert_eq!(reclaimed, Reclaimed::Gone);
    assert_eq!(found, 2);
    assert!(!waiter.join().unwrap().success());
    jig_testkit::wait_until("the hidden child's end", || {
        child
            .iter()
            .all(|identity| identity.liveness() == Liveness::Gone)
    });
    for bystander in [&mut namesake, &mut visitor] {
        assert_eq!(bystander.try_wait().unwrap(), None, "it was signalled");
        bystander.kill().unwrap();
        bystander.wait().unwrap();
    }
    let again = stop_by_home(home, NEVER).await;
    assert_eq!(again, (0, Reclaimed::Gone));
}

#[cfg(target_os = "linux")]
fn children(pid: u32) -> Vec<String> {
    let list = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let list = list.unwrap_or_default();
    list.split_whitespace().map(str::to_owned).collect()
}

#[cfg(target_os = "linux")]
fn children_of(pid: u32) -> Vec<String> {
    let line = |child: String| {
        let words = std::fs::read_to_string(format!("/proc/{child}/cmdline")).unwrap_or_default();
        words.trim_end_matches('\0').replace('\0', " ")
    };
    children(pid).into_iter().map(line).collect()
}

#[cfg(target_os = "linux")]
fn children_identities(pid: u32) -> Vec<ProcessIdentity> {
    children(pid)
        .iter()
        .filter_map(|child| ProcessIdentity::of(child.parse().ok()?).unwrap())
        .collect()
}
