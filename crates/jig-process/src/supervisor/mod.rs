//! The supervisor: a small process between jig and a command.
//!
//! It has one thread and no runtime. It gets its job as JSON on a socket and
//! reports back on it; the socket's end is also the sign that jig is gone. It
//! is a child subreaper, so that everything the command starts, however
//! detached, is below it until it ends; and it does not end before all of it
//! has.

mod confinement;
mod family;
mod ladder;
mod remove;
mod run;
mod signals;
mod wire;

pub use confinement::Confinement;
pub(crate) use ladder::{Family, Stopped, stop_family};
pub(crate) use remove::Removals;
pub(crate) use run::run;
pub(crate) use wire::{Job, Lines, Report, Request, line};
