//! An agent's part of a phase: prompts, sends, corrections, gates, deaths.
//!
//! [`run`] enters the phase as often as deaths allow; [`ladder`] is one entry's
//! conversation; [`send`] is one question and its answer. The texts are in
//! [`prompt`] and [`transcript`].

mod ladder;
mod prompt;
mod relay;
mod run;
mod send;
mod transcript;

pub(crate) use prompt::violations;
pub(crate) use transcript::Exchange;
