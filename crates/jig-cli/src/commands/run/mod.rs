//! `jig run`: one definition against one local repository.
//!
//! `request` reads the command line and everything it names, `checks` looks at
//! the repository and the agents, `executor` hosts the attempt, `drive` puts
//! them in order and reports.

mod checks;
mod drive;
mod executor;
mod request;

pub(crate) use checks::usable_git;
pub(crate) use drive::{Order, execute, print, run};
pub(crate) use request::{Request, parse_script};
