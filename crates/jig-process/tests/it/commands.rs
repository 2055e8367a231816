//! Commands that run to their own end.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use jig_process::capture::{Line, StreamFilter};
use jig_process::command::{CommandError, Keep, KeepFile};
use jig_process::{
    CommandEnd, Exit, Host, LiveSupervisors, ProcessIdentity, Program, RemoveAtEnd, Spec,
    StartStage, Stdin, SuperviseError, Supervised, Teardown, run_command,
};
use jig_testkit::host;
use jig_testkit::processes::{assert_none_marked, unique_marker};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::{NEVER, command, env, forever, run, shell};

#[tokio::test]
async fn exit_codes_and_streams_are_told_apart() {
    let marker = unique_marker("streams");
    let outcome = run(shell("echo out; echo err >&2; exit 7", &marker)).await;
    assert_eq!(outcome.end, CommandEnd::Code(7));
    assert_eq!(outcome.stdout.tail, "out\n");
    assert_eq!(outcome.stderr.tail, "err\n");
    assert_eq!(outcome.teardown, Teardown::default());
}

#[tokio::test]
async fn a_signal_is_no_exit_code() {
    let outcome = run(shell("kill -9 $$", &unique_marker("signal"))).await;
    assert_eq!(outcome.end, CommandEnd::Signal(9));
}

#[tokio::test]
async fn background_children_are_stopped_and_named() {
    // They hold stdout and stderr open, which must not hold the result up.
    let marker = unique_marker("background");
    let line = "sleep 600 & setsid sleep 601 & (setsid sleep 602 &) ; exit 0";
    let mut spec = shell(line, &marker);
    spec.grace = NEVER;
    let outcome = run(spec).await;
    assert_eq!(outcome.end, CommandEnd::Code(0));
    assert_eq!(outcome.teardown.leftovers.len(), 3, "{outcome:?}");
    assert!(outcome.teardown.is_clean());
    assert_none_marked(&marker);
}

#[tokio::test]
async fn closing_the_streams_is_not_ending() {
    let dir = tempfile::tempdir().unwrap();
    let marker = unique_marker("closing");
    let line = "exec >&- 2>&-; while ! [ -e go ]; do sleep 0.01; done; exit 4";
    let spec = Spec::shell(line, dir.path(), env().with("MARK", &marker));
    let mut supervised = Supervised::start(&host(), spec).await.unwrap();
    let mut output = Vec::new();
    let mut stdout = supervised.take_stdout().unwrap();
    stdout.read_to_end(&mut output).await.unwrap();
    assert_eq!(output, b"");
    std::fs::write(dir.path().join("go"), "").unwrap();
    assert_eq!(supervised.wait_exit().await, Exit::Code(4));
    assert_eq!(supervised.wait_exit().await, Exit::Code(4), "asked again");
    assert!(supervised.wait_gone().await.is_clean());
}

#[tokio::test]
async fn what_cannot_be_started_is_told_apart() {
    let dir = tempfile::tempdir().unwrap();
    let plain = dir.path().join("plain");
    std::fs::write(&plain, "text").unwrap();
    let end = |program: &str, cwd: &str, arg: OsString| {
        let spec = Spec::new(Program::At(program.into()), cwd, env()).args([arg]);
        async move {
            match run(spec).await.end {
                CommandEnd::NotStarted(error) => (error.stage, error.errno),
                other => panic!("{other:?}"),
            }
        }
    };
    let (exec, directory) = (StartStage::Exec, StartStage::Directory);
    let none = OsString::new();
    let plain = plain.to_str().unwrap();
    assert_eq!(
        end("/no/such", "/", none.clone()).await,
        (exec, libc::ENOENT)
    );
    assert_eq!(
        end("no-such-name", "/", none.clone()).await,
        (exec, libc::ENOENT)
    );
    assert_eq!(end(plain, "/", none.clone()).await, (exec, libc::EACCES));
    assert_eq!(end("/tmp", "/", none.clone()).await, (exec, libc::EACCES));
    assert_eq!(
        end("/bin/true", "/no/such", none.clone()).await,
        (directory, libc::ENOENT)
    );
    assert_eq!(
        end("/bin/true", plain, none).await,
        (directory, libc::ENOTDIR)
    );
    let nul = OsString::from_vec(b"a\0b".to_vec());
    assert_eq!(end("/bin/true", "/", nul).await, (exec, libc::EINVAL));
    let long = OsString::from("x".repeat(4 * 1024 * 1024));
    assert_eq!(end("/bin/true", "/", long).await, (exec, libc::E2BIG));
}

#[tokio::test]
async fn huge_output_is_bounded_everywhere() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("stdout");
    let line = "yes 0123456789abcde | head -c 40000000; echo; echo last; echo >&2 e";
    let mut spec = command(shell(line, &unique_marker("huge")));
    spec.stdout = Keep {
        tail: 64,
        last_line: Some(32),
        file: Some(KeepFile {
            path: file.clone(),
            max: 1_000_000,
        }),
        filter: None,
    };
    let outcome = run_command(&host(), spec, &forever()).await.unwrap();
    assert_eq!(outcome.end, CommandEnd::Code(0));
    assert_eq!(outcome.stdout.bytes, 40_000_006);
    assert_eq!(outcome.stdout.tail.len(), 64);
    assert!(outcome.stdout.tail.ends_with("\nlast\n"));
    assert_eq!(outcome.stdout.last_line, Some(Line::Whole("last".into())));
    assert!(outcome.stdout.file_truncated);
    assert_eq!(std::fs::metadata(&file).unwrap().len(), 1_000_000);
    assert_eq!(outcome.stderr.tail, "e\n");

    // The file is there now, so the same again is refused, and nothing runs.
    let mut again = command(shell("echo ran > ran", &unique_marker("huge")));
    again.spec.cwd = dir.path().to_owned();
    again.stdout.file = Some(KeepFile { path: file, max: 1 });
    let refused = run_command(&host(), again, &forever()).await.unwrap_err();
    assert!(
        matches!(refused, CommandError::OutputFile { .. }),
        "{refused:?}"
    );
    assert!(!dir.path().join("ran").exists());
}

/// Replaces letters, and holds the last byte back.
struct Upper(Option<u8>);

impl StreamFilter for Upper {
    fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut out: Vec<u8> = self
            .0
            .take()
            .into_iter()
            .chain(bytes.iter().copied())
            .collect();
        self.0 = out.pop();
        out.make_ascii_uppercase();
        out
    }

    fn finish(&mut self) -> Vec<u8> {
        self.0
            .take()
            .into_iter()
            .map(|b| b.to_ascii_uppercase())
            .collect()
    }
}

#[tokio::test]
async fn nothing_is_kept_that_did_not_pass_the_filter() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("out");
    let mut spec = command(shell("echo one; printf secret", &unique_marker("filter")));
    spec.stdout = Keep {
        last_line: Some(32),
        file: Some(KeepFile {
            path: path.clone(),
            max: 100,
        }),
        filter: Some(Box::new(Upper(None))),
        ..Keep::default()
    };
    let outcome = run_command(&host(), spec, &forever()).await.unwrap();
    assert_eq!(outcome.stdout.tail, "ONE\nSECRET");
    assert_eq!(outcome.stdout.last_line, Some(Line::Whole("SECRET".into())));
    assert_eq!(std::fs::read(path).unwrap(), b"ONE\nSECRET");
}

#[tokio::test]
async fn input_is_fed_and_an_unread_rest_is_no_error() {
    let marker = unique_marker("input");
    let text = "line\n".repeat(400_000);
    let spec = shell("wc -c", &marker).stdin(Stdin::Bytes(text.clone().into()));
    assert_eq!(run(spec).await.stdout.tail.trim(), "2000000");
    let spec = shell("head -n 1", &marker).stdin(Stdin::Bytes(text.into()));
    let outcome = run(spec).await;
    assert_eq!(
        (outcome.end, outcome.stdout.tail.as_str()),
        (CommandEnd::Code(0), "line\n")
    );
    let outcome = run(shell("wc -c", &marker)).await;
    assert_eq!(outcome.stdout.tail.trim(), "0", "empty by default");
}

#[tokio::test]
async fn piped_input_stays_open_until_it_is_dropped() {
    let spec = shell(
        "read a; echo got $a; read b || echo end",
        &unique_marker("piped"),
    );
    let mut supervised = Supervised::start(&host(), spec.stdin(Stdin::Piped))
        .await
        .unwrap();
    let mut stdin = supervised.take_stdin().unwrap();
    let mut stdout = supervised.take_stdout().unwrap();
    stdin.write_all(b"x\n").await.unwrap();
    let mut got = [0; 6];
    stdout.read_exact(&mut got).await.unwrap();
    assert_eq!(&got, b"got x\n");
    drop(stdin);
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).await.unwrap();
    assert_eq!(rest, "end\n");
    assert_eq!(supervised.wait_exit().await, Exit::Code(0));
}

#[tokio::test]
async fn arguments_and_environment_of_any_bytes_arrive() {
    let odd = OsString::from_vec(b"a\xff\n\"b".to_vec());
    let mut environment = env().with("ODD", odd.clone());
    for number in 0..500 {
        environment.set(format!("V{number:03}"), "v".repeat(100));
    }
    let line = r#"printf %s "$1$ODD"; env | grep -c "^V[0-9]*=v*$""#;
    let spec = Spec::shell(line, "/", environment).args([OsString::from("sh"), odd.clone()]);
    let mut supervised = Supervised::start(&host(), spec).await.unwrap();
    let mut out = Vec::new();
    let mut stdout = supervised.take_stdout().unwrap();
    stdout.read_to_end(&mut out).await.unwrap();
    assert_eq!(out, b"a\xff\n\"ba\xff\n\"b500\n");
}

#[tokio::test]
async fn files_are_removed_at_the_end_whatever_the_end() {
    let dir = tempfile::tempdir().unwrap();
    for line in ["test -e d/token", "rm d/token", "kill -9 $$"] {
        std::fs::create_dir_all(dir.path().join("d")).unwrap();
        std::fs::write(dir.path().join("d/token"), "secret").unwrap();
        let mut spec = Spec::shell(line, dir.path(), env());
        spec.remove_at_end.push(RemoveAtEnd {
            root: dir.path().into(),
            below: "d/token".into(),
        });
        let outcome = run(spec.clone()).await;
        assert_ne!(outcome.end, CommandEnd::Code(1), "{line}");
        assert!(!dir.path().join("d/token").exists(), "{line}");
        assert!(outcome.teardown.not_removed.is_empty());
    }
    let mut spec = Spec::shell("mv d e; ln -s e d", dir.path(), env());
    std::fs::write(dir.path().join("d/token"), "secret").unwrap();
    spec.remove_at_end.push(RemoveAtEnd {
        root: dir.path().into(),
        below: "d/token".into(),
    });
    let outcome = run(spec).await;
    assert_eq!(outcome.teardown.not_removed, [dir.path().join("d/token")]);
    assert!(dir.path().join("e/token").exists(), "a link was followed");
}

#[derive(Default)]
struct Record {
    refuse: bool,
    opened: AtomicUsize,
    closed: AtomicUsize,
}

impl LiveSupervisors for Record {
    fn opened(&self, supervisor: &ProcessIdentity) -> std::io::Result<()> {
        assert!(supervisor.pid() > 1);
        self.opened.fetch_add(1, Ordering::SeqCst);
        if self.refuse {
            return Err(std::io::Error::other("disk full"));
        }
        Ok(())
    }

    fn closed(&self, _: &ProcessIdentity) {
        self.closed.fetch_add(1, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn nothing_runs_that_is_not_recorded() {
    let dir = tempfile::tempdir().unwrap();
    for refuse in [false, true] {
        let record = Arc::new(Record {
            refuse,
            ..Record::default()
        });
        let mut spec = Spec::shell("echo > ran", dir.path(), env());
        spec.live = Some(record.clone());
        let _ = std::fs::remove_file(dir.path().join("ran"));
        let outcome = run_command(&host(), command(spec), &forever()).await;
        let is_refusal = matches!(
            outcome,
            Err(CommandError::Supervise(SuperviseError::Record(_)))
        );
        assert_eq!(is_refusal, refuse, "{outcome:?}");
        jig_testkit::wait_until_async("the record to be closed", || {
            record.closed.load(Ordering::SeqCst) == 1
        })
        .await;
        assert_eq!(record.opened.load(Ordering::SeqCst), 1);
        assert_eq!(dir.path().join("ran").exists(), !refuse);
    }
}

#[tokio::test]
async fn a_program_that_is_no_host_is_found_out() {
    let dir = tempfile::tempdir().unwrap();
    let host = Host::at("/bin/cat").unwrap();
    let spec = Spec::shell("echo > ran", dir.path(), env());
    let error = Supervised::start(&host, spec).await.unwrap_err();
    assert!(
        matches!(error, SuperviseError::NotASupervisor { .. }),
        "{error:?}"
    );
    assert!(!dir.path().join("ran").exists());
    assert!(Host::at("relative").is_err());
    assert!(Host::at("/no/such/program").is_err());
    // This test program did not call `supervisor_main`.
    assert!(Host::this_program().is_err());
}
