//! The stock definitions: that they are valid, and that their commands do what
//! they say.

mod classifier;
mod commands;
mod files;
mod shell;
