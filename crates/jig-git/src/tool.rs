//! One bounded run of git, through jig's process runner: a process group of its
//! own, exactly the environment given, stopped when it takes too long, when the
//! deadline comes, or when the future is dropped.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use jig_process::deadline::Deadline;
use jig_process::environment::Environment;
use jig_process::tool::{Tool, ToolError, ToolExit, ToolStdin, ToolStdout, run_tool_until};
use jig_protocol::limits;

use crate::run::{GitError, Input, Output};

/// The most that one run may print into memory: the checkout form of a file,
/// or a list of references.
const LARGEST_ANSWER: usize = 1 << 30;

/// What to run.
#[derive(Debug)]
pub(crate) struct Run<'a> {
    pub(crate) program: &'a Path,
    pub(crate) args: Vec<OsString>,
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) directory: Option<&'a Path>,
    pub(crate) input: Input,
    pub(crate) timeout: Duration,
    pub(crate) act: String,
}

pub(crate) async fn run(run: Run<'_>, deadline: &Deadline) -> Result<Output, GitError> {
    let start = |source| GitError::Start {
        program: run.program.to_owned(),
        source,
    };
    let mut env = Environment::default();
    for (name, value) in &run.env {
        env.set(name, value);
    }
    let stdin = match run.input {
        Input::Nothing => ToolStdin::Empty,
        Input::Bytes(bytes) => ToolStdin::Bytes(bytes),
        Input::File(ref path) => ToolStdin::File(std::fs::File::open(path).map_err(start)?),
    };
    let mut tool = Tool::new(run.program, run.directory.unwrap_or(Path::new("/")), env)
        .args(run.args)
        .stdin(stdin)
        .stdout(ToolStdout::Capture {
            max: LARGEST_ANSWER,
        })
        .timeout(run.timeout);
    tool.stderr_tail = limits::STDERR_TAIL_BYTES;
    match run_tool_until(tool, deadline).await {
        Ok(output) => {
            let code = match output.exit {
                ToolExit::Code(code) => Some(code),
                ToolExit::Signal(_) => None,
            };
            Ok(Output {
                code,
                stdout: output.stdout,
                stderr: output.stderr,
            })
        }
        Err(ToolError::TimedOut { after, .. }) => Err(GitError::TimedOut {
            act: run.act,
            after,
        }),
        Err(ToolError::Start { source, .. }) => Err(start(source)),
        Err(source) => Err(GitError::Interrupted {
            act: run.act,
            source: Box::new(source),
        }),
    }
}
