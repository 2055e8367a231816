//! A command below a supervisor, as jig sees it.

mod adopted;
mod driver;
mod handle;
mod registry;
mod spec;

pub use handle::{SuperviseError, Supervised};
pub use registry::all_stopped;
pub use spec::{
    Exit, LiveSupervisors, Program, RemoveAtEnd, Spec, StartError, StartStage, Stdin, Teardown,
};
