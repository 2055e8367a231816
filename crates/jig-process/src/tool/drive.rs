//! The ways to run a tool: blocking or as a future, alone or joined by pipes.

use std::io;
use std::os::fd::OwnedFd;

use super::pipeline::Pipeline;
use super::spec::{Tool, ToolError, ToolExit, ToolOutput};
use crate::deadline::Deadline;

/// Runs a tool to its end. Blocks the thread.
///
/// # Errors
///
/// When it could not be started or did not end of its own accord. A bad exit
/// code is no error here.
pub fn run_tool(tool: Tool) -> Result<ToolOutput, ToolError> {
    only(Pipeline::run(vec![tool], None))
}

/// Runs tools with each one's output as the next one's input. Blocks the
/// thread. The outputs are in the order of the tools.
///
/// # Errors
///
/// As [`run_tool`]; then all of them were stopped.
pub fn run_pipeline(tools: Vec<Tool>) -> Result<Vec<ToolOutput>, ToolError> {
    Pipeline::run(tools, None)
}

/// Runs a tool to its end or until the deadline. Dropping the future stops
/// the tool too.
///
/// # Errors
///
/// As [`run_tool`].
pub async fn run_tool_until(tool: Tool, deadline: &Deadline) -> Result<ToolOutput, ToolError> {
    only(run_pipeline_until(vec![tool], deadline).await)
}

/// Runs tools joined by pipes to their end or until the deadline. Dropping
/// the future stops them too.
///
/// # Errors
///
/// As [`run_tool`].
pub async fn run_pipeline_until(
    tools: Vec<Tool>,
    deadline: &Deadline,
) -> Result<Vec<ToolOutput>, ToolError> {
    let Some(program) = tools.first().map(|tool| tool.program.clone()) else {
        return Ok(Vec::new());
    };
    let failed = |act, source| ToolError::Io {
        program: program.clone(),
        act,
        source,
    };
    if let Some(reason) = deadline.reached() {
        return Err(ToolError::Stopped { program, reason });
    }
    // The tools are stopped when the writing end is closed, however that comes.
    let (cancel, keep_running) = io::pipe().map_err(|error| failed("make a pipe for", error))?;
    let mut running =
        tokio::task::spawn_blocking(move || Pipeline::run(tools, Some(OwnedFd::from(cancel))));
    let reason = tokio::select! {
        biased;
        ended = &mut running => {
            drop(keep_running);
            return ended.unwrap_or_else(|error| Err(failed("wait for", io::Error::other(error))));
        }
        reason = deadline.wait() => reason,
    };
    drop(keep_running);
    match running.await {
        // It ended in the same moment: what it did is done.
        Ok(Ok(outputs)) => Ok(outputs),
        Ok(Err(ToolError::Stopped { .. })) => Err(ToolError::Stopped { program, reason }),
        Ok(Err(error)) => Err(error),
        Err(error) => Err(failed("wait for", io::Error::other(error))),
    }
}

fn only(outputs: Result<Vec<ToolOutput>, ToolError>) -> Result<ToolOutput, ToolError> {
    outputs.map(|mut outputs| {
        outputs.pop().unwrap_or(ToolOutput {
            exit: ToolExit::Code(0),
            stdout: Vec::new(),
            stderr: String::new(),
        })
    })
}
