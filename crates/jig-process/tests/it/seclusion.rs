//! What a command and its supervisor inherit, and what they show.

use jig_process::{Exit, Spec, Stdin, Supervised};
use jig_testkit::host;
use jig_testkit::processes::unique_marker;

use crate::support::{NEVER, env, run, shell, wait_marked};

#[tokio::test]
async fn a_command_has_exactly_its_environment() {
    let outcome = run(Spec::shell("exec env", "/", env().with("ONLY", "this"))).await;
    let mut lines: Vec<_> = outcome.stdout.tail.lines().collect();
    lines.sort_unstable();
    // The shell itself adds PWD and the like.
    lines.retain(|line| {
        !["PWD=", "SHLVL=", "_=", "OLDPWD="]
            .iter()
            .any(|own| line.starts_with(own))
    });
    assert_eq!(lines, ["ONLY=this", "PATH=/usr/bin:/bin"]);
}

#[tokio::test]
async fn a_command_has_three_descriptors_and_default_signals() {
    // One that anybody would inherit.
    let careless = rustix::io::dup(std::io::stdin()).unwrap();
    rustix::io::fcntl_setfd(&careless, rustix::io::FdFlags::empty()).unwrap();
    let line = "ls /proc/self/fd; grep -E 'Sig(Blk|Ign)' /proc/self/status";
    let outcome = run(shell(line, &unique_marker("descriptors"))).await;
    drop(careless);
    let words: Vec<_> = outcome.stdout.tail.split_whitespace().collect();
    let zero = "0000000000000000";
    // `ls` itself opens the directory.
    assert_eq!(
        words,
        ["0", "1", "2", "3", "SigBlk:", zero, "SigIgn:", zero]
    );
}

#[tokio::test]
async fn a_command_has_no_terminal_and_its_own_group() {
    let line = "ps -o sid=,pgid=,tty= -p $$; echo $$ $PPID";
    let outcome = run(shell(line, &unique_marker("session"))).await;
    let words: Vec<_> = outcome.stdout.tail.split_whitespace().collect();
    let [session, group, tty, shell, supervisor] = words[..] else {
        panic!("{words:?}");
    };
    assert_eq!(tty, "?");
    assert_eq!(group, shell, "it leads its group");
    assert_eq!(session, supervisor, "its supervisor leads the session");
}

#[tokio::test]
async fn the_supervisor_shows_nothing_of_the_job_and_holds_nothing() {
    let marker = unique_marker("shows");
    let spec = shell("exec cat", &marker).stdin(Stdin::Piped);
    let mut supervised = Supervised::start(&host(), spec).await.unwrap();
    wait_marked(&marker, 1).await;
    let pid = supervised.identity().pid();
    let proc = |file: &str| std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
    assert!(proc("environ").is_empty());
    let line = String::from_utf8_lossy(&proc("cmdline")).into_owned();
    assert!(line.starts_with("jig-supervisor\0"), "{line:?}");
    assert!(!line.contains("cat"), "{line:?}");
    let cwd = std::fs::read_link(format!("/proc/{pid}/cwd")).unwrap();
    assert_eq!(cwd, std::path::Path::new("/"));
    // Its own copies of the command's streams would keep them from ending.
    for stream in 0..3 {
        let link = format!("/proc/{pid}/fd/{stream}");
        jig_testkit::wait_until_async("released streams", || {
            std::fs::read_link(&link).is_ok_and(|to| to == std::path::Path::new("/dev/null"))
        })
        .await;
    }
    let open = std::fs::read_dir(format!("/proc/{pid}/fd"))
        .unwrap()
        .count();
    assert_eq!(open, 5, "three streams, the socket, the signals");
    drop(supervised.take_stdin());
    assert_eq!(supervised.wait_exit().await, Exit::Code(0));
    supervised.stop(NEVER).await;
}

#[test]
fn a_command_cannot_read_the_environment_of_jig() {
    use std::os::unix::process::CommandExt;
    let named = crate::support::NamedHost::new(&unique_marker("environ"));
    let line = "jig=$(ps -o ppid= -p $PPID | tr -d ' '); \
                for pid in $PPID $jig; do cat /proc/$pid/environ && echo readable; done";
    let mut command = named.embed(&["shell", line]);
    command.env("SECRET", "hunter2");
    if rustix::process::geteuid().is_root() {
        // Nothing is closed to root.
        command.uid(65_534).gid(65_534);
    }
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.matches("Permission denied").count(), 2, "{text}");
    assert!(
        !text.contains("readable") && !text.contains("hunter2"),
        "{text}"
    );
}
