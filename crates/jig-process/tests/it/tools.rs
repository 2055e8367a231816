//! Trusted tools.

use std::io::Read;
use std::sync::mpsc::channel;
use std::time::Duration;

use jig_process::tool::{
    Tool, ToolError, ToolExit, ToolStdin, ToolStdout, run_pipeline, run_tool, run_tool_until,
};
use jig_process::{StopReason, StopSignal};
use jig_testkit::processes::{marked, unique_marker, wait_none_marked};
use jig_testkit::{Repo, repeat, wait_until, wait_until_async};

use crate::support::{NamedHost, env, forever, kill, wait_marked};

fn sh(line: &str) -> Tool {
    Tool::new("sh", "/", env()).args(["-c", line])
}

fn marked_sh(line: &str, marker: &str) -> Tool {
    Tool::new("/bin/sh", "/", env().with("MARK", marker)).args(["-c", line])
}

#[test]
fn output_errors_and_exit_codes() {
    let output = run_tool(sh("echo out; echo err >&2; exit 3")).unwrap();
    assert_eq!(output.exit, ToolExit::Code(3));
    assert_eq!(
        (output.stdout.as_slice(), output.stderr.as_str()),
        (&b"out\n"[..], "err\n")
    );
    assert_eq!(
        run_tool(sh("kill -9 $$")).unwrap().exit,
        ToolExit::Signal(9)
    );
    let output = run_tool(Tool::new("/usr/bin/env", "/", env())).unwrap();
    assert_eq!(
        output.stdout, b"PATH=/usr/bin:/bin\n",
        "exactly its environment"
    );
}

#[test]
fn input_of_every_kind() {
    let bytes = vec![b'x'; 3_000_000];
    let tool = Tool::new("cat", "/", env()).stdin(ToolStdin::Bytes(bytes.clone()));
    assert_eq!(run_tool(tool).unwrap().stdout, bytes);
    let unread = Tool::new("true", "/", env()).stdin(ToolStdin::Bytes(bytes.clone()));
    assert!(run_tool(unread).unwrap().exit.is_success());
    let mut file = tempfile::tempfile().unwrap();
    std::io::Write::write_all(&mut file, b"from a file").unwrap();
    std::io::Seek::rewind(&mut file).unwrap();
    let tool = Tool::new("cat", "/", env()).stdin(ToolStdin::File(file));
    assert_eq!(run_tool(tool).unwrap().stdout, b"from a file");
    assert_eq!(run_tool(Tool::new("cat", "/", env())).unwrap().stdout, b"");
}

#[test]
fn output_of_every_kind() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let to = file.reopen().unwrap();
    let output = run_tool(sh("echo there").stdout(ToolStdout::File(to))).unwrap();
    assert_eq!(output.stdout, b"");
    let mut text = String::new();
    file.reopen().unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(text, "there\n");

    let (pieces, received) = channel();
    let sink = ToolStdout::Sink(Box::new(move |bytes| {
        pieces.send(bytes.len()).map_err(std::io::Error::other)
    }));
    run_tool(sh("head -c 1000000 /dev/zero").stdout(sink)).unwrap();
    assert_eq!(received.iter().sum::<usize>(), 1_000_000);

    let sink = ToolStdout::Sink(Box::new(|_| Err(std::io::Error::other("full"))));
    let error = run_tool(sh("yes").stdout(sink)).unwrap_err();
    assert!(matches!(error, ToolError::Io { .. }), "{error:?}");
}

#[test]
fn too_much_output_stops_the_tool() {
    let marker = unique_marker("much");
    let tool = marked_sh("yes", &marker).stdout(ToolStdout::Capture { max: 100_000 });
    let error = run_tool(tool).unwrap_err();
    assert!(
        matches!(error, ToolError::TooMuchOutput { limit: 100_000, .. }),
        "{error:?}"
    );
    // What the shell started is killed with it, and may still be ending.
    wait_none_marked(&marker);
    // Exactly the bound is not too much.
    let tool = sh("head -c 1000 /dev/zero").stdout(ToolStdout::Capture { max: 1000 });
    assert_eq!(run_tool(tool).unwrap().stdout.len(), 1000);
}

#[test]
fn a_tool_that_cannot_be_started() {
    for (program, cwd) in [("/no/such", "/"), ("/bin/true", "/no/such")] {
        let error = run_tool(Tool::new(program, cwd, env())).unwrap_err();
        assert!(matches!(error, ToolError::Start { .. }), "{error:?}");
    }
}

#[test]
fn time_is_bounded_also_for_the_deaf() {
    let marker = unique_marker("slow");
    let line = "trap '' TERM; (trap '' TERM; sleep 600) & sleep 601; sleep 602";
    let tool = marked_sh(line, &marker).timeout(Duration::from_millis(200));
    let error = run_tool(tool).unwrap_err();
    assert!(matches!(error, ToolError::TimedOut { .. }), "{error:?}");
    wait_none_marked(&marker);
}

#[test]
fn what_a_tool_leaves_in_its_group_is_ended() {
    let marker = unique_marker("leaves");
    let output = run_tool(marked_sh("sleep 600 & echo done", &marker)).unwrap();
    assert_eq!(output.stdout, b"done\n");
    wait_none_marked(&marker);
}

#[tokio::test]
async fn a_deadline_and_a_drop_stop_a_tool() {
    for _ in 0..repeat() {
        let marker = unique_marker("until");
        let cancel = StopSignal::new();
        let deadline = forever().and_signal(&cancel);
        let tool = marked_sh("sleep 600 & wait", &marker);
        let running = tokio::spawn(async move { run_tool_until(tool, &deadline).await });
        wait_marked(&marker, 2).await;
        cancel.raise(StopReason::GroupStop);
        let error = running.await.unwrap().unwrap_err();
        assert!(
            matches!(
                error,
                ToolError::Stopped {
                    reason: StopReason::GroupStop,
                    ..
                }
            ),
            "{error:?}"
        );
        wait_until_async("the end of a stopped tool", || marked(&marker).is_empty()).await;

        let tool = marked_sh("sleep 600 & wait", &marker);
        let running = tokio::spawn(async move { run_tool_until(tool, &forever()).await });
        wait_marked(&marker, 2).await;
        running.abort();
        wait_until_async("the end of a dropped tool", || marked(&marker).is_empty()).await;
    }
    let over = forever().and_within(Duration::ZERO, StopReason::Ceiling);
    let error = run_tool_until(sh("exit 0"), &over).await.unwrap_err();
    assert!(matches!(
        error,
        ToolError::Stopped {
            reason: StopReason::Ceiling,
            ..
        }
    ));
}

#[test]
fn a_pipeline_joins_and_reports_each() {
    let outputs = run_pipeline(vec![
        Tool::new("cat", "/", env()).stdin(ToolStdin::Bytes(b"b\na\nb\n".to_vec())),
        sh("echo note >&2; sort; exit 4"),
        Tool::new("uniq", "/", env()),
    ])
    .unwrap();
    assert_eq!(outputs[2].stdout, b"a\nb\n");
    assert_eq!(outputs[1].exit, ToolExit::Code(4));
    assert_eq!(outputs[1].stderr, "note\n");
    assert!(outputs[0].exit.is_success());
    assert_eq!(run_pipeline(Vec::new()).unwrap(), []);
}

#[test]
fn a_reader_that_ends_early_does_not_hang_the_writer() {
    let outputs = run_pipeline(vec![
        sh("exec yes"),
        Tool::new("head", "/", env()).args(["-n", "1"]),
    ]);
    let outputs = outputs.unwrap();
    assert_eq!(outputs[1].stdout, b"y\n");
    assert_eq!(
        outputs[0].exit,
        ToolExit::Signal(13),
        "SIGPIPE has its default action"
    );
}

#[test]
fn a_pipeline_that_cannot_be_completed_is_stopped() {
    let marker = unique_marker("partial");
    let tools = vec![
        marked_sh("sleep 600", &marker),
        Tool::new("/no/such", "/", env()),
    ];
    let error = run_pipeline(tools).unwrap_err();
    assert!(matches!(error, ToolError::Start { .. }), "{error:?}");
    wait_none_marked(&marker);
}

#[test]
fn objects_travel_between_repositories() {
    let from = Repo::with_files(&[("a", "1"), ("b", "2")]);
    let to = Repo::new();
    let git = |repo: &Repo, args: &[&str]| {
        Tool::new("git", repo.path(), repo.environment().into_iter().collect()).args(args.to_vec())
    };
    let outputs = run_pipeline(vec![
        git(&from, &["pack-objects", "--revs", "--stdout", "--quiet"])
            .stdin(ToolStdin::Bytes(format!("{}\n", from.head()).into())),
        git(&to, &["index-pack", "--strict", "--stdin"]),
    ])
    .unwrap();
    assert!(outputs.iter().all(|o| o.exit.is_success()), "{outputs:?}");
    assert_eq!(to.git(&["cat-file", "-t", &from.head()]), "commit");
}

#[test]
fn a_tool_ends_with_the_jig_that_started_it() {
    let named = NamedHost::new(&unique_marker("tool-killed"));
    for _ in 0..repeat() {
        let child = named.embed(&["tool", "exec sleep 600"]).spawn().unwrap();
        wait_until("the tool", || marked(&named.marker).len() == 2);
        kill(child);
        wait_none_marked(&named.marker);
    }
}

#[test]
fn tools_outlive_the_thread_that_asked_for_them() {
    // A parent-death signal belongs to the thread that forked.
    let marker = unique_marker("thread");
    let asker = std::thread::spawn({
        let tool = marked_sh("read line; echo $line", &marker);
        move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(run_tool_until(
                tool.stdin(ToolStdin::Bytes(b"fine\n".to_vec())),
                &forever(),
            ))
        }
    });
    assert_eq!(asker.join().unwrap().unwrap().stdout, b"fine\n");
}
