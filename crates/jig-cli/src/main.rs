//! The `jig` binary: parses arguments, composes the parts, prints, exits.
//!
//! It is the only place where all parts meet, and the only one that reads the
//! environment, installs a tracing subscriber, or prints. It knows no SQL and
//! no HTTP. Start reading at
//! `commands/run/mod.rs`.

mod args;
mod cancel;
mod commands;
mod compose;
mod definition_file;
mod evidence;
mod exit_code;
mod operator_agents;
mod output;
mod progress;
mod report;
mod settings;
mod version;

use std::process::ExitCode;

use tokio::signal::unix::{SignalKind, signal};

use crate::args::{Cli, Command};
use crate::exit_code::{CommandError, CommandResult, Exit};
use crate::settings::Settings;

fn main() -> ExitCode {
    // The hidden modes come first: they must not parse jig's own arguments.
    jig_process::supervisor_main();
    jig_runtime_scripted::scripted_agent_main();
    let cli = Cli::read();
    match start(cli).and_then(told) {
        Ok(exit) => exit.into(),
        Err(error) => {
            complain(&error);
            error.exit.into()
        }
    }
}

/// Nobody may take a result for told that did not arrive. A code that says more
/// than success stays.
fn told(exit: Exit) -> CommandResult {
    let Some(error) = output::lost() else {
        return Ok(exit);
    };
    let mut error = CommandError::infrastructure(
        anyhow::Error::new(error).context("the result could not be written to standard output"),
    );
    if exit != Exit::Done {
        error.exit = exit;
    }
    Err(error)
}

fn start(cli: Cli) -> CommandResult {
    let settings = Settings::read(&cli.common)?;
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(settings.threads)
        .enable_all()
        .build()
        .map_err(CommandError::infrastructure)?
        .block_on(async {
            survive_limits().map_err(CommandError::infrastructure)?;
            dispatch(cli.command, &settings).await
        })
}

/// A write beyond the limit on file sizes (`ulimit -f`) fails like one on a full
/// disk, and is told; the signal's default would end jig in the middle of it.
/// What jig starts gets the default back.
fn survive_limits() -> std::io::Result<()> {
    const SIGXFSZ: i32 = 25;
    // The handler stays when the listener goes.
    signal(SignalKind::from_raw(SIGXFSZ)).map(drop)
}

async fn dispatch(command: Command, settings: &Settings) -> CommandResult {
    match command {
        Command::Run(args) => commands::run::run(args, settings).await,
        Command::Demo(args) => commands::demo::run(args, settings).await,
        Command::Def(command) => commands::def::run(command, settings),
        Command::Attempt(command) => commands::attempt::run(command, settings).await,
        Command::Worktree(command) => commands::worktree::run(command, settings).await,
        Command::Gc(args) => commands::gc::run(args, settings).await,
        Command::Doctor => commands::doctor::run(settings).await,
        Command::Version => Ok(commands::version::run(settings)),
        // Answered while the command line was read.
        Command::Help { .. } => Ok(Exit::Done),
    }
}

/// Prints an error, its causes and what to do about it.
fn complain(error: &CommandError) {
    let mut last = error.error.to_string();
    let mut text = format!("error: {last}");
    for cause in error.error.chain().skip(1) {
        let cause = cause.to_string();
        // Some libraries say in an error what its cause says again.
        if !last.ends_with(&cause) {
            text.push_str(&format!("\n  caused by: {cause}"));
            last = cause;
        }
    }
    if let Some(hint) = &error.hint {
        text.push_str(&format!("\n  hint: {hint}"));
    }
    output::note(&output::harmless(&text));
    debug_assert_ne!(
        error.exit,
        Exit::Done,
        "an error ends with a code of its own"
    );
}
