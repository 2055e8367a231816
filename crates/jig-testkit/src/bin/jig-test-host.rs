//! The program tests use as host of the hidden modes.
//!
//! With an argument of its own it plays an embedder of jig, so that tests can
//! kill one:
//!
//! - `shell LINE`: runs the command line below a supervisor, with this
//!   process's `PATH` and `MARK`, and tells how it ended.
//! - `shell-after-removal LINE`: the same, once this program's file is gone.
//! - `shell-removing ROOT BELOW LINE`: the same, with a file to be removed.
//! - `tool LINE`: runs the command line as a trusted tool.
//! - `leaks COUNT`: runs many commands and tells what they left in this
//!   process.

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

use jig_process::command::Keep;
use jig_process::tool::{Tool, run_tool};
use jig_process::{
    CommandSpec, Deadline, Environment, Host, RemoveAtEnd, Spec, StopReason, StopSignal,
    SystemClock, run_command,
};
use jig_testkit::processes::{open_descriptors, own_children};

type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    jig_process::supervisor_main();
    jig_runtime_scripted::scripted_agent_main();
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    match embed(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("failed: {error:?}"));
            ExitCode::FAILURE
        }
    }
}

fn embed(args: &[OsString]) -> Result<(), Failure> {
    let Some((mode, rest)) = args.split_first() else {
        return Ok(());
    };
    match (mode.to_str(), rest) {
        (Some("shell"), [line]) => shell(Spec::shell(line, "/", environment())),
        (Some("shell-after-removal"), [line]) => {
            let host = Host::this_program()?;
            let this = std::env::current_exe()?;
            jig_testkit::wait_until("the removal", || !this.exists());
            run(&host, Spec::shell(line, "/", environment()))
        }
        (Some("shell-removing"), [root, below, line]) => {
            let mut spec = Spec::shell(line, "/", environment());
            spec.remove_at_end.push(RemoveAtEnd {
                root: root.into(),
                below: below.into(),
            });
            shell(spec)
        }
        (Some("tool"), [line]) => {
            let tool = Tool::new("/bin/sh", "/", environment()).args(["-c".into(), line.clone()]);
            say(&format!("{:?}", run_tool(tool)?));
            Ok(())
        }
        (Some("leaks"), [count]) => {
            let count = count.to_str().unwrap_or_default().parse()?;
            runtime()?.block_on(leaks(count))
        }
        _ => Err("unknown mode".into()),
    }
}

fn shell(spec: Spec) -> Result<(), Failure> {
    run(&Host::this_program()?, spec)
}

fn run(host: &Host, spec: Spec) -> Result<(), Failure> {
    let outcome = runtime()?.block_on(run_command(host, command(spec), &forever()))?;
    say(&format!("{outcome:?}"));
    Ok(())
}

/// Commands that end in every way; then what is left of them in this process.
async fn leaks(count: usize) -> Result<(), Failure> {
    let host = Host::this_program()?;
    let lines = [
        "exit 3",
        "sleep 600 & (setsid sleep 600 &); exit 0",
        "kill -9 $$",
        "head -c 300000 /dev/zero; exec sleep 600",
    ];
    let mut before = None;
    for round in 0..count {
        let line = lines[round % lines.len()];
        let stop = StopSignal::new();
        if line.contains("exec sleep") {
            stop.raise(StopReason::Cancelled);
        }
        let spec = Spec::shell(line, "/", environment());
        run_command(&host, command(spec), &forever().and_signal(&stop)).await?;
        let missing = Spec::new(
            jig_process::Program::At("/does/not/exist".into()),
            "/",
            environment(),
        );
        run_command(&host, command(missing), &forever()).await?;
        let tool = Tool::new("/bin/sh", "/", environment()).args(["-c", "exit 1"]);
        tokio::task::spawn_blocking(move || run_tool(tool)).await??;
        if !jig_process::all_stopped(jig_testkit::BOUND).await {
            return Err("supervisors are left".into());
        }
        // What the first round opens (the runtime's own) stays open.
        before.get_or_insert_with(open_descriptors);
    }
    say(&format!(
        "children {:?} descriptors {}",
        own_children(),
        open_descriptors() - before.unwrap_or_default()
    ));
    Ok(())
}

fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    Ok(tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?)
}

fn command(spec: Spec) -> CommandSpec {
    CommandSpec {
        spec,
        stdout: Keep::default(),
        stderr: Keep::default(),
    }
}

fn forever() -> Deadline {
    Deadline::new(Arc::new(SystemClock::new()))
}

fn environment() -> Environment {
    ["PATH", "MARK"]
        .iter()
        .filter_map(|name| Some((*name, std::env::var_os(name)?)))
        .collect()
}

fn say(text: &str) {
    // A test that no longer listens has what it wants.
    let _ = writeln!(std::io::stdout(), "{text}");
}
