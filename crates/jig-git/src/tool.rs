//! One bounded run of a program, through jig's process runner.

use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::run::{GitError, Input, Output};

/// What to run.
#[derive(Debug)]
pub(crate) struct Tool<'a> {
    pub(crate) program: &'a Path,
    pub(crate) args: Vec<OsString>,
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) directory: Option<&'a Path>,
    pub(crate) input: Input,
    pub(crate) timeout: Duration,
    pub(crate) act: String,
}

/// Runs the tool in a process group of its own and waits for its end.
pub(crate) async fn run(tool: Tool<'_>) -> Result<Output, GitError> {
    let start = |source| GitError::Start {
        program: tool.program.to_owned(),
        source,
    };
    let mut command = tokio::process::Command::new(tool.program);
    command
        .args(&tool.args)
        .env_clear()
        .envs(tool.env.iter().cloned())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    if let Some(directory) = tool.directory {
        command.current_dir(directory);
    }
    let bytes = match tool.input {
        Input::Nothing => {
            command.stdin(Stdio::null());
            None
        }
        Input::Bytes(bytes) => {
            command.stdin(Stdio::piped());
            Some(bytes)
        }
        Input::File(ref path) => {
            command.stdin(std::fs::File::open(path).map_err(start)?);
            None
        }
    };
    let mut child = command.spawn().map_err(start)?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let work = async {
        let feed = async {
            if let (Some(mut pipe), Some(bytes)) = (stdin, bytes) {
                // A program that stops reading has said why on stderr.
                let _ = pipe.write_all(&bytes).await;
            }
        };
        let read = async |pipe: Option<_>| {
            let mut buffer = Vec::new();
            if let Some(mut pipe) = pipe {
                read_all(&mut pipe, &mut buffer).await?;
            }
            Ok::<_, std::io::Error>(buffer)
        };
        let ((), out, err) = tokio::join!(
            feed,
            read(stdout.map(Either::Out)),
            read(stderr.map(Either::Err))
        );
        let status = child.wait().await?;
        Ok::<_, std::io::Error>(Output {
            code: status.code(),
            stdout: out?,
            stderr: err?,
        })
    };
    match tokio::time::timeout(tool.timeout, work).await {
        Ok(output) => output.map_err(start),
        Err(_) => Err(GitError::TimedOut {
            act: tool.act,
            after: tool.timeout,
        }),
    }
}

enum Either {
    Out(tokio::process::ChildStdout),
    Err(tokio::process::ChildStderr),
}

async fn read_all(pipe: &mut Either, buffer: &mut Vec<u8>) -> std::io::Result<usize> {
    match pipe {
        Either::Out(pipe) => pipe.read_to_end(buffer).await,
        Either::Err(pipe) => pipe.read_to_end(buffer).await,
    }
}
