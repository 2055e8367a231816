//! Supervisors and jigs that are killed.

use std::io::Write as _;
use std::process::Stdio;
use std::time::Duration;

use jig_process::{Exit, RemoveAtEnd, Supervised};
use jig_testkit::processes::{assert_none_marked, marked, unique_marker, wait_none_marked};
use jig_testkit::{host, repeat, wait_until};
use rustix::process::Signal;

use crate::support::{NamedHost, kill, shell, signal, wait_marked};

const TREE: &str = "setsid sleep 600 & (setsid sleep 601 &); sleep 602";

#[tokio::test]
async fn the_children_of_a_killed_supervisor_are_stopped() {
    for _ in 0..repeat() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("token"), "secret").unwrap();
        let marker = unique_marker("killed");
        let mut spec = shell(TREE, &marker);
        spec.remove_at_end.push(RemoveAtEnd {
            root: dir.path().into(),
            below: "token".into(),
        });
        let mut supervised = Supervised::start(&host(), spec).await.unwrap();
        wait_marked(&marker, 3).await;
        signal(supervised.identity().pid(), Signal::KILL);
        assert_eq!(supervised.wait_exit().await, Exit::SupervisorDied);
        let teardown = supervised.wait_gone().await;
        assert!(teardown.is_clean(), "{teardown:?}");
        assert_none_marked(&marker);
        assert!(!dir.path().join("token").exists());
    }
}

#[tokio::test]
async fn a_supervisor_killed_by_its_own_command_takes_it_along() {
    let marker = unique_marker("patricide");
    let mut spec = shell("setsid sleep 600 & kill -9 $PPID; sleep 601", &marker);
    spec.grace = Duration::from_secs(30);
    let mut supervised = Supervised::start(&host(), spec).await.unwrap();
    assert_eq!(supervised.wait_exit().await, Exit::SupervisorDied);
    assert!(supervised.wait_gone().await.is_clean());
    assert_none_marked(&marker);
}

/// Containers and CI start a program so: the leader of its session is outside
/// of its namespace of processes and has no number there.
#[test]
#[cfg(target_os = "linux")]
fn a_session_led_from_outside_the_namespace_is_no_obstacle() {
    let unshare = |program: &std::path::Path| {
        let mut command = std::process::Command::new("unshare");
        command.args([
            "--user",
            "--map-root-user",
            "--pid",
            "--fork",
            "--mount-proc",
        ]);
        command.arg(program);
        command
    };
    let possible = unshare("true".as_ref()).output();
    if !possible.is_ok_and(|output| output.status.success()) {
        let why = "this system makes no namespaces of processes";
        let _ = writeln!(std::io::stderr(), "skipped: {why}");
        return;
    }
    let output = unshare(&std::env::current_exe().unwrap())
        .args([
            "--exact",
            "death::the_children_of_a_killed_supervisor_are_stopped",
        ])
        .args(["--test-threads", "1"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("1 passed"), "{text}");
}

#[tokio::test]
async fn a_supervisor_that_is_stuck_is_ended_too() {
    let marker = unique_marker("stuck");
    let mut supervised = Supervised::start(&host(), shell(TREE, &marker))
        .await
        .unwrap();
    wait_marked(&marker, 3).await;
    signal(supervised.identity().pid(), Signal::STOP);
    let teardown = supervised.stop(Duration::ZERO).await;
    assert!(teardown.is_clean(), "{teardown:?}");
    assert_eq!(supervised.wait_exit().await, Exit::SupervisorDied);
    assert_none_marked(&marker);
}

#[test]
fn nothing_outlives_a_killed_jig_at_any_moment() {
    let named = NamedHost::new(&unique_marker("jig-killed"));
    let mut ran = 0;
    // From before `main` to well into the command's life.
    for moment in 0..(20 * repeat() as u64) {
        let child = named.embed(&["shell", TREE]).spawn().unwrap();
        std::thread::sleep(Duration::from_micros(moment * 731));
        ran += usize::from(marked(&named.marker).len() > 2);
        kill(child);
        wait_none_marked(&named.marker);
    }
    assert!(ran > 0, "no kill met a running command");
}

#[test]
fn a_jig_that_is_killed_leaves_no_credentials_and_no_deaf_processes() {
    let named = NamedHost::new(&unique_marker("jig-deaf"));
    let dir = tempfile::tempdir().unwrap();
    let token = dir.path().join("token");
    std::fs::write(&token, "secret").unwrap();
    let root = dir.path().to_str().unwrap();
    let line = "trap '' TERM; setsid sleep 600 & sleep 601; sleep 602";
    let child = named
        .embed(&["shell-removing", root, "token", line])
        .spawn()
        .unwrap();
    // jig, supervisor, shell, two sleeps
    wait_until("the tree", || marked(&named.marker).len() >= 5);
    assert!(token.exists());
    kill(child);
    wait_none_marked(&named.marker);
    assert!(!token.exists());
}

#[test]
fn an_embedder_keeps_its_supervisor_when_its_file_is_removed() {
    let named = NamedHost::new(&unique_marker("removed"));
    // The program waits for the removal before it needs a supervisor.
    let mut child = named
        .embed(&["shell-after-removal", "exit 9"])
        .spawn()
        .unwrap();
    wait_until("the program", || !marked(&named.marker).is_empty());
    std::fs::remove_file(&named.path).unwrap();
    let mut text = String::new();
    let mut stdout = child.stdout.take().unwrap();
    std::io::Read::read_to_string(&mut stdout, &mut text).unwrap();
    child.wait().unwrap();
    assert!(text.contains("end: Code(9)"), "{text}");
}

#[test]
fn a_user_without_privileges_can_do_all_this() {
    use std::os::unix::process::CommandExt;
    if !rustix::process::geteuid().is_root() {
        return; // then every other test has shown it
    }
    let named = NamedHost::new(&unique_marker("nobody"));
    let mut command = named.embed(&["shell", "setsid sleep 600 & id -u; exit 6"]);
    let output = command.uid(65_534).gid(65_534).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("end: Code(6)"), "{text}");
    assert!(text.contains("65534"), "{text}");
    assert!(text.contains("survivors: []"), "{text}");
    assert_none_marked(&named.marker);

    let mut command = named.embed(&["shell", TREE]);
    let child = command.uid(65_534).gid(65_534).spawn().unwrap();
    wait_until("the tree", || marked(&named.marker).len() >= 5);
    kill(child);
    wait_none_marked(&named.marker);
}

#[test]
fn many_runs_leave_no_process_no_zombie_and_no_descriptor() {
    let named = NamedHost::new(&unique_marker("leaks"));
    let runs = if jig_testkit::long() { "400" } else { "50" };
    let output = named
        .embed(&["leaks", runs])
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text, "children [] descriptors 0\n");
    assert_none_marked(&named.marker);
}
