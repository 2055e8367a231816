//! Trusted helper programs, such as git: run directly, without a supervisor.
//!
//! Each leads its own process group, has exactly the environment it was given,
//! and ends (TERM) when the process that started it ends. Time and output are
//! bounded. Only programs that end on TERM and leave nothing in the background
//! belong here; everything else goes through [`crate::run_command`].

mod drive;
mod pipeline;
mod spawn;
mod spec;

pub use drive::{run_pipeline, run_pipeline_until, run_tool, run_tool_until};
pub use spec::{Sink, Tool, ToolError, ToolExit, ToolOutput, ToolStdin, ToolStdout};
